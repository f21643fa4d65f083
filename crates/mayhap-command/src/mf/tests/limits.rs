//! The grammar, its refusals, and memory that is not there.

use mayhap_advise::{Deletes, Growth, ItemShape, Needs, Structure, advise, mayhap_reserve};

use super::stage::{Stage, booleans, field};
use crate::reply::Reply;

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let mut stage = Stage::new();
    for (options, why) in [
        ("", "ERR a filter needs CAPACITY"),
        ("KIND bloom", "ERR a bloom needs CAPACITY"),
        ("KIND teapot", "ERR unknown kind 'teapot', use one of bitmap, bloom, "),
        ("CAPACITY", "ERR CAPACITY has no value"),
        ("CAPACITY 0", "ERR CAPACITY must be a whole number of at least 1"),
        ("CAPACITY -5", "ERR CAPACITY must be a whole number of at least 1"),
        ("CAPACITY 10 CAPACITY 10", "ERR CAPACITY is given twice"),
        ("CAPACITY 10 FPR 1", "ERR FPR must be a number between 0 and 1"),
        ("CAPACITY 10 FPR nan", "ERR FPR must be a number between 0 and 1"),
        ("CAPACITY 10 DANCE", "ERR unknown option 'DANCE'"),
        ("KIND cuckoo CAPACITY 10 TIERS 5", "ERR TIERS and CAPACITY exclude each other"),
        ("KIND cuckoo CAPACITY 10 GROWTH 5", "ERR a cuckoo has no GROWTH"),
        ("KIND bitmap CAPACITY 10 FPR 0.1", "ERR a bitmap has no FPR"),
        ("KIND bitmap RANGE 9 5", "ERR RANGE must be two numbers, the lower one first"),
        ("KIND bitmap", "ERR a bitmap needs RANGE"),
        ("KIND scalable TIERS 5,x", "ERR TIERS must be whole numbers of at least 1, separated by commas"),
        ("KIND scalable TIERS 1,2,3,4,5,6", "ERR "),
        ("KIND scalable GROWTH inf", "ERR "),
        ("KIND xor BITS 9", "ERR BITS must be 8, 16 or 32"),
        ("KIND xor8 FPR 0.1", "ERR a xor has no FPR"),
        ("KIND window", "ERR a window needs WINDOW"),
        ("SECONDS 5", "ERR a window needs CAPACITY"),
        ("WINDOW 5 SECONDS 5", "ERR WINDOW and SECONDS exclude each other"),
        ("CAPACITY 5 GROWTH 2", "ERR a filter without KIND has no GROWTH"),
        ("CAPACITY 5 KEY 00", "ERR KEY must be 32 hexadecimal digits"),
        ("CAPACITY 5 KEY 0001020304050607080900010203040g", "ERR KEY must be 32 hexadecimal digits"),
        ("CAPACITY 5 KEY 00010203040506070809000102030405 KEYLESS", "ERR KEY and KEYLESS exclude each other"),
        ("CAPACITY 1000000 MEMORY 10 KIND quotient FPR 0.01", "ERR filter needs "),
        ("CAPACITY 1000000 MEMORY 10", "ERR "),
        ("KIND bloom CAPACITY 99999999999999999", "ERR "),
        ("KIND window SECONDS 18446744073709551615 CAPACITY 1", "ERR SECONDS must be"),
        ("KIND window SECONDS 9223372036854775807 CAPACITY 1 GENERATIONS 4294967295", "ERR "),
    ] {
        let line = format!("MF.RESERVE name {options}");
        let refused = stage.refused(line.trim_end());
        assert!(refused.starts_with(why), "{options}: {refused}");
        assert!(!refused.contains(['\r', '\n']) && stage.values.is_empty() && !stage.changed);
    }
    let rude = stage.run_words(&[b"MF.RESERVE", b"n", b"\r\n+OK\r\n\xff", b"5"]);
    assert!(matches!(&rude, Reply::Refused(why) if !why.to_string().contains('\n')), "{rude:?}");
    let long = stage.run_words(&[b"MF.RESERVE", b"n", &[b'x'; 100_000]]);
    assert!(matches!(&long, Reply::Refused(why) if why.to_string().len() < 200));
}

