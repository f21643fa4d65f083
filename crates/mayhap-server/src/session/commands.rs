//! `COMMAND`: the table of commands in the format of Redis.

use mayhap_command::server::{SessionRefusal, Subcommand};
use mayhap_command::syntax::{self, Argument, Kind};
use mayhap_command::{Access, Command, Family, Flags, Names, Refusal, Reply, Request, Run, table};

use super::{help, is, list, map};
use crate::users::category;

/// Runs `COMMAND [subcommand …]`. If there is a subcommand, it exists and the number of words is right.
pub(super) fn command(Request { command, words }: Request<'_>) -> Result<Reply, Refusal> {
    let Some(which) = words.get(1) else { return Ok(Reply::Array(table::all().map(entry).collect())) };
    let rest = &words[2..];
    match which.to_ascii_lowercase().as_slice() {
        b"count" => Ok(Reply::count(table::all().count() as u64)),
        b"info" if rest.is_empty() => Ok(Reply::Array(table::all().map(entry).collect())),
        b"info" => {
            Ok(Reply::Array(rest.iter().map(|name| find(name).map_or(Reply::Null, Found::entry)).collect()))
        }
        b"docs" if rest.is_empty() => {
            Ok(Reply::Map(table::all().map(|row| Found::Command(row).docs()).collect()))
        }
        b"docs" => Ok(Reply::Map(rest.iter().filter_map(|name| find(name)).map(Found::docs).collect())),
        b"list" => names(rest),
        b"getkeys" => {
            let (_, names) = keys(rest)?;
            Ok(list(names))
        }
        b"getkeysandflags" => {
            let (command, names) = keys(rest)?;
            let with_flags = |name: &[u8]| {
                Reply::Array(vec![Reply::bulk(name), Reply::Set(simple(access_words(command)))])
            };
            Ok(Reply::Array(names.into_iter().map(with_flags).collect()))
        }
        _ => Ok(help::of(command)),
    }
}

/// A command, or one of its subcommands.
#[derive(Clone, Copy)]
enum Found {
    Command(&'static Command),
    Subcommand(&'static Command, &'static Subcommand),
}

/// Finds a command by a name such as `client` or `client|list`.
fn find(name: &[u8]) -> Option<Found> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let command = table::find(parts.next()?)?;
    let Some(word) = parts.next() else { return Some(Found::Command(command)) };
    Some(Found::Subcommand(command, command.subcommand(word)?))
}

impl Found {
    fn entry(self) -> Reply {
        match self {
            Self::Command(command) => entry(command),
            Self::Subcommand(command, row) => sub_entry(command, row),
        }
    }

    /// The name and the entry in `COMMAND DOCS`.
    fn docs(self) -> (Reply, Reply) {
        let (name, summary, syntax, command) = match self {
            Self::Command(command) => (command.name.to_owned(), command.summary, command.syntax, command),
            Self::Subcommand(command, row) => (full_name(command, row), row.summary, row.syntax, command),
        };
        let mut pairs = vec![
            ("summary", Reply::bulk(summary)),
            ("since", Reply::bulk(command.since)),
            ("group", Reply::bulk(group(command.family))),
            ("complexity", Reply::bulk(command.complexity)),
        ];
        if let Self::Command(command) = self {
            let subcommands = command.traits.subcommands.iter();
            let docs: Vec<_> = subcommands.map(|row| Self::Subcommand(command, row).docs()).collect();
            if !docs.is_empty() {
                pairs.push(("subcommands", Reply::Map(docs)));
                return (Reply::bulk(name), named(pairs));
            }
        }
        let arguments = syntax::arguments(syntax);
        if !arguments.is_empty() {
            pairs.push(("arguments", arguments_docs(&arguments)));
        }
        (Reply::bulk(name), named(pairs))
    }
}

fn named(pairs: Vec<(&'static str, Reply)>) -> Reply {
    Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
}

/// The arguments of a command, with nested arguments.
fn arguments_docs(arguments: &[Argument]) -> Reply {
    let docs = |argument: &Argument| {
        let mut pairs =
            vec![("name", Reply::bulk(argument.name.as_str())), ("type", Reply::bulk(argument.kind.name()))];
        if argument.kind == Kind::Key {
            pairs.push(("key_spec_index", Reply::Integer(0)));
        }
        if let Some(token) = &argument.token {
            pairs.push(("token", Reply::bulk(token.as_str())));
        }
        let flags = [("optional", argument.optional), ("multiple", argument.multiple)];
        let flags: Vec<_> =
            flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| Reply::simple(flag)).collect();
        if !flags.is_empty() {
            pairs.push(("flags", Reply::Set(flags)));
        }
        if !argument.arguments.is_empty() {
            pairs.push(("arguments", arguments_docs(&argument.arguments)));
        }
        named(pairs)
    };
    Reply::Array(arguments.iter().map(docs).collect())
}

fn full_name(command: &Command, row: &Subcommand) -> String {
    format!("{}|{}", command.name, row.name)
}

const fn group(family: Family) -> &'static str {
    match family {
        Family::Bloom | Family::Cuckoo | Family::Mayhap => "module",
        Family::Keyspace => "generic",
        other => other.name(),
    }
}

/// The ten fields of a command in `COMMAND`.
fn entry(command: &'static Command) -> Reply {
    let subcommands = command.traits.subcommands.iter().map(|row| sub_entry(command, row)).collect();
    entry_of(
        command.name,
        command.arity.number(),
        flag_words(command),
        command,
        (category::shown(command).collect(), command.traits.tips),
        subcommands,
    )
}

