//! The parameters of `CONFIG` that decide what commands do: RedisBloom's names, defaults and ranges, and a few of our own.
//!
//! [`ALL`] is the table that the server's `CONFIG` and a module's registration read. Changing a parameter never touches filters
//! that are there, but for `cf-max-expansions` and `cf-eviction`, which every addition reads.

use std::fmt;

use mayhap::SecretKey;

use crate::args;
use crate::context::Environment;
use crate::refusal::Refusal;

/// The largest capacity that a request or a parameter may ask for.
pub const MAX_CAPACITY: u64 = 1 << 30;
/// The largest expansion.
pub const MAX_EXPANSION: u64 = 32_768;
/// Rates above this are taken for it, silently.
const MAX_ERROR_RATE: f64 = 0.25;
/// The largest bucket of a cuckoo filter, if `cf-initial-size` allows for it.
pub(crate) const MAX_BUCKET_SIZE: u64 = 255;

/// What new filters are like unless the request says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// `bf-error-rate`.
    pub bf_error_rate: f64,
    /// `bf-initial-size`.
    pub bf_initial_size: u64,
    /// `bf-expansion-factor`; 0: filters do not grow.
    pub bf_expansion_factor: u32,
    /// `bf-growth`, ours.
    pub bf_growth: Growth,
    /// `bf-hash`, ours.
    pub bf_hash: Hash,
    /// `cf-bucket-size`.
    pub cf_bucket_size: u32,
    /// `cf-initial-size`.
    pub cf_initial_size: u64,
    /// `cf-max-iterations`.
    pub cf_max_iterations: u32,
    /// `cf-expansion-factor`; 0: filters do not grow.
    pub cf_expansion_factor: u32,
    /// `cf-max-expansions`.
    pub cf_max_expansions: u64,
    /// `cf-eviction`, ours.
    pub cf_eviction: Eviction,
    /// `cf-hash`, ours.
    pub cf_hash: Hash,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            bf_error_rate: 0.01,
            bf_initial_size: 100,
            bf_expansion_factor: 2,
            bf_growth: Growth::RedisBloom,
            bf_hash: Hash::RedisBloom,
            cf_bucket_size: 2,
            cf_initial_size: 1_024,
            cf_max_iterations: 20,
            cf_expansion_factor: 1,
            cf_max_expansions: 32,
            cf_eviction: Eviction::RedisBloom,
            cf_hash: Hash::RedisBloom,
        }
    }
}

impl Parameters {
    /// The largest bucket of a cuckoo filter: `cf-initial-size` moves it, and `CF.RESERVE` and `CF.LOADCHUNK` keep to it as well.
    #[must_use]
    pub fn max_bucket_size(&self) -> u64 {
        MAX_BUCKET_SIZE.min(self.cf_initial_size / 2)
    }

    /// The most tables of a cuckoo filter that somebody loads: every lookup looks at all of them, and a header of 38 bytes can announce 65 536.
    #[must_use]
    pub fn max_loaded_tables(&self) -> u64 {
        const MOST: u64 = 1_024;
        self.cf_max_expansions.max(MOST)
    }

    /// Those that are not what they are by default, as `name=value name=value`: for who must run a request again under the same.
    #[must_use]
    pub fn differences(&self) -> String {
        let default = Self::default();
        let differs = |parameter: &&Parameter| (parameter.get)(self) != (parameter.get)(&default);
        let said = ALL.iter().filter(differs).map(|one| format!("{}={}", one.name, (one.get)(self)));
        said.collect::<Vec<_>>().join(" ")
    }

    /// The parameters of which these are the [`differences`](Self::differences).
    #[must_use]
    pub fn from_differences(said: &[u8]) -> Option<Self> {
        let said = std::str::from_utf8(said).ok()?;
        let mut pairs = Vec::new();
        for pair in said.split_ascii_whitespace() {
            let (name, value) = pair.split_once('=')?;
            pairs.push((name.as_bytes(), value.as_bytes()));
        }
        Self::from_pairs(&pairs).ok()
    }

    /// The parameters that these are, with the defaults for those that are not said.
    ///
    /// # Errors
    /// The first name that is none, or whose value is not taken.
    pub fn from_pairs<'a>(pairs: &[(&'a [u8], &'a [u8])]) -> Result<Self, &'a [u8]> {
        let mut read = Self::default();
        // Some bound each other: what is refused first may be taken once the others are there.
        let mut fault = Ok(());
        for _ in 0..2 {
            fault = Ok(());
            for &(name, value) in pairs {
                let parameter = find(name).ok_or(name)?;
                if (parameter.set)(&mut read, value).is_err() {
                    fault = Err(name);
                }
            }
        }
        fault.map(|()| read)
    }
}

