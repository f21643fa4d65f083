//! Bytes to requests. Nothing is copied: a request is a row of spans of the buffer it came in.
//!
//! The decoder remembers how far it came, so that a request that arrives in a thousand pieces is read once. It allocates for
//! words that arrived, never for those a length promises.

use std::fmt;
use std::ops::Range;

/// How long a line may be: a header, or an inline request.
const MAX_LINE: usize = 64 * 1024;

/// What a request may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Words of one request.
    pub words: usize,
    /// Bytes of one word (`proto-max-bulk-len`).
    pub word_bytes: usize,
    /// Bytes of a request with all its words.
    pub request_bytes: usize,
    /// Is the client known? A stranger may send ten words, and 16 KiB of them.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { words: 1 << 20, word_bytes: 512 << 20, request_bytes: 1 << 30, authenticated: true }
    }
}

impl Limits {
    /// How long a line may be.
    const fn line_bytes(&self) -> usize {
        if self.authenticated { MAX_LINE } else { STRANGER_BYTES }
    }
}

/// Words a stranger may send in a request.
const STRANGER_WORDS: i64 = 10;
/// Bytes of one word of a stranger.
const STRANGER_WORD_BYTES: i64 = 16 * 1024;
/// Bytes of a stranger's request: a word of that length, and what belongs to it.
pub(crate) const STRANGER_BYTES: usize = 17 * 1024;
/// Words and requests whose places are kept for the next ones: those of a large pipeline are not.
const KEEP_PLACES: usize = 256;

/// Why the bytes are no request. The connection is closed after the client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// No end of line for too long, in an inline request.
    InlineTooLong,
    /// An inline request whose quotes do not close.
    UnbalancedQuotes,
    /// No end of line for too long, behind `*`.
    CountTooLong,
    /// Not a number of words, or too many.
    InvalidCount,
    /// A stranger sends too many words.
    StrangerCount,
    /// No end of line for too long, behind `$`.
    LengthTooLong,
    /// A word that does not begin with `$`.
    ExpectedDollar(u8),
    /// Not a length, or too long.
    InvalidLength,
    /// A stranger sends too long a word, or too many long ones.
    StrangerLength,
    /// All words together are too long.
    RequestTooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ERR Protocol error: ")?;
        match self {
            Self::InlineTooLong => f.write_str("too big inline request"),
            Self::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            Self::CountTooLong => f.write_str("too big mbulk count string"),
            Self::InvalidCount => f.write_str("invalid multibulk length"),
            Self::StrangerCount => f.write_str("unauthenticated multibulk length"),
            Self::LengthTooLong => f.write_str("too big bulk count string"),
            // The line of an error ends at the first line break.
            Self::ExpectedDollar(b'\r' | b'\n') => f.write_str("expected '$', got ' '"),
            Self::ExpectedDollar(got) => write!(f, "expected '$', got '{}'", char::from(*got)),
            Self::InvalidLength => f.write_str("invalid bulk length"),
            Self::StrangerLength => f.write_str("unauthenticated bulk length"),
            Self::RequestTooLong => f.write_str("too big request"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// One whole request: where it begins in the buffer, and which words are its.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The offset of its first byte.
    pub start: usize,
    /// The offset behind its last byte.
    pub end: usize,
    /// Its words, by index into [`Decoder::words`].
    pub words: Range<usize>,
}

/// Where a word is.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    /// Inline words with quotes are not in the buffer as they are meant: they are in [`Decoder::unquoted`].
    unquoted: bool,
}

/// Reads requests off a buffer that grows at its end and is cut at its front.
#[derive(Debug, Default)]
pub struct Decoder {
    spans: Vec<Span>,
    frames: Vec<Frame>,
    /// Inline words that were quoted.
    unquoted: Vec<u8>,
    /// The next byte to look at.
    at: usize,
    /// Where the request under way begins.
    start: usize,
    /// Its first span.
    first: usize,
    /// Its words that are still to come.
    missing: usize,
    /// The length of the word under way, whose header was read.
    length: Option<usize>,
    /// How far behind `at` no end of line was found.
    searched: usize,
}

