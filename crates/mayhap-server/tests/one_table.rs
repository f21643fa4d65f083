//! Facts about commands are only in the table of commands: no string in the sources of server and engine, outside
//! tests, is the name of a command.
//!
//! A separate list of names becomes outdated. Such a list claimed that `CF.COMPACT` changes nothing, and its reply
//! was sent before the log had the change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mayhap_command::table;

/// Names of commands that mean something else in these files.
#[rustfmt::skip]
const OTHER_WORDS: &[(&str, &[&str], &str)] = &[
    ("mayhap-engine/src/commands/scan.rs", &["type"], "an option of SCAN"),
    ("mayhap-server/src/config.rs", &["get", "save", "set"], "subcommands of CONFIG, and a parameter"),
    ("mayhap-server/src/connection/turn.rs", &["GET"], "a method of HTTP"),
    ("mayhap-server/src/http/filters.rs", &["type"], "a field of an answer"),
    ("mayhap-server/src/http/server.rs", &["type"], "a field of an answer"),
    ("mayhap-server/src/logging.rs", &["debug", "info"], "levels of the server's log"),
    ("mayhap-server/src/machine.rs", &["memory"], "a controller of Linux"),
    ("mayhap-server/src/metrics.rs", &["command", "memory", "time", "type"], "labels of metrics"),
    ("mayhap-server/src/saving.rs", &["save"], "the name of a thread"),
    ("mayhap-server/src/session.rs", &["command"], "an event of LATENCY"),
    ("mayhap-server/src/session/access.rs", &["keys", "reset", "save"], "subcommands of ACL, and a field"),
    ("mayhap-server/src/session/clients.rs", &["info", "type"], "subcommands and options of CLIENT"),
    ("mayhap-server/src/session/cluster.rs", &["info"], "a subcommand of CLUSTER"),
    ("mayhap-server/src/session/commands.rs", &["info", "module", "readonly", "type"], "subcommands, fields and flags of COMMAND"),
    ("mayhap-server/src/session/handshake.rs", &["RESET", "auth", "role"], "an option and a field of HELLO, a reply"),
    ("mayhap-server/src/session/operate.rs", &["save"], "an option of SHUTDOWN"),
    ("mayhap-server/src/session/slow.rs", &["get", "reset"], "subcommands of SLOWLOG and LATENCY"),
    ("mayhap-server/src/settings/table.rs", &["COMMAND"], "a placeholder in the help"),
    ("mayhap-server/src/users/category.rs", &["dump", "set"], "categories"),
    ("mayhap-server/src/users/refusals.rs", &["auth", "command", "multi", "object"], "fields and reasons of ACL LOG"),
    ("mayhap-server/src/users/user.rs", &["reset"], "a rule"),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Adds all source files below `folder` to `into`.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Returns the files of modules that are only compiled for tests: `#[cfg(test)]` followed by `mod name;`.
fn test_files(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "mod") => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let modules = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]").filter_map(|pair| {
        let name = pair[1].rsplit_once("mod ")?.1.strip_suffix(';')?;
        Some([folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")])
    });
    modules.flatten().collect()
}

/// Returns the string literals outside comments, with their escapes unchanged. It stops at the file's unit tests.
fn literals(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        // A character literal with a quote does not begin a string.
        let line = line.replace("'\"'", "").replace("b'\\\"'", "").replace("'\\\"'", "");
        let mut rest = line.as_str();
        while let Some((before, after)) = rest.split_once('"') {
            if before.contains("// ") {
                break;
            }
            let mut end = 0;
            let bytes = after.as_bytes();
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            let Some(literal) = after.get(..end) else { break };
            found.push(literal.to_owned());
            rest = after.get(end + 1..).unwrap_or_default();
        }
    }
    found
}

/// Returns whether the literal is a command, or a command and its subcommand.
fn is_command(literal: &str) -> bool {
    let name = literal.split_once('|').map_or(literal, |(name, _)| name);
    let is_one_case = name == name.to_lowercase() || name == name.to_uppercase();
    is_one_case && table::find(name.as_bytes()).is_some()
}

#[test]
fn no_command_is_named_outside_the_table() {
    let (mut files, mut of_tests) = (Vec::new(), Vec::new());
    for name in ["mayhap-engine", "mayhap-server"] {
        sources(&crates().join(name).join("src"), &mut files);
    }
    assert!(files.len() > 80, "{} files", files.len());
    let texts: Vec<(PathBuf, String)> =
        files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect();
    for (path, text) in &texts {
        of_tests.extend(test_files(path, text));
    }
    assert!(of_tests.iter().any(|path| path.ends_with("replay/model.rs")), "{of_tests:?}");
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (path, text) in texts.iter().filter(|(path, _)| !of_tests.contains(path)) {
        let file = path.strip_prefix(crates()).unwrap().to_str().unwrap();
        for literal in literals(text).into_iter().filter(|literal| is_command(literal)) {
            match OTHER_WORDS.iter().find(|(of, words, _)| *of == file && words.contains(&literal.as_str())) {
                Some((of, words, _)) => {
                    seen.insert((*of, *words.iter().find(|word| **word == literal).unwrap()));
                }
                None => wrong.push(format!("{file}: {literal:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "facts about commands belong into their rows: {wrong:#?}");
    let all = OTHER_WORDS.iter().flat_map(|(file, words, _)| words.iter().map(move |word| (*file, *word)));
    let unused: Vec<_> = all.filter(|word| !seen.contains(word)).collect();
    assert!(unused.is_empty(), "no longer in these files: {unused:?}");
}

#[test]
fn the_scan_finds_what_it_looks_for() {
    let text = r#"
        // "bf.add" in a comment
        match command.name { "cf.compact" | "config|set" => b"EXEC", _ => "a \" quote" } // "del"
        let quote = '"'; let name = "mf.dump";
#[cfg(test)]
mod tests {
    "bf.add"
"#;
    let found: Vec<String> = literals(text).into_iter().filter(|literal| is_command(literal)).collect();
    assert_eq!(found, ["cf.compact", "config|set", "EXEC", "mf.dump"]);
    assert!(!is_command("Memory") && !is_command("seen") && is_command("memory") && is_command("MEMORY"));
}