/// Any sequence of words is refused or executed, and never causes a panic.
#[test]
fn any_words_in_any_order_are_answered() {
    let words = [
        "KIND",
        "bloom",
        "scalable",
        "window",
        "xor8",
        "bitmap",
        "CAPACITY",
        "1",
        "1000",
        "99999999999",
        "FPR",
        "0.5",
        "1e-30",
        "TIERS",
        "1,2,3",
        "GROWTH",
        "0",
        "TIGHTENING",
        "WINDOW",
        "SECONDS",
        "GENERATIONS",
        "RANGE",
        "18446744073709551615",
        "BITS",
        "PROBES",
        "64",
        "MAX",
        "MEMORY",
        "DELETES",
        "GROWS",
        "STATIC",
        "KEYLESS",
        "SEED",
        "KEY",
        "00010203040506070809000102030405",
        "EXPIRE",
        "growing",
        "dual",
        "fingerprints",
    ];
    let mut stage = Stage::new();
    stage.limits.filter_bytes = 1 << 20;
    let mut state = 7_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut made = 0;
    for _ in 0..4_000 {
        let mut line = vec!["MF.RESERVE", "name"];
        line.extend((0..draw(8)).map(|_| words[draw(words.len())]));
        made += u32::from(stage.run(&line.join(" ")) == Reply::Ok);
        line[0] = "MF.PLAN";
        line.insert(2, "0.01");
        line[1] = "1000";
        stage.run(&line.join(" "));
        stage.values.clear();
    }
    assert!(made > 20, "{made}");
}

/// The command accepts what `mayhap plan` prints, for every structure, and the filter takes the planned
/// memory.
#[test]
fn every_printed_line_is_accepted() {
    let mut lines = 0;
    for needs in [
        Needs::new(10_000, 0.01),
        Needs::new(10_000, 0.001).deleting(Deletes::UpTo(700)),
        Needs::new(10_000, 1e-6).growing(Growth::Unknown),
        Needs::new(10_000, 0.01).growing(Growth::AllAtOnce),
        Needs::new(10_000, 0.01).growing(Growth::Window),
        Needs::new(10_000, 0.01).probing(3),
        Needs::new(10_000, 0.01).of(ItemShape::IntegerRange { low: 5, high: 99_999 }),
    ] {
        let prices = advise(&needs).unwrap().prices;
        for structure in Structure::all() {
            let Some(line) = mayhap_reserve(structure, &needs) else { continue };
            lines += 1;
            let mut stage = Stage::new();
            assert_eq!(stage.run(&line), Reply::Ok, "{line}");
            let info = stage.run("MF.INFO seen");
            assert_eq!(field(&info, "kind"), &Reply::bulk(structure.kind().unwrap().name()), "{line}");
            let price = prices.iter().find(|price| price.structure == structure).unwrap();
            if let (Some(cost), false) = (price.cost, structure.is_static() || structure == Structure::Bitmap)
            {
                let Reply::Integer(capacity) = field(&info, "capacity") else { panic!() };
                let expected =
                    if structure == Structure::GrowableCuckoo { cost.items * 16 } else { cost.items };
                assert!(
                    *capacity as u64 >= expected && *capacity as u64 <= expected * 11 / 10,
                    "{line}: {capacity}"
                );
            }
        }
    }
    assert!(lines > 80, "{lines}");
}

#[test]
fn plans_are_maps_and_name_no_filter() {
    let mut stage = Stage::new();
    let plan = stage.run("MF.PLAN 1000000 0.01 GROWS");
    let Reply::Bulk(line) = field(&plan, "reserve").clone() else { panic!("{plan:?}") };
    let line = String::from_utf8(line).unwrap();
    assert!(line.starts_with("MF.RESERVE seen KIND "), "{line}");
    assert_eq!(stage.run(&line), Reply::Ok);
    let Reply::Array(prices) = field(&plan, "prices") else { panic!() };
    assert!(prices.len() >= 18);
    assert!(matches!(field(&plan, "why"), Reply::Array(why) if !why.is_empty()));
    assert_eq!(stage.run("MF.PLAN FPR 0.01 GROWS CAPACITY 1000000"), plan);
    assert!(stage.refused("MF.PLAN 10 0.1 FPR 0.1").contains("a plan has no FPR"));
    assert!(stage.refused("MF.PLAN FPR 0.1").contains("CAPACITY"));
    assert!(stage.refused("MF.PLAN 0 0.01").contains("capacity must be"));
    assert!(stage.refused("MF.PLAN 10 2").contains("fpr must be"));
    assert!(stage.refused("MF.PLAN 10 0.1 KIND bloom").contains("a plan has no KIND"));
}

#[test]
fn without_a_kind_the_advice_is_followed() {
    let mut stage = Stage::new();
    for (name, options, kinds) in [
        ("a", "CAPACITY 1000000", &["blocked-bloom", "bloom"][..]),
        ("b", "CAPACITY 1000000 FPR 0.001 DELETES", &["cuckoo", "quotient"][..]),
        ("c", "GROWS FPR 0.001", &["scalable-bloom", "growing"][..]),
        ("d", "STATIC CAPACITY 100000 FPR 0.004", &["binary-fuse", "ribbon"][..]),
        ("e", "RANGE 0 99999 CAPACITY 50000", &["bitmap"][..]),
        ("f", "TIERS 10,100", &["scalable-bloom"][..]),
        ("g", "WINDOW 1000", &["window"][..]),
    ] {
        assert_eq!(stage.run(&format!("MF.RESERVE {name} {options}")), Reply::Ok, "{options}");
        let Reply::Bulk(kind) = stage.run(&format!("MF.INFO {name} kind")) else { panic!() };
        let kind = String::from_utf8(kind).unwrap();
        assert!(kinds.contains(&kind.as_str()), "{options}: {kind}");
    }
}

