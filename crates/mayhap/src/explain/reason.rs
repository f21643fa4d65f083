//! The reason for an answer, as a sentence.

use super::{
    BitLookup, BlockLookup, BucketLookup, CounterLookup, Explanation, Lookup, NumberLookup, RowLookup,
    RunLookup, SlotLookup, ValueLookup,
};
use crate::dual::DualAnswer;
use crate::say;

impl Explanation {
    /// The answer and the reason for it, in one sentence.
    ///
    /// ```
    /// # let seen = mayhap::Bloom::for_capacity(1_000, 0.01, 0)?;
    /// # let seen = mayhap::Filter::Bloom(seen);
    /// assert_eq!(seen.explain("ada").reason(), "no: bit 1 of 6, position 3,968, is clear");
    /// # Ok::<(), mayhap::BuildError>(())
    /// ```
    #[must_use]
    pub fn reason(&self) -> String {
        let (answer, why) = (self.verdict(), self.why());
        let non_members = if self.answer && !self.certain && self.expected_fpr > 0.0 {
            let rate = say::non_members(self.expected_fpr);
            let what = if rate.contains('%') { "false positives" } else { "a false positive" };
            format!("; now {rate} would be {what}")
        } else {
            String::new()
        };
        let no_form = match self.encoding {
            Some(encoding) if !self.has_form => {
                format!(" (the item cannot be encoded as {encoding}: no other program can have inserted it)")
            }
            _ => String::new(),
        };
        format!("{answer}: {why}{non_members}{no_form}")
    }

    /// The answer in a few words.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.answer, self.certain) {
            (true, true) => "yes",
            (true, false) => "maybe",
            (false, true) => "no",
            (false, false) => "no, but not certain after removals",
        }
    }

    fn why(&self) -> String {
        match &self.lookup {
            Lookup::Number(lookup) => of_number(lookup),
            Lookup::Bits(lookup) => of_bits(lookup, ""),
            Lookup::Blocks(lookup) => of_blocks(lookup, ""),
            Lookup::Counters(lookup) => of_counters(lookup),
            Lookup::Buckets(lookup) => of_buckets(lookup),
            Lookup::Run(lookup) => of_run(lookup),
            Lookup::Slots(lookup) => of_slots(lookup),
            Lookup::Rows(lookup) => of_rows(lookup),
            Lookup::Values(lookup) => of_value(lookup),
            Lookup::Layers(lookup) => {
                match (&lookup.layers[..], lookup.layers.iter().find(|layer| layer.bits.holds())) {
                    (_, Some(layer)) => of_bits(&layer.bits, &format!(" of layer {}", layer.number)),
                    ([only], None) => of_bits(&only.bits, ""),
                    (layers, None) => format!("each of the {} layers has a clear bit", layers.len()),
                }
            }
            Lookup::Generations(lookup) => {
                match lookup.generations.iter().find(|generation| generation.blocks.holds()) {
                    Some(generation) => {
                        of_blocks(&generation.blocks, &format!(" of generation {}", generation.age))
                    }
                    None => format!("each of the {} generations has a clear bit", lookup.generations.len()),
                }
            }
            Lookup::Dual(lookup) => {
                let removals = lookup.steps.len().saturating_sub(1);
                let times = if removals == 1 { "once".into() } else { format!("{removals} times") };
                match (lookup.answer, lookup.steps.last()) {
                    (DualAnswer::Never, Some(step)) => {
                        format!("never inserted: {}", of_bits(&step.added, " in the filter of insertions"))
                    }
                    (DualAnswer::Present, Some(step)) => {
                        let generation = match removals {
                            0 => String::new(),
                            _ => format!(" of generation {}", step.generation),
                        };
                        let added =
                            of_bits(&step.added, &format!("{generation} in the filter of insertions"));
                        let removed = step.removed.as_ref().map_or(String::new(), |removed| {
                            format!(
                                ", and {}",
                                of_bits(removed, &format!("{generation} in the filter of removals"))
                            )
                        });
                        format!("{added}{removed}")
                    }
                    _ => {
                        let wrong = match self.expected_false_no {
                            share if share > 0.0 => {
                                format!("; a no is wrong for {} of the members", say::rate(share))
                            }
                            _ => String::new(),
                        };
                        format!("maybe inserted and removed again {times}{wrong}")
                    }
                }
            }
        }
    }
}

