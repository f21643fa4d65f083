//! The 192 bytes in front of every encoded filter. `docs/format.md` draws them.

use xxhash_rust::xxh3::xxh3_64;

use super::DecodeError;
use crate::hash::{HashScheme, SecretKey};
use crate::kind::Kind;

/// Bytes of a header. A multiple of a cache line, which aligns the payload after it.
pub(crate) const HEADER_BYTES: usize = 192;
/// The first bytes of every `.mayhap` file. The first cannot begin a text, and the line feed reveals a file whose line ends were converted.
pub const MAGIC: [u8; 8] = *b"\x89mayhap\n";
/// The only version so far.
pub(crate) const VERSION: u16 = 1;
/// Numbers that a kind may use for its own parameters.
pub(crate) const PARAMETERS: usize = 8;

/// No filter counts beyond this, so adding to a decoded count cannot overflow.
pub(crate) const MAX_INSERTED: u64 = 1 << 62;

/// Hash schemes from this number on belong to other programs.
const FIRST_FOREIGN_SCHEME: u16 = 16;
/// No hash scheme: the placement uses the item itself, by another program's rule.
pub(crate) const SELF_HASHED: u16 = 15;

const CHECKSUM_AT: usize = HEADER_BYTES - 8;

/// The decoded header of a filter. Fields that a kind does not use are zero.
#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub struct Header {
    pub(crate) kind: Kind,
    pub(crate) placement: u16,
    pub(crate) hash_scheme: u16,
    pub(crate) secret: [u8; 16],
    /// How the items of a foreign filter are encoded; 0 for our own filters.
    pub(crate) item_encoding: u16,
    pub(crate) payload_bytes: u64,
    pub(crate) capacity: u64,
    pub(crate) inserted: u64,
    pub(crate) target_fpr: f64,
    pub(crate) parameters: [u64; PARAMETERS],
    pub(crate) payload_checksum: u64,
}

impl Header {
    pub(crate) fn new(kind: Kind, placement: u16, scheme: Option<&HashScheme>) -> Self {
        let (mut secret, mut item_encoding) = ([0; 16], 0);
        match scheme {
            Some(HashScheme::Fast { seed }) => secret[..8].copy_from_slice(&seed.to_le_bytes()),
            Some(HashScheme::Keyed { key }) => secret = *key.expose(),
            Some(HashScheme::Foreign(foreign)) => {
                (secret, item_encoding) = (foreign.secret(), foreign.items().number());
            }
            None => {}
        }
        Self {
            kind,
            placement,
            hash_scheme: scheme.map_or(0, HashScheme::number),
            secret,
            item_encoding,
            payload_bytes: 0,
            capacity: 0,
            inserted: 0,
            target_fpr: 0.0,
            parameters: [0; PARAMETERS],
            payload_checksum: 0,
        }
    }

