//! The coder: numbers to bits and back, by Golomb–Rice.
//!
//! ```text
//! number = quotient · 2^low + remainder          low = 3, number 21 = 2·8 + 5:   1 1 0 1 0 1
//! code   = quotient ones, a zero, low bits of remainder                          ─┬─ │ ──┬──
//!                                                                               two  │   5
//!                                                                                    end of the unary part
//! ```
//!
//! The most significant bit comes first, in bytes and in words, as in BIP-158: its filters are this coder
//! with `low = 19` over plain differences. A stream is held in the words of a [`Lines`](crate::store::Lines),
//! whose bytes in memory and in files are the stream's bytes in order.

use std::sync::atomic::{AtomicU64, Ordering};

/// Collects bits into words: sixty-four make a word, the first of them the most significant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packer {
    /// The bits that do not fill a word yet, at its high end, followed by zeroes.
    pending: u64,
    /// Their number, 0 to 63.
    held: u32,
}

impl Packer {
    /// Adds the low `count` bits of `bits`, at most 64, and calls `emit` with each full word. Bits above must
    /// be zero.
    #[inline(always)]
    pub(crate) fn put(&mut self, bits: u64, count: u32, emit: &mut impl FnMut(u64)) {
        debug_assert!(count <= 64 && (count == 64 || bits >> count == 0));
        if count == 0 {
            return;
        }
        let aligned = bits << (64 - count);
        self.pending |= aligned >> self.held;
        if self.held + count < 64 {
            self.held += count;
            return;
        }
        emit(self.pending);
        // The bits that did not fit: the last `held + count - 64`. Shifted in two steps, because `held` may
        // be 0.
        self.pending = aligned << 1 << (63 - self.held);
        self.held = self.held + count - 64;
    }

    /// Adds the code of `number`.
    #[inline(always)]
    pub(crate) fn put_rice(&mut self, number: u64, low: u32, emit: &mut impl FnMut(u64)) {
        let (mut quotient, remainder) = (number >> low, number & ones(low));
        while quotient > 0 && quotient + u64::from(low) >= 64 {
            let run = quotient.min(64);
            self.put(ones(run as u32), run as u32, emit);
            quotient -= run;
        }
        let quotient = quotient as u32;
        // Its ones, the zero after them and the remainder are at most 64 bits now.
        self.put(ones(quotient) << 1 << low | remainder, quotient + 1 + low, emit);
    }

    /// Returns the last word, padded with zeroes, or `None` if no bits are left.
    pub(crate) fn finish(self) -> Option<u64> {
        (self.held > 0).then_some(self.pending)
    }
}

/// Returns the bits in the code of `number`.
#[inline(always)]
pub(crate) const fn length(number: u64, low: u32) -> u64 {
    (number >> low) + 1 + low as u64
}

/// Returns `count` ones, at most 64.
#[inline(always)]
const fn ones(count: u32) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}

/// Converts a word of the stream to or from its stored form: first byte first.
#[inline(always)]
pub(crate) const fn stored(word: u64) -> u64 {
    word.swap_bytes()
}

/// Returns word `index` of the stream, or 0 past its end.
#[inline(always)]
pub(crate) fn word(words: &[AtomicU64], index: usize) -> u64 {
    words.get(index).map_or(0, |word| stored(word.load(Ordering::Relaxed)))
}

/// Returns the 64 bits of the stream from bit `at` on, the first of them the most significant, with zeroes
/// past its end.
#[inline(always)]
fn window(words: &[AtomicU64], at: u64) -> u64 {
    let (index, skip) = ((at / 64) as usize, (at % 64) as u32);
    word(words, index) << skip | word(words, index + 1) >> 1 >> (63 - skip)
}

/// Returns the top `count` bits of `bits`, at most 63.
#[inline(always)]
const fn top(bits: u64, count: u32) -> u64 {
    bits >> 1 >> (63 - count)
}

/// Reads one number after the other. This is the plain reader, which all faster ones must agree with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    words: &'a [AtomicU64],
    /// The next bit, and the end.
    at: u64,
    end: u64,
}

impl<'a> Reader<'a> {
    /// Reads the bits from `at` up to, but not including, `end`.
    #[inline(always)]
    pub(crate) const fn new(words: &'a [AtomicU64], at: u64, end: u64) -> Self {
        Self { words, at, end }
    }

    /// Returns the position of the next bit.
    #[inline(always)]
    pub(crate) const fn at(&self) -> u64 {
        self.at
    }

    /// Returns the next number, or `None` at the end or if the end cuts off its code.
    #[inline(always)]
    pub(crate) fn next(&mut self, low: u32) -> Option<u64> {
        if self.at >= self.end {
            return None;
        }
        let bits = window(self.words, self.at);
        let run = (!bits).leading_zeros();
        if run + 1 + low > 64 {
            return self.next_long(low);
        }
        self.at += u64::from(run + 1 + low);
        // Shifted in two steps: with no low bits the run may be 63 long.
        (self.at <= self.end).then_some(u64::from(run) << low | top(bits << run << 1, low))
    }

