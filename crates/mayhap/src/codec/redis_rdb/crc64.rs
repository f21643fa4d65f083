//! The checksum of Redis: CRC-64 with the polynomial of Jones, the lowest bit first.

/// The polynomial `ad93d23594c935a9`, its bits the other way round.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// What eight more bits do to the remainder.
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

/// The checksum of bytes that come piece by piece.
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

    /// The value everybody quotes for this polynomial; the dumps of a real server are in `tests/formats`.
    #[test]
    fn the_usual_nine_digits() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(b""), 0);
    }
}
