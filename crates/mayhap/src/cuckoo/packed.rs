//! Packed buckets: `slots` fingerprints of any width, one after the other.
//!
//! A bucket is read in parts of at most 64 bits, all fingerprints of a part together. To find a fingerprint,
//! XOR it into all lanes and look for a lane of zeroes.
//!
//! ```text
//!          lane 3       lane 2       lane 1       lane 0
//! part   │ 000000000000│ 101100111000│ 010111000011│ 110000000001 │   one free slot, always the last
//! xor      010111000011  010111000011  010111000011  010111000011     the fingerprint in every lane
//! zero?    no            no            yes: found                      two more instructions for all lanes
//! ```
//!
//! Free slots follow the occupied ones. The top bits of the free lanes show how much room there is: the mask
//! with more of them is the larger number. Buckets from hostile bytes may violate this. That leads to odd
//! choices, but to nothing worse.

use std::sync::atomic::AtomicU64;

use super::buckets::{BucketLook, Buckets, Content, MAX_SLOTS, bits_at, set_bits};
use crate::store::Lines;

/// Buckets of `PARTS` parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed<const PARTS: usize> {
    slots: u32,
    /// Bits of a lane.
    width: u32,
    part_bits: u32,
    /// The lowest bit of every lane of a part.
    ones: u64,
    /// The highest bit of every lane of a part.
    highs: u64,
}

/// Returns the bits that a fingerprint of `width` bits takes.
///
/// Two lanes of 31 bits that begin anywhere in a byte can span nine bytes, which do not fit a word. All other
/// widths fit.
pub(super) const fn lane_bits(width: u32) -> u32 {
    if width == 31 { 32 } else { width }
}

/// Returns the parts of a bucket of `slots` fingerprints of `width` bits: as few as possible with at most 64
/// bits each.
pub(super) const fn parts(slots: u32, width: u32) -> u32 {
    (slots * lane_bits(width)).div_ceil(64).next_power_of_two()
}

impl<const PARTS: usize> Packed<PARTS> {
    pub(super) const fn new(slots: u32, width: u32) -> Self {
        let (lanes, width) = (slots / PARTS as u32, lane_bits(width));
        let (mut ones, mut lane) = (0, 0);
        while lane < lanes {
            ones |= 1 << (lane * width);
            lane += 1;
        }
        Self { slots, width, part_bits: lanes * width, ones, highs: ones << (width - 1) }
    }

    #[inline(always)]
    fn start_of(&self, bucket: u64, part: usize) -> u64 {
        bucket * self.bucket_bits() + part as u64 * u64::from(self.part_bits)
    }

    /// Returns one part of a bucket, with unrelated bits above it.
    #[inline(always)]
    fn part(&self, words: &[AtomicU64], bucket: u64, part: usize) -> u64 {
        bits_at(words, self.start_of(bucket, part))
    }

    /// Not zero if a lane is zero. It does not show which one: a lane above a zero lane may be marked too.
    #[inline(always)]
    const fn some_zero(&self, lanes: u64) -> u64 {
        lanes.wrapping_sub(self.ones) & !lanes & self.highs
    }

    /// Returns the highest bit of every lane that is zero.
    #[inline(always)]
    const fn zeroes(&self, lanes: u64) -> u64 {
        let below = self.highs - self.ones;
        !(((lanes & below) + below) | lanes) & self.highs
    }
}

impl<const PARTS: usize> Buckets for Packed<PARTS> {
    #[inline(always)]
    fn slots(&self) -> usize {
        self.slots as usize
    }

    #[inline(always)]
    fn bucket_bits(&self) -> u64 {
        u64::from(self.part_bits) * PARTS as u64
    }

