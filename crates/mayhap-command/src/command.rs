//! One row of the table of commands.

use crate::run::Run;

/// A command: everything a client, a module host or a reader of the manual wants to know of it before it runs.
#[derive(Debug)]
pub struct Command {
    /// In lower case, as `COMMAND` shows it.
    pub name: &'static str,
    /// How many words a request has.
    pub arity: Arity,
    /// What it may do.
    pub flags: Flags,
    /// Where the names stand among its words.
    pub names: Names,
    /// Which family it belongs to.
    pub family: Family,
    /// One line of help.
    pub summary: &'static str,
    /// The words behind the name, as the manual writes them.
    pub syntax: &'static str,
    /// The version of the command's first appearance where it comes from.
    pub since: &'static str,
    /// What it costs.
    pub complexity: &'static str,
    /// What it does.
    pub run: Run,
}

impl Command {
    /// May it change what a name holds? `CF.COMPACT` does, though RedisBloom calls it a reader.
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

    /// Does it tell a filter's secret key, or where the key puts items? Then no general right allows it: not that to read, nor that to the
    /// family.
    #[must_use]
    pub fn tells_key(&self) -> bool {
        matches!(self.name, "mf.dump" | "mf.explain")
    }

    /// The categories of the access rules it belongs to, without their `@`. Those of RedisBloom's commands are said one by one there, and only few
    /// of its fast commands are among the fast. `CF.COMPACT`, which is a reader there, is none for who may only read.
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

/// How many words a request has, the command's own included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Just so many.
    Exactly(usize),
    /// So many or more.
    AtLeast(usize),
}

impl Arity {
    /// Does a request of `words` words fit?
    #[must_use]
    pub const fn admits(self, words: usize) -> bool {
        match self {
            Self::Exactly(exactly) => words == exactly,
            Self::AtLeast(least) => words >= least,
        }
    }

    /// As `COMMAND` shows it: negative for *at least*.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Exactly(exactly) => exactly as i64,
            Self::AtLeast(least) => -(least as i64),
        }
    }
}

/// Does it change what it touches?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `readonly`.
    Read,
    /// `write`.
    Write,
    /// Neither: it touches no filter.
    Neither,
}

/// What a command may do, in the words of `COMMAND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// `readonly` or `write`.
    pub access: Access,
    /// `denyoom`: refused when the memory limit is reached.
    pub deny_oom: bool,
    /// `fast`: takes constant time, or grows only with the number of items.
    pub fast: bool,
    /// `admin`: not for everybody.
    pub admin: bool,
}

impl Flags {
    /// Looks, and is quick.
    pub const READ: Self = Self { access: Access::Read, deny_oom: false, fast: true, admin: false };
    /// Changes, and may take memory.
    pub const WRITE: Self = Self { access: Access::Write, deny_oom: true, fast: false, admin: false };
    /// Changes, and takes no memory.
    pub const WRITE_FAST: Self = Self { access: Access::Write, deny_oom: false, fast: true, admin: false };
    /// Touches no filter.
    pub const NEITHER: Self = Self { access: Access::Neither, deny_oom: false, fast: true, admin: false };
    /// Touches no filter, and is not for everybody.
    pub const ADMIN: Self = Self { access: Access::Neither, deny_oom: false, fast: false, admin: true };
}

/// Where names stand among the words of a request: the first, the last (negative: from the end), and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The word the first name is; 0: there are no names.
    pub first: usize,
    /// The word the last name is; -1 is the last word of the request.
    pub last: i64,
    /// Words from one name to the next.
    pub step: usize,
}

impl Names {
    /// No name at all.
    pub const NONE: Self = Self { first: 0, last: 0, step: 0 };
    /// One, behind the command.
    pub const ONE: Self = Self { first: 1, last: 1, step: 1 };
    /// Two, behind the command.
    pub const TWO: Self = Self { first: 1, last: 2, step: 1 };
    /// All words behind the command.
    pub const ALL: Self = Self { first: 1, last: -1, step: 1 };
}

/// Commands that belong together. They are also the categories of the access rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// `BF.*`, as in RedisBloom.
    Bloom,
    /// `CF.*`, as in RedisBloom.
    Cuckoo,
    /// `MF.*`, every kind there is.
    Mayhap,
    /// `SETBIT` and the other commands on strings of bits.
    Bitmap,
    /// What works on any name: `DEL`, `EXPIRE`, …
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