/// How the error of a growing Bloom filter is shared among its layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Every layer has half of the one before: byte for byte as RedisBloom.
    RedisBloom,
    /// Later layers, which are larger, get more of the promise, and so take less memory. The promise is kept all the same, and
    /// RedisBloom reads the dumps.
    Compact,
}

/// How hard a cuckoo filter tries before it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// In RedisBloom's order, which ends in a circle when about half of the slots are taken: the same sub-filters as there.
    RedisBloom,
    /// Looks for the shortest way to a free slot: a filter fills to more than four fifths before it grows.
    Thorough,
}

/// How new filters of the `BF.*` and `CF.*` families hash their items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// As RedisBloom does, with a seed that everyone knows: its dumps move both ways, and clients that choose items can forge them.
    RedisBloom,
    /// With a secret key of each filter's own: items cannot be forged, and RedisBloom cannot read the filter.
    Keyed,
}

impl Hash {
    const fn name(self) -> &'static str {
        match self {
            Self::RedisBloom => "redisbloom",
            Self::Keyed => "keyed",
        }
    }

    fn of_word(name: &'static str, word: &[u8]) -> Result<Self, ParameterError> {
        let known = [Self::RedisBloom, Self::Keyed];
        let named = known.into_iter().find(|hash| word.eq_ignore_ascii_case(hash.name().as_bytes()));
        named.ok_or(ParameterError::Invalid { name })
    }

    /// The key of a new filter, if it has one.
    pub(crate) fn draw_key(self, environment: &dyn Environment) -> Option<SecretKey> {
        match self {
            Self::RedisBloom => None,
            Self::Keyed => {
                let mut key = [0; 16];
                environment.random(&mut key);
                Some(SecretKey::new(key))
            }
        }
    }
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// As `CONFIG` knows it.
    pub name: &'static str,
    /// What it is unless somebody sets it.
    pub default: &'static str,
    /// What it may be.
    pub allowed: &'static str,
    /// What it is.
    pub get: fn(&Parameters) -> String,
    /// Sets it, or says why not; nothing changed then.
    pub set: fn(&mut Parameters, &[u8]) -> Result<(), ParameterError>,
}

/// Why a value was not taken.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// It makes no sense.
    Invalid {
        /// The parameter.
        name: &'static str,
    },
    /// It is a whole number out of range.
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// It is a rate that does not lie between 0 and 1.
    RateOutOfRange {
        /// The parameter.
        name: &'static str,
    },
}

impl ParameterError {
    const fn name(&self) -> &'static str {
        match self {
            Self::Invalid { name } | Self::OutOfRange { name, .. } | Self::RateOutOfRange { name } => name,
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { name } => write!(f, "Invalid value for `{name}`"),
            Self::OutOfRange { name, least, most } => {
                write!(f, "Value for `{name}` must be in the range [{least}, {most}]")
            }
            Self::RateOutOfRange { name } => {
                write!(f, "Value for `{name}` must be in the range (0.000000, 1.000000)")
            }
        }
    }
}

impl std::error::Error for ParameterError {}

/// As `CONFIG SET` says it.
impl From<ParameterError> for Refusal {
    fn from(fault: ParameterError) -> Self {
        Self::Parameter { name: fault.name(), fault }
    }
}

