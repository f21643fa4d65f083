//! A filter on a server above its capacity is reported by the program, the log, `INFO`, `/metrics` and HTTP.

mod program;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use program::run;
use program::server::{PATIENCE, Server};
use serde_json::Value;

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn write(folder: &Path, file: &str, items: std::ops::Range<u32>) {
    let mut lines = String::new();
    items.for_each(|item| writeln!(lines, "item:{item}").unwrap());
    fs::write(folder.join(file), lines).unwrap();
}

/// The value of a field of `INFO mayhap`.
fn info(server: &Server, field: &str) -> f64 {
    let info = server.ask("INFO mayhap");
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap_or_else(|| panic!("no {field} in {info}")).trim().parse().unwrap()
}

#[test]
fn overfull_filters_are_reported_by_every_command_and_page() {
    let folder = program::empty_folder("overfull", "told");
    let server = Server::in_folder(&folder, &[]);
    let address = format!("redis://{}/seen", server.address("RESP"));
    write(&folder, "few", 0..1_000);
    write(&folder, "many", 0..8_000);
    write(&folder, "asked", 0..10);
    assert_eq!(server.ask("MF.RESERVE seen KIND bloom CAPACITY 1000 FPR 0.01"), "+OK\r\n");
    for words in [&["add", &address, "few"][..], &["check", &address, "asked"], &["info", &address]] {
        let (code, out, error) = run(&folder, words);
        assert!(code == 0 && !error.contains("over ") && !out.contains("over "), "{words:?}: {out}{error}");
    }
    assert_eq!(
        (info(&server, "filters_over_capacity"), server.get("/api/v1/filters/seen")["health"].as_str()),
        (0.0, Some("ok"))
    );

    const WARNING: &str = "over capacity: made for 1,000 items, holds ";
    let (code, out, error) = run(&folder, &["add", &address, "many", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["over_capacity"]), (0, &Value::Bool(true)), "{report}");
    assert!(report["expected_fpr"].as_f64().unwrap() > 0.5, "{report}");
    assert!(error.contains(WARNING), "{error}");
    let (code, out, error) = run(&folder, &["check", &address, "asked", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["over_capacity"]), (0, &Value::Bool(true)), "{report}");
    assert!(error.contains(WARNING), "{error}");
    let (_, _, error) = run(&folder, &["check", &address, "asked", "--quiet"]);
    assert_eq!(error, "");
    let (_, out, _) = run(&folder, &["info", &address]);
    assert!(
        out.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ").contains(WARNING.trim_end()),
        "{out}"
    );
    let (_, out, _) = run(&folder, &["info", &address, "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let told = &report["filters"][0];
    assert_eq!(
        (&told["over_capacity"], &told["fields"]["health"]),
        (&true.into(), &"over-half".into()),
        "{told}"
    );
    assert!(told["warnings"][0].as_str().unwrap().starts_with(WARNING), "{told}");

    wait_for("a look at all filters", || info(&server, "filters_over_capacity") == 1.0);
    assert!(info(&server, "worst_expected_fpr") > 0.5);
    assert_eq!(
        (info(&server, "filters_over_ten_times_target"), info(&server, "filters_over_half")),
        (1.0, 1.0)
    );
    let (_, metrics) = server.http("GET /metrics", "", "");
    assert!(metrics.contains("mayhap_filters_over_capacity{over=\"half\"} 1\n"), "{metrics}");
    assert!(metrics.contains("mayhap_filters_over_capacity{over=\"target\"} 0\n"), "{metrics}");
    assert!(metrics.contains("\nmayhap_worst_expected_fpr 0.") || metrics.contains("_fpr 1.0"), "{metrics}");
    let shown = server.get("/api/v1/filters/seen");
    assert_eq!(shown["health"], "over-half", "{shown}");
    assert!(shown["load"].as_f64().unwrap() > 1.0 && shown["fill"].as_f64().unwrap() > 0.9, "{shown}");
    assert_eq!(server.ask("MF.CLEAR seen"), "+OK\r\n");
    wait_for("a look at the filter that was emptied", || info(&server, "filters_over_capacity") == 0.0);
}

#[test]
fn the_log_has_one_line_per_filter_and_threshold() {
    let folder = program::empty_folder("overfull", "log");
    let server = Server::in_folder(&folder, &[]);
    // A name cannot inject lines.
    let name = r#""se\n\x1ben""#;
    for (name, fpr) in [(name, "0.01"), ("well", "0.01")] {
        assert_eq!(server.ask(&format!("MF.RESERVE {name} KIND bloom CAPACITY 1000 FPR {fpr}")), "+OK\r\n");
    }
    let mut items = 0..;
    let mut add = |count: usize| {
        let words: String = items.by_ref().take(count).map(|item| format!(" item:{item}")).collect();
        server.ask(&format!("MF.MADD {name}{words}"));
    };
    for (more, over) in
        [(1_400, [1.0, 0.0, 0.0]), (1_300, [1.0, 1.0, 0.0]), (4_000, [1.0, 1.0, 1.0]), (500, [1.0; 3])]
    {
        // Further requests add no line.
        for _ in 0..100 {
            add(more / 100);
        }
        let fields = ["filters_over_capacity", "filters_over_ten_times_target", "filters_over_half"];
        wait_for(&format!("{over:?}"), || fields.map(|field| info(&server, field)) == over);
    }
    // Another round adds nothing.
    server.ask("MF.ADD well ada");
    std::thread::sleep(Duration::from_millis(1_500));
    let (_, log, _) = server.stop();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("over")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    for (line, health) in lines.iter().zip(["over-target", "over-10x-target", "over-half"]) {
        assert!(line.contains(health) && line.contains("se\\n") && line.contains("WARN"), "{line}");
    }
}