impl Decoder {
    /// Reads whole requests, `most` at the most, out of `buffer`. What was read before is not read again, as long as the buffer
    /// only grew or was cut by [`cut`](Self::cut).
    ///
    /// # Errors
    /// The bytes behind the last frame are no request. The frames before it are good.
    pub fn read(&mut self, buffer: &[u8], limits: &Limits, most: usize) -> Result<(), ProtocolError> {
        while self.frames.len() < most && self.at < buffer.len() {
            if self.missing == 0 {
                self.start = self.at;
                self.first = self.spans.len();
                let begun = match buffer[self.at] {
                    b'*' => self.count(buffer, limits)?,
                    _ => self.inline(buffer, limits)?,
                };
                if !begun {
                    return Ok(());
                }
            }
            while self.missing > 0 {
                if !self.word_in(buffer, limits)? {
                    return Ok(());
                }
                self.missing -= 1;
            }
            let words = self.first..self.spans.len();
            if !words.is_empty() {
                self.frames.push(Frame { start: self.start, end: self.at, words });
            }
        }
        Ok(())
    }

    /// The whole requests that were read.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// All words of [`frames`](Self::frames), in order: `buffer` is the one that was read.
    pub fn words<'a>(&'a self, buffer: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let end = self.frames.last().map_or(0, |frame| frame.words.end);
        self.spans[..end].iter().map(move |span| match span.unquoted {
            false => &buffer[span.start..span.end],
            true => &self.unquoted[span.start..span.end],
        })
    }

    /// Where the words of `frame` are, from its start on. `None` if one of them is quoted: then it is not in the buffer as it is
    /// meant.
    #[must_use]
    pub fn spans(&self, frame: &Frame) -> Option<Vec<Range<usize>>> {
        let span = |span: &Span| (!span.unquoted).then(|| span.start - frame.start..span.end - frame.start);
        self.spans[frame.words.clone()].iter().map(span).collect()
    }

    /// How many bytes the whole requests take: as many may be cut off the front.
    #[must_use]
    pub const fn whole(&self) -> usize {
        if self.missing > 0 { self.start } else { self.at }
    }

    /// How many bytes are missing, at the least, before another call makes sense: more than 1 in the midst of a long word.
    #[must_use]
    pub fn wanted(&self, buffered: usize) -> usize {
        self.length.map_or(1, |length| (self.at + length + 2).saturating_sub(buffered)).max(1)
    }

    /// Bytes it keeps about what it read.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
            + self.frames.capacity() * size_of::<Frame>()
            + self.unquoted.capacity()
    }

    /// Gives back what only a large pipeline needed. There may be ten thousand decoders.
    fn shrink(&mut self) {
        self.spans.shrink_to(self.spans.len().max(KEEP_PLACES));
        self.frames.shrink_to(KEEP_PLACES);
        self.unquoted.shrink_to(KEEP_PLACES);
    }

    /// Forgets the first `done` frames, of which the caller takes care, and all that follow them too: those will be read again.
    /// Says how many bytes the caller must cut off the front of the buffer before it calls [`read`](Self::read) again.
    pub fn cut(&mut self, done: usize) -> usize {
        if let Some(next) = self.frames.get(done) {
            let cut = next.start;
            *self = Self {
                spans: std::mem::take(&mut self.spans),
                frames: std::mem::take(&mut self.frames),
                unquoted: std::mem::take(&mut self.unquoted),
                ..Self::default()
            };
            self.spans.clear();
            self.frames.clear();
            self.unquoted.clear();
            self.shrink();
            return cut;
        }
        let cut = self.whole();
        self.frames.clear();
        if self.missing > 0 {
            self.spans.drain(..self.first);
            for span in &mut self.spans {
                span.start -= cut;
                span.end -= cut;
            }
        } else {
            self.spans.clear();
        }
        self.unquoted.clear();
        self.at -= cut;
        self.start = 0;
        self.first = 0;
        self.shrink();
        cut
    }

    /// `*3`: how many words follow. `false`: the line is not there yet.
    fn count(&mut self, buffer: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        let Some(line) = self.line(buffer, limits, ProtocolError::CountTooLong)? else { return Ok(false) };
        let most = i64::try_from(limits.words).unwrap_or(i64::MAX);
        let count =
            number(&buffer[line]).filter(|count| *count <= most).ok_or(ProtocolError::InvalidCount)?;
        if !limits.authenticated && count > STRANGER_WORDS {
            return Err(ProtocolError::StrangerCount);
        }
        self.missing = usize::try_from(count).unwrap_or(0);
        Ok(true)
    }

    /// `$3` and three bytes. `false`: they are not all there yet.
    fn word_in(&mut self, buffer: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        let length = match self.length {
            Some(length) => length,
            None => {
                let Some(line) = self.line(buffer, limits, ProtocolError::LengthTooLong)? else {
                    return Ok(false);
                };
                let marker = buffer[line.start - 1];
                if marker != b'$' {
                    return Err(ProtocolError::ExpectedDollar(marker));
                }
                let most = i64::try_from(limits.word_bytes).unwrap_or(i64::MAX);
                let length = number(&buffer[line])
                    .filter(|length| (0..=most).contains(length))
                    .ok_or(ProtocolError::InvalidLength)?;
                if !limits.authenticated && length > STRANGER_WORD_BYTES {
                    return Err(ProtocolError::StrangerLength);
                }
                let length = usize::try_from(length).map_err(|_| ProtocolError::InvalidLength)?;
                // Before any of it is waited for.
                let bytes = (self.at - self.start).saturating_add(length);
                if !limits.authenticated && bytes > STRANGER_BYTES {
                    return Err(ProtocolError::StrangerLength);
                }
                if bytes > limits.request_bytes {
                    return Err(ProtocolError::RequestTooLong);
                }
                length
            }
        };
        if buffer.len() - self.at < length + 2 {
            self.length = Some(length);
            return Ok(false);
        }
        self.length = None;
        self.spans.push(Span { start: self.at, end: self.at + length, unquoted: false });
        self.at += length + 2;
        Ok(true)
    }

    /// The line at `at`, without its marker and its end, of which only the `\r` is looked at, as in Redis. `None`: its end is not
    /// there yet.
    fn line(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        too_long: ProtocolError,
    ) -> Result<Option<Range<usize>>, ProtocolError> {
        let from = self.at + self.searched;
        match buffer[from..].iter().position(|byte| *byte == b'\r') {
            Some(end) if from + end + 1 < buffer.len() => {
                let line = self.at + 1..(from + end).max(self.at + 1);
                self.at = from + end + 2;
                self.searched = 0;
                Ok(Some(line))
            }
            Some(end) => {
                self.searched += end;
                Ok(None)
            }
            None if buffer.len() - self.at > limits.line_bytes() => Err(too_long),
            None => {
                self.searched = buffer.len() - self.at;
                Ok(None)
            }
        }
    }

    /// Words on a line, as a person types them. `false`: the line is not there yet.
    fn inline(&mut self, buffer: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        let from = self.at + self.searched;
        let Some(end) = buffer[from..].iter().position(|byte| *byte == b'\n') else {
            if buffer.len() - self.at > limits.line_bytes() {
                return Err(ProtocolError::InlineTooLong);
            }
            self.searched = buffer.len() - self.at;
            return Ok(false);
        };
        let end = from + end;
        let line = self.at..end;
        let text = buffer[line.clone()].strip_suffix(b"\r").unwrap_or(&buffer[line.clone()]);
        self.split(text, line.start)?;
        self.at = end + 1;
        self.searched = 0;
        Ok(true)
    }

    /// Splits a line into words by Redis's rules: blanks, `"…"` with escapes, `'…'` with `\'` alone.
    fn split(&mut self, line: &[u8], offset: usize) -> Result<(), ProtocolError> {
        let mut at = 0;
        loop {
            while line.get(at).is_some_and(|byte| is_blank(*byte)) {
                at += 1;
            }
            // A zero byte ends the line where lines are C strings.
            if line.get(at).is_none_or(|byte| *byte == 0) {
                return Ok(());
            }
            let plain =
                line[at..].iter().position(|byte| is_blank(*byte) || matches!(byte, b'"' | b'\'' | 0));
            let end = plain.map_or(line.len(), |plain| at + plain);
            if line.get(end).is_none_or(|byte| !matches!(byte, b'"' | b'\'')) {
                self.spans.push(Span { start: offset + at, end: offset + end, unquoted: false });
                at = end;
                continue;
            }
            let start = self.unquoted.len();
            at = unquote(line, at, &mut self.unquoted).ok_or(ProtocolError::UnbalancedQuotes)?;
            self.spans.push(Span { start, end: self.unquoted.len(), unquoted: true });
        }
    }
}

