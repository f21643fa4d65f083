//! Requests generated from the syntax lines of the command table, so that new commands are tested automatically.

use mayhap_command::Command;
use mayhap_command::syntax::{Argument, Kind, arguments};

/// A word of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// A literal word.
    Token(String),
    /// A name of the keyspace.
    Name,
    /// A value, with its name in the syntax line.
    Value(String),
}

/// Returns the possible arguments of a command: the required ones alone, each option alone, each choice, and all options together.
#[must_use]
pub fn shapes(command: &Command) -> Vec<Vec<Word>> {
    // The text after a semicolon explains the text before it.
    let (syntax, rest) = command.syntax.split_once(';').unwrap_or((command.syntax, ""));
    let mut shapes = sequence(&arguments(syntax));
    // The options of BEGIN are listed after it.
    if let Some((_, options)) = rest.split_once(": ") {
        for options in sequence(&arguments(options)) {
            let mut shape = vec![Word::Name, Word::Token("BEGIN".to_owned())];
            shape.extend(options);
            shapes.push(shape);
        }
        for word in ["BEGIN", "ADD", "COMMIT", "ABORT", "INFO"] {
            shapes.push(vec![Word::Name, Word::Token(word.to_owned()), Word::Value("item".to_owned())]);
        }
    }
    for words in SUBCOMMANDS {
        let mut words = words.split(' ');
        if words.next() == Some(command.name) {
            shapes.push(words.map(of_line).collect());
        }
    }
    shapes.sort_by_key(Vec::len);
    shapes.dedup();
    shapes
}

/// Requests that are missing from the syntax lines of container commands; `#` is a value.
const SUBCOMMANDS: [&str; 34] = [
    "client setname #",
    "client setinfo lib-name #",
    "client list type #",
    "client list id #",
    "client no-evict #",
    "client no-touch #",
    "client tracking #",
    "client reply #",
    "client getname",
    "client info",
    "config get #",
    "config set bf-error-rate #",
    "config set bf-initial-size #",
    "config set bf-expansion-factor #",
    "config set cf-initial-size #",
    "config set cf-bucket-size #",
    "config set cf-max-iterations #",
    "config set cf-expansion-factor #",
    "config set slowlog-log-slower-than #",
    "config set slowlog-max-len #",
    "slowlog get #",
    "slowlog len",
    "latency history #",
    "latency graph #",
    "latency latest",
    "command info #",
    "command docs #",
    "command getkeys #",
    "command list filterby pattern #",
    "cluster keyslot #",
    "cluster getkeysinslot # #",
    "cluster countkeysinslot #",
    "memory usage # samples #",
    "object freq #",
];

fn of_line(word: &str) -> Word {
    match word {
        "#" => Word::Value("value".to_owned()),
        word => Word::Token(word.to_owned()),
    }
}

/// The values of one argument; the first is the simplest.
fn alternatives(argument: &Argument) -> Vec<Vec<Word>> {
    let token = argument.token.iter().map(|token| Word::Token(token.clone()));
    let mut ways: Vec<Vec<Word>> = match argument.kind {
        Kind::PureToken => vec![token.collect()],
        Kind::Key => vec![token.chain([Word::Name]).collect()],
        Kind::OneOf => argument.arguments.iter().flat_map(alternatives).collect(),
        Kind::Block => sequence(&argument.arguments),
        Kind::String | Kind::Integer | Kind::Double => {
            vec![token.chain([Word::Value(argument.name.clone())]).collect()]
        }
    };
    if argument.multiple
        && let Some(first) = ways.first().cloned()
    {
        let behind_token = first.iter().filter(|word| !matches!(word, Word::Token(_))).cloned();
        ways.push(first.iter().cloned().chain(behind_token).collect());
    }
    if argument.optional {
        ways.insert(0, Vec::new());
    }
    ways
}

fn sequence(arguments: &[Argument]) -> Vec<Vec<Word>> {
    let ways: Vec<Vec<Vec<Word>>> = arguments.iter().map(alternatives).collect();
    let with = |changed: usize, way: &[Word]| -> Vec<Word> {
        let plain = |at: usize| ways[at].first().map_or(&[][..], Vec::as_slice);
        (0..ways.len()).flat_map(|at| if at == changed { way } else { plain(at) }).cloned().collect()
    };
    let mut shapes = vec![with(usize::MAX, &[])];
    for (at, ways) in ways.iter().enumerate() {
        shapes.extend(ways.iter().skip(1).map(|way| with(at, way)));
    }
    shapes.push(
        ways.iter()
            .flat_map(|ways| ways.iter().find(|way| !way.is_empty()).into_iter().flatten())
            .cloned()
            .collect(),
    );
    shapes
}

/// Returns a value that is valid for an argument of this name, in most places.
#[must_use]
pub fn sensible(name: &str) -> &'static [u8] {
    match name {
        "error_rate" | "error" | "p" | "fpr" | "rate" => b"0.01",
        "ratio" => b"0.5",
        "kind" => b"bloom",
        "capacity" => b"100",
        "bytes" => b"100000",
        "item" | "message" => b"a",
        "encoding" => b"u8",
        "pattern" => b"*",
        "cursor" | "iterator" | "offset" | "start" | "index" | "low" | "ttl" => b"0",
        "hex" => b"000102030405060708090a0b0c0d0e0f",
        "n,n,..." => b"10,100",
        "seconds" | "milliseconds" | "unix-time-seconds" | "unix-time-milliseconds" => b"100000000000",
        _ => b"1",
    }
}

/// Whole numbers around which sizes wrap, and words that are not numbers.
pub const INTEGERS: [&str; 17] = [
    "0",
    "-1",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "100000000000000",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-2147483649",
    "00",
    "0x10",
    "1,1",
    "99999999999999999999999999999999",
];

/// Fractions that are invalid, too small or too large.
pub const FRACTIONS: [&str; 18] = [
    "nan",
    "-nan",
    "inf",
    "-inf",
    "infinity",
    "-0",
    "-0.0",
    "1e-300",
    "1e-310",
    "5e-324",
    "1e400",
    "-1e400",
    "1e308",
    "0.9999999999999999",
    "1e-17",
    "1e18",
    "0x1p-3",
    "50%",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(line: &str) -> Vec<String> {
        let command = mayhap_command::table::find(line.as_bytes()).unwrap();
        let word = |word: &Word| match word {
            Word::Token(token) => token.clone(),
            Word::Name => "NAME".to_owned(),
            Word::Value(value) => value.clone(),
        };
        shapes(command).iter().map(|shape| shape.iter().map(word).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn every_option_of_a_command_is_tried() {
        let reserve = drawn("bf.reserve");
        assert!(reserve.contains(&"NAME error_rate capacity".to_owned()), "{reserve:?}");
        assert!(reserve.contains(&"NAME error_rate capacity EXPANSION expansion".to_owned()));
        assert!(reserve.contains(&"NAME error_rate capacity EXPANSION expansion NONSCALING".to_owned()));
        let expire = drawn("expire");
        assert!(expire.contains(&"NAME seconds GT".to_owned()), "{expire:?}");
        assert!(drawn("mf.build").contains(&"NAME BEGIN CAPACITY n".to_owned()), "{:?}", drawn("mf.build"));
        assert!(drawn("bf.madd").contains(&"NAME item item".to_owned()));
    }
}
