//! The layouts of Java programs on a real Redis: Redisson's, and Guava's by hand.

mod guava;
mod redisson;
mod swap;

use mayhap_remote::{Answer, Link, LinkOptions};
use mayhap_testkit::host::{Host, HostOptions, Talk};
use mayhap_testkit::vectors::Given;

/// A server, and two ways to talk to it. `None` if no server program is installed.
async fn server() -> Option<(Host, Link, Talk)> {
    let host = Host::start(&HostOptions::new())?;
    let link = Link::open([host.url()], LinkOptions::default()).await.unwrap();
    let talk = host.talk();
    Some((host, link, talk))
}

/// The correct answer of a filter for every probe.
fn expected(probes: &[(Given, bool)]) -> Vec<Answer> {
    probes.iter().map(|&(_, there)| if there { Answer::Maybe } else { Answer::No }).collect()
}

fn only_items(probes: &[(Given, bool)]) -> Vec<Given> {
    probes.iter().map(|(item, _)| item.clone()).collect()
}
