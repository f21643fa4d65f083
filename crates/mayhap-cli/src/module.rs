//! `mayhap module`: prints the path of the module for Redis and Valkey, and how to load it.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::error::CliError;
use crate::output;

/// Print where the module for Redis and Valkey is, and how to load it
#[derive(Args, Debug)]
#[command(after_help = "\
The module adds the BF.*, CF.* and MF.* commands of `mayhap serve` to Redis (7 or
later) or Valkey, with the replication, cluster and snapshots of that server.
This command looks for it next to this program, where cargo puts both, and in
../lib/mayhap.

Examples:
  mayhap module                                    where it is, how to load it
  redis-server --loadmodule \"$(mayhap module --path)\"
  echo \"loadmodule $(mayhap module --path)\" >> redis.conf
  redis-cli MODULE LOAD \"$(mayhap module --path)\"
  mayhap module --json | jq -r .path")]
pub(crate) struct Module {
    /// Write only the path
    #[arg(long)]
    path: bool,
    /// Write one JSON object
    #[arg(long, conflicts_with = "path")]
    json: bool,
}

/// The result. The field names are those of `--json` and must not change.
#[derive(Serialize)]
struct ModuleReport<'a> {
    path: &'a str,
    /// The line for redis.conf.
    config_line: String,
    /// The command for a running server.
    command: String,
}

impl Module {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let path = find(&folders()?).ok_or_else(|| CliError::Usage(not_built()))?;
        let path = path.to_string_lossy();
        if self.path {
            return Ok(writeln!(out, "{path}")?);
        }
        let (config_line, command) = (format!("loadmodule {path}"), format!("MODULE LOAD {path}"));
        if self.json {
            return output::json(out, &ModuleReport { path: &path, config_line, command });
        }
        writeln!(out, "The module is {path}")?;
        writeln!(out, "  at startup        redis-server --loadmodule {path}")?;
        writeln!(out, "  or in redis.conf  {config_line}")?;
        writeln!(out, "  while it runs     redis-cli {command}")?;
        writeln!(out, "                    (if `enable-module-command` in redis.conf allows it)")?;
        Ok(writeln!(out, "  to test it        redis-cli MF.PLAN 1000000 0.01")?)
    }
}

fn name() -> String {
    format!("{}mayhap_module{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX)
}

/// Where the module may be: next to the program, or in the library folder of packages.
fn folders() -> Result<Vec<PathBuf>, CliError> {
    let program = env::current_exe().and_then(|path| path.canonicalize());
    let program =
        program.map_err(|cause| CliError::Read { name: "the path of this program".into(), cause })?;
    let beside = program.parent().unwrap_or(Path::new("/")).to_owned();
    let library = beside.parent().map(|above| above.join("lib").join("mayhap"));
    Ok([beside].into_iter().chain(library).collect())
}

fn find(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name())).find(|path| path.is_file())
}

fn not_built() -> String {
    format!(
        "{} is neither next to this program nor in ../lib/mayhap: `cargo build --release -p mayhap-module` builds it in the \
         source folder (needs libclang, on Debian `apt install libclang-dev`)",
        name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_with_the_module_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("bin"), folder.path().join("lib"));
        let folders = [first.clone(), second.clone()];
        assert_eq!(find(&folders), None);
        for path in [&second, &first] {
            std::fs::create_dir(path).unwrap();
            std::fs::write(path.join(name()), "").unwrap();
            assert_eq!(find(&folders), Some(path.join(name())));
        }
        assert!(not_built().contains("cargo build --release -p mayhap-module"));
    }
}