fn of_number(lookup: &NumberLookup) -> String {
    let (first, clear) = (lookup.first, |set: bool| if set { "set" } else { "clear" });
    match (lookup.number, lookup.probe) {
        (None, _) => "the item is not a number, and a bitmap holds only numbers".into(),
        (Some(_), None) if lookup.bits == 0 => "the bitmap has no bits".into(),
        (Some(number), None) => {
            let last = say::count(first + (lookup.bits - 1));
            let (first, number) = (say::count(first), say::count(number));
            format!("the bitmap covers the numbers from {first} to {last}, and not {number}")
        }
        (Some(number), Some(probe)) if first == 0 => {
            format!("bit {} is {}", say::count(number), clear(probe.set))
        }
        (Some(number), Some(probe)) => {
            let (number, bit) = (say::count(number), say::count(probe.position));
            format!("{number} is bit {bit}, which is {}", clear(probe.set))
        }
    }
}

/// `of_what` names the array, if there are several.
fn of_bits(lookup: &BitLookup, of_what: &str) -> String {
    let all = lookup.probes.len();
    match lookup.first_clear() {
        _ if lookup.never_taken => "filters of this format do not store empty text".into(),
        Some((nth, probe)) => {
            format!("bit {nth} of {all}{of_what}, position {}, is clear", say::count(probe.position))
        }
        None => all_set(all, of_what),
    }
}

/// `of_what` names the array, if there are several.
fn of_blocks(lookup: &BlockLookup, of_what: &str) -> String {
    let all = lookup.probes().count();
    for block in &lookup.probed {
        let first = block.block * lookup.block_bits;
        if let Some(probe) = block.bits.iter().find(|probe| !probe.set) {
            let nth = lookup.probes().position(|other| other == probe).map_or(1, |at| at + 1);
            let (bit, block) = (probe.position - first, say::count(block.block));
            return format!("bit {nth} of {all}{of_what}, number {bit} of block {block}, is clear");
        }
    }
    let blocks: Vec<String> = lookup.probed.iter().map(|block| say::count(block.block)).collect();
    let in_blocks = match &blocks[..] {
        [only] => format!("block {only}"),
        several => format!("blocks {}", several.join(" and ")),
    };
    format!("{}, in {in_blocks}", all_set(all, of_what))
}

fn all_set(bits: usize, of_what: &str) -> String {
    match bits {
        1 => format!("its bit{of_what} is set"),
        2 => format!("both bits{of_what} are set"),
        all => format!("all {all} bits{of_what} are set"),
    }
}

fn of_counters(lookup: &CounterLookup) -> String {
    let all = lookup.probes.len();
    match (1..).zip(&lookup.probes).find(|(_, probe)| probe.count == 0) {
        Some((nth, probe)) => {
            format!("counter {nth} of {all}, position {}, is 0", say::count(probe.position))
        }
        None => {
            let lowest = lookup.probes.iter().map(|probe| probe.count).min().unwrap_or(0);
            let stuck = if lowest == lookup.limit { " or more" } else { "" };
            format!("all {all} counters are above 0, the lowest is {lowest}{stuck}")
        }
    }
}

fn of_buckets(lookup: &BucketLookup) -> String {
    let fingerprint = hex(lookup.fingerprint, lookup.fingerprint_bits);
    let tables = lookup.buckets.iter().map(|bucket| bucket.table).max().unwrap_or(0);
    let in_table = |table: usize| if tables == 0 { String::new() } else { format!(" of table {table}") };
    for bucket in &lookup.buckets {
        let found = |slot: &&Option<super::BucketSlot>| slot.is_some_and(|slot| slot.matches);
        if let Some(slot) = bucket.slots.iter().position(|slot| found(&slot)) {
            let table = in_table(bucket.table);
            let bucket = say::count(bucket.bucket);
            return format!("slot {slot} of bucket {bucket}{table} holds its fingerprint {fingerprint}");
        }
    }
    let taken = lookup.buckets.iter().flat_map(|bucket| bucket.slots.iter().flatten()).count();
    let buckets = lookup.buckets.len();
    match taken {
        0 if buckets == 1 => "its bucket is empty".into(),
        0 => format!("its {buckets} buckets are empty"),
        _ if buckets == 1 => {
            format!("its fingerprint {fingerprint} is not in its bucket, which holds {taken} others")
        }
        _ => format!(
            "its fingerprint {fingerprint} is in none of its {buckets} buckets, which hold {taken} others"
        ),
    }
}

