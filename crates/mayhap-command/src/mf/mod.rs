//! `MF.*`: every kind of filter of the library, with one grammar.
//!
//! * **Three answers.** 1: maybe. 0: certainly not. An error that begins with `NOTREADY`: the filter cannot answer. It is missing, is
//!   being loaded or built, or is of a static kind that was not built yet. Adding to a missing filter never creates it: a filter that
//!   was lost must not come back empty and answer *no* for every item.
//! * **Generations.** `MF.BUILD` and `MF.LOAD` make the next generation while the current one answers, and swap it in atomically.
//!   Items added to a key during a build go into the build as well.
//! * **Keyed.** Items are hashed with a random secret key unless `KEYLESS` or `KEY` is given. Clients that do not have the key cannot
//!   forge items that collide.
//!
//! ```text
//! Value::Filter ─▶ Holder ─┬─▶ Served ─┬─▶ Body    the filter, or the first few items of a small one
//!                          │           └─▶ Recipe  how to make it; shared by all filters that are alike
//!                          └─▶ Side    the next generation, a dump that is being read
//! ```

mod aside;
mod body;
mod build;
mod change;
mod dump;
mod facts;
mod holder;
mod info;
mod items;
mod kind;
mod list;
mod load;
mod memo;
mod merge;
mod options;
mod plan;
mod recipe;
mod refused;
mod served;
mod stored_holder;
mod stored_list;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::stage;

pub use aside::{Aside, is_commit};
pub use dump::PIECE_BYTES;
pub use holder::{Facts, Holder};
pub use recipe::{Recipe, StaticKind, StaticRecipe};
pub use refused::{MayhapRefusal, NotReady};

pub(crate) use items::{add_alone, add_together, ask};

use crate::command::{Arity, Command, Family, Flags, Names};
use crate::names;
use crate::refusal::Refusal;
use crate::run::{Adds, Asks, Run, Slot};
use crate::touch::Touch;
use crate::traits::{AfterLoss, Cost, Reveals, Secrets, Touches, Traits};
use crate::value::Value;

/// Returns the holder in `value`, or `None` if the key does not exist.
fn holder_of(value: Option<&Value>) -> Result<Option<&Holder>, Refusal> {
    match value {
        None => Ok(None),
        Some(Value::Filter(holder)) => Ok(Some(holder)),
        Some(value) => Err(MayhapRefusal::WrongType { held: value.family() }.into()),
    }
}

/// Like [`holder_of`], but mutable.
fn holder_mut<'s>(slot: &'s mut Slot<'_>) -> Result<Option<&'s mut Holder>, Refusal> {
    match slot.get_mut() {
        None => Ok(None),
        Some(Value::Filter(holder)) => Ok(Some(holder)),
        Some(value) => Err(MayhapRefusal::WrongType { held: value.family() }.into()),
    }
}

/// Empties a key that has never had a generation that answers. If it was replacing lost data, the loss is recorded again.
fn give_up(slot: &mut Slot<'_>) {
    let lost = match slot.get() {
        Some(Value::Filter(holder)) => holder.lost(),
        _ => None,
    };
    match lost {
        Some(lost) => slot.put(Value::Lost(lost)),
        None => drop(slot.take()),
    }
}

/// The words after `MF.RESERVE key` and `MF.BUILD key BEGIN`.
macro_rules! options {
    ($($before:literal)?) => {
        concat!($($before,)? "[KIND kind] [CAPACITY n] [FPR p] [TIERS n,n,...] [GROWTH factor] [TIGHTENING ratio] \
            [WINDOW n | SECONDS s] [GENERATIONS n] [RANGE low high] [BITS n] [PROBES n] [MAX n] [MEMORY bytes] \
            [DELETES [n]] [GROWS] [STATIC] [KEYLESS [SEED n] | KEY hex] [EXPIRE seconds]")
    };
}

/// The version in which these commands appeared.
const SINCE: &str = "0.1.0";

