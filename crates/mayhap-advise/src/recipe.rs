//! The Rust code that builds a structure.

use mayhap::{BinaryFuseShape, BlockedShape, XorShape};

use crate::needs::{ItemShape, Needs};
use crate::phrase;
use crate::price::{GROWABLE_TO, Structure, removals};

/// Names that the code may use, in the order of `use` lists.
const NAMES: [&str; 28] = [
    "AtomicBlockedBloom",
    "AtomicBloom",
    "BinaryFuse8",
    "BinaryFuse16",
    "BinaryFuse32",
    "Bitmap",
    "BlockedBloom",
    "BlockedLayout",
    "BlockedShape",
    "Bloom",
    "BloomShape",
    "CountingBloom",
    "CountingShape",
    "Cuckoo",
    "CuckooShape",
    "DLeft",
    "DualBloom",
    "Gcs",
    "GrowableCuckoo",
    "Growing",
    "HashScheme",
    "Quotient",
    "Ribbon",
    "ScalableBloom",
    "Window",
    "Xor8",
    "Xor16",
    "Xor32",
];

/// The Rust code that builds `structure` for `needs`; empty for a bitmap of items that are not integers.
///
/// ```
/// use mayhap_advise::{Needs, Structure, rust_for};
///
/// let lines = rust_for(Structure::Quotient, &Needs::new(1_000, 0.01));
/// assert_eq!(lines, "use mayhap::Quotient;\nlet mut seen = Quotient::new(1_000, 0.01)?;");
/// ```
#[must_use]
pub fn rust_for(structure: Structure, needs: &Needs) -> String {
    let lines = lines(structure, needs);
    let named = |name: &&str| lines.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == *name);
    let names: Vec<&str> = NAMES.into_iter().filter(named).collect();
    let imports = match names[..] {
        [] if structure == Structure::HashSet => "use std::collections::HashSet;\n".to_owned(),
        [] => String::new(),
        [name] => format!("use mayhap::{name};\n"),
        _ => format!("use mayhap::{{{}}};\n", names.join(", ")),
    };
    imports + &lines
}

fn lines(structure: Structure, needs: &Needs) -> String {
    let (items, rate) = (phrase::source(needs.items), format!("{:?}", needs.target_fpr));
    let scheme = if needs.untrusted { "HashScheme::keyed_random()?" } else { "HashScheme::random()" };
    // `new` and `from_items` draw a random seed.
    let keyed = if needs.untrusted { ".keyed()?" } else { "" };
    // The lock-free variants, if there are any.
    let atomic = if needs.threads { "Atomic" } else { "" };
    let integer = match needs.item {
        ItemShape::IntegerRange { high, .. } if u32::try_from(high).is_ok() => Some("u32"),
        ItemShape::IntegerRange { .. } => Some("u64"),
        ItemShape::Unknown | ItemShape::Bytes { .. } => None,
    };
    let mutable = if needs.threads { "" } else { "mut " };
    match structure {
        Structure::Bitmap => bitmap(needs),
        Structure::Bloom => match needs.probes {
            None => format!("let {mutable}seen = {atomic}Bloom::new({items}, {rate})?{keyed};"),
            Some(probes) => format!(
                "let shape = BloomShape::for_probes({items}, {rate}, {probes})?;\n\
                 let {mutable}seen = {atomic}Bloom::with_shape(shape, {scheme})?;"
            ),
        },
        Structure::CountingBloom => match needs.probes {
            None => format!("let mut seen = CountingBloom::new({items}, {rate})?{keyed};"),
            Some(probes) => format!(
                "let shape = CountingShape::for_probes({items}, {rate}, {probes})?;\n\
                 let mut seen = CountingBloom::with_shape(shape, {scheme})?;"
            ),
        },
        Structure::BlockedBloom(layout) => {
            let by_itself = BlockedShape::for_capacity(needs.items, needs.target_fpr);
            if by_itself.is_ok_and(|shape| shape.layout() == layout) {
                return format!("let {mutable}seen = {atomic}BlockedBloom::new({items}, {rate})?{keyed};");
            }
            format!(
                "let shape = BlockedShape::with_layout(BlockedLayout::{layout:?}, {items}, {rate})?;\n\
                 let {mutable}seen = {atomic}BlockedBloom::with_shape(shape, {scheme})?;"
            )
        }
        Structure::DualBloom => {
            let removals = phrase::source(removals(needs));
            format!("let mut seen = DualBloom::new({items}, {removals}, {rate})?{keyed};")
        }
        Structure::ScalableBloom => {
            format!("let mut seen = ScalableBloom::new({items}, {rate})?{keyed};")
        }
        Structure::DLeft | Structure::Cuckoo | Structure::Quotient | Structure::Growing => {
            let name = match structure {
                Structure::DLeft => "DLeft",
                Structure::Cuckoo => "Cuckoo",
                Structure::Quotient => "Quotient",
                _ => "Growing",
            };
            format!("let mut seen = {name}::new({items}, {rate})?{keyed};")
        }
        Structure::CuckooSemiSorted => format!(
            "let shape = CuckooShape::semi_sorted({items}, {rate})?;\n\
             let mut seen = Cuckoo::with_shape(shape, {scheme})?;"
        ),
        Structure::GrowableCuckoo => {
            let largest = phrase::source(needs.items.saturating_mul(GROWABLE_TO));
            format!("let mut seen = GrowableCuckoo::for_growth({items}, {largest}, {rate}, {scheme})?;")
        }
        Structure::Xor | Structure::BinaryFuse => {
            let (name, bits) = match structure {
                Structure::Xor => ("Xor", XorShape::bits_for(needs.target_fpr)),
                _ => ("BinaryFuse", BinaryFuseShape::bits_for(needs.target_fpr)),
            };
            let name = format!("{name}{}", bits.unwrap_or(32));
            match needs.untrusted {
                true => format!("let seen = {name}::build(&items, {scheme})?;"),
                false => format!("let seen = {name}::from_items(&items)?;"),
            }
        }
        Structure::Ribbon | Structure::Gcs => {
            let name = if structure == Structure::Gcs { "Gcs" } else { "Ribbon" };
            match needs.untrusted {
                true => format!("let seen = {name}::build(&items, {rate}, {scheme})?;"),
                false => format!("let seen = {name}::from_items(&items, {rate})?;"),
            }
        }
        Structure::Window => format!("let mut seen = Window::new({items}, {rate})?{keyed};"),
        Structure::SortedArray => match integer {
            Some(_) => "items.sort_unstable();\nlet seen = items.binary_search(&item).is_ok();".to_owned(),
            None => {
                format!("let scheme = {scheme};\n")
                    + "let mut stored: Vec<u64> = items.iter().map(|item| scheme.hash(item).to_u128() as u64).collect();\n\
                     stored.sort_unstable();\n\
                     let seen = stored.binary_search(&(scheme.hash(item).to_u128() as u64)).is_ok();"
            }
        },
        Structure::HashSet => {
            let item = integer.unwrap_or("Box<[u8]>");
            format!("let mut seen: HashSet<{item}> = HashSet::with_capacity({items});")
        }
    }
}

fn bitmap(needs: &Needs) -> String {
    let ItemShape::IntegerRange { low, high } = needs.item else {
        return String::new();
    };
    let (low, bits) = (phrase::source(low), phrase::source((high - low).saturating_add(1)));
    let offset = if low == "0" { String::new() } else { format!(" - {low}") };
    format!("let mut seen = Bitmap::new({bits})?;\nseen.set(number{offset})?;")
}
