//! `mayhap repair`: what of a server's damaged folder can be kept?

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use mayhap_engine::{Damage, Engine, Files, Salvage, System, snapshot};
use mayhap_server::Saving;
use serde::Serialize;

use crate::trouble::Trouble;
use crate::{Verdict, output};

/// Show what of a server's damaged folder can be kept
#[derive(Args, Debug)]
#[command(after_help = "\
Reads a folder of `mayhap serve` as far as it is as it was written: every name of
the last snapshot but for those that are damaged, and every change in the log but
for those that are. Nothing in the folder is changed.

With --into all that can be kept is written to a new folder, which a server
starts with: `mayhap serve --dir NEW`. Changes that are missing in the log may have
been to any name, so a filter may lack items that were added; compare the list of
what is damaged with what you know before you trust it.

Exit codes: 0 everything is as it was written, 1 something is not, 2 trouble.

Examples:
  mayhap repair ./mayhap-data
  mayhap repair ./mayhap-data --into ./mayhap-kept
  mayhap repair --json ./mayhap-data")]
pub(crate) struct Repair {
    /// The folder of a server, which must not be running
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Write what can be kept to this folder, which must be empty or new
    #[arg(long, value_name = "NEW")]
    into: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// What was found. The field names are those of `--json`, and a promise.
#[derive(Debug, Serialize)]
struct Found {
    folder: String,
    intact: bool,
    names: u64,
    changes_played: u64,
    changes_missing: u64,
    damage: Vec<FoundDamage>,
    kept_in: Option<String>,
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
    /// Says what there is, and writes it elsewhere if asked to.
    pub(crate) fn run(&self) -> Result<Verdict, Trouble> {
        let shown = self.folder.display();
        if !self.folder.is_dir() {
            return Err(trouble(&self.folder, &"there is no such folder"));
        }
        let refused = |error: &dyn fmt::Display| trouble(&self.folder, error);
        // As long as it is held, no server uses the folder.
        let _held = Saving::open(Some(&self.folder), 0).map_err(|error| refused(&error))?;
        let engine = Engine::new(mayhap_command::Limits::default(), Arc::new(System));
        let files = Files::open(&self.folder).map_err(|error| refused(&error))?;
        let salvage = engine.salvage(&files).map_err(|error| refused(&error))?;
        if let Some(into) = &self.into {
            keep(&engine, into)?;
        }
        let found = self.found(&salvage);
        output::to_stdout(|out, _| {
            if self.json {
                return Ok(writeln!(out, "{}", serde_json::to_string(&found).unwrap_or_default())?);
            }
            writeln!(out, "{shown}: {} names, {} changes played", found.names, found.changes_played)?;
            for damage in &salvage.damage {
                writeln!(out, "  damaged  {damage}")?;
            }
            if found.changes_missing > 0 {
                writeln!(out, "  missing  {} changes", found.changes_missing)?;
            }
            match (found.intact, &found.kept_in) {
                (_, Some(into)) => writeln!(out, "kept in {into}: mayhap serve --dir {into}")?,
                (true, None) => writeln!(out, "everything is as it was written")?,
                (false, None) => writeln!(out, "to keep the rest: mayhap repair {shown} --into NEW")?,
            }
            Ok(out.flush()?)
        })?;
        Ok(if found.intact { Verdict::Yes } else { Verdict::No })
    }

    fn found(&self, salvage: &Salvage) -> Found {
        Found {
            folder: self.folder.display().to_string(),
            intact: salvage.damage.is_empty() && salvage.missing == 0,
            names: salvage.names,
            changes_played: salvage.played,
            changes_missing: salvage.missing,
            damage: salvage.damage.iter().map(FoundDamage::from).collect(),
            kept_in: self.into.as_ref().map(|into| into.display().to_string()),
        }
    }
}

fn trouble(folder: &Path, what: &dyn fmt::Display) -> Trouble {
    Trouble::Input { name: folder.display().to_string(), what: what.to_string() }
}

/// Writes everything to a folder that has nothing yet.
fn keep(engine: &Engine, into: &Path) -> Result<(), Trouble> {
    let refused = |error: &dyn fmt::Display| trouble(into, error);
    let files = Files::open(into).map_err(|error| refused(&error))?;
    if std::fs::read_dir(into).map_err(|error| refused(&error))?.next().is_some() {
        return Err(refused(&"it must be empty: nothing is written over"));
    }
    snapshot::save(engine, &files).map(drop).map_err(|error| refused(&error))
}
