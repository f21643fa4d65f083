//! `MF.*`: every kind of the library, with one grammar.
//!
//! * **Three answers.** 1: mayhap. 0: certainly absent. An error that begins with `NOTREADY`: there is nothing that could answer; the
//!   filter is missing, being loaded, being built, or of a kind that is built of all its items at once and was not yet. No filter is ever
//!   made by adding to it: one that was lost must not come back empty and deny every item.
//! * **Generations.** `MF.BUILD` and `MF.LOAD` make the next one beside the one that serves and swap it in in one step.
//!   What is added to a name while it is built is in the build as well.
//! * **Keyed.** Items are hashed with a secret key unless `KEYLESS` or a `KEY` is asked for, so that non-members cannot forge items that
//!   collide.
//!
//! ```text
//! Value::Filter ─▶ Holder ─┬─▶ Served ─┬─▶ Body    the filter, or the first few items of a small one
//!                          │           └─▶ Recipe  what it is made from; shared by all that are alike
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
use crate::refusal::Refusal;
use crate::run::{Batch, Run, Slot};
use crate::value::Value;

/// The holder in `value`; nothing where there is nothing.
fn holder_of(value: Option<&Value>) -> Result<Option<&Holder>, Refusal> {
    match value {
        None => Ok(None),
        Some(Value::Filter(holder)) => Ok(Some(holder)),
        Some(value) => Err(MayhapRefusal::WrongType { held: value.family() }.into()),
    }
}

/// The same, to be changed.
fn holder_mut<'s>(slot: &'s mut Slot<'_>) -> Result<Option<&'s mut Holder>, Refusal> {
    match slot.get_mut() {
        None => Ok(None),
        Some(Value::Filter(holder)) => Ok(Some(holder)),
        Some(value) => Err(MayhapRefusal::WrongType { held: value.family() }.into()),
    }
}

/// Empties a name of which no generation ever served. If it was to replace what was lost, that is lost again.
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

/// The words behind `MF.RESERVE name` and `MF.BUILD name BEGIN`.
macro_rules! options {
    ($($before:literal)?) => {
        concat!($($before,)? "[KIND kind] [CAPACITY n] [FPR p] [TIERS n,n,...] [GROWTH factor] [TIGHTENING ratio] \
            [WINDOW n | SECONDS s] [GENERATIONS n] [RANGE low high] [BITS n] [PROBES n] [MAX n] [MEMORY bytes] \
            [DELETES [n]] [GROWS] [STATIC] [KEYLESS [SEED n] | KEY hex] [EXPIRE seconds]")
    };
}

/// The version these commands appeared in.
const SINCE: &str = "0.1.0";

