//! A bitmap with Guava's placement in memory, before it goes to a server.

use std::io;

use mayhap::codec::WriteError;
use mayhap::codec::guava::{self, Strategy};
use mayhap::{Bloom, BloomPlacement, BuildError, HashScheme, Item, ItemEncoding};

use super::GuavaShape;

/// A bitmap with Guava's placement in memory.
///
/// ```
/// use mayhap::ItemEncoding;
/// use mayhap_remote::guava::{GuavaImage, GuavaShape, Rounding, Strategy};
///
/// let shape = GuavaShape::sized(1_000, 0.01, Rounding::Until33, Strategy::Mitz32)?;
/// let mut image = GuavaImage::empty(shape, ItemEncoding::Utf8)?;
/// assert!(image.insert("ada") && !image.insert("ada"));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GuavaImage {
    shape: GuavaShape,
    scheme: HashScheme,
    /// With room for the marker.
    bytes: Vec<u8>,
}

impl GuavaImage {
    /// One without items.
    ///
    /// # Errors
    /// [`BuildError`] if there is no memory for it.
    pub fn empty(shape: GuavaShape, items: ItemEncoding) -> Result<Self, BuildError> {
        let len = shape.bits() as usize / 8 + 1;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| BuildError::OutOfMemory { bytes: len as u64 })?;
        bytes.resize(len, 0);
        Ok(Self { shape, scheme: guava::scheme(items), bytes })
    }

    /// The bits of a filter of Guava's, such as [`guava::read`] reads.
    ///
    /// # Errors
    /// [`WriteError`] for a filter that is not Guava's, or of more bits than a string of Redis has.
    pub fn of(filter: &Bloom) -> Result<Self, WriteError> {
        let strategy = match filter.placement() {
            BloomPlacement::Guava32 => Strategy::Mitz32,
            _ => Strategy::Mitz64,
        };
        // Refuses all that is not Guava's.
        let mut words = Words { header: 6, word: [0; 8], filled: 0, bytes: Vec::new() };
        guava::write(filter, &mut words)?;
        let limit = u64::from(u32::MAX);
        let no_room = |_| WriteError::NoRoom { field: "bits", got: filter.shape().bits(), limit };
        let shape =
            GuavaShape::exactly(filter.shape().bits(), filter.shape().probes(), strategy).map_err(no_room)?;
        words.bytes.resize(shape.bits() as usize / 8 + 1, 0);
        Ok(Self { shape, scheme: *filter.scheme(), bytes: words.bytes })
    }

    /// Records `item`. `true`: some bit changed, so it was certainly new.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        let mut changed = false;
        for position in self.shape.positions_of(self.scheme.hash(item)) {
            let (byte, mask) = (&mut self.bytes[position as usize / 8], 0x80 >> (position % 8));
            changed |= *byte & mask == 0;
            *byte |= mask;
        }
        changed
    }

    /// Its measurements.
    #[must_use]
    pub const fn shape(&self) -> &GuavaShape {
        &self.shape
    }

    /// The whole string, as Redis is to have it.
    pub(super) fn bytes(&self, marked: bool) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let marker = self.shape.bits();
        if marked {
            bytes[marker as usize / 8] |= 0x80 >> (marker % 8);
        } else {
            bytes.truncate(marker.div_ceil(8) as usize);
        }
        bytes
    }
}

/// What takes the words that Guava writes, in their order of bytes, and keeps them in that of Redis.
struct Words {
    /// Bytes of the header that are still to come.
    header: usize,
    word: [u8; 8],
    filled: usize,
    bytes: Vec<u8>,
}

impl io::Write for Words {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.header.min(bytes.len());
        self.header -= skipped;
        for &byte in &bytes[skipped..] {
            self.word[self.filled] = byte;
            self.filled += 1;
            if self.filled == self.word.len() {
                let word = u64::from_be_bytes(self.word);
                self.bytes.extend_from_slice(&word.reverse_bits().to_be_bytes());
                self.filled = 0;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mayhap::codec::guava::Rounding;

    use super::*;

    #[test]
    fn a_filter_and_its_image_have_the_same_bits() {
        for strategy in [Strategy::Mitz32, Strategy::Mitz64] {
            let mut filter =
                guava::create(500, 0.01, Rounding::Since33, strategy, ItemEncoding::Utf8).unwrap();
            let shape =
                GuavaShape::sized(500, 0.01, Rounding::Since33, strategy).unwrap().in_words().unwrap();
            let mut image = GuavaImage::empty(shape, ItemEncoding::Utf8).unwrap();
            for number in 0..500 {
                let item = format!("item {number}");
                assert_eq!(filter.insert(&item), image.insert(&item), "{item}");
            }
            let same = GuavaImage::of(&filter).unwrap();
            assert_eq!((same.shape, &same.bytes), (image.shape, &image.bytes));
            let ones: u32 = image.bytes(false).iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(u64::from(ones), filter.ones());
            let marked: u32 = image.bytes(true).iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(marked, ones + 1);
        }
        assert!(GuavaImage::of(&Bloom::for_capacity(10, 0.01, 0).unwrap()).is_err());
    }
}