#[test]
fn keys_are_secret_given_or_not_there() {
    let mut stage = Stage::new();
    for (name, options) in [("a", ""), ("b", ""), ("c", "KEYLESS"), ("d", "KEYLESS SEED 7"), ("e", "SEED 7")]
    {
        stage.run(format!("MF.RESERVE {name} KIND bloom CAPACITY 9000 {options}").trim_end());
        stage.run(&format!("MF.ADD {name} x"));
        let keyed = stage.run(&format!("MF.INFO {name} keyed"));
        assert_eq!(keyed, Reply::Boolean(options.is_empty()), "{options}");
    }
    assert!(stage.refused("MF.MERGE a b").contains("secret keys"), "each filter has its own key");
    assert!(stage.refused("MF.MERGE c d").contains("hash differently"));
    assert_eq!(stage.run("MF.MERGE d e"), Reply::Ok);
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let mut stage = Stage::new();
    stage.budget.set_limit(1 << 20);
    assert!(stage.refused("MF.RESERVE big KIND bloom CAPACITY 10000000").starts_with("OOM "));
    assert!(stage.refused("MF.BUILD big BEGIN KIND cuckoo CAPACITY 10000000").starts_with("OOM "));
    assert!(stage.values.is_empty());
    stage.limits.filter_bytes = 100_000;
    assert!(
        stage
            .refused("MF.RESERVE big KIND bloom CAPACITY 500000")
            .contains("a single filter may take 100000")
    );
    stage.limits.filter_bytes = 1 << 40;

    for options in [
        "KIND scalable TIERS 100000 GROWTH 4",
        "KIND growing CAPACITY 1000",
        "KIND growable CAPACITY 1000 MAX 100000000",
        "KIND fingerprints",
        "KIND scalable-cuckoo CAPACITY 1000",
    ] {
        assert_eq!(stage.run(&format!("MF.RESERVE grows {options}")), Reply::Ok);
        let mut refused = None;
        let mut added = Vec::new();
        'filling: for block in 0..400 {
            let items: Vec<String> = (0..5_000).map(|item| (block * 5_000 + item).to_string()).collect();
            let line = format!("MF.MADD grows {}", items.join(" "));
            let reply = stage.run(&line);
            let replies = match &reply {
                Reply::Array(replies) => replies.clone(),
                reply => booleans(reply).into_iter().map(Reply::Boolean).collect(),
            };
            assert_eq!(replies.len(), items.len());
            for (item, reply) in items.into_iter().zip(replies) {
                match reply {
                    Reply::Boolean(_) => added.push(item),
                    Reply::Refused(why) => refused = Some(why.to_string()),
                    reply => panic!("{reply:?}"),
                }
            }
            assert!(stage.budget.used() <= (1 << 20) + 4_096, "{options}: {}", stage.budget.used());
            if refused.is_some() {
                break 'filling;
            }
        }
        assert_eq!(
            refused.as_deref(),
            Some("OOM command not allowed when used memory > 'maxmemory'."),
            "{options}"
        );
        assert!(added.len() > 50_000, "{options}: {}", added.len());
        let held = booleans(&stage.run(&format!("MF.MEXISTS grows {}", added.join(" "))));
        assert!(held.iter().all(|held| *held), "{options}");
        // The current memory limit is not part of the filter.
        stage.budget.set_limit(0);
        assert!(matches!(stage.run("MF.ADD grows one-more"), Reply::Boolean(_)), "{options}");
        stage.values.clear();
        stage.budget.book(stage.budget.used(), 0);
        stage.budget.set_limit(1 << 20);
    }
}

#[test]
fn a_filter_with_a_limit_of_its_own_says_so() {
    let mut stage = Stage::new();
    assert_eq!(stage.run("MF.RESERVE own KIND scalable CAPACITY 1000 MEMORY 5000"), Reply::Ok);
    let items = (0..20_000).map(|item| format!(" {item}")).collect::<String>();
    let Reply::Array(replies) = stage.run(&format!("MF.MADD own{items}")) else { panic!() };
    let Some(Reply::Refused(why)) = replies.last() else { panic!() };
    assert!(why.to_string().contains("cannot grow"), "{why}");
}
