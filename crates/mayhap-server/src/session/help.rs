//! `… HELP`, from the table of commands.

use mayhap_command::{Command, Reply};

/// Returns the text of `CLIENT HELP` and the like: all subcommands with a summary.
pub(crate) fn of(command: &Command) -> Reply {
    let name = command.name.to_uppercase();
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for row in command.traits.subcommands {
        let gap = if row.syntax.is_empty() { "" } else { " " };
        lines.push(format!("{}{gap}{}", row.name.to_uppercase(), row.syntax));
        lines.push(format!("    {}.", row.summary));
    }
    Reply::Array(lines.into_iter().map(|line| Reply::Simple(line.into())).collect())
}
