//! The shard of an item: a pure function of the item and the key of its generation, frozen as layout 1.
//!
//! ```text
//! SipHash-1-3-128 (key, item) = high 64 bits | low 64 bits
//!                               ├ 16 ┤ 48 ┤   └─ the seed of the positions in a plain block
//!                               │    └ the block of a plain shard
//!                               └ the shard: of S = 2^s shards, the first s bits
//! ```

use mayhap::{HashScheme, ItemHash, SecretKey};

/// The maximum number of shards, and the number of hash bits reserved to choose one.
pub(crate) const MOST_SHARDS: u32 = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 16;

/// Everything that decides where an item goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemRoute {
    high: u64,
    low: u64,
}

impl ItemRoute {
    pub(crate) fn of(key: &SecretKey, item: &[u8]) -> Self {
        Self::from(HashScheme::keyed(*key).hash(item))
    }

    /// The shard of the item, for a filter of `shards` shards: a power of two from 1 to 65 536.
    pub(crate) fn shard(self, shards: u32) -> u32 {
        debug_assert!(shards.is_power_of_two() && shards <= MOST_SHARDS);
        // The first 16 bits, scaled down.
        ((self.high >> (64 - SHARD_BITS)) as u32) >> (SHARD_BITS - shards.trailing_zeros())
    }

    /// The block in a plain shard of `blocks` blocks. Uses the bits after those of the shard.
    pub(crate) fn block(self, blocks: u64) -> u64 {
        reduce(self.high << SHARD_BITS, blocks)
    }

    /// An endless sequence of numbers below `range`: the positions in a block.
    pub(crate) fn positions(self, range: u64) -> impl Iterator<Item = u64> {
        let mut state = self.low;
        std::iter::repeat_with(move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut bits = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            reduce(bits ^ bits >> 31, range)
        })
    }
}

impl From<ItemHash> for ItemRoute {
    fn from(hash: ItemHash) -> Self {
        let bits = hash.to_u128();
        Self { high: (bits >> 64) as u64, low: bits as u64 }
    }
}

/// `bits` scaled to `0..range`.
fn reduce(bits: u64, range: u64) -> u64 {
    ((u128::from(bits) * u128::from(range)) >> 64) as u64
}

/// The two items that mark a complete shard of the `bf` and `mf` backends. Each shard has its own pair, and
/// no real item equals them by chance.
pub(crate) fn sentinels(key: &SecretKey, shard: u32) -> [[u8; 16]; 2] {
    [0_u8, 1].map(|which| {
        let mut text = b"mayhap-remote sentinel".to_vec();
        text.push(which);
        text.extend(shard.to_le_bytes());
        HashScheme::keyed(*key).hash(text.as_slice()).to_u128().to_le_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SecretKey = SecretKey::new(*b"0123456789abcdef");

    /// Layout 1. If this fails, existing filters no longer find their items.
    #[test]
    fn item_routes_are_frozen() {
        let found: Vec<_> = [&b""[..], b"a", b"ada@example.org", &[0xff; 40]]
            .iter()
            .map(|item| {
                let route = ItemRoute::of(&KEY, item);
                let positions: Vec<u64> = route.positions(511).take(4).collect();
                (route.shard(64), route.shard(65_536), route.block(1000), positions)
            })
            .collect();
        let golden: [(u32, u32, u64, Vec<u64>); 4] = [
            (62, 63_602, 391, vec![114, 250, 403, 445]),
            (4, 4443, 210, vec![93, 365, 255, 505]),
            (21, 22_384, 338, vec![74, 213, 445, 281]),
            (49, 50_385, 17, vec![384, 384, 172, 302]),
        ];
        assert_eq!(found, golden);
    }

    #[test]
    fn shards_nest_and_are_even() {
        let mut counts = [0_u32; 64];
        for number in 0..64_000_u64 {
            let route = ItemRoute::of(&KEY, &number.to_le_bytes());
            assert_eq!(route.shard(1), 0);
            assert_eq!(route.shard(64), route.shard(65_536) >> 10);
            counts[route.shard(64) as usize] += 1;
        }
        // 1000 each, plus or minus six standard deviations.
        assert!(counts.iter().all(|count| (810..=1190).contains(count)), "{counts:?}");
    }

    #[test]
    fn within_a_shard_blocks_and_positions_are_even() {
        let (mut blocks, mut positions) = ([0_u32; 10], [0_u32; 511]);
        let in_shard = (0_u64..).map(|number| ItemRoute::of(&KEY, &number.to_le_bytes()));
        for route in in_shard.filter(|route| route.shard(8) == 5).take(51_100) {
            blocks[route.block(10) as usize] += 1;
            route.positions(511).take(10).for_each(|position| positions[position as usize] += 1);
        }
        assert!(blocks.iter().all(|count| (4700..=5520).contains(count)), "{blocks:?}");
        assert!(positions.iter().all(|count| (810..=1190).contains(count)), "{positions:?}");
    }

    #[test]
    fn sentinels_differ_by_shard_and_by_generation() {
        let [first, second] = sentinels(&KEY, 7);
        assert_ne!(first, second);
        assert_ne!(first, sentinels(&KEY, 8)[0]);
        assert_ne!(first, sentinels(&SecretKey::new([0; 16]), 7)[0]);
    }
}
