//! `SCAN`, `KEYS`, `RANDOMKEY`.

use mayhap_command::{Refusal, Reply, Request, Value, args};

use crate::engine::Engine;
use crate::entry::{Entry, Now};
use crate::glob::Pattern;
use crate::keyspace::{END, Position};

/// The default `COUNT` of `SCAN`.
const DEFAULT_COUNT: u64 = 10;
/// The maximum number of ranges without names that one call visits.
const MOST_STRETCHES: u64 = 10_000;
/// The maximum number of bytes of names that one call matches against a pattern.
const MOST_COMPARED: usize = 1 << 20;
/// The maximum length of a pattern. Its parsed form takes up to two hundred times as much memory.
const MOST_PATTERN_BYTES: usize = 64 << 10;

#[derive(Debug)]
struct Search<'a> {
    pattern: Option<&'a [u8]>,
    count: u64,
    type_name: Option<&'a [u8]>,
}

impl<'a> Search<'a> {
    fn parse(words: &[&'a [u8]]) -> Result<Self, Refusal> {
        let mut search = Self { pattern: None, count: DEFAULT_COUNT, type_name: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let is = |option: &[u8]| word.eq_ignore_ascii_case(option);
            let mut next = || words.next().copied().ok_or(Refusal::Syntax);
            if is(b"count") {
                let count = args::integer(next()?).ok_or(Refusal::NotAnInteger)?;
                search.count = u64::try_from(count).ok().filter(|&count| count > 0).ok_or(Refusal::Syntax)?;
            } else if is(b"match") {
                search.pattern = Some(check_pattern(next()?)?);
            } else if is(b"type") {
                search.type_name = Some(next()?);
            } else {
                return Err(Refusal::Syntax);
            }
        }
        Ok(search)
    }
}

impl Engine {
    pub(super) fn scan(&self, request: &Request<'_>, now: Now) -> Result<Reply, Refusal> {
        let cursor = cursor(request.words[1]).ok_or(Refusal::InvalidCursor)?;
        let search = Search::parse(&request.words[2..])?;
        let pattern = search.pattern.filter(|&pattern| pattern != b"*").map(Pattern::new);
        let (next, found) = self.walk(cursor, search.count, pattern.as_ref(), now, |value| {
            search.type_name.is_none_or(|name| name.eq_ignore_ascii_case(value.type_name().as_bytes()))
        });
        let names = found.iter().map(|entry| Reply::bulk(entry.name())).collect();
        Ok(Reply::Array(vec![Reply::bulk(next.to_string()), Reply::Array(names)]))
    }

    pub(super) fn list(&self, request: &Request<'_>, now: Now) -> Result<Reply, Refusal> {
        let pattern = Pattern::new(check_pattern(request.words[1])?);
        let (mut cursor, mut names) = (0, Vec::new());
        loop {
            let (next, found) = self.walk(cursor, 1_000, Some(&pattern), now, |_| true);
            names.extend(found.iter().map(|entry| Reply::bulk(entry.name())));
            match next {
                0 => return Ok(Reply::Array(names)),
                next => cursor = next,
            }
        }
    }

    /// Returns all names, with any value, from `cursor` on until at least `count` were found, and the next
    /// cursor; 0 at the end.
    pub(crate) fn walk_all(&self, cursor: Position, count: u64) -> (Position, Vec<Entry>) {
        let (mut at, mut found, mut stretches) = (cursor, Vec::new(), 0);
        while at < END && (found.len() as u64) < count && stretches < MOST_STRETCHES {
            at = self.keyspace.stretch(at, &mut found);
            stretches += 1;
        }
        (if at < END { at } else { 0 }, found)
    }

    /// Returns names with a value that is `wanted`, from `cursor` on until at least `count` names were
    /// visited, and the next cursor; 0 at the end. A walk to the end returns every name that exists all the
    /// time.
    pub(crate) fn walk(
        &self,
        cursor: Position,
        count: u64,
        pattern: Option<&Pattern>,
        now: Now,
        wanted: impl Fn(&Value) -> bool,
    ) -> (Position, Vec<Entry>) {
        let (mut at, mut found, mut stretch) = (cursor, Vec::new(), Vec::new());
        let (mut looked_at, mut stretches, mut compared) = (0, 0, 0);
        while at < END && looked_at < count && stretches < MOST_STRETCHES && compared < MOST_COMPARED {
            at = self.keyspace.stretch(at, &mut stretch);
            looked_at += stretch.len() as u64;
            stretches += 1;
            for entry in stretch.drain(..) {
                if let Some(pattern) = pattern {
                    compared += entry.name().len();
                    if !pattern.matches(entry.name()) {
                        continue;
                    }
                }
                let is_wanted = {
                    let value = entry.read();
                    value.as_ref().is_some_and(&wanted) && !self.expiries.is_due(&entry, now.ms)
                };
                if is_wanted {
                    found.push(entry);
                }
            }
        }
        (if at < END { at } else { 0 }, found)
    }

    /// Returns some name: from a random range, or from the next one that has any.
    pub(super) fn random(&self, now: Now) -> Reply {
        let mut chance = [0; 16];
        self.environment.random(&mut chance);
        let chance = u128::from_le_bytes(chance);
        let start = (chance as u64) % END;
        let mut at = start;
        for _ in 0..2 {
            loop {
                let (next, found) = self.walk(at, 1, None, now, |_| true);
                if !found.is_empty() {
                    return Reply::bulk(found[(chance >> 64) as usize % found.len()].name());
                }
                at = next;
                if next == 0 {
                    break;
                }
            }
        }
        Reply::Null
    }
}

/// Parses a pattern, unless it is too long.
fn check_pattern(pattern: &[u8]) -> Result<&[u8], Refusal> {
    match pattern.len() {
        ..=MOST_PATTERN_BYTES => Ok(pattern),
        bytes => Err(Refusal::PatternTooLong { bytes, limit: MOST_PATTERN_BYTES }),
    }
}

/// Parses an unsigned 64-bit number. As in Redis, an empty text is 0, and a minus wraps around.
fn cursor(word: &[u8]) -> Option<Position> {
    let text = std::str::from_utf8(word).ok()?;
    let (digits, negative) = text.strip_prefix('-').map_or((text, false), |digits| (digits, true));
    let digits = if negative { digits } else { digits.strip_prefix('+').unwrap_or(digits) };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = if text.is_empty() { 0 } else { digits.parse::<u64>().ok()? };
    let number = if negative { number.wrapping_neg() } else { number };
    // After the end there is nothing.
    Some(number.min(END))
}
