//! `CF.*`.

use super::{Case, Flow};
use crate::host::Wire;

pub(super) const CASES: &[Case] = &[
    Case { name: "CF grows at the same items", run: growth },
    Case { name: "CF stops growing at the maximum of expansions", run: most_expansions },
    Case { name: "CF adds, counts and deletes copies", run: copies },
    Case { name: "CF.ADDNX and CF.INSERTNX add only new items", run: new_only },
    Case { name: "CF without expansion becomes full", run: full },
    Case { name: "CF deletes, and compacts by itself", run: deletions },
    Case { name: "CF.COMPACT removes sub-filters and loses no item", run: compact },
    Case { name: "CF.INFO has its fields in order, and exact sizes", run: fields_and_sizes },
    Case { name: "CF.SCANDUMP and CF.LOADCHUNK make the same filter", run: chunks_make_the_same_filter },
    Case { name: "CF.LOADCHUNK rejects damaged headers", run: damaged_headers },
    Case { name: "CF survives DUMP, RESTORE and a reload", run: reload },
    Case { name: "CF on missing names and names of another type", run: names },
];

/// Numbers pinned by RedisBloom's own tests: another hash, or another order of moves, gives other numbers.
fn growth(flow: &mut Flow) {
    for (reserve, filters) in [
        ("64 BUCKETSIZE 1", 18),
        ("64 BUCKETSIZE 2", 17),
        ("256 BUCKETSIZE 4 MAXITERATIONS 500", 4),
        ("64 EXPANSION 1", 17),
        ("64 EXPANSION 2", 5),
        ("64 EXPANSION 4", 3),
    ] {
        flow.ok(&format!("CF.RESERVE cf {reserve}"));
        for item in 0..1_000 {
            let added = flow.ask(&format!("CF.ADD cf {item}"));
            assert!(flow.yes(&added), "{reserve}: {item}");
        }
        assert_eq!(flow.number("CF.INFO cf", "Number of filters"), filters, "{reserve}");
        assert_eq!(flow.number("CF.INFO cf", "Number of items inserted"), 1_000);
        assert_eq!(flow.count_yes("CF.MEXISTS cf", 0..1_000), 1_000, "{reserve}");
        flow.ask("DEL cf");
    }
}

fn most_expansions(flow: &mut Flow) {
    flow.ok("CF.RESERVE cf 4");
    for item in 0..124 {
        let added = flow.ask(&format!("CF.ADD cf {item}"));
        assert!(flow.yes(&added), "{item}");
    }
    for line in ["CF.ADD cf 124", "CF.ADDNX cf 124", "CF.INSERT cf ITEMS 124", "CF.INSERTNX cf ITEMS 124"] {
        flow.refused(line, "Maximum expansions reached");
    }
    assert_eq!(flow.number("CF.INFO cf", "Number of filters"), 32);
    // The limit is checked once per request, before the first of its items.
    flow.ok("CF.RESERVE many 4");
    assert_eq!(flow.count_yes("CF.INSERT many ITEMS", 0..300), 300);
    assert!(flow.number("CF.INFO many", "Number of filters") > 32);
    flow.refused("CF.ADD many x", "Maximum expansions reached");
}

fn copies(flow: &mut Flow) {
    flow.ok("CF.RESERVE cf 1000");
    assert_eq!(flow.ask("CF.COUNT cf x").integer(), 0);
    // This many copies fit into both buckets of one sub-filter: with more than one sub-filter, a deletion compacts.
    const COPIES: i64 = 4;
    for copy in 1..=COPIES {
        let added = flow.ask("CF.ADD cf x");
        assert!(flow.yes(&added), "never 0");
        assert_eq!(flow.ask("CF.COUNT cf x").integer(), copy);
    }
    for left in (0..COPIES).rev() {
        let deleted = flow.ask("CF.DEL cf x");
        assert!(flow.yes(&deleted));
        assert_eq!(flow.ask("CF.COUNT cf x").integer(), left);
        let held = flow.ask("CF.EXISTS cf x");
        assert_eq!(flow.yes(&held), left > 0);
    }
    let deleted = flow.ask("CF.DEL cf x");
    assert!(!flow.yes(&deleted));
    assert_eq!(flow.number("CF.INFO cf", "Number of items deleted"), COPIES);
    assert_eq!(flow.number("CF.INFO cf", "Number of items inserted"), 0);
}

