//! Binary fuse and xor filters of the FastFilter libraries: `xor_singleheader` (C), `xorfilter` (Go) and `xorf` (Rust).
//!
//! All of them place a number alike; only what stands in front of the slots differs. Everything is little-endian.
//!
//! ```text
//!         ┌──────┬──────┬────────┬──────────┬──────────┬─────────┬─────────┬────────┐
//! C       │ seed │ size │ length │          │ segments │ starts  │ slots   │ slots… │  16 bits: 4 bytes more, of no meaning
//! Go      │ seed │      │ length │ length-1 │ segments │ starts  │ slots   │ slots… │
//! xorf    │ seed │      │ length │ length-1 │          │ starts  │         │ slots… │
//!         │ 8    │ 4    │ 4      │ 4        │ 4        │ 4       │ 4       │        │
//!         ├──────┼──────┼────────┴──────────┴───┬──────┴─────────┴─────────┴────────┘
//! packed C│ seed │ size │ which slots are not 0 │ those slots…
//!         └──────┴──────┴───────────────────────┘
//! ```
//!
//! `length` is that of a segment, a power of two; `segments` are those an item may begin in, `starts` the slots in these, and there are two
//! segments more. Slots of 8, 16 or 32 bits are told apart by how many bytes there are.
//!
//! * The libraries know nothing but 64-bit numbers. A filter here takes items of 8 bytes for their number and any other item for the XXH3-64 of
//!   its bytes; read with [`ItemEncoding::U64Le`], `&str` items are numbers in digits. Whoever hashed text before it went into a
//!   library's filter does the same here and asks with the number.
//! * Nothing says how many items there are but C's `size`. Where it is not known, [`inserted`](BinaryFuse::inserted) is 0 and
//!   [`capacity`](BinaryFuse::capacity) is about how many so many slots are made for. C's `size` is then written as the smallest number for
//!   which C would choose these segments, or 0 if there is none; C's own packed form cannot be made of the latter.
//! * C's function for the length of a 16-bit filter counts four bytes too many, so its files have them. They are read with and without, and
//!   written with them, as zeroes.
//! * C writes as its machine has them; so far every machine that mattered was little-endian.
//! * An empty filter of the libraries answers *mayhap* to one non-member in 256, like any other.
//!
//! [`xor`] has the same for xor filters.
//!
//! ```
//! use mayhap::codec::fast_filter::{self, Layout};
//! use mayhap::{BinaryFuse8, ItemEncoding};
//!
//! let filter: BinaryFuse8 = fast_filter::build(1..=1_000_u64, ItemEncoding::U64Le)?;
//! let mut file = Vec::new();
//! fast_filter::write(&filter, Layout::Go, &mut file)?; // what `LoadBinaryFuse8` reads
//!
//! let same: BinaryFuse8 = fast_filter::read(&file, Layout::Go, ItemEncoding::U64Le)?;
//! assert!(same.may_contain(&7_u64) && same.may_contain("7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod json;
mod packed;
mod slots;
pub mod xor;

use std::io::Write;

use self::slots::{check_length, read_slots, width_of, write_slots};
use super::DecodeError;
use super::cursor::Cursor;
use super::foreign::{Resemblance, WriteError};
use crate::binary_fuse::BinaryFuse;
use crate::error::BuildError;
use crate::filter::Filter;
use crate::hash::{ForeignHash, ForeignScheme, HashScheme};
use crate::item::{Item, ItemEncoding};
use crate::statics::foreign::ForeignFuse;
use crate::statics::graph::Graph as _;
use crate::statics::table::Table;
use crate::statics::{self, Fingerprint};
use crate::store::Lines;

/// What stands in front of a binary fuse filter's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// C's `binary_fuse8_serialize` and `binary_fuse16_serialize`.
    C,
    /// C's `binary_fuse8_pack` and `binary_fuse16_pack`: slots that are zero are left out.
    CPacked,
    /// Go's `Save`.
    Go,
    /// The 20 bytes of xorf's `dma_copy_descriptor_to`, and behind them its `dma_fingerprints`.
    Xorf,
    /// What serde makes of xorf's types in JSON. The width of the slots is not to be seen.
    XorfJson,
}

