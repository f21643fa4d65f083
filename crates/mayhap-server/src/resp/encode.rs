//! Encodes replies in both protocols.

use std::io::Write as _;

use mayhap_command::{Refusal, Reply, number};

/// The protocol a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2: strings, integers, lists.
    #[default]
    Resp2,
    /// RESP3: also booleans, doubles, maps, sets and more.
    Resp3,
}

impl Protocol {
    /// The version number in `HELLO`.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// For longer strings, the encoder first checks that there is enough memory.
const LONG_BYTES: usize = 64 << 10;
/// An upper bound for the length and the line ends of a string.
const BESIDES_BYTES: usize = 64;

/// Appends `reply` to `out`. A long string is replaced by an error if there is not enough memory for it.
pub fn reply(reply_: &Reply, protocol: Protocol, out: &mut Vec<u8>) {
    let modern = protocol == Protocol::Resp3;
    match reply_ {
        Reply::Ok => out.extend_from_slice(b"+OK\r\n"),
        Reply::Simple(text) => line(b'+', text.as_bytes(), out),
        Reply::Refused(refusal) => error(refusal, out),
        Reply::Integer(number) => header(b':', *number, out),
        Reply::Boolean(yes) => boolean(*yes, protocol, out),
        Reply::Booleans(answers) => {
            length(b'*', answers.len(), out);
            for yes in answers.iter() {
                boolean(yes, protocol, out);
            }
        }
        Reply::Double(number) if modern => {
            out.push(b',');
            out.extend_from_slice(number::shortest(*number).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Reply::Double(number) => bulk(number::shortest(*number).as_bytes(), out),
        Reply::Bulk(bytes) => bulk(bytes, out),
        Reply::Text(text) if modern => {
            length(b'=', text.len() + 4, out);
            out.extend_from_slice(b"txt:");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Reply::Text(text) => bulk(text.as_bytes(), out),
        Reply::Null | Reply::NullArray if modern => out.extend_from_slice(b"_\r\n"),
        Reply::Null => out.extend_from_slice(b"$-1\r\n"),
        Reply::NullArray => out.extend_from_slice(b"*-1\r\n"),
        Reply::Array(items) => {
            length(b'*', items.len(), out);
            items.iter().for_each(|item| reply(item, protocol, out));
        }
        Reply::Set(items) => {
            length(if modern { b'~' } else { b'*' }, items.len(), out);
            items.iter().for_each(|item| reply(item, protocol, out));
        }
        Reply::Map(pairs) => {
            match modern {
                true => length(b'%', pairs.len(), out),
                false => length(b'*', 2 * pairs.len(), out),
            }
            for (name, value) in pairs {
                reply(name, protocol, out);
                reply(value, protocol, out);
            }
        }
        Reply::Split { resp2, resp3 } => reply(if modern { resp3 } else { resp2 }, protocol, out),
    }
}

/// Appends an error: `-` and its text, code included.
pub fn error(text: &impl std::fmt::Display, out: &mut Vec<u8>) {
    let mut message = Vec::new();
    // Writing to a vector does not fail.
    let _ = write!(message, "{text}");
    line(b'-', &message, out);
}

fn boolean(yes: bool, protocol: Protocol, out: &mut Vec<u8>) {
    let bytes: &[u8; 4] = match (protocol, yes) {
        (Protocol::Resp2, true) => b":1\r\n",
        (Protocol::Resp2, false) => b":0\r\n",
        (Protocol::Resp3, true) => b"#t\r\n",
        (Protocol::Resp3, false) => b"#f\r\n",
    };
    out.extend_from_slice(bytes);
}

/// Appends a line. Line breaks in it are replaced by blanks, as in Redis.
fn line(marker: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(marker);
    let from = out.len();
    out.extend_from_slice(text);
    for byte in &mut out[from..] {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    // If there is no memory for a short string, nothing works.
    if bytes.len() > LONG_BYTES && out.try_reserve(bytes.len() + BESIDES_BYTES).is_err() {
        return error(&Refusal::InsufficientMemory, out);
    }
    length(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn length(marker: u8, length: usize, out: &mut Vec<u8>) {
    header(marker, i64::try_from(length).unwrap_or(i64::MAX), out);
}

/// Marker, number, end of line.
fn header(marker: u8, number: i64, out: &mut Vec<u8>) {
    if let digit @ 0..=9 = number {
        out.extend_from_slice(&[marker, b'0' + digit as u8, b'\r', b'\n']);
        return;
    }
    // A sign, 19 digits, the marker and the end of the line.
    let mut text = [0; 24];
    let mut at = text.len() - 2;
    text[at..].copy_from_slice(b"\r\n");
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if number < 0 {
        at -= 1;
        text[at] = b'-';
    }
    at -= 1;
    text[at] = marker;
    out.extend_from_slice(&text[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use mayhap_command::Refusal;

    fn both(value: &Reply) -> (String, String) {
        let encoded = |protocol| {
            let mut out = Vec::new();
            reply(value, protocol, &mut out);
            String::from_utf8(out).unwrap()
        };
        (encoded(Protocol::Resp2), encoded(Protocol::Resp3))
    }

    #[test]
    fn every_reply_in_both_protocols() {
        let same = |value: Reply, text: &str| (value, text.to_owned(), text.to_owned());
        let differ = |value: Reply, old: &str, new: &str| (value, old.to_owned(), new.to_owned());
        for (value, old, new) in [
            same(Reply::Ok, "+OK\r\n"),
            same(Reply::simple("a\r\nb"), "+a  b\r\n"),
            same(Refusal::WrongType.into(), &format!("-{}\r\n", Refusal::WrongType)),
            same(Reply::Integer(0), ":0\r\n"),
            same(Reply::Integer(-1), ":-1\r\n"),
            same(Reply::Integer(10), ":10\r\n"),
            same(Reply::Integer(i64::MIN), ":-9223372036854775808\r\n"),
            same(Reply::Integer(i64::MAX), ":9223372036854775807\r\n"),
            differ(Reply::Boolean(true), ":1\r\n", "#t\r\n"),
            differ(Reply::Boolean(false), ":0\r\n", "#f\r\n"),
            differ(Reply::Double(0.01), "$4\r\n0.01\r\n", ",0.01\r\n"),
            differ(Reply::Double(3.0), "$1\r\n3\r\n", ",3\r\n"),
            differ(Reply::Double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
            differ(Reply::Double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n"),
            differ(Reply::Double(1e-300), "$6\r\n1e-300\r\n", ",1e-300\r\n"),
            differ(Reply::Double(2.5e20), "$7\r\n2.5e+20\r\n", ",2.5e+20\r\n"),
            differ(Reply::Double(5e-7), "$5\r\n5e-07\r\n", ",5e-07\r\n"),
            same(Reply::bulk("a\r\nb"), "$4\r\na\r\nb\r\n"),
            same(Reply::bulk(""), "$0\r\n\r\n"),
            differ(Reply::Text("hi".into()), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
            differ(Reply::Null, "$-1\r\n", "_\r\n"),
            differ(Reply::NullArray, "*-1\r\n", "_\r\n"),
            differ(Reply::Array(vec![Reply::Null; 2]), "*2\r\n$-1\r\n$-1\r\n", "*2\r\n_\r\n_\r\n"),
            differ(Reply::Set(vec![Reply::Ok]), "*1\r\n+OK\r\n", "~1\r\n+OK\r\n"),
            differ(
                Reply::Map(vec![(Reply::bulk("a"), Reply::Boolean(true))]),
                "*2\r\n$1\r\na\r\n:1\r\n",
                "%1\r\n$1\r\na\r\n#t\r\n",
            ),
            differ(
                Reply::Split { resp2: Box::new(Reply::Integer(-1)), resp3: Box::new(Reply::Boolean(false)) },
                ":-1\r\n",
                "#f\r\n",
            ),
        ] {
            assert_eq!(both(&value), (old, new), "{value:?}");
        }
    }
}
