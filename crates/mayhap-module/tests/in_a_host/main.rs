//! The module in real hosts: Debian's Redis, and whatever other programs `MAYHAP_TEST_HOSTS` names.

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

use std::path::PathBuf;

use mayhap_testkit::host::{Host, HostOptions, Talk, Wire, programs};

/// A host of each program that is there, with the module and these words of configuration.
fn hosts(words: &[&str]) -> impl Iterator<Item = Host> {
    let options = HostOptions::new().our_module(&[]).words(words);
    programs().into_iter().filter_map(move |program| Host::start(&options.clone().program(program)))
}

/// One host, of the program that is always there.
fn host(words: &[&str]) -> Option<Host> {
    Host::start(&HostOptions::new().our_module(&[]).words(words))
}

/// What every name holds, by the host's own checksums of it.
fn digests(talk: &mut Talk) -> Vec<(String, String)> {
    let mut names: Vec<String> = talk.ask("KEYS *").list().iter().map(Wire::text).collect();
    names.sort();
    let digest = |name: String| {
        let said = talk.must(&["DEBUG", "DIGEST-VALUE", &name]).list()[0].text();
        (name, said)
    };
    names.into_iter().map(digest).collect()
}

/// What the host calls a setting of ours.
fn setting(talk: &mut Talk, name: &str) -> String {
    match talk.must(&["CONFIG", "GET", &format!("*{name}")]) {
        Wire::Map(pairs) => pairs[0].0.text(),
        pairs => pairs.list()[0].text(),
    }
}

/// The version of a host, as it says itself.
fn version(talk: &mut Talk) -> String {
    talk.info("redis_version")
}

/// A file of the library's test data.
fn vector(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../mayhap-formats/tests/vectors/redisbloom")
        .join(name);
    std::fs::read(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}
