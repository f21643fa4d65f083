//! The Redis hash with the configuration of a Redisson bitmap.

use std::fmt;

use mayhap::{BloomPlacement, BloomShape, BuildError, Item, ItemEncoding, internals};

use super::{Positions, scheme};

/// Returns the key under which Redisson stores the config of the filter `name`.
///
/// ```
/// use mayhap_formats::redisson::config_key;
///
/// assert_eq!(config_key("seen"), "{seen}:config");
/// assert_eq!(config_key("{users}:seen"), "{users}:seen:config");
/// ```
#[must_use]
pub fn config_key(name: &str) -> String {
    if name.contains('{') { format!("{name}:config") } else { format!("{{{name}}}:config") }
}

/// The config of a filter. Its numbers are always valid.
///
/// ```
/// use mayhap_formats::redisson::Config;
///
/// let config = Config::sized(1_000, 0.0001)?; // as `tryInit(1000, 0.0001)`
/// let fields = config.fields();
/// assert_eq!(fields[0], ("size", "19170".to_owned()));
/// assert_eq!(fields[3], ("falseProbability", "1.0E-4".to_owned()));
/// assert_eq!(Config::from_fields(fields).unwrap(), config);
/// # Ok::<(), mayhap::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    size: u64,
    hash_iterations: u32,
    expected_insertions: u64,
    false_probability: f64,
}

/// The most bits of a filter.
const MAX_SIZE: u64 = 4_294_967_294;

const SIZE: &str = "size";
const HASH_ITERATIONS: &str = "hashIterations";
const EXPECTED_INSERTIONS: &str = "expectedInsertions";
const FALSE_PROBABILITY: &str = "falseProbability";

impl Config {
    /// Creates a config with exactly these numbers.
    ///
    /// # Errors
    /// [`BuildError`] for a size or a number of insertions of 0, a size above 2^32 - 2, hash iterations outside 1 to 255, or a probability
    /// outside 0 to 1. (Redisson accepts up to 1074 iterations, which is of no use.)
    pub fn new(
        size: u64,
        hash_iterations: u32,
        expected_insertions: u64,
        false_probability: f64,
    ) -> Result<Self, BuildError> {
        if size == 0 || size > MAX_SIZE {
            return Err(BuildError::BitsOutOfRange { got: size, limit: MAX_SIZE });
        }
        Self { size, hash_iterations, expected_insertions, false_probability }.checked()
    }

    /// Computes the config as `tryInit` does for this number of insertions.
    ///
    /// # Errors
    /// [`BuildError`] as for [`new`](Self::new). Redisson rejects the same numbers, except for the limit of 255 iterations.
    pub fn sized(expected_insertions: u64, false_probability: f64) -> Result<Self, BuildError> {
        let (size, hash_iterations) = Self::size_and_iterations(expected_insertions, false_probability)?;
        Self::new(size, hash_iterations, expected_insertions, false_probability)
    }

    fn size_and_iterations(n: u64, p: f64) -> Result<(u64, u32), BuildError> {
        if !(0.0..=1.0).contains(&p) {
            return Err(BuildError::RateOutOfRange { got: p });
        }
        // Redisson replaces "never" by the smallest number above 0.
        let rate = if p == 0.0 { f64::from_bits(1) } else { p };
        let items = internals::check_capacity(n)? as f64;
        let ln_2 = std::f64::consts::LN_2;
        // Another order would round differently.
        let size = (-items * rate.ln() / (ln_2 * ln_2)) as u64;
        let iterations = (size as f64 / items * ln_2 + 0.5).floor().max(1.0);
        Ok((size, iterations as u32))
    }

    /// Parses the fields of the hash, by name and in any order, as HGETALL returns them. Unknown names are ignored.
    ///
    /// Numbers must have the form that Redisson writes, because it compares them as text: only digits, without leading zeroes.
    ///
    /// # Errors
    /// [`ConfigError`] for a field that is missing, repeated or not a number, and for numbers that do not describe a valid filter.
    pub fn from_fields<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ConfigError> {
        let names = [SIZE, HASH_ITERATIONS, EXPECTED_INSERTIONS, FALSE_PROBABILITY];
        let mut found: [Option<V>; 4] = [const { None }; 4];
        for (name, value) in fields {
            let Some(index) = names.iter().position(|known| known.as_bytes() == name.as_ref()) else {
                continue;
            };
            if found[index].replace(value).is_some() {
                return Err(ConfigError::Repeated { field: names[index] });
            }
        }
        let text = |index: usize| match &found[index] {
            Some(value) => Ok(value.as_ref()),
            None => Err(ConfigError::Missing { field: names[index] }),
        };
        let malformed = |index: usize, value: &[u8]| ConfigError::Malformed {
            field: names[index],
            got: String::from_utf8_lossy(value).chars().take(60).collect(),
        };
        let whole =
            |index| text(index).and_then(|value| digits(value).ok_or_else(|| malformed(index, value)));
        let (size, iterations, insertions) = (whole(0)?, whole(1)?, whole(2)?);
        let iterations = u32::try_from(iterations).unwrap_or(u32::MAX);
        let probability = text(3)?;
        let probability = java_double_of(probability).ok_or_else(|| malformed(3, probability))?;
        Ok(Self::new(size, iterations, insertions, probability)?)
    }