fn of_run(lookup: &RunLookup) -> String {
    let home = say::count(lookup.home);
    let fingerprint = hex(lookup.fingerprint, lookup.fingerprint_bits);
    match (lookup.entries.iter().find(|entry| entry.matches), lookup.entries.len()) {
        (Some(entry), _) => {
            let slot = say::count(entry.slots.start);
            match entry.fingerprint_bits {
                0 => format!("slot {slot} of home {home} is void and matches every item of its home"),
                bits if lookup.any_length => {
                    format!("slot {slot} of home {home} holds the first {bits} bits of its fingerprint")
                }
                _ => format!("slot {slot} holds its remainder {fingerprint}, for home {home}"),
            }
        }
        (None, 0) => format!("nothing is stored for its home {home}"),
        (None, 1) if lookup.any_length => {
            format!("the only fingerprint stored for its home {home} is a different one")
        }
        (None, entries) if lookup.any_length => {
            format!("none of the {entries} fingerprints stored for its home {home} is its own")
        }
        (None, 1) => format!("the only remainder stored for its home {home} is not {fingerprint}"),
        (None, entries) => {
            format!("none of the {entries} remainders stored for its home {home} is {fingerprint}")
        }
    }
}

fn of_slots(lookup: &SlotLookup) -> String {
    let [fingerprint, sum] =
        [lookup.fingerprint, lookup.sum()].map(|number| hex(number, lookup.fingerprint_bits));
    match (lookup.stored.is_empty(), lookup.holds()) {
        (true, _) => "the filter is empty".into(),
        (_, true) => format!("the xor of its three slots is its fingerprint {fingerprint}"),
        _ => format!("the xor of its three slots is {sum}, and its fingerprint is {fingerprint}"),
    }
}

fn of_rows(lookup: &RowLookup) -> String {
    let all = lookup.columns.len();
    let odd = |parity: bool| if parity { "odd" } else { "even" };
    if lookup.layers.is_empty() {
        return "the filter is empty".into();
    }
    match (1..).zip(&lookup.columns).find(|(_, column)| column.parity != column.wanted) {
        Some((nth, column)) => format!(
            "column {nth} of {all} has an {} number of ones in its rows, but its fingerprint requires an {} one",
            odd(column.parity),
            odd(column.wanted)
        ),
        None => format!("all {all} columns have the parity that its fingerprint requires"),
    }
}

fn of_value(lookup: &ValueLookup) -> String {
    let value = say::count(lookup.value);
    let bucket = say::count(lookup.bucket);
    match (lookup.found, lookup.before.last(), lookup.behind.first()) {
        (true, ..) => format!("its value {value} is in bucket {bucket}"),
        (_, Some(&below), Some(&above)) => format!(
            "its value {value} is not in bucket {bucket}, where {} follows {}",
            say::count(above),
            say::count(below)
        ),
        (_, Some(&below), None) => {
            format!("its value {value} is not in bucket {bucket}, where {} is the last", say::count(below))
        }
        (_, None, Some(&above)) => {
            format!("its value {value} is not in bucket {bucket}, where {} is the first", say::count(above))
        }
        (_, None, None) => format!("its value {value} is not in bucket {bucket}, which is empty"),
    }
}

/// A fingerprint in hexadecimal, with leading zeros.
fn hex(number: u64, bits: u32) -> String {
    format!("{number:#0width$x}", width = 2 + (bits as usize).div_ceil(4))
}
