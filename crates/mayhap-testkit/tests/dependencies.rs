//! Checks that every dependency has a licence and a source that `deny.toml` allows. It covers all crates of `Cargo.lock` that this
//! system compiles.
//!
//! `just deny` runs `cargo deny`, which checks more (advisories, the texts of licence files). Compiling `cargo deny` takes longer than
//! everything else that `./test` installs, so `./test` runs these checks instead. They take a second.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// The allowed source of crates.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

/// Runs a command that must succeed, and returns its standard output.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns all crates that this system compiles, with all features.
fn crates() -> Vec<Value> {
    let rustc = said(Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV"));
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["metadata", "--format-version", "1", "--all-features", "--offline"]);
    let told = said(cargo.args(["--filter-platform", host]));
    let mut told: Value = serde_json::from_str(&told).expect("JSON of cargo");
    let Value::Array(crates) = told["packages"].take() else { panic!("cargo metadata lists no packages") };
    crates
}

/// Returns the quoted texts of a list in `deny.toml`.
fn list<'t>(text: &'t str, start: &str) -> BTreeSet<&'t str> {
    let list = text.split_once(start).and_then(|(_, rest)| rest.split_once(']')).expect("a list").0;
    list.split('"').skip(1).step_by(2).collect()
}

/// Returns the licences that `deny.toml` allows, and the crate and the licence of its one exception.
fn allowed(rules: &str) -> (BTreeSet<&str>, (&str, &str)) {
    let exception = rules.split_once("exceptions = [{ allow = [\"").expect("an exception").1;
    let (license, rest) = exception.split_once('"').expect("its licence");
    let name = rest.split_once("crate = \"").and_then(|(_, rest)| rest.split_once('"')).expect("its crate").0;
    (list(rules, "\nallow = ["), (name, license))
}

/// Returns whether the allowed licences satisfy this licence expression (`MIT OR Apache-2.0`, `(MIT OR ISC) AND Zlib`, `MIT/ISC`).
fn holds(expression: &str, allowed: &impl Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = any(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "not a licence expression: {expression}");
    result
}

fn any(words: &[&str], at: &mut usize, allowed: &impl Fn(&str) -> bool) -> bool {
    let mut result = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        result |= all(words, at, allowed);
    }
    result
}

fn all(words: &[&str], at: &mut usize, allowed: &impl Fn(&str) -> bool) -> bool {
    let mut result = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        result &= one(words, at, allowed);
    }
    result
}

fn one(words: &[&str], at: &mut usize, allowed: &impl Fn(&str) -> bool) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let result = any(words, at, allowed);
        *at += 1;
        return result;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed(&format!("{word} WITH {exception}"));
    }
    allowed(word)
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let rules = fs::read_to_string(root().join("deny.toml")).unwrap();
    let (licenses, (exception, extra)) = allowed(&rules);
    assert!(licenses.contains("MIT") && licenses.len() > 5, "{licenses:?}");
    let mut checked = 0;
    for one in crates() {
        let name = one["name"].as_str().expect("a name");
        let license = one["license"].as_str().unwrap_or_else(|| panic!("{name} has no licence"));
        let allowed = |word: &str| licenses.contains(word) || (name == exception && word == extra);
        assert!(holds(license, &allowed), "{name} has the licence {license}, which deny.toml does not allow");
        checked += 1;
    }
    assert!(checked > 200, "only {checked} crates");
}

#[test]
fn every_dependency_is_from_crates_io_and_has_a_version() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let sources: Vec<_> = lock.lines().filter_map(|line| line.strip_prefix("source = ")).collect();
    assert!(sources.len() > 200, "only {} sources", sources.len());
    let other = sources.iter().find(|source| source.trim_matches('"') != CRATES_IO);
    assert_eq!(other, None, "a source that deny.toml does not allow");
    for ours in crates().iter().filter(|one| one["source"].is_null()) {
        for needed in ours["dependencies"].as_array().into_iter().flatten() {
            let any_version = needed["req"] == "*" && needed["path"].is_null();
            assert!(!any_version, "{} needs any version of {}", ours["name"], needed["name"]);
        }
    }
}

#[test]
fn a_licence_that_is_not_allowed_is_found() {
    let mit = |word: &str| word == "MIT" || word == "Apache-2.0 WITH LLVM-exception";
    for fine in
        ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND MIT", "Apache-2.0 WITH LLVM-exception"]
    {
        assert!(holds(fine, &mit), "{fine}");
    }
    for wrong in
        ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "GPL-3.0 OR (MIT AND ISC)", "MIT WITH LLVM-exception"]
    {
        assert!(!holds(wrong, &mit), "{wrong}");
    }
}
