//! The descriptor of a filter: a short text under the filter's name, changed in one step, and checked before
//! use.
//!
//! ```text
//! mayhap-remote 1
//! stamp 1f0c…            different after every change, to tell a change from a repetition
//! lease_ms 1000          how long a client may use this text
//! next 4                 the number of the next generation
//! builder 83aa…          the client that is building, or -
//! serving number=3 backend=plain shards=64 capacity=100000 target_fpr=0.01 shard_capacity=1810 key=… layout=1 …
//! building number=4 …    also gets insertions: complete when it starts to serve
//! retiring number=2 …    also gets insertions: some clients still read it
//! aside number=5 …       not in use: its shards are being made or removed; the next builder removes what is left
//! ```
//!
//! It is a string, not a hash: one `GETRANGE` reads all of it with a bounded length, even if the name holds a
//! huge foreign value. And mayhap's own server has strings.

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;

use mayhap::{HashScheme, SecretKey};

use crate::RemoteError;
use crate::link::MOST_SWAPPED_BYTES;
use crate::name::FilterName;
use crate::plain::PlainShape;
use crate::plan::{Backend, LEAST_LEASE_MS, MOST_LEASE_MS, Measures};
use crate::route::MOST_SHARDS;

/// The first line: the owner and the version of the text.
const FIRST_LINE: &str = "mayhap-remote 1";
/// The maximum number of generations in addition to the serving one.
const MAX_ALSO: usize = 3;
/// The version of the item routing.
const LAYOUT: u32 = PlainShape::LAYOUT;

/// One generation of a filter. All its shards have the same measures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) measures: Measures,
    pub(crate) key: SecretKey,
    /// A part of the shard keys. It is derived from the key and unique to this generation.
    mark: u32,
}

impl Generation {
    pub(crate) fn new(number: u64, measures: Measures, key: SecretKey) -> Self {
        let mark = HashScheme::keyed(key).hash(b"mayhap-remote generation".as_slice()).to_u128() as u32;
        Self { number, measures, key, mark }
    }

    pub(crate) fn shard_key(&self, name: &FilterName, shard: u32) -> Vec<u8> {
        name.shard_key(shard, self.measures.shards, self.number, self.mark)
    }
}

/// The role of a generation that does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Gets insertions: it will serve.
    Building,
    /// Gets insertions: some clients still read it.
    Retiring,
    /// Gets neither lookups nor insertions: its shards are being made or removed. It is listed so that its
    /// shards can be found if that is interrupted.
    Aside,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Building => "building",
            Self::Retiring => "retiring",
            Self::Aside => "aside",
        }
    }
}

/// The contents of a descriptor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    pub(crate) stamp: u64,
    pub(crate) lease_ms: u64,
    pub(crate) next: u64,
    pub(crate) builder: Option<u64>,
    /// `None`: not made yet, or removed.
    pub(crate) serving: Option<Generation>,
    pub(crate) also: Vec<(Role, Generation)>,
}

/// Why a text is not a valid descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorError {
    /// The text is too long.
    TooLong {
        /// The maximum length, in bytes.
        limit: usize,
    },
    /// The first line is different: the name holds something else.
    Foreign,
    /// A line is invalid.
    Line {
        /// Its number, from 1.
        line: usize,
        /// The reason.
        what: &'static str,
    },
    /// A line is missing at the end.
    Missing {
        /// The missing field.
        what: &'static str,
    },
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { limit } => write!(f, "its descriptor is longer than {limit} bytes"),
            Self::Foreign => f.write_str("its value is not the descriptor of a filter"),
            Self::Line { line, what } => write!(f, "line {line} of its descriptor: {what}"),
            Self::Missing { what } => write!(f, "its descriptor lacks {what}"),
        }
    }
}

impl std::error::Error for DescriptorError {}

/// Returns an unpredictable number.
pub(crate) fn random() -> Result<u64, RemoteError> {
    getrandom::u64().map_err(|_| RemoteError::Randomness)
}

