//! JSON lines: the value at a path in each line.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::item::Found;

/// The path to a value: names of fields, and indexes of elements counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    steps: Vec<Step>,
    written: String,
}

/// One step into an object or an array.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    /// The name as an index, if it is a number.
    index: Option<usize>,
}

/// Parses `user.id`, `tags.0`, `a\.b.c` for a field `a.b`, or `.` for the whole line. A leading dot is allowed.
impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let written = text.to_owned();
        if text == "." {
            return Ok(Self { steps: Vec::new(), written });
        }
        let mut names = vec![String::new()];
        let mut letters = text.strip_prefix('.').unwrap_or(text).chars();
        while let Some(letter) = letters.next() {
            match (letter, names.last_mut()) {
                ('.', _) => names.push(String::new()),
                ('\\', Some(name)) => name.push(letters.next().unwrap_or('\\')),
                (letter, Some(name)) => name.push(letter),
                (_, None) => {}
            }
        }
        if names.iter().any(String::is_empty) {
            return Err("a name in the path is empty; write for example user.id or tags.0".into());
        }
        let step = |name: String| Step { index: name.parse().ok(), name };
        Ok(Self { steps: names.into_iter().map(step).collect(), written })
    }
}

/// The path as it was given, in quotes.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

/// Finds the value at `path` in `line`: the text of a string; a number, `true` or `false` as written.
pub(super) fn find(line: &[u8], path: &Path, unescaped: &mut Vec<u8>) -> Found {
    if line.trim_ascii().is_empty() {
        return Found::Blank;
    }
    let mut json = serde_json::Deserializer::from_slice(line);
    let value = match Down(&path.steps).deserialize(&mut json).and_then(|value| json.end().map(|()| value)) {
        Ok(value) => value,
        Err(error) => return Found::Bad(not_json(&error, 0)),
    };
    let missing = |why: &str| match path.steps.is_empty() {
        true => Found::Missing(format!("the line {why}")),
        false => Found::Missing(format!("field {path} {why}")),
    };
    let Some(value) = value.map(RawValue::get) else {
        return Found::Missing(format!("no field {path}"));
    };
    match value.as_bytes() {
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => {
            let start = place(line, text);
            Found::Read(start..start + text.len())
        }
        [b'"', ..] => match serde_json::from_str::<String>(value) {
            Ok(text) => {
                let start = unescaped.len();
                unescaped.extend_from_slice(text.as_bytes());
                Found::Unescaped(start..unescaped.len())
            }
            Err(error) => Found::Bad(not_json(&error, place(line, value.as_bytes()))),
        },
        b"null" => missing("is null"),
        [b'{', ..] => missing("is an object, not a string or a number"),
        [b'[', ..] => missing("is an array, not a string or a number"),
        written => {
            let start = place(line, written);
            Found::Read(start..start + written.len())
        }
    }
}

/// The offset of `part` in `whole`, which contains it.
fn place(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

/// `invalid JSON at column 12: expected value`. `before` columns precede the text that was parsed.
fn not_json(error: &serde_json::Error, before: usize) -> String {
    let said = error.to_string();
    let what = said.split(" at line ").next().unwrap_or_default();
    let what = what.strip_prefix("EOF").map_or_else(|| what.to_owned(), |rest| format!("it ends{rest}"));
    format!("invalid JSON at column {}: {what}", before + error.column())
}

/// Parses a value and returns the value at the end of the path in it.
#[derive(Clone, Copy)]
struct Down<'path>(&'path [Step]);

