//! The xor filters of the FastFilter libraries.
//!
//! ```text
//!      ┌──────┬───────┬─────────────────────┐
//! C    │ seed │ block │ 3 · block slots     │     of 8 or 16 bits; xorf has 32 as well, but only serde forms
//!      │ 8    │ 8     │                     │     Go has no file form of its own for them
//!      └──────┴───────┴─────────────────────┘
//! ```
//!
//! The number of items is not stored: [`inserted`](Xor::inserted) is 0. Slots that no item uses keep their previous contents.
//!
//! ```
//! use mayhap_formats::fast_filter::xor::{self, XorLayout};
//! use mayhap::{ItemEncoding, Xor16};
//!
//! let filter: Xor16 = xor::build(1..=1_000_u64, ItemEncoding::U64Le)?;
//! let mut file = Vec::new();
//! xor::write(&filter, XorLayout::C, &mut file)?; // what `xor16_deserialize` reads
//!
//! let same: Xor16 = xor::read(&file, XorLayout::C, ItemEncoding::U64Le)?;
//! assert!(same.may_contain(&7_u64) && !same.may_contain(&7_000_u64));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Write;

use mayhap::internals;
use mayhap::internals::statics::XorMeasurements;
use mayhap::{BuildError, DecodeError, Filter, Fingerprint, Item, ItemEncoding, Xor};

use super::slots::{read_slots, width_of, write_slots};
use super::{json, scheme};
use crate::cursor::Cursor;
use crate::foreign::{Resemblance, WriteError};

/// The layouts of a xor filter's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum XorLayout {
    /// C's `xor8_serialize` and `xor16_serialize`.
    C,
    /// The JSON form of xorf's types, as serde writes it. It does not contain the width of the slots.
    XorfJson,
}

/// Reads the filter in these bytes. `items` is how its items became numbers or bytes.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter with slots of this width.
pub fn read<F: Fingerprint>(
    bytes: &[u8],
    layout: XorLayout,
    items: ItemEncoding,
) -> Result<Xor<F>, DecodeError> {
    let (seed, graph, slots) = match layout {
        XorLayout::XorfJson => json::read_xor::<F>(bytes)?,
        XorLayout::C => {
            let mut cursor = Cursor::new(bytes);
            let (seed, graph) = (cursor.u64_le()?, graph_of(cursor.u64_le()?)?);
            (seed, graph, read_slots::<F>(cursor, graph.slots(), false)?)
        }
    };
    let filter = internals::statics::xor_of_slots(graph, seed, slots, scheme(items));
    Ok(filter.ok_or(DecodeError::BadField { field: "block length", got: graph.block() })??)
}

/// Like [`read`], for slots of any width.
///
/// # Errors
/// [`DecodeError`] for anything but one whole filter, and for [`XorLayout::XorfJson`], which does not contain the width.
pub fn read_any(bytes: &[u8], layout: XorLayout, items: ItemEncoding) -> Result<Filter, DecodeError> {
    Ok(match width(bytes, layout) {
        Some(16) => Filter::Xor16(read(bytes, layout, items)?),
        Some(32) => Filter::Xor32(read(bytes, layout, items)?),
        None if layout == XorLayout::XorfJson => {
            return Err(DecodeError::BadField { field: "fingerprint bits", got: 0 });
        }
        // Fails with the reason.
        _ => Filter::Xor8(read(bytes, layout, items)?),
    })
}

/// Returns the width of the slots: 8, 16 or 32 bits. `None` if the bytes are not such a filter, or do not contain the width.
#[must_use]
pub fn width(bytes: &[u8], layout: XorLayout) -> Option<u32> {
    if layout == XorLayout::XorfJson {
        return None;
    }
    let mut cursor = Cursor::new(bytes);
    let (_, block) = (cursor.u64_le().ok()?, cursor.u64_le().ok()?);
    width_of(cursor.left() as u64, graph_of(block).ok()?.slots(), false)
}

/// Builds a filter of these items in the size that the libraries choose. Duplicates are allowed.
///
/// # Errors
/// As [`fast_filter::build`](super::build).
pub fn build<F: Fingerprint, I: Item>(
    items: impl IntoIterator<Item = I>,
    encoding: ItemEncoding,
) -> Result<Xor<F>, BuildError> {
    internals::statics::build_xor(items, scheme(encoding))
}

/// Writes the filter as the library of this layout does.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter of another rule, [`WriteError::Io`] if `out` fails.
pub fn write<F: Fingerprint>(
    filter: &Xor<F>,
    layout: XorLayout,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let needs = "the FastFilter libraries' rule for numbers";
    let refusal = || WriteError::other_rule(needs, filter.scheme(), &filter.shape());
    let table = internals::statics::xor_slots(filter).ok_or_else(refusal)?;
    if layout == XorLayout::XorfJson {
        return Ok(json::write_xor::<F>(&table, out)?);
    }
    let graph = table.measurements;
    out.write_all(&table.seed.to_le_bytes())?;
    out.write_all(&graph.block().to_le_bytes())?;
    write_slots::<F>(table.lines, graph.slots(), out)?;
    Ok(())
}

/// Returns whether these bytes look like a xor filter in this layout. There is no magic number: lengths and fields must agree.
#[must_use]
pub fn resembles(bytes: &[u8], layout: XorLayout) -> Resemblance {
    Resemblance::could(match layout {
        XorLayout::XorfJson => read::<u32>(bytes, layout, ItemEncoding::U64Le).is_ok(),
        XorLayout::C => width(bytes, layout).is_some(),
    })
}

/// Returns the graph of three blocks with this number of slots each.
pub(super) fn graph_of(block: u64) -> Result<XorMeasurements, DecodeError> {
    XorMeasurements::new(block).ok_or(DecodeError::BadField { field: "block length", got: block })
}
