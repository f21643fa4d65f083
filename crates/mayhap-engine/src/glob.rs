//! Patterns for names, as in Redis: `*`, `?`, `[a-z]`, `[^a]`, `\x`.

use std::ops::Range;
use std::sync::OnceLock;

use memchr::memmem;

/// A parsed pattern, for any number of names.
///
/// Stars divide it into runs of parts, each of which matches one byte. The first run is matched at the
/// beginning of a text, the last at its end, and every other one at the first possible position after the one
/// before: a later position cannot help. So no backtracking is needed. A run of plain bytes is found in time
/// linear in the text. A run with `?` or classes is followed at all positions in parallel, 64 parts per step
/// for every byte. Redis's recursion takes the length to the power of the number of stars.
#[derive(Clone, Debug)]
pub struct Pattern {
    parts: Vec<Part>,
    /// The bytes of the parts that are bytes.
    literals: Vec<u8>,
    classes: Vec<Class>,
    /// The runs between the stars: there is one star fewer than runs.
    runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Any byte.
    Any,
    /// This byte.
    Byte(u8),
    /// One byte of a class.
    Class(u32),
}

/// Parts without a star between them.
#[derive(Clone, Debug, Default)]
struct Run {
    parts: Range<usize>,
    /// Whether all parts are plain bytes.
    plain: bool,
    /// For every byte, the parts that match it. Built when first needed.
    takes: OnceLock<Box<[u64]>>,
}

/// Runs of up to this many parts are matched part by part.
const FEW_PARTS: usize = 8;

/// A bit for every byte.
type Class = [u64; 4];

/// Whether all of `text` matches `pattern`. For many texts, build a [`Pattern`] first.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    Pattern::new(pattern).matches(text)
}

impl Pattern {
    /// Parses a pattern. All patterns are valid; one that ends too early means what is there.
    #[must_use]
    pub fn new(mut pattern: &[u8]) -> Self {
        let mut new = Self { parts: Vec::new(), literals: Vec::new(), classes: Vec::new(), runs: Vec::new() };
        let mut begun = 0;
        while let [first, rest @ ..] = pattern {
            pattern = rest;
            let part = match (first, rest) {
                (b'*', _) => {
                    // Two stars are equal to one.
                    if new.runs.is_empty() || begun < new.parts.len() {
                        new.end_run(begun);
                    }
                    begun = new.parts.len();
                    continue;
                }
                (b'?', _) => Part::Any,
                (b'[', _) => {
                    let (class, length) = class_of(rest);
                    pattern = &rest[length..];
                    if new.classes.last() != Some(&class) {
                        new.classes.push(class);
                    }
                    // There are fewer than the bytes in a request.
                    Part::Class(new.classes.len() as u32 - 1)
                }
                (b'\\', [literal, rest @ ..]) => {
                    pattern = rest;
                    Part::Byte(*literal)
                }
                (literal, _) => Part::Byte(*literal),
            };
            new.parts.push(part);
            new.literals.push(if let Part::Byte(literal) = part { literal } else { 0 });
        }
        new.end_run(begun);
        new
    }

    fn end_run(&mut self, begun: usize) {
        let parts = begun..self.parts.len();
        let plain = self.parts[begun..].iter().all(|part| matches!(part, Part::Byte(_)));
        self.runs.push(Run { parts, plain, takes: OnceLock::new() });
    }

    /// Whether all of `text` matches.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let (first, last, between) = match &self.runs[..] {
            [] => return text.is_empty(),
            [all] => return text.len() == all.parts.len() && self.fits(all, text),
            [first, between @ .., last] => (first, last, between),
        };
        // Every part matches one byte.
        if text.len() < self.parts.len() || !self.fits(first, text) {
            return false;
        }
        let (mut rest, end) =
            text[first.parts.len()..].split_at(text.len() - first.parts.len() - last.parts.len());
        self.fits(last, end)
            && between.iter().all(|run| {
                let found = self.find(run, rest);
                rest = found.map_or(&[], |at| &rest[at + run.parts.len()..]);
                found.is_some()
            })
    }

    /// Whether the beginning of `text` matches this run. The text is long enough.
    fn fits(&self, run: &Run, text: &[u8]) -> bool {
        self.parts[run.parts.clone()].iter().zip(text).all(|(part, byte)| self.takes(*part, *byte))
    }

    /// The first position in `text` that matches a run.
    fn find(&self, run: &Run, text: &[u8]) -> Option<usize> {
        let length = run.parts.len();
        if run.plain {
            return memmem::find(text, &self.literals[run.parts.clone()]);
        }
        if length <= FEW_PARTS {
            return text.windows(length).position(|window| self.fits(run, window));
        }
        let words = length.div_ceil(64);
        let takes = run.takes.get_or_init(|| {
            let mut takes = vec![0; 256 * words].into_boxed_slice();
            for (at, part) in self.parts[run.parts.clone()].iter().enumerate() {
                let bytes = (0..=u8::MAX).filter(|byte| self.takes(*part, *byte));
                bytes.for_each(|byte| takes[usize::from(byte) * words + at / 64] |= 1 << (at % 64));
            }
            takes
        });
        // Bit i: the last i + 1 bytes match the first i + 1 parts.
        let mut so_far = vec![0_u64; words];
        let last = 1 << ((length - 1) % 64);
        let end = text.iter().position(|byte| {
            let mut carried = 1;
            for (so_far, takes) in so_far.iter_mut().zip(&takes[usize::from(*byte) * words..]) {
                let next = *so_far >> 63;
                *so_far = (*so_far << 1 | carried) & takes;
                carried = next;
            }
            so_far[words - 1] & last != 0
        });
        end.map(|end| end + 1 - length)
    }

    fn takes(&self, part: Part, byte: u8) -> bool {
        match part {
            Part::Any => true,
            Part::Byte(literal) => literal == byte,
            Part::Class(number) => {
                self.classes[number as usize][usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
            }
        }
    }
}

