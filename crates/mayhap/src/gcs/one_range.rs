//! Sets encoded by other programs: values in one range, stored as often as items have them, so the other
//! program's bytes can be written again.
//!
//! ```text
//! theirs  │ delta │ delta │ delta │ …            plain differences from the first value to the last
//! ours    │ gap │ gap │ … │ gap │ gap │ …        split into buckets with an index; a gap is the difference of
//!          └── bucket 0 ──┘ └─ bucket 1          two positions in a bucket, the first counted from one before it
//! ```

use std::io::{self, Write};

use super::index;
use super::rice::{self, Packer, Reader};
use super::shape::GcsShape;
use super::stretch;
use super::{Gcs, GcsBuilder, Stretch};
use crate::answers::Answers;
use crate::batch::{Hashed, hash_one_chunk_behind};
use crate::codec::{Body, DecodeError, Header};
use crate::error::BuildError;
use crate::hash::{ForeignHash, HashScheme, ItemHash, reduce};
use crate::simd::prefetch;
use crate::statics;
use crate::store::Lines;

/// Iterates over the values of a bucket, with duplicates.
type Lookup<'a> = stretch::StretchCursor<'a, 0>;

/// The number of code bytes written together.
const WRITE_BYTES: usize = 8 << 10;

impl Gcs {
    /// Builds the set of these values, which must ascend and be below the range of `shape`.
    pub(crate) fn of_values<E: From<BuildError>>(
        values: impl IntoIterator<Item = Result<u64, E>>,
        shape: GcsShape,
        scheme: HashScheme,
    ) -> Result<Self, E> {
        let mut builder = GcsBuilder::placed(shape, scheme)?;
        let mut items = 0;
        for value in values {
            let (bucket, place) = shape.place_of_value(value?);
            builder.put(bucket, place)?;
            items += 1;
        }
        Ok(builder.finish_with(items)?)
    }

    /// Decodes the set of `items` values, coded as plain differences, from all `bytes` from `front` on. After them
    /// there may be less than a byte of zeroes.
    pub(crate) fn of_differences(
        bytes: &[u8],
        front: usize,
        items: u64,
        shape: GcsShape,
        scheme: HashScheme,
    ) -> Result<Self, DecodeError> {
        let low = shape.remainder_bits();
        let codes = bytes.get(front..).unwrap_or_default();
        let front = front as u64;
        let end = front + codes.len() as u64;
        // A code has at least its low bits and one more.
        let least = items.saturating_mul(1 + u64::from(low)).div_ceil(8);
        if least > codes.len() as u64 {
            return Err(DecodeError::TooShort { need: front.saturating_add(least), got: end });
        }
        let total = codes.len() as u64 * 8;
        let stream = Lines::from_le_bytes(codes)?;
        let mut reader = Reader::new(stream.words(), 0, total);
        let mut last = 0_u64;
        let values = (0..items).map(|_| {
            let start = reader.at();
            let delta = reader.next(low).ok_or(DecodeError::TooShort { need: end + 1, got: end })?;
            // If the code is longer than that of its number, high bits were lost. Such a value is above every
            // range.
            let whole = reader.at() - start == rice::length(delta, low);
            let value = last.checked_add(delta).filter(|&value| whole && value < shape.range());
            last = value.ok_or(DecodeError::BadField { field: "value", got: last.saturating_add(delta) })?;
            Ok::<_, DecodeError>(last)
        });
        let set = Self::of_values(values, shape, scheme)?;
        let used = reader.at();
        if total - used >= 8 {
            return Err(DecodeError::TrailingBytes { extra: (total - used) / 8 });
        }
        // The highest set bit is the first one.
        match codes.last().map_or(0, |last| last & (0xff_u16 >> (8 - (total - used))) as u8) {
            0 => Ok(set),
            stray => Err(DecodeError::StrayBit { bit: total - 8 + u64::from(stray.leading_zeros()) }),
        }
    }

