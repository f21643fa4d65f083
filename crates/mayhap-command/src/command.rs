//! One row of the table of commands.

use crate::run::Run;
use crate::server::Subcommand;
use crate::traits::{Reveals, Traits};

/// A command: everything that a client, a module host or a reader of the manual needs before it runs.
#[derive(Debug)]
pub struct Command {
    /// In lower case, as `COMMAND` shows it.
    pub name: &'static str,
    /// The number of words of a request.
    pub arity: Arity,
    /// Its flags.
    pub flags: Flags,
    /// The positions of its keys.
    pub names: Names,
    /// The family it belongs to.
    pub family: Family,
    /// One line of help.
    pub summary: &'static str,
    /// The words after the name, as the manual writes them.
    pub syntax: &'static str,
    /// The version of Redis, RedisBloom or mayhap in which the command first appeared.
    pub since: &'static str,
    /// Its time complexity.
    pub complexity: &'static str,
    /// All other facts that server, engine and module need before it runs.
    pub traits: Traits,
    /// The code that runs it.
    pub run: Run,
}

impl Command {
    /// Returns whether it can change a value. If so, its reply waits for the log, `CLIENT PAUSE WRITE` delays it, and users need
    /// permission to write.
    #[must_use]
    pub const fn changes(&self) -> bool {
        matches!(self.flags.changes, Changes::Values)
    }

    /// Returns whether it can change a value, or run a queued request that does.
    #[must_use]
    pub const fn may_change(&self) -> bool {
        !matches!(self.flags.changes, Changes::Nothing)
    }

    /// Returns whether it reveals a filter's secret key, or where the key places items. If so, no general category allows it:
    /// neither `@read` nor its family's.
    #[must_use]
    pub const fn tells_key(&self) -> bool {
        matches!(self.traits.reveals, Reveals::Key)
    }

    /// Returns the subcommand with this name, in upper or lower case.
    #[must_use]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Subcommand> {
        self.traits.subcommands.iter().find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns its ACL categories in a module, without `@`. RedisBloom's commands have the categories that RedisBloom declares: only few
    /// of its fast commands are in `@fast`. RedisBloom flags `CF.COMPACT` read-only; we require permission to write.
    #[must_use]
    pub fn categories(&self) -> Vec<&'static str> {
        if self.tells_key() {
            return vec!["dump"];
        }
        let mut categories = Vec::new();
        match self.flags.declared {
            _ if self.changes() => categories.push("write"),
            Access::Read => categories.push("read"),
            Access::Write | Access::Neither => {}
        }
        match self.family {
            Family::Bloom | Family::Cuckoo if self.traits.redis_bloom_fast => categories.push("fast"),
            Family::Bloom | Family::Cuckoo => {}
            _ => categories.push(if self.flags.fast { "fast" } else { "slow" }),
        }
        if self.flags.admin {
            categories.push("admin");
        }
        categories.push(self.family.name());
        categories
    }
}

/// The number of words of a request, including the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly this many.
    Exactly(usize),
    /// This many or more.
    AtLeast(usize),
}

impl Arity {
    /// Returns whether a request of `words` words has the right length.
    #[must_use]
    pub const fn admits(self, words: usize) -> bool {
        match self {
            Self::Exactly(exactly) => words == exactly,
            Self::AtLeast(least) => words >= least,
        }
    }

    /// As `COMMAND` shows it: negative means *at least*.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Exactly(exactly) => exactly as i64,
            Self::AtLeast(least) => -(least as i64),
        }
    }
}

/// Whether a command reads or writes, as `COMMAND` declares it to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `readonly`.
    Read,
    /// `write`.
    Write,
    /// Neither: it accesses no key.
    Neither,
}

/// What a command can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing.
    Nothing,
    /// The values of keys, and whether they exist.
    Values,
    /// The values that the queued requests change.
    WhatIsQueued,
}

/// The flags of a command, as `COMMAND` names them, and its possible changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// `readonly` or `write`, only for `COMMAND` and for modules. A command that is declared read-only may still change values.
    pub declared: Access,
    /// The values it can change. All code that protects changes uses this field.
    pub changes: Changes,
    /// `denyoom`: refused when the memory limit is reached.
    pub deny_oom: bool,
    /// `fast`: takes constant time, or time proportional to the number of items.
    pub fast: bool,
    /// `admin`: for administrators.
    pub admin: bool,
}

impl Flags {
    /// Reads, and is fast.
    pub const READ: Self =
        Self { declared: Access::Read, changes: Changes::Nothing, deny_oom: false, fast: true, admin: false };
    /// Writes, and may need memory.
    pub const WRITE: Self =
        Self { declared: Access::Write, changes: Changes::Values, deny_oom: true, fast: false, admin: false };
    /// Writes, and needs no memory.
    pub const WRITE_FAST: Self = Self { deny_oom: false, fast: true, ..Self::WRITE };
    /// Accesses no key.
    pub const NEITHER: Self = Self { declared: Access::Neither, ..Self::READ };
    /// Accesses no key, and is for administrators.
    pub const ADMIN: Self = Self { fast: false, admin: true, ..Self::NEITHER };
}

/// The positions of keys among the words of a request: first, last (negative counts from the end) and step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The position of the first key; 0 if there are no keys.
    pub first: usize,
    /// The position of the last key; -1 is the last word of the request.
    pub last: i64,
    /// The distance from one key to the next.
    pub step: usize,
}

impl Names {
    /// No keys.
    pub const NONE: Self = Self { first: 0, last: 0, step: 0 };
    /// One key, after the command.
    pub const ONE: Self = Self { first: 1, last: 1, step: 1 };
    /// Two keys, after the command.
    pub const TWO: Self = Self { first: 1, last: 2, step: 1 };
    /// All words after the command.
    pub const ALL: Self = Self { first: 1, last: -1, step: 1 };
}

/// A group of commands. Each family is also an ACL category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// `BF.*`, as in RedisBloom.
    Bloom,
    /// `CF.*`, as in RedisBloom.
    Cuckoo,
    /// `MF.*`, every kind of filter.
    Mayhap,
    /// `SETBIT` and the other commands on bitmaps and strings.
    Bitmap,
    /// Commands that work on any key: `DEL`, `EXPIRE`, …
    Keyspace,
    /// `HELLO`, `CLIENT`, `MULTI`, …
    Connection,
    /// `INFO`, `CONFIG`, …
    Server,
}

impl Family {
    /// As `ACL CAT` and the manual name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Cuckoo => "cuckoo",
            Self::Mayhap => "mayhap",
            Self::Bitmap => "bitmap",
            Self::Keyspace => "keyspace",
            Self::Connection => "connection",
            Self::Server => "server",
        }
    }
}
