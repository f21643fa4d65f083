//! The items of all queries. Nothing is stored: item `id` is a bijection of `id`, so members and non-members are disjoint because their ids are, and
//! every filter sees the same stream.

use std::hash::Hash;

use xxhash_rust::xxh3::xxh3_64;

/// Ids at and above this belong to non-members.
const NON_MEMBERS: u64 = crate::count::MOST_ITEMS;

/// The shape of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// Random 64-bit integers.
    U64,
    /// 16 ASCII bytes.
    Str16,
    /// URLs of 47 to 70 bytes.
    Url,
}

/// One shape of item, generated in place from an id.
pub(crate) trait BenchItem: Hash + Clone + Default + 'static {
    /// Becomes item number `id`.
    fn become_item(&mut self, id: u64);

    /// A well-mixed 64-bit hash, for rivals that leave hashing to the caller.
    fn prehash(&self) -> u64;

    /// A 64-bit key, for rivals that accept keys and mix them themselves.
    fn key(&self) -> u64 {
        self.prehash()
    }

    /// The keys of many items, in `buffer` unless the items are keys already.
    fn keys<'a>(items: &'a [Self], buffer: &'a mut Vec<u64>) -> &'a [u64] {
        buffer.clear();
        buffer.extend(items.iter().map(Self::key));
        buffer
    }

    /// The bytes, for rivals that accept nothing else.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;
}

impl BenchItem for u64 {
    fn become_item(&mut self, id: u64) {
        *self = scatter(id);
    }

    #[inline]
    fn prehash(&self) -> u64 {
        fmix64(*self)
    }

    #[inline]
    fn key(&self) -> u64 {
        *self
    }

    #[inline]
    fn keys<'a>(items: &'a [u64], _: &'a mut Vec<u64>) -> &'a [u64] {
        items
    }

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.to_le_bytes())
    }
}

impl BenchItem for [u8; 16] {
    fn become_item(&mut self, id: u64) {
        *self = hex(scatter(id));
    }

    #[inline]
    fn prehash(&self) -> u64 {
        xxh3_64(self)
    }

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl BenchItem for String {
    fn become_item(&mut self, id: u64) {
        const HOSTS: [&str; 4] =
            ["www.example.com", "shop.example.net", "static.assets.example.org", "news.example.co.uk"];
        const FOLDERS: [&str; 4] = ["/item/", "/archive/2024/", "/img/thumbnails/", "/a/"];
        let scattered = scatter(id);
        self.clear();
        self.push_str("https://");
        self.push_str(HOSTS[scattered as usize % 4]);
        self.push_str(FOLDERS[(scattered >> 2) as usize % 4]);
        self.extend(hex(scattered).map(char::from));
        self.push_str(".html");
    }

    #[inline]
    fn prehash(&self) -> u64 {
        xxh3_64(self.as_bytes())
    }

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }
}

/// Fills `buffer` with the members numbered from `first`.
pub(crate) fn members<T: BenchItem>(buffer: &mut [T], first: u64) {
    buffer.iter_mut().zip(first..).for_each(|(item, id)| item.become_item(id));
}

/// Fills `buffer` with members picked at random from `0..of`; each `turn` picks others.
pub(crate) fn sampled_members<T: BenchItem>(buffer: &mut [T], of: u64, turn: &mut u64) {
    for item in buffer {
        let random = scatter(*turn | 1 << 63);
        *turn += 1;
        item.become_item(((u128::from(random) * u128::from(of)) >> 64) as u64);
    }
}

/// Fills `buffer` with non-members that were not used before; `turn` counts them.
pub(crate) fn non_members<T: BenchItem>(buffer: &mut [T], turn: &mut u64) {
    members(buffer, NON_MEMBERS + *turn);
    *turn += buffer.len() as u64;
}

/// The finaliser of murmur3's 64-bit lanes, which a caller would typically use to hash an integer.
#[inline]
pub(crate) fn fmix64(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// SplitMix64's output step: a bijection, and not a mixer that any filter here hashes with.
fn scatter(id: u64) -> u64 {
    let mut bits = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// 16 lower-case hexadecimal digits.
fn hex(bits: u64) -> [u8; 16] {
    let mut shift = 64;
    [(); 16].map(|()| {
        shift -= 4;
        b"0123456789abcdef"[(bits >> shift) as usize & 15]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn disjoint<T: BenchItem + Eq>() {
        let mut buffer = vec![T::default(); 1_000];
        members(&mut buffer, 0);
        let inside: HashSet<T> = buffer.iter().cloned().collect();
        assert_eq!(inside.len(), 1_000);
        let (mut asked, mut picked) = (0, 0);
        non_members(&mut buffer, &mut asked);
        assert!(buffer.iter().all(|item| !inside.contains(item)));
        let first = buffer[0].clone();
        non_members(&mut buffer, &mut asked);
        assert!(!buffer.contains(&first), "a non-member came twice");
        sampled_members(&mut buffer, 1_000, &mut picked);
        assert!(buffer.iter().all(|item| inside.contains(item)));
        assert!(buffer.iter().collect::<HashSet<_>>().len() > 500);
        assert_eq!((asked, picked), (2_000, 1_000));
    }

    #[test]
    fn members_and_non_members_are_disjoint() {
        disjoint::<u64>();
        disjoint::<[u8; 16]>();
        disjoint::<String>();
    }

    #[test]
    fn urls_have_the_documented_length() {
        let mut url = String::new();
        let lengths: Vec<usize> = (0..1_000)
            .map(|id| {
                url.become_item(id);
                url.len()
            })
            .collect();
        assert_eq!(lengths.iter().min(), Some(&47));
        assert_eq!(lengths.iter().max(), Some(&70));
    }

    #[test]
    fn hex_is_sixteen_digits() {
        assert_eq!(&hex(0x0123_4567_89ab_cdef), b"0123456789abcdef");
    }
}
