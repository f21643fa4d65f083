//! `BF.*`.

use super::{Case, Flow};
use crate::host::Wire;

pub(super) const CASES: &[Case] = &[
    Case { name: "BF counts and grows at the same items", run: counts_and_growth },
    Case { name: "BF finds every member while it grows", run: no_member_is_denied },
    Case { name: "BF.INFO has its fields in order, and exact sizes", run: fields_and_sizes },
    Case { name: "BF.ADD, BF.MADD and BF.INSERT make the same filter", run: three_ways_to_add },
    Case { name: "BF without scaling is full at its capacity", run: nonscaling },
    Case { name: "BF.SCANDUMP and BF.LOADCHUNK make the same filter", run: chunks_make_the_same_filter },
    Case { name: "BF.LOADCHUNK rejects damaged headers", run: damaged_headers },
    Case { name: "BF survives DUMP, RESTORE and a reload", run: reload },
    Case { name: "BF keeps its error rate", run: rate },
    Case { name: "BF.RESERVE of an existing name, and after it is deleted", run: names },
];

/// Numbers pinned by RedisBloom's own tests: another hash gives other numbers.
fn counts_and_growth(flow: &mut Flow) {
    for (name, reserve, items, counted) in [
        ("a", "0.01 10", 100, Some(99)),
        ("b", "0.001 100", 4_000, Some(3_997)),
        ("c", "0.01 4 EXPANSION 1", 100, None),
    ] {
        flow.ok(&format!("BF.RESERVE {name} {reserve}"));
        for item in 0..items {
            flow.ask(&format!("BF.ADD {name} {item}"));
        }
        if let Some(counted) = counted {
            assert_eq!(flow.ask(&format!("BF.CARD {name}")).integer(), counted);
            assert_eq!(flow.number(&format!("BF.INFO {name}"), "Number of items inserted"), counted);
        }
    }
    assert_eq!(flow.number("BF.INFO c", "Number of filters"), 23);
}

fn no_member_is_denied(flow: &mut Flow) {
    flow.ok("BF.RESERVE f 0.01 8");
    for end in (100..=2_000_u32).step_by(100) {
        flow.with_items("BF.MADD f", end - 100..end);
        assert_eq!(flow.count_yes("BF.MEXISTS f", 0..end), end as usize);
    }
    assert!(flow.number("BF.INFO f", "Number of filters") > 5);
    assert!(flow.number("BF.INFO f", "Capacity") >= flow.ask("BF.CARD f").integer());
}

fn fields_and_sizes(flow: &mut Flow) {
    const NAMES: [&str; 5] =
        ["Capacity", "Size", "Number of filters", "Number of items inserted", "Expansion rate"];
    flow.ask("BF.ADD by-default x");
    flow.ok("BF.RESERVE small 0.001 100");
    flow.ok("BF.RESERVE fixed 0.01 3 NONSCALING");
    flow.ok("BF.RESERVE large 0.01 1000000");
    for (name, capacity, size, expansion) in [
        ("by-default", 100, 240, Wire::Integer(2)),
        ("small", 100, 296, Wire::Integer(2)),
        ("fixed", 3, 104, Wire::Null),
        ("large", 1_000_000, 1_378_568, Wire::Integer(2)),
    ] {
        let fields = flow.fields(&format!("BF.INFO {name}"));
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, NAMES);
        assert_eq!((&fields[0].1, &fields[1].1), (&Wire::Integer(capacity), &Wire::Integer(size)), "{name}");
        assert_eq!(fields[4].1, expansion, "{name}");
        for (word, (long, value)) in ["CAPACITY", "size", "Filters", "ITEMS", "expansion"].iter().zip(fields)
        {
            let due = match flow.protocol {
                2 => Wire::Array(vec![value]),
                _ => Wire::Map(vec![(Wire::Simple(long), value)]),
            };
            assert_eq!(flow.ask(&format!("BF.INFO {name} {word}")), due);
        }
    }
}

fn three_ways_to_add(flow: &mut Flow) {
    for name in ["one", "many", "insert"] {
        flow.ok(&format!("BF.RESERVE {name} 0.01 20"));
    }
    for item in 0..300 {
        flow.ask(&format!("BF.ADD one {item}"));
    }
    flow.with_items("BF.MADD many", 0..300);
    flow.with_items("BF.INSERT insert CAPACITY 7 ERROR 0.5 ITEMS", 0..300);
    let due = flow.ask("BF.DEBUG one");
    assert_eq!(flow.ask("BF.DEBUG many"), due);
    assert_eq!(flow.ask("BF.DEBUG insert"), due, "the options for an existing filter are ignored");
    assert_eq!(flow.chunks("BF.SCANDUMP", "many"), flow.chunks("BF.SCANDUMP", "one"));
    // The second time no item is new.
    assert_eq!(flow.count_yes("BF.MADD one", 0..300), 0);
    flow.refused("BF.INSERT missing NOCREATE ITEMS x", "ERR not found");
}

