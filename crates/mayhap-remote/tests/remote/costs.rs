//! The cost of lookups for the server.

use mayhap_remote::{Link, PlainFilter, Request};
use mayhap_testkit::host::{Host, HostOptions};

use super::support::{add_all, link, members, shard_key};

const ITEMS: u64 = 20_000;
const ROUNDS: usize = 7;
/// The number of probes of a filter with this rate whose bits are spread over the whole string.
const PROBES: u64 = 7;
const RATE: f64 = 0.01;

/// The CPU time that the server has used, in seconds.
fn cpu_secs(host: &Host) -> f64 {
    let mut talk = host.talk();
    let info = talk.must(&["INFO", "cpu"]).text();
    let field = |name: &str| {
        let value = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        value.trim().parse::<f64>().unwrap()
    };
    field("used_cpu_user:") + field("used_cpu_sys:")
}

/// One command for each probe, in the same kind of pipeline.
async fn by_getbit(link: &Link, key: &str, items: u64, bits: u64) {
    for from in (0..items).step_by(1000) {
        let requests = (from..from + 1000).flat_map(|item| {
            (0..PROBES).map(move |probe| {
                let bit = (item * PROBES + probe + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % bits;
                Request::read("GETBIT", key.as_bytes()).arg(bit)
            })
        });
        assert!(link.ask(requests.collect()).await.iter().all(Result::is_ok));
    }
}

/// A lookup costs at most a quarter of the CPU time of a `GETBIT` for each probe, in the same run.
#[tokio::test]
async fn a_lookup_costs_at_most_a_quarter_of_single_getbits() {
    let Some(host) = Host::start(&HostOptions::new()) else { return };
    let link = link(&host.url()).await;
    let filter = PlainFilter::create(&link, "seen", 1_000_000, RATE).await.unwrap();
    add_all(filter.as_sharded(), &members(0..ITEMS)).await;
    let bits = filter.info().await.unwrap().measures().plain().unwrap().bytes() * 8;
    let key = shard_key(&host, "{seen:0000}:g1");
    let items = members(0..ITEMS);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let begin = cpu_secs(&host);
        for batch in items.chunks(1000) {
            assert!(filter.may_contain(batch).await.error().is_none());
        }
        let middle = cpu_secs(&host);
        by_getbit(&link, &key, ITEMS, bits).await;
        let end = cpu_secs(&host);
        ratios.push((middle - begin) / (end - middle));
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ROUNDS / 2];
    println!("CPU of a lookup, as a fraction of {PROBES} GETBITs: {median:.3} (all rounds: {ratios:.3?})");
    assert!(median <= 0.25, "{ratios:?}");
}