    /// Writes all values as plain differences, padded with zeroes to a full byte.
    pub(crate) fn write_differences(&self, out: &mut dyn Write) -> io::Result<()> {
        let low = self.shape.remainder_bits();
        let (mut packer, mut bytes) = (Packer::default(), Vec::with_capacity(WRITE_BYTES + 8));
        let (mut last, mut bits, mut written) = (0, 0_u64, 0_u64);
        for value in self.values() {
            let delta = value - last;
            packer.put_rice(delta, low, &mut |word| bytes.extend_from_slice(&word.to_be_bytes()));
            (last, bits) = (value, bits + rice::length(delta, low));
            if bytes.len() >= WRITE_BYTES {
                out.write_all(&bytes)?;
                written += bytes.len() as u64;
                bytes.clear();
            }
        }
        bytes.extend(packer.finish().unwrap_or_default().to_be_bytes());
        bytes.truncate((bits.div_ceil(8) - written) as usize);
        out.write_all(&bytes)
    }

    /// Returns the value of a hash.
    #[inline(always)]
    pub(super) fn place_in_one_range(&self, hash: ItemHash) -> (u64, u64) {
        self.shape.place_of_value(reduce(statics::key(hash), self.shape.range()))
    }

    /// Out of line, to keep the inlined lookups in our own sets small.
    #[cold]
    #[inline(never)]
    pub(super) fn has_in_one_range(&self, hash: ItemHash) -> bool {
        let (bucket, place) = self.place_in_one_range(hash);
        let (index, stream) = self.sections();
        let mut lookup = Lookup::new(stream, bucket, index::stretch(index, bucket));
        lookup.holds(self.shape.remainder_bits(), place)
    }

    /// Looks up all `items`. All `answers` must be *no*. If the values ascend, nothing is decoded twice.
    pub(super) fn answer_in_one_range<H: Hashed>(&self, items: &[H], answers: &mut Answers) {
        const CHUNK: usize = 64;
        let low = self.shape.remainder_bits();
        let (index, stream) = self.sections();
        let start = |hash: ItemHash| {
            let (bucket, place) = self.place_in_one_range(hash);
            prefetch(index, index::line_of(bucket));
            (bucket, place)
        };
        // In no bucket yet.
        let mut lookup = Lookup::new(stream, u64::MAX, Stretch::default());
        hash_one_chunk_behind::<CHUNK, _, _>(items, &self.scheme, start, |first, places| {
            for (i, &(bucket, place)) in places.iter().enumerate() {
                if lookup.bucket != bucket || !lookup.reaches(place) {
                    lookup = Lookup::new(stream, bucket, index::stretch(index, bucket));
                }
                if lookup.holds(low, place) {
                    answers.set(first + i);
                }
            }
        });
    }

    /// Restores the set that a header of placement 2 describes. It reads every value: writing the set for
    /// another program relies on their number.
    pub(super) fn restore_in_one_range(header: &Header, body: &Body<'_>) -> Result<Self, DecodeError> {
        let bad = |field, got| DecodeError::BadField { field, got };
        let scheme = header.scheme()?;
        if !suits(&scheme) {
            return Err(DecodeError::UnknownPlacement { got: header.placement });
        }
        header.expect_parameters(6)?;
        let low = header.parameter_u32(2, "low bits")?;
        let [buckets, bucket_range, _, _, values, range, ..] = header.parameters;
        let items = header.inserted;
        // The whole shape follows from the number of items and their range.
        let shape = GcsShape::in_one_range(items, range / items.max(1), low)?;
        if shape.range() != range {
            return Err(bad("range", range));
        }
        if (shape.buckets(), shape.bucket_range()) != (buckets, bucket_range) {
            return Err(bad("buckets", buckets));
        }
        if header.capacity != shape.capacity() {
            return Err(bad("capacity", header.capacity));
        }
        if header.target_fpr.to_bits() != shape.target_fpr().to_bits() {
            return Err(bad("target rate", header.target_fpr.to_bits()));
        }
        let set = Self::of_parts(shape, scheme, header, body)?;
        let (mut count, mut different, mut last) = (0, 0, None);
        for value in set.values() {
            count += 1;
            different += u64::from(last != Some(value));
            last = Some(value);
        }
        if count != items || last.is_some_and(|last| last >= range) {
            return Err(bad("inserted", items));
        }
        if different != values {
            return Err(bad("values", values));
        }
        Ok(set)
    }
}

/// Returns whether sets with this hash scheme place their items in one range.
pub(crate) fn suits(scheme: &HashScheme) -> bool {
    matches!(scheme, HashScheme::Foreign(scheme) if matches!(scheme.function(), ForeignHash::BlockFilter { .. }))
}
