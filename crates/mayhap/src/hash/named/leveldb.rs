//! The 32-bit hash of LevelDB's filter blocks, and RocksDB's variant of it for its legacy ones.

const M: u32 = 0xc6a4_a793;

/// The seed both programs use for filters.
pub const BLOOM_SEED: u32 = 0xbc9f_1d34;

/// LevelDB's function: tail bytes are unsigned.
#[inline]
pub fn leveldb(item: &[u8], seed: u32) -> u32 {
    hash(item, seed, u32::from)
}

/// RocksDB's function: tail bytes are signed, so values differ if one of the last `len % 4` bytes is 0x80 or more.
#[inline]
pub fn rocksdb(item: &[u8], seed: u32) -> u32 {
    hash(item, seed, |byte| i32::from(byte as i8) as u32)
}

#[inline]
fn hash(item: &[u8], seed: u32, widen: impl Fn(u8) -> u32) -> u32 {
    let (blocks, tail) = item.as_chunks::<4>();
    let mut hash = seed ^ (item.len() as u32).wrapping_mul(M);
    for block in blocks {
        hash = hash.wrapping_add(u32::from_le_bytes(*block)).wrapping_mul(M);
        hash ^= hash >> 16;
    }
    if !tail.is_empty() {
        for (index, &byte) in tail.iter().enumerate() {
            hash = hash.wrapping_add(widen(byte) << (8 * index));
        }
        hash = hash.wrapping_mul(M);
        hash ^= hash >> 24;
    }
    hash
}
