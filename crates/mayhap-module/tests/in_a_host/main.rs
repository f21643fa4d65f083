//! The module in real hosts: Debian's Redis, and all other programs named in `MAYHAP_TEST_HOSTS`.

mod beside_server;
mod cluster;
mod commands;
mod commit;
mod files;
mod keyed;
mod memory;
mod overfull;
mod payloads;
mod replica;
mod script;
mod values;
mod workload;

use mayhap_testkit::host::{Host, HostOptions, Talk, Wire, programs};

/// Starts a host of each available program, with the module and these words of configuration.
fn hosts(words: &[&str]) -> impl Iterator<Item = Host> {
    let options = HostOptions::new().our_module(&[]).words(words);
    programs().into_iter().filter_map(move |program| Host::start(&options.clone().program(program)))
}

/// Starts one host, of the program that is always available.
fn host(words: &[&str]) -> Option<Host> {
    Host::start(&HostOptions::new().our_module(&[]).words(words))
}

/// Returns the digest of every name's value, computed by the host.
fn digests(talk: &mut Talk) -> Vec<(String, String)> {
    let mut names: Vec<String> = talk.ask("KEYS *").list().iter().map(Wire::text).collect();
    names.sort();
    let digest = |name: String| {
        let said = talk.must(&["DEBUG", "DIGEST-VALUE", &name]).list()[0].text();
        (name, said)
    };
    names.into_iter().map(digest).collect()
}

/// Returns the host's value of one of our settings.
fn setting(talk: &mut Talk, name: &str) -> String {
    match talk.must(&["CONFIG", "GET", &format!("*{name}")]) {
        Wire::Map(pairs) => pairs[0].0.text(),
        pairs => pairs.list()[0].text(),
    }
}

/// Returns the version that the host reports.
fn version(talk: &mut Talk) -> String {
    talk.info("redis_version")
}
