//! `SLOWLOG` and `LATENCY`.

use mayhap_command::server::SessionRefusal;
use mayhap_command::{Refusal, Reply, Request, args};

use super::{Session, help};

impl Session {
    /// Runs `SLOWLOG subcommand …`. The subcommand exists and the number of words is right.
    pub(super) fn slow_log(&self, Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
        let log = self.shared.slow_log();
        match words[1].to_ascii_lowercase().as_slice() {
            b"get" => {
                let most = match words[2..] {
                    [] => 10,
                    [count] => match args::integer(count) {
                        Some(-1) => usize::MAX,
                        Some(count @ 0..) => usize::try_from(count).unwrap_or(usize::MAX),
                        _ => return Err(SessionRefusal::SlowLogCount.into()),
                    },
                    _ => return Err(Refusal::WrongSubcommandArity { command: command.name, word: "get" }),
                };
                Ok(log.get(most))
            }
            b"len" => Ok(Reply::count(log.len() as u64)),
            b"reset" => {
                log.reset();
                Ok(Reply::Ok)
            }
            _ => Ok(help::of(command)),
        }
    }

    /// Runs `LATENCY subcommand …`. The subcommand exists and the number of words is right.
    pub(super) fn latency(&self, Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
        let latency = self.shared.latency();
        Ok(match words[1].to_ascii_lowercase().as_slice() {
            b"latest" => latency.latest(),
            b"history" => latency.history(words[2]),
            b"reset" => Reply::count(latency.reset(&words[2..]) as u64),
            b"doctor" => Reply::Text(latency.doctor()),
            _ => help::of(command),
        })
    }
}
