//! Decodes requests. Nothing is copied: a request is a list of spans of the buffer it arrived in.
//!
//! The decoder remembers its position, so a request that arrives in a thousand pieces is read only once. It
//! allocates for words that have arrived, never for those that a length announces.

use std::fmt;
use std::ops::Range;

/// The maximum length of a line: a header or an inline request.
const MAX_LINE: usize = 64 * 1024;

/// Limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of words in a request.
    pub words: usize,
    /// The maximum number of bytes in a word (`proto-max-bulk-len`).
    pub word_bytes: usize,
    /// The maximum number of bytes in a request.
    pub request_bytes: usize,
    /// Whether the client is authenticated. Otherwise it may send ten words of together 16 KiB.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { words: 1 << 20, word_bytes: 512 << 20, request_bytes: 1 << 30, authenticated: true }
    }
}

impl Limits {
    /// The maximum length of a line.
    const fn line_bytes(&self) -> usize {
        if self.authenticated { MAX_LINE } else { UNAUTHENTICATED_BYTES }
    }
}

/// The maximum number of words in a request of an unauthenticated client.
const UNAUTHENTICATED_WORDS: i64 = 10;
/// The maximum number of bytes in a word of an unauthenticated client.
const UNAUTHENTICATED_WORD_BYTES: i64 = 16 * 1024;
/// The maximum number of bytes in a request of an unauthenticated client: a word of maximum length, and the
/// rest of the request.
pub(crate) const UNAUTHENTICATED_BYTES: usize = 17 * 1024;
/// The number of words and requests whose memory is kept for the next ones. That of a large pipeline is
/// freed.
const KEEP_PLACES: usize = 256;

/// Why the bytes are not a request. The client gets the error, then the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// An inline request is longer than a line may be.
    InlineTooLong,
    /// The quotes of an inline request are not closed.
    UnbalancedQuotes,
    /// The line after `*` is too long.
    CountTooLong,
    /// The number of words is invalid or too large.
    InvalidCount,
    /// An unauthenticated client sent too many words.
    UnauthenticatedCount,
    /// The line after `$` is too long.
    LengthTooLong,
    /// A word does not begin with `$`.
    ExpectedDollar(u8),
    /// The length of a word is invalid or too large.
    InvalidLength,
    /// An unauthenticated client sent a word that is too long, or too many bytes in all.
    UnauthenticatedLength,
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
            Self::UnauthenticatedCount => f.write_str("unauthenticated multibulk length"),
            Self::LengthTooLong => f.write_str("too big bulk count string"),
            // The line of an error ends at the first line break.
            Self::ExpectedDollar(b'\r' | b'\n') => f.write_str("expected '$', got ' '"),
            Self::ExpectedDollar(got) => write!(f, "expected '$', got '{}'", char::from(*got)),
            Self::InvalidLength => f.write_str("invalid bulk length"),
            Self::UnauthenticatedLength => f.write_str("unauthenticated bulk length"),
            Self::RequestTooLong => f.write_str("too big request"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// One complete request: its position in the buffer and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The offset of its first byte.
    pub start: usize,
    /// The offset after its last byte.
    pub end: usize,
    /// Its words, by index into [`Decoder::words`].
    pub words: Range<usize>,
}

/// The position of a word.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    /// A quoted inline word, which is not in the buffer as it is but in [`Decoder::unquoted`].
    unquoted: bool,
}

/// Reads requests from a buffer that grows at its end and is cut at its front.
#[derive(Debug, Default)]
pub struct Decoder {
    spans: Vec<Span>,
    frames: Vec<Frame>,
    /// The quoted inline words, unquoted.
    unquoted: Vec<u8>,
    /// The next byte to read.
    at: usize,
    /// The start of the current request.
    start: usize,
    /// Its first span.
    first: usize,
    /// The number of words that are still missing.
    missing: usize,
    /// The length of the current word, if its header was read.
    length: Option<usize>,
    /// The number of bytes after `at` that contain no end of line.
    searched: usize,
}

impl Decoder {
    /// Reads at most `most` complete requests from `buffer`. Bytes that were read before are not read again;
    /// between calls the buffer may only grow or be cut by [`cut`](Self::cut).
    ///
    /// # Errors
    /// The bytes after the last frame are not a request. The frames before are valid.
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

