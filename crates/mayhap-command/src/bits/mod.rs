//! Bitmaps as in Redis 7.0: `SETBIT` and similar commands, and the basic commands on strings.
//!
//! Bit 0 is the highest bit of byte 0. A string has at most 512 MiB. A write past its end extends it and fills the gap with zeros.

mod bit;
mod field;
mod op;
mod refused;
mod string;
#[cfg(test)]
mod tests;
mod text;

pub use refused::BitsRefusal;
pub(crate) use text::check_length;
pub use text::{MAX_BYTES, Text};

use crate::command::{Arity, Command, Family, Flags, Names};
use crate::run::Run;
use crate::touch::Touch;
use crate::traits::{AfterLoss, Cost, Touches, Traits};

/// The ACL category of the commands that are about strings, not bits.
const STRING: Option<&str> = Some("string");

/// The family's rows of the table.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "setbit",
        arity: Arity::Exactly(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Sets or clears a bit of a string and returns its old value",
        syntax: "key offset value",
        since: "2.2.0",
        complexity: "O(1)",
        traits: Traits {
            cost: Cost::FarOffset { per_byte: 8 },
            // The reply is the old bit.
            touches: Touches::Each(Touch::ReadWrite),
            ..Traits::USUAL
        },
        run: Run::Change(bit::set),
    },
    Command {
        name: "getbit",
        arity: Arity::Exactly(3),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Returns a bit of a string",
        syntax: "key offset",
        since: "2.2.0",
        complexity: "O(1)",
        traits: Traits::USUAL,
        run: Run::Look(bit::get),
    },
    Command {
        name: "bitcount",
        arity: Arity::AtLeast(2),
        flags: Flags { fast: false, ..Flags::READ },
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Counts the set bits of a string or of a range of it",
        syntax: "key [start end [BYTE | BIT]]",
        since: "2.6.0",
        complexity: "O(N)",
        traits: Traits::LARGE_VALUE,
        run: Run::Look(bit::count),
    },
    Command {
        name: "bitpos",
        arity: Arity::AtLeast(3),
        flags: Flags { fast: false, ..Flags::READ },
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Finds the first set (1) or clear (0) bit of a string",
        syntax: "key bit [start [end [BYTE | BIT]]]",
        since: "2.8.7",
        complexity: "O(N)",
        traits: Traits::LARGE_VALUE,
        run: Run::Look(bit::position),
    },
    Command {
        name: "bitop",
        arity: Arity::AtLeast(4),
        flags: Flags::WRITE,
        names: Names { first: 2, last: -1, step: 1 },
        family: Family::Bitmap,
        summary: "Combines strings bit by bit and stores the result",
        syntax: "AND | OR | XOR | NOT destkey key [key ...]",
        since: "2.6.0",
        complexity: "O(N)",
        traits: Traits { touches: Touches::FirstAndRest(Touch::Write, Touch::Read), ..Traits::LONG },
        run: Run::Gather(op::operate),
    },
    Command {
        name: "bitfield",
        arity: Arity::AtLeast(2),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Reads and writes integers of any width at any bit offset of a string",
        syntax: "key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] SET encoding offset value | INCRBY encoding offset increment] ...",
        since: "3.2.0",
        complexity: "O(1) for each subcommand",
        traits: Traits {
            cost: Cost::FarOffset { per_byte: 8 },
            touches: Touches::If {
                words: &["set", "incrby"],
                from: 2,
                then: Touch::ReadWrite,
                otherwise: Touch::Read,
            },
            ..Traits::USUAL
        },
        run: Run::Change(field::change),
    },
    Command {
        name: "bitfield_ro",
        arity: Arity::AtLeast(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Reads integers of any width at any bit offset of a string",
        syntax: "key [GET encoding offset [GET encoding offset ...]]",
        since: "6.0.0",
        complexity: "O(1) for each subcommand",
        traits: Traits::USUAL,
        run: Run::Look(field::read),
    },
    Command {
        name: "get",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Returns the string value of a key",
        syntax: "key",
        since: "1.0.0",
        complexity: "O(N), where N is its length",
        traits: Traits { category: STRING, ..Traits::LONG_REPLY },
        run: Run::Look(string::get),
    },
    Command {
        name: "set",
        arity: Arity::AtLeast(3),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Sets a key to a string, whatever type of value it had before",
        syntax: "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        since: "1.0.0",
        complexity: "O(N), where N is its length",
        traits: Traits {
            touches: Touches::If {
                words: &["get"],
                from: 3,
                then: Touch::ReadWrite,
                otherwise: Touch::Write,
            },
            // The old value is unknown, so it cannot be returned.
            after_loss: AfterLoss::CreatesUnless { word: "get", from: 3 },
            category: STRING,
            ..Traits::LARGE_VALUE
        },
        run: Run::Change(string::set),
    },
    Command {
        name: "getdel",
        arity: Arity::Exactly(2),
        flags: Flags::WRITE_FAST,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Returns the string value of a key and deletes the key",
        syntax: "key",
        since: "6.2.0",
        complexity: "O(N), where N is its length",
        traits: Traits { touches: Touches::Each(Touch::ReadWrite), category: STRING, ..Traits::LONG_REPLY },
        run: Run::Change(string::get_and_delete),
    },
    Command {
        name: "strlen",
        arity: Arity::Exactly(2),
        flags: Flags::READ,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Returns the length of a string in bytes",
        syntax: "key",
        since: "2.2.0",
        complexity: "O(1)",
        traits: Traits { touches: Touches::Each(Touch::Notice), category: STRING, ..Traits::USUAL },
        run: Run::Look(string::length),
    },
    Command {
        name: "getrange",
        arity: Arity::Exactly(4),
        flags: Flags { fast: false, ..Flags::READ },
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Returns a part of a string",
        syntax: "key start end",
        since: "2.4.0",
        complexity: "O(N), where N is the length of the part",
        traits: Traits { category: STRING, ..Traits::LONG_REPLY },
        run: Run::Look(string::range),
    },
    Command {
        name: "setrange",
        arity: Arity::Exactly(4),
        flags: Flags::WRITE,
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Overwrites a part of a string, starting at a byte offset",
        syntax: "key offset value",
        since: "2.2.0",
        complexity: "O(N), where N is the length of the value",
        traits: Traits { cost: Cost::FarOffset { per_byte: 1 }, category: STRING, ..Traits::USUAL },
        run: Run::Change(string::set_range),
    },
    Command {
        name: "append",
        arity: Arity::Exactly(3),
        flags: Flags { fast: true, ..Flags::WRITE },
        names: Names::ONE,
        family: Family::Bitmap,
        summary: "Appends a value to a string; creates the key if it does not exist",
        syntax: "key value",
        since: "2.0.0",
        complexity: "O(N), where N is the length of the value",
        traits: Traits { category: STRING, ..Traits::LARGE_VALUE },
        run: Run::Change(string::append),
    },
];
