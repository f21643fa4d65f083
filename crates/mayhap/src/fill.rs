//! The real fill of a filter: its set bits, counted in full or in a sample.
//!
//! The counter of a filter is the number of items that changed it. It can be too low: a client may choose items that set
//! many bits, or the count may be lost. Lookups depend on the bits, so the rate computed from them is the true one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::blocked::{BlockedLayout, BlockedShape};
use crate::filter::Filter;

/// Words that a sample reads in one place: 1 KiB.
const PIECE_WORDS: usize = 128;

/// How much of a filter is read to compute its [`Fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    most_bytes: u64,
    seed: u64,
}

impl Sampling {
    /// All of it.
    pub const WHOLE: Self = Self { most_bytes: u64::MAX, seed: 0 };

    /// Reads all of a filter of up to `most_bytes`, and about `most_bytes` of a larger one: pieces of 1 KiB, one at a
    /// random place in each of equally many parts. A client that knows `seed` can set bits that are not read, so draw a
    /// new seed each time.
    #[must_use]
    pub const fn at_most(most_bytes: u64, seed: u64) -> Self {
        Self { most_bytes, seed }
    }

    /// The share of this sampling for a part of `bytes` out of `all` bytes.
    fn share(self, number: u64, bytes: u64, all: u64) -> Self {
        if all <= self.most_bytes {
            return Self::WHOLE;
        }
        let most = (u128::from(self.most_bytes) * u128::from(bytes) / u128::from(all)) as u64;
        Self { most_bytes: most.max(PIECE_WORDS as u64 * 8), seed: mixed(self.seed, number) }
    }
}

/// The fill of a filter according to its bits or slots, independent of its item count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// The share of bits, counters or slots in use.
    pub share: f64,
    /// The false-positive rate that follows from it.
    pub expected_fpr: f64,
    /// The relative deviation of that rate from the model's that chance alone can cause: six standard deviations,
    /// including those of a sample. 0 if the filter counts its slots.
    pub noise: f64,
}

impl Fill {
    /// The fill of a filter that counts its used slots.
    const fn counted(share: f64, expected_fpr: f64) -> Self {
        Self { share, expected_fpr, noise: 0.0 }
    }

    /// The rate minus the possible deviation by chance. If it is above the model's rate, the cause is not chance.
    #[must_use]
    pub fn certain_fpr(&self) -> f64 {
        self.expected_fpr / (1.0 + self.noise)
    }

    /// The fill of `bits` bits, with `probes` bits per item.
    pub(crate) fn of_bits(words: &[AtomicU64], bits: u64, probes: u32, sampling: Sampling) -> Self {
        let (mut ones, mut read) = (0, 0);
        let sampled = each_piece(words, 1, sampling, |piece| {
            ones += ones_in(piece);
            read += piece.len() as u64 * 64;
        });
        let bits_read = if sampled { read } else { bits };
        let share = (ones as f64 / bits_read.max(1) as f64).min(1.0);
        let spread = DEVIATIONS * f64::from(probes);
        let of_sample = if sampled { spread / (ones.max(1) as f64).sqrt() } else { 0.0 };
        let noise = of_sample + spread / (share * bits as f64).max(1.0).sqrt();
        Self { share, expected_fpr: share.powi(probes.cast_signed()), noise }
    }

    /// The fill of consecutive blocks of `shape`.
    pub(crate) fn of_blocks(words: &[AtomicU64], shape: &BlockedShape, sampling: Sampling) -> Self {
        let mut blocks = Blocks::default();
        let unit = block_words(shape);
        let words = &words[..((shape.bits() / 64) as usize).min(words.len())];
        each_piece(words, unit, sampling, |piece| {
            piece.chunks_exact(unit).for_each(|block| blocks.add(block, shape));
        });
        blocks.fill(shape)
    }

