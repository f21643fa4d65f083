//! The programs in `examples/` work: each checks its own claims and fails if one does not hold.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, thread};

use mayhap_testkit::real::find;

/// The number of items, small enough that each script takes seconds. By default they use more.
const ITEMS: &str = "20000";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

fn scripts() -> Vec<PathBuf> {
    let folder = root().join("examples");
    let mut scripts: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.retain(|path| path.is_file());
    scripts.sort();
    scripts
}

/// The examples that use the server with a real client. `local_server.py` is shared by them.
const WITH_A_CLIENT: [&str; 2] = ["cache_penetration", "feed_tiers"];

/// Runs a script with this program in its path, in a directory in which it must leave nothing.
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
    assert!(left.is_empty(), "{name} leaves files: {left:?}");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn every_example_passes() {
    let scripts = scripts();
    assert_eq!(scripts.len(), 12, "{scripts:?}");
    // Two at a time, because they mostly wait for each other's pipes.
    for pair in scripts.chunks(2) {
        thread::scope(|scope| {
            for script in pair {
                scope.spawn(move || {
                    let (good, said) = run(script, env!("CARGO_BIN_EXE_mayhap"));
                    assert!(good, "{} failed:\n{said}", script.display());
                    assert!(said.lines().count() >= 3, "{} prints no story:\n{said}", script.display());
                });
            }
        });
    }
}

#[test]
fn every_example_with_a_client_passes() {
    let Some(python) = find("MAYHAP_TEST_PYTHON", "python3 with redis") else { return };
    let folder = root().join("examples/python");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "py"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "local_server")
        .collect();
    names.sort();
    assert_eq!(names, WITH_A_CLIENT);
    for name in WITH_A_CLIENT {
        let script = folder.join(format!("{name}.py"));
        let run = |program: &str| {
            let mut command = Command::new(&python);
            command.arg("-B").arg(&script).env("MAYHAP", program).env("ITEMS", ITEMS);
            command.output().expect("python starts")
        };
        let output = run(env!("CARGO_BIN_EXE_mayhap"));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.lines().count() >= 3, "{name} prints no story:\n{said}");
        assert!(!run("false").status.success(), "{name} is satisfied by a server that does not start");
    }
}

/// Every script detects a program that finds nothing, and one that finds everything.
#[test]
fn every_example_detects_a_program_that_does_nothing() {
    for script in scripts() {
        let (good, said) = run(&script, "true");
        assert!(!good, "{} is satisfied by `true`:\n{said}", script.display());
    }
}

#[test]
fn every_example_is_listed_and_explains_itself() {
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