fn nonscaling(flow: &mut Flow) {
    const FULL: &str = "ERR non scaling filter is full";
    for (name, options) in [("a", "NONSCALING"), ("b", "EXPANSION 0"), ("c", "NONSCALING EXPANSION 0")] {
        flow.ok(&format!("BF.RESERVE {name} 0.001 50 {options}"));
        let reply = flow.with_items(&format!("BF.MADD {name}"), 0..100);
        let (last, added) = reply.list().split_last().unwrap();
        assert_eq!(*last, Wire::Refused(FULL.into()), "the error is the last reply of the list");
        assert_eq!(added.iter().filter(|reply| flow.yes(reply)).count(), 50);
        assert_eq!(flow.ask(&format!("BF.CARD {name}")).integer(), 50);
        flow.refused(&format!("BF.ADD {name} another"), FULL);
        let again = flow.ask(&format!("BF.ADD {name} 7"));
        assert!(!flow.yes(&again), "a member is not new");
        assert_eq!(flow.number(&format!("BF.INFO {name}"), "Number of filters"), 1);
    }
    flow.refused("BF.RESERVE d 0.01 50 NONSCALING EXPANSION 2", "Nonscaling filters cannot expand");
}

fn chunks_make_the_same_filter(flow: &mut Flow) {
    for (name, reserve, items) in [
        ("empty", "0.01 100", 0),
        ("one", "0.01 1000", 700),
        ("grown", "0.001 100", 5_000),
        ("fixed", "0.01 500 NONSCALING", 400),
    ] {
        flow.ok(&format!("BF.RESERVE {name} {reserve}"));
        if items > 0 {
            flow.with_items(&format!("BF.MADD {name}"), 0..items);
        }
        let chunks = flow.chunks("BF.SCANDUMP", name);
        assert_eq!(chunks[0].0, 1, "the header comes with iterator 1");
        let layers = flow.number(&format!("BF.INFO {name}"), "Number of filters") as usize;
        assert_eq!((chunks[0].1.len(), chunks.len()), (20 + 53 * layers, 1 + layers));
        let (header, rest) = chunks.split_first().unwrap();
        // In order; then from the last to the first, each twice.
        for (copy, backwards) in [("copy", false), ("backwards", true)] {
            flow.load("BF.LOADCHUNK", copy, header);
            let mut order: Vec<_> = rest.iter().collect();
            if backwards {
                order.reverse();
            }
            for chunk in order {
                flow.load("BF.LOADCHUNK", copy, chunk);
                if backwards {
                    flow.load("BF.LOADCHUNK", copy, chunk);
                }
            }
            assert_eq!(flow.ask(&format!("BF.DEBUG {copy}")), flow.ask(&format!("BF.DEBUG {name}")));
            assert_eq!(flow.chunks("BF.SCANDUMP", copy), chunks, "{name}");
            assert_eq!(flow.count_yes(&format!("BF.MEXISTS {copy}"), 0..items.max(1)), items as usize);
        }
        // Both continue in the same way.
        for target in [name, "copy"] {
            flow.with_items(&format!("BF.MADD {target}"), 10_000..10_080);
        }
        assert_eq!(flow.chunks("BF.SCANDUMP", "copy"), flow.chunks("BF.SCANDUMP", name));
        flow.ask("DEL copy backwards");
    }
    flow.refused("BF.SCANDUMP empty bogus", "Second argument must be numeric");
    flow.refused("BF.LOADCHUNK other bogus x", "ERR Second argument must be numeric");
    flow.refused("BF.LOADCHUNK other 100 x", "ERR not found");
    flow.refused("BF.LOADCHUNK empty 1 x", "ERR received bad data");
}

