//! Pipelines: many requests on one name get the same replies as one by one, and only real changes count as
//! changes.

use mayhap_command::Reply;

use crate::keyspace::Keyspace;

/// `BF.ADD` and `BF.MADD` of all lengths, with duplicates.
fn requests(count: u32) -> Vec<Vec<String>> {
    let mut item = 0_u32;
    let mut next = || {
        item += 1;
        (item.wrapping_mul(2_654_435_761) >> 8) % 5_000
    };
    (0..count)
        .map(|index| match index % 5 {
            0..3 => vec!["BF.ADD".into(), "f".into(), next().to_string()],
            _ => {
                let mut words = vec!["BF.MADD".to_owned(), "f".to_owned()];
                words.extend((0..=index * 7 % 90).map(|_| next().to_string()));
                words
            }
        })
        .collect()
}

/// Turns a reply into plain numbers: packed answers and lists of them are the same on the wire.
fn plain(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Booleans(answers) => {
            answers.iter().map(|answer| format!("{:?}", Reply::Boolean(answer))).collect()
        }
        Reply::Array(replies) => replies.iter().map(|reply| format!("{reply:?}")).collect(),
        reply => vec![format!("{reply:?}")],
    }
}

#[test]
fn pipelines_are_answered_like_single_requests_during_growth() {
    for reserve in
        ["BF.RESERVE f 0.01 10", "BF.RESERVE f 0.001 700 EXPANSION 1", "BF.RESERVE f 0.01 900 NONSCALING"]
    {
        let (mut one_by_one, mut together) = (Keyspace::default(), Keyspace::default());
        one_by_one.line(reserve);
        together.line(reserve);
        let requests = requests(400);
        let words: Vec<Vec<&[u8]>> =
            requests.iter().map(|request| request.iter().map(String::as_bytes).collect()).collect();
        for pipeline in words.chunks(37) {
            let all: Vec<&[&[u8]]> = pipeline.iter().map(Vec::as_slice).collect();
            let got = together.ask_all(&all);
            assert_eq!(got.len(), pipeline.len());
            for (words, got) in pipeline.iter().zip(got) {
                assert_eq!(plain(&got), plain(&one_by_one.ask(words)), "{reserve}");
            }
        }
        assert_eq!(together.line("BF.CARD f"), one_by_one.line("BF.CARD f"));
        assert_eq!(together.line("BF.DEBUG f"), one_by_one.line("BF.DEBUG f"));
        assert_eq!(together.line("BF.SCANDUMP f 1"), one_by_one.line("BF.SCANDUMP f 1"));
    }
}

#[test]
fn pipelined_bloom_lookups_are_answered_in_order() {
    let mut keyspace = Keyspace::default();
    keyspace.line("BF.RESERVE f 0.0001 200");
    let even: String = (0..400).map(|item| format!(" {}", item * 2)).collect();
    keyspace.line(&format!("BF.MADD f{even}"));
    let one: Vec<Vec<u8>> = (0..800).map(|item| item.to_string().into_bytes()).collect();
    let asked: Vec<Vec<&[u8]>> = one.iter().map(|item| vec![&b"BF.EXISTS"[..], b"f", item]).collect();
    let all: Vec<&[&[u8]]> = asked.iter().map(Vec::as_slice).collect();
    let got = keyspace.ask_all(&all);
    let wrong =
        got.iter().enumerate().filter(|(item, reply)| **reply != Reply::Boolean(item % 2 == 0)).count();
    assert!(wrong < 3, "{wrong} of 400 non-members at 0.01 %");
    assert!(got.iter().step_by(2).all(|reply| *reply == Reply::Boolean(true)));
}

#[test]
fn pipelined_cuckoo_lookups_are_answered_in_order() {
    let mut keyspace = Keyspace::default();
    keyspace.line("CF.RESERVE f 64");
    let even: String = (0..300).map(|item| format!(" {}", item * 2)).collect();
    keyspace.line(&format!("CF.INSERT f ITEMS{even}"));
    let one: Vec<Vec<u8>> = (0..600).map(|item| item.to_string().into_bytes()).collect();
    let asked: Vec<Vec<&[u8]>> = one
        .chunks(3)
        .enumerate()
        .map(|(index, items)| {
            let many = index % 2 == 0;
            let mut words: Vec<&[u8]> = vec![if many { b"CF.MEXISTS" } else { b"CF.EXISTS" }, b"f"];
            words.extend(items.iter().take(if many { 3 } else { 1 }).map(Vec::as_slice));
            words
        })
        .collect();
    let all: Vec<&[&[u8]]> = asked.iter().map(Vec::as_slice).collect();
    let together = keyspace.ask_all(&all);
    assert_eq!(together.len(), all.len());
    for (words, got) in all.iter().zip(together) {
        assert_eq!(plain(&got), plain(&keyspace.ask(words)));
    }
    assert_eq!(keyspace.line("CF.EXISTS f 42"), Reply::Boolean(true));
}

