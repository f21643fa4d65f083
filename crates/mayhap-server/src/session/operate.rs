//! Commands for operators: `SAVE`, `SHUTDOWN`, `DEBUG`, `MODULE`, `ROLE`, `TIME`.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mayhap_command::server::SessionRefusal;
use mayhap_command::{Refusal, Reply, Request, args};

use crate::saving::SaveError;
use crate::shared::Ending;

use super::{Answer, Session, help, is, list, map};

/// The maximum time of `DEBUG SLEEP`.
const LONGEST_SLEEP: f64 = 10.0;
/// The version of the module whose commands are built in.
const MODULE_VERSION: i64 = 80_200;

impl Session {
    /// `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]`: closes the connection without a reply on success.
    pub(super) fn shutdown(&self, words: &[&[u8]]) -> Result<Answer, Refusal> {
        let has = |option: &str| words[1..].iter().any(|word| is(word, option));
        let known =
            |word: &&[u8]| ["save", "nosave", "now", "force", "abort"].iter().any(|known| is(word, known));
        if !words[1..].iter().all(known) || (has("save") && has("nosave")) {
            return Err(Refusal::Syntax);
        }
        if has("abort") {
            return match words.len() {
                2 => Err(SessionRefusal::NoShutdown.into()),
                _ => Err(Refusal::Syntax),
            };
        }
        let saving = self.shared.saving();
        // All changes are in the log whatever the option. A snapshot makes the next start faster.
        let can_end = match has("save") && saving.folder().is_some() {
            true => saving.save(self.shared.engine()).map(drop),
            false => saving.can_end(self.shared.engine()),
        };
        if can_end.is_err() && !has("nosave") && !has("force") {
            return Err(SessionRefusal::ShutdownFailed.into());
        }
        let ending = if has("nosave") || has("force") { Ending::Forced } else { Ending::IfSaved };
        self.shared.stop(ending);
        Ok(Answer::Silence)
    }

    /// Runs `DEBUG subcommand …`. The subcommand exists and the number of words is right.
    pub(super) fn debug(&self, Request { command, words }: Request<'_>) -> Result<Answer, Refusal> {
        match words[1].to_ascii_lowercase().as_slice() {
            b"sleep" => {
                let seconds = args::double(words[2]).ok_or(SessionRefusal::NotAFloat)?;
                let pause = Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_SLEEP));
                let shared = Arc::clone(&self.shared);
                Ok(Answer::Job(Box::new(move || {
                    let begun = std::time::Instant::now();
                    // In short steps, because the server may stop in between.
                    while begun.elapsed() < pause && !shared.is_stopping() {
                        std::thread::sleep(
                            (pause - begun.elapsed().min(pause)).min(Duration::from_millis(50)),
                        );
                    }
                    Reply::Ok
                })))
            }
            b"reload" => self.reload(&words[2..]),
            _ => Ok(help::of(command).into()),
        }
    }

    /// `DEBUG RELOAD [NOSAVE]`.
    fn reload(&self, words: &[&[u8]]) -> Result<Answer, Refusal> {
        if !words.iter().all(|word| is(word, "nosave")) {
            return Err(Refusal::Syntax);
        }
        let (shared, saves) = (Arc::clone(&self.shared), words.is_empty());
        Ok(Answer::Job(Box::new(move || {
            let saving = shared.saving();
            if saves
                && saving.folder().is_some()
                && let Err(error) = saving.save(shared.engine())
            {
                return refused(&error).into();
            }
            match shared.engine().reload() {
                Ok(names) => {
                    tracing::info!(names, "all values reloaded (DEBUG RELOAD)");
                    Reply::Ok
                }
                Err(error) => Refusal::from(SessionRefusal::ReloadFailed(error.to_string())).into(),
            }
        })))
    }

    /// Runs `MODULE subcommand …`. The subcommand exists and the number of words is right.
    pub(super) fn module(&self, Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
        match words[1].to_ascii_lowercase().as_slice() {
            b"list" => Ok(modules()),
            b"load" | b"unload" => Err(SessionRefusal::NoModules.into()),
            _ => Ok(help::of(command)),
        }
    }

    /// `SAVE`.
    pub(super) fn save(&self) -> Answer {
        let shared = Arc::clone(&self.shared);
        Answer::Job(Box::new(move || match shared.saving().save(shared.engine()) {
            Ok(_) => Reply::Ok,
            Err(error) => refused(&error).into(),
        }))
    }

    /// `BGSAVE [SCHEDULE]`.
    pub(super) fn background_save(&self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        match words {
            [_] => {}
            [_, how] if is(how, "schedule") => {}
            _ => return Err(Refusal::Syntax),
        }
        let begun = self.shared.saving().save_in_background(self.shared.engine());
        begun.map_err(|error| refused(&error))?;
        Ok(Reply::simple("Background saving started"))
    }

    /// `BGREWRITEAOF`: writes a snapshot, which shortens the log.
    pub(super) fn rewrite_log(&self) -> Result<Reply, Refusal> {
        let begun = self.shared.saving().save_in_background(self.shared.engine());
        begun.map_err(|error| refused(&error))?;
        Ok(Reply::simple("Background append only file rewriting started"))
    }

    /// `LASTSAVE`.
    pub(super) fn last_save(&self) -> Reply {
        Reply::count(self.shared.saving().last().unix_secs)
    }
}

fn refused(error: &SaveError) -> Refusal {
    match error {
        SaveError::NoFolder => SessionRefusal::NoFolder.into(),
        SaveError::UnderWay => SessionRefusal::SaveUnderWay.into(),
        SaveError::Failed(_) | SaveError::Log(_) => SessionRefusal::SaveFailed(error.to_string()).into(),
    }
}

/// One module, which shows clients that Bloom filters are available.
pub(super) fn modules() -> Reply {
    Reply::Array(vec![map([
        ("name", Reply::bulk("bf")),
        ("ver", Reply::Integer(MODULE_VERSION)),
        ("path", Reply::bulk("")),
        ("args", list::<&str>([])),
    ])])
}

/// `REPLICAOF NO ONE`. Everything else is refused.
pub(super) fn replica_of(words: &[&[u8]]) -> Result<Reply, Refusal> {
    if is(words[1], "no") && is(words[2], "one") {
        return Ok(Reply::Ok);
    }
    match args::integer(words[2]).is_some_and(|port| (0..=65_535).contains(&port)) {
        true => Err(SessionRefusal::NoReplication.into()),
        false => Err(SessionRefusal::MasterPort.into()),
    }
}

/// `ROLE`: a master without replicas.
pub(super) fn role() -> Reply {
    Reply::Array(vec![Reply::bulk("master"), Reply::Integer(0), Reply::Array(Vec::new())])
}

/// `TIME`.
pub(super) fn time() -> Reply {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    list([now.as_secs().to_string(), now.subsec_micros().to_string()])
}

/// Seconds since 1970.
pub(super) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
