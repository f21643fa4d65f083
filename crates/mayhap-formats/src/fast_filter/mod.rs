//! Binary fuse and xor filters of the FastFilter libraries: `xor_singleheader` (C), `xorfilter` (Go) and `xorf` (Rust).
//!
//! All of them place a number in the same way; only the headers differ. Everything is little-endian.
//!
//! ```text
//!         ┌──────┬──────┬────────┬──────────┬──────────┬─────────┬─────────┬────────┐
//! C       │ seed │ size │ length │          │ segments │ starts  │ slots   │ slots… │  16 bits: 4 extra bytes without meaning
//! Go      │ seed │      │ length │ length-1 │ segments │ starts  │ slots   │ slots… │
//! xorf    │ seed │      │ length │ length-1 │          │ starts  │         │ slots… │
//!         │ 8    │ 4    │ 4      │ 4        │ 4        │ 4       │ 4       │        │
//!         ├──────┼──────┼────────┴──────────┴───┬──────┴─────────┴─────────┴────────┘
//! packed C│ seed │ size │ which slots are not 0 │ those slots…
//!         └──────┴──────┴───────────────────────┘
//! ```
//!
//! `length` is the length of a segment, a power of two. `segments` is the number of segments an item may begin in, and `starts` the number of
//! slots in these; there are two more segments. The width of the slots, 8, 16 or 32 bits, follows from the number of bytes.
//!
//! * The libraries store only 64-bit numbers. Here, an item of 8 bytes is used as a number, and any other item is replaced by the XXH3-64 of its
//!   bytes. With [`ItemEncoding::U64Le`], `&str` items are parsed as decimal numbers. If a program hashed text before it inserted it into a
//!   library's filter, hash it in the same way here and query the number.
//! * Only C's `size` contains the number of items. If it is not known, [`inserted`](BinaryFuse::inserted) is 0 and
//!   [`capacity`](BinaryFuse::capacity) is about the number of items that this number of slots is made for. C's `size` is then written as the
//!   smallest number for which C would choose these segments, or 0 if there is none; C's packed form cannot be written in the latter case.
//! * C's function for the length of a 16-bit filter counts four bytes too many, so its files contain them. Files are read with or without
//!   these bytes, and written with them, as zeroes.
//! * C writes numbers in the byte order of its machine; so far every relevant machine was little-endian.
//! * An empty filter of the libraries answers *maybe* to one non-member in 256, like any other.
//!
//! [`xor`] does the same for xor filters.
//!
//! ```
//! use mayhap_formats::fast_filter::{self, FuseLayout};
//! use mayhap::{BinaryFuse8, ItemEncoding};
//!
//! let filter: BinaryFuse8 = fast_filter::build(1..=1_000_u64, ItemEncoding::U64Le)?;
//! let mut file = Vec::new();
//! fast_filter::write(&filter, FuseLayout::Go, &mut file)?; // what `LoadBinaryFuse8` reads
//!
//! let same: BinaryFuse8 = fast_filter::read(&file, FuseLayout::Go, ItemEncoding::U64Le)?;
//! assert!(same.may_contain(&7_u64) && same.may_contain("7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod json;
mod packed;
mod slots;
pub mod xor;

use std::io::Write;

use mayhap::internals::statics::FuseMeasurements;
use mayhap::internals::{self, Lines};
use mayhap::{
    BinaryFuse, BuildError, DecodeError, Filter, Fingerprint, ForeignHash, HashScheme, Item, ItemEncoding,
};

use self::slots::{check_length, read_slots, width_of, write_slots};
use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError};

/// The layouts of a binary fuse filter's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FuseLayout {
    /// C's `binary_fuse8_serialize` and `binary_fuse16_serialize`.
    C,
    /// C's `binary_fuse8_pack` and `binary_fuse16_pack`: zero slots are left out.
    CPacked,
    /// Go's `Save`.
    Go,
    /// The 20 bytes of xorf's `dma_copy_descriptor_to`, followed by its `dma_fingerprints`.
    Xorf,
    /// The JSON form of xorf's types, as serde writes it. It does not contain the width of the slots.
    XorfJson,
}

