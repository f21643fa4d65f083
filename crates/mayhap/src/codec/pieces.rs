//! Encoding a large filter piece by piece, while other threads use it between the pieces.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::header::{HEADER_BYTES, Header};
use super::{Bytes, DecodeError, Encoding, Parts, Payload, Source, Storable};
use crate::kind::Kind;

/// Encodes a filter piece by piece, so that no other user of the filter waits for longer than one piece takes.
///
/// * Counts and sizes are those at the time the encoding began.
/// * Other threads may insert into shared Bloom filters between the pieces. The encoding may contain all, some or none of the bits of such
///   an item; it always contains every item inserted before the encoding began. Any other change to the filter invalidates the encoding:
///   begin again.
/// * The headers are written before the checksums of the words are known. [`seal`] fills them in after the last piece.
///
/// ```
/// use mayhap::Bloom;
/// use mayhap::codec::{Pieces, seal};
///
/// let mut filter = Bloom::for_capacity(1_000, 0.01, 0)?;
/// filter.insert("ada");
/// let (mut pieces, mut bytes) = (Pieces::of(&filter), Vec::new());
/// while pieces.left() > 0 {
///     assert!(pieces.next(&filter, 100, &mut bytes));
/// }
/// assert!(Bloom::decode(&bytes).is_err()); // not sealed
/// seal(&mut bytes)?;
/// assert_eq!(bytes, filter.encode());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pieces {
    /// All headers in the order in which they are written, each with the number of bytes of words after it.
    parts: Vec<(Header, usize)>,
    /// The next part, and the next byte in it.
    part: usize,
    at: usize,
    left: u64,
}

impl Pieces {
    /// Begins the encoding of `filter`. Nothing is written yet.
    #[must_use]
    pub fn of<F: Storable>(filter: &F) -> Self {
        let mut parts = Vec::new();
        flatten(Encoding::of(filter), &mut |header, words| {
            parts.push((header, words.map_or(0, |words| words.payload_bytes() as usize)));
        });
        let left = parts.iter().map(|(_, words)| (HEADER_BYTES + words) as u64).sum();
        Self { parts, part: 0, at: 0, left }
    }

    /// Like [`of`](Self::of), for a filter whose items are counted elsewhere.
    #[must_use]
    pub fn counting(mut self, inserted: u64) -> Self {
        if let Some((header, _)) = self.parts.first_mut() {
            header.inserted = inserted;
        }
        self
    }

    /// The number of bytes still to be written.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Appends the next piece, of about `most` bytes. Returns `false` if the structure of `filter` has changed.
    pub fn next<F: Storable>(&mut self, filter: &F, most: usize, out: &mut Vec<u8>) -> bool {
        let (mut parts, mut as_begun) = (Vec::new(), true);
        flatten(Encoding::of(filter), &mut |_, words| parts.push(words));
        as_begun &= parts.len() == self.parts.len();
        for (part, (_, words)) in parts.iter().zip(&self.parts) {
            as_begun &= part.map_or(0, |part| part.payload_bytes() as usize) == *words;
        }
        if !as_begun {
            return false;
        }
        let end = out.len().saturating_add(most.max(HEADER_BYTES));
        while let Some((header, words)) = self.parts.get(self.part)
            && out.len() < end
        {
            let before = out.len();
            if self.at == 0 {
                out.extend_from_slice(&header.to_bytes());
                self.at = HEADER_BYTES;
            }
            let from = self.at - HEADER_BYTES;
            // Whole words: each begins at a multiple of eight.
            let some = (words - from).min(end.saturating_sub(out.len()).next_multiple_of(8));
            if let Some(part) = parts[self.part] {
                part.append_to(from, some, out);
            }
            self.at += some;
            if self.at == HEADER_BYTES + words {
                (self.part, self.at) = (self.part + 1, 0);
            }
            self.left -= (out.len() - before) as u64;
        }
        true
    }
}

/// Calls back with every header, in the order in which they are written, and with the words after it.
fn flatten<'a>(encoding: Encoding<'a>, each: &mut impl FnMut(Header, Option<&'a dyn Payload>)) {
    let Encoding { mut header, parts } = encoding;
    match parts {
        Parts::Words(words) => {
            header.payload_bytes = words.payload_bytes();
            each(header, Some(words));
        }
        Parts::Filters(filters) => {
            header.payload_bytes = filters.iter().map(unsealed_bytes).sum();
            each(header, None);
            filters.into_iter().for_each(|filter| flatten(filter, each));
        }
    }
}

fn unsealed_bytes(encoding: &Encoding<'_>) -> u64 {
    HEADER_BYTES as u64
        + match &encoding.parts {
            Parts::Words(words) => words.payload_bytes(),
            Parts::Filters(filters) => filters.iter().map(unsealed_bytes).sum(),
        }
}

/// Turns the output of [`Pieces`] into a valid encoding: writes the checksums of the words into the headers.
///
/// # Errors
/// [`DecodeError`] for any other bytes. The caller must make sure that the bytes are intact before they are sealed: afterwards the checksums
/// match whatever the bytes are.
pub fn seal(bytes: &mut [u8]) -> Result<(), DecodeError> {
    let end = bytes.len() as u64;
    match seal_at(bytes, 0)? {
        whole if whole == end => Ok(()),
        whole => Err(DecodeError::TrailingBytes { extra: end.saturating_sub(whole) }),
    }
}

