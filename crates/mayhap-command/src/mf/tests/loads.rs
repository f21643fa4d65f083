//! Dumps and loads of valid and hostile bytes.

use super::stage::{Stage, booleans};
use crate::mf::PIECE_BYTES;
use crate::reply::Reply;

/// The pieces of a filter with their iterators.
fn pieces(stage: &mut Stage, name: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut pieces, mut iterator) = (Vec::new(), 0);
    loop {
        let Reply::Array(mut pair) = stage.run(&format!("MF.DUMP {name} {iterator}")) else { panic!() };
        let (Some(Reply::Bulk(piece)), Some(Reply::Integer(next))) = (pair.pop(), pair.pop()) else {
            panic!()
        };
        assert!(piece.len() <= PIECE_BYTES);
        pieces.push((iterator, piece));
        if next == 0 {
            return pieces;
        }
        iterator = next;
    }
}

fn load(stage: &mut Stage, name: &str, iterator: i64, piece: &[u8]) -> Reply {
    stage.run_words(&[b"MF.LOAD", name.as_bytes(), iterator.to_string().as_bytes(), piece])
}

fn large() -> Stage {
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE large KIND blocked CAPACITY 4000000"), Reply::Ok);
    let items = (0..5_000).map(|item| format!(" {item}")).collect::<String>();
    stage.run(&format!("MF.MADD large{items}"));
    stage
}

fn used(stage: &Stage) -> u64 {
    stage.budget.used()
}

#[test]
fn dump_is_consistent_and_iterators_expire() {
    let mut stage = large();
    let before = used(&stage);
    let Reply::Array(first) = stage.run("MF.DUMP large 0") else { panic!() };
    let Reply::Integer(next) = first[0] else { panic!() };
    assert!(!stage.changed && used(&stage) > before + PIECE_BYTES as u64, "the copy is kept and booked");
    stage.run("MF.ADD large added-meanwhile");
    let whole = pieces(&mut stage, "large");
    assert_eq!(used(&stage), before, "freed after the last piece");
    assert!(stage.refused(&format!("MF.DUMP large {next}")).contains("stale iterator"));

    let mut other = Stage::new();
    for (iterator, piece) in &whole {
        load(&mut other, "large", *iterator, piece);
    }
    assert_eq!(other.run("MF.EXISTS large added-meanwhile"), Reply::Boolean(true));

    // An item that is added during a dump is not in it.
    let Reply::Array(begun) = stage.run("MF.DUMP large 0") else { panic!() };
    let (Reply::Integer(held), Reply::Bulk(piece)) = (&begun[0], &begun[1]) else { panic!() };
    let (held, mut next) = (*held, *held);
    let mut other = Stage::new();
    load(&mut other, "large", 0, piece);
    stage.run("MF.ADD large too-late");
    while next != 0 {
        let Reply::Array(pair) = stage.run(&format!("MF.DUMP large {next}")) else { panic!() };
        let (Reply::Integer(after), Reply::Bulk(piece)) = (&pair[0], &pair[1]) else { panic!() };
        assert!(matches!(load(&mut other, "large", next, piece), Reply::Integer(_)));
        next = *after;
    }
    assert_eq!(booleans(&other.run("MF.MEXISTS large too-late 17")), [false, true]);
    for iterator in [held, 1, held + 1, i64::MAX] {
        assert!(stage.refused(&format!("MF.DUMP large {iterator}")).contains("stale"), "{iterator}");
    }
    for word in ["-1", "x", "18446744073709551615", ""] {
        assert!(stage.refused(&format!("MF.DUMP large {word}")).contains("not an integer"), "{word}");
    }

    // No client continues the dump for a minute.
    let Reply::Array(begun) = stage.run("MF.DUMP large 0") else { panic!() };
    let Reply::Integer(next) = begun[0] else { panic!() };
    stage.wait(60_001);
    assert!(stage.refused(&format!("MF.DUMP large {next}")).contains("stale"));
    assert_eq!(used(&stage), before);
}