impl Descriptor {
    /// Returns a changed copy, with a new stamp.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Self)) -> Result<Self, RemoteError> {
        let mut changed = self.clone();
        change(&mut changed);
        changed.stamp = random()?;
        Ok(changed)
    }

    /// The generations that get insertions.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Generation> {
        let also = self.also.iter().filter(|(role, _)| *role != Role::Aside);
        self.serving.iter().chain(also.map(|(_, generation)| generation))
    }

    /// All generations that have shards or may have some.
    pub(crate) fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.serving.iter().chain(self.also.iter().map(|(_, generation)| generation))
    }

    /// The generations of one role.
    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = &Generation> {
        self.also.iter().filter(move |(other, _)| *other == role).map(|(_, generation)| generation)
    }

    /// Gives every generation that does not serve the role [`Role::Aside`].
    pub(crate) fn set_aside(&mut self) {
        self.also.iter_mut().for_each(|(role, _)| *role = Role::Aside);
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let builder = self.builder.map_or_else(|| "-".to_owned(), |token| format!("{token:016x}"));
        let mut text = format!(
            "{FIRST_LINE}\nstamp {:016x}\nlease_ms {}\nnext {}\nbuilder {builder}\n",
            self.stamp, self.lease_ms, self.next
        );
        if let Some(generation) = &self.serving {
            put(&mut text, "serving", generation);
        }
        for (role, generation) in &self.also {
            put(&mut text, role.word(), generation);
        }
        text.into_bytes()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DescriptorError> {
        if bytes.len() > MOST_SWAPPED_BYTES {
            return Err(DescriptorError::TooLong { limit: MOST_SWAPPED_BYTES });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| DescriptorError::Foreign)?;
        let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
        if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
            return Err(DescriptorError::Foreign);
        }
        let mut field = |name: &'static str| {
            let (line, text) = lines.next().ok_or(DescriptorError::Missing { what: name })?;
            let value = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
            value
                .map(|value| (line, value))
                .ok_or(DescriptorError::Line { line, what: "another field is expected here" })
        };
        let odd = |line, what| DescriptorError::Line { line, what };
        let (line, stamp) = field("stamp")?;
        let stamp = hex(stamp).ok_or(odd(line, "not 16 hexadecimal digits"))?;
        let (line, lease) = field("lease_ms")?;
        let lease_ms = number(lease).filter(|lease| (LEAST_LEASE_MS..=MOST_LEASE_MS).contains(lease));
        let lease_ms = lease_ms.ok_or(odd(line, "the lease is out of range"))?;
        let (line, next) = field("next")?;
        let next = number(next).filter(|&next| (1..u64::MAX / 2).contains(&next));
        let next = next.ok_or(odd(line, "invalid generation number"))?;
        let (line, builder) = field("builder")?;
        let builder = match builder {
            "-" => None,
            token => Some(hex(token).ok_or(odd(line, "not 16 hexadecimal digits"))?),
        };
        let mut descriptor = Self { stamp, lease_ms, next, builder, serving: None, also: Vec::new() };
        for (line, text) in lines {
            descriptor.take(text).map_err(|what| odd(line, what))?;
        }
        Ok(descriptor)
    }

    /// Parses the line of one generation.
    fn take(&mut self, text: &str) -> Result<(), &'static str> {
        let (role, rest) = text.split_once(' ').ok_or("not the line of a generation")?;
        let generation = parse_generation(rest)?;
        if generation.number >= self.next {
            return Err("the generation number is not below next");
        }
        if self.generations().any(|known| known.number == generation.number) {
            return Err("the generation is listed twice");
        }
        match role {
            "serving" if self.serving.is_none() && self.also.is_empty() => self.serving = Some(generation),
            "building" | "retiring" | "aside" if self.also.len() >= MAX_ALSO => {
                return Err("too many generations");
            }
            "building" => self.also.push((Role::Building, generation)),
            "retiring" => self.also.push((Role::Retiring, generation)),
            "aside" => self.also.push((Role::Aside, generation)),
            _ => return Err("unknown role, or a second serving generation"),
        }
        Ok(())
    }
}