/// Every parameter there is.
pub static ALL: &[Parameter] = &[
    Parameter {
        name: "bf-error-rate",
        default: "0.01",
        allowed: "a rate between 0 and 1, for example 0.01",
        get: |parameters| parameters.bf_error_rate.to_string(),
        set: |parameters, word| {
            let name = "bf-error-rate";
            let rate = args::double(word).ok_or(ParameterError::Invalid { name })?;
            if !(rate > 0.0 && rate < 1.0) {
                return Err(ParameterError::RateOutOfRange { name });
            }
            parameters.bf_error_rate = rate.min(MAX_ERROR_RATE);
            Ok(())
        },
    },
    Parameter {
        name: "bf-initial-size",
        default: "100",
        allowed: "a number from 1 to 1073741824",
        get: |parameters| parameters.bf_initial_size.to_string(),
        set: |parameters, word| {
            parameters.bf_initial_size = whole("bf-initial-size", word, 1, MAX_CAPACITY)?;
            Ok(())
        },
    },
    Parameter {
        name: "bf-expansion-factor",
        default: "2",
        allowed: "a number from 0 (filters do not grow) to 32768",
        get: |parameters| parameters.bf_expansion_factor.to_string(),
        set: |parameters, word| {
            parameters.bf_expansion_factor = narrow("bf-expansion-factor", word, 0, MAX_EXPANSION)?;
            Ok(())
        },
    },
    Parameter {
        name: "bf-growth",
        default: "redisbloom",
        allowed: "redisbloom or compact",
        get: |parameters| match parameters.bf_growth {
            Growth::RedisBloom => "redisbloom".into(),
            Growth::Compact => "compact".into(),
        },
        set: |parameters, word| {
            parameters.bf_growth = match word.to_ascii_lowercase().as_slice() {
                b"redisbloom" => Growth::RedisBloom,
                b"compact" => Growth::Compact,
                _ => return Err(ParameterError::Invalid { name: "bf-growth" }),
            };
            Ok(())
        },
    },
    Parameter {
        name: "bf-hash",
        default: "redisbloom",
        allowed: "redisbloom or keyed",
        get: |parameters| parameters.bf_hash.name().into(),
        set: |parameters, word| {
            parameters.bf_hash = Hash::of_word("bf-hash", word)?;
            Ok(())
        },
    },
    Parameter {
        name: "cf-bucket-size",
        default: "2",
        allowed: "a number from 1 to 255 that is no more than half of cf-initial-size",
        get: |parameters| parameters.cf_bucket_size.to_string(),
        set: |parameters, word| {
            let most = parameters.max_bucket_size();
            parameters.cf_bucket_size = narrow("cf-bucket-size", word, 1, most)?;
            Ok(())
        },
    },
    Parameter {
        name: "cf-initial-size",
        default: "1024",
        allowed: "a number from twice cf-bucket-size to 1073741824",
        get: |parameters| parameters.cf_initial_size.to_string(),
        set: |parameters, word| {
            let least = 2 * u64::from(parameters.cf_bucket_size);
            parameters.cf_initial_size = whole("cf-initial-size", word, least, MAX_CAPACITY)?;
            Ok(())
        },
    },
    Parameter {
        name: "cf-max-iterations",
        default: "20",
        allowed: "a number from 1 to 65535",
        get: |parameters| parameters.cf_max_iterations.to_string(),
        set: |parameters, word| {
            parameters.cf_max_iterations = narrow("cf-max-iterations", word, 1, u16::MAX.into())?;
            Ok(())
        },
    },
    Parameter {
        name: "cf-expansion-factor",
        default: "1",
        allowed: "a number from 0 (filters do not grow) to 32768",
        get: |parameters| parameters.cf_expansion_factor.to_string(),
        set: |parameters, word| {
            parameters.cf_expansion_factor = narrow("cf-expansion-factor", word, 0, MAX_EXPANSION)?;
            Ok(())
        },
    },
    Parameter {
        name: "cf-max-expansions",
        default: "32",
        allowed: "a number from 1 to 65536",
        get: |parameters| parameters.cf_max_expansions.to_string(),
        set: |parameters, word| {
            parameters.cf_max_expansions = whole("cf-max-expansions", word, 1, 65_536)?;
            Ok(())
        },
    },
    Parameter {
        name: "cf-eviction",
        default: "redisbloom",
        allowed: "redisbloom or thorough",
        get: |parameters| match parameters.cf_eviction {
            Eviction::RedisBloom => "redisbloom".into(),
            Eviction::Thorough => "thorough".into(),
        },
        set: |parameters, word| {
            parameters.cf_eviction = match word.to_ascii_lowercase().as_slice() {
                b"redisbloom" => Eviction::RedisBloom,
                b"thorough" => Eviction::Thorough,
                _ => return Err(ParameterError::Invalid { name: "cf-eviction" }),
            };
            Ok(())
        },
    },
    Parameter {
        name: "cf-hash",
        default: "redisbloom",
        allowed: "redisbloom or keyed",
        get: |parameters| parameters.cf_hash.name().into(),
        set: |parameters, word| {
            parameters.cf_hash = Hash::of_word("cf-hash", word)?;
            Ok(())
        },
    },
];

/// The parameter of this name, however it is spelled.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Parameter> {
    ALL.iter().find(|parameter| parameter.name.as_bytes().eq_ignore_ascii_case(name))
}