    /// The fill of several filters together, where one *maybe* makes the answer *maybe*.
    pub(crate) fn of_any(fills: impl Iterator<Item = (Self, u64)>) -> Self {
        let (mut used, mut all, mut no, mut noise) = (0.0, 0.0, 1.0, 0.0);
        for (fill, bits) in fills {
            used += fill.share * bits as f64;
            all += bits as f64;
            no *= 1.0 - fill.expected_fpr;
            noise += fill.noise * fill.expected_fpr;
        }
        let expected_fpr: f64 = 1.0 - no;
        let noise = if expected_fpr > 0.0 { noise / expected_fpr } else { 0.0 };
        Self { share: if all > 0.0 { used / all } else { 0.0 }, expected_fpr, noise }
    }
}

const DEVIATIONS: f64 = 6.0;

/// Words of one block.
pub(crate) const fn block_words(shape: &BlockedShape) -> usize {
    match shape.layout() {
        BlockedLayout::Split256 => 4,
        BlockedLayout::Line512 => 8,
    }
}

/// Totals over the blocks read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocks {
    count: u64,
    ones: u64,
    rates: f64,
    squares: f64,
}

impl Blocks {
    /// Adds a block. The rate is that of non-members in this block.
    pub(crate) fn add(&mut self, block: &[u64], shape: &BlockedShape) {
        let ones = ones_in(block);
        let rate = match shape.layout() {
            // One bit in each of eight halves of words.
            BlockedLayout::Split256 => block.iter().fold(1.0, |rate, &word| {
                let (low, high) = (word as u32, (word >> 32) as u32);
                rate * f64::from(low.count_ones()) * f64::from(high.count_ones()) / (32.0 * 32.0)
            }),
            BlockedLayout::Line512 => (ones as f64 / 512.0).powi(shape.probes().cast_signed()),
        };
        self.count += 1;
        self.ones += ones;
        self.rates += rate;
        self.squares += rate * rate;
    }

    pub(crate) fn fill(&self, shape: &BlockedShape) -> Fill {
        let count = self.count.max(1) as f64;
        let rate = self.rates / count;
        let deviation = (self.squares / count - rate * rate).max(0.0).sqrt();
        let of_blocks = if rate > 0.0 { deviation / rate / count.sqrt() } else { 0.0 };
        let of_bits = f64::from(shape.probes()) / (self.ones.max(1) as f64).sqrt();
        let regions = shape.lines_per_item().max(1);
        Fill {
            share: self.ones as f64 / (count * block_words(shape) as f64 * 64.0),
            expected_fpr: rate.powi(regions.cast_signed()),
            noise: DEVIATIONS * f64::from(regions) * of_blocks.max(of_bits),
        }
    }
}