/// Seals the filter that begins at byte `at`, and returns where it ends.
fn seal_at(bytes: &mut [u8], at: u64) -> Result<u64, DecodeError> {
    let mut header = Bytes(bytes).header_at(at)?;
    let payload = at + HEADER_BYTES as u64;
    let end = payload.saturating_add(header.payload_bytes);
    if end > bytes.len() as u64 {
        return Err(DecodeError::TooShort { need: end, got: bytes.len() as u64 });
    }
    header.payload_checksum = match header.kind {
        // The payload is filters, which are not sealed yet.
        Kind::ScalableBloom | Kind::DualBloom => {
            let (mut checksum, mut part) = (Xxh3::new(), payload);
            while part < end {
                let next = match Bytes(bytes).header_at(part)?.kind {
                    Kind::ScalableBloom | Kind::DualBloom => return Err(DecodeError::PayloadDamaged),
                    _ => seal_at(bytes, part)?,
                };
                checksum.update(&bytes[part as usize..part as usize + HEADER_BYTES]);
                part = next;
            }
            if part != end {
                return Err(DecodeError::PayloadDamaged);
            }
            checksum.digest()
        }
        _ => xxh3_64(&bytes[payload as usize..end as usize]),
    };
    bytes[at as usize..payload as usize].copy_from_slice(&header.to_bytes());
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AtomicBloom, AtomicScalableBloom, BuildError, Cuckoo, DualBloom, Filter, ScalableBloom,
        ScalableCuckoo, ScalableCuckooShape,
    };

    fn in_pieces(filter: &Filter, most: usize) -> Vec<u8> {
        let (mut pieces, mut bytes) = (Pieces::of(filter), Vec::new());
        let all = pieces.left();
        while pieces.left() > 0 {
            let before = bytes.len();
            assert!(pieces.next(filter, most, &mut bytes));
            assert!((1..=most.max(HEADER_BYTES) + HEADER_BYTES + 8).contains(&(bytes.len() - before)));
        }
        assert_eq!(bytes.len() as u64, all);
        bytes
    }

    #[test]
    fn sealed_pieces_of_any_length_equal_the_encoding() -> Result<(), Box<dyn std::error::Error>> {
        let mut scalable = ScalableBloom::for_capacity(100, 0.01, 3)?;
        let mut dual = DualBloom::for_capacity(100, 20, 0.01, 3)?;
        let mut cuckoo = Cuckoo::for_capacity(1_000, 0.01, 3)?;
        for item in 0..700_u64 {
            scalable.insert(&item)?;
            dual.insert(&item)?;
            cuckoo.insert(&item)?;
        }
        // In segments; the first ends in the middle of a line.
        let shape = ScalableCuckooShape::for_capacity(6)?.with_bucket_size(3)?.with_expansion(2)?;
        let mut tables = ScalableCuckoo::with_shape(shape, 3)?;
        (0..20_000_u64).try_for_each(|item| tables.insert_copy(&item))?;
        for filter in [
            Filter::ScalableBloom(scalable),
            Filter::DualBloom(dual),
            Filter::Cuckoo(cuckoo),
            Filter::ScalableCuckoo(tables),
        ] {
            for most in [1, 8, 200, 1_000, 1 << 30] {
                let mut bytes = in_pieces(&filter, most);
                seal(&mut bytes)?;
                assert_eq!(bytes, filter.encode());
                for cut in [0, 100, HEADER_BYTES, bytes.len() - 1] {
                    assert!(seal(&mut bytes.clone()[..cut]).is_err());
                }
                bytes.push(0);
                assert!(seal(&mut bytes).is_err());
            }
        }
        Ok(())
    }

    #[test]
    fn inserts_between_pieces_are_harmless_and_growth_is_detected() -> Result<(), Box<dyn std::error::Error>>
    {
        let mut filter = AtomicScalableBloom::from(ScalableBloom::for_capacity(1_000, 0.01, 3)?);
        let hashes: Vec<_> = (0..2_000_u64).map(|item| filter.hash(&item)).collect();
        let mut new = crate::NewItems::new();
        filter.insert_hash_batch(&hashes[..500], &mut new);
        let before = filter.get_mut().inserted();
        let (mut pieces, mut bytes) = (Pieces::of(filter.uncounted()), Vec::new());
        assert!(pieces.next(filter.uncounted(), 600, &mut bytes));
        filter.insert_hash_batch(&hashes[500..900], &mut new);
        while pieces.left() > 0 {
            assert!(pieces.next(filter.uncounted(), 600, &mut bytes));
        }
        seal(&mut bytes)?;
        let copy = ScalableBloom::decode(&bytes)?;
        assert_eq!(copy.inserted(), before);
        assert!(hashes[..500].iter().all(|&hash| copy.may_contain_hash(hash)));
        let mut pieces = Pieces::of(filter.uncounted());
        for &hash in &hashes {
            filter.get_mut().insert_hash(hash)?;
        }
        assert!(!pieces.next(filter.uncounted(), 600, &mut Vec::new()), "the filter has grown");
        Ok(())
    }

    #[test]
    fn restored_items_are_members_and_counted() -> Result<(), BuildError> {
        let filter = AtomicBloom::for_capacity(10, 0.01, 3)?;
        let hashes: Vec<_> = (0..50_u64).map(|item| filter.hash(&item)).collect();
        filter.put_back(&hashes);
        filter.put_back(&hashes[..5]);
        assert_eq!(filter.inserted(), 55);
        let mut scalable = AtomicScalableBloom::from(ScalableBloom::for_capacity(10, 0.01, 3)?);
        scalable.put_back(&hashes);
        assert_eq!((scalable.inserted(), scalable.layers()), (50, 1));
        assert!(hashes.iter().all(|&hash| filter.may_contain_hash(hash) && scalable.may_contain_hash(hash)));
        Ok(())
    }
}
