//! How a kind of filter works, in a few sentences, with the numbers of this filter.

use mayhap::explain::{Explanation, Lookup};
use mayhap::{Filter, Kind, say};

/// Explains the kind, so that a reader can follow the steps.
pub(super) fn how_it_works(filter: &Filter, explanation: &Explanation) -> String {
    match &explanation.lookup {
        Lookup::Number(lookup) => format!(
            "A bitmap has one bit for every possible number, here {}. Nothing is hashed, so both answers are certain.",
            say::count(lookup.bits)
        ),
        Lookup::Bits(lookup) => {
            let (bits, probes) = (say::count(lookup.bits), lookup.probes.len());
            format!(
                "A Bloom filter is an array of bits, here {bits}. The hash of an item gives {} in it, and inserting the item sets {}. \
                 If one of them is clear, the item was never inserted. If all are set, the item was inserted, or other items set them.",
                plural(probes, "position"),
                if probes == 1 { "that bit" } else { "those bits" },
            )
        }
        Lookup::Blocks(lookup) => {
            let probes = lookup.probes().count();
            format!(
                "A blocked Bloom filter keeps all bits of an item in {} of {} bits, so a lookup reads {}. The hash chooses among {} \
                 blocks, then {probes} bits. Inserting the item sets them. If one is clear, the item was never inserted.",
                plural(lookup.probed.len(), "block"),
                lookup.block_bits,
                plural(lookup.probed.len(), "cache line"),
                say::count(lookup.blocks),
            )
        }
        Lookup::Counters(lookup) => format!(
            "A counting Bloom filter has counters instead of bits, here {}. Inserting an item increments {} of them, removing \
             it decrements the same ones. If one is 0, the item is not a member. Counters stop at {}.",
            say::count(lookup.counters),
            lookup.probes.len(),
            lookup.limit
        ),
        Lookup::Dual(_) => "A dual Bloom filter has two parts: one for insertions, one for removals. An item is a member if the first part has it and \
             the second does not. If both have it, it was removed; its next generation, with another hash, shows whether it was inserted again."
            .into(),
        Lookup::Layers(lookup) => format!(
            "A scalable Bloom filter adds a larger layer whenever the newest is full, here {} so far. Each layer is a Bloom filter. The answer \
             is maybe if all bits of the item are set in one layer. The newest layer is checked first because it holds most items.",
            lookup.layers.len()
        ),
        Lookup::Buckets(_) => buckets(filter),
        Lookup::Run(lookup) => {
            let homes = say::count(lookup.homes);
            if lookup.any_length {
                format!(
                    "A growing filter has {homes} homes. The hash gives an item its home and its fingerprint. The fingerprints of a home are \
                     stored in a run of adjacent slots. When the table doubles, every fingerprint gives up one bit to its home, so \
                     older ones are shorter. A stored fingerprint matches if the item's fingerprint begins with it."
                )
            } else {
                format!(
                    "A quotient filter has {homes} homes. The hash gives an item its home and a remainder of {} bits, which is stored. The \
                     remainders of a home form a run of adjacent slots, in ascending order, with counts. If the remainder is not \
                     in the run, the item is not a member.",
                    lookup.fingerprint_bits
                )
            }
        }
        Lookup::Slots(lookup) => format!(
            "{} has {} slots of {} bits. They are filled once, so that for every member the XOR of the three slots its hash selects \
             is its fingerprint. For a non-member the XOR is random: it equals the fingerprint once in {} lookups.",
            match filter.kind() {
                Kind::Xor => "An xor filter",
                _ => "A binary fuse filter",
            },
            say::count(lookup.slots),
            lookup.fingerprint_bits,
            say::count(1 << lookup.fingerprint_bits),
        ),
        Lookup::Rows(_) => "A ribbon filter is the solution of a system of equations, one for every member. The hash selects some of 64 adjacent rows. In \
             every column, the number of ones in these rows is even or odd, as the member's fingerprint requires. For a non-member, each column \
             agrees by chance half of the time."
            .into(),
        Lookup::Values(lookup) => format!(
            "A Golomb-coded set maps every item to a number below {} and stores the sorted numbers as gaps, in few bits. An index leads to \
             the bucket of a number. Its gaps are added up until they reach or pass the number. If they pass it, the item is not a member.",
            say::count(lookup.range)
        ),
        Lookup::Generations(lookup) => format!(
            "A window has {} generations, each a blocked Bloom filter. New items go to the newest; the oldest is cleared to become \
             the next. The answer is maybe if all bits of the item are set in one generation.",
            lookup.generations.len()
        ),
        _ => String::new(),
    }
}

fn buckets(filter: &Filter) -> String {
    match filter.kind() {
        Kind::DLeft => "A d-left filter has four tables. The hash gives an item a fingerprint and one bucket of eight slots in each table. Inserting puts the \
             fingerprint into the emptiest of the four buckets, or counts it there. If none of them has it, the item is not a member."
            .into(),
        Kind::ScalableCuckoo => "RedisBloom's cuckoo filter adds a table whenever the newest is full. The hash gives an item a fingerprint of one byte and two \
             buckets in every table. If none of them has it, the item is not a member."
            .into(),
        Kind::Fingerprints => "A set of fingerprints keeps the low half of the hash (fewer bits after a cut) in the cache line that the hash selects; if \
             that line is full, in the next one with room. The search ends at the first line that is not full. If no line has it, the item is not a member."
            .into(),
        _ => "A cuckoo filter stores a short fingerprint of every item in one of two buckets. Each bucket leads to the other by the fingerprint alone, so \
             an entry can move over to make room. If neither bucket has the fingerprint, the item is not a member."
            .into(),
    }
}

/// `1 block`, `3 blocks`.
pub(super) fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
