//! The values of a set, in order.

use std::sync::atomic::AtomicU64;

use super::index;
use super::rice::Reader;
use super::shape::GcsShape;

/// The values of a [`Gcs`](crate::Gcs) in ascending order, each below [`GcsShape::range`]; see
/// [`Gcs::values`](crate::Gcs::values).
#[derive(Clone, Debug)]
pub struct GcsValues<'a> {
    shape: GcsShape,
    index: &'a [AtomicU64],
    stream: &'a [AtomicU64],
    stream_bits: u64,
    bucket: u64,
    reader: Reader<'a>,
    /// The end of the bucket's bits.
    end: u64,
    /// One past the last value's position in the bucket, 0 before the first.
    free: u64,
}

impl<'a> GcsValues<'a> {
    pub(super) fn new(
        shape: GcsShape,
        index: &'a [AtomicU64],
        stream: &'a [AtomicU64],
        stream_bits: u64,
    ) -> Self {
        let reader = Reader::new(stream, 0, 0);
        let mut values = Self { shape, index, stream, stream_bits, bucket: 0, reader, end: 0, free: 0 };
        values.open();
        values
    }

    /// Begins to read `bucket`. It never starts before the end of the previous one or after the stream, so
    /// forged bytes end too.
    fn open(&mut self) {
        let stretch = index::stretch(self.index, self.bucket);
        let start = stretch.start.max(self.end);
        self.end = stretch.end.clamp(self.end, self.stream_bits.max(self.end));
        self.reader = Reader::new(self.stream, start, self.end);
        self.free = 0;
    }

    /// Returns the next value as its bucket and its position in it.
    #[inline]
    pub(super) fn next_place(&mut self) -> Option<(u64, u64)> {
        while self.bucket < self.shape.buckets() {
            let gap = self.reader.next(self.shape.remainder_bits());
            // One past it: `free + gap + step`.
            let place = gap.and_then(|gap| {
                self.free.checked_add(gap)?.checked_add(self.shape.least_step())?.checked_sub(1)
            });
            if let Some(place) = place.filter(|&place| place < self.shape.bucket_range()) {
                self.free = place + 1;
                return Some((self.bucket, place));
            }
            self.bucket += 1;
            self.open();
        }
        None
    }
}

impl Iterator for GcsValues<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.next_place().map(|(bucket, place)| bucket * self.shape.bucket_range() + place)
    }
}

impl std::iter::FusedIterator for GcsValues<'_> {}