/// Parses the class after a bracket. Returns it with its length, including the closing bracket. A class that
/// is not closed ends with the pattern.
fn class_of(class: &[u8]) -> (Class, usize) {
    let not = class.first() == Some(&b'^');
    let mut at = usize::from(not);
    let mut holds = [0; 4];
    let mut add = |byte: u8| holds[usize::from(byte >> 6)] |= 1_u64 << (byte & 63);
    loop {
        match &class[at.min(class.len())..] {
            [b'\\', literal, ..] => {
                add(*literal);
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [] => break,
            [first, b'-', last, ..] => {
                (*first.min(last)..=*first.max(last)).for_each(&mut add);
                at += 3;
            }
            [literal, ..] => {
                add(*literal);
                at += 1;
            }
        }
    }
    (if not { holds.map(|bits| !bits) } else { holds }, at.min(class.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_redis_does() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("?", "", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hbllo", true),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("a\\", "a\\", true),
            ("[a", "a", true),
            ("[", "a", false),
            ("[^", "a", true),
            ("[]a]", "a]", false),
            ("[a\\]b]", "]", true),
            ("*a*b", "xaxbxab", true),
            ("user:*:seen", "user:1:2:seen", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    /// The meaning of a pattern, implemented in the simplest way.
    fn plainly(pattern: &Pattern, run: usize, text: &[u8]) -> bool {
        let parts = pattern.runs[run].parts.len();
        let fits = |text: &[u8]| text.len() >= parts && pattern.fits(&pattern.runs[run], text);
        if run + 1 == pattern.runs.len() {
            return text.len() == parts && fits(text);
        }
        fits(text) && (parts..=text.len()).any(|from| plainly(pattern, run + 1, &text[from..]))
    }

    /// Compares long and short runs with the simple implementation.
    #[test]
    fn runs_match_as_in_the_simple_implementation() {
        let mut state = 7_u64;
        let mut chance = |of: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % of
        };
        let mut matched = 0;
        for _ in 0..20_000 {
            let mut pattern = Vec::new();
            for _ in 0..chance(3) + 1 {
                for _ in 0..[1, 4, 12, 80][chance(4) as usize] {
                    pattern.extend_from_slice([&b"a"[..], b"?", b"[ab]", b"[^b]", b"b"][chance(5) as usize]);
                }
                pattern.push(b'*');
            }
            pattern.truncate(pattern.len() - chance(2) as usize);
            // Usually one that should match, with something between the runs.
            let text: Vec<u8> = match chance(3) {
                0 => (0..chance(200)).map(|_| b"ab"[chance(2) as usize]).collect(),
                _ => {
                    let parts = Pattern::new(&pattern);
                    let mut text = Vec::new();
                    for run in &parts.runs {
                        text.extend(parts.parts[run.parts.clone()].iter().map(|part| match part {
                            Part::Byte(byte) => *byte,
                            _ => b'a',
                        }));
                        (0..chance(4)).for_each(|_| text.push(b"ab"[chance(2) as usize]));
                    }
                    text
                }
            };
            let pattern = Pattern::new(&pattern);
            let expected = plainly(&pattern, 0, &text);
            assert_eq!(pattern.matches(&text), expected, "{pattern:?} {text:?}");
            matched += u32::from(expected);
        }
        assert!((2_000..18_000).contains(&matched), "{matched}");
    }

    /// Each of these took 10^11 steps or more, which is minutes, when a run was tried again at every byte.
    #[test]
    fn a_hostile_pattern_needs_no_backtracking() {
        let text = b"a".repeat(1 << 20);
        for (pattern, expected) in [
            ([b"a*".repeat(1_000), b"b".to_vec()].concat(), false),
            ([b"*a*a".repeat(1_000), b"*".to_vec()].concat(), true),
            ([b"*".to_vec(), b"a".repeat(1 << 19), b"b*".to_vec()].concat(), false),
            ([b"*".to_vec(), b"a?".repeat(8_000), b"b*".to_vec()].concat(), false),
            ([b"*".to_vec(), b"[ab]".repeat(8_000), b"b*".to_vec()].concat(), false),
            ([b"*".to_vec(), b"a?".repeat(8_000), b"a".to_vec()].concat(), true),
        ] {
            assert_eq!(matches(&pattern, &text), expected);
        }
    }

    /// A class of a million bytes used to be parsed again for every byte of every name. With 20 000 names
    /// this took minutes.
    #[test]
    fn a_long_class_costs_as_much_as_a_byte() {
        for (pattern, expected) in [
            ([b"*[".to_vec(), b"b".repeat(1 << 20)].concat(), false),
            ([b"*[^".to_vec(), b"b".repeat(1 << 20), b"]".to_vec()].concat(), true),
            (b"*[b]".repeat(100_000), false),
            (b"?".repeat(1 << 20), false),
            (b"[".repeat(1 << 20), false),
        ] {
            let pattern = Pattern::new(&pattern);
            for _ in 0..20_000 {
                assert_eq!(pattern.matches(&[b'a'; 60]), expected);
            }
        }
    }
}