#[test]
fn only_requests_that_change_a_value_count_as_changes() {
    let mut keyspace = Keyspace::default();
    for (line, changes) in [
        ("BF.ADD b ada", 1),
        ("BF.ADD b ada", 0),
        ("BF.MADD b ada ada", 0),
        ("BF.MADD b ada eve", 1),
        ("BF.INSERT b ITEMS ada eve", 0),
        ("BF.INSERT b ITEMS zoe", 1),
        ("BF.EXISTS b ada", 0),
        ("BF.SCANDUMP b 0", 0),
        ("BF.SCANDUMP b 1", 0),
        ("BF.RESERVE b 0.01 100", 0),
        ("BF.RESERVE full 0.01 1 NONSCALING", 1),
        ("BF.ADD full ada", 1),
        ("BF.ADD full eve", 0),
        ("BF.INSERT none NOCREATE ITEMS ada", 0),
        ("CF.ADD c ada", 1),
        ("CF.ADDNX c ada", 0),
        ("CF.INSERTNX c ITEMS ada", 0),
        ("CF.DEL c nobody", 0),
        ("CF.COMPACT c", 0),
        ("CF.DEL c ada", 1),
        ("CF.COMPACT c", 1),
        ("CF.COMPACT c", 0),
        ("CF.SCANDUMP c 0", 0),
    ] {
        let before = keyspace.changes;
        keyspace.line(line);
        let counted = keyspace.changes - before;
        assert_eq!(u64::from(counted > 0), changes, "{line}");
    }
}

/// `BF.INSERT` with and without options, right and wrong ones, in any spelling.
fn insertions(count: u64) -> Vec<Vec<String>> {
    let mut state = 7_u64;
    let mut below = move |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    (0..count)
        .map(|_| {
            let options = match below(16) {
                0..7 => "NOCREATE ITEMS",
                7 => "nocreate items",
                8 => "ITEMS",
                9 => "NOCREATE NOCREATE i",
                10 => "CAPACITY 100 NOCREATE ITEMS",
                11 => "NONSCALING ITEMS",
                12 => "NOCREATE ERROR 2 ITEMS",
                13 => "SOMETHING ITEMS",
                14 => "NOCREATE nothing_like_items",
                _ => "NOCREATE ITEMS",
            };
            let line = format!("BF.INSERT f {options}");
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            words.extend((0..below(40)).map(|_| below(3_000).to_string()));
            words
        })
        .filter(|words| words.len() >= 4)
        .collect()
}

/// Sharded filters write through `BF.INSERT key NOCREATE ITEMS …`: batches of it share the lock of the filter.
#[test]
fn insertions_in_batches_are_answered_as_with_exclusive_access() {
    let mut refused = 0;
    for before in [
        "BF.RESERVE f 0.01 10",
        "BF.RESERVE f 0.001 5000",
        "BF.RESERVE f 0.01 600 NONSCALING",
        "BF.EXISTS f a",
        "SET f text",
        "CF.RESERVE f 100",
    ] {
        let (mut exclusive, mut together) = (Keyspace::default(), Keyspace::default());
        exclusive.adds_alone = true;
        exclusive.line(before);
        together.line(before);
        let requests = insertions(400);
        let words: Vec<Vec<&[u8]>> =
            requests.iter().map(|request| request.iter().map(String::as_bytes).collect()).collect();
        for pipeline in words.chunks(23) {
            let all: Vec<&[&[u8]]> = pipeline.iter().map(Vec::as_slice).collect();
            let got = together.ask_all(&all);
            let expected = exclusive.ask_all(&all);
            assert_eq!(got.len(), expected.len());
            for ((request, got), expected) in all.iter().zip(&got).zip(&expected) {
                let line: Vec<_> = request.iter().map(|word| String::from_utf8_lossy(word)).collect();
                assert_eq!(plain(got), plain(expected), "{before}: {}", line.join(" "));
                refused += u32::from(matches!(got, Reply::Refused(_)));
            }
        }
        assert_eq!(together.line("BF.INFO f"), exclusive.line("BF.INFO f"), "{before}");
    }
    assert!(refused > 300, "{refused} refused");
}