/// The family's rows of the table.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "mf.reserve",
        arity: Arity::AtLeast(2),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Creates an empty filter; without KIND, of the kind that fits the options best",
        syntax: options!("key "),
        since: SINCE,
        complexity: "O(M), where M is the memory of the filter",
        traits: Traits {
            secrets: Secrets::After { word: "key", count: 1 },
            after_loss: AfterLoss::Creates,
            ..Traits::USUAL
        },
        run: Run::Change(change::reserve),
    },
    Command {
        name: "mf.add",
        arity: Arity::Exactly(3),
        flags: Flags { fast: true, ..Flags::WRITE },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Adds an item; returns 1 if it is certainly new, 0 if it may have been there before",
        syntax: "key item",
        since: SINCE,
        complexity: "O(1)",
        traits: Traits::USUAL,
        run: Run::Add(Adds::Mayhap),
    },
    Command {
        name: "mf.madd",
        arity: Arity::AtLeast(3),
        flags: Flags { fast: true, ..Flags::WRITE },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Adds items; returns one answer per item, like MF.ADD",
        syntax: "key item [item ...]",
        since: SINCE,
        complexity: "O(N), where N is the number of items",
        traits: Traits { cost: Cost::ManyItems, ..Traits::USUAL },
        run: Run::Add(Adds::Mayhap),
    },
    Command {
        name: "mf.insert",
        arity: Arity::AtLeast(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Adds items and creates the filter if it does not exist; returns one answer per item, like MF.ADD",
        syntax: concat!(options!("key [NOCREATE] "), " ITEMS item [item ...]"),
        since: SINCE,
        complexity: "O(N), where N is the number of items, and O(M) for a new filter, where M is its memory",
        traits: Traits {
            cost: Cost::ManyItems,
            secrets: Secrets::After { word: "key", count: 1 },
            ..Traits::USUAL
        },
        run: Run::Change(items::insert),
    },
    Command {
        name: "mf.exists",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Checks whether an item is in a filter: 1 maybe, 0 certainly not; error NOTREADY if the filter cannot answer",
        syntax: "key item",
        since: SINCE,
        complexity: "O(1)",
        traits: Traits::USUAL,
        run: Run::Ask(Asks::Mayhap),
    },
    Command {
        name: names::MF_MEXISTS,
        arity: Arity::AtLeast(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Checks whether items are in a filter; returns one answer per item, like MF.EXISTS",
        syntax: "key item [item ...]",
        since: SINCE,
        complexity: "O(N), where N is the number of items",
        traits: Traits::USUAL,
        run: Run::Ask(Asks::Mayhap),
    },
    Command {
        name: "mf.del",
        arity: Arity::Exactly(3),
        flags: Flags::WRITE_FAST,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Removes one copy of an item, in kinds that support it; remove only items that were added",
        syntax: "key item",
        since: SINCE,
        complexity: "O(1)",
        traits: Traits::USUAL,
        run: Run::Change(change::delete),
    },
    Command {
        name: "mf.count",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Returns the number of copies of an item, which may be too high, in kinds that count copies",
        syntax: "key item",
        since: SINCE,
        complexity: "O(1)",
        traits: Traits::USUAL,
        run: Run::Look(change::count),
    },
    Command {
        name: "mf.card",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Returns the number of items in a filter, by its own count",
        syntax: "key",
        since: SINCE,
        complexity: "O(1); O(M) for a bitmap, where M is its memory",
        traits: Traits::LARGE_VALUE,
        run: Run::Look(change::card),
    },
    Command {
        name: "mf.clear",
        arity: Arity::Exactly(2),
        flags: Flags { fast: false, ..Flags::WRITE_FAST },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Removes all items; the filter and its secret key stay",
        syntax: "key",
        since: SINCE,
        complexity: "O(M), where M is the memory of the filter",
        traits: Traits::LARGE_VALUE,
        run: Run::Change(change::clear),
    },
    Command {
        name: names::MF_INFO,
        arity: Arity::AtLeast(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Returns a filter's kind, fill, memory and false-positive rate, and whether the rate is above the target; works for a filter that is not ready",
        syntax: "key [field]",
        since: SINCE,
        complexity: "O(M), where M is its memory, at most 16 MiB of it: a larger one is sampled",
        traits: Traits::LARGE_VALUE,
        run: Run::Look(info::info),
    },
    Command {
        name: "mf.merge",
        arity: Arity::AtLeast(3),
        flags: Flags::WRITE,
        names: Names::ALL,
        family: Family::Mayhap,
        summary: "Adds the items of the source filters to the target, which is created if it does not exist; all must have the same shape and secret key",
        syntax: "target source [source ...]",
        since: SINCE,
        complexity: "O(M * N), where M is the memory of the filter and N is the number of sources",
        traits: Traits { touches: Touches::FirstAndRest(Touch::Write, Touch::Read), ..Traits::LONG },
        run: Run::Gather(merge::merge),
    },
    Command {
        name: "mf.plan",
        arity: Arity::AtLeast(3),
        flags: Flags::NEITHER,
        names: Names::NONE,
        family: Family::Mayhap,
        summary: "Recommends a kind for a capacity and a false-positive rate (or CAPACITY n FPR p): returns the reasons, the MF.RESERVE line and the cost of every kind",
        syntax: "capacity fpr [RANGE low high] [PROBES n] [MEMORY bytes] [DELETES [n]] [GROWS] [STATIC] [KEYLESS]",
        since: SINCE,
        complexity: "O(1)",
        traits: Traits::USUAL,
        run: Run::Look(plan::plan),
    },
    Command {
        name: "mf.explain",
        arity: Arity::Exactly(3),
        flags: Flags { fast: false, ..Flags::READ },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Explains in words why a filter gives its answer for an item",
        syntax: "key item",
        since: SINCE,
        complexity: "O(1)",
        traits: Traits { reveals: Reveals::Key, ..Traits::LARGE_VALUE },
        run: Run::Change(change::explain),
    },
    Command {
        name: "mf.dump",
        arity: Arity::Exactly(3),
        flags: Flags { fast: false, deny_oom: true, ..Flags::READ },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Reads a filter as the bytes of a .mayhap file, in pieces; start with iterator 0 and stop when the returned iterator is 0",
        syntax: "key iterator",
        since: SINCE,
        complexity: "O(M) for iterator 0, where M is the memory of the filter; O(1) for the others",
        traits: Traits { reveals: Reveals::Key, ..Traits::LONG_REPLY },
        run: Run::Change(dump::dump),
    },
    Command {
        name: "mf.load",
        arity: Arity::Exactly(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Loads a .mayhap file from pieces, in order, each with the iterator that was passed to MF.DUMP; returns the number of bytes still missing; the filter answers after the last piece",
        syntax: "key iterator data",
        since: SINCE,
        complexity: "O(M) for the last piece, where M is the memory of the filter; O(N) for the others, where N is their length",
        traits: Traits {
            // The bytes of a filter contain its key.
            secrets: Secrets::At(3),
            after_loss: AfterLoss::Creates,
            ..Traits::LONG
        },
        run: Run::Change(load::load),
    },
    Command {
        name: names::MF_BUILD,
        arity: Arity::AtLeast(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Builds the next generation of a filter while the current one answers; items added to the key go into both; COMMIT swaps the new one in and returns its number",
        syntax: options!(
            "key BEGIN | ADD item [item ...] | COMMIT | ABORT | INFO; BEGIN takes the options of MF.RESERVE; with none, the new filter is like the current one: "
        ),
        since: SINCE,
        complexity: "O(N), where N is the number of items added; COMMIT is O(1), or O(N) for static kinds",
        traits: Traits {
            secrets: Secrets::After { word: "key", count: 1 },
            after_loss: AfterLoss::Creates,
            ..Traits::LONG
        },
        run: Run::Change(build::build),
    },
];
