//! Patterns for names, as Redis has them: `*`, `?`, `[a-z]`, `[^a]`, `\x`.

/// Does all of `text` match `pattern`?
///
/// When a match fails, only the last `*` is given one byte more: what an earlier one took cannot help. So a hostile pattern costs at
/// most the product of both lengths, where Redis's own recursion takes the length to the power of the stars.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut here) = (0, 0);
    // Behind the last star, and where what it took ends.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, here));
            if at == pattern.len() {
                return true;
            }
            continue;
        }
        let matched = match text.get(here) {
            Some(&byte) if at < pattern.len() => one(&pattern[at..], byte),
            Some(_) => None,
            None if at == pattern.len() => return true,
            // Whatever stands there takes at least one byte.
            None => return false,
        };
        match (matched, star) {
            (Some(length), _) => {
                at += length;
                here += 1;
            }
            (None, Some((behind, taken))) => {
                star = Some((behind, taken + 1));
                (at, here) = (behind, taken + 1);
            }
            (None, None) => return false,
        }
    }
}

/// Does `byte` match what `pattern` begins with, which is no star? If so, how much of the pattern that is.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => {
            let (holds, length) = class_holds(class, byte);
            holds.then_some(1 + length)
        }
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// Is `byte` one of a class, of which `class` begins behind the bracket; and how long that is with the bracket that closes it. One that is
/// not closed ends with the pattern.
fn class_holds(class: &[u8], byte: u8) -> (bool, usize) {
    let not = class.first() == Some(&b'^');
    let mut at = usize::from(not);
    let mut holds = false;
    loop {
        match &class[at.min(class.len())..] {
            [b'\\', literal, ..] => {
                holds |= *literal == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [] => break,
            [first, b'-', last, ..] => {
                let (low, high) = (*first.min(last), *first.max(last));
                holds |= (low..=high).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                holds |= *literal == byte;
                at += 1;
            }
        }
    }
    (holds != not, at)
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
}