/// A filter taken apart.
struct Parts {
    seed: u64,
    graph: ForeignFuse,
    inserted: Option<u64>,
    slots: Lines,
}

/// What stands in front of slots that follow as they are.
struct Front {
    seed: u64,
    size: Option<u64>,
    graph: ForeignFuse,
}

/// The filter in these bytes, whose items became numbers, or bytes, in this way.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter with slots of this width.
pub fn read<F: Fingerprint>(
    bytes: &[u8],
    layout: Layout,
    items: ItemEncoding,
) -> Result<BinaryFuse<F>, DecodeError> {
    let Parts { seed, graph, inserted, slots } = match layout {
        Layout::CPacked => packed::read::<F>(bytes)?,
        Layout::XorfJson => json::read_fuse::<F>(bytes)?,
        Layout::C | Layout::Go | Layout::Xorf => {
            let mut cursor = Cursor::new(bytes);
            let Front { seed, size, graph } = front(&mut cursor, layout)?;
            let slots = read_slots::<F>(cursor, graph.slots(), layout == Layout::C)?;
            Parts { seed, graph, inserted: size, slots }
        }
    };
    if let Some(got) = inserted.filter(|&size| size > graph.slots()) {
        return Err(DecodeError::BadField { field: "size", got });
    }
    let table = Table::of_slots(graph, seed, slots, inserted);
    let table = table.ok_or(DecodeError::BadField { field: "number of slots", got: graph.slots() })?;
    Ok(BinaryFuse::of_foreign(table, scheme(items))?)
}

/// [`read`] for slots of whatever width.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter, and for [`Layout::XorfJson`], which does not show the width.
pub fn read_any(bytes: &[u8], layout: Layout, items: ItemEncoding) -> Result<Filter, DecodeError> {
    Ok(match width(bytes, layout) {
        Some(16) => Filter::BinaryFuse16(read(bytes, layout, items)?),
        Some(32) => Filter::BinaryFuse32(read(bytes, layout, items)?),
        None if layout == Layout::XorfJson => {
            return Err(DecodeError::BadField { field: "fingerprint bits", got: 0 });
        }
        // Or it says what is wrong.
        _ => Filter::BinaryFuse8(read(bytes, layout, items)?),
    })
}

/// How many bits the slots have: 8, 16 or 32. `None` if the bytes are no such filter, or do not show it.
#[must_use]
pub fn width(bytes: &[u8], layout: Layout) -> Option<u32> {
    match layout {
        Layout::CPacked => packed::width(bytes),
        Layout::XorfJson => None,
        Layout::C | Layout::Go | Layout::Xorf => {
            let mut cursor = Cursor::new(bytes);
            let graph = front(&mut cursor, layout).ok()?.graph;
            width_of(cursor.left() as u64, graph.slots(), layout == Layout::C)
        }
    }
}

/// The filter of these items in the size the libraries choose, for their programs to read. Items may come twice.
///
/// It is built in one piece by one thread and takes some 25 bytes an item while it is; our own
/// [`BinaryFuse::build`] is several times as fast, but nobody else reads what it makes.
///
/// # Errors
/// [`BuildError::CapacityOutOfRange`] for more than `2^30` items, [`BuildError::OutOfMemory`] if the system refuses the memory,
/// [`BuildError::Unsolvable`] if somebody chose the items in order to hinder it.
pub fn build<F: Fingerprint, I: Item>(
    items: impl IntoIterator<Item = I>,
    encoding: ItemEncoding,
) -> Result<BinaryFuse<F>, BuildError> {
    let scheme = scheme(encoding);
    let keys = statics::collect(items, &scheme)?;
    BinaryFuse::of_foreign(Table::build_foreign(keys)?, scheme)
}

fn scheme(items: ItemEncoding) -> HashScheme {
    ForeignScheme::new(ForeignHash::Number, items).into()
}

