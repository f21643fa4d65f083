//! `CONFIG`.

use super::{Case, Flow};
use crate::host::Wire;

pub(super) const CASES: &[Case] = &[
    Case { name: "settings have RedisBloom's defaults", run: defaults },
    Case { name: "settings have RedisBloom's ranges and error texts", run: ranges },
    Case { name: "settings bound each other", run: live_bounds },
    Case { name: "settings apply to filters created later, and change no existing filter", run: new_filters },
];

/// The name of a setting on this host: some add the module's name as a prefix.
fn full_name(flow: &mut Flow, name: &str) -> String {
    pair(flow, name).0
}

fn pair(flow: &mut Flow, name: &str) -> (String, String) {
    match flow.ask(&format!("CONFIG GET *{name}")) {
        Wire::Map(pairs) => (pairs[0].0.text(), pairs[0].1.text()),
        list => (list.list()[0].text(), list.list()[1].text()),
    }
}

fn set(flow: &mut Flow, name: &str, value: &str) -> Wire {
    let name = full_name(flow, name);
    flow.ask(&format!("CONFIG SET {name} {value}"))
}

fn defaults(flow: &mut Flow) {
    for (name, value) in [
        ("bf-error-rate", "0.01"),
        ("bf-initial-size", "100"),
        ("bf-expansion-factor", "2"),
        ("cf-bucket-size", "2"),
        ("cf-initial-size", "1024"),
        ("cf-max-iterations", "20"),
        ("cf-expansion-factor", "1"),
        ("cf-max-expansions", "32"),
    ] {
        assert_eq!(pair(flow, name).1, value, "{name}");
    }
}

fn ranges(flow: &mut Flow) {
    for (name, least, most) in [
        ("bf-initial-size", 1_u64, 1 << 30),
        ("bf-expansion-factor", 0, 32_768),
        ("cf-bucket-size", 1, 255),
        ("cf-initial-size", 4, 1 << 30),
        ("cf-max-iterations", 1, 65_535),
        ("cf-expansion-factor", 0, 32_768),
        ("cf-max-expansions", 1, 65_536),
    ] {
        let text = format!("Value for `{name}` must be in the range [{least}, {most}]");
        let below = i128::from(least) - 1;
        for value in [below.to_string(), (most + 1).to_string()] {
            match set(flow, name, &value) {
                Wire::Refused(said) => assert!(said.contains(&text), "{name} {value}: {said}"),
                other => panic!("{name} {value}: {other:?}"),
            }
        }
        match set(flow, name, "bogus") {
            Wire::Refused(said) => assert!(said.contains(&format!("Invalid value for `{name}`")), "{said}"),
            other => panic!("{name}: {other:?}"),
        }
        let before = pair(flow, name).1;
        for value in [least, most] {
            assert_eq!(set(flow, name, &value.to_string()), Wire::Simple("OK".into()), "{name} {value}");
            assert_eq!(pair(flow, name).1, value.to_string());
        }
        assert_eq!(set(flow, name, &before), Wire::Simple("OK".into()), "{name} {before}");
    }
    for value in ["0", "1", "-0.1"] {
        match set(flow, "bf-error-rate", value) {
            Wire::Refused(said) => {
                assert!(said.contains("`bf-error-rate` must be in the range (0.000000, 1.000000)"), "{said}");
            }
            other => panic!("{value}: {other:?}"),
        }
    }
    assert_eq!(set(flow, "bf-error-rate", "0.9"), Wire::Simple("OK".into()));
    assert_eq!(pair(flow, "bf-error-rate").1.trim_end_matches('0'), "0.25", "silently");
}

fn live_bounds(flow: &mut Flow) {
    let ok = Wire::Simple("OK".into());
    assert_eq!(set(flow, "cf-initial-size", "16"), ok);
    assert!(set(flow, "cf-bucket-size", "9").is_refused());
    assert_eq!(set(flow, "cf-bucket-size", "8"), ok);
    assert!(set(flow, "cf-initial-size", "15").is_refused());
    flow.refused("CF.RESERVE cf 100 BUCKETSIZE 9", "BUCKETSIZE: value must be in the range [1, 8]");
    // Several in one request.
    let (size, bucket) = (full_name(flow, "cf-initial-size"), full_name(flow, "cf-bucket-size"));
    assert_eq!(flow.ask(&format!("CONFIG SET {size} 2048 {bucket} 4")), ok);
    assert_eq!(
        (pair(flow, "cf-initial-size").1.as_str(), pair(flow, "cf-bucket-size").1.as_str()),
        ("2048", "4")
    );
}

fn new_filters(flow: &mut Flow) {
    flow.ask("BF.ADD old x");
    flow.ask("CF.ADD oldcf x");
    let before = (flow.fields("BF.INFO old"), flow.fields("CF.INFO oldcf"));
    for (name, value) in [
        ("bf-error-rate", "0.001"),
        ("bf-initial-size", "1000"),
        ("bf-expansion-factor", "4"),
        ("cf-initial-size", "4096"),
        ("cf-bucket-size", "4"),
        ("cf-max-iterations", "50"),
        ("cf-expansion-factor", "2"),
    ] {
        assert_eq!(set(flow, name, value), Wire::Simple("OK".into()), "{name}");
    }
    assert_eq!((flow.fields("BF.INFO old"), flow.fields("CF.INFO oldcf")), before);
    flow.ask("BF.MADD new x y");
    assert_eq!(flow.number("BF.INFO new", "Capacity"), 1_000);
    assert_eq!(flow.number("BF.INFO new", "Expansion rate"), 4);
    flow.ask("CF.ADD newcf x");
    for (field, value) in
        [("Number of buckets", 1_024), ("Bucket size", 4), ("Max iterations", 50), ("Expansion rate", 2)]
    {
        assert_eq!(flow.number("CF.INFO newcf", field), value, "{field}");
    }
    // The options of a request override the settings.
    flow.ask("BF.INSERT own CAPACITY 7 EXPANSION 3 ITEMS x");
    assert_eq!(
        (flow.number("BF.INFO own", "Capacity"), flow.number("BF.INFO own", "Expansion rate")),
        (7, 3)
    );
}
