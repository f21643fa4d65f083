//! The categories of commands, which rules name with an `@`.

use mayhap_command::server::Subcommand;
use mayhap_command::traits::Reveals;
use mayhap_command::{Access, Command, Family, Flags, table};

/// The categories with commands, in Redis's order, followed by our own.
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

/// Further categories of Redis. Rules may name them, but no command is in them.
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

/// Returns the category with this name, ignoring case. `all` is not a category.
pub(crate) fn find(name: &[u8]) -> Option<&'static str> {
    CATEGORIES.into_iter().chain(EMPTY).find(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Whether the command returns the bytes of a value. They contain the secret key of a filter. To keep general
/// rules from granting it, such a command is allowed only by its own name, by `+@dump` and by `+@all`. Every
/// category it belongs to removes it.
pub(crate) fn dumps(command: &Command) -> bool {
    command.traits.reveals != Reveals::Nothing
}

/// The categories of a command, without the `@`, that remove it.
pub(crate) fn of_command(command: &Command) -> impl Iterator<Item = &'static str> {
    let access = match command.flags.declared {
        _ if command.changes() => Some("write"),
        Access::Read => Some("read"),
        Access::Write => Some("write"),
        Access::Neither => None,
    };
    let family = command.traits.category.or(match command.family {
        // Server commands have no category of their own.
        Family::Server => None,
        family => Some(family.name()),
    });
    let dangerous = command.traits.dangerous.then_some("dangerous");
    let more = dangerous.into_iter().chain(dumps(command).then_some("dump"));
    in_order(access.into_iter().chain(family).chain(of_flags(command.flags)).chain(more).collect())
}

/// The categories of a subcommand.
pub(crate) fn of_subcommand(command: &Command, row: &Subcommand) -> impl Iterator<Item = &'static str> {
    in_order(of_flags(row.flags).chain([command.family.name()]).collect())
}

/// The categories that allow a command: those that `COMMAND INFO` shows, `ACL CAT` lists and `+@category`
/// grants. A dump command is only in one of them.
pub(crate) fn shown(command: &Command) -> impl Iterator<Item = &'static str> {
    let only_dump = dumps(command);
    of_command(command).filter(move |category| !only_dump || *category == "dump")
}

/// The commands that `+@category` allows.
pub(crate) fn commands(category: &'static str) -> impl Iterator<Item = &'static Command> {
    table::all().filter(move |command| shown(command).any(|one| one == category))
}

/// Sorts into the order of [`CATEGORIES`], as Redis lists them.
fn in_order(unordered: Vec<&'static str>) -> impl Iterator<Item = &'static str> {
    CATEGORIES.into_iter().filter(move |category| unordered.contains(category))
}

fn of_flags(flags: Flags) -> impl Iterator<Item = &'static str> {
    let admin: &[&'static str] = if flags.admin { &["admin", "dangerous"] } else { &[] };
    admin.iter().copied().chain([if flags.fast { "fast" } else { "slow" }])
}