fn put(text: &mut String, role: &str, generation: &Generation) {
    let Generation { number, measures, key, .. } = generation;
    let Measures { backend, shards, capacity, target_fpr, shard_capacity, plain } = measures;
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{role} number={number} backend={} shards={shards} capacity={capacity} target_fpr={target_fpr:e} \
         shard_capacity={shard_capacity} key={:032x} layout={LAYOUT}",
        backend.name(),
        u128::from_be_bytes(*key.expose()),
    );
    if let Some(plain) = plain {
        let (bits, blocks, probes) = (plain.block_bits(), plain.blocks(), plain.probes());
        let _ = write!(text, " block_bits={bits} blocks={blocks} probes={probes}");
    }
    text.push('\n');
}

fn parse_generation(text: &str) -> Result<Generation, &'static str> {
    let mut fields = HashMap::new();
    for word in text.split(' ') {
        let (field, value) = word.split_once('=').ok_or("a field has no value")?;
        if fields.insert(field, value).is_some() {
            return Err("a field is listed twice");
        }
    }
    let mut take = |field| fields.remove(field).ok_or("a field is missing");
    let generation = number(take("number")?).filter(|&number| number >= 1).ok_or("invalid number")?;
    let backend = Backend::named(take("backend")?).ok_or("unknown backend")?;
    let shards = number(take("shards")?).and_then(|shards| u32::try_from(shards).ok());
    let shards = shards.filter(|shards| shards.is_power_of_two() && *shards <= MOST_SHARDS);
    let shards = shards.ok_or("invalid number of shards")?;
    let in_range = |capacity: &u64| (1..=mayhap::sizing::MAX_CAPACITY).contains(capacity);
    let capacity = number(take("capacity")?).filter(in_range).ok_or("invalid capacity")?;
    let target_fpr: f64 = take("target_fpr")?.parse().map_err(|_| "invalid rate")?;
    if !(target_fpr > 0.0 && target_fpr < 1.0) {
        return Err("invalid rate");
    }
    let shard_capacity = number(take("shard_capacity")?).filter(in_range).ok_or("invalid capacity")?;
    if shard_capacity > capacity || shard_capacity < capacity / u64::from(shards) {
        return Err("shard_capacity does not fit capacity and shards");
    }
    let key = take("key")?;
    if key.len() != 32 || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("invalid key");
    }
    let key = u128::from_str_radix(key, 16).map_err(|_| "invalid key")?;
    if number(take("layout")?) != Some(u64::from(LAYOUT)) {
        return Err("unknown layout");
    }
    let plain = match backend {
        Backend::Plain => {
            let mut measure = |field| take(field).and_then(|value| number(value).ok_or("invalid number"));
            let (bits, blocks, probes) = (measure("block_bits")?, measure("blocks")?, measure("probes")?);
            let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let shape = PlainShape::given(narrow(bits), blocks, narrow(probes));
            Some(shape.ok_or("invalid blocks")?)
        }
        _ => None,
    };
    if !fields.is_empty() {
        return Err("unknown field");
    }
    let measures = Measures { backend, shards, capacity, target_fpr, shard_capacity, plain };
    Ok(Generation::new(generation, measures, SecretKey::new(key.to_be_bytes())))
}

