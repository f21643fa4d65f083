//! What clients know about a filter: a short text under the filter's name, changed in one step, believed only once checked.
//!
//! ```text
//! mayhap-remote 1
//! stamp 1f0c…            unlike every other, so that a change is told from a repetition
//! lease_ms 1000          for how long this may be used
//! next 4                 the number of the next generation
//! builder 83aa…          who is building, or -
//! serving number=3 backend=plain shards=64 capacity=100000 target_fpr=0.01 shard_capacity=1810 key=… layout=1 …
//! building number=4 …    also to be written to: complete once it serves
//! retiring number=2 …    also to be written to: some still look at it
//! aside number=5 …       not to be used: it is being made or removed, and the next builder removes what is left of it
//! ```
//!
//! A string and not a hash: one `GETRANGE` reads it whole or not at all, however large something foreign may be, and mayhap's
//! own server has strings.

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

/// The first line: whose it is, and the version of the text.
const FIRST_LINE: &str = "mayhap-remote 1";
/// Besides the one that serves.
const MOST_ALSO: usize = 3;
/// The number of what decides where items go.
const LAYOUT: u32 = PlainShape::LAYOUT;

/// One generation of a filter: its shards are all of these measures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) measures: Measures,
    pub(crate) key: SecretKey,
    /// In the keys of its shards: it follows from the key, and is no other's.
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

/// Why there is a generation that does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Written to: it will serve.
    Building,
    /// Written to: some still look at it.
    Retiring,
    /// Neither asked nor written to: its shards are being made, or removed. It is here so that they are found if that ends
    /// half way.
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

/// Everything a client knows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    pub(crate) stamp: u64,
    pub(crate) lease_ms: u64,
    pub(crate) next: u64,
    pub(crate) builder: Option<u64>,
    /// None: not made yet, or removed.
    pub(crate) serving: Option<Generation>,
    pub(crate) also: Vec<(Role, Generation)>,
}

/// Why a text is not the descriptor of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorError {
    /// Longer than any.
    TooLong {
        /// The most bytes it may have.
        limit: usize,
    },
    /// It does not begin like one: something else has this name.
    Foreign,
    /// A line that makes no sense there.
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// It ends too early.
    Missing {
        /// What should have been there.
        what: &'static str,
    },
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { limit } => write!(f, "it has more than {limit} bytes"),
            Self::Foreign => f.write_str("it is something else"),
            Self::Line { line, what } => write!(f, "line {line}: {what}"),
            Self::Missing { what } => write!(f, "there is no {what}"),
        }
    }
}

impl std::error::Error for DescriptorError {}

/// A number that nobody can guess.
pub(crate) fn random() -> Result<u64, RemoteError> {
    getrandom::u64().map_err(|_| RemoteError::Randomness)
}

