//! The names of kinds after `KIND`: those of the library and of the program, and short names.

use mayhap::BlockedLayout;
use mayhap_advise::Structure;

/// The kind that `KIND` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindName {
    /// Exactly this structure.
    Exactly(Structure),
    /// A blocked Bloom filter, in the layout that fits best.
    Blocked,
    /// An xor filter with fingerprints of this many bits.
    Xor(u32),
    /// A binary fuse filter with fingerprints of this many bits.
    Fuse(u32),
    /// 64-bit fingerprints: practically exact, growing.
    Fingerprints,
    /// RedisBloom's cuckoo filter.
    ScalableCuckoo,
}

/// Short names and the names they stand for.
const ALIASES: [(&str, &str); 11] = [
    ("blocked", "blocked-bloom"),
    ("counting", "counting-bloom"),
    ("dual", "dual-bloom"),
    ("scalable", "scalable-bloom"),
    ("dleft", "d-left"),
    ("growable", "growable-cuckoo"),
    ("fuse", "binary-fuse"),
    ("fuse8", "binary-fuse8"),
    ("fuse16", "binary-fuse16"),
    ("fuse32", "binary-fuse32"),
    ("golomb", "gcs"),
];

/// Returns the kind with this name, in upper or lower case.
pub(crate) fn parse(word: &[u8]) -> Option<KindName> {
    let text = std::str::from_utf8(word).ok()?.to_ascii_lowercase().replace([' ', '_'], "-");
    let name = ALIASES.iter().find(|(alias, _)| *alias == text).map_or(text.as_str(), |(_, name)| name);
    match name {
        "blocked-bloom" => Some(KindName::Blocked),
        "xor8" => Some(KindName::Xor(8)),
        "xor16" => Some(KindName::Xor(16)),
        "xor32" => Some(KindName::Xor(32)),
        "binary-fuse8" => Some(KindName::Fuse(8)),
        "binary-fuse16" => Some(KindName::Fuse(16)),
        "binary-fuse32" => Some(KindName::Fuse(32)),
        "fingerprints" => Some(KindName::Fingerprints),
        "scalable-cuckoo" => Some(KindName::ScalableCuckoo),
        _ => ours().find(|structure| structure.name().replace(' ', "-") == name).map(KindName::Exactly),
    }
}

/// All structures that have a kind in our file format.
fn ours() -> impl Iterator<Item = Structure> {
    Structure::all().filter(|structure| structure.kind().is_some())
}

/// All names except the short ones, as errors list them.
pub(crate) fn names() -> String {
    let mut names: Vec<String> = Vec::new();
    for structure in ours() {
        match structure {
            Structure::BlockedBloom(BlockedLayout::Split256) => names.push("blocked-bloom".into()),
            Structure::Xor => names.extend(["xor8", "xor16", "xor32"].map(String::from)),
            Structure::BinaryFuse => {
                names.extend(["binary-fuse8", "binary-fuse16", "binary-fuse32"].map(String::from));
            }
            _ => {}
        }
        names.push(structure.name().replace(' ', "-"));
    }
    names.extend(["fingerprints", "scalable-cuckoo"].map(String::from));
    names.join(", ")
}

impl KindName {
    /// Its name in errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exactly(structure) => structure.name(),
            Self::Blocked => "blocked-bloom",
            Self::Xor(_) => "xor",
            Self::Fuse(_) => "binary-fuse",
            Self::Fingerprints => "set of fingerprints",
            Self::ScalableCuckoo => "scalable-cuckoo",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias_is_found_in_any_case() {
        for name in names().split(", ") {
            assert!(parse(name.as_bytes()).is_some(), "{name}");
            assert_eq!(parse(name.to_uppercase().replace('-', "_").as_bytes()), parse(name.as_bytes()));
        }
        for (alias, name) in ALIASES {
            assert!(parse(alias.as_bytes()).is_some(), "{alias}");
            assert_eq!(parse(alias.as_bytes()), parse(name.as_bytes()));
        }
        for word in ["", "hash-set", "sorted-array", "xor64", "blooms", "\u{0}"] {
            assert_eq!(parse(word.as_bytes()), None, "{word}");
        }
        assert_eq!(parse(&[0xff, 0xfe]), None);
    }
}
