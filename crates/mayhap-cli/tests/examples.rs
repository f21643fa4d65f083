//! The scripts in `examples/` do what they say: each checks its own claims and fails where one does not hold.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, thread};

/// How many items, small enough for all scripts to take seconds. They are made for more.
const ITEMS: &str = "20000";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

fn scripts() -> Vec<PathBuf> {
    let folder = root().join("examples");
    let mut scripts: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    scripts
}

/// Runs a script with this program in its path, in a folder where it leaves nothing.
fn run(script: &Path, program: &str) -> (bool, String) {
    let name = script.file_stem().unwrap().to_str().unwrap();
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples").join(name).join(program.replace('/', "-"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let output = Command::new("bash")
        .arg(script)
        .env("MAYHAP", program)
        .env("ITEMS", ITEMS)
        .env("TMPDIR", &folder)
        .current_dir(&folder)
        .output()
        .expect("bash starts");
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{name} leaves {left:?} behind");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn every_example_keeps_its_word() {
    let scripts = scripts();
    assert_eq!(scripts.len(), 12, "{scripts:?}");
    // Two at a time: most of what they do is waiting for one another's pipes.
    for pair in scripts.chunks(2) {
        thread::scope(|scope| {
            for script in pair {
                scope.spawn(move || {
                    let (good, said) = run(script, env!("CARGO_BIN_EXE_mayhap"));
                    assert!(good, "{} failed:\n{said}", script.display());
                    assert!(said.lines().count() >= 3, "{} tells no story:\n{said}", script.display());
                });
            }
        });
    }
}

/// A program that finds nothing, and one that finds everything, are noticed by every script.
#[test]
fn no_example_is_satisfied_by_a_program_that_does_nothing() {
    for script in scripts() {
        let (good, said) = run(&script, "true");
        assert!(!good, "{} is satisfied by `true`:\n{said}", script.display());
    }
}

#[test]
fn every_example_is_told_about_and_explains_itself() {
    let guide: String = fs::read_dir(root().join("docs/guide"))
        .expect("docs/guide")
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let index = fs::read_to_string(root().join("docs/guide.md")).unwrap();
    for script in scripts() {
        let name = script.file_name().unwrap().to_str().unwrap();
        assert!(guide.contains(&format!("examples/{name}")), "no page of the guide is about {name}");
        assert!(index.contains(name), "docs/guide.md does not list {name}");
        let text = fs::read_to_string(&script).unwrap();
        for part in [
            "#!/usr/bin/env bash\n",
            "\nset -euo pipefail\n",
            "# What to look at: ",
            "# Uses `",
            "ITEMS:-",
            "MAYHAP:-mayhap",
            "mktemp -d",
        ] {
            assert!(text.contains(part), "{name} lacks {part:?}");
        }
    }
}
