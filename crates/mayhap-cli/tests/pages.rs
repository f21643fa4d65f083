//! The documentation is correct: its commands run, its outputs are those of the program, its paths exist.
//!
//! Every `sh` block of a page runs in bash, in order, in an initially empty directory, with the program in the path. A `text`
//! block right after an `sh` block shows the output: each of its lines must appear, in this order. A line `…` stands for any
//! number of lines, and `…` within a line for any text, such as a time. `sh by-hand` blocks are for readers only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

fn page(name: &str) -> String {
    let path = root().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Markdown pages below a directory, by their path from the root.
fn pages_below(folder: &str) -> Vec<String> {
    let mut pages: Vec<_> = fs::read_dir(root().join(folder))
        .unwrap_or_else(|error| panic!("{folder}: {error}"))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    pages.sort();
    pages
}

/// A block that runs, and the output that the page shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    script: String,
    said: Option<String>,
}

/// The blocks of a page that run, and those that do not.
fn blocks(page: &str) -> (Vec<Block>, Vec<String>) {
    let (mut run, mut by_hand): (Vec<Block>, Vec<String>) = (Vec::new(), Vec::new());
    let mut lines = page.lines();
    // Whether only empty lines followed the last block that runs.
    let mut just_run = false;
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            just_run &= line.trim().is_empty();
            continue;
        };
        let text: String =
            lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        match (kind, run.last_mut()) {
            ("sh", _) => run.push(Block { script: text, said: None }),
            ("text", Some(block)) if just_run => block.said = Some(text),
            ("sh by-hand", _) => by_hand.push(text.trim().to_owned()),
            _ => {}
        }
        just_run = kind == "sh";
    }
    (run, by_hand)
}