    #[inline(always)]
    fn holds(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> bool {
        let everywhere = u64::from(fingerprint).wrapping_mul(self.ones);
        let mut found = 0;
        for part in 0..PARTS {
            found |= self.some_zero(self.part(words, bucket, part) ^ everywhere);
        }
        found != 0
    }

    #[inline(always)]
    fn room(&self, words: &[AtomicU64], bucket: u64) -> u64 {
        self.look(words, bucket, 0).room
    }

    #[inline(always)]
    fn look(&self, words: &[AtomicU64], bucket: u64, fingerprint: u32) -> BucketLook {
        let everywhere = u64::from(fingerprint).wrapping_mul(self.ones);
        let (mut found, mut room) = (0, 0);
        for part in 0..PARTS {
            let lanes = self.part(words, bucket, part);
            found |= self.some_zero(lanes ^ everywhere);
            let free = self.zeroes(lanes);
            room += if PARTS == 1 { free } else { u64::from(free.count_ones()) };
        }
        BucketLook { holds: found != 0, room }
    }

    #[inline]
    fn read(&self, words: &[AtomicU64], bucket: u64) -> Content {
        let mut content = [0; MAX_SLOTS];
        let lanes = self.slots as usize / PARTS;
        for (part, places) in content.chunks_mut(lanes).take(PARTS).enumerate() {
            let bits = self.part(words, bucket, part);
            for (lane, place) in (0..).zip(places) {
                *place = (bits >> (lane * self.width) & (u64::MAX >> (64 - self.width))) as u32;
            }
        }
        content
    }

    #[inline(always)]
    fn put(&self, lines: &mut Lines, bucket: u64, fingerprint: u32) {
        for part in 0..PARTS {
            let free = self.zeroes(self.part(lines.words(), bucket, part));
            if free != 0 {
                let lane = u64::from(free.trailing_zeros() + 1 - self.width);
                let at = self.start_of(bucket, part) + lane;
                return set_bits(lines.words_mut(), at, self.width, u64::from(fingerprint));
            }
        }
    }

    fn replace(&self, lines: &mut Lines, bucket: u64, from: u32, to: u32) {
        let content = self.read(lines.words(), bucket);
        let words = lines.words_mut();
        let mut write = |place: usize, fingerprint: u32| {
            let start = bucket * self.bucket_bits() + place as u64 * u64::from(self.width);
            set_bits(words, start, self.width, u64::from(fingerprint));
        };
        let Some(place) = content.iter().position(|&fingerprint| fingerprint == from) else { return };
        if to != 0 {
            return write(place, to);
        }
        // The last fingerprint fills the gap.
        let last = content.iter().rposition(|&fingerprint| fingerprint != 0).unwrap_or(place);
        write(place, content[last]);
        write(last, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap_testkit::rng::Rng;

    /// Compares with plain vectors: every width, every number of slots, buckets that span words and have
    /// neighbours.
    fn like_plain_vectors<const PARTS: usize>(slots: u32, width: u32) {
        assert_eq!(parts(slots, width), PARTS as u32);
        let packed = Packed::<PARTS>::new(slots, width);
        let mut lines = Lines::zeroed(5).unwrap();
        let buckets = (5 * 512 - 64) / packed.bucket_bits();
        let mut truth = vec![Vec::<u32>::new(); buckets as usize];
        let mut rng = Rng::new(u64::from(slots * 100 + width));
        let most = u64::from(u32::MAX >> (32 - width));
        // Extremes, and a few values often: borrows would show in lanes that differ by one.
        let any = |rng: &mut Rng| {
            (1 + [0, 1, most - 1, most / 2, rng.below(most)][rng.below(5) as usize].min(most - 1)) as u32
        };
        for _ in 0..3_000 {
            let bucket = rng.below(buckets);
            let held = &mut truth[bucket as usize];
            let (one, two) = (any(&mut rng), any(&mut rng));
            let look = packed.look(lines.words(), bucket, one);
            assert_eq!(look.holds, held.contains(&one));
            assert_eq!(packed.holds(lines.words(), bucket, one), held.contains(&one));
            assert_eq!(look.room > 0, held.len() < slots as usize);
            if held.contains(&one) {
                let place = held.iter().position(|&fingerprint| fingerprint == one).unwrap();
                if rng.below(2) == 0 {
                    packed.replace(&mut lines, bucket, one, two);
                    held[place] = two;
                } else {
                    packed.replace(&mut lines, bucket, one, 0);
                    held.swap_remove(place);
                }
            } else if look.room > 0 {
                packed.put(&mut lines, bucket, one);
                held.push(one);
            }
            let near = bucket.saturating_sub(1)..(bucket + 2).min(buckets);
            for bucket in near {
                let content = packed.read(lines.words(), bucket);
                let held = &truth[bucket as usize];
                assert_eq!(content[..held.len()], held[..], "{slots} of {width} bits");
                assert!(content[held.len()..].iter().all(|&fingerprint| fingerprint == 0));
            }
        }
        let rooms: Vec<u64> = (0..buckets).map(|bucket| packed.look(lines.words(), bucket, 1).room).collect();
        for (a, left) in truth.iter().enumerate() {
            for (b, right) in truth.iter().enumerate() {
                assert_eq!(rooms[a].cmp(&rooms[b]), right.len().cmp(&left.len()), "more room, larger number");
            }
        }
    }

    #[test]
    fn packed_buckets_are_like_plain_vectors() {
        for slots in [1, 2, 4, 8] {
            for width in 4..=32 {
                match parts(slots, width) {
                    1 => like_plain_vectors::<1>(slots, width),
                    2 => like_plain_vectors::<2>(slots, width),
                    _ => like_plain_vectors::<4>(slots, width),
                }
            }
        }
    }
}