    /// The complete requests.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// All words of [`frames`](Self::frames), in order. `buffer` is the buffer that was read.
    pub fn words<'a>(&'a self, buffer: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let end = self.frames.last().map_or(0, |frame| frame.words.end);
        self.spans[..end].iter().map(move |span| match span.unquoted {
            false => &buffer[span.start..span.end],
            true => &self.unquoted[span.start..span.end],
        })
    }

    /// The positions of the words of `frame`, relative to its start. `None` if one of them is quoted, because
    /// the buffer does not contain its unquoted form.
    #[must_use]
    pub fn spans(&self, frame: &Frame) -> Option<Vec<Range<usize>>> {
        let span = |span: &Span| (!span.unquoted).then(|| span.start - frame.start..span.end - frame.start);
        self.spans[frame.words.clone()].iter().map(span).collect()
    }

    /// The number of bytes of the complete requests, which may be cut off the front.
    #[must_use]
    pub const fn whole(&self) -> usize {
        if self.missing > 0 { self.start } else { self.at }
    }

    /// The minimum number of bytes that must arrive before another call makes sense. More than 1 inside a
    /// long word.
    #[must_use]
    pub fn wanted(&self, buffered: usize) -> usize {
        self.length.map_or(1, |length| (self.at + length + 2).saturating_sub(buffered)).max(1)
    }

    /// The memory of the decoder in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
            + self.frames.capacity() * size_of::<Frame>()
            + self.unquoted.capacity()
    }

    /// Frees memory that only a large pipeline needed. There may be ten thousand decoders.
    fn shrink(&mut self) {
        self.spans.shrink_to(self.spans.len().max(KEEP_PLACES));
        self.frames.shrink_to(KEEP_PLACES);
        self.unquoted.shrink_to(KEEP_PLACES);
    }

    /// Drops all frames. The caller has handled the first `done` of them; the others will be read again.
    /// Returns the number of bytes that the caller must cut off the front of the buffer before it calls
    /// [`read`](Self::read) again.
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

    /// Reads `*3`, the number of words. Returns `false` if the line is not complete.
    fn count(&mut self, buffer: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        let Some(line) = self.line(buffer, limits, ProtocolError::CountTooLong)? else { return Ok(false) };
        let most = i64::try_from(limits.words).unwrap_or(i64::MAX);
        let count =
            number(&buffer[line]).filter(|count| *count <= most).ok_or(ProtocolError::InvalidCount)?;
        if !limits.authenticated && count > UNAUTHENTICATED_WORDS {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        self.missing = usize::try_from(count).unwrap_or(0);
        Ok(true)
    }

    /// Reads `$3` and three bytes. Returns `false` if they are not complete.
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
                if !limits.authenticated && length > UNAUTHENTICATED_WORD_BYTES {
                    return Err(ProtocolError::UnauthenticatedLength);
                }
                let length = usize::try_from(length).map_err(|_| ProtocolError::InvalidLength)?;
                // Checked before waiting for the bytes.
                let bytes = (self.at - self.start).saturating_add(length);
                if !limits.authenticated && bytes > UNAUTHENTICATED_BYTES {
                    return Err(ProtocolError::UnauthenticatedLength);
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

    /// Returns the line at `at`, without its marker and its end. As in Redis, only the `\r` of the end is
    /// checked. `None` if the line is not complete.
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

    /// Reads an inline request, as a person types it. Returns `false` if the line is not complete.
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

    /// Splits a line into words by Redis's rules: blanks, `"…"` with escapes, `'…'` with only `\'`.
    fn split(&mut self, line: &[u8], offset: usize) -> Result<(), ProtocolError> {
        let mut at = 0;
        loop {
            while line.get(at).is_some_and(|byte| is_blank(*byte)) {
                at += 1;
            }
            // A zero byte ends the line, as in a C string.
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

/// Whether the byte separates words, as C's `isspace`.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Appends the quoted word at `at` to `word` and returns the offset after it. `None` if a quote is not
/// closed, or if its end is not followed by a blank.
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

/// Appends the text up to the closing quote; `at` is after the opening quote. Returns the offset after the
/// closing quote.
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

/// Parses digits with an optional sign, as [`mayhap_command::args::integer`] does, but faster for short
/// numbers.
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

    /// Feeds `pieces` one after another, as a connection does. Returns all requests and the error at the end.
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
    fn protocol_errors_have_the_words_of_redis() {
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
    fn unauthenticated_clients_have_small_limits() {
        let limits = Limits { authenticated: false, ..Limits::default() };
        assert_eq!(decode(&[b"*11\r\n"], &limits).1, Some(ProtocolError::UnauthenticatedCount));
        assert_eq!(decode(&[b"*1\r\n$16385\r\n"], &limits).1, Some(ProtocolError::UnauthenticatedLength));
        assert_eq!(decode(&[b"*10\r\n$16384\r\n"], &limits).1, None);
        // All words together, and a line without an end.
        let word = [&b"*2\r\n$16000\r\n"[..], &[b'a'; 16_000], b"\r\n$16000\r\n"].concat();
        assert_eq!(decode(&[&word], &limits).1, Some(ProtocolError::UnauthenticatedLength));
        assert_eq!(
            decode(&[&[b'a'; UNAUTHENTICATED_BYTES + 1]], &limits).1,
            Some(ProtocolError::InlineTooLong)
        );
        let digits = [&b"*"[..], &[b'1'; UNAUTHENTICATED_BYTES]].concat();
        assert_eq!(decode(&[&digits], &limits).1, Some(ProtocolError::CountTooLong));
    }

    #[test]
    fn all_words_together_have_a_limit_and_the_memory_of_a_large_pipeline_is_freed() {
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
    fn a_length_allocates_nothing_and_bytes_are_read_only_once() {
        let mut decoder = Decoder::default();
        let mut buffer = b"*1048576\r\n$536870912\r\nabc".to_vec();
        decoder.read(&buffer, &Limits::default(), usize::MAX).unwrap();
        assert_eq!(decoder.spans.capacity(), 0);
        assert_eq!(decoder.wanted(buffer.len()), 536_870_912 + 2 - 3);
        // The header was cut off: reading it again would be an error.
        buffer[0] = b'!';
        decoder.read(&buffer, &Limits::default(), usize::MAX).unwrap();
        assert_eq!((decoder.frames().len(), decoder.cut(0)), (0, 0));
    }

    #[test]
    fn frames_that_were_not_handled_are_read_again() {
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
