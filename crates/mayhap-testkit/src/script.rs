//! Scripts of requests and their raw replies, in both protocols. The same file runs in process and over a socket.
//!
//! ```text
//! # Section 1.2                       a remark, or the source of the next lines
//! ---                                 everything is reset: names and parameters
//! @ bf-error-rate 0.02                a parameter is set
//! > BF.MADD seen a "two words" \x00   a request; quotes, and escapes as in Rust, where a word needs them
//! 2 *3 :1*3                           its reply in RESP2: tokens separated by blanks
//! 3 *3 #t*3                           its reply in RESP3
//! > BF.RESERVE seen 0.01 100
//! = -"ERR item exists"                the same in both
//! ```
//!
//! | token | bytes |
//! |---|---|
//! | `*2` `%2` `:7` `#t` `_` `$-1` `+OK` `,0.5` | unchanged, followed by a line end |
//! | `+"two words"` `-"ERR bad"` | a line with blanks |
//! | `"bytes"` | a bulk string, preceded by its length |
//! | `:1*9` `#t*9` | nine of them |
//!
//! In requests, `{0..99}` is a hundred words: the numbers from 0 to 99.

use std::fmt;

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line number in the file, counted from 1.
    pub line: usize,
    /// The last remark before it.
    pub remark: String,
    /// The action.
    pub action: Action,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reset everything.
    Forget,
    /// Set a parameter.
    Set {
        /// Which.
        name: String,
        /// The value.
        value: String,
    },
    /// Send a request and check the reply.
    Ask {
        /// The words of the request.
        words: Vec<Vec<u8>>,
        /// The bytes of the reply in RESP2.
        resp2: Vec<u8>,
        /// The bytes of the reply in RESP3.
        resp3: Vec<u8>,
    },
}

/// Why a script could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The line number, counted from 1.
    pub line: usize,
    /// The error.
    pub what: &'static str,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ScriptError {}

/// Parses the steps of a script.
///
/// # Errors
/// [`ScriptError`] with the invalid line; a request without both replies is invalid.
pub fn parse(text: &str) -> Result<Vec<Step>, ScriptError> {
    let mut steps = Vec::new();
    let mut remark = String::new();
    let mut asked: Option<Asked> = None;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let error = |what| ScriptError { line: line_number, what };
        let (mark, rest) = line.split_at_checked(1).unwrap_or(("", ""));
        let rest = rest.trim();
        if !matches!(mark, "2" | "3" | "=") {
            finish(asked.take(), &remark, &mut steps)?;
        }
        match mark {
            "" => {}
            "#" => remark = rest.to_owned(),
            "-" if line.trim() == "---" => {
                steps.push(Step { line: line_number, remark: remark.clone(), action: Action::Forget });
            }
            "@" => {
                let (name, value) = rest.split_once(' ').ok_or_else(|| error("a parameter needs a value"))?;
                let action = Action::Set { name: name.to_owned(), value: value.trim().to_owned() };
                steps.push(Step { line: line_number, remark: remark.clone(), action });
            }
            ">" => {
                let words = words(rest).map_err(error)?;
                asked = Some(Asked { line: line_number, words, resp2: None, resp3: None });
            }
            "2" | "3" | "=" => {
                let asked = asked.as_mut().ok_or_else(|| error("a reply without a request"))?;
                let bytes = reply(rest).map_err(error)?;
                if mark != "3" {
                    asked.resp2 = Some(bytes.clone());
                }
                if mark != "2" {
                    asked.resp3 = Some(bytes);
                }
            }
            _ => return Err(error("a line must begin with #, ---, @, >, 2, 3 or =")),
        }
    }
    finish(asked, &remark, &mut steps)?;
    Ok(steps)
}

struct Asked {
    line: usize,
    words: Vec<Vec<u8>>,
    resp2: Option<Vec<u8>>,
    resp3: Option<Vec<u8>>,
}

fn finish(asked: Option<Asked>, remark: &str, steps: &mut Vec<Step>) -> Result<(), ScriptError> {
    let Some(Asked { line, words, resp2, resp3 }) = asked else { return Ok(()) };
    let (Some(resp2), Some(resp3)) = (resp2, resp3) else {
        return Err(ScriptError { line, what: "a request needs a reply in both protocols" });
    };
    steps.push(Step { line, remark: remark.to_owned(), action: Action::Ask { words, resp2, resp3 } });
    Ok(())
}

/// A piece of a line: the text before the quotes, then the text inside the quotes, if there are any.
struct Piece {
    plain: Vec<u8>,
    quoted: Option<Vec<u8>>,
    /// The text after the quotes.
    behind: Vec<u8>,
}

