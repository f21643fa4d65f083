//! `Serialize` and `Deserialize` for all kinds, as the bytes of a `.mayhap` file.
//!
//! A filter is one byte string. Deserializing checks every byte, as opening a file does, and a serialized filter can be
//! written to a file unchanged. Formats without byte strings (JSON) write an array of numbers, which takes several times
//! as much space.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::codec::{self, Storable};
use crate::membership::every_kind;

/// The maximum number of bytes to reserve before the first element of a sequence is read.
const MOST_RESERVED: usize = 1 << 20;

struct Encoded<F>(PhantomData<F>);

impl<'de, F: Storable> Visitor<'de> for Encoded<F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of an encoded filter")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<F, E> {
        codec::decode(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<F, A::Error> {
        let mut bytes = Vec::with_capacity(numbers.size_hint().unwrap_or(0).min(MOST_RESERVED));
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

macro_rules! impl_serde {
    ($($variant:ident $filter:ident $kind:ident),* $(,)?) => {$(
        /// Serializes the filter as the bytes of a `.mayhap` file.
        impl Serialize for crate::$filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&codec::encode(self))
            }
        }

        /// Deserializes the filter from the bytes of a `.mayhap` file, and checks every byte.
        impl<'de> Deserialize<'de> for crate::$filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_bytes(Encoded(PhantomData))
            }
        }
    )*};
}

every_kind!(impl_serde);
impl_serde!(Filter Filter Filter);
