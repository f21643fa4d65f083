//! The growing filter: the length of the fingerprints of a generation, so that the rate holds after every doubling.
//!
//! A slot with a fingerprint of `len` bits in a table of `homes` homes answers *maybe* to a share `2^-len /
//! homes` of all hashes. When the table doubles, the first bit of every fingerprint becomes part of the home:
//! it matches twice the share of the hashes of its home, and there are twice as many homes. So the share
//! stays exactly the same. (A fingerprint with no bit left is stored in both homes from then on, and its
//! share stays too.)
//!
//! The shares of all slots add up to the *covered* share. Growing never changes it; only inserting and
//! removing do. The false-positive rate is never above it, for any items. It only has to stay below the
//! promised rate. At every doubling, the new generation gets a part of the remaining rate, computed from the
//! contents of the table.

use super::AIM;

/// The most bits a fingerprint can have.
pub const MAX_FINGERPRINT_BITS: u32 = 55;
/// The most homes a table can have: enough for [`MAX_CAPACITY`](super::MAX_CAPACITY) items.
pub const MAX_HOMES: u64 = 1 << 43;
/// The fewest homes of a table; fewer would not take less memory.
pub const MIN_HOMES: u64 = 16;
/// The lowest rate that it can keep through all possible doublings.
pub const MIN_GROWING_RATE: f64 = 1e-12;
/// The share of the promised rate that the first generation may cover. A smaller share would cost a filter
/// that never grows one more bit per item; a larger one would cost every later generation one.
pub const FIRST_SHARE: f64 = 0.5;
/// The same, with the margin we aim for.
pub(crate) const AIMED_FIRST_SHARE: f64 = FIRST_SHARE * AIM;
/// The share of the remaining rate that every later generation may cover.
pub const LATER_SHARE: f64 = 0.125;
/// In tables with fewer homes than this, memory does not matter: their generations cover less, and leave more of the rate to
/// the tables that hold nearly all of the items.
pub const LARGE_HOMES: u64 = 1 << 16;

/// The slots of a table of `homes` homes that may be in use before it doubles: nine of ten.
#[must_use]
pub const fn slot_limit(homes: u64) -> u64 {
    homes - homes.div_ceil(10)
}

/// The homes of the first table, for `n` items.
#[must_use]
pub const fn first_homes(n: u64) -> u64 {
    let homes = n + n.div_ceil(9);
    if homes < MIN_HOMES { MIN_HOMES } else { homes }
}

/// The share of all hashes that `n` slots with fingerprints of `len` bits cover in a table of `homes` homes.
#[must_use]
pub fn covered(n: f64, len: u32, homes: u64) -> f64 {
    n / homes as f64 / (1_u64 << len.min(63)) as f64
}

/// The rate when slots of random items cover `covered`, which counts hashes that are covered twice two times.
#[must_use]
pub fn expected_fpr(covered: f64) -> f64 {
    -(-covered).exp_m1()
}

/// The bits of the first generation's fingerprints at rate `p`; `None` if they would be longer than the limit.
#[must_use]
pub fn first_fingerprint_bits(homes: u64, p: f64) -> Option<u32> {
    fewest_bits(homes, slot_limit(homes), p * AIMED_FIRST_SHARE, 1)
}

/// The bits of the next fingerprints, in a table that just grew to `homes` homes, has `room` free slots, covers `covered`
/// already, and holds fingerprints of up to `longest` bits. `None` if they would be longer than the limit.
///
/// Never shorter than `longest`: the slots are that wide anyway, and this way a removal always makes room for a replacement.
#[must_use]
pub fn next_fingerprint_bits(homes: u64, room: u64, covered: f64, p: f64, longest: u32) -> Option<u32> {
    let doublings_left = (MAX_HOMES / homes.max(1)).max(1).ilog2();
    // If only a few doublings are left, the share can be larger than an eighth.
    let share = LATER_SHARE.max(1.0 / f64::from(doublings_left + 1));
    // Half a bit more for every halving: a series that converges, and that costs a few kilobytes at most.
    let halvings = (LARGE_HOMES / homes.max(1)).max(1).ilog2();
    let share = share / (1_u64 << halvings.div_ceil(2)) as f64;
    fewest_bits(homes, room, (p * AIM - covered) * share, longest.max(1))
}

/// Only products and quotients of exact numbers, no logarithms: the result is the same on every machine.
fn fewest_bits(homes: u64, slots: u64, may_cover: f64, least: u32) -> Option<u32> {
    (least..=MAX_FINGERPRINT_BITS).find(|&len| covered(slots as f64, len, homes) <= may_cover)
}

/// A filter that is filled to the limit before every doubling, generation by generation.
#[derive(Clone, Debug)]
pub struct GrowthSteps {
    p: f64,
    homes: u64,
    bits: u32,
    items: f64,
    /// Slots by the length of their fingerprints.
    slots: [f64; MAX_FINGERPRINT_BITS as usize + 1],
}

impl GrowthSteps {
    /// The first table, full, for `n` items at rate `p`; `None` if no fingerprint is long enough.
    #[must_use]
    pub fn first(homes: u64, p: f64) -> Option<Self> {
        let bits = first_fingerprint_bits(homes, p)?;
        let mut slots = [0.0; MAX_FINGERPRINT_BITS as usize + 1];
        slots[bits as usize] = slot_limit(homes) as f64;
        Some(Self { p, homes, bits, items: slot_limit(homes) as f64, slots })
    }