/// Parses a number of decimal digits only.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn hex(text: &str) -> Option<u64> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FilterPlan;

    fn generation(number: u64, backend: Backend) -> Generation {
        let measures = FilterPlan::new(backend, 100_000, 0.01).shards(64).measure().unwrap();
        Generation::new(number, measures, SecretKey::new([number as u8; 16]))
    }

    fn full() -> Descriptor {
        Descriptor {
            stamp: 7,
            lease_ms: 1000,
            next: 5,
            builder: Some(9),
            serving: Some(generation(3, Backend::Plain)),
            also: vec![
                (Role::Building, generation(4, Backend::Bloom)),
                (Role::Retiring, generation(2, Backend::Mayhap)),
            ],
        }
    }

    #[test]
    fn shard_keys_belong_to_one_generation_and_are_frozen() {
        let name = FilterName::new("seen").unwrap();
        let key = |generation: &Generation| String::from_utf8(generation.shard_key(&name, 3)).unwrap();
        let one = generation(3, Backend::Plain);
        assert_eq!(key(&one), "{seen:0003}:g3:ad41d4f2");
        let other = Generation::new(3, one.measures.clone(), SecretKey::new([9; 16]));
        assert_ne!(key(&one), key(&other), "the same number, after the filter was removed");
    }

    #[test]
    fn encode_and_decode_round_trip() {
        let empty = Descriptor { builder: None, serving: None, also: Vec::new(), ..full() };
        let aside = Descriptor { also: vec![(Role::Aside, generation(4, Backend::Plain))], ..full() };
        assert_eq!(aside.targets().count(), 1, "a generation set aside gets no insertions");
        for descriptor in [full(), empty, aside] {
            assert_eq!(Descriptor::decode(&descriptor.encode()), Ok(descriptor));
        }
        // The text is frozen with the version in its first line.
        let text = String::from_utf8(full().encode()).unwrap();
        let golden = "mayhap-remote 1\nstamp 0000000000000007\nlease_ms 1000\nnext 5\nbuilder 0000000000000009\n\
            serving number=3 backend=plain shards=64 capacity=100000 target_fpr=1e-2 shard_capacity=1806 \
            key=03030303030303030303030303030303 layout=1 block_bits=512 blocks=36 probes=5\n";
        assert!(text.starts_with(golden), "{text}");
    }

    #[test]
    fn hostile_descriptors_are_rejected() {
        let text = String::from_utf8(full().encode()).unwrap();
        for (from, to) in [
            ("mayhap-remote 1", "mayhap-remote 2"),
            ("stamp 0000000000000007", "stamp 7"),
            ("stamp", "stemp"),
            ("lease_ms 1000", "lease_ms 0"),
            ("lease_ms 1000", "lease_ms 99999999999"),
            ("next 5", "next 0"),
            ("next 5", "next 3"),
            ("next 5", "next +5"),
            ("next 5", "next 18446744073709551615"),
            ("builder 0000000000000009", "builder nobody"),
            ("number=3", "number=0"),
            ("number=3", "number=4"),
            ("number=3 ", ""),
            ("number=3", "number=3 number=3"),
            ("backend=plain", "backend=bf"),
            ("backend=plain", "backend=xx"),
            ("backend=bf", "backend=plain"),
            ("shards=64", "shards=63"),
            ("shards=64", "shards=0"),
            ("shards=64", "shards=131072"),
            ("shards=64", "shards=99999999999999999999"),
            ("capacity=100000", "capacity=0"),
            ("capacity=100000", "capacity=9223372036854775807"),
            ("target_fpr=1e-2", "target_fpr=0"),
            ("target_fpr=1e-2", "target_fpr=nan"),
            ("target_fpr=1e-2", "target_fpr=inf"),
            ("shard_capacity=1806", "shard_capacity=1"),
            ("shard_capacity=1806", "shard_capacity=100001"),
            ("key=0303", "key=03"),
            ("key=0303", "key=+303"),
            ("layout=1", "layout=2"),
            ("block_bits=512", "block_bits=0"),
            ("blocks=36", "blocks=0"),
            ("blocks=36", "blocks=99999999999"),
            ("probes=5", "probes=1000000000"),
            ("probes=5", "probes=5 more=1"),
            ("serving", "retired"),
            ("building", "serving"),
        ] {
            let spoiled = text.replacen(from, to, 1);
            assert_ne!(spoiled, text, "{from}");
            assert!(Descriptor::decode(spoiled.as_bytes()).is_err(), "{from} → {to}");
        }
        assert_eq!(Descriptor::decode(b""), Err(DescriptorError::Foreign));
        assert_eq!(Descriptor::decode(b"\xff\xfe"), Err(DescriptorError::Foreign));
        assert_eq!(Descriptor::decode(&[b'a'; 5000]), Err(DescriptorError::TooLong { limit: 4096 }));
        for cut in 0..text.len() {
            // A text cut in the middle of a line is rejected or lacks generations; it never panics.
            let _ = Descriptor::decode(&text.as_bytes()[..cut]);
        }
        let many = format!("{text}{}", text.lines().last().unwrap().replace("number=2", "number=1"));
        assert!(Descriptor::decode(many.as_bytes()).is_ok());
    }
}
