//! A bitmap with Guava's bit positions in memory, before it is sent to a server.

use std::io;

use mayhap::{Bloom, BloomPlacement, BuildError, HashScheme, Item, ItemEncoding};
use mayhap_formats::WriteError;
use mayhap_formats::guava::{self, Strategy};

use super::GuavaShape;

/// A bitmap with Guava's bit positions in memory.
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
    /// The bytes, with room for the marker.
    bytes: Vec<u8>,
}

impl GuavaImage {
    /// An empty bitmap.
    ///
    /// # Errors
    /// [`BuildError`] if there is not enough memory.
    pub fn empty(shape: GuavaShape, items: ItemEncoding) -> Result<Self, BuildError> {
        let len = shape.bits() as usize / 8 + 1;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| BuildError::OutOfMemory { bytes: len as u64 })?;
        bytes.resize(len, 0);
        Ok(Self { shape, scheme: guava::scheme(items), bytes })
    }

    /// The bits of one of Guava's own filters, such as [`guava::read`] returns.
    ///
    /// # Errors
    /// [`WriteError`] for a filter without Guava's layout, or with more bits than a Redis string can have.
    pub fn of(filter: &Bloom) -> Result<Self, WriteError> {
        let strategy = match filter.placement() {
            BloomPlacement::Guava32 => Strategy::Mitz32,
            _ => Strategy::Mitz64,
        };
        // Rejects every filter without Guava's layout.
        let mut words = Words { header: 6, word: [0; 8], filled: 0, bytes: Vec::new() };
        guava::write(filter, &mut words)?;
        let limit = u64::from(u32::MAX);
        let no_room = |_| WriteError::NoRoom { field: "bits", got: filter.shape().bits(), limit };
        let shape =
            GuavaShape::exactly(filter.shape().bits(), filter.shape().probes(), strategy).map_err(no_room)?;
        words.bytes.resize(shape.bits() as usize / 8 + 1, 0);
        Ok(Self { shape, scheme: *filter.scheme(), bytes: words.bytes })
    }

    /// Inserts `item`. `true`: a bit changed, so the item was certainly new.
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> bool {
        let mut changed = false;
        for position in self.shape.positions_of(self.scheme.hash(item)) {
            let (byte, mask) = (&mut self.bytes[position as usize / 8], 0x80 >> (position % 8));
            changed |= *byte & mask == 0;
            *byte |= mask;
        }
        changed
    }

    /// The shape of the bitmap.
    #[must_use]
    pub const fn shape(&self) -> &GuavaShape {
        &self.shape
    }

    /// The complete string for Redis, with the marker if it is required.
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

/// A writer that takes the words in Guava's byte order and stores them in the byte order of Redis.
struct Words {
    /// The remaining bytes of the header.
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
    use mayhap_formats::guava::Rounding;

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
