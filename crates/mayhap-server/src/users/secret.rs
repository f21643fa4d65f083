//! Passwords: what is kept of them, and how they are compared.
//!
//! What is kept is the SHA-256 of a password, as Redis keeps it, so that files of users move both ways. A slow hash would make one that
//! was stolen harder to guess from, but only for passwords that people choose, and everybody could have the server work hard by
//! sending wrong ones. So: passwords from `ACL GENPASS`, a file of users that only its owner reads, and wrong guesses that have to wait.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// What is kept of a password. It can be compared in one way only, which takes as long for wrong ones as for the right one.
#[derive(Clone, Copy)]
pub struct Secret([u8; 32]);

impl Secret {
    /// What is kept of `password`.
    #[must_use]
    pub fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// From 64 digits, in lower case.
    #[must_use]
    pub fn from_hex(digits: &[u8]) -> Option<Self> {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }

    /// As 64 digits.
    #[must_use]
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }
}

impl ConstantTimeEq for Secret {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

impl Eq for Secret {}

/// Tells nothing.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A password on its way from a file or the environment to where its hash is kept. It shows itself to nobody, and there is no way to
/// compare it.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// What is kept of it.
    #[must_use]
    pub fn secret(&self) -> Secret {
        Secret::of(self.0.as_bytes())
    }
}

impl From<String> for Password {
    fn from(password: String) -> Self {
        Self(password)
    }
}

impl From<&str> for Password {
    fn from(password: &str) -> Self {
        Self(password.to_owned())
    }
}

/// Tells nothing.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Bytes as digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_redis_keeps() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Secret::of(b"abc").to_hex(), abc);
        assert_eq!(Secret::from_hex(abc.as_bytes()), Some(Secret::of(b"abc")));
        for wrong in [&abc[1..], &abc.to_uppercase(), "", &format!("{abc}00"), &abc.replace('b', "g")] {
            assert_eq!(Secret::from_hex(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn every_bit_counts_and_none_is_shown() {
        let secret = Secret::of(b"abc");
        for bit in 0..256 {
            let mut other = secret;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(secret, other, "{bit}");
        }
        assert_eq!(format!("{secret:?} {:?}", Password::from("abc")), "Secret Password");
    }
}