/// A directory that contains only `bin`, where `mayhap` is this program and `cargo` runs it.
fn scratch(page: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages").join(page.replace('/', "-"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::create_dir_all(folder.join("work")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mayhap"), folder.join("bin/mayhap")).unwrap();
    // A page writes `cargo run --release -- …` before the program is installed; here it is built already.
    let cargo = "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || { echo \"not run here: cargo $*\" >&2; exit 2; }\nshift 3\nexec mayhap \"$@\"\n";
    fs::write(folder.join("bin/cargo"), cargo).unwrap();
    fs::set_permissions(folder.join("bin/cargo"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    folder
}

/// Runs the blocks of a page. Returns the first difference between a block and the page.
fn run_page(name: &str, page: &str) -> Result<usize, String> {
    let folder = scratch(name);
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let (blocks, _) = blocks(page);
    for block in &blocks {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{}", block.script)])
            .current_dir(folder.join("work"))
            .env("PATH", &path)
            .env_remove("COLUMNS")
            .env_remove("CLICOLOR_FORCE")
            .output()
            .expect("bash starts");
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let shown = format!("{name}:\n{}\nsaid:\n{said}", block.script);
        if !output.status.success() {
            return Err(format!("{shown}and failed with {}", output.status));
        }
        let mut lines = said.lines();
        for expected in block.said.iter().flat_map(|said| said.lines()).filter(|line| line.trim() != "…") {
            if !lines.any(|line| is_like(line.trim_end(), expected.trim_end())) {
                return Err(format!("{shown}but not, or not in this order: {expected:?}"));
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    Ok(blocks.len())
}

/// Returns `true` if `line` matches the page, where `…` matches any text.
fn is_like(line: &str, expected: &str) -> bool {
    let Some((first, others)) = expected.split_once('…') else { return line == expected };
    let Some(rest) = line.strip_prefix(first) else { return false };
    // For each place where the next part matches, the rest must match, too.
    (0..=rest.len()).filter(|&at| rest.is_char_boundary(at)).any(|at| is_like(&rest[at..], others))
}

fn run(name: &str, fewest: usize) {
    let ran = run_page(name, &page(name)).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(ran >= fewest, "{name} has only {ran} blocks that run");
}

#[test]
fn every_command_of_the_readme_runs() {
    for readme in ["README.md", "README.zh-CN.md"] {
        run(readme, 3);
        // A server does not end, and tests do not run themselves.
        let by_hand = blocks(&page(readme)).1;
        let first: Vec<&str> = by_hand.iter().filter_map(|block| block.split("  ").next()).collect();
        assert_eq!(first, ["cargo run --release -- serve", "./test"]);
    }
}

#[test]
fn every_command_of_the_manual_runs() {
    run("docs/program.md", 20);
}

#[test]
fn every_command_of_the_guide_runs() {
    let pages = pages_below("docs/guide");
    assert_eq!(pages.len(), 14, "{pages:?}");
    for page in pages {
        run(&page, 2);
    }
}

/// The first line of a Chinese page: the English page, and the version of it that the Chinese page follows.
fn english_of(page: &str) -> Option<(&str, &str)> {
    page.lines().next()?.strip_prefix("<!-- english: ")?.strip_suffix(" -->")?.split_once(' ')
}

/// The Rust blocks of a page.
fn rust_blocks(page: &str) -> Vec<&str> {
    page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Chinese pages show the blocks of their English page, which run, and are not older than it.
#[test]
fn every_chinese_page_is_current_and_shows_the_same_blocks() {
    let cases = pages_below("docs/zh/guide");
    let expected: Vec<_> =
        pages_below("docs/guide").iter().map(|name| name.replace("docs/", "docs/zh/")).collect();
    assert_eq!(cases, expected);
    let others = ["README.zh-CN.md".to_owned()].into_iter().chain(pages_below("docs/zh"));
    for name in others.chain(cases.clone()) {
        let text = page(&name);
        let (english, state) =
            english_of(&text).unwrap_or_else(|| panic!("{name} does not name its English page and version"));
        let hash = Sha256::digest(page(english).as_bytes());
        let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            state, hash,
            "{name} is older than {english}: bring it up to date, then write {hash} in its first line"
        );
    }
    for name in cases {
        let text = page(&name);
        let (english, _) = english_of(&text).expect("seen above");
        assert_eq!(blocks(&text).0, blocks(&page(english)).0, "{name} and {english} show different blocks");
    }
    for name in ["README.zh-CN.md", "docs/zh/guide.md", "docs/zh/how-filters-work.md"] {
        let text = page(name);
        let (english, _) = english_of(&text).expect("seen above");
        let (ours, theirs) = (rust_blocks(&text), page(english));
        assert_eq!(ours, rust_blocks(&theirs), "{name} and {english} show different Rust code");
    }
}

/// The checks of this file find errors in pages.
#[test]
fn an_incorrect_page_is_detected() {
    let wrong = |page: &str| run_page("wrong.md", page).unwrap_err();
    assert_eq!(run_page("right.md", "```sh\necho a; echo b\n```\n\n```text\na\n…\nb\n```\n"), Ok(1));
    assert!(wrong("```sh\nmayhap plan --no-such-option\n```\n").contains("and failed with"));
    assert!(wrong("```sh\nfalse | cat\n```\n").contains("and failed with"), "pipes, too");
    assert!(wrong("```sh\necho a\n```\n```text\nb\n```\n").contains("but not"));
    assert!(wrong("```sh\necho a; echo b\n```\n```text\nb\na\n```\n").contains("not in this order"));
    assert_eq!(
        run_page("apart.md", "```sh\necho a\n```\nNow this:\n```text\nb\n```\n"),
        Ok(1),
        "only what follows at once"
    );
    assert_eq!(
        run_page("made.md", "```sh\nprintf 'x\\n' > x.txt\n```\n```sh\ncat x.txt\n```\n```text\nx\n```\n"),
        Ok(2)
    );
}

/// No page names a command that does not exist.
#[test]
fn every_named_command_exists() {
    let help = Command::new(env!("CARGO_BIN_EXE_mayhap")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let pages =
        ["README.md", "README.zh-CN.md", "docs/guide.md", "docs/program.md", "docs/how-filters-work.md"]
            .map(str::to_owned)
            .into_iter()
            .chain(pages_below("docs/guide"))
            .chain(pages_below("docs/zh"))
            .chain(pages_below("docs/zh/guide"));
    for name in pages {
        let text = page(&name);
        let scripts: String =
            blocks(&text).0.into_iter().map(|block| format!("\n{}", block.script)).collect();
        for after in text.split("`mayhap ").skip(1).chain(scripts.split("\nmayhap ").skip(1)) {
            let verb: String = after.chars().take_while(char::is_ascii_lowercase).collect();
            assert!(
                verb.is_empty() || verbs.contains(&verb.as_str()),
                "{name} names mayhap {verb}, which does not exist"
            );
        }
    }
}

/// Words in backticks that look like a path of this repository.
fn paths(page: &str) -> Vec<&str> {
    let words = page.split('`').skip(1).step_by(2);
    words
        .filter(|word| ["crates/", "bench", "docs", "examples/"].iter().any(|start| word.starts_with(start)))
        .filter(|word| !word.contains(' '))
        .collect()
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
fn every_link_has_a_target() {
    let pages = [
        "README.md",
        "README.zh-CN.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/guide.md",
        "docs/how-filters-work.md",
        "docs/format.md",
        "docs/program.md",
        "docs/server.md",
        "docs/module.md",
        "docs/remote.md",
        "docs/remote-java.md",
    ];
    let folders = ["docs/guide", "docs/zh", "docs/zh/guide"].map(pages_below);
    for name in pages.into_iter().map(str::to_owned).chain(folders.into_iter().flatten()) {
        let text = page(&name);
        let folder = root().join(&name).parent().expect("a page is in a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            assert!(
                link.starts_with("http") || file.is_empty() || folder.join(file).exists(),
                "{name} links to {link}, which is not there"
            );
        }
    }
}
