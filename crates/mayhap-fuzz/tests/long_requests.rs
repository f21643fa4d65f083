//! Filters that are expensive to query: many layers, many probes, few bits. Every request to them must be answered within the time limit.

use mayhap_command::Reply;
use mayhap_engine::Engine;
use mayhap_formats::redis_bloom::{Scaling, create};
use mayhap_fuzz::exercise;
use mayhap_fuzz::meter::{self, LONGEST_REQUEST};
use mayhap_fuzz::world::{ask, ask_line, engine};

/// `MF.MADD v` with items of numbers below `items`, some at a time.
fn fill(engine: &Engine, command: &[u8], items: usize) {
    let items: Vec<String> = (0..items).map(|item| item.to_string()).collect();
    for some in items.chunks(50) {
        let mut words = vec![command, b"v"];
        words.extend(some.iter().map(String::as_bytes));
        ask(engine, &words);
    }
}

/// Uses the filter `v` that `make` creates in every way, and returns the longest request.
fn longest(make: impl Fn(&Engine)) -> meter::Longest {
    meter::longest_of(|| {
        let (engine, clock) = engine();
        make(&engine);
        assert!(exercise::all(&engine, b"v").is_some(), "the filter exists");
        clock.advance(10_000);
        for line in ["mf.info v", "mf.card v", "mf.build v begin", "mf.build v info", "dump v", "copy v w"] {
            ask_line(&engine, line);
        }
    })
}

/// 64 layers, none with more than 2 048 bits, and more than 24 probes in each.
#[test]
fn requests_to_a_chain_of_small_layers_with_many_probes_are_fast() {
    for shape in [
        "kind scalable capacity 30 fpr 1e-9 growth 1",
        "kind scalable capacity 40 fpr 1e-8 growth 1",
        "kind scalable capacity 2 fpr 1e-9 growth 1 tightening 0.9",
        "kind scalable capacity 1 fpr 1e-12 growth 1.001 tightening 0.99",
    ] {
        let longest = longest(|engine| {
            assert_eq!(ask_line(engine, &format!("mf.reserve v {shape}")), Reply::Ok, "{shape}");
            fill(engine, b"mf.madd", 3_000);
        });
        assert!(longest.took < LONGEST_REQUEST, "{shape}: {longest:?}");
        println!("{shape}: {longest:?}");
    }
}

/// RedisBloom's chains may have a thousand layers, and more than a thousand probes.
#[test]
fn requests_to_a_loaded_chain_of_a_thousand_layers_are_fast() {
    let slowly = Scaling::Tightened { by: 1, tightening: 0.999 };
    for (capacity, rate, scaling) in [
        (1, 0.5, Scaling::By(1)),
        (5, 1e-10, Scaling::By(1)),
        (20, 1e-8, slowly),
        // The most probes in the fewest bits for which the rate is computed ball by ball. Every request used to take 4 s.
        (40, 1e-7, slowly),
    ] {
        let mut chain = create(capacity, rate, scaling).unwrap();
        let inserted = (0..1_100 * capacity).take_while(|item| chain.insert(item).is_ok()).count();
        let file = chain.encode();
        let what = format!("{capacity} at {rate}, {} layers, {inserted} items", chain.layers().len());
        let longest = longest(|engine| {
            engine.budget().set_limit(64 << 20);
            let loaded = ask(engine, &[b"mf.load", b"v", b"0", &file]);
            assert!(!matches!(loaded, Some(Reply::Refused(_)) | None), "{what}: {loaded:?}");
        });
        println!("{what}, {} bytes: {longest:?}", file.len());
        assert!(longest.took < LONGEST_REQUEST, "{what}: {longest:?}");
    }
}