fn sub_entry(command: &'static Command, row: &'static Subcommand) -> Reply {
    let flags = server_words(row.flags, false);
    let all = category::of_subcommand(command, row).collect();
    entry_of(&full_name(command, row), row.arity.number(), flags, command, (all, row.tips), Vec::new())
}

fn entry_of(
    name: &str,
    arity: i64,
    flags: Vec<&'static str>,
    command: &Command,
    (categories, tips): (Vec<&'static str>, &[&'static str]),
    subcommands: Vec<Reply>,
) -> Reply {
    let names = command.names;
    let categories = categories.into_iter().map(|category| Reply::Simple(format!("@{category}").into()));
    Reply::Array(vec![
        Reply::bulk(name),
        Reply::Integer(arity),
        Reply::Set(simple(flags)),
        Reply::count(names.first as u64),
        Reply::Integer(names.last),
        Reply::count(names.step as u64),
        Reply::Set(categories.collect()),
        Reply::Set(tips.iter().map(|tip| Reply::bulk(*tip)).collect()),
        Reply::Set(key_specs(command)),
        if subcommands.is_empty() { Reply::Set(subcommands) } else { Reply::Array(subcommands) },
    ])
}

fn simple(words: Vec<&'static str>) -> Vec<Reply> {
    words.into_iter().map(Reply::simple).collect()
}

/// The flags of `COMMAND`.
fn flag_words(command: &Command) -> Vec<&'static str> {
    let mut words = match command.flags.declared {
        Access::Read => vec!["readonly"],
        Access::Write => vec!["write"],
        Access::Neither => Vec::new(),
    };
    if command.flags.deny_oom {
        words.push("denyoom");
    }
    match command.run {
        Run::Server(_) => words.extend(server_words(command.flags, command.traits.needs_no_authentication)),
        _ if command.flags.fast => words.push("fast"),
        _ => {}
    }
    if matches!(command.family, Family::Bloom | Family::Cuckoo | Family::Mayhap) {
        words.push("module");
    }
    words
}

fn server_words(flags: Flags, needs_no_authentication: bool) -> Vec<&'static str> {
    let mut words = Vec::new();
    if flags.admin {
        words.push("admin");
    }
    words.extend(["noscript", "loading", "stale"]);
    if flags.fast {
        words.push("fast");
    }
    if needs_no_authentication {
        words.push("no_auth");
    }
    words
}

/// The flags that describe what happens to the names.
fn access_words(command: &Command) -> Vec<&'static str> {
    match command.flags.declared {
        _ if command.traits.deletes_keys => vec!["RM", "delete"],
        Access::Read | Access::Neither => vec!["RO", "access"],
        Access::Write => vec!["RW", "access", "update"],
    }
}

/// The key specifications: where the names are.
fn key_specs(command: &Command) -> Vec<Reply> {
    let Names { first, last, step } = command.names;
    if first == 0 {
        return Vec::new();
    }
    let first = i64::try_from(first).unwrap_or(i64::MAX);
    // Relative to the first one; negative: counted from the end.
    let last = if last >= 0 { last - first } else { last };
    vec![map([
        ("flags", Reply::Set(simple(access_words(command)))),
        (
            "begin_search",
            map([("type", Reply::bulk("index")), ("spec", map([("index", Reply::Integer(first))]))]),
        ),
        (
            "find_keys",
            map([
                ("type", Reply::bulk("range")),
                (
                    "spec",
                    map([
                        ("lastkey", Reply::Integer(last)),
                        ("keystep", Reply::count(step as u64)),
                        ("limit", Reply::Integer(0)),
                    ]),
                ),
            ]),
        ),
    ])]
}

/// Returns the names in a request, and its command.
fn keys<'a>(request: &[&'a [u8]]) -> Result<(&'static Command, Vec<&'a [u8]>), Refusal> {
    let command = request.first().and_then(|name| table::find(name)).ok_or(SessionRefusal::InvalidCommand)?;
    let Names { first, last, step } = command.names;
    if first == 0 {
        return Err(SessionRefusal::NoNames.into());
    }
    if !command.arity.admits(request.len()) {
        return Err(SessionRefusal::InvalidArguments.into());
    }
    let end = match usize::try_from(last) {
        Ok(last) => last + 1,
        Err(_) => {
            (request.len() + 1).saturating_sub(usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX))
        }
    };
    let end = end.min(request.len());
    Ok((command, request[first.min(end)..end].iter().step_by(step.max(1)).copied().collect()))
}

/// `COMMAND LIST [FILTERBY MODULE|ACLCAT|PATTERN value]`.
fn names(options: &[&[u8]]) -> Result<Reply, Refusal> {
    let all = table::all();
    match options {
        [] => Ok(list(all.map(|command| command.name))),
        [by, kind, value] if is(by, "filterby") => {
            let of_kind: Box<dyn Fn(&Command) -> bool + '_> = if is(kind, "module") {
                let bloom = is(value, "bf");
                Box::new(move |command| bloom && matches!(command.family, Family::Bloom | Family::Cuckoo))
            } else if is(kind, "aclcat") {
                Box::new(|command| category::shown(command).any(|category| is(value, category)))
            } else if is(kind, "pattern") {
                let pattern = mayhap_engine::glob::Pattern::new(value);
                Box::new(move |command| pattern.matches(command.name.as_bytes()))
            } else {
                return Err(Refusal::Syntax);
            };
            Ok(list(all.filter(|command| of_kind(command)).map(|command| command.name)))
        }
        _ => Err(Refusal::Syntax),
    }
}
