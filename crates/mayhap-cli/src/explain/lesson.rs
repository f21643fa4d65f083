//! How a kind of filter works, in a few sentences, with the numbers of the one at hand.

use mayhap::advise::say;
use mayhap::explain::{Explanation, Lookup};
use mayhap::{Filter, Kind};

/// What to know about the filter in order to follow the steps.
pub(super) fn lesson(filter: &Filter, explanation: &Explanation) -> String {
    match &explanation.lookup {
        Lookup::Number(lookup) => format!(
            "A bitmap has one bit for every number there may be, here {}. Nothing is hashed, so both answers are certain.",
            say::count(lookup.bits)
        ),
        Lookup::Bits(lookup) => {
            let (bits, probes) = (say::count(lookup.bits), lookup.probes.len());
            format!(
                "A Bloom filter is an array of bits, here {bits}. The hash of an item gives {} in it, and inserting the item sets {}: \
                 if one of them is clear, the item was never inserted. If all are set, the item did it, or others did together.",
                plural(probes, "position"),
                if probes == 1 { "that bit" } else { "those bits" },
            )
        }
        Lookup::Blocks(lookup) => {
            let probes = lookup.probes().count();
            format!(
                "A blocked Bloom filter keeps all bits of an item in {} of {} bits: {} to wait for. The hash chooses among {} \
                 blocks, then {probes} bits. Inserting the item sets them: if one is clear, it was never inserted.",
                plural(lookup.probed.len(), "block"),
                lookup.block_bits,
                plural(lookup.probed.len(), "cache line"),
                say::count(lookup.blocks),
            )
        }
        Lookup::Counters(lookup) => format!(
            "A counting Bloom filter has counters where a Bloom filter has bits, here {}. Inserting an item raises {} of them, removing \
             it lowers the same: if one is 0, the item is not in. Counters stop at {}.",
            say::count(lookup.counters),
            lookup.probes.len(),
            lookup.limit
        ),
        Lookup::Dual(_) => "A dual Bloom filter is two: one of what was put in, one of what was removed. An item is in if the first holds it and \
             the second does not. If both do, it was removed, and its next generation, another hash, says whether it was put in again."
            .into(),
        Lookup::Layers(lookup) => format!(
            "A scalable Bloom filter adds a larger layer whenever the newest is full, here {} so far; each is a Bloom filter. An item is \
             mayhap in if all its bits are set in one layer. The newest is asked first, as it holds most items.",
            lookup.layers.len()
        ),
        Lookup::Buckets(_) => buckets(filter),
        Lookup::Run(lookup) => {
            let homes = say::count(lookup.homes);
            if lookup.any_length {
                format!(
                    "A growing filter has {homes} homes. The hash gives an item its home, and further bits are its fingerprint. What belongs \
                     to a home is stored in a run of neighbouring slots. When the table doubles, every fingerprint gives a bit to its home, so \
                     old ones are shorter: one matches if the item's fingerprint begins with it."
                )
            } else {
                format!(
                    "A quotient filter has {homes} homes. The hash gives an item its home and a remainder of {} bits, which is stored. What \
                     belongs to a home stands in a run of neighbouring slots, in ascending order, with counts: if the remainder is not \
                     in the run, the item is not in.",
                    lookup.fingerprint_bits
                )
            }
        }
        Lookup::Slots(lookup) => format!(
            "{} has {} slots of {} bits, filled once so that for every member the three slots its hash points to add up (by exclusive or) \
             to its fingerprint. For a non-member they add up to anything: to its fingerprint once in {}.",
            match filter.kind() {
                Kind::Xor => "An xor filter",
                _ => "A binary fuse filter",
            },
            say::count(lookup.slots),
            lookup.fingerprint_bits,
            say::count(1 << lookup.fingerprint_bits),
        ),
        Lookup::Rows(_) => "A ribbon filter is the solution of a system of equations, one for every member: of 64 neighbouring rows some count, and in \
             every column the ones among those are an even or odd number, as the member's fingerprint says. For a non-member each column \
             agrees by chance, every other time."
            .into(),
        Lookup::Values(lookup) => format!(
            "A Golomb-coded set makes every item a number below {} and stores the sorted numbers as gaps, in few bits. An index leads to \
             the bucket of a number; its gaps are added up until they reach the number, or pass it: then the item is not in.",
            say::count(lookup.range)
        ),
        Lookup::Generations(lookup) => format!(
            "A window remembers in {} generations, each a blocked Bloom filter; the newest takes new items, and the oldest is emptied to become \
             the next. An item is mayhap in the window if all its bits are set in one of them.",
            lookup.generations.len()
        ),
        _ => String::new(),
    }
}

fn buckets(filter: &Filter) -> String {
    match filter.kind() {
        Kind::DLeft => "A d-left filter has four tables. The hash gives an item a fingerprint and one bucket of eight slots in each; inserting puts the \
             fingerprint into the emptiest of the four, or counts it there: if none of them has it, the item is not in."
            .into(),
        Kind::ScalableCuckoo => "RedisBloom's cuckoo filter has one table more whenever the newest is full. The hash gives an item a fingerprint of one byte and two \
             buckets in every table: if none of them has it, the item is not in."
            .into(),
        Kind::Fingerprints => "A set of fingerprints keeps the low half of the hash, or what is left of it once the set was cut, in the cache line it names; where \
             that is full, in the next one with room. The first line that is not full and does not have it ends the search: the item is not in."
            .into(),
        _ => "A cuckoo filter stores a short fingerprint of every item in one of two buckets. Each leads to the other by the fingerprint alone, so \
             what is in the way can move over. If neither bucket has the fingerprint, the item is not in."
            .into(),
    }
}

/// `1 block`, `3 blocks`.
pub(super) fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
