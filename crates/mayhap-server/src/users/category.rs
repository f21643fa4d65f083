//! The categories of commands, which rules name with an `@`.

use mayhap_command::run::{Keyspace, Server};
use mayhap_command::server::Subcommand;
use mayhap_command::{Access, Command, Family, Flags, Run, table};

/// Those that commands are in, in Redis's order, and ours behind them.
pub(crate) const CATEGORIES: [&str; 15] = [
    "keyspace",
    "read",
    "write",
    "string",
    "bitmap",
    "bloom",
    "cuckoo",
    "mayhap",
    "admin",
    "fast",
    "slow",
    "dangerous",
    "connection",
    "transaction",
    "dump",
];

/// Those that Redis has besides: rules may name them, and no command is in them.
const EMPTY: [&str; 14] = [
    "set",
    "sortedset",
    "list",
    "hash",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "blocking",
    "scripting",
    "cms",
    "topk",
    "tdigest",
    "json",
];

/// The category of this name, however it is spelled. `all` is none.
pub(crate) fn find(name: &[u8]) -> Option<&'static str> {
    CATEGORIES.into_iter().chain(EMPTY).find(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Does it give what a name holds as bytes? A filter's secret key is among them. So that nobody gets them by a general rule, such a
/// command is allowed by its own name, by `+@dump` and by `+@all`, and by no other category; every category it is in takes it away.
pub(crate) fn dumps(command: &Command) -> bool {
    matches!(command.run, Run::Keyspace(Keyspace::Dump))
        || command.tells_key()
        || matches!(command.name, "bf.scandump" | "cf.scandump")
}

/// The categories of a command, without the `@`: those that take it away.
pub(crate) fn of_command(command: &Command) -> impl Iterator<Item = &'static str> {
    let access = match command.flags.access {
        _ if command.changes() => Some("write"),
        Access::Read => Some("read"),
        Access::Write => Some("write"),
        Access::Neither => None,
    };
    let transaction = matches!(
        command.run,
        Run::Server(Server::Multi | Server::Exec | Server::Discard | Server::Watch | Server::Unwatch)
    );
    let family = match command.family {
        _ if transaction => Some("transaction"),
        // Servers have no category of their own.
        Family::Server => None,
        Family::Bitmap if !command.name.contains("bit") => Some("string"),
        family => Some(family.name()),
    };
    let dangerous = matches!(command.name, "flushall" | "flushdb" | "keys" | "restore" | "info");
    let more = dangerous.then_some("dangerous").into_iter().chain(dumps(command).then_some("dump"));
    in_order(access.into_iter().chain(family).chain(of_flags(command.flags)).chain(more).collect())
}

/// The categories of a subcommand.
pub(crate) fn of_subcommand(command: &Command, row: &Subcommand) -> impl Iterator<Item = &'static str> {
    in_order(of_flags(row.flags).chain([command.family.name()]).collect())
}

/// Those that allow a command: what `COMMAND INFO` shows, `ACL CAT` lists and `+@category` gives. A dump is in one of them alone.
pub(crate) fn shown(command: &Command) -> impl Iterator<Item = &'static str> {
    let only_dump = dumps(command);
    of_command(command).filter(move |category| !only_dump || *category == "dump")
}

/// The commands that `+@category` allows.
pub(crate) fn commands(category: &'static str) -> impl Iterator<Item = &'static Command> {
    table::all().filter(move |command| shown(command).any(|one| one == category))
}

/// In the order of [`CATEGORIES`], as Redis lists them.
fn in_order(unordered: Vec<&'static str>) -> impl Iterator<Item = &'static str> {
    CATEGORIES.into_iter().filter(move |category| unordered.contains(category))
}

fn of_flags(flags: Flags) -> impl Iterator<Item = &'static str> {
    let admin: &[&'static str] = if flags.admin { &["admin", "dangerous"] } else { &[] };
    admin.iter().copied().chain([if flags.fast { "fast" } else { "slow" }])
}
