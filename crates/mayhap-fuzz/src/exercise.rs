//! Uses every loaded value: describes, queries, adds, removes, dumps and reloads it. It must keep its guarantees.

use mayhap_command::Reply;
use mayhap_engine::Engine;

use crate::test_engine::{ALL_BYTES, ask, is_refused};

/// The items that are added to every filter.
const ITEMS: [&[u8]; 4] = [b"", b"a", b"user:7", b"\xff\x00\r\n"];
/// The largest number of pieces read from one dump; values loaded here have fewer.
const MOST_PIECES: usize = 4_096;

fn run(engine: &Engine, words: &[&[u8]]) -> Reply {
    let name = || words[0].escape_ascii().to_string();
    ask(engine, words).unwrap_or_else(|| panic!("{} is a request of the engine", name()))
}

/// Does everything with `name` that a client can do, and returns the type of its value; `None` if it does not exist.
///
/// # Panics
/// If a guarantee is broken.
pub fn all(engine: &Engine, name: &[u8]) -> Option<String> {
    let kind = match run(engine, &[b"type", name]) {
        Reply::Simple(kind) => kind.into_owned(),
        other => panic!("not a type: {other:?}"),
    };
    for line in ["memory usage", "object encoding", "object idletime", "pttl", "strlen", "mf.info", "mf.card"]
    {
        let mut words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        words.push(name);
        run(engine, &words);
    }
    match kind.as_str() {
        "none" => return None,
        "MBbloom--" | "mayhapBF-" => bloom(engine, name),
        "MBbloomCF" | "mayhapCF-" => cuckoo(engine, name),
        "string" => {
            run(engine, &[b"get", name]);
            dump_and_restore(engine, name);
        }
        _ => mayhap(engine, name),
    }
    assert!(engine.budget().used() <= 2 * ALL_BYTES, "{} bytes in use", engine.budget().used());
    Some(kind)
}

fn bloom(engine: &Engine, name: &[u8]) {
    for command in [&b"bf.info"[..], b"bf.card", b"bf.debug"] {
        run(engine, &[command, name]);
    }
    pieces(engine, name, b"bf.scandump", b"bf.loadchunk", 1);
    for item in ITEMS {
        run(engine, &[b"bf.exists", name, item]);
        let added = run(engine, &[b"bf.add", name, item]);
        if !is_refused(&added) {
            assert_eq!(run(engine, &[b"bf.exists", name, item]), Reply::Boolean(true), "{item:?} was added");
        }
    }
    run(engine, &[b"bf.madd", name, b"b", b"c", b"d"]);
    run(engine, &[b"bf.insert", name, b"capacity", b"10", b"items", b"e"]);
    dump_and_restore(engine, name);
}

fn cuckoo(engine: &Engine, name: &[u8]) {
    for command in [&b"cf.info"[..], b"cf.debug"] {
        run(engine, &[command, name]);
    }
    pieces(engine, name, b"cf.scandump", b"cf.loadchunk", 1);
    for item in ITEMS {
        run(engine, &[b"cf.count", name, item]);
        let added = run(engine, &[b"cf.add", name, item]);
        if !is_refused(&added) {
            assert_eq!(run(engine, &[b"cf.exists", name, item]), Reply::Boolean(true), "{item:?} was added");
            assert!(matches!(run(engine, &[b"cf.count", name, item]), Reply::Integer(1..)), "{item:?}");
        }
    }
    run(engine, &[b"cf.compact", name]);
    run(engine, &[b"cf.addnx", name, b"b"]);
    run(engine, &[b"cf.insert", name, b"items", b"c", b"c", b"c"]);
    run(engine, &[b"cf.del", name, b"never added, perhaps"]);
    dump_and_restore(engine, name);
}

fn mayhap(engine: &Engine, name: &[u8]) {
    pieces(engine, name, b"mf.dump", b"mf.load", 0);
    let kind = match run(engine, &[b"mf.info", name, b"kind"]) {
        Reply::Bulk(kind) => String::from_utf8_lossy(&kind).into_owned(),
        _ => String::new(),
    };
    for item in ITEMS {
        run(engine, &[b"mf.exists", name, item]);
        run(engine, &[b"mf.explain", name, item]);
        run(engine, &[b"mf.count", name, item]);
        let added = run(engine, &[b"mf.add", name, item]);
        // Except for the one kind whose `no` is not certain; see `DualBloom`.
        if !is_refused(&added) && !kind.contains("dual") {
            assert_eq!(run(engine, &[b"mf.exists", name, item]), Reply::Boolean(true), "{kind}: {item:?}");
        }
    }
    dump_and_restore(engine, name);
    run(engine, &[b"mf.del", name, b"a"]);
    run(engine, &[b"mf.merge", name, name]);
    run(engine, &[b"mf.merge", b"{copy of mf}", name]);
    run(engine, &[b"copy", name, b"{other}", b"replace"]);
    run(engine, &[b"mf.merge", name, b"{other}"]);
    run(engine, &[b"mf.clear", name]);
    run(engine, &[b"mf.madd", name, b"b", b"c", b"7"]);
    run(engine, &[b"del", b"{copy of mf}", b"{other}"]);
}

/// Reads all pieces of a dump and loads them under another name, which must then hold the same value.
fn pieces(engine: &Engine, name: &[u8], dump: &[u8], load: &[u8], before: i64) {
    const COPY: &[u8] = b"{loaded again}";
    run(engine, &[b"del", COPY]);
    let mut iterator = 0;
    let (mut loaded, mut refused) = (0, false);
    for _ in 0..MOST_PIECES {
        let asked = iterator.to_string();
        let Reply::Array(parts) = run(engine, &[dump, name, asked.as_bytes()]) else { return };
        let (next, piece) = match &parts[..] {
            [Reply::Integer(next), Reply::Bulk(piece)] => (next, piece),
            [Reply::Integer(0), Reply::Null] => break,
            _ => panic!("not a piece: {parts:?}"),
        };
        if *next == 0 && piece.is_empty() {
            break;
        }
        // SCANDUMP returns the iterator for loading the piece; for MF.DUMP it is the one in the request.
        let with = if before == 1 { next.to_string() } else { asked };
        refused |= is_refused(&run(engine, &[load, COPY, with.as_bytes(), piece]));
        loaded += 1;
        iterator = *next;
        if iterator == 0 {
            break;
        }
    }
    // A copy that does not fit into memory next to the original is rejected; any other must be equal.
    if loaded > 0 && !refused && before == 1 {
        let (one, other) = (run(engine, &[b"dump", name]), run(engine, &[b"dump", COPY]));
        assert!(one == other, "a filter loaded in pieces differs");
    }
    run(engine, &[b"del", COPY]);
}

fn dump_and_restore(engine: &Engine, name: &[u8]) {
    const COPY: &[u8] = b"{restored}";
    let Reply::Bulk(payload) = run(engine, &[b"dump", name]) else { return };
    let restored = run(engine, &[b"restore", COPY, b"0", &payload, b"replace"]);
    if !is_refused(&restored) {
        assert!(run(engine, &[b"dump", COPY]) == Reply::Bulk(payload), "a restored filter differs");
    }
    run(engine, &[b"del", COPY]);
}
