//! Patterns for names, as Redis has them: `*`, `?`, `[a-z]`, `[^a]`, `\x`.

use std::ops::Range;
use std::sync::OnceLock;

use memchr::memmem;

/// A pattern, taken apart once for however many names.
///
/// Stars cut it into runs, each part of which takes one byte. The first stands at the beginning of a text, the last at its end, and every other
/// is taken where it is first found behind the one before: a later place cannot help. So nothing is ever tried again. A run of plain bytes is
/// found in time that is linear in the text; one with `?` or classes in it is followed at all places at once, 64 parts with one step
/// for every byte. Redis's own recursion takes the length to the power of the stars.
#[derive(Clone, Debug)]
pub struct Pattern {
    parts: Vec<Part>,
    /// The bytes of those parts that are bytes.
    literals: Vec<u8>,
    classes: Vec<Class>,
    /// What is between the stars: there is one star fewer than runs.
    runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Any byte.
    Any,
    /// This byte.
    Byte(u8),
    /// One of a class.
    Class(u32),
}

/// Parts without a star among them.
#[derive(Clone, Debug, Default)]
struct Run {
    parts: Range<usize>,
    /// Are all of them bytes?
    plain: bool,
    /// For every byte, which parts take it; made when it is first needed.
    takes: OnceLock<Box<[u64]>>,
}

/// As few parts are tried one by one.
const FEW_PARTS: usize = 8;

/// A bit for every byte.
type Class = [u64; 4];

/// Does all of `text` match `pattern`? Who asks about many texts makes a [`Pattern`] first.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    Pattern::new(pattern).matches(text)
}

impl Pattern {
    /// Takes a pattern apart. All patterns are right; one that ends too early means what is there.
    #[must_use]
    pub fn new(mut pattern: &[u8]) -> Self {
        let mut new = Self { parts: Vec::new(), literals: Vec::new(), classes: Vec::new(), runs: Vec::new() };
        let mut begun = 0;
        while let [first, rest @ ..] = pattern {
            pattern = rest;
            let part = match (first, rest) {
                (b'*', _) => {
                    // Two stars are one.
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
                    // There are fewer than bytes in a request.
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

    /// Does all of `text` match?
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        let (first, last, between) = match &self.runs[..] {
            [] => return text.is_empty(),
            [all] => return text.len() == all.parts.len() && self.fits(all, text),
            [first, between @ .., last] => (first, last, between),
        };
        // Every part takes a byte.
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

    /// Does `text` begin with what this run takes? It is long enough.
    fn fits(&self, run: &Run, text: &[u8]) -> bool {
        self.parts[run.parts.clone()].iter().zip(text).all(|(part, byte)| self.takes(*part, *byte))
    }

    /// Where `text` has a run first.
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
        // Bit i: the last i + 1 bytes are what the first i + 1 parts take.
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

/// The class that begins behind a bracket, and how long that is with the bracket that closes it. One that is not closed ends with the pattern.
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

    /// What a pattern means, as slowly as can be.
    fn plainly(pattern: &Pattern, run: usize, text: &[u8]) -> bool {
        let parts = pattern.runs[run].parts.len();
        let fits = |text: &[u8]| text.len() >= parts && pattern.fits(&pattern.runs[run], text);
        if run + 1 == pattern.runs.len() {
            return text.len() == parts && fits(text);
        }
        fits(text) && (parts..=text.len()).any(|from| plainly(pattern, run + 1, &text[from..]))
    }

    /// Runs that are too long to be tried one by one, and short ones, against the plain meaning.
    #[test]
    fn runs_are_found_where_they_are() {
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
            // Mostly one that ought to match, with something between the runs.
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

    /// Each of these took 10^11 steps and more when a run was tried again at every byte: minutes.
    #[test]
    fn a_hostile_pattern_is_tried_once() {
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

    /// A class of a million bytes was read again for every byte of every name: with 20 000 of them this took minutes.
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