fn ones_in(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Calls `each` with all of `words`, or with as many as `sampling` allows, in pieces of whole units of `unit` words.
/// Returns whether it was a sample.
pub(crate) fn each_piece(
    words: &[AtomicU64],
    unit: usize,
    sampling: Sampling,
    mut each: impl FnMut(&[u64]),
) -> bool {
    let piece = (PIECE_WORDS / unit).max(1) * unit;
    // The compiler vectorises counting only over plain words.
    let mut copy = vec![0; piece.min(words.len())];
    let mut hand = |words: &[AtomicU64]| {
        copy.iter_mut().zip(words).for_each(|(to, from)| *to = from.load(Relaxed));
        each(&copy[..words.len()]);
    };
    if size_of_val(words) as u64 <= sampling.most_bytes {
        words.chunks(piece).for_each(hand);
        return false;
    }
    let units = words.len() / unit;
    let pieces = ((sampling.most_bytes as usize / 8 / piece).max(1)).min(units / (piece / unit)).max(1);
    for number in 0..pieces {
        let part = |number: usize| (units as u128 * number as u128 / pieces as u128) as usize;
        let (from, to) = (part(number), part(number + 1));
        let places = (to - from).saturating_sub(piece / unit) as u64 + 1;
        let start = from + (mixed(sampling.seed, number as u64) % places) as usize;
        let start = start * unit;
        hand(&words[start..(start + piece).min(words.len())]);
    }
    true
}

/// SplitMix64.
const fn mixed(seed: u64, number: u64) -> u64 {
    let mut mixed = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The fill of several parts in different places. Each part gets its share of the sample.
pub(crate) fn parts<T>(
    parts: &[T],
    sampling: Sampling,
    bits: impl Fn(&T) -> u64,
    fill: impl Fn(&T, Sampling) -> Fill,
) -> Fill {
    let all = parts.iter().map(|part| bits(part) / 8).sum();
    Fill::of_any(parts.iter().enumerate().map(|(number, part)| {
        let sampling = sampling.share(number as u64, bits(part) / 8, all);
        (fill(part, sampling), bits(part))
    }))
}

impl Filter {
    /// How full it is according to its bits or slots. `None` for immutable kinds, which have no fill.
    #[must_use]
    pub fn fill(&self, sampling: Sampling) -> Option<Fill> {
        Some(match self {
            Self::Bloom(bloom) => bloom.fill_by(sampling),
            Self::BlockedBloom(blocked) => blocked.fill_by(sampling),
            Self::ScalableBloom(scalable) => scalable.fill_by(sampling),
            Self::DualBloom(dual) => dual.fill_by(sampling),
            Self::Window(window) => window.fill_by(sampling),
            Self::Bitmap(bitmap) => bitmap.fill_by(sampling),
            Self::WideBloom(wide) => wide.fill_by(sampling),
            Self::CountingBloom(filter) => Fill::counted(filter.fill().min(1.0), filter.expected_fpr()),
            Self::Cuckoo(filter) => Fill::counted(filter.fill(), filter.expected_fpr()),
            Self::GrowableCuckoo(filter) => Fill::counted(filter.fill(), filter.expected_fpr()),
            Self::ScalableCuckoo(filter) => Fill::counted(filter.fill(), filter.expected_fpr()),
            Self::DLeft(filter) => Fill::counted(filter.fill(), filter.expected_fpr()),
            Self::Quotient(filter) => Fill::counted(filter.fill(), filter.expected_fpr()),
            Self::Growing(filter) => Fill::counted(filter.fill(), filter.expected_fpr()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockedBloom, Bloom, BuildError, DualBloom, ItemHash, ScalableBloom, Window};

    /// A full count and samples agree within the noise that is reported.
    #[test]
    fn a_sample_agrees_with_a_full_count() -> Result<(), BuildError> {
        let mut bloom = Bloom::for_capacity(400_000, 0.01, 1)?;
        let mut blocked = BlockedBloom::for_capacity(400_000, 0.01, 1)?;
        let mut window = Window::of_items(400_000, 0.01, 1)?;
        for item in 0..400_000_u64 {
            bloom.insert(&item);
            blocked.insert(&item);
            window.insert(&item);
        }
        let whole = [
            bloom.fill_by(Sampling::WHOLE),
            blocked.fill_by(Sampling::WHOLE),
            window.fill_by(Sampling::WHOLE),
        ];
        let counted = [bloom.fill(), blocked.fill(), window.fill()];
        let modelled = [bloom.expected_fpr(), blocked.expected_fpr(), window.expected_fpr()];
        for seed in 0..20 {
            let sampling = Sampling::at_most(32 << 10, seed);
            let sampled = [bloom.fill_by(sampling), blocked.fill_by(sampling), window.fill_by(sampling)];
            for kind in 0..3 {
                let (whole, sampled, modelled) = (whole[kind], sampled[kind], modelled[kind]);
                assert!((whole.share - counted[kind]).abs() < 1e-9, "{kind}: {whole:?} {}", counted[kind]);
                assert!(
                    (whole.expected_fpr / modelled - 1.0).abs() < whole.noise + 0.02,
                    "{kind}: {whole:?}"
                );
                assert!(whole.noise < sampled.noise && sampled.noise < 0.8, "{kind}: {sampled:?}");
                assert!((sampled.share - whole.share).abs() < 0.01, "{kind}: {whole:?} {sampled:?}");
                assert!(
                    (sampled.expected_fpr / whole.expected_fpr - 1.0).abs() < sampled.noise,
                    "{kind}: {whole:?} {sampled:?}"
                );
            }
        }
        Ok(())
    }

    /// Items that set only new bits, as an attacker who can compute the positions would choose them.
    #[test]
    fn chosen_items_raise_the_fill_but_not_the_count() -> Result<(), BuildError> {
        let mut bloom = Bloom::for_capacity(10_000, 0.01, 1)?;
        let mut chosen = 0;
        for number in 0_u64.. {
            let hash: ItemHash = bloom.hash(&number);
            let mut alone = Bloom::with_shape(*bloom.shape(), 1)?;
            alone.insert_hash(hash);
            let before = bloom.ones();
            let mut with = bloom.try_clone()?;
            with.insert_hash(hash);
            // All of its bits are new.
            if with.ones() == before + alone.ones() {
                bloom = with;
                chosen += 1;
            }
            if chosen == 2_000 {
                break;
            }
        }
        let fill = bloom.fill_by(Sampling::WHOLE);
        let probes = f64::from(bloom.shape().probes());
        assert!((fill.share - 2_000.0 * probes / bloom.shape().bits() as f64).abs() < 0.002, "{fill:?}");
        assert!(fill.certain_fpr() > 1.2 * bloom.expected_fpr(), "{fill:?} {}", bloom.expected_fpr());
        Ok(())
    }

    #[test]
    fn layers_and_pairs_are_all_read() -> Result<(), Box<dyn std::error::Error>> {
        let mut scalable = ScalableBloom::for_capacity(1_000, 0.01, 1)?;
        let mut dual = DualBloom::for_capacity(10_000, 100, 0.01, 1)?;
        for item in 0..20_000_u64 {
            scalable.insert(&item)?;
            if item < 10_000 {
                dual.insert(&item)?;
            }
        }
        for sampling in [Sampling::WHOLE, Sampling::at_most(8 << 10, 3)] {
            let fill = scalable.fill_by(sampling);
            let rate = scalable.expected_fpr();
            assert!((fill.expected_fpr / rate - 1.0).abs() < fill.noise, "{fill:?} {rate}");
            let fill = dual.fill_by(sampling);
            assert!((fill.expected_fpr / dual.expected_fpr() - 1.0).abs() < fill.noise, "{fill:?}");
        }
        let empty = Bloom::for_capacity(10, 0.01, 1)?.fill_by(Sampling::WHOLE);
        assert_eq!((empty.share, empty.expected_fpr), (0.0, 0.0));
        Ok(())
    }

    #[test]
    fn every_word_is_read_once_or_a_sample_covers_every_part() {
        let words: Vec<AtomicU64> = (0..10_007).map(AtomicU64::new).collect();
        let mut seen = Vec::new();
        assert!(!each_piece(&words, 1, Sampling::WHOLE, |piece| seen.extend_from_slice(piece)));
        assert_eq!(seen, (0..10_007).collect::<Vec<u64>>());
        for (unit, most) in [(1, 8 << 10), (4, 16 << 10), (8, 1), (24, 10 << 10), (500, 40 << 10)] {
            let mut pieces = Vec::new();
            assert!(each_piece(&words, unit, Sampling::at_most(most, 7), |piece| pieces.push(piece.to_vec())));
            let read: usize = pieces.iter().map(|piece| piece.len() * 8).sum();
            assert!(read as u64 <= most.max(1024.max(unit as u64 * 8)), "{unit}: {read}");
            assert!(pieces.iter().all(|piece| piece[0] % unit as u64 == 0 && piece.len() % unit == 0));
            assert!(pieces.windows(2).all(|pair| pair[0].last() < pair[1].first()), "{unit}");
        }
    }
}
