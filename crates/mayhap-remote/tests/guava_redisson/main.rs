//! The layouts that programs in Java keep in a Redis, on a real one: Redisson's, and Guava's by hand.

mod cases;
mod guava;
mod redisson;
mod swap;

use mayhap_remote::{Answer, Link, LinkOptions};
use mayhap_testkit::host::{Host, HostOptions, Talk};

/// A server, and both ways to talk to it. `None`: there is no such program here.
async fn server() -> Option<(Host, Link, Talk)> {
    let host = Host::start(&HostOptions::new())?;
    let link = Link::open([host.url()], LinkOptions::default()).await.unwrap();
    let talk = host.talk();
    Some((host, link, talk))
}

/// What a filter says that is right for every probe.
fn expected(probes: &[(cases::Given, bool)]) -> Vec<Answer> {
    probes.iter().map(|&(_, there)| if there { Answer::Mayhap } else { Answer::Absent }).collect()
}

fn only_items(probes: &[(cases::Given, bool)]) -> Vec<cases::Given> {
    probes.iter().map(|(item, _)| item.clone()).collect()
}
