//! `mayhap man`: the manual, one page per verb, from the same texts as `--help`.

mod page;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};

use crate::Cli;
use crate::error::CliError;
use crate::whole_file;

/// Write the manual: the main page, or with --dir all pages
#[derive(Args, Debug)]
#[command(after_help = "\
Without --dir, the main page goes to standard output. With --dir, one page for the
program and one for each verb are written, with the names that `man` looks for;
existing pages are replaced.

Examples:
  mayhap man | man -l -                            read the main page
  mayhap man --verb uniq | man -l -                read about one verb
  mayhap man --dir ~/.local/share/man/man1         then: man mayhap-uniq
  sudo mayhap man --dir /usr/local/share/man/man1  for all users")]
pub(crate) struct Man {
    /// Write all pages into this folder; it is created if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the page of this verb to standard output
    #[arg(long, value_name = "VERB", conflicts_with = "dir")]
    verb: Option<String>,
}

impl Man {
    /// Writes one page to `out`, or all into a folder.
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let mut program = Cli::command().disable_help_subcommand(true);
        program.build();
        match (&self.dir, &self.verb) {
            (Some(dir), _) => write_all(&program, dir),
            (None, None) => Ok(out.write_all(&page::of_program(&program)?)?),
            (None, Some(verb)) => {
                let found = program.get_subcommands().find(|command| command.get_name() == verb);
                let found = found.ok_or_else(|| {
                    let verbs: Vec<_> = program.get_subcommands().map(clap::Command::get_name).collect();
                    CliError::Usage(format!("there is no verb {verb:?}; the verbs are {}", verbs.join(", ")))
                })?;
                Ok(out.write_all(&page::of_verb(found)?)?)
            }
        }
    }
}

fn write_all(program: &clap::Command, dir: &Path) -> Result<(), CliError> {
    let cli_error = |cause: std::io::Error| CliError::Filter {
        name: dir.display().to_string(),
        what: format!("cannot write the manual there: {cause}"),
    };
    fs::create_dir_all(dir).map_err(cli_error)?;
    whole_file::write(&dir.join("mayhap.1"), &page::of_program(program)?)?;
    for verb in program.get_subcommands() {
        let name = format!("mayhap-{}.1", verb.get_name());
        whole_file::write(&dir.join(name), &page::of_verb(verb)?)?;
    }
    Ok(())
}
