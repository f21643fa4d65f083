//! `… HELP`, from the table.

use mayhap_command::Reply;
use mayhap_command::run::Server;
use mayhap_command::server::subcommands;

/// What `CLIENT HELP` and the like print: the subcommands with what they do.
pub(crate) fn of(name: &str, server: Server) -> Reply {
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for row in subcommands(server) {
        let gap = if row.syntax.is_empty() { "" } else { " " };
        lines.push(format!("{}{gap}{}", row.name.to_uppercase(), row.syntax));
        lines.push(format!("    {}.", row.summary));
    }
    Reply::Array(lines.into_iter().map(|line| Reply::Simple(line.into())).collect())
}