fn pieces(line: &str) -> Result<Vec<Piece>, &'static str> {
    let mut pieces = Vec::new();
    let mut bytes = line.bytes().peekable();
    while bytes.peek().is_some() {
        if bytes.next_if_eq(&b' ').is_some() {
            continue;
        }
        let mut piece = Piece { plain: Vec::new(), quoted: None, behind: Vec::new() };
        let mut inside = false;
        while let Some(&byte) = bytes.peek() {
            if byte == b' ' && !inside {
                break;
            }
            bytes.next();
            if byte == b'"' {
                inside = !inside;
                piece.quoted.get_or_insert_default();
                continue;
            }
            let byte = if byte == b'\\' { escaped(&mut bytes)? } else { byte };
            match (&mut piece.quoted, inside) {
                (Some(quoted), true) => quoted.push(byte),
                (Some(_), false) => piece.behind.push(byte),
                (None, _) => piece.plain.push(byte),
            }
        }
        if inside {
            return Err("a quote is not closed");
        }
        pieces.push(piece);
    }
    Ok(pieces)
}

fn escaped(bytes: &mut impl Iterator<Item = u8>) -> Result<u8, &'static str> {
    const UNKNOWN: &str = "an escape must be one of \\\\ \\\" \\n \\r \\xNN";
    match bytes.next().ok_or(UNKNOWN)? {
        b'n' => Ok(b'\n'),
        b'r' => Ok(b'\r'),
        byte @ (b'\\' | b'"') => Ok(byte),
        b'x' => {
            let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16)).ok_or(UNKNOWN);
            let (high, low) = (digit()?, digit()?);
            Ok((high << 4 | low) as u8)
        }
        _ => Err(UNKNOWN),
    }
}

fn words(line: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut words = Vec::new();
    for piece in pieces(line)? {
        let text = String::from_utf8_lossy(&piece.plain);
        let range = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        if let Some((from, to)) = range.and_then(|range| range.split_once("..")) {
            let number = |text: &str| text.parse::<u32>().map_err(|_| "a range needs two numbers");
            words.extend((number(from)?..=number(to)?).map(|number| number.to_string().into_bytes()));
        } else {
            words.push([piece.plain, piece.quoted.unwrap_or_default(), piece.behind].concat());
        }
    }
    match words.is_empty() {
        true => Err("a request needs a word"),
        false => Ok(words),
    }
}

fn reply(line: &str) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::new();
    for Piece { plain, quoted, behind } in pieces(line)? {
        match (&plain[..], quoted) {
            ([], Some(bulk)) if behind.is_empty() => {
                out.extend_from_slice(format!("${}\r\n", bulk.len()).as_bytes());
                out.extend_from_slice(&bulk);
                out.extend_from_slice(b"\r\n");
            }
            ([b'+' | b'-'], Some(text)) if behind.is_empty() => {
                out.extend_from_slice(&plain);
                out.extend_from_slice(&text);
                out.extend_from_slice(b"\r\n");
            }
            ([mark, ..], None) => {
                let text = String::from_utf8_lossy(&plain).into_owned();
                let times = text[1..].split_once('*').filter(|_| matches!(mark, b':' | b'#'));
                let (token, times) = match times {
                    Some((token, times)) => {
                        let times: usize =
                            times.parse().map_err(|_| "a token must be repeated a number of times")?;
                        (format!("{}{token}", char::from(*mark)), times)
                    }
                    None => (text, 1),
                };
                (0..times).for_each(|_| out.extend_from_slice(format!("{token}\r\n").as_bytes()));
            }
            _ => return Err("a token must be a mark and a text, or a text in quotes"),
        }
    }
    match out.is_empty() {
        true => Err("a reply needs a token"),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_line_by_line() {
        let steps = parse(
            "# Section 1\n---\n@ bf-error-rate 0.02\n\n> BF.MADD k {8..10} \"two words\" \\x00\\xff\n2 *3 :1*2 -\"ERR full\"\n3 *3 #t*2 -\"ERR full\"\n> X\n= \"a\\\"b\" _ $-1 +OK \"\"\n",
        )
        .unwrap();
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [2, 3, 5, 8]);
        assert_eq!(steps[0], Step { line: 2, remark: "Section 1".into(), action: Action::Forget });
        let Action::Ask { words, resp2, resp3 } = &steps[2].action else { panic!("{:?}", steps[2]) };
        let expected: [&[u8]; 7] = [b"BF.MADD", b"k", b"8", b"9", b"10", b"two words", b"\x00\xff"];
        assert_eq!(words, &expected);
        assert_eq!(resp2, b"*3\r\n:1\r\n:1\r\n-ERR full\r\n");
        assert_eq!(resp3, b"*3\r\n#t\r\n#t\r\n-ERR full\r\n");
        let Action::Ask { resp2, resp3, .. } = &steps[3].action else { panic!("{:?}", steps[3]) };
        assert_eq!(resp2, b"$3\r\na\"b\r\n_\r\n$-1\r\n+OK\r\n$0\r\n\r\n");
        assert_eq!(resp2, resp3);
    }

    #[test]
    fn an_invalid_line_is_an_error_with_its_number() {
        for (text, line) in [
            ("> A\n2 :1\n", 1),
            ("2 :1", 1),
            ("\n> \"open", 2),
            ("> A\n= \\q", 2),
            ("> A\n= ", 2),
            ("?", 1),
            ("> ", 1),
            ("> A\n= \"a\"b", 2),
            ("@ only", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
