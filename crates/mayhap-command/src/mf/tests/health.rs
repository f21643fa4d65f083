//! `MF.INFO` of a filter that has more bits set than its count explains, or more items than its capacity.

use mayhap::{Filter, Sampling};

use super::stage::{Stage, field};
use crate::health::{Health, look};
use crate::mf::Holder;
use crate::reply::Reply;
use crate::value::Value;

fn double(stage: &mut Stage, field: &str) -> f64 {
    let Reply::Double(number) = stage.run(&format!("MF.INFO seen {field}")) else { panic!("{field}") };
    number
}

fn holder(stage: &Stage) -> &Holder {
    let Value::Filter(holder) = &stage.values[&b"seen"[..]] else { panic!() };
    holder
}

/// A copy of the filter that serves.
fn served(stage: &Stage) -> Filter {
    holder(stage).served.copy().unwrap().unwrap()
}

/// The number of bits that are set.
fn ones(filter: &Filter) -> u64 {
    match filter {
        Filter::Bloom(bloom) => bloom.ones(),
        Filter::BlockedBloom(blocked) => blocked.ones(),
        Filter::ScalableBloom(scalable) => scalable.layers().iter().map(mayhap::Bloom::ones).sum(),
        _ => panic!("the filter has no bits"),
    }
}

/// Adds items that each set as many new bits as there are probes, like a client that knows which bits are
/// set.
fn forge(stage: &mut Stage, items: usize, probes: u64) {
    let (mut filter, mut forged) = (served(stage), Vec::new());
    for number in 0_u64.. {
        let item = format!("forged:{number}");
        let before = ones(&filter);
        let mut with = filter.try_clone().unwrap();
        let _ = with.insert(item.as_bytes());
        if ones(&with) == before + probes {
            filter = with;
            forged.push(item);
        }
        if forged.len() == items {
            break;
        }
    }
    stage.run(&format!("MF.MADD seen {}", forged.join(" ")));
}

#[test]
fn forged_bits_show_in_the_fill_and_the_expected_rate() {
    for (options, items, probes) in [
        ("KIND bloom CAPACITY 5000 FPR 0.01", 1_500, 7),
        ("KIND bloom CAPACITY 60000 FPR 0.01", 1_500, 7),
        ("KIND scalable CAPACITY 5000 FPR 0.01", 1_500, 8),
    ] {
        let mut stage = Stage::new();
        assert_eq!(stage.run(&format!("MF.RESERVE seen {options}")), Reply::Ok);
        for number in 0.. {
            stage.run(&format!("MF.ADD seen first:{number}"));
            if !holder(&stage).served_as_list() {
                break;
            }
        }
        let honest = double(&mut stage, "expected_fpr");
        forge(&mut stage, items, probes);
        let filter = served(&stage);
        let (by_bits, by_count) = (filter.fill(Sampling::WHOLE).unwrap(), filter.expected_fpr());
        let (fill, rate) = (double(&mut stage, "fill"), double(&mut stage, "expected_fpr"));
        assert_eq!(fill, by_bits.share, "{options}");
        assert_eq!(rate, by_bits.expected_fpr, "{options}");
        assert!(rate > by_count && rate > honest, "{options}: {rate}, by the count {by_count}");
    }
}

#[test]
fn health_reports_the_passed_thresholds() {
    for kind in ["bloom", "blocked"] {
        let mut stage = Stage::new();
        assert_eq!(stage.run(&format!("MF.RESERVE seen KIND {kind} CAPACITY 2000 FPR 0.01")), Reply::Ok);
        let mut states = Vec::new();
        for round in 0..40 {
            let items: String = (0..500).map(|item| format!(" item:{round}:{item}")).collect();
            stage.run(&format!("MF.MADD seen{items}"));
            let info = stage.run("MF.INFO seen");
            let Reply::Bulk(state) = field(&info, "health") else { panic!("{info:?}") };
            let state = String::from_utf8(state.to_vec()).unwrap();
            let rate = double(&mut stage, "expected_fpr");
            let value = &stage.values[&b"seen"[..]];
            let assessed = value.assess(Sampling::WHOLE).unwrap();
            assert_eq!(assessed.health.name(), state, "{kind}, {round}");
            assert!((assessed.expected_fpr / rate - 1.0).abs() < 1e-9 || assessed.health == Health::Ok);
            assert_eq!(value.describe(Sampling::WHOLE).health.name(), state);
            if round < 4 {
                assert_eq!(state, "ok", "{kind}: {rate} at capacity");
            }
            if states.last() != Some(&state) {
                states.push(state);
            }
        }
        assert_eq!(states, ["ok", "over-target", "over-10x-target", "over-half"], "{kind}");
        stage.run("MF.CLEAR seen");
        assert_eq!(stage.run("MF.INFO seen health"), Reply::bulk("ok"));
    }
}

#[test]
fn a_large_filter_is_sampled() {
    let mut stage = Stage::new();
    // Some 36 MB of bits.
    assert_eq!(stage.run("MF.RESERVE seen KIND bloom CAPACITY 30000000 FPR 0.01"), Reply::Ok);
    let items: String = (0..20_000).map(|item| format!(" item:{item}")).collect();
    stage.run(&format!("MF.MADD seen{items}"));
    let whole = served(&stage).fill(Sampling::WHOLE).unwrap().share;
    let bytes = holder(&stage).memory_bytes();
    assert_ne!(look(bytes), Sampling::WHOLE);
    assert_ne!(look(bytes), look(bytes), "a sample reads unpredictable places");
    let fill = double(&mut stage, "fill");
    // A quarter of the bits: six standard deviations are 3 %.
    assert!((fill / whole - 1.0).abs() < 0.05, "{fill}, not {whole}");
}
