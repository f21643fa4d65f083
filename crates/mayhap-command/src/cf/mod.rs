//! `CF.*`: cuckoo filters as RedisBloom has them, in its layout, so that dumps move both ways.
//!
//! | where | commands |
//! |---|---|
//! | `create` | `CF.RESERVE`, `CF.INSERT`, `CF.INSERTNX` |
//! | `items` | `CF.ADD`, `CF.ADDNX`, `CF.EXISTS`, `CF.MEXISTS`, `CF.COUNT`, `CF.DEL`, `CF.COMPACT` |
//! | `info` | `CF.INFO`, `CF.DEBUG` |
//! | `dump` | `CF.SCANDUMP`, `CF.LOADCHUNK` |
//!
//! * Sub-filters come as RedisBloom's do, at the same items, unless `cf-eviction` is `thorough`.
//! * `CF.COUNT` counts an item twice whose two buckets are one, as RedisBloom does: in tiny filters.
//! * Where RedisBloom reads past the end of a request, or looks for options in the name of the filter, we do not. Writes that change
//!   nothing are not counted as writes.

mod create;
mod dump;
mod info;
mod items;

pub(crate) use items::ask;

use crate::command::{Arity, Command, Family, Flags, Names};
use crate::run::{Batch, Run};

/// The family's rows of the table.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "cf.reserve",
        arity: Arity::AtLeast(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Creates a new Cuckoo Filter",
        syntax: "key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] [EXPANSION expansion]",
        since: "1.0.0",
        complexity: "O(1)",
        run: Run::Change(create::reserve),
    },
    Command {
        name: "cf.add",
        arity: Arity::Exactly(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Adds an item to a Cuckoo Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k + i), where k is the number of sub-filters and i is maxIterations",
        run: Run::Change(items::add),
    },
    Command {
        name: "cf.addnx",
        arity: Arity::Exactly(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Adds an item to a Cuckoo Filter if the item did not exist previously.",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k + i), where k is the number of sub-filters and i is maxIterations",
        run: Run::Change(items::addnx),
    },
    Command {
        name: "cf.insert",
        arity: Arity::AtLeast(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Adds one or more items to a Cuckoo Filter. A filter will be created if it does not exist",
        syntax: "key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]",
        since: "1.0.0",
        complexity: "O(n * (k + i)), where n is the number of items, k is the number of sub-filters and i is maxIterations",
        run: Run::Change(create::insert),
    },
    Command {
        name: "cf.insertnx",
        arity: Arity::AtLeast(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Adds one or more items to a Cuckoo Filter if the items did not exist previously. A filter will be created if it does not exist",
        syntax: "key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]",
        since: "1.0.0",
        complexity: "O(n * (k + i)), where n is the number of items, k is the number of sub-filters and i is maxIterations",
        run: Run::Change(create::insertnx),
    },
    Command {
        name: "cf.exists",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Checks whether one or more items exist in a Cuckoo Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k), where k is the number of sub-filters",
        run: Run::Items(Batch::CuckooAsk),
    },
    Command {
        name: "cf.mexists",
        arity: Arity::AtLeast(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Checks whether one or more items exist in a Cuckoo Filter",
        syntax: "key item [item ...]",
        since: "1.0.0",
        complexity: "O(k * n), where k is the number of sub-filters and n is the number of items",
        run: Run::Items(Batch::CuckooAsk),
    },
    Command {
        name: "cf.count",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Return the number of times an item might be in a Cuckoo Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k), where k is the number of sub-filters",
        run: Run::Look(items::count),
    },
    Command {
        name: "cf.del",
        arity: Arity::Exactly(3),
        flags: Flags::WRITE_FAST,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Deletes an item from a Cuckoo Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k), where k is the number of sub-filters",
        run: Run::Change(items::del),
    },
    Command {
        name: "cf.compact",
        arity: Arity::AtLeast(1),
        // RedisBloom says so, though it moves items; what is in the filter stays the same.
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Moves items into the oldest sub-filters of a Cuckoo Filter and gives empty ones back",
        syntax: "key",
        since: "1.0.0",
        complexity: "O(n), where n is the capacity",
        run: Run::Change(items::compact),
    },
    Command {
        name: "cf.info",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Returns information about a Cuckoo Filter",
        syntax: "key",
        since: "1.0.0",
        complexity: "O(1)",
        run: Run::Look(info::info),
    },
    Command {
        name: "cf.debug",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Returns the measurements of a Cuckoo Filter",
        syntax: "key",
        since: "1.0.0",
        complexity: "O(1)",
        run: Run::Look(info::debug),
    },
    Command {
        name: "cf.scandump",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Begins an incremental save of the bloom filter",
        syntax: "key iterator",
        since: "1.0.0",
        complexity: "O(n), where n is the capacity",
        run: Run::Look(dump::scandump),
    },
    Command {
        name: "cf.loadchunk",
        arity: Arity::Exactly(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Restores a filter previously saved using SCANDUMP",
        syntax: "key iterator data",
        since: "1.0.0",
        complexity: "O(n), where n is the capacity",
        run: Run::Change(dump::loadchunk),
    },
];
