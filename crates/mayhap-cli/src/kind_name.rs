//! The names of kinds on the command line.

use std::fmt;

use mayhap::{BlockedLayout, BlockedShape};
use mayhap_advise::{Growth, Needs, NeedsError, Price, Structure, price_list};

/// A kind as `--kind` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindName {
    /// This structure.
    Exactly(Structure),
    /// A blocked Bloom filter, in the best layout for the needs.
    BlockedBloom,
}

/// Short names for long ones.
const ALIASES: [(&str, &str); 7] = [
    ("blocked", "blocked-bloom"),
    ("fuse", "binary-fuse"),
    ("counting", "counting-bloom"),
    ("dual", "dual-bloom"),
    ("scalable", "scalable-bloom"),
    ("dleft", "d-left"),
    ("golomb", "gcs"),
];

/// The kind is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownKind;

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown kind; known kinds: {}", names().collect::<Vec<_>>().join(", "))
    }
}

impl std::error::Error for UnknownKind {}

/// Parses the name of a kind.
pub(crate) fn parse(text: &str) -> Result<KindName, UnknownKind> {
    let text = text.to_ascii_lowercase().replace([' ', '_'], "-");
    let name = ALIASES.iter().find(|(alias, _)| *alias == text).map_or(text.as_str(), |(_, name)| name);
    if name == "blocked-bloom" {
        return Ok(KindName::BlockedBloom);
    }
    buildable().find(|&structure| name_of(structure) == name).map(KindName::Exactly).ok_or(UnknownKind)
}

impl KindName {
    /// The structure with this name. For a blocked Bloom filter, the layout that fits the needs best.
    pub(crate) fn structure(self, needs: &Needs) -> Result<Structure, NeedsError> {
        match self {
            Self::Exactly(structure) => Ok(structure),
            Self::BlockedBloom if needs.rate_from_memory => {
                let blocked = |price: &Price| {
                    let rate = price.cost?.target_fpr;
                    matches!(price.structure, Structure::BlockedBloom(_)).then_some((price.structure, rate))
                };
                let prices = price_list(needs)?;
                let best = prices.iter().filter_map(blocked).min_by(|one, other| one.1.total_cmp(&other.1));
                Ok(best.map_or(Structure::Bloom, |(structure, _)| structure))
            }
            Self::BlockedBloom => {
                let shape = BlockedShape::for_capacity(needs.items, needs.target_fpr)?;
                Ok(Structure::BlockedBloom(shape.layout()))
            }
        }
    }
}

/// The growth that `structure` implies when it is named with `--kind`: a window for the window kind, and all items at
/// build time for static kinds.
pub(crate) const fn growth_of(structure: Structure, asked: Growth) -> Growth {
    match structure {
        Structure::Window => Growth::Window,
        structure if structure.is_static() => Growth::AllAtOnce,
        _ => asked,
    }
}

/// The name of a structure for `--kind`.
pub(crate) fn name_of(structure: Structure) -> String {
    structure.name().replace(' ', "-")
}

/// All names except aliases.
pub(crate) fn names() -> impl Iterator<Item = String> {
    buildable().flat_map(|structure| {
        let any_layout = structure == Structure::BlockedBloom(BlockedLayout::Split256);
        any_layout.then(|| "blocked-bloom".to_owned()).into_iter().chain([name_of(structure)])
    })
}

/// All structures that mayhap can build a filter of.
fn buildable() -> impl Iterator<Item = Structure> {
    Structure::all().filter(|structure| structure.kind().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_and_printed_alike() {
        assert!(names().count() >= 18);
        for name in names().filter(|name| name != "blocked-bloom") {
            let KindName::Exactly(structure) = parse(&name).unwrap() else { panic!("{name}") };
            assert_eq!(name_of(structure), name);
        }
        assert_eq!(parse("blocked_bloom"), Ok(KindName::BlockedBloom));
        for (alias, name) in ALIASES {
            assert_eq!(parse(alias), parse(name), "{alias}");
        }
        assert_eq!(parse("hash-set"), Err(UnknownKind), "not a filter of mayhap");
        assert!(UnknownKind.to_string().contains("binary-fuse"));
    }
}