/// What separates words: C's `isspace`.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Appends the word at `at`, which has quotes, to `word`. Gives the offset behind it; `None`: a quote does not close, or something
/// follows its end without a blank.
fn unquote(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match line.get(at).copied() {
            None | Some(0) => return Some(at),
            Some(byte) if is_blank(byte) => return Some(at),
            Some(quote @ (b'"' | b'\'')) => {
                at = quoted(line, at + 1, quote, word)?;
                return line.get(at).is_none_or(|byte| is_blank(*byte) || *byte == 0).then_some(at);
            }
            Some(byte) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Appends what stands between quotes, `at` being behind the first one. Gives the offset behind the second.
fn quoted(line: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        let (byte, taken) = match line.get(at..)? {
            [] | [0, ..] => return None,
            [b'\\', b'x', high, low, ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) << 4 | hex(*low), 4)
            }
            [b'\\', 0, ..] => return None,
            [b'\\', escaped, ..] if quote == b'"' => (unescaped(*escaped), 2),
            [b'\\', b'\'', ..] => (b'\'', 2),
            [byte, ..] if *byte == quote => return Some(at + 1),
            [byte, ..] => (*byte, 1),
        };
        word.push(byte);
        at += taken;
    }
}

const fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

/// Digits with a sign and nothing else, as [`mayhap_command::args::integer`] has them, but short ones are read quickly.
fn number(digits: &[u8]) -> Option<i64> {
    match digits {
        [digit @ b'0'..=b'9'] => Some(i64::from(digit - b'0')),
        [tens @ b'1'..=b'9', ones @ b'0'..=b'9'] => Some(i64::from((tens - b'0') * 10 + (ones - b'0'))),
        _ => mayhap_command::args::integer(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Words = Vec<Vec<u8>>;

    /// All requests of `pieces`, fed one behind the other as a connection feeds them, and the error at their end.
    fn decode(pieces: &[&[u8]], limits: &Limits) -> (Vec<Words>, Option<ProtocolError>) {
        let mut decoder = Decoder::default();
        let mut buffer = Vec::new();
        let mut requests = Vec::new();
        for piece in pieces {
            buffer.extend_from_slice(piece);
            let outcome = decoder.read(&buffer, limits, usize::MAX);
            let words: Vec<&[u8]> = decoder.words(&buffer).collect();
            for frame in decoder.frames() {
                requests.push(words[frame.words.clone()].iter().map(|word| word.to_vec()).collect());
            }
            if let Err(error) = outcome {
                return (requests, Some(error));
            }
            let cut = decoder.cut(usize::MAX);
            buffer.drain(..cut);
        }
        (requests, None)
    }

    fn whole(bytes: &[u8]) -> (Vec<Words>, Option<ProtocolError>) {
        decode(&[bytes], &Limits::default())
    }

    fn words(line: &[&str]) -> Words {
        line.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    const PIPELINE: &[u8] = b"*3\r\n$9\r\nBF.EXISTS\r\n$4\r\nseen\r\n$2\r\n\r\n\r\nPING\r\n*0\r\n*-1\r\n\r\n*1\r\n$0\r\n\r\n  a 'b c' \"\\x41\\n\"\n*2\r\n$1\r\nx\r\n$12\r\n0123456789ab\r\n";

    #[test]
    fn a_pipeline_is_the_same_wherever_it_is_split() {
        let (requests, error) = whole(PIPELINE);
        assert_eq!(error, None);
        assert_eq!(
            requests,
            [
                words(&["BF.EXISTS", "seen", "\r\n"]),
                words(&["PING"]),
                words(&[""]),
                words(&["a", "b c", "A\n"]),
                words(&["x", "0123456789ab"]),
            ]
        );
        for first in 0..=PIPELINE.len() {
            for second in first..=PIPELINE.len() {
                let pieces = [&PIPELINE[..first], &PIPELINE[first..second], &PIPELINE[second..]];
                assert_eq!(
                    decode(&pieces, &Limits::default()),
                    (requests.clone(), None),
                    "split at {first} and {second}"
                );
            }
        }
        let bytes: Vec<&[u8]> = PIPELINE.chunks(1).collect();
        assert_eq!(decode(&bytes, &Limits::default()), (requests, None));
    }

    #[test]
    fn inline_words_are_split_as_redis_splits_them() {
        for (line, expected) in [
            ("a  b\tc", vec!["a", "b", "c"]),
            ("a\\nb", vec!["a\\nb"]),
            ("\"a\\\"b\" 'it\\'s' 'a\\nb'", vec!["a\"b", "it's", "a\\nb"]),
            ("\"\\r\\t\\b\\a\\q\\x7a\\xzz\"", vec!["\r\t\x08\x07qzxzz"]),
            ("pre\"fix\" x", vec!["prefix", "x"]),
            ("\"\"", vec![""]),
        ] {
            let (requests, error) = whole(format!("{line}\r\n").as_bytes());
            assert_eq!((requests, error), (vec![words(&expected)], None), "{line}");
        }
        for line in ["\"a", "'a", "\"a\"b", "'a'b", "a\"b", "\"a\\"] {
            let (requests, error) = whole(format!("{line}\r\n").as_bytes());
            assert_eq!((requests, error), (vec![], Some(ProtocolError::UnbalancedQuotes)), "{line}");
        }
    }

    #[test]
    fn what_is_no_request_is_named_in_redis_words() {
        let long = vec![b'1'; MAX_LINE + 1];
        let too_long = |start: &str| [start.as_bytes(), &long].concat();
        for (bytes, text) in [
            (b"*x\r\n".to_vec(), "invalid multibulk length"),
            (b"*\r\n".to_vec(), "invalid multibulk length"),
            (b"*1048577\r\n".to_vec(), "invalid multibulk length"),
            (b"*99999999999999999999\r\n".to_vec(), "invalid multibulk length"),
            (b"*1\r\nx".to_vec(), ""),
            (b"*1\r\nx\r\n".to_vec(), "expected '$', got 'x'"),
            (b"*1\r\n\r\n".to_vec(), "expected '$', got ' '"),
            (b"*1\r\n$\r\n".to_vec(), "invalid bulk length"),
            (b"*1\r\n$-1\r\n".to_vec(), "invalid bulk length"),
            (b"*1\r\n$536870913\r\n".to_vec(), "invalid bulk length"),
            (too_long("*"), "too big mbulk count string"),
            (too_long("*1\r\n$"), "too big bulk count string"),
            (too_long("get "), "too big inline request"),
        ] {
            let (_, error) = whole(&bytes);
            let expected = (!text.is_empty()).then(|| format!("ERR Protocol error: {text}"));
            assert_eq!(error.map(|error| error.to_string()), expected, "{:?}", bytes.get(..20));
        }
    }

    #[test]
    fn strangers_may_send_little() {
        let limits = Limits { authenticated: false, ..Limits::default() };
        assert_eq!(decode(&[b"*11\r\n"], &limits).1, Some(ProtocolError::StrangerCount));
        assert_eq!(decode(&[b"*1\r\n$16385\r\n"], &limits).1, Some(ProtocolError::StrangerLength));
        assert_eq!(decode(&[b"*10\r\n$16384\r\n"], &limits).1, None);
        // All of it together, and without an end of the line.
        let word = [&b"*2\r\n$16000\r\n"[..], &[b'a'; 16_000], b"\r\n$16000\r\n"].concat();
        assert_eq!(decode(&[&word], &limits).1, Some(ProtocolError::StrangerLength));
        assert_eq!(decode(&[&[b'a'; STRANGER_BYTES + 1]], &limits).1, Some(ProtocolError::InlineTooLong));
        let digits = [&b"*"[..], &[b'1'; STRANGER_BYTES]].concat();
        assert_eq!(decode(&[&digits], &limits).1, Some(ProtocolError::CountTooLong));
    }

    #[test]
    fn all_words_together_have_a_limit_and_a_large_pipeline_leaves_nothing_behind() {
        let limits = Limits { request_bytes: 100, ..Limits::default() };
        assert_eq!(decode(&[b"*2\r\n$40\r\n", &[b'a'; 40], b"\r\n$40\r\n"], &limits).1, None);
        let error = decode(&[b"*2\r\n$40\r\n", &[b'a'; 40], b"\r\n$50\r\n"], &limits).1;
        assert_eq!(error, Some(ProtocolError::RequestTooLong));
        let (mut decoder, buffer) = (Decoder::default(), b"a\n".repeat(1 << 16));
        decoder.read(&buffer, &Limits::default(), usize::MAX).unwrap();
        assert_eq!(decoder.frames().len(), 1 << 16);
        assert_eq!(decoder.cut(1 << 16), buffer.len());
        assert!(decoder.memory_bytes() < 1 << 15, "{}", decoder.memory_bytes());
    }

    #[test]
    fn a_length_allocates_nothing_and_what_was_read_is_not_read_again() {
        let mut decoder = Decoder::default();
        let mut buffer = b"*1048576\r\n$536870912\r\nabc".to_vec();
        decoder.read(&buffer, &Limits::default(), usize::MAX).unwrap();
        assert_eq!(decoder.spans.capacity(), 0);
        assert_eq!(decoder.wanted(buffer.len()), 536_870_912 + 2 - 3);
        // The header is behind it: were it read again, this would be an error.
        buffer[0] = b'!';
        decoder.read(&buffer, &Limits::default(), usize::MAX).unwrap();
        assert_eq!((decoder.frames().len(), decoder.cut(0)), (0, 0));
    }

    #[test]
    fn frames_that_were_not_taken_come_again() {
        let buffer = b"a\r\nb\r\n*1\r\n$1\r\nc\r\n*2\r\n$1\r\nd\r\n";
        let mut decoder = Decoder::default();
        decoder.read(buffer, &Limits::default(), usize::MAX).unwrap();
        assert_eq!(decoder.frames().len(), 3);
        assert_eq!(decoder.cut(1), 3);
        decoder.read(&buffer[3..], &Limits::default(), 1).unwrap();
        assert_eq!(decoder.words(&buffer[3..]).collect::<Vec<_>>(), [b"b"]);
        assert_eq!(decoder.cut(1), 3);
        decoder.read(&buffer[6..], &Limits::default(), usize::MAX).unwrap();
        assert_eq!(decoder.words(&buffer[6..]).collect::<Vec<_>>(), [b"c"]);
    }
}
