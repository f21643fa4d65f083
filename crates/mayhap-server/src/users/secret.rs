//! Passwords: how they are stored and compared.
//!
//! Only the SHA-256 of a password is stored, as in Redis, so that files of users can be exchanged. A slow
//! hash would make it harder to guess a password from a stolen hash, but only for passwords that people
//! choose, and any client could put load on the server by sending wrong passwords. Instead: use passwords
//! from `ACL GENPASS`, keep the file of users readable by its owner only, and delay replies to wrong guesses.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The hash of a password. There is only one way to compare it, which takes the same time for right and wrong
/// passwords.
#[derive(Clone, Copy)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Hashes `password`.
    #[must_use]
    pub fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// Parses 64 hexadecimal digits in lower case.
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

    /// Formats it as 64 hexadecimal digits.
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

/// Does not show the hash.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A password between a file or the environment and its hash. It is never shown and cannot be compared.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// The hash of the password.
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

/// Does not show the password.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_redis() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Secret::of(b"abc").to_hex(), abc);
        assert_eq!(Secret::from_hex(abc.as_bytes()), Some(Secret::of(b"abc")));
        for wrong in [&abc[1..], &abc.to_uppercase(), "", &format!("{abc}00"), &abc.replace('b', "g")] {
            assert_eq!(Secret::from_hex(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn every_bit_is_compared_and_none_is_shown() {
        let secret = Secret::of(b"abc");
        for bit in 0..256 {
            let mut other = secret;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(secret, other, "{bit}");
        }
        assert_eq!(format!("{secret:?} {:?}", Password::from("abc")), "Secret Password");
    }
}