/// A decoded filter.
struct Parts {
    seed: u64,
    graph: FuseMeasurements,
    inserted: Option<u64>,
    slots: Lines,
}

/// The header in front of unpacked slots.
struct Front {
    seed: u64,
    size: Option<u64>,
    graph: FuseMeasurements,
}

/// Reads the filter in these bytes. `items` is how its items became numbers or bytes.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter with slots of this width.
pub fn read<F: Fingerprint>(
    bytes: &[u8],
    layout: FuseLayout,
    items: ItemEncoding,
) -> Result<BinaryFuse<F>, DecodeError> {
    let Parts { seed, graph, inserted, slots } = match layout {
        FuseLayout::CPacked => packed::read::<F>(bytes)?,
        FuseLayout::XorfJson => json::read_fuse::<F>(bytes)?,
        FuseLayout::C | FuseLayout::Go | FuseLayout::Xorf => {
            let mut cursor = Cursor::new(bytes);
            let Front { seed, size, graph } = front(&mut cursor, layout)?;
            let slots = read_slots::<F>(cursor, graph.slots(), layout == FuseLayout::C)?;
            Parts { seed, graph, inserted: size, slots }
        }
    };
    if let Some(got) = inserted.filter(|&size| size > graph.slots()) {
        return Err(DecodeError::BadField { field: "size", got });
    }
    let filter = internals::statics::fuse_of_slots(graph, seed, slots, inserted, scheme(items));
    Ok(filter.ok_or(DecodeError::BadField { field: "number of slots", got: graph.slots() })??)
}

/// Like [`read`], for slots of any width.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter, and for [`FuseLayout::XorfJson`], which does not contain the width.
pub fn read_any(bytes: &[u8], layout: FuseLayout, items: ItemEncoding) -> Result<Filter, DecodeError> {
    Ok(match width(bytes, layout) {
        Some(16) => Filter::BinaryFuse16(read(bytes, layout, items)?),
        Some(32) => Filter::BinaryFuse32(read(bytes, layout, items)?),
        None if layout == FuseLayout::XorfJson => {
            return Err(DecodeError::BadField { field: "fingerprint bits", got: 0 });
        }
        // Fails with the reason.
        _ => Filter::BinaryFuse8(read(bytes, layout, items)?),
    })
}

/// Returns the width of the slots: 8, 16 or 32 bits. `None` if the bytes are not such a filter, or do not contain the width.
#[must_use]
pub fn width(bytes: &[u8], layout: FuseLayout) -> Option<u32> {
    match layout {
        FuseLayout::CPacked => packed::width(bytes),
        FuseLayout::XorfJson => None,
        FuseLayout::C | FuseLayout::Go | FuseLayout::Xorf => {
            let mut cursor = Cursor::new(bytes);
            let graph = front(&mut cursor, layout).ok()?.graph;
            width_of(cursor.left() as u64, graph.slots(), layout == FuseLayout::C)
        }
    }
}

/// Builds a filter of these items in the size that the libraries choose, for their programs to read. Duplicates are allowed.
///
/// It is built in one piece by one thread and takes about 25 bytes per item during construction. Our own [`BinaryFuse::build`] is several
/// times as fast, but other programs cannot read its filters.
///
/// # Errors
/// [`BuildError::CapacityOutOfRange`] for more than `2^30` items, [`BuildError::OutOfMemory`] if an allocation fails,
/// [`BuildError::Unsolvable`] if the items were chosen to prevent construction.
pub fn build<F: Fingerprint, I: Item>(
    items: impl IntoIterator<Item = I>,
    encoding: ItemEncoding,
) -> Result<BinaryFuse<F>, BuildError> {
    internals::statics::build_fuse(items, scheme(encoding))
}

fn scheme(items: ItemEncoding) -> HashScheme {
    internals::foreign_scheme(ForeignHash::Number, items)
}

