//! The pages people read are true: commands in them run, paths in them exist.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

fn page(name: &str) -> String {
    let path = root().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The commands of all `sh` blocks of a page; those of `sh no-run` blocks apart.
fn commands(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut run, mut not_run, mut block) = (Vec::new(), Vec::new(), None);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut block) {
            (Some("sh"), None) => block = Some(&mut run),
            (Some("sh no-run"), None) => block = Some(&mut not_run),
            (Some(_), Some(_)) => block = None,
            (None, Some(commands)) => {
                let command = line.split(" #").next().unwrap_or_default().trim();
                commands.extend((!command.is_empty()).then(|| command.to_owned()));
            }
            _ => {}
        }
    }
    (run, not_run)
}

/// `cargo run --release -- …` is run with the program already built, and nothing else is allowed in a block that runs.
#[test]
fn every_command_of_the_readme_runs() {
    let (run, not_run) = commands(&page("README.md"));
    assert!(run.len() >= 5, "only {} commands found", run.len());
    assert_eq!(not_run, ["./test"], "what is not run here is the test command itself");
    for command in run {
        let arguments = command
            .strip_prefix("cargo run --release -- ")
            .unwrap_or_else(|| panic!("{command}: not a command of this program"));
        let output =
            Command::new(env!("CARGO_BIN_EXE_mayhap")).args(arguments.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{command} says nothing");
    }
}

/// Words in backticks that look like a path of this tree.
fn paths(page: &str) -> Vec<&str> {
    let words = page.split('`').skip(1).step_by(2);
    words.filter(|word| ["crates/", "bench", "docs"].iter().any(|start| word.starts_with(start))).collect()
}

#[test]
fn every_path_of_the_architecture_exists() {
    let page = page("ARCHITECTURE.md");
    let paths = paths(&page);
    assert!(paths.len() > 30, "only {} paths found", paths.len());
    for path in paths {
        assert!(root().join(path).exists(), "ARCHITECTURE.md names {path}, which is not there");
    }
}

#[test]
fn every_link_leads_somewhere() {
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/guide.md", "docs/format.md"] {
        let text = page(name);
        let folder = root().join(name).parent().expect("a page is in a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(
                link.starts_with("http") || folder.join(link).exists(),
                "{name} links to {link}, which is not there"
            );
        }
    }
}
