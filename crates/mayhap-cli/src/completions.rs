//! `mayhap completions`: shell scripts that complete verbs, options and their values.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::error::CliError;

/// Write the completion script of a shell
#[derive(Args, Debug)]
#[command(after_help = "\
The script goes to standard output. Save it where your shell looks for it, and
again after each update of mayhap.

Examples:
  bash        mayhap completions bash > ~/.local/share/bash-completion/completions/mayhap
  zsh         mayhap completions zsh > \"${fpath[1]}/_mayhap\"
  fish        mayhap completions fish > ~/.config/fish/completions/mayhap.fish
  elvish      mayhap completions elvish >> ~/.config/elvish/rc.elv
  powershell  mayhap completions powershell >> $PROFILE
  this shell  source <(mayhap completions bash)")]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_enum, hide_possible_values = true)]
    shell: Shell,
}

impl Completions {
    /// Writes the script.
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        // clap's writer panics on errors, so it writes to memory first.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "mayhap", &mut script);
        Ok(out.write_all(&script)?)
    }
}
