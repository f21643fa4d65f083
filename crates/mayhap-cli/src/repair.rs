//! `mayhap repair`: recovers data from a damaged folder of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use mayhap_command::Lost;
use mayhap_engine::{Damage, Detail, Engine, Files, Losses, Salvage, System, snapshot};
use mayhap_server::Saving;
use serde::Serialize;

use crate::error::CliError;
use crate::{Verdict, output};

/// The most recovered names to print; `--json` lists all.
const MOST_KEPT: usize = 1_000;

/// Recover what is intact in a server's damaged data folder
#[derive(Args, Debug)]
#[command(after_help = "\
Reads the intact parts of a data folder of `mayhap serve`: every name of the last
snapshot and every change in the log, except the damaged ones. The folder itself is
not changed.

With --into, everything that can be recovered is written to a new folder, which a
server can use: `mayhap serve --dir NEW`. A name that lost data answers NOTREADY
there until a client creates it again (BF.RESERVE, MF.BUILD, RESTORE, ...) or
deletes it. Changes missing from the log may affect any name; then all names count
as lost, except those created after the last missing change. If names are lost and
it is unknown which, every name that does not exist answers NOTREADY as well.

With --accept-loss, names that lost data keep what is left and answer again, with a
wrong *no* for members that are lost.

Exit codes: 0 nothing is lost, 1 data is lost, 2 error.

Examples:
  mayhap repair ./mayhap-data
  mayhap repair ./mayhap-data --into ./mayhap-kept
  mayhap repair ./mayhap-data --into ./mayhap-kept --accept-loss
  mayhap repair --json ./mayhap-data")]
pub(crate) struct Repair {
    /// The data folder of a server, which must not be running
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Write what can be recovered to this folder, which must be empty or new
    #[arg(long, value_name = "NEW")]
    into: Option<PathBuf>,
    /// Keep what is left of names that lost changes, and drop names that lost everything
    #[arg(long)]
    accept_loss: bool,
    /// Write one JSON object, with every name
    #[arg(long)]
    json: bool,
}

/// The result. The field names are those of `--json` and must not change.
#[derive(Debug, Serialize)]
struct Found {
    folder: String,
    intact: bool,
    names: u64,
    changes_played: u64,
    changes_missing: u64,
    damage: Vec<FoundDamage>,
    /// Names with all their data.
    kept: Vec<KeptName>,
    /// Names that answer *not ready*.
    not_ready: Vec<LostName>,
    /// Whether unknown names are lost. Then every name that does not exist answers *not ready* as well.
    unknown_names: bool,
    kept_in: Option<String>,
}

#[derive(Debug, Serialize)]
struct KeptName {
    name: String,
    r#type: &'static str,
    items: u64,
}

#[derive(Debug, Serialize)]
struct LostName {
    name: String,
    why: &'static str,
}

#[derive(Debug, Serialize)]
struct FoundDamage {
    file: String,
    offset: u64,
    what: String,
    name: Option<String>,
}

impl From<&Damage> for FoundDamage {
    fn from(damage: &Damage) -> Self {
        let name = damage.name.as_ref().map(|name| name.escape_ascii().to_string());
        Self { file: damage.file.clone(), offset: damage.offset, what: damage.what.clone(), name }
    }
}

