//! Data that clients may load: `RESTORE`, `BF.LOADCHUNK`, `CF.LOADCHUNK`, `MF.LOAD`. Accepted data must keep its guarantees.

use std::sync::LazyLock;

use mayhap_command::{Reply, parameters};
use mayhap_engine::Engine;

use crate::input::Input;
use crate::mutate::{FRACTIONS, Field, ModuleValue, NUMBERS};
use crate::test_engine::{ask, ask_line, engine, is_refused};
use crate::{exercise, seal};

/// Requests that create the values to be mutated; `config` lines before them set a parameter.
pub const MAKERS: [&[&str]; 14] = [
    &["bf.reserve v 0.01 100", "bf.madd v a b c"],
    &["bf.reserve v 0.1 2 expansion 1", "bf.madd v a b c d e f g h i j"],
    &["bf.reserve v 0.5 8 nonscaling", "bf.madd v a b c"],
    &["cf.reserve v 16", "cf.insert v items a b c"],
    &["cf.reserve v 4 bucketsize 1 expansion 2", "cf.insert v items a b c d e f g h i j k l m n o p"],
    &["cf.reserve v 8 bucketsize 4 maxiterations 1 expansion 0", "cf.insert v items a a a a"],
    &["bf.reserve v 0.001 1000"],
    &["mf.reserve v capacity 100", "mf.madd v a b c"],
    &["mf.reserve v kind cuckoo capacity 50 fpr 0.1", "mf.madd v a b c"],
    &[
        "mf.reserve v kind scalable capacity 2",
        "mf.madd v a b c d e f g h i j k l m n o p q r s t u v w x y z",
    ],
    &["mf.reserve v kind window window 20 fpr 0.1", "mf.madd v a b c"],
    &["mf.reserve v kind quotient capacity 20 fpr 0.1", "mf.madd v a b c"],
    &["config bf-hash keyed", "bf.reserve v 0.1 2 expansion 1", "bf.madd v a b c d e f g h i j"],
    &["config cf-hash keyed", "cf.reserve v 4 bucketsize 1", "cf.insert v items a b c d e f g h"],
];

static VALUES: LazyLock<Vec<ModuleValue>> =
    LazyLock::new(|| MAKERS.iter().map(|lines| made(lines)).collect());

/// Returns the decoded value that [`MAKERS`] number `number` creates.
///
/// # Panics
/// If there is no such number.
#[must_use]
pub fn value(number: usize) -> ModuleValue {
    VALUES[number].clone()
}

/// Runs the lines of a maker, which create `v`.
///
/// # Panics
/// If a line is rejected.
pub fn make(engine: &Engine, lines: &[&str]) {
    for line in lines {
        if let Some((name, value)) = line.strip_prefix("config ").and_then(|pair| pair.split_once(' ')) {
            let parameter = parameters::find(name.as_bytes()).expect("a parameter");
            engine.set_parameters(|now| (parameter.set)(now, value.as_bytes()).expect("a valid value"));
        } else {
            assert!(!is_refused(&ask_line(engine, line)), "{line}");
        }
    }
}

fn made(lines: &[&str]) -> ModuleValue {
    let (engine, _) = engine();
    make(&engine, lines);
    match ask(&engine, &[b"dump", b"v"]) {
        Some(Reply::Bulk(payload)) => ModuleValue::of_dump(&payload).expect("a payload of a module"),
        other => panic!("not a dump: {other:?}"),
    }
}

/// Runs the target. The first byte chooses how the rest is loaded.
///
/// # Panics
/// If a guarantee is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (engine, clock) = engine();
    match input.below(5) {
        0 => restore(&engine, input.rest()),
        1 => chunks(&engine, b"bf.loadchunk", &mut input),
        2 => chunks(&engine, b"cf.loadchunk", &mut input),
        3 => {
            let mut bytes = input.rest().to_vec();
            seal::mayhap(&mut bytes);
            ask(&engine, &[b"mf.load", b"v", b"0", &bytes]);
        }
        _ => restore(&engine, &changed(&mut input).to_bytes()),
    }
    exercise::all(&engine, b"v");
    clock.advance(100_000);
    exercise::all(&engine, b"v");
}

fn restore(engine: &Engine, value: &[u8]) {
    ask(engine, &[b"restore", b"v", b"0", &seal::redis_payload(value)]);
}

/// A value with some fields changed.
fn changed(input: &mut Input<'_>) -> ModuleValue {
    let mut value = input.of(&VALUES).clone();
    for _ in 0..8 {
        if input.is_empty() || value.fields.is_empty() {
            break;
        }
        let at = input.below(value.fields.len());
        let how = input.byte();
        match (&mut value.fields[at], how) {
            (_, 250) => drop(value.fields.remove(at)),
            (_, 251) => value.id = value.id & !0x3ff | u64::from(input.byte() & 7),
            (Field::Unsigned(number), 0..128) => *number = NUMBERS[usize::from(how) % NUMBERS.len()],
            (Field::Unsigned(number), _) => {
                *number = input.take(8).iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
            }
            (Field::Double(number), 0..128) => *number = FRACTIONS[usize::from(how) % FRACTIONS.len()],
            (Field::Double(number), _) => {
                let bits = input.take(8).iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
                *number = f64::from_bits(bits);
            }
            (Field::String(bytes), 0..64) => bytes.resize(usize::from(how), 0xff),
            (Field::String(bytes), _) => *bytes = input.string().to_vec(),
        }
    }
    value
}

/// A header and its chunks, with correct or wrong iterators.
fn chunks(engine: &Engine, command: &[u8], input: &mut Input<'_>) {
    ask(engine, &[command, b"v", b"1", input.string()]);
    let mut end = 1_i64;
    for _ in 0..16 {
        if input.is_empty() {
            break;
        }
        let how = input.byte();
        let chunk = match how & 1 {
            0 => input.string().to_vec(),
            _ => vec![how; usize::from(input.byte()) * 8],
        };
        end = match how >> 1 & 3 {
            3 => input.take(8).iter().fold(0, |number, &byte| number << 8 | i64::from(byte)),
            _ => end.saturating_add(chunk.len() as i64),
        };
        ask(engine, &[command, b"v", end.to_string().as_bytes(), &chunk]);
        if how & 0x80 != 0 {
            exercise::all(engine, b"v");
        }
    }
}