fn new_only(flow: &mut Flow) {
    for (line, due) in [("CF.ADDNX cf x", true), ("CF.ADDNX cf x", false), ("CF.ADD cf x", true)] {
        let added = flow.ask(line);
        assert_eq!(flow.yes(&added), due, "{line}");
    }
    assert_eq!(flow.ask("CF.COUNT cf x").integer(), 2);
    // Integers in both protocols.
    let reply = flow.ask("CF.INSERTNX cf ITEMS x y y z");
    assert_eq!(reply, Wire::Array([0, 1, 0, 1].map(Wire::Integer).into()));
    assert_eq!(flow.count_yes("CF.INSERT cf ITEMS", 0..10), 10);
    flow.refused("CF.INSERTNX missing NOCREATE ITEMS x", "ERR not found");
    flow.refused("CF.INSERT missing NOCREATE ITEMS x", "ERR not found");
    flow.ask("CF.INSERT sized CAPACITY 5000 ITEMS x");
    assert_eq!(flow.number("CF.INFO sized", "Number of buckets"), 4_096);
}

fn full(flow: &mut Flow) {
    flow.ok("CF.RESERVE cf 16 EXPANSION 0");
    let reply = flow.with_items("CF.INSERT cf ITEMS", 0..64);
    let refused = match flow.protocol {
        2 => Wire::Integer(-1),
        _ => Wire::Boolean(false),
    };
    let fits = reply.list().iter().filter(|reply| **reply != refused).count();
    assert!((8..=16).contains(&fits) && reply.list().len() == 64, "{fits}");
    assert_eq!(flow.number("CF.INFO cf", "Number of items inserted"), fits as i64);
    assert_eq!(flow.number("CF.INFO cf", "Number of filters"), 1);
    // At least one of these does not fit either.
    let said: Vec<Wire> = (100..200).map(|item| flow.ask(&format!("CF.ADD cf {item}"))).collect();
    assert!(said.contains(&Wire::Refused("Filter is full".into())), "{said:?}");
    let reply = flow.with_items("CF.INSERTNX cf ITEMS", 200..300);
    assert!(reply.list().contains(&Wire::Integer(-1)), "an integer in both protocols");
}

fn deletions(flow: &mut Flow) {
    flow.ok("CF.RESERVE cf 64");
    assert_eq!(flow.count_yes("CF.INSERT cf ITEMS", 0..1_000), 1_000);
    for item in 0..900 {
        let deleted = flow.ask(&format!("CF.DEL cf {item}"));
        assert!(flow.yes(&deleted), "{item}");
        let (left, deleted) = (
            flow.number("CF.INFO cf", "Number of items inserted"),
            flow.number("CF.INFO cf", "Number of items deleted"),
        );
        assert_eq!(left, 999 - i64::from(item));
        // When the deletions exceed a tenth of the remaining items, it compacts and counts from 0 again.
        let tables = flow.number("CF.INFO cf", "Number of filters");
        assert!(tables == 1 || deleted * 10 <= left, "{deleted} deleted, {left} left");
        if item % 100 == 99 {
            let from = u32::try_from(item).unwrap() + 1;
            assert_eq!(flow.count_yes("CF.MEXISTS cf", from..1_000), 1_000 - from as usize);
        }
    }
    assert!(flow.number("CF.INFO cf", "Number of filters") < 17);
}

fn compact(flow: &mut Flow) {
    flow.ok("CF.RESERVE cf 64");
    flow.with_items("CF.INSERT cf ITEMS", 0..1_000);
    let before = flow.number("CF.INFO cf", "Number of filters");
    // Too few to compact by itself.
    for item in 0..80 {
        flow.ask(&format!("CF.DEL cf {item}"));
    }
    assert_eq!(flow.number("CF.INFO cf", "Number of items deleted"), 80);
    flow.ok("CF.COMPACT cf");
    assert!(flow.number("CF.INFO cf", "Number of filters") <= before);
    assert_eq!(flow.number("CF.INFO cf", "Number of items deleted"), 0);
    assert_eq!(flow.number("CF.INFO cf", "Number of items inserted"), 920);
    assert_eq!(flow.count_yes("CF.MEXISTS cf", 80..1_000), 920);
    for item in 80..1_000 {
        let deleted = flow.ask(&format!("CF.DEL cf {item}"));
        assert!(flow.yes(&deleted), "{item}");
    }
    flow.ok("CF.COMPACT cf");
    assert_eq!(flow.number("CF.INFO cf", "Number of filters"), 1);
    assert_eq!(flow.number("CF.INFO cf", "Number of items inserted"), 0);
    assert_eq!(flow.number("CF.INFO cf", "Number of items deleted"), 0);
    assert_eq!(flow.count_yes("CF.MEXISTS cf", 0..1_000), 0);
    flow.refused("CF.COMPACT missing", "Cuckoo filter was not found");
}

