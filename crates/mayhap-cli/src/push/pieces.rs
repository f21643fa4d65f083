//! A filter in pieces, each with the iterator that the server expects.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use mayhap::Filter;
use mayhap_formats::{Format, redis_bloom, redis_cuckoo};

use crate::error::CliError;
use crate::remote::Family;

/// The largest piece: a server holds a piece in memory while it arrives, and progress is shown per piece.
const PIECE_BYTES: usize = 1 << 20;

/// A filter in pieces.
pub(super) struct Pieces<'a> {
    source: Source<'a>,
    total_bytes: u64,
}

enum Source<'a> {
    /// Chunks of `SCANDUMP`, up to 16 MiB, and the rest of the current one.
    Chunks {
        chunks: Box<dyn Iterator<Item = (i64, Vec<u8>)> + Send + 'a>,
        iterator: i64,
        chunk: Vec<u8>,
        sent: usize,
    },
    /// The bytes of a mayhap file, and how many were sent.
    Bytes { bytes: Box<dyn Read + Send + 'a>, name: String, offset: u64 },
}

impl<'a> Pieces<'a> {
    /// Splits `filter`, which was read from `path`.
    pub(super) fn of(
        filter: &'a Filter,
        format: Format,
        family: Family,
        path: &Path,
    ) -> Result<Self, CliError> {
        let name = || path.display().to_string();
        let chunks = |chunks, total_bytes| Self {
            source: Source::Chunks { chunks, iterator: 0, chunk: Vec::new(), sent: 0 },
            total_bytes,
        };
        let refused =
            |error: mayhap_formats::WriteError| CliError::Filter { name: name(), what: error.to_string() };
        match (family, filter) {
            (Family::Bloom, Filter::ScalableBloom(filter)) => {
                let bytes = redis_bloom::header(filter).map_err(refused)?.len() as u64;
                let bitmaps: u64 = filter.layers().iter().map(|layer| layer.shape().bits().div_ceil(8)).sum();
                Ok(chunks(Box::new(redis_bloom::chunks(filter).map_err(refused)?), bytes + bitmaps))
            }
            (Family::Cuckoo, Filter::ScalableCuckoo(filter)) => {
                let bytes = redis_cuckoo::header(filter).map_err(refused)?.len() as u64;
                let tables = filter.capacity();
                Ok(chunks(Box::new(redis_cuckoo::chunks(filter).map_err(refused)?), bytes + tables))
            }
            _ if format == Format::Mayhap => {
                let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
                let (total_bytes, file) = opened.map_err(|cause| CliError::Read { name: name(), cause })?;
                Ok(Self {
                    source: Source::Bytes { bytes: Box::new(file), name: name(), offset: 0 },
                    total_bytes,
                })
            }
            _ => {
                let bytes = filter.encode();
                let total_bytes = bytes.len() as u64;
                let bytes = Box::new(io::Cursor::new(bytes));
                Ok(Self { source: Source::Bytes { bytes, name: name(), offset: 0 }, total_bytes })
            }
        }
    }

    /// The size of all pieces.
    pub(super) const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The next piece and its iterator; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<(i64, Vec<u8>)>, CliError> {
        match &mut self.source {
            Source::Chunks { chunks, iterator, chunk, sent } => {
                if *sent == chunk.len() {
                    let Some(next) = chunks.next() else { return Ok(None) };
                    ((*iterator, *chunk), *sent) = (next, 0);
                }
                let piece = &chunk[*sent..chunk.len().min(*sent + PIECE_BYTES)];
                *sent += piece.len();
                // The iterator is the offset after the chunk. A header has iterator 1 and is sent in one piece.
                let remaining = (chunk.len() - *sent) as i64;
                Ok(Some((*iterator - remaining, piece.to_vec())))
            }
            Source::Bytes { bytes, name, offset } => {
                let mut piece = Vec::new();
                let read = bytes.take(PIECE_BYTES as u64).read_to_end(&mut piece);
                read.map_err(|cause| CliError::Read { name: name.clone(), cause })?;
                let iterator = *offset as i64;
                *offset += piece.len() as u64;
                Ok((!piece.is_empty()).then_some((iterator, piece)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mayhap_formats::redis_bloom::{BloomLoader, Scaling};

    use super::*;

    /// A header of any length is one piece, and the pieces load as the same filter.
    #[test]
    fn pieces_of_a_filter_with_many_layers_load_as_the_same_filter() {
        let mut filter = redis_bloom::create(1_000, 1e-6, Scaling::By(40)).unwrap();
        for number in 0..45_000 {
            filter.insert(&format!("item {number}")).unwrap();
        }
        let filter = Filter::ScalableBloom(filter);
        let mut pieces = Pieces::of(&filter, Format::RedisBloom, Family::Bloom, Path::new("")).unwrap();
        let (mut loader, mut bytes, mut count) = (BloomLoader::new(u64::MAX), 0, 0);
        while let Some((iterator, piece)) = pieces.next().unwrap() {
            assert!(piece.len() <= PIECE_BYTES);
            bytes += piece.len() as u64;
            count += 1;
            loader.load(iterator, &piece).unwrap();
        }
        assert_eq!(bytes, pieces.total_bytes());
        assert!(loader.is_complete() && count > 4, "{count} pieces");
        let loaded = Filter::ScalableBloom(loader.finish().unwrap());
        assert!(loaded.encode() == filter.encode());
    }
}
