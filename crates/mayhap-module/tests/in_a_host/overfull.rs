//! Filters that hold more items than their capacity: the host's log and `INFO` report them, and measuring
//! them does not block clients.

use std::time::{Duration, Instant};

use mayhap_testkit::host::Talk;

use crate::hosts;

const PATIENCE: Duration = Duration::from_secs(30);

fn wait_for(talk: &mut Talk, field: &str, value: &str) {
    let begun = Instant::now();
    while talk.info(field) != value {
        assert!(begun.elapsed() < PATIENCE, "{field} is {}, not {value}", talk.info(field));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn add(talk: &mut Talk, name: &str, items: std::ops::Range<u32>) {
    let mut words = vec!["MF.MADD".to_owned(), name.to_owned()];
    words.extend(items.map(|item| format!("item:{item}")));
    talk.must(&words);
}

#[test]
fn info_counts_overfull_filters_and_the_log_has_one_line_per_threshold() {
    for host in hosts(&["--databases", "4"]) {
        let mut talk = host.talk();
        talk.must(&["SET", "other", "value"]);
        talk.must(&["MF.RESERVE", "well", "KIND", "bloom", "CAPACITY", "1000", "FPR", "0.01"]);
        add(&mut talk, "well", 0..900);
        talk.must(&["MF.RESERVE", "seen", "KIND", "bloom", "CAPACITY", "1000", "FPR", "0.01"]);
        add(&mut talk, "seen", 0..1_400);
        wait_for(&mut talk, "mayhap_filters_over_capacity", "1");
        add(&mut talk, "seen", 1_400..8_000);
        wait_for(&mut talk, "mayhap_filters_over_half", "1");
        assert_eq!(talk.info("mayhap_filters_over_ten_times_target"), "1");
        assert!(talk.info("mayhap_worst_expected_fpr").parse::<f64>().unwrap() > 0.5);
        // In every database.
        talk.must(&["SELECT", "3"]);
        talk.must(&["MF.RESERVE", "seen", "KIND", "bloom", "CAPACITY", "1000", "FPR", "0.01"]);
        add(&mut talk, "seen", 0..1_400);
        wait_for(&mut talk, "mayhap_filters_over_capacity", "2");
        talk.must(&["SELECT", "0"]);
        talk.must(&["DEL", "seen"]);
        wait_for(&mut talk, "mayhap_filters_over_capacity", "1");
        let log = host.log();
        let lines: Vec<&str> =
            log.lines().filter(|line| line.contains("expected false-positive rate")).collect();
        assert_eq!(lines.len(), 3, "{log}");
        assert!(lines.iter().all(|line| line.contains("mayhap: \"seen\"")), "{log}");
        assert!(lines[0].contains("above its target") && lines[1].contains("more than one half"), "{log}");
    }
}

/// A filter of a gigabyte: only a limited part of its bits is read, so other clients of the single-threaded
/// host wait for some milliseconds.
#[test]
fn info_of_a_huge_filter_is_fast() {
    for host in hosts(&[]) {
        let mut talk = host.talk();
        let huge = "MF.RESERVE huge KIND bloom CAPACITY 900000000 FPR 0.01";
        if talk.ask(huge).is_refused() {
            // This machine does not have that much memory.
            continue;
        }
        add(&mut talk, "huge", 0..1_000);
        // The fastest of several attempts: other programs on the machine may slow down any one of them.
        let mut fastest = Duration::MAX;
        for _ in 0..5 {
            let begun = Instant::now();
            talk.must(&["MF.INFO", "huge"]);
            fastest = fastest.min(begun.elapsed());
        }
        eprintln!("MF.INFO of a gigabyte: {fastest:?}");
        assert!(fastest < Duration::from_millis(100), "{fastest:?}");
    }
}