    /// [`next`](Self::next) for a code of more than 64 bits.
    #[cold]
    fn next_long(&mut self, low: u32) -> Option<u64> {
        let mut quotient = 0;
        loop {
            if self.at >= self.end {
                return None;
            }
            let run = (!window(self.words, self.at)).leading_zeros();
            quotient += u64::from(run);
            self.at += u64::from(run);
            if run < 64 {
                break;
            }
        }
        let remainder = top(window(self.words, self.at + 1), low);
        self.at += 1 + u64::from(low);
        // Quotients of valid streams fit. Those of forged ones lose their high bits, which does no harm.
        (self.at <= self.end).then_some(quotient << low | remainder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

    use mayhap_testkit::rng::Rng;
    use serde_json::Value;
    use siphasher::sip::SipHasher24;

    fn coded(numbers: &[u64], low: u32) -> (Vec<u64>, u64) {
        let (mut words, mut packer) = (Vec::new(), Packer::default());
        for &number in numbers {
            packer.put_rice(number, low, &mut |word| words.push(word));
        }
        words.extend(packer.finish());
        (words, numbers.iter().map(|&number| length(number, low)).sum())
    }

    fn atomics(words: &[u64]) -> Vec<AtomicU64> {
        words.iter().map(|&word| AtomicU64::new(stored(word))).collect()
    }

    #[test]
    fn reader_returns_numbers_of_any_size() {
        let mut rng = Rng::new(3);
        for low in [0, 1, 7, 19, 33, 56] {
            let numbers: Vec<u64> = (0..500)
                .map(|i| {
                    // Quotients from 0 up to several words of ones.
                    let quotient = if i % 50 == 0 { rng.below(300) } else { rng.below(4) };
                    quotient << low | rng.next_u64() & ones(low)
                })
                .map(|number| if low == 56 { number & ones(62) } else { number })
                .collect();
            let (words, bits) = coded(&numbers, low);
            assert_eq!(words.len() as u64, bits.div_ceil(64));
            let words = atomics(&words);
            let mut reader = Reader::new(&words, 0, bits);
            for (i, number) in numbers.iter().enumerate() {
                assert_eq!(reader.next(low), Some(*number), "number {i}, {low} low bits");
            }
            assert_eq!(reader.next(low), None);
        }
    }

    #[test]
    fn reader_returns_none_for_a_code_cut_off() {
        let (words, bits) = coded(&[5, 700], 3);
        let words = atomics(&words);
        for end in 0..bits {
            let mut reader = Reader::new(&words, 0, end);
            let read = std::iter::from_fn(|| reader.next(3)).count();
            assert_eq!(read, usize::from(end >= length(5, 3)), "{end} bits of {bits}");
        }
        let endless = atomics(&[u64::MAX; 4]);
        assert_eq!(Reader::new(&endless, 0, 256).next(3), None);
        assert_eq!(Reader::new(&endless, 1 << 50, 1 << 51).next(0), Some(0), "zeroes past the end");
    }

    fn from_hex(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    fn items(case: &Value) -> Vec<Vec<u8>> {
        if let Some(listed) = case["items_hex"].as_array() {
            return listed.iter().map(|item| from_hex(item.as_str().unwrap())).collect();
        }
        let generator = &case["items_generator"];
        let number = |name: &str| generator[name].as_u64().unwrap();
        let prefix = generator["prefix"].as_str().unwrap();
        (number("from")..number("to_exclusive")).map(|i| format!("{prefix}{i}").into_bytes()).collect()
    }

    /// The filters of ten blocks, and of other parameters, byte for byte.
    #[test]
    fn bip158_filters_have_exactly_these_bytes() {
        let blocks = include_str!("../../../mayhap-formats/tests/vectors/bitcoin/bip158_items.json");
        let generic = include_str!("../../../mayhap-formats/tests/vectors/bitcoin/gcs_generic.json");
        let mut seen = 0;
        for text in [blocks, generic] {
            let file: Value = serde_json::from_str(text).unwrap();
            for case in file["cases"].as_array().unwrap() {
                let parameter = |name: &str| case[name].as_u64().or(file[name].as_u64()).unwrap();
                let (low, m) = (parameter("P") as u32, parameter("M"));
                let key: [u8; 16] = from_hex(case["siphash_key_hex"].as_str().unwrap()).try_into().unwrap();
                let expected = from_hex(case["filter_hex"].as_str().unwrap());
                let mut items = items(case);
                items.sort();
                items.dedup();
                let range = items.len() as u64 * m;
                let value = |item: &Vec<u8>| {
                    let mut hasher = SipHasher24::new_with_key(&key);
                    hasher.write(item);
                    crate::hash::reduce(hasher.finish(), range)
                };
                let mut values: Vec<u64> = items.iter().map(value).collect();
                values.sort_unstable();
                let mut last = 0;
                let gaps: Vec<u64> =
                    values.iter().map(|&value| value - std::mem::replace(&mut last, value)).collect();
                let (words, bits) = coded(&gaps, low);
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
                let behind_the_count = match expected[0] {
                    0..=0xfc => 1,
                    0xfd => 3,
                    _ => 5,
                };
                assert_eq!(bytes[..bits.div_ceil(8) as usize], expected[behind_the_count..], "{case}");
                let words = atomics(&words);
                let mut reader = Reader::new(&words, 0, bits);
                assert!(gaps.iter().all(|&gap| reader.next(low) == Some(gap)));
                seen += 1;
            }
        }
        assert!(seen >= 12, "{seen} cases");
    }
}