impl<'de> DeserializeSeed<'de> for Down<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return <&RawValue>::deserialize(value).map(Some);
        }
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Down<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    /// If a name occurs twice, the last field counts, as in most programs.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((step, rest)) = self.0.split_first() else { return Ok(None) };
        let mut found = None;
        while let Some(is_this) = map.next_key_seed(IsNamed(&step.name))? {
            if is_this {
                found = map.next_value_seed(Down(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let Some((step, rest)) = self.0.split_first() else { return Ok(None) };
        let mut before = 0;
        while Some(before) != step.index {
            if array.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
            before += 1;
        }
        let found = array.next_element_seed(Down(rest))?.flatten();
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }

    // Other values contain nothing.

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Parses the name of a field and compares it with the wanted name.
struct IsNamed<'path>(&'path str);

impl<'de> DeserializeSeed<'de> for IsNamed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for IsNamed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use serde_json::Value;

    use super::*;
    use crate::input::drip::Random;

    /// The value found, as text.
    fn found(line: &str, path: &str) -> Result<String, Found> {
        let mut unescaped = b"before".to_vec();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        match find(line.as_bytes(), &path.parse().unwrap(), &mut unescaped) {
            Found::Read(range) => Ok(text(&line.as_bytes()[range])),
            Found::Unescaped(range) => Ok(text(&unescaped[range])),
            nothing => Err(nothing),
        }
    }

    #[test]
    fn values_are_found_as_they_are_written() {
        let line = r#" {"user":{"id":7,"name":"Zo\u00eb \"Z\" \\","tags":["a","b\n",{"x":1.50}]},"ok":true,"a.b":"dot","3":"three","e":"","n":-1e+09} "#;
        for (path, value) in [
            ("user.id", "7"),
            (".user.id", "7"),
            ("user.name", "Zoë \"Z\" \\"),
            ("user.tags.0", "a"),
            ("user.tags.1", "b\n"),
            ("user.tags.2.x", "1.50"),
            ("ok", "true"),
            (r"a\.b", "dot"),
            ("3", "three"),
            ("e", ""),
            ("n", "-1e+09"),
        ] {
            assert_eq!(found(line, path).unwrap(), value, "{path}");
        }
        assert_eq!(found("\"text\"", ".").unwrap(), "text");
        assert_eq!(found("12", ".").unwrap(), "12");
        assert_eq!(found(r#"{"a":1,"a":2}"#, "a").unwrap(), "2", "the last field counts");
    }

    #[test]
    fn absent_fields_are_missing_and_invalid_json_is_bad() {
        let missing = |what: &str| Err(Found::Missing(what.into()));
        let bad = |what: &str| Err(Found::Bad(what.into()));
        let line = r#"{"a":{"b":null,"c":[1,2],"d":5,"e":{}}}"#;
        assert_eq!(found(line, "x"), missing("no field \"x\""));
        assert_eq!(found(line, "a.x"), missing("no field \"a.x\""));
        assert_eq!(found(line, "a.d.x"), missing("no field \"a.d.x\""));
        assert_eq!(found(line, "a.c.2"), missing("no field \"a.c.2\""));
        assert_eq!(found(line, "a.c.x"), missing("no field \"a.c.x\""));
        assert_eq!(found(line, "a.b"), missing("field \"a.b\" is null"));
        assert_eq!(found(line, "a.c"), missing("field \"a.c\" is an array, not a string or a number"));
        assert_eq!(found(line, "a.e"), missing("field \"a.e\" is an object, not a string or a number"));
        assert_eq!(found("7", "a"), missing("no field \"a\""));
        assert_eq!(found("{}", "."), missing("the line is an object, not a string or a number"));
        assert_eq!(found("hello", "a"), bad("invalid JSON at column 1: expected value"));
        assert_eq!(found(r#"{"a":1"#, "a"), bad("invalid JSON at column 6: it ends while parsing an object"));
        assert_eq!(found(r#"{"a":1} 2"#, "a"), bad("invalid JSON at column 9: trailing characters"));
        assert_eq!(
            found(r#"{"a":"\ud800"}"#, "a"),
            bad("invalid JSON at column 13: unexpected end of hex escape")
        );
        assert_eq!(found(" \t\r", "a"), Err(Found::Blank));
        assert_eq!(found("", "a"), Err(Found::Blank));
    }

    #[test]
    fn invalid_utf8_in_the_field_is_bad() {
        let path = "a".parse().unwrap();
        let mut unescaped = Vec::new();
        let found = find(b"{\"a\":\"\xff\"}", &path, &mut unescaped);
        assert!(
            matches!(&found, Found::Bad(what) if what.starts_with("invalid JSON at column ")),
            "{found:?}"
        );
    }

    #[test]
    fn paths_with_empty_names_are_rejected() {
        for path in ["", "..", "a.", "a..b"] {
            assert!(path.parse::<Path>().is_err(), "{path:?}");
        }
        assert_eq!(r"a\\b\".parse::<Path>().unwrap().steps[0].name, r"a\b\");
    }

    /// Compares random values with `serde_json::Value`, which keeps everything.
    #[test]
    fn every_path_matches_a_simple_reader() {
        fn value(random: &mut Random, depth: usize) -> Value {
            match random.below(if depth == 0 { 5 } else { 7 }) {
                0 => Value::Null,
                1 => random.below(2).eq(&0).into(),
                2 => random.below(1000).into(),
                3 | 4 => String::from_utf8(random.text(&["a", "\"", "\\", "\n", "é", "😀", "/"], 5))
                    .unwrap()
                    .into(),
                5 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
                _ => (0..random.below(4))
                    .map(|_| (["a", "b", "0", "1"][random.below(4)].to_owned(), value(random, depth - 1)))
                    .collect::<serde_json::Map<_, _>>()
                    .into(),
            }
        }
        let mut random = Random(5);
        let mut there = 0;
        for _ in 0..30_000 {
            // Most values contain nothing.
            let line = iter::repeat_with(|| value(&mut random, 4))
                .find(|value| value.is_object() || value.is_array())
                .unwrap();
            let path: Vec<_> =
                (0..1 + random.below(3)).map(|_| ["a", "b", "0", "1"][random.below(4)]).collect();
            let expected = path.iter().try_fold(&line, |value, step| match value {
                Value::Object(map) => map.get(*step),
                Value::Array(array) => array.get(step.parse::<usize>().ok()?),
                _ => None,
            });
            let expected = match expected {
                Some(Value::String(text)) => Some(text.clone()),
                Some(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
                _ => None,
            };
            there += usize::from(expected.is_some());
            for written in [line.to_string(), serde_json::to_string_pretty(&line).unwrap()] {
                let found = found(&written, &path.join("."));
                assert!(!matches!(found, Err(Found::Bad(_) | Found::Blank)), "{written}: {found:?}");
                assert_eq!(found.ok(), expected, "{written} {path:?}");
            }
        }
        assert!(there > 2_000, "{there}");
    }
}