/// Writes the filter as the library of this layout does. A filter read in one layout can be written in any other.
///
/// C has no filter with slots of 32 bits so far; such a filter is written in the same layout.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter of another rule. Also for [`FuseLayout::CPacked`], which does not contain the segments, if C
/// would not choose the filter's segments. [`WriteError::Io`] if `out` fails.
pub fn write<F: Fingerprint>(
    filter: &BinaryFuse<F>,
    layout: FuseLayout,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let needs = "the FastFilter libraries' rule for numbers";
    let refusal = || WriteError::other_rule(needs, filter.scheme(), &filter.shape());
    let table = internals::statics::fuse_slots(filter).ok_or_else(refusal)?;
    let graph = table.measurements;
    let (seed, slots, [length, segments]) = (table.seed, graph.slots(), graph.segments());
    let (length, segments, starts) = (length as u32, segments as u32, (segments * length) as u32);
    match layout {
        FuseLayout::CPacked => return packed::write(filter, &table, out),
        FuseLayout::XorfJson => return Ok(json::write_fuse::<F>(&table, out)?),
        FuseLayout::C => {
            let size = if filter.inserted() == 0 { graph.fewest_items() } else { Some(filter.inserted()) };
            out.write_all(&seed.to_le_bytes())?;
            write_u32s(&[size.unwrap_or(0) as u32, length, segments, starts, slots as u32], out)?;
        }
        FuseLayout::Go => {
            out.write_all(&seed.to_le_bytes())?;
            write_u32s(&[length, length - 1, segments, starts, slots as u32], out)?;
        }
        FuseLayout::Xorf => {
            out.write_all(&seed.to_le_bytes())?;
            write_u32s(&[length, length - 1, starts], out)?;
        }
    }
    write_slots::<F>(table.lines, slots, out)?;
    if layout == FuseLayout::C && F::BITS == 16 {
        out.write_all(&[0; slots::C_EXTRA_BYTES as usize])?;
    }
    Ok(())
}

fn write_u32s(numbers: &[u32], out: &mut dyn Write) -> std::io::Result<()> {
    numbers.iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))
}

/// Returns whether these bytes look like a binary fuse filter in this layout. There is no magic number: lengths and fields must agree.
#[must_use]
pub fn resembles(bytes: &[u8], layout: FuseLayout) -> Resemblance {
    Resemblance::could(match layout {
        FuseLayout::XorfJson => read::<u32>(bytes, layout, ItemEncoding::U64Le).is_ok(),
        _ => width(bytes, layout).is_some(),
    })
}

/// Reads the header in front of the slots.
fn front(cursor: &mut Cursor<'_>, layout: FuseLayout) -> Result<Front, DecodeError> {
    let seed = cursor.u64_le()?;
    let size = if layout == FuseLayout::C { Some(u64::from(cursor.u32_le()?)) } else { None };
    let length = u64::from(cursor.u32_le()?);
    if layout != FuseLayout::C {
        let mask = u64::from(cursor.u32_le()?);
        if mask != length.wrapping_sub(1) {
            return Err(DecodeError::BadField { field: "segment length - 1", got: mask });
        }
    }
    let segments = if layout == FuseLayout::Xorf { None } else { Some(u64::from(cursor.u32_le()?)) };
    let starts = u64::from(cursor.u32_le()?);
    let graph = graph_of(length, starts)?;
    if let Some(got) = segments.filter(|&segments| segments != graph.segments()[1]) {
        return Err(DecodeError::BadField { field: "segments", got });
    }
    if layout != FuseLayout::Xorf {
        let slots = u64::from(cursor.u32_le()?);
        check_length(slots, graph.slots())?;
    }
    Ok(Front { seed, size, graph })
}

/// Returns the graph with segments of this length and this number of slots in which an item may begin.
fn graph_of(length: u64, starts: u64) -> Result<FuseMeasurements, DecodeError> {
    if !length.is_power_of_two() {
        return Err(DecodeError::BadField { field: "segment length", got: length });
    }
    let bits = u64::from(length.trailing_zeros());
    let graph = FuseMeasurements::new(bits, starts / length).filter(|_| starts.is_multiple_of(length));
    graph.ok_or(DecodeError::BadField { field: "slots to begin in", got: starts })
}