impl Descriptor {
    /// This, changed: with a stamp of its own.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Self)) -> Result<Self, RemoteError> {
        let mut changed = self.clone();
        change(&mut changed);
        changed.stamp = random()?;
        Ok(changed)
    }

    /// The generations that an addition goes to.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Generation> {
        let also = self.also.iter().filter(|(role, _)| *role != Role::Aside);
        self.serving.iter().chain(also.map(|(_, generation)| generation))
    }

    /// All generations that have shards, or may have some.
    pub(crate) fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.serving.iter().chain(self.also.iter().map(|(_, generation)| generation))
    }

    /// The generations of one role.
    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = &Generation> {
        self.also.iter().filter(move |(other, _)| *other == role).map(|(_, generation)| generation)
    }

    /// Everything that was written to beside the one that serves is so no more.
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
                .ok_or(DescriptorError::Line { line, what: "another is due here" })
        };
        let odd = |line, what| DescriptorError::Line { line, what };
        let (line, stamp) = field("stamp")?;
        let stamp = hex(stamp).ok_or(odd(line, "not 16 digits"))?;
        let (line, lease) = field("lease_ms")?;
        let lease_ms = number(lease).filter(|lease| (LEAST_LEASE_MS..=MOST_LEASE_MS).contains(lease));
        let lease_ms = lease_ms.ok_or(odd(line, "a lease out of range"))?;
        let (line, next) = field("next")?;
        let next = number(next).filter(|&next| (1..u64::MAX / 2).contains(&next));
        let next = next.ok_or(odd(line, "not the number of a generation"))?;
        let (line, builder) = field("builder")?;
        let builder = match builder {
            "-" => None,
            token => Some(hex(token).ok_or(odd(line, "not 16 digits"))?),
        };
        let mut descriptor = Self { stamp, lease_ms, next, builder, serving: None, also: Vec::new() };
        for (line, text) in lines {
            descriptor.take(text).map_err(|what| odd(line, what))?;
        }
        Ok(descriptor)
    }

    /// The line of a generation.
    fn take(&mut self, text: &str) -> Result<(), &'static str> {
        let (role, rest) = text.split_once(' ').ok_or("not a generation")?;
        let generation = parse_generation(rest)?;
        if generation.number >= self.next {
            return Err("a generation that is yet to come");
        }
        if self.generations().any(|known| known.number == generation.number) {
            return Err("a generation that is there already");
        }
        match role {
            "serving" if self.serving.is_none() && self.also.is_empty() => self.serving = Some(generation),
            "building" | "retiring" | "aside" if self.also.len() >= MOST_ALSO => {
                return Err("too many generations");
            }
            "building" => self.also.push((Role::Building, generation)),
            "retiring" => self.also.push((Role::Retiring, generation)),
            "aside" => self.also.push((Role::Aside, generation)),
            _ => return Err("no such part of a generation's life"),
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
        let (field, value) = word.split_once('=').ok_or("a word without a value")?;
        if fields.insert(field, value).is_some() {
            return Err("a value twice");
        }
    }
    let mut take = |field| fields.remove(field).ok_or("a value is missing");
    let generation = number(take("number")?).filter(|&number| number >= 1).ok_or("not a number")?;
    let backend = Backend::named(take("backend")?).ok_or("an unknown backend")?;
    let shards = number(take("shards")?).and_then(|shards| u32::try_from(shards).ok());
    let shards = shards.filter(|shards| shards.is_power_of_two() && *shards <= MOST_SHARDS);
    let shards = shards.ok_or("not a number of shards")?;
    let in_range = |capacity: &u64| (1..=mayhap::sizing::MAX_CAPACITY).contains(capacity);
    let capacity = number(take("capacity")?).filter(in_range).ok_or("not a capacity")?;
    let target_fpr: f64 = take("target_fpr")?.parse().map_err(|_| "not a rate")?;
    if !(target_fpr > 0.0 && target_fpr < 1.0) {
        return Err("not a rate");
    }
    let shard_capacity = number(take("shard_capacity")?).filter(in_range).ok_or("not a capacity")?;
    if shard_capacity > capacity || shard_capacity < capacity / u64::from(shards) {
        return Err("shards that do not fit the whole");
    }
    let key = take("key")?;
    if key.len() != 32 || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("not a key");
    }
    let key = u128::from_str_radix(key, 16).map_err(|_| "not a key")?;
    if number(take("layout")?) != Some(u64::from(LAYOUT)) {
        return Err("a layout that this program does not know");
    }
    let plain = match backend {
        Backend::Plain => {
            let mut measure = |field| take(field).and_then(|value| number(value).ok_or("not a number"));
            let (bits, blocks, probes) = (measure("block_bits")?, measure("blocks")?, measure("probes")?);
            let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let shape = PlainShape::given(narrow(bits), blocks, narrow(probes));
            Some(shape.ok_or("blocks that cannot be")?)
        }
        _ => None,
    };
    if !fields.is_empty() {
        return Err("a value too many");
    }
    let measures = Measures { backend, shards, capacity, target_fpr, shard_capacity, plain };
    Ok(Generation::new(generation, measures, SecretKey::new(key.to_be_bytes())))
}

/// Digits and nothing else.
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
    fn keys_belong_to_one_generation_and_are_frozen() {
        let name = FilterName::new("seen").unwrap();
        let key = |generation: &Generation| String::from_utf8(generation.shard_key(&name, 3)).unwrap();
        let one = generation(3, Backend::Plain);
        assert_eq!(key(&one), "{seen:0003}:g3:ad41d4f2");
        let other = Generation::new(3, one.measures.clone(), SecretKey::new([9; 16]));
        assert_ne!(key(&one), key(&other), "the same number, after the filter was removed");
    }

    #[test]
    fn what_is_written_is_read() {
        let empty = Descriptor { builder: None, serving: None, also: Vec::new(), ..full() };
        let aside = Descriptor { also: vec![(Role::Aside, generation(4, Backend::Plain))], ..full() };
        assert_eq!(aside.targets().count(), 1, "it is not written to");
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
    fn a_hostile_text_is_refused_and_never_believed() {
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
            // Cut anywhere but behind a line, it is refused or lacks generations; it never panics.
            let _ = Descriptor::decode(&text.as_bytes()[..cut]);
        }
        let many = format!("{text}{}", text.lines().last().unwrap().replace("number=2", "number=1"));
        assert!(Descriptor::decode(many.as_bytes()).is_ok());
    }
}
