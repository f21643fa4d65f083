//! Runs the program on few items and checks the fields of every object.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mayhap-bench")).args(arguments).output().expect("the program starts")
}

fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect("one object per line")).collect()
}

#[test]
fn json_has_the_documented_fields() {
    let output = bench(&[
        "filters",
        "--items",
        "2e4",
        "--fpr",
        "0.01",
        "--rounds",
        "2",
        "--json",
        "--only",
        "fastbloom+foldhash,sbbf-rs-safe",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = objects(&output);
    let (filters, limits): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["kind"] != "limit");
    assert_eq!(filters.len(), 2);
    for row in filters {
        for field in
            ["target_fpr", "observed_fpr", "bits_per_item", "build_ns", "insert_ns", "miss_ns", "hit_ns"]
        {
            assert!(row[field].as_f64().is_some_and(|value| value > 0.0), "{field} of {row}");
        }
        assert!(row["name"].is_string() && row["ours"] == false);
        assert!(row["batch_miss_ns"].is_null() && row["batch_hit_ns"].is_null());
        assert!(row["p10"]["miss_ns"].is_number());
        assert_eq!(row["items"], 20_000);
        assert_eq!(row["false_negatives"], 0);
        assert!(row["strangers_asked"].as_u64().unwrap() >= 2_000_000);
        let observed = row["observed_fpr"].as_f64().unwrap();
        assert!((0.008..0.0125).contains(&observed), "{observed} is far from the target of 1 %");
    }
    assert_eq!(limits.len(), 4);
    assert!(limits.iter().any(|row| row["name"] == "limit: bare prefetched gather"));
    for row in limits {
        assert!(row["gather_ns"].as_f64().is_some_and(|ns| ns > 0.0));
        assert_eq!(row["bits_per_item"], 6.644);
    }
}

#[test]
fn our_filters_have_batch_figures_and_keep_their_guarantees() {
    let output = bench(&["filters", "--items", "20000", "--rounds", "1", "--json", "--only", "ours"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = objects(&output);
    let ours: Vec<_> = rows.iter().filter(|row| row["ours"] == true).collect();
    assert_eq!(ours.len(), 28);
    for row in ours {
        for field in ["build_ns", "miss_ns", "hit_ns", "batch_miss_ns", "batch_hit_ns"] {
            assert!(row[field].as_f64().is_some_and(|ns| ns > 0.0), "{field} of {row}");
        }
        let is_whole = row["kind"] == "static";
        assert_eq!(row["insert_ns"].is_null(), is_whole, "{row}");
        assert_eq!(row["build_wall_ns"].is_number(), is_whole, "{row}");
        assert_eq!(row["remove_ns"].is_number(), row["lost_by_removing"] == 0, "{row}");
        assert_eq!((&row["false_negatives"], &row["batch_agrees"]), (&0.into(), &true.into()), "{row}");
        assert!(row["observed_fpr"].as_f64().unwrap() < 0.0125, "{row}");
    }
}

#[test]
fn every_kind_has_its_rivals_and_its_bars() {
    let kinds = "counting,cuckoo,quotient,static,growable,growing,window";
    let output = bench(&["filters", "--items", "20000", "--rounds", "1", "--only", kinds]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    for kind in kinds.split(',') {
        assert!(table.contains(&format!("── {kind}\n")), "no block of {kind}:\n{table}");
    }
    // Every kind except the window has a rival that ratios refer to.
    assert_eq!(
        table.lines().filter(|line| line.split_whitespace().any(|word| word == "*")).count(),
        6,
        "{table}"
    );
    for bar in
        ["Cuckoo 12-bit", "Cuckoo semi-sorted", "BinaryFuse8", "Ribbon 8-bit", "Quotient", "DLeft", "Growing"]
    {
        let verdict = |line: &str| line.ends_with("met") || line.ends_with("MISSED");
        assert!(
            table.lines().any(|line| line.starts_with(bar) && verdict(line)),
            "no bar of {bar}:\n{table}"
        );
    }
}

#[test]
fn every_item_shape_gives_a_table() {
    for shape in ["u64", "str16", "url"] {
        let output = bench(&[
            "filters",
            "--items",
            "5_000",
            "--rounds",
            "1",
            "--shape",
            shape,
            "--only",
            "sbbf-rs-safe,mayhap Bloom,xorf,qfilter,autoscale_cuckoo_filter,mayhap Ribbon",
        ]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let table = String::from_utf8(output.stdout).unwrap();
        assert!(
            table.contains("sbbf-rs-safe *") && table.contains("limit: bare prefetched gather"),
            "{table}"
        );
    }
}

#[test]
fn unknown_names_and_numbers_are_rejected() {
    for wrong in [["--only", "no such filter"], ["--items", "many"], ["--fpr", "1.5"], ["--rounds", "0"]] {
        let output = bench(&[&["filters"], &wrong[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_missing_module_aborts_the_measurement() {
    let output = bench(&["server", "--module", "no/such/module.so"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.is_empty() && output.stdout.is_empty());
    for alone in [&["--rival-module", "other.so"][..], &["--record"]] {
        let output = bench(&[&["server"], alone].concat());
        assert_eq!(output.status.code(), Some(2), "{alone:?} needs --module");
    }
}
