//! A plain filter in memory, which is filled here and sent whole.

use mayhap::ItemHash;

use super::PlainShape;
use super::shape::{READY, mask};
use crate::route::ItemRoute;

/// All bytes of a plain filter.
#[derive(Clone, Debug)]
pub struct PlainImage {
    shape: PlainShape,
    bytes: Vec<u8>,
}

impl PlainImage {
    /// An empty filter: only the ready bits are set.
    #[must_use]
    pub fn new(shape: PlainShape) -> Self {
        Self { shape, bytes: empty(&shape, shape.bytes()) }
    }

    /// The shape of the filter.
    #[must_use]
    pub fn shape(&self) -> &PlainShape {
        &self.shape
    }

    /// The bytes of the string on the server.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Inserts an item. `true`: a bit changed, so the item was certainly new.
    pub(crate) fn insert(&mut self, route: ItemRoute) -> bool {
        let (first, positions) = self.shape.bits_of(route);
        let mut changed = false;
        for position in positions {
            let bit = first + position;
            let byte = &mut self.bytes[(bit / 8) as usize];
            changed |= *byte & mask(bit) == 0;
            *byte |= mask(bit);
        }
        changed
    }

    /// Inserts the item with this hash, which is of the keyed scheme with the filter's key. `true`: it was
    /// certainly new.
    pub fn insert_hash(&mut self, hash: ItemHash) -> bool {
        self.insert(hash.into())
    }

    /// `false`: no item with this hash was ever inserted.
    #[must_use]
    pub fn may_contain_hash(&self, hash: ItemHash) -> bool {
        self.may_contain(hash.into())
    }

    fn may_contain(&self, route: ItemRoute) -> bool {
        let (first, _) = self.shape.bits_of(route);
        let from = (first / 8) as usize;
        self.shape.covers(&self.bytes[from..from + self.shape.block_bytes()], route) != Some(false)
    }
}

/// The first `bytes` bytes of an empty filter; whole blocks.
pub(crate) fn empty(shape: &PlainShape, bytes: u64) -> Vec<u8> {
    let mut string = vec![0; bytes as usize];
    string.iter_mut().step_by(shape.block_bytes()).for_each(|byte| *byte = READY);
    string
}

/// Clears the ready bits in these bytes of a filter; whole blocks.
pub(crate) fn without_ready_bits(shape: &PlainShape, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.iter_mut().step_by(shape.block_bytes()).for_each(|byte| *byte &= !READY);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap::SecretKey;
    use mayhap_testkit::binomial::band_with_model_error;
    use mayhap_testkit::items::{member, non_member};

    const SEEDS: [u8; 8] = [1, 2, 3, 5, 8, 13, 21, 34];

    fn wrong_answers(shape: PlainShape, items: u64, non_members: u64) -> u64 {
        let of_seed = |seed| {
            let key = SecretKey::new([seed; 16]);
            let mut image = PlainImage::new(shape);
            (0..items).for_each(|i| {
                image.insert(ItemRoute::of(&key, &member(i)));
            });
            assert!((0..items).all(|i| image.may_contain(ItemRoute::of(&key, &member(i)))));
            let wrong =
                (0..non_members).filter(|&i| image.may_contain(ItemRoute::of(&key, &non_member(i)))).count();
            wrong as u64
        };
        SEEDS.map(of_seed).iter().sum()
    }

    /// The model is within 2 % of full filters, on either side. A filter that is a tenth too full is caught.
    fn judge(shape: PlainShape, capacity: u64, non_members: u64) {
        let rate = shape.expected_fpr(capacity);
        let promised = band_with_model_error(SEEDS.len() as u64 * non_members, rate, 1e-6, 0.02);
        let wrong = wrong_answers(shape, capacity, non_members);
        assert!(promised.contains(&wrong), "{shape:?}: {wrong} not in {promised:?}");
        let overfull = wrong_answers(shape, capacity * 115 / 100, non_members);
        assert!(!promised.contains(&overfull), "{shape:?}: too full, but {overfull} is in {promised:?}");
    }

    #[test]
    fn small_blocks_keep_a_rate_of_one_percent() {
        judge(PlainShape::for_capacity(20_000, 0.01).unwrap(), 20_000, 50_000);
    }

    #[test]
    fn small_blocks_keep_a_rate_of_a_tenth_of_a_percent() {
        judge(PlainShape::for_capacity(20_000, 0.001).unwrap(), 20_000, 250_000);
    }

    #[test]
    fn large_blocks_match_the_model_with_fewer_probes() {
        // At 1e-4 there are too few false positives to judge: use the same blocks with 5 probes instead of
        // 13.
        let full = PlainShape::for_capacity(20_000, 1e-4).unwrap();
        let shape = PlainShape::given(full.block_bits(), full.blocks(), 5).unwrap();
        assert_eq!(shape.block_bits(), 4096);
        judge(shape, 20_000, 250_000);
    }

    #[test]
    fn items_are_estimated_from_the_fill() {
        let shape = PlainShape::for_capacity(20_000, 0.01).unwrap();
        let (mut image, key) = (PlainImage::new(shape), SecretKey::new([7; 16]));
        (0..20_000).for_each(|i| {
            image.insert(ItemRoute::of(&key, &member(i)));
        });
        let ones = image.bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
        let items = shape.items_from_ones(ones);
        assert!((19_000..=20_600).contains(&items), "{items}");
    }

    /// Layout 1, as bytes.
    #[test]
    fn the_layout_is_frozen() {
        let shape = PlainShape::given(512, 2, 6).unwrap();
        let key = SecretKey::new(*b"0123456789abcdef");
        let mut image = PlainImage::new(shape);
        assert_eq!(image.as_bytes().iter().filter(|&&byte| byte == 0x80).count(), 2);
        assert!(image.insert(ItemRoute::of(&key, b"ada")) && image.insert(ItemRoute::of(&key, b"grace")));
        assert!(!image.insert(ItemRoute::of(&key, b"ada")));
        let set: Vec<usize> = (0..1024).filter(|bit| image.bytes[bit / 8] & mask(*bit as u64) != 0).collect();
        assert_eq!(set, [0, 31, 221, 225, 408, 458, 499, 512, 606, 639, 693, 762, 944, 967]);
    }
}
