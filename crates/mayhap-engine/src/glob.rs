//! Patterns for names, as Redis has them: `*`, `?`, `[a-z]`, `[^a]`, `\x`.

/// A pattern, taken apart once for however many names.
///
/// When a match fails, only the last `*` is given one byte more: what an earlier one took cannot help. And every part but a `*` takes one
/// byte, so that a text with fewer bytes than parts does not match. So a hostile pattern costs at most the product of both lengths and never
/// more than the square of the text's, where Redis's own recursion takes the length to the power of the stars; and a class costs as much as a
/// byte, however long it is.
#[derive(Clone, Debug)]
pub struct Pattern {
    parts: Vec<Part>,
    classes: Vec<Class>,
    /// Bytes that a text must have.
    least: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Any bytes, or none.
    Star,
    /// Any byte.
    Any,
    /// This byte.
    Byte(u8),
    /// One of a class.
    Class(u32),
}

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
        let (mut parts, mut classes) = (Vec::new(), Vec::<Class>::new());
        while let [first, rest @ ..] = pattern {
            pattern = rest;
            let part = match (first, rest) {
                (b'*', _) if parts.last() == Some(&Part::Star) => continue,
                (b'*', _) => Part::Star,
                (b'?', _) => Part::Any,
                (b'[', _) => {
                    let (class, length) = class_of(rest);
                    pattern = &rest[length..];
                    if classes.last() != Some(&class) {
                        classes.push(class);
                    }
                    // There are fewer than bytes in a request.
                    Part::Class(classes.len() as u32 - 1)
                }
                (b'\\', [literal, rest @ ..]) => {
                    pattern = rest;
                    Part::Byte(*literal)
                }
                (literal, _) => Part::Byte(*literal),
            };
            parts.push(part);
        }
        let least = parts.iter().filter(|part| **part != Part::Star).count();
        Self { parts, classes, least }
    }

    /// Does all of `text` match?
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        if text.len() < self.least {
            return false;
        }
        let (mut at, mut here) = (0, 0);
        // Behind the last star, and where what it took ends.
        let mut star: Option<(usize, usize)> = None;
        loop {
            let part = self.parts.get(at);
            if part == Some(&Part::Star) {
                at += 1;
                star = Some((at, here));
                if at == self.parts.len() {
                    return true;
                }
                continue;
            }
            let matched = match (part, text.get(here)) {
                (Some(part), Some(&byte)) => self.takes(*part, byte),
                (None, Some(_)) => false,
                (None, None) => return true,
                // Whatever stands there takes at least one byte.
                (Some(_), None) => return false,
            };
            match (matched, star) {
                (true, _) => {
                    at += 1;
                    here += 1;
                }
                (false, Some((behind, taken))) => {
                    star = Some((behind, taken + 1));
                    (at, here) = (behind, taken + 1);
                }
                (false, None) => return false,
            }
        }
    }

    fn takes(&self, part: Part, byte: u8) -> bool {
        match part {
            Part::Star => false,
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

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_both_lengths_multiplied() {
        let pattern = [b"a*".repeat(1_000), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &b"a".repeat(20_000)));
        assert!(matches(&pattern, &[b"a".repeat(20_000), b"b".to_vec()].concat()));
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