/// The family's rows of the table.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "mf.reserve",
        arity: Arity::AtLeast(2),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Makes an empty filter of any kind; without KIND of the one that fits best what is asked for",
        syntax: options!("name "),
        since: SINCE,
        complexity: "O(M), where M is the memory of the filter",
        run: Run::Change(change::reserve),
    },
    Command {
        name: "mf.add",
        arity: Arity::Exactly(3),
        flags: Flags { fast: true, ..Flags::WRITE },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Adds an item; 1 if it is certainly new, 0 if mayhap it was there",
        syntax: "name item",
        since: SINCE,
        complexity: "O(1)",
        run: Run::Items(Batch::MayhapAdd),
    },
    Command {
        name: "mf.madd",
        arity: Arity::AtLeast(3),
        flags: Flags { fast: true, ..Flags::WRITE },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Adds items; an answer for each, as MF.ADD has it",
        syntax: "name item [item ...]",
        since: SINCE,
        complexity: "O(N), where N is the number of items",
        run: Run::Items(Batch::MayhapAdd),
    },
    Command {
        name: "mf.insert",
        arity: Arity::AtLeast(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Adds items, to a new filter if there is none of this name; an answer for each, as MF.ADD has it",
        syntax: concat!(options!("name [NOCREATE] "), " ITEMS item [item ...]"),
        since: SINCE,
        complexity: "O(N), where N is the number of items, and O(M) for a new filter, where M is its memory",
        run: Run::Change(items::insert),
    },
    Command {
        name: "mf.exists",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Asks about an item: 1 mayhap, 0 certainly absent, NOTREADY if there is nothing to ask",
        syntax: "name item",
        since: SINCE,
        complexity: "O(1)",
        run: Run::Items(Batch::MayhapAsk),
    },
    Command {
        name: "mf.mexists",
        arity: Arity::AtLeast(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Asks about items; an answer for each, as MF.EXISTS has it",
        syntax: "name item [item ...]",
        since: SINCE,
        complexity: "O(N), where N is the number of items",
        run: Run::Items(Batch::MayhapAsk),
    },
    Command {
        name: "mf.del",
        arity: Arity::Exactly(3),
        flags: Flags::WRITE_FAST,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Takes one copy of an item out, of kinds that can; only for items that were added",
        syntax: "name item",
        since: SINCE,
        complexity: "O(1)",
        run: Run::Change(change::delete),
    },
    Command {
        name: "mf.count",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Says how many copies of an item are in, mayhap too many, of kinds that count them",
        syntax: "name item",
        since: SINCE,
        complexity: "O(1)",
        run: Run::Look(change::count),
    },
    Command {
        name: "mf.card",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Says how many items are in, by the filter's own count",
        syntax: "name",
        since: SINCE,
        complexity: "O(1); O(M) for a bitmap, where M is its memory",
        run: Run::Look(change::card),
    },
    Command {
        name: "mf.clear",
        arity: Arity::Exactly(2),
        flags: Flags { fast: false, ..Flags::WRITE_FAST },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Forgets every item; the filter stays, with its key",
        syntax: "name",
        since: SINCE,
        complexity: "O(M), where M is the memory of the filter",
        run: Run::Change(change::clear),
    },
    Command {
        name: "mf.info",
        arity: Arity::AtLeast(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Says what a filter is, how full by its bits, how large, how often wrong and whether that is more than promised, also of one that is not ready",
        syntax: "name [field]",
        since: SINCE,
        complexity: "O(M), where M is its memory, at most 16 MiB of it: a larger one is sampled",
        run: Run::Look(info::info),
    },
    Command {
        name: "mf.merge",
        arity: Arity::AtLeast(3),
        flags: Flags::WRITE,
        names: Names::ALL,
        family: Family::Mayhap,
        summary: "Adds all that the sources hold to the target, which is made if it is not there; all of one shape and key",
        syntax: "target source [source ...]",
        since: SINCE,
        complexity: "O(M * N), where M is the memory of the filter and N is the number of sources",
        run: Run::Gather(merge::merge),
    },
    Command {
        name: "mf.plan",
        arity: Arity::AtLeast(3),
        flags: Flags::NEITHER,
        names: Names::NONE,
        family: Family::Mayhap,
        summary: "Advises a kind for so many items at such a rate (CAPACITY n FPR p says the same), with the reasons, the MF.RESERVE line and what every kind costs",
        syntax: "capacity fpr [RANGE low high] [PROBES n] [MEMORY bytes] [DELETES [n]] [GROWS] [STATIC] [KEYLESS]",
        since: SINCE,
        complexity: "O(1)",
        run: Run::Look(plan::plan),
    },
    Command {
        name: "mf.explain",
        arity: Arity::Exactly(3),
        flags: Flags { fast: false, ..Flags::READ },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Says in words why the answer for an item is what it is",
        syntax: "name item",
        since: SINCE,
        complexity: "O(1)",
        run: Run::Change(change::explain),
    },
    Command {
        name: "mf.dump",
        arity: Arity::Exactly(3),
        flags: Flags { fast: false, deny_oom: true, ..Flags::READ },
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Reads a filter as the bytes of a .mayhap file, piece by piece from iterator 0 on, until the next iterator is 0",
        syntax: "name iterator",
        since: SINCE,
        complexity: "O(M) for iterator 0, where M is the memory of the filter; O(1) for the others",
        run: Run::Change(dump::dump),
    },
    Command {
        name: "mf.load",
        arity: Arity::Exactly(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Takes the pieces of a .mayhap file in order, each with the iterator MF.DUMP was asked with, and serves it after the last; answers the bytes still missing",
        syntax: "name iterator data",
        since: SINCE,
        complexity: "O(M) for the last piece, where M is the memory of the filter; O(N) for the others, where N is their length",
        run: Run::Change(load::load),
    },
    Command {
        name: "mf.build",
        arity: Arity::AtLeast(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Mayhap,
        summary: "Builds the next generation beside the one that serves, with all that is added to the name meanwhile, and swaps it in with COMMIT, which answers its number",
        syntax: options!(
            "name BEGIN | ADD item [item ...] | COMMIT | ABORT | INFO; BEGIN takes the options of MF.RESERVE, and none for a filter like the one that serves: "
        ),
        since: SINCE,
        complexity: "O(N), where N is the number of items added; COMMIT is O(1), or O(N) for kinds that are built of all items at once",
        run: Run::Change(build::build),
    },
];