fn fields_and_sizes(flow: &mut Flow) {
    const NAMES: [&str; 8] = [
        "Size",
        "Number of buckets",
        "Number of filters",
        "Number of items inserted",
        "Number of items deleted",
        "Bucket size",
        "Expansion rate",
        "Max iterations",
    ];
    for (reserve, values) in [
        ("1000", [1_080, 512, 1, 0, 0, 2, 1, 20]),
        ("1000 BUCKETSIZE 3 EXPANSION 3 MAXITERATIONS 500", [1_592, 512, 1, 0, 0, 3, 4, 500]),
        ("1000000", [1_048_632, 524_288, 1, 0, 0, 2, 1, 20]),
        ("64 EXPANSION 0", [120, 32, 1, 0, 0, 2, 0, 20]),
    ] {
        flow.ok(&format!("CF.RESERVE cf {reserve}"));
        let fields = flow.fields("CF.INFO cf");
        let due: Vec<(String, Wire)> = NAMES
            .iter()
            .zip(values)
            .map(|(name, value)| ((*name).to_owned(), Wire::Integer(value)))
            .collect();
        assert_eq!(fields, due, "{reserve}");
        flow.ask("DEL cf");
    }
    // Sixteen bytes for each sub-filter, and a byte for each slot; the number of buckets is that of the first.
    flow.ok("CF.RESERVE cf 64");
    flow.with_items("CF.INSERT cf ITEMS", 0..1_000);
    let filters = flow.number("CF.INFO cf", "Number of filters");
    assert_eq!(flow.number("CF.INFO cf", "Size"), 40 + (16 + 64) * filters);
    assert_eq!(flow.number("CF.INFO cf", "Number of buckets"), 32);
}

fn chunks_make_the_same_filter(flow: &mut Flow) {
    for (reserve, items) in
        [("1000", 300), ("64", 700), ("16 EXPANSION 2", 500), ("32 BUCKETSIZE 4 EXPANSION 4", 400)]
    {
        flow.ok(&format!("CF.RESERVE cf {reserve}"));
        assert!(flow.chunks("CF.SCANDUMP", "cf").is_empty(), "an empty filter has no dump");
        flow.with_items("CF.INSERT cf ITEMS", 0..items);
        let chunks = flow.chunks("CF.SCANDUMP", "cf");
        let filters = flow.number("CF.INFO cf", "Number of filters") as usize;
        assert_eq!((chunks[0].0, chunks[0].1.len(), chunks.len()), (1, 38, 1 + filters), "{reserve}");
        for (copy, backwards) in [("copy", false), ("backwards", true)] {
            flow.load("CF.LOADCHUNK", copy, &chunks[0]);
            let mut order: Vec<_> = chunks[1..].iter().collect();
            if backwards {
                order.reverse();
            }
            order.into_iter().for_each(|chunk| flow.load("CF.LOADCHUNK", copy, chunk));
            assert_eq!(flow.ask(&format!("CF.DEBUG {copy}")), flow.ask("CF.DEBUG cf"), "{reserve}");
            assert_eq!(flow.chunks("CF.SCANDUMP", copy), chunks, "{reserve}");
            assert_eq!(flow.count_yes(&format!("CF.MEXISTS {copy}"), 0..items), items as usize);
        }
        // Both continue in the same way.
        for name in ["cf", "copy"] {
            flow.with_items(&format!("CF.INSERT {name} ITEMS"), 10_000..10_050);
            flow.ask(&format!("CF.DEL {name} 7"));
        }
        assert_eq!(flow.chunks("CF.SCANDUMP", "copy"), flow.chunks("CF.SCANDUMP", "cf"), "{reserve}");
        flow.ask("DEL cf copy backwards");
    }
    flow.ask("CF.ADD cf x");
    flow.refused("CF.SCANDUMP cf bogus", "Invalid position");
    flow.refused("CF.LOADCHUNK other bogus x", "Invalid position");
    flow.refused("CF.LOADCHUNK other 0 x", "Invalid position");
    flow.refused("CF.LOADCHUNK other 100 x", "ERR not found");
    flow.refused("CF.LOADCHUNK cf 1 x", "ERR item exists");
}