    /// Twice as many homes, and full again; `None` if that is not possible.
    #[must_use]
    pub fn doubled(&self) -> Option<Self> {
        let homes = self.homes.checked_mul(2).filter(|&homes| homes <= MAX_HOMES)?;
        let mut slots = [0.0; MAX_FINGERPRINT_BITS as usize + 1];
        slots[..self.slots.len() - 1].copy_from_slice(&self.slots[1..]);
        // Fingerprints without a bit are stored in both homes.
        slots[0] += 2.0 * self.slots[0];
        let longest = self.bits.saturating_sub(1);
        let room = (slot_limit(homes) as f64 - slots.iter().sum::<f64>()).max(0.0);
        let bits = next_fingerprint_bits(homes, room as u64, covered_by(&slots, homes), self.p, longest)?;
        slots[bits as usize] += room;
        Some(Self { p: self.p, homes, bits, items: self.items + room, slots })
    }

    /// Homes of the table.
    #[must_use]
    pub const fn homes(&self) -> u64 {
        self.homes
    }

    /// Bits of the fingerprints inserted last.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.bits
    }

    /// Its items when it is full.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items as u64
    }

    /// Slots whose fingerprint has no bit left.
    #[must_use]
    pub const fn void_slots(&self) -> f64 {
        self.slots[0]
    }

    /// The share that its slots cover.
    #[must_use]
    pub fn covered(&self) -> f64 {
        covered_by(&self.slots, self.homes)
    }

    /// The share that its slots covered with only `n` items, including all earlier generations.
    #[must_use]
    pub fn covered_at(&self, n: u64) -> f64 {
        let missing = (self.items - n as f64).max(0.0);
        (self.covered() - covered(missing, self.bits, self.homes)).max(0.0)
    }
}

fn covered_by(slots: &[f64], homes: u64) -> f64 {
    slots.iter().zip(0..).map(|(&count, len)| covered(count, len, homes)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_table_has_room_for_its_items_and_little_more() {
        for n in [1, 2, 14, 15, 57, 58, 59, 100, 1_000, 123_456_789, super::super::MAX_CAPACITY] {
            let homes = first_homes(n);
            assert!(slot_limit(homes) >= n && homes <= MAX_HOMES, "{n}: {homes}");
            assert!(homes == MIN_HOMES || slot_limit(homes - 2) < n, "{n}: {homes}");
        }
    }

    #[test]
    fn the_rate_holds_after_every_doubling() {
        for p in [0.9, 0.5, 0.1, 0.03, 0.01, 1e-3, 1e-6, 1e-9, MIN_GROWING_RATE] {
            for homes in [16, 64, 65, 100, 1_000, 1 << 16, 1_000_003, 1 << 30, 1 << 42] {
                let mut full = GrowthSteps::first(homes, p).unwrap();
                loop {
                    let said = format!("{p}, {homes} homes, now {full:?}");
                    assert!(full.covered() <= p * AIM, "{said}");
                    assert!(full.void_slots() <= p * full.homes() as f64, "{said}");
                    let Some(next) = full.doubled() else { break };
                    assert!(next.items() as f64 > 1.5 * full.items() as f64, "{said}");
                    full = next;
                }
                assert!(full.homes() > MAX_HOMES / 2, "{p}: ends at {}", full.homes());
            }
        }
    }

    #[test]
    fn growing_does_not_change_the_covered_share() {
        let mut full = GrowthSteps::first(1_000, 0.3).unwrap();
        for _ in 0..20 {
            let next = full.doubled().unwrap();
            let added = covered(next.items - full.items, next.bits, next.homes);
            assert!((next.covered() - full.covered() - added).abs() < 1e-15);
            full = next;
        }
        assert!(full.void_slots() > 0.0);
    }

    #[test]
    fn fingerprints_grow_by_a_few_bits_in_twenty_doublings() {
        let row = |homes, p| {
            [0, 1, 2, 5, 10, 20].map(|doublings| {
                let first = GrowthSteps::first(homes, p).unwrap();
                (0..doublings).fold(first, |full, _| full.doubled().unwrap()).fingerprint_bits()
            })
        };
        // Small tables can afford long ones, and leave more of the rate to large tables.
        assert_eq!(row(16, 0.01), [8, 16, 15, 14, 11, 11]);
        assert_eq!(row(1 << 10, 0.01), [8, 13, 12, 11, 10, 12]);
        assert_eq!(row(1 << 20, 0.01), [8, 10, 10, 10, 11, 11]);
        assert_eq!(row(1 << 20, 0.001), [11, 13, 13, 14, 14, 15]);
    }

    #[test]
    fn there_is_no_fingerprint_if_the_rate_is_used_up() {
        assert_eq!(next_fingerprint_bits(1 << 20, 1 << 19, 0.01, 0.01, 5), None);
        assert_eq!(next_fingerprint_bits(1 << 20, 1 << 19, f64::NAN, 0.01, 5), None);
        assert_eq!(next_fingerprint_bits(1 << 20, 0, 0.0, 0.01, 5), Some(5));
        assert_eq!(first_fingerprint_bits(1 << 20, 1e-18), None);
    }
}
