//! Mutations that know the fields: lengths, counts and shapes get invalid values, and the rest stays valid.

use crate::random::Random;

/// Numbers around which sizes wrap, and their neighbours.
pub const NUMBERS: [u64; 28] = [
    0,
    1,
    2,
    3,
    7,
    8,
    40,
    63,
    64,
    127,
    255,
    256,
    1_000,
    1_001,
    32_768,
    65_535,
    65_536,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 33,
    1 << 40,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Fractions that are invalid, too small or too large.
pub const FRACTIONS: [f64; 16] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -0.0,
    0.0,
    1e-300,
    5e-324,
    1e-310,
    f64::MAX,
    -1.0,
    0.25,
    0.5,
    0.999_999_999_999_999_9,
    1.0,
    2.0,
    1e18,
];

/// A field of a module's value in a `DUMP` payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A number.
    Unsigned(u64),
    /// A double.
    Double(f64),
    /// A string.
    String(Vec<u8>),
}

/// A decoded module value.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleValue {
    /// The nine-letter name and the version.
    pub id: u64,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// Reads a length of an RDB file, and returns the rest.
fn length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let number = |rest: &'_ [u8], count: usize| {
        let (number, _) = rest.split_at_checked(count)?;
        Some(number.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    Some(match (first >> 6, first & 63) {
        (0, low) => (low.into(), rest),
        (1, high) => (u64::from(high) << 8 | number(rest, 1)?, &rest[1..]),
        (2, 0) => (number(rest, 4)?, &rest[4..]),
        (2, 1) => (number(rest, 8)?, &rest[8..]),
        _ => return None,
    })
}

fn put_length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..64 => out.push(length as u8),
        64..16_384 => out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes()),
        _ => {
            out.push(0x81);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// The id of a module's type: nine letters of six bits, and the version of its values.
#[must_use]
pub fn module_id(letters: &str, version: u64) -> u64 {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let number = |letter: u8| LETTERS.iter().position(|&there| there == letter).unwrap_or(0) as u64;
    letters.bytes().fold(0, |id, letter| id << 6 | number(letter)) << 10 | version & 0x3ff
}

impl ModuleValue {
    /// Decodes the value in a `DUMP` payload with its version and checksum; `None` for other payloads.
    #[must_use]
    pub fn of_dump(payload: &[u8]) -> Option<Self> {
        let value = payload.get(..payload.len().checked_sub(10)?)?;
        let (id, mut rest) = length(value.strip_prefix(&[7])?)?;
        let mut fields = Vec::new();
        loop {
            let (opcode, behind) = length(rest)?;
            rest = behind;
            fields.push(match opcode {
                0 => return rest.is_empty().then_some(Self { id, fields }),
                2 => {
                    let (number, behind) = length(rest)?;
                    rest = behind;
                    Field::Unsigned(number)
                }
                4 => {
                    let (bytes, behind) = rest.split_first_chunk()?;
                    rest = behind;
                    Field::Double(f64::from_le_bytes(*bytes))
                }
                5 => {
                    let (count, behind) = length(rest)?;
                    let (bytes, behind) = behind.split_at_checked(usize::try_from(count).ok()?)?;
                    rest = behind;
                    Field::String(bytes.to_vec())
                }
                _ => return None,
            });
        }
    }

    /// Encodes the value without version and checksum; [`seal::redis_payload`](crate::seal::redis_payload) appends them. The checksums of one of our filters
    /// in it are corrected.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        /// The bytes before the filter: its generation and its creation time.
        const HISTORY_BYTES: usize = 12;
        let is_mayhap = self.id >> 10 == module_id("mayhap---", 0) >> 10;
        let mut out = vec![7, 0x81];
        out.extend_from_slice(&self.id.to_be_bytes());
        for field in &self.fields {
            match field {
                Field::Unsigned(number) => {
                    out.push(2);
                    put_length(&mut out, *number);
                }
                Field::Double(number) => {
                    out.push(4);
                    out.extend_from_slice(&number.to_le_bytes());
                }
                Field::String(bytes) => {
                    out.push(5);
                    put_length(&mut out, bytes.len() as u64);
                    let at = out.len();
                    out.extend_from_slice(bytes);
                    if is_mayhap && bytes.len() > HISTORY_BYTES {
                        crate::seal::mayhap(&mut out[at + HISTORY_BYTES..]);
                    }
                }
            }
        }
        out.push(0);
        out
    }

    /// Changes, removes or duplicates one field.
    pub fn change(&mut self, random: &mut Random) {
        if self.fields.is_empty() {
            return;
        }
        let at = random.below(self.fields.len());
        match random.below(16) {
            0 => drop(self.fields.remove(at)),
            1 => self.fields.insert(at, self.fields[at].clone()),
            2 => self.id = self.id & !0x3ff | random.next() & 0x7,
            _ => match &mut self.fields[at] {
                Field::Unsigned(number) => *number = random.number(*number),
                Field::Double(number) => *number = random.fraction(*number),
                Field::String(bytes) => change_plain(bytes, 12 + crate::seal::MAYHAP_HEADER, random),
            },
        }
    }
}

/// Changes fields of eight bytes, or bytes anywhere, or the length.
pub fn change_plain(bytes: &mut Vec<u8>, fields: usize, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let fields = fields.min(bytes.len());
    match random.below(8) {
        // A field of this many bytes, aligned to its size.
        0..5 if fields >= 8 => {
            let width = [1, 2, 4, 8][random.below(4)];
            let at = random.below(fields / width) * width;
            let mut old = [0; 8];
            old[..width].copy_from_slice(&bytes[at..at + width]);
            let new = match random.below(4) {
                0 => random.fraction(f64::from_le_bytes(old)).to_bits(),
                _ => random.number(u64::from_le_bytes(old)),
            };
            bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
        }
        _ => random.bytes(bytes),
    }
}
