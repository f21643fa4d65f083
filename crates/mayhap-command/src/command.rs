//! One row of the table of commands.

use crate::run::Run;

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
    /// The code that runs it.
    pub run: Run,
}

impl Command {
    /// Can it change a value? `CF.COMPACT` can, though RedisBloom declares it read-only.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.flags.access == Access::Write || self.name == "cf.compact"
    }

    /// The hints of `COMMAND INFO`.
    #[must_use]
    pub fn tips(&self) -> &'static [&'static str] {
        match self.name {
            "bf.info" | "bf.debug" | "bf.scandump" | "cf.info" | "cf.debug" | "cf.scandump" => {
                &["dont_cache"]
            }
            _ => &[],
        }
    }

    /// Does it reveal a filter's secret key, or where the key places items? If so, no general category allows it: neither `@read` nor
    /// its family's.
    #[must_use]
    pub fn tells_key(&self) -> bool {
        matches!(self.name, "mf.dump" | "mf.explain")
    }

    /// Its ACL categories, without `@`. For RedisBloom's commands they are those that RedisBloom declares, which puts only few of its
    /// fast commands into `@fast`. RedisBloom flags `CF.COMPACT` read-only; we require permission to write.
    #[must_use]
    pub fn categories(&self) -> Vec<&'static str> {
        if self.tells_key() {
            return vec!["dump"];
        }
        let mut categories = Vec::new();
        match self.flags.access {
            _ if self.changes() => categories.push("write"),
            Access::Read => categories.push("read"),
            Access::Write | Access::Neither => {}
        }
        let of_redis_bloom = matches!(self.family, Family::Bloom | Family::Cuckoo);
        match self.name {
            "bf.reserve" | "bf.card" | "bf.info" | "cf.reserve" | "cf.info" => categories.push("fast"),
            _ if of_redis_bloom => {}
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

/// Whether a command reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `readonly`.
    Read,
    /// `write`.
    Write,
    /// Neither: it accesses no key.
    Neither,
}

/// The flags of a command, in the terms of `COMMAND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// `readonly` or `write`.
    pub access: Access,
    /// `denyoom`: refused when the memory limit is reached.
    pub deny_oom: bool,
    /// `fast`: takes constant time, or time proportional to the number of items.
    pub fast: bool,
    /// `admin`: for administrators.
    pub admin: bool,
}

impl Flags {
    /// Reads, and is fast.
    pub const READ: Self = Self { access: Access::Read, deny_oom: false, fast: true, admin: false };
    /// Writes, and may need memory.
    pub const WRITE: Self = Self { access: Access::Write, deny_oom: true, fast: false, admin: false };
    /// Writes, and needs no memory.
    pub const WRITE_FAST: Self = Self { access: Access::Write, deny_oom: false, fast: true, admin: false };
    /// Accesses no key.
    pub const NEITHER: Self = Self { access: Access::Neither, deny_oom: false, fast: true, admin: false };
    /// Accesses no key, and is for administrators.
    pub const ADMIN: Self = Self { access: Access::Neither, deny_oom: false, fast: false, admin: true };
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