/// Writes the filter as the library of this layout does. A filter read in one layout can be written in any other.
///
/// C has no filter with slots of 32 bits so far; what is written for one is the same layout.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not placed so, and for one whose segments C would not choose if the layout is
/// [`Layout::CPacked`], which does not say them; [`WriteError::Io`] if `out` refuses.
pub fn write<F: Fingerprint>(
    filter: &BinaryFuse<F>,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let needs = "the FastFilter libraries' rule for numbers";
    let refusal = || WriteError::other_rule(needs, filter.scheme(), &filter.shape());
    let table = filter.foreign().ok_or_else(refusal)?;
    let graph = table.places().graph();
    let (seed, slots, [length, segments]) = (table.places().seed(), graph.slots(), graph.segments());
    let (length, segments, starts) = (length as u32, segments as u32, (segments * length) as u32);
    match layout {
        Layout::CPacked => return packed::write(filter, table, out),
        Layout::XorfJson => return Ok(json::write_fuse(table, out)?),
        Layout::C => {
            let size = if filter.inserted() == 0 { graph.fewest_items() } else { Some(filter.inserted()) };
            out.write_all(&seed.to_le_bytes())?;
            write_u32s(&[size.unwrap_or(0) as u32, length, segments, starts, slots as u32], out)?;
        }
        Layout::Go => {
            out.write_all(&seed.to_le_bytes())?;
            write_u32s(&[length, length - 1, segments, starts, slots as u32], out)?;
        }
        Layout::Xorf => {
            out.write_all(&seed.to_le_bytes())?;
            write_u32s(&[length, length - 1, starts], out)?;
        }
    }
    write_slots::<F>(table.lines(), slots, out)?;
    if layout == Layout::C && F::BITS == 16 {
        out.write_all(&[0; slots::C_EXTRA_BYTES as usize])?;
    }
    Ok(())
}

fn write_u32s(numbers: &[u32], out: &mut dyn Write) -> std::io::Result<()> {
    numbers.iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))
}

/// Could these bytes be a binary fuse filter in this layout? There is no mark: lengths and fields must agree.
#[must_use]
pub fn resembles(bytes: &[u8], layout: Layout) -> Resemblance {
    Resemblance::could(match layout {
        Layout::XorfJson => read::<u32>(bytes, layout, ItemEncoding::U64Le).is_ok(),
        _ => width(bytes, layout).is_some(),
    })
}

/// Reads what is in front of the slots.
fn front(cursor: &mut Cursor<'_>, layout: Layout) -> Result<Front, DecodeError> {
    let seed = cursor.u64_le()?;
    let size = if layout == Layout::C { Some(u64::from(cursor.u32_le()?)) } else { None };
    let length = u64::from(cursor.u32_le()?);
    if layout != Layout::C {
        let mask = u64::from(cursor.u32_le()?);
        if mask != length.wrapping_sub(1) {
            return Err(DecodeError::BadField { field: "segment length - 1", got: mask });
        }
    }
    let segments = if layout == Layout::Xorf { None } else { Some(u64::from(cursor.u32_le()?)) };
    let starts = u64::from(cursor.u32_le()?);
    let graph = graph_of(length, starts)?;
    if let Some(got) = segments.filter(|&segments| segments != graph.segments()[1]) {
        return Err(DecodeError::BadField { field: "segments", got });
    }
    if layout != Layout::Xorf {
        let slots = u64::from(cursor.u32_le()?);
        check_length(slots, graph.slots())?;
    }
    Ok(Front { seed, size, graph })
}

/// Segments of this length, of which an item may begin in so many slots.
fn graph_of(length: u64, starts: u64) -> Result<ForeignFuse, DecodeError> {
    if !length.is_power_of_two() {
        return Err(DecodeError::BadField { field: "segment length", got: length });
    }
    let bits = u64::from(length.trailing_zeros());
    let graph = ForeignFuse::from_parts([bits, starts / length]).filter(|_| starts.is_multiple_of(length));
    graph.ok_or(DecodeError::BadField { field: "slots to begin in", got: starts })
}