#[test]
fn interrupted_load_keeps_the_old_generation_or_answers_not_ready() {
    let whole = pieces(&mut large(), "large");
    assert!(whole.len() > 3);
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE old KIND cuckoo CAPACITY 100"), Reply::Ok);
    stage.run("MF.ADD old here");
    for name in ["old", "new"] {
        load(&mut stage, name, whole[0].0, &whole[0].1);
        assert!(matches!(load(&mut stage, name, whole[1].0, &whole[1].1), Reply::Integer(1..)));
        // The same piece again, and one that skips a piece.
        for piece in [1, whole.len() - 1] {
            let Reply::Refused(why) = load(&mut stage, name, whole[piece].0, &whole[piece].1) else {
                panic!()
            };
            assert!(why.to_string().contains("out of order"), "{why}");
        }
    }
    assert_eq!(stage.run("MF.EXISTS old here"), Reply::Boolean(true));
    assert_eq!(stage.run("MF.INFO old next"), Reply::bulk("loading"));
    assert_eq!(stage.refused("MF.EXISTS new 17"), "NOTREADY the filter is being loaded");
    assert_eq!(stage.refused("MF.ADD new 17"), "NOTREADY the filter is being loaded");
    assert_eq!(stage.refused("MF.DUMP new 0"), "NOTREADY the filter is being loaded");
    assert!(stage.refused("MF.BUILD old BEGIN").contains("a load is in progress"));
    for (iterator, piece) in &whole[2..] {
        load(&mut stage, "old", *iterator, piece);
    }
    assert_eq!(booleans(&stage.run("MF.MEXISTS old 17 here")), [true, false]);
    assert_eq!(stage.run("MF.INFO old generation"), Reply::Integer(2));
    assert_eq!(stage.run("MF.BUILD new ABORT"), Reply::Ok);
    assert!(!stage.values.contains_key(&b"new"[..]));
}

#[test]
fn invalid_bytes_create_no_filter() {
    let mut stage = Stage::new();
    stage.run("MF.RESERVE small KIND quotient CAPACITY 500");
    stage.run("MF.MADD small a b c");
    let bytes = pieces(&mut stage, "small").remove(0).1;
    let before = used(&stage);

    // Every flipped bit is detected, in the header or at the end.
    for bit in (0..bytes.len() * 8).step_by(37).chain(0..192 * 8) {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let reply = load(&mut stage, "victim", 0, &damaged);
        assert!(matches!(reply, Reply::Refused(_)), "bit {bit}: {reply:?}");
        assert!(!stage.values.contains_key(&b"victim"[..]), "bit {bit}");
        let reply = load(&mut stage, "small", 0, &damaged);
        assert!(matches!(reply, Reply::Refused(_)), "bit {bit}");
    }
    assert_eq!(booleans(&stage.run("MF.MEXISTS small a b c")), [true; 3]);
    assert_eq!(used(&stage), before, "all their memory is freed");
    for cut in [0, 1, 8, 100, 191] {
        assert!(matches!(load(&mut stage, "victim", 0, &bytes[..cut]), Reply::Refused(_)), "{cut}");
    }
    // Single bytes after the header work; one byte too many does not.
    load(&mut stage, "slow", 0, &bytes[..192]);
    for at in 192..bytes.len() - 1 {
        let missing = load(&mut stage, "slow", at as i64, &bytes[at..=at]);
        assert_eq!(missing, Reply::Integer((bytes.len() - at - 1) as i64));
    }
    let Reply::Refused(why) = load(&mut stage, "slow", bytes.len() as i64 - 1, &bytes[bytes.len() - 2..])
    else {
        panic!()
    };
    assert!(why.to_string().contains("1 bytes too many"), "{why}");
    load(&mut stage, "slow", bytes.len() as i64 - 1, &bytes[bytes.len() - 1..]);
    assert_eq!(booleans(&stage.run("MF.MEXISTS slow a b c")), [true; 3]);
}

/// A header that announces a terabyte is admitted or refused. Either way only the bytes that arrived are
/// kept.
#[test]
fn declared_lengths_are_checked_before_allocation() {
    let mut stage = large();
    let first = pieces(&mut stage, "large").remove(0).1;
    let header = &first[..192];
    let mut other = Stage::new();
    load(&mut other, "huge", 0, header);
    assert!(used(&other) < 4_096, "{}", used(&other));
    other.budget.set_limit(1 << 20);
    let Reply::Refused(why) = load(&mut other, "more", 0, header) else { panic!() };
    assert!(why.to_string().starts_with("OOM "), "{why}");
    assert!(!other.values.contains_key(&b"more"[..]));
    other.budget.set_limit(0);
    other.limits.filter_bytes = 1 << 20;
    let Reply::Refused(why) = load(&mut other, "more", 0, header) else { panic!() };
    assert!(why.to_string().contains("a single filter may take 1048576"), "{why}");
}