    /// The fields as Redisson writes them, for HSET.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, String); 4] {
        [
            (SIZE, self.size.to_string()),
            (HASH_ITERATIONS, self.hash_iterations.to_string()),
            (EXPECTED_INSERTIONS, self.expected_insertions.to_string()),
            (FALSE_PROBABILITY, java_text_of(self.false_probability)),
        ]
    }

    /// Returns the positions of the bits of `item`, in the order in which Redisson sets them: the offsets for SETBIT and GETBIT.
    #[must_use]
    pub fn positions<I: Item + ?Sized>(&self, item: &I, items: ItemEncoding) -> Positions {
        let hash = scheme(items).hash(item);
        internals::bloom::positions(BloomPlacement::Redisson, hash, self.size, self.hash_iterations)
    }

    /// The number of bits in the bitmap.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The number of bits that an item sets.
    #[must_use]
    pub const fn hash_iterations(&self) -> u32 {
        self.hash_iterations
    }

    /// The number of items the filter is sized for.
    #[must_use]
    pub const fn expected_insertions(&self) -> u64 {
        self.expected_insertions
    }

    /// The rate the filter was made for.
    #[must_use]
    pub const fn false_probability(&self) -> f64 {
        self.false_probability
    }

    pub(super) fn shape(&self) -> Result<BloomShape, BuildError> {
        internals::bloom::from_parts(
            self.size,
            self.hash_iterations,
            self.expected_insertions,
            self.false_probability,
        )
    }

    pub(super) fn of(shape: &BloomShape) -> Result<Self, BuildError> {
        Self::new(shape.bits(), shape.probes(), shape.capacity(), shape.target_fpr())
    }

    fn checked(self) -> Result<Self, BuildError> {
        self.shape().map(|_| self)
    }
}

/// Why the fields of a hash are not a config.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A field is missing.
    Missing {
        /// The name of the field.
        field: &'static str,
    },
    /// A field is repeated.
    Repeated {
        /// The name of the field.
        field: &'static str,
    },
    /// A field is not a number in Java's form.
    Malformed {
        /// The name of the field.
        field: &'static str,
        /// Its value, or the beginning of it.
        got: String,
    },
    /// The numbers do not describe a valid filter.
    Unbuildable(BuildError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { field } => write!(f, "config has no field {field}"),
            Self::Repeated { field } => write!(f, "config has the field {field} twice"),
            Self::Malformed { field, got } => {
                write!(f, "config field {field} is {got:?}, not a number as Java writes it")
            }
            Self::Unbuildable(cause) => write!(f, "the config does not describe a valid filter: {cause}"),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unbuildable(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<BuildError> for ConfigError {
    fn from(cause: BuildError) -> Self {
        Self::Unbuildable(cause)
    }
}

/// Parses a whole number in Java's form.
fn digits(text: &[u8]) -> Option<u64> {
    let is_exact = text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    std::str::from_utf8(text).ok().filter(|_| is_exact)?.parse().ok()
}

/// Parses a number in the form of Java's `Double.toString`. Older Java versions sometimes wrote one digit more than needed; those are
/// accepted too.
fn java_double_of(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (number, exponent) =
        text.split_once('E').map_or((text, None), |(number, exponent)| (number, Some(exponent)));
    let (whole, fraction) = number.split_once('.')?;
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let exact = |text: &str| digits(text.as_bytes()).is_some();
    let exponent_fits = exponent
        .is_none_or(|exponent| whole.len() == 1 && exact(exponent.strip_prefix('-').unwrap_or(exponent)));
    (exact(whole) && all_digits(fraction) && exponent_fits).then(|| text.parse().ok())?
}

/// Formats a number like Java's `Double.toString`: the fewest digits that identify the number, at least one of them after the point;
/// with an exponent below a thousandth and from ten million on.
fn java_text_of(number: f64) -> String {
    if number == 0.0 {
        return "0.0".to_owned();
    }
    if (1e-3..1e7).contains(&number) {
        return format!("{number:?}");
    }
    // Two digits, if they are closer than one: true only for the very smallest numbers.
    let (one, two) = (format!("{number:e}"), format!("{number:.1e}"));
    let text = if !one.contains('.') && two.parse() == Ok(number) { two } else { one };
    text.replace('e', "E")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_formatted_as_in_java() {
        for (number, text) in [
            (0.0, "0.0"),
            (0.01, "0.01"),
            (0.001, "0.001"),
            (0.03, "0.03"),
            (0.5, "0.5"),
            (1.0, "1.0"),
            (0.000_999, "9.99E-4"),
            (0.0001, "1.0E-4"),
            (1e-5, "1.0E-5"),
            (1.5e-7, "1.5E-7"),
            (1e-10, "1.0E-10"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1.0 / 3000.0, "3.333333333333333E-4"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::from_bits(2), "9.9E-324"),
        ] {
            assert_eq!(java_text_of(number), text);
            assert_eq!(java_double_of(text.as_bytes()), Some(number));
        }
        assert_eq!(java_text_of(1e7), "1.0E7");
        assert_eq!(java_text_of(9_999_999.0), "9999999.0");
        for text in [
            "", ".", "1", "0.", ".5", "00.5", "1e-4", "1E-4", "1.0E", "1.0E-04", "1.0E+4", "12.0E-4", "-0.1",
            "NaN", " 0.1", "0.1 ",
        ] {
            assert_eq!(java_double_of(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(java_double_of(b"5.6843418860808015E-14"), Some(2_f64.powi(-44)), "Java before 19");
    }

    #[test]
    fn whole_numbers_consist_of_digits_only() {
        assert_eq!(
            (digits(b"0"), digits(b"958"), digits(b"18446744073709551615")),
            (Some(0), Some(958), Some(u64::MAX))
        );
        for text in ["", "0958", "+958", "-1", " 958", "958 ", "9.0", "1e3", "18446744073709551616", "٣"] {
            assert_eq!(digits(text.as_bytes()), None, "{text:?}");
        }
    }
}