fn damaged_headers(flow: &mut Flow) {
    flow.ok("CF.RESERVE cf 64");
    flow.with_items("CF.INSERT cf ITEMS", 0..20);
    let header = flow.chunks("CF.SCANDUMP", "cf").remove(0).1;
    assert_eq!(header.len(), 38);
    let mut refuse = |bytes: &[u8], what: &str| {
        let said = flow.with_bytes("CF.LOADCHUNK damaged 1", bytes);
        // For impossible numbers RedisBloom replies with either text. We reply with the first, and with the second if memory runs out.
        let texts = ["Invalid header", "Couldn't create filter!"];
        assert!(matches!(&said, Wire::Refused(text) if texts.contains(&text.as_str())), "{what}: {said:?}");
        assert_eq!(flow.ask("EXISTS damaged").integer(), 0, "{what}");
    };
    for (at, bytes) in [
        (0, u64::MAX.to_le_bytes().to_vec()),
        (8, 0_u64.to_le_bytes().to_vec()),
        (8, 33_u64.to_le_bytes().to_vec()),
        (8, u64::MAX.to_le_bytes().to_vec()),
        (24, 0_u64.to_le_bytes().to_vec()),
        (24, u64::MAX.to_le_bytes().to_vec()),
        (32, 0_u16.to_le_bytes().to_vec()),
        (32, 256_u16.to_le_bytes().to_vec()),
        (34, 0_u16.to_le_bytes().to_vec()),
        (36, 32_769_u16.to_le_bytes().to_vec()),
    ] {
        let mut damaged = header.clone();
        damaged[at..at + bytes.len()].copy_from_slice(&bytes);
        refuse(&damaged, &format!("{bytes:?} at byte {at}"));
    }
    for length in [0, 1, 37] {
        refuse(&header[..length], &format!("{length} bytes"));
    }
    refuse(&[&header[..], &[0]].concat(), "one extra byte");
}

fn reload(flow: &mut Flow) {
    for (name, reserve) in [("a", "1000"), ("b", "64 BUCKETSIZE 4 EXPANSION 2"), ("c", "2000 EXPANSION 0")] {
        flow.ok(&format!("CF.RESERVE {name} {reserve}"));
        flow.with_items(&format!("CF.INSERT {name} ITEMS"), 0..400);
        flow.ask(&format!("CF.DEL {name} 3"));
        let before = (flow.ask(&format!("CF.DEBUG {name}")), flow.chunks("CF.SCANDUMP", name));
        flow.reload(name);
        assert_eq!((flow.ask(&format!("CF.DEBUG {name}")), flow.chunks("CF.SCANDUMP", name)), before);
        assert_eq!(flow.count_yes(&format!("CF.MEXISTS {name}"), 4..400), 396);
    }
    assert_eq!(flow.ask("TYPE a"), Wire::Simple("MBbloomCF".into()));
    // An empty filter has no chunks, but it has a payload.
    flow.ok("CF.RESERVE empty 64");
    flow.reload("empty");
    assert_eq!(flow.number("CF.INFO empty", "Number of buckets"), 32);
}

fn names(flow: &mut Flow) {
    flow.ok("SET text x");
    flow.ok("CF.RESERVE cf 64");
    flow.refused("CF.RESERVE cf 64", "ERR item exists");
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for line in ["CF.RESERVE text 64", "CF.ADD text x", "CF.INSERT text ITEMS x", "CF.INFO text"] {
        flow.refused(line, wrong);
    }
    for name in ["text", "missing"] {
        flow.refused(&format!("CF.DEL {name} x"), "Not found");
        flow.refused(&format!("CF.COMPACT {name}"), "Cuckoo filter was not found");
        assert_eq!(flow.ask(&format!("CF.COUNT {name} x")).integer(), 0);
        assert_eq!(flow.count_yes(&format!("CF.MEXISTS {name}"), 0..3), 0);
    }
    flow.refused("CF.INFO missing", "ERR not found");
    flow.refused("CF.SCANDUMP missing 0", "ERR not found");
}