/// Offsets in a header, and in each of its layers, as in the reference.
fn damaged_headers(flow: &mut Flow) {
    const LAYER: usize = 53;
    flow.ok("BF.RESERVE f 0.01 10");
    flow.with_items("BF.MADD f", 0..25);
    let header = flow.chunks("BF.SCANDUMP", "f").remove(0).1;
    assert_eq!(header.len(), 20 + 2 * LAYER);
    let mut damages: Vec<(usize, Vec<u8>)> = vec![
        (0, 7_u64.to_le_bytes().into()),
        (0, u64::MAX.to_le_bytes().into()),
        (8, 0_u32.to_le_bytes().into()),
        (8, 1_u32.to_le_bytes().into()),
        (8, 3_u32.to_le_bytes().into()),
        (8, u32::MAX.to_le_bytes().into()),
        (12, (5_u32 | 16).to_le_bytes().into()),
        (12, u32::MAX.to_le_bytes().into()),
    ];
    for begin in [20, 20 + LAYER] {
        damages.extend([
            (begin, 0_u64.to_le_bytes().into()),
            (begin, u64::MAX.to_le_bytes().into()),
            (begin + 8, 0_u64.to_le_bytes().into()),
            (begin + 8, 63_u64.to_le_bytes().into()),
            (begin + 16, 1_000_u64.to_le_bytes().into()),
            (begin + 24, 0_f64.to_le_bytes().into()),
            (begin + 24, 1_f64.to_le_bytes().into()),
            (begin + 24, (-0.5_f64).to_le_bytes().into()),
            (begin + 24, f64::NAN.to_le_bytes().into()),
            (begin + 40, 0_u32.to_le_bytes().into()),
            (begin + 40, 1_000_000_u32.to_le_bytes().into()),
            (begin + 52, vec![64]),
        ]);
    }
    let mut refuse = |bytes: &[u8], what: &str| {
        let said = flow.with_bytes("BF.LOADCHUNK damaged 1", bytes);
        assert_eq!(said, Wire::Refused("ERR received bad data".into()), "{what}");
        assert_eq!(flow.ask("EXISTS damaged").integer(), 0, "{what}");
    };
    for (at, bytes) in damages {
        let mut damaged = header.clone();
        damaged[at..at + bytes.len()].copy_from_slice(&bytes);
        assert_ne!(damaged, header, "byte {at}");
        refuse(&damaged, &format!("{bytes:?} at byte {at}"));
    }
    for length in [0, 1, 19, 20, 20 + LAYER, header.len() - 1] {
        refuse(&header[..length], &format!("{length} bytes"));
    }
    refuse(&[&header[..], &[0]].concat(), "one extra byte");
    let said = flow.with_bytes("BF.LOADCHUNK whole 1", &header);
    assert_eq!(said, Wire::Simple("OK".into()));
}

fn reload(flow: &mut Flow) {
    for (name, reserve) in [("a", "0.01 100"), ("b", "0.0001 3 EXPANSION 4"), ("c", "0.05 400 NONSCALING")] {
        flow.ok(&format!("BF.RESERVE {name} {reserve}"));
        flow.with_items(&format!("BF.MADD {name}"), 0..300);
        let before = (flow.ask(&format!("BF.DEBUG {name}")), flow.chunks("BF.SCANDUMP", name));
        flow.reload(name);
        assert_eq!((flow.ask(&format!("BF.DEBUG {name}")), flow.chunks("BF.SCANDUMP", name)), before);
        assert_eq!(flow.count_yes(&format!("BF.MEXISTS {name}"), 0..300), 300);
    }
    assert_eq!(flow.ask("TYPE a"), Wire::Simple("MBbloom--".into()));
}

fn rate(flow: &mut Flow) {
    // The requested rate; for the lowest one, plus three deviations.
    for (reserve, most) in [("0.1 1000", 1_000), ("0.01 1000", 100), ("0.001 1000", 20)] {
        flow.ok(&format!("BF.RESERVE f {reserve}"));
        flow.with_items("BF.MADD f", 0..1_000);
        let wrong = flow.count_yes("BF.MEXISTS f", 100_000..110_000);
        assert!(wrong <= most, "{reserve}: {wrong} of 10,000");
        flow.ask("DEL f");
    }
}

fn names(flow: &mut Flow) {
    flow.ok("BF.RESERVE f 0.01 100");
    flow.refused("BF.RESERVE f 0.01 100", "ERR item exists");
    flow.ask("DEL f");
    flow.ok("BF.RESERVE f 0.01 100");
    flow.ok("SET text x");
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    for line in ["BF.RESERVE text 0.01 9", "BF.ADD text x", "BF.MADD text x", "BF.CARD text", "BF.INFO text"]
    {
        flow.refused(line, wrong);
    }
    let asked = flow.ask("BF.EXISTS text x");
    assert!(!flow.yes(&asked), "never WRONGTYPE");
    assert_eq!(flow.count_yes("BF.MEXISTS text", 0..3), 0);
}
