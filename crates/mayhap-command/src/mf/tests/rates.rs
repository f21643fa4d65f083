//! The false-positive rate of the served filters, tested with the exact binomial tails on both sides.

use mayhap_testkit::binomial_band;

use super::stage::{Stage, booleans};
use crate::reply::Reply;

const NON_MEMBERS: u64 = 60_000;
const KEYS: u64 = 4;

fn wrong_answers(options: &str, items: u64) -> (u64, f64) {
    let mut expected = 0.0;
    let wrong = (0..KEYS).map(|key| {
        let mut stage = Stage::new();
        assert_eq!(stage.run(&format!("MF.RESERVE seen {options} KEY {key:032x}")), Reply::Ok);
        let members = (0..items).map(|item| format!(" member:{item}")).collect::<String>();
        stage.run(&format!("MF.MADD seen{members}"));
        let Reply::Double(rate) = stage.run("MF.INFO seen expected_fpr") else { panic!() };
        expected += rate / KEYS as f64;
        let non_members = (0..NON_MEMBERS).map(|item| format!(" non-member/{item}")).collect::<String>();
        booleans(&stage.run(&format!("MF.MEXISTS seen{non_members}"))).iter().filter(|held| **held).count()
            as u64
    });
    (wrong.sum(), expected)
}

#[test]
fn full_filters_have_the_expected_rate_and_overfull_ones_are_caught() {
    for options in [
        "KIND bloom CAPACITY 20000 FPR 0.01",
        "KIND blocked CAPACITY 100000 FPR 0.01",
        "KIND scalable TIERS 1000,19000 FPR 0.01",
        "KIND cuckoo CAPACITY 20000 FPR 0.01",
    ] {
        let items = if options.contains("blocked") { 100_000 } else { 20_000 };
        let (wrong, expected) = wrong_answers(options, items);
        let band = |rate: f64| binomial_band(KEYS * NON_MEMBERS, rate, 1e-6);
        let promised = *band(expected * 0.97).start()..=*band(expected * 1.03).end();
        assert!(promised.contains(&wrong), "{options}: {wrong}, not {promised:?}");
        assert!(expected <= 0.0101, "{options}: {expected}");
        if options.contains("bloom") {
            let (spoiled, _) = wrong_answers(options, items * 5 / 4);
            assert!(!promised.contains(&spoiled), "{options}: {spoiled} in {promised:?}");
        }
    }
}
