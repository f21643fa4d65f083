//! `BF.*`: RedisBloom's Bloom filters, in its layout, so that dumps move both ways.
//!
//! | where | commands |
//! |---|---|
//! | `create` | `BF.RESERVE`, `BF.INSERT` |
//! | `items` | `BF.ADD`, `BF.MADD`, `BF.EXISTS`, `BF.MEXISTS` |
//! | `info` | `BF.INFO`, `BF.CARD`, `BF.DEBUG` |
//! | `dump` | `BF.SCANDUMP`, `BF.LOADCHUNK` |
//!
//! RedisBloom reads past the end of a request and looks for options in the key. We do neither: an option without a value is refused,
//! and a filter may be called `nonscaling`. Writes that change nothing do not count as writes.

mod create;
mod dump;
mod info;
mod items;

pub(crate) use create::{insert_alone, insert_together, inserted_items};
pub(crate) use items::{add_alone, add_together, ask};

use crate::command::{Arity, Command, Family, Flags, Names};
use crate::names;
use crate::run::{Adds, Asks, Run};
use crate::traits::{AfterLoss, Cost, Reveals, Secrets, Traits, tips};

/// The family's rows of the table.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "bf.reserve",
        arity: Arity::AtLeast(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Creates a new Bloom Filter",
        syntax: "key error_rate capacity [EXPANSION expansion] [NONSCALING]",
        since: "1.0.0",
        complexity: "O(1)",
        traits: Traits { after_loss: AfterLoss::Creates, redis_bloom_fast: true, ..Traits::USUAL },
        run: Run::Change(create::reserve),
    },
    Command {
        name: "bf.add",
        arity: Arity::Exactly(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Adds an item to a Bloom Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k), where k is the number of hash functions used by the last sub-filter",
        traits: Traits::USUAL,
        run: Run::Add(Adds::Bloom),
    },
    Command {
        name: "bf.madd",
        arity: Arity::AtLeast(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Adds one or more items to a Bloom Filter. A filter will be created if it does not exist",
        syntax: "key item [item ...]",
        since: "1.0.0",
        complexity: "O(k * n), where k is the number of hash functions and n is the number of items",
        traits: Traits { cost: Cost::ManyItems, ..Traits::USUAL },
        run: Run::Add(Adds::Bloom),
    },
    Command {
        name: "bf.insert",
        arity: Arity::AtLeast(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Adds one or more items to a Bloom Filter. A filter will be created if it does not exist",
        syntax: "key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] \
                 [TIGHTENING ratio] [VALIDATESCALETO capacity] ITEMS item [item ...]",
        since: "1.0.0",
        complexity: "O(k * n), where k is the number of hash functions and n is the number of items",
        traits: Traits { cost: Cost::ManyItems, ..Traits::USUAL },
        run: Run::Add(Adds::BloomInsert),
    },
    Command {
        name: "bf.exists",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Checks whether an item exists in a Bloom Filter",
        syntax: "key item",
        since: "1.0.0",
        complexity: "O(k), where k is the number of hash functions used by the last sub-filter",
        traits: Traits::USUAL,
        run: Run::Ask(Asks::Bloom),
    },
    Command {
        name: names::BF_MEXISTS,
        arity: Arity::AtLeast(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Checks whether one or more items exist in a Bloom Filter",
        syntax: "key item [item ...]",
        since: "1.0.0",
        complexity: "O(k * n), where k is the number of hash functions and n is the number of items",
        traits: Traits::USUAL,
        run: Run::Ask(Asks::Bloom),
    },
    Command {
        name: "bf.card",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Returns the cardinality of a Bloom filter",
        syntax: "key",
        since: "2.4.4",
        complexity: "O(1)",
        traits: Traits { redis_bloom_fast: true, ..Traits::USUAL },
        run: Run::Look(info::card),
    },
    Command {
        name: "bf.info",
        arity: Arity::AtLeast(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Returns information about a Bloom Filter",
        syntax: "key [CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION]",
        since: "1.0.0",
        complexity: "O(1)",
        traits: Traits { redis_bloom_fast: true, tips: tips::NOT_CACHED, ..Traits::USUAL },
        run: Run::Look(info::info),
    },
    Command {
        name: "bf.debug",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Returns internal details of every sub-filter of a Bloom Filter",
        syntax: "key",
        since: "1.0.0",
        complexity: "O(n), where n is the number of sub-filters",
        traits: Traits { tips: tips::NOT_CACHED, ..Traits::LARGE_VALUE },
        run: Run::Look(info::debug),
    },
    Command {
        name: "bf.scandump",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bloom,
        summary: "Begins an incremental save of a Bloom Filter",
        syntax: "key iterator",
        since: "1.0.0",
        complexity: "O(n), where n is the capacity",
        traits: Traits { reveals: Reveals::Bytes, tips: tips::NOT_CACHED, ..Traits::LONG_REPLY },
        run: Run::Change(dump::scandump),
    },
    Command {
        name: "bf.loadchunk",
        arity: Arity::Exactly(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bloom,
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
