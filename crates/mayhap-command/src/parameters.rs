//! The `CONFIG` parameters that affect commands: RedisBloom's, with its names, defaults and ranges, and a few of our own.
//!
//! The server's `CONFIG` and the module's registration read the table [`ALL`]. A change affects only new filters, except for
//! `cf-max-expansions` and `cf-eviction`, which every insertion reads.

use std::fmt;

use mayhap::SecretKey;

use crate::args;
use crate::context::Environment;
use crate::refusal::Refusal;

/// The largest capacity that a request or a parameter may have.
pub const MAX_CAPACITY: u64 = 1 << 30;
/// The largest expansion.
pub const MAX_EXPANSION: u64 = 32_768;
/// Higher rates are silently lowered to this one.
const MAX_ERROR_RATE: f64 = 0.25;
/// The largest bucket of a cuckoo filter, unless `cf-initial-size` limits it further.
pub(crate) const MAX_BUCKET_SIZE: u64 = 255;

/// The defaults for new filters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// `bf-error-rate`.
    pub bf_error_rate: f64,
    /// `bf-initial-size`.
    pub bf_initial_size: u64,
    /// `bf-expansion-factor`; 0: filters do not grow.
    pub bf_expansion_factor: u32,
    /// `bf-growth`, ours.
    pub bf_growth: BloomGrowth,
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
            bf_growth: BloomGrowth::RedisBloom,
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
    /// The largest bucket of a cuckoo filter. `cf-initial-size` limits it; `CF.RESERVE` and `CF.LOADCHUNK` respect it too.
    #[must_use]
    pub fn max_bucket_size(&self) -> u64 {
        MAX_BUCKET_SIZE.min(self.cf_initial_size / 2)
    }

    /// The maximum number of sub-filters of a loaded cuckoo filter: every lookup reads all of them, and a header of 38 bytes can
    /// announce 65 536.
    #[must_use]
    pub fn max_loaded_tables(&self) -> u64 {
        const MOST: u64 = 1_024;
        self.cf_max_expansions.max(MOST)
    }

    /// The parameters that differ from their defaults, as `name=value name=value`, for replaying a request under the same parameters.
    #[must_use]
    pub fn differences(&self) -> String {
        let default = Self::default();
        let differs = |parameter: &&Parameter| (parameter.get)(self) != (parameter.get)(&default);
        let said = ALL.iter().filter(differs).map(|one| format!("{}={}", one.name, (one.get)(self)));
        said.collect::<Vec<_>>().join(" ")
    }

    /// Parses the text of [`differences`](Self::differences).
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

    /// Sets these parameters and leaves the others at their defaults.
    ///
    /// # Errors
    /// The first name that is unknown or has an invalid value.
    pub fn from_pairs<'a>(pairs: &[(&'a [u8], &'a [u8])]) -> Result<Self, &'a [u8]> {
        let mut read = Self::default();
        // Some parameters limit each other: a value refused in the first round may be valid once the others are set.
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

/// How a growing Bloom filter divides its error rate among its layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BloomGrowth {
    /// Every layer has half the rate of the layer before it: byte for byte as RedisBloom.
    RedisBloom,
    /// Later layers, which are larger, get a larger share of the rate and so take less memory. The filter still keeps its target
    /// rate, and RedisBloom can read its dumps.
    Compact,
}

/// How hard a cuckoo filter tries to place an item before it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// In RedisBloom's order, which starts to cycle when about half of the slots are in use: the same sub-filters as in RedisBloom.
    RedisBloom,
    /// Searches for the shortest path to a free slot: a filter fills to more than 80 % before it grows.
    Thorough,
}

/// How new filters of the `BF.*` and `CF.*` families hash their items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// As RedisBloom, with a public seed: dumps move both ways, but clients that choose items can forge collisions.
    RedisBloom,
    /// With a secret key per filter: clients cannot forge collisions, but RedisBloom cannot read the filter.
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

    /// Generates the key of a new filter, if it has one.
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
    /// Its name in `CONFIG`.
    pub name: &'static str,
    /// Its default value.
    pub default: &'static str,
    /// A description of the valid values.
    pub allowed: &'static str,
    /// Returns its value.
    pub get: fn(&Parameters) -> String,
    /// Sets it. On an error nothing changes.
    pub set: fn(&mut Parameters, &[u8]) -> Result<(), ParameterError>,
}

/// Why a value was rejected.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// It cannot be parsed.
    Invalid {
        /// The parameter.
        name: &'static str,
    },
    /// It is an integer out of range.
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// It is a rate that is not between 0 and 1.
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

/// The error of `CONFIG SET`.
impl From<ParameterError> for Refusal {
    fn from(fault: ParameterError) -> Self {
        Self::Parameter { name: fault.name(), fault }
    }
}

/// Every parameter.
pub static ALL: &[Parameter] = &[
    Parameter {
        name: "bf-error-rate",
        default: "0.01",
        allowed: "a number between 0 and 1, for example 0.01",
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
            BloomGrowth::RedisBloom => "redisbloom".into(),
            BloomGrowth::Compact => "compact".into(),
        },
        set: |parameters, word| {
            parameters.bf_growth = match word.to_ascii_lowercase().as_slice() {
                b"redisbloom" => BloomGrowth::RedisBloom,
                b"compact" => BloomGrowth::Compact,
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
        allowed: "a number from 1 to 255, at most half of cf-initial-size",
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

/// Returns the parameter with this name, in upper or lower case.
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
    fn defaults_survive_get_and_set() {
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
    fn differences_round_trip() {
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
    fn values_out_of_range_are_refused_with_redisblooms_texts() {
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
    fn high_error_rates_are_capped_and_cuckoo_limits_follow_each_other() {
        let mut parameters = Parameters::default();
        set(&mut parameters, "bf-error-rate", "0.9").unwrap();
        assert_eq!((find(b"bf-error-rate").unwrap().get)(&parameters), "0.25");
        set(&mut parameters, "cf-initial-size", "8").unwrap();
        assert!(set(&mut parameters, "cf-bucket-size", "5").is_err());
        set(&mut parameters, "cf-bucket-size", "4").unwrap();
        assert!(set(&mut parameters, "cf-initial-size", "7").is_err());
    }
}