impl Repair {
    /// Prints what can be recovered, and writes it to `--into` if given.
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let shown = self.folder.display();
        if !self.folder.is_dir() {
            return Err(cli_error(&self.folder, &"the folder does not exist"));
        }
        let refused = |error: &dyn fmt::Display| cli_error(&self.folder, error);
        // While this lock is held, no server uses the folder.
        let _held = Saving::open(Some(&self.folder), 0).map_err(|error| refused(&error))?;
        let engine = Engine::new(mayhap_command::Limits::default(), Arc::new(System));
        let files = Files::open(&self.folder).map_err(|error| refused(&error))?;
        let losses = if self.accept_loss { Losses::Accepted } else { Losses::Marked };
        let salvage = engine.salvage(&files, losses).map_err(|error| refused(&error))?;
        if let Some(into) = &self.into {
            keep(&engine, into)?;
        }
        let found = self.found(&engine, &salvage);
        output::to_stdout(|out, _| {
            if self.json {
                return Ok(writeln!(out, "{}", serde_json::to_string(&found).unwrap_or_default())?);
            }
            writeln!(out, "{shown}: {} names, {} changes replayed", found.names, found.changes_played)?;
            for damage in &salvage.damage {
                writeln!(out, "  damaged    {damage}")?;
            }
            if found.changes_missing > 0 {
                writeln!(out, "  missing    {} changes", found.changes_missing)?;
            }
            for lost in &found.not_ready {
                writeln!(out, "  not ready  {}: {}", lost.name, lost.why)?;
            }
            if found.unknown_names {
                writeln!(
                    out,
                    "  not ready  all names not listed here: some are lost, and it is unknown which"
                )?;
                writeln!(out, "             compare this list with the names that your programs use")?;
            }
            for kept in found.kept.iter().take(MOST_KEPT) {
                writeln!(out, "  kept       {} ({}, {} items)", kept.name, kept.r#type, kept.items)?;
            }
            if let Some(more) = found.kept.len().checked_sub(MOST_KEPT).filter(|more| *more > 0) {
                writeln!(out, "  kept       {more} more: --json lists all")?;
            }
            match (found.intact, &found.kept_in) {
                (_, Some(into)) => writeln!(out, "written to {into}: mayhap serve --dir {into}")?,
                (true, None) => writeln!(out, "nothing is damaged")?,
                (false, None) => writeln!(out, "to recover the rest: mayhap repair {shown} --into NEW")?,
            }
            Ok(out.flush()?)
        })?;
        Ok(if found.intact { Verdict::Yes } else { Verdict::No })
    }

    fn found(&self, engine: &Engine, salvage: &Salvage) -> Found {
        let show = |name: &[u8]| name.escape_ascii().to_string();
        let lost = |(name, lost): &(Vec<u8>, Lost)| LostName { name: show(name), why: lost.what() };
        let (mut kept, mut cursor) = (Vec::new(), 0);
        loop {
            let page = engine.page(cursor, 1_000, None);
            let is_kept = |detail: &&Detail| detail.description.type_name != "lost";
            kept.extend(page.details.iter().filter(is_kept).map(|detail| KeptName {
                name: show(&detail.name),
                r#type: detail.description.type_name,
                items: detail.description.items,
            }));
            match page.next {
                0 => break,
                next => cursor = next,
            }
        }
        kept.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let is_lossless = salvage.missing == 0 && salvage.lost.is_empty() && !salvage.unknown;
        Found {
            folder: self.folder.display().to_string(),
            intact: salvage.damage.is_empty() && is_lossless,
            kept,
            not_ready: salvage.lost.iter().map(lost).collect(),
            unknown_names: salvage.unknown,
            names: salvage.names,
            changes_played: salvage.played,
            changes_missing: salvage.missing,
            damage: salvage.damage.iter().map(FoundDamage::from).collect(),
            kept_in: self.into.as_ref().map(|into| into.display().to_string()),
        }
    }
}

fn cli_error(folder: &Path, what: &dyn fmt::Display) -> CliError {
    CliError::Input { name: folder.display().to_string(), what: what.to_string() }
}

/// Writes everything to a new or empty folder.
fn keep(engine: &Engine, into: &Path) -> Result<(), CliError> {
    let refused = |error: &dyn fmt::Display| cli_error(into, error);
    let files = Files::open(into).map_err(|error| refused(&error))?;
    if std::fs::read_dir(into).map_err(|error| refused(&error))?.next().is_some() {
        return Err(refused(&"the folder must be empty: nothing is overwritten"));
    }
    snapshot::save(engine, &files).map(drop).map_err(|error| refused(&error))
}