fn whole(name: &'static str, word: &[u8], least: u64, most: u64) -> Result<u64, ParameterError> {
    let number = args::integer(word).ok_or(ParameterError::Invalid { name })?;
    let number = u64::try_from(number).ok().filter(|number| (least..=most).contains(number));
    number.ok_or(ParameterError::OutOfRange { name, least, most })
}

fn narrow(name: &'static str, word: &[u8], least: u64, most: u64) -> Result<u32, ParameterError> {
    let number = whole(name, word, least, most)?;
    u32::try_from(number).map_err(|_| ParameterError::OutOfRange { name, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(parameters: &mut Parameters, name: &str, value: &str) -> Result<(), ParameterError> {
        (find(name.as_bytes()).unwrap().set)(parameters, value.as_bytes())
    }

    #[test]
    fn defaults_are_said_as_they_are_and_taken_back() {
        let mut parameters = Parameters::default();
        for parameter in ALL {
            assert_eq!((parameter.get)(&parameters), parameter.default, "{}", parameter.name);
            (parameter.set)(&mut parameters, parameter.default.as_bytes()).unwrap();
            let nonsense = (parameter.set)(&mut parameters, b"nonsense").unwrap_err();
            assert_eq!(nonsense.to_string(), format!("Invalid value for `{}`", parameter.name));
        }
        assert_eq!(parameters, Parameters::default());
        assert!(find(b"BF-Error-Rate").is_some() && find(b"no-such").is_none());
    }

    #[test]
    fn what_differs_is_said_and_taken_back() {
        let mut parameters = Parameters::default();
        assert_eq!(parameters.differences(), "");
        set(&mut parameters, "cf-initial-size", "8").unwrap();
        set(&mut parameters, "cf-bucket-size", "4").unwrap();
        set(&mut parameters, "bf-error-rate", "0.123456789012345").unwrap();
        set(&mut parameters, "cf-eviction", "thorough").unwrap();
        let said = parameters.differences();
        assert_eq!(
            said,
            "bf-error-rate=0.123456789012345 cf-bucket-size=4 cf-initial-size=8 cf-eviction=thorough"
        );
        assert_eq!(Parameters::from_differences(said.as_bytes()), Some(parameters));
        for wrong in ["no-such=1", "bf-error-rate", "bf-error-rate=2", "\u{fffd}"] {
            assert_eq!(Parameters::from_differences(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused_in_redis_blooms_words() {
        let mut parameters = Parameters::default();
        for (name, value, text) in [
            ("bf-initial-size", "0", "Value for `bf-initial-size` must be in the range [1, 1073741824]"),
            (
                "bf-initial-size",
                "1073741825",
                "Value for `bf-initial-size` must be in the range [1, 1073741824]",
            ),
            ("bf-error-rate", "0", "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
            ("bf-error-rate", "1", "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
            ("bf-expansion-factor", "-1", "Value for `bf-expansion-factor` must be in the range [0, 32768]"),
            ("cf-max-iterations", "65536", "Value for `cf-max-iterations` must be in the range [1, 65535]"),
            ("cf-max-expansions", "0", "Value for `cf-max-expansions` must be in the range [1, 65536]"),
            ("cf-initial-size", "3", "Value for `cf-initial-size` must be in the range [4, 1073741824]"),
        ] {
            assert_eq!(set(&mut parameters, name, value).unwrap_err().to_string(), text);
        }
        assert_eq!(parameters, Parameters::default());
        let refusal = Refusal::from(set(&mut parameters, "bf-initial-size", "0").unwrap_err());
        assert_eq!(
            refusal.to_string(),
            "ERR CONFIG SET failed (possibly related to argument 'bf-initial-size') - \
             Value for `bf-initial-size` must be in the range [1, 1073741824]"
        );
    }

    #[test]
    fn high_rates_become_a_quarter_and_the_bounds_of_cuckoo_filters_are_live() {
        let mut parameters = Parameters::default();
        set(&mut parameters, "bf-error-rate", "0.9").unwrap();
        assert_eq!((find(b"bf-error-rate").unwrap().get)(&parameters), "0.25");
        set(&mut parameters, "cf-initial-size", "8").unwrap();
        assert!(set(&mut parameters, "cf-bucket-size", "5").is_err());
        set(&mut parameters, "cf-bucket-size", "4").unwrap();
        assert!(set(&mut parameters, "cf-initial-size", "7").is_err());
    }
}