    pub(crate) fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(10, &self.kind.number().to_le_bytes());
        put(12, &self.placement.to_le_bytes());
        put(14, &self.hash_scheme.to_le_bytes());
        put(16, &self.payload_bytes.to_le_bytes());
        put(24, &self.payload_checksum.to_le_bytes());
        put(32, &self.secret);
        put(48, &self.capacity.to_le_bytes());
        put(56, &self.inserted.min(MAX_INSERTED).to_le_bytes());
        put(64, &self.target_fpr.to_bits().to_le_bytes());
        for (index, parameter) in self.parameters.iter().enumerate() {
            put(72 + 8 * index, &parameter.to_le_bytes());
        }
        put(136, &self.item_encoding.to_le_bytes());
        let checksum = xxh3_64(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, DecodeError> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..8] != MAGIC {
            return Err(DecodeError::BadMagic);
        }
        // Checked before the checksum: a later version may store it elsewhere, and the error should be "too new", not "damaged".
        if u16_at(8) != VERSION {
            return Err(DecodeError::UnknownVersion { got: u16_at(8), newest: VERSION });
        }
        if u64_at(CHECKSUM_AT) != xxh3_64(&bytes[..CHECKSUM_AT]) {
            return Err(DecodeError::HeaderDamaged);
        }
        if let Some(at) = (138..CHECKSUM_AT).find(|&at| bytes[at] != 0) {
            return Err(DecodeError::BadField { field: "reserved", got: u64::from(bytes[at]) });
        }
        // Our own schemes hash the bytes of an item unchanged.
        if u16_at(136) != 0 && u16_at(14) < SELF_HASHED {
            return Err(DecodeError::BadField { field: "item encoding", got: u16_at(136).into() });
        }
        if u64_at(56) > MAX_INSERTED {
            return Err(DecodeError::BadField { field: "inserted", got: u64_at(56) });
        }
        Ok(Self {
            kind: Kind::from_number(u16_at(10)).ok_or(DecodeError::UnknownKind { got: u16_at(10) })?,
            placement: u16_at(12),
            hash_scheme: u16_at(14),
            payload_bytes: u64_at(16),
            payload_checksum: u64_at(24),
            secret: std::array::from_fn(|i| bytes[32 + i]),
            item_encoding: u16_at(136),
            capacity: u64_at(48),
            inserted: u64_at(56),
            target_fpr: f64::from_bits(u64_at(64)),
            parameters: std::array::from_fn(|i| u64_at(72 + 8 * i)),
        })
    }

    /// Returns whether it contains a secret key.
    #[cfg(feature = "file")]
    pub(crate) fn has_secret(&self) -> bool {
        self.hash_scheme == 2
    }

    /// Returns the hash scheme with its seed or key.
    pub(crate) fn scheme(&self) -> Result<HashScheme, DecodeError> {
        let (low, high) = self.secret.split_at(8);
        match self.hash_scheme {
            1 if high.iter().all(|&byte| byte == 0) => {
                Ok(HashScheme::fast(u64::from_le_bytes(std::array::from_fn(|i| low[i]))))
            }
            1 => Err(DecodeError::BadField { field: "seed", got: bad_byte(high) }),
            2 => Ok(HashScheme::keyed(SecretKey::new(self.secret))),
            FIRST_FOREIGN_SCHEME.. => {
                let foreign =
                    crate::hash::ForeignScheme::from_parts(self.hash_scheme, self.secret, self.items()?)
                        .ok_or(DecodeError::UnknownHashScheme { got: self.hash_scheme })?;
                if let Some(function) = foreign.function().is_not_compiled_in() {
                    return Err(DecodeError::NotCompiledIn { function });
                }
                Ok(HashScheme::Foreign(foreign))
            }
            got => Err(DecodeError::UnknownHashScheme { got }),
        }
    }

    /// How the items of a foreign filter are encoded.
    pub(crate) fn items(&self) -> Result<crate::item::ItemEncoding, DecodeError> {
        let got = u64::from(self.item_encoding);
        crate::item::ItemEncoding::from_number(self.item_encoding)
            .ok_or(DecodeError::BadField { field: "item encoding", got })
    }

    /// `Ok` for kinds that do not hash.
    pub(crate) fn expect_no_scheme(&self) -> Result<(), DecodeError> {
        match self.hash_scheme {
            0 if self.secret == [0; 16] => Ok(()),
            0 => Err(DecodeError::BadField { field: "seed", got: bad_byte(&self.secret) }),
            got => Err(DecodeError::UnknownHashScheme { got }),
        }
    }

    pub(crate) fn expect_placement(&self, expected: u16) -> Result<(), DecodeError> {
        if self.placement == expected {
            return Ok(());
        }
        Err(DecodeError::UnknownPlacement { got: self.placement })
    }

    /// `Ok` if only the first `used` parameters are set.
    pub(crate) fn expect_parameters(&self, used: usize) -> Result<(), DecodeError> {
        match self.parameters[used..].iter().find(|&&parameter| parameter != 0) {
            Some(&got) => Err(DecodeError::BadField { field: "unused parameter", got }),
            None => Ok(()),
        }
    }

    /// Returns parameter `index` as a 32-bit number.
    pub(crate) fn parameter_u32(&self, index: usize, field: &'static str) -> Result<u32, DecodeError> {
        let got = self.parameters[index];
        u32::try_from(got).map_err(|_| DecodeError::BadField { field, got })
    }
}

/// Returns the first byte that should have been zero.
fn bad_byte(bytes: &[u8]) -> u64 {
    bytes.iter().copied().find(|&byte| byte != 0).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_round_trip() {
        let mut header = Header::new(Kind::BlockedBloom, 3, Some(&HashScheme::fast(77)));
        header.capacity = 1;
        header.inserted = 2;
        header.target_fpr = 0.25;
        header.parameters = [9, 8, 7, 6, 5, 4, 3, 2];
        header.payload_bytes = 640;
        header.payload_checksum = 99;
        assert_eq!(Header::from_bytes(&header.to_bytes()), Ok(header.clone()));
        assert_eq!(header.scheme(), Ok(HashScheme::fast(77)));
    }

    #[test]
    fn a_hash_function_that_is_not_compiled_in_is_named() {
        let mut header = Header::new(Kind::Bloom, 4, None);
        (header.hash_scheme, header.item_encoding) = (17, 1);
        let function = "Redisson's HighwayHash";
        if cfg!(feature = "named-hashes") {
            assert_eq!(header.scheme().map(|scheme| scheme.number()), Ok(17));
        } else {
            assert_eq!(header.scheme(), Err(DecodeError::NotCompiledIn { function }));
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let bytes = Header::new(Kind::Bloom, 1, Some(&HashScheme::fast(77))).to_bytes();
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::from_bytes(&damaged).is_err(), "bit {bit}");
        }
    }
}
