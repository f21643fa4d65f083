//! `CF.*`: RedisBloom's cuckoo filters, in its layout, so that dumps move both ways.
//!
//! | where | commands |
//! |---|---|
//! | `create` | `CF.RESERVE`, `CF.INSERT`, `CF.INSERTNX` |
//! | `items` | `CF.ADD`, `CF.ADDNX`, `CF.EXISTS`, `CF.MEXISTS`, `CF.COUNT`, `CF.DEL`, `CF.COMPACT` |
//! | `info` | `CF.INFO`, `CF.DEBUG` |
//! | `dump` | `CF.SCANDUMP`, `CF.LOADCHUNK` |
//!
//! * A filter grows by a sub-filter at the same item as in RedisBloom, unless `cf-eviction` is `thorough`.
//! * If both buckets of an item are the same bucket, `CF.COUNT` counts the item twice, as RedisBloom does. This happens in tiny
//!   filters.
//! * RedisBloom reads past the end of a request and looks for options in the key. We do neither. Writes that change nothing do not
//!   count as writes.

mod create;
mod dump;
mod info;
mod items;

pub(crate) use items::ask;

use crate::command::{Arity, Changes, Command, Family, Flags, Names};
use crate::names;
use crate::run::{Asks, Run};
use crate::traits::{AfterLoss, Cost, Reveals, Secrets, Traits, tips};

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
        traits: Traits { after_loss: AfterLoss::Creates, redis_bloom_fast: true, ..Traits::USUAL },
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
        traits: Traits::USUAL,
        run: Run::Change(items::add),
    },
    Command {
        name: "cf.addnx",
        arity: Arity::Exactly(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Adds an item to a Cuckoo Filter if the item did not exist previously",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k + i), where k is the number of sub-filters and i is maxIterations",
        traits: Traits::USUAL,
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
        traits: Traits { cost: Cost::ManyItems, ..Traits::USUAL },
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
        traits: Traits { cost: Cost::ManyItems, ..Traits::USUAL },
        run: Run::Change(create::insertnx),
    },
    Command {
        name: "cf.exists",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Checks whether an item exists in a Cuckoo Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k), where k is the number of sub-filters",
        traits: Traits::USUAL,
        run: Run::Ask(Asks::Cuckoo),
    },
    Command {
        name: names::CF_MEXISTS,
        arity: Arity::AtLeast(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Checks whether one or more items exist in a Cuckoo Filter",
        syntax: "key item [item ...]",
        since: "1.0.0",
        complexity: "O(k * n), where k is the number of sub-filters and n is the number of items",
        traits: Traits::USUAL,
        run: Run::Ask(Asks::Cuckoo),
    },
    Command {
        name: "cf.count",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Returns the number of times an item might be in a Cuckoo Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k), where k is the number of sub-filters",
        traits: Traits::USUAL,
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
        traits: Traits::USUAL,
        run: Run::Change(items::del),
    },
    Command {
        name: "cf.compact",
        arity: Arity::AtLeast(1),
        // RedisBloom declares it read-only although it moves items. The set of items stays the same.
        flags: Flags { changes: Changes::Values, ..Flags::READ },
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Moves items into the oldest sub-filters of a Cuckoo Filter and frees the empty ones",
        syntax: "key",
        since: "1.0.0",
        complexity: "O(n), where n is the capacity",
        traits: Traits::LARGE_VALUE,
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
        traits: Traits { redis_bloom_fast: true, tips: tips::NOT_CACHED, ..Traits::USUAL },
        run: Run::Look(info::info),
    },
    Command {
        name: "cf.debug",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Returns internal details of a Cuckoo Filter",
        syntax: "key",
        since: "1.0.0",
        complexity: "O(1)",
        traits: Traits { tips: tips::NOT_CACHED, ..Traits::LARGE_VALUE },
        run: Run::Look(info::debug),
    },
    Command {
        name: "cf.scandump",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Cuckoo,
        summary: "Begins an incremental save of a Cuckoo Filter",
        syntax: "key iterator",
        since: "1.0.0",
        complexity: "O(n), where n is the capacity",
        traits: Traits { reveals: Reveals::Bytes, tips: tips::NOT_CACHED, ..Traits::LONG_REPLY },
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
        traits: Traits {
            // The bytes of a filter contain its key.
            secrets: Secrets::At(3),
            after_loss: AfterLoss::Creates,
            ..Traits::USUAL
        },
        run: Run::Change(dump::loadchunk),
    },
];
