//! The checksum of Redis: CRC-64 with the Jones polynomial, lowest bit first.

/// The polynomial `ad93d23594c935a9` with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// The effect of eight more bits on the remainder.
const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut remainder, mut bit) = (byte as u64, 0);
        while bit < 8 {
            remainder = remainder >> 1 ^ if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    let mut crc = Crc64::default();
    crc.update(bytes);
    crc.value()
}

/// A checksum of bytes that come in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crc64(u64);

impl Crc64 {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |crc, &byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)]);
    }

    pub(super) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::crc64;

    /// The usual check value of this polynomial; dumps of a real server are in `tests/formats`.
    #[test]
    fn crc64_of_the_nine_digits_has_the_usual_check_value() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(b""), 0);
    }
}
