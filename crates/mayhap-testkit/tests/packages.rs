//! The published crates are complete: this test packages them as for crates.io, unpacks them, and uses them in a program.
//!
//! It covers all crates of the workspace without `publish = false`. `./test` compiles the library from its package and runs its
//! documentation tests. `just packages` compiles every package and runs all documentation tests, which takes minutes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

/// The maximum size of a compressed package. Our test data would exceed it.
const MOST_BYTES: u64 = 1 << 20;

/// A user's program.
const PROGRAM: &str = r#"
use mayhap::{Bloom, file};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("no path")?;
    let mut seen = Bloom::for_capacity(1_000, 0.01, 7)?;
    assert!(seen.insert("ada"));
    file::save(&seen, &path)?;
    let opened: Bloom = file::open(&path)?;
    println!("ada {} bob {}", opened.may_contain("ada"), opened.may_contain("bob"));
    Ok(())
}
"#;

/// A crate as `cargo metadata` describes it.
struct Published {
    name: String,
    version: String,
    metadata: Value,
    /// The `Cargo.toml` of its archive, set after unpacking.
    manifest: String,
}

impl Published {
    /// Returns the folder in its archive.
    fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Returns the crates of the workspace that it needs with a version. They must be published before it.
    fn needs(&self) -> impl Iterator<Item = &str> {
        let dependencies = self.metadata["dependencies"].as_array().into_iter().flatten();
        let ours = dependencies.filter(|needed| needed["path"].is_string() && needed["req"] != "*");
        ours.filter_map(|needed| needed["name"].as_str())
    }
}

/// The archives, unpacked.
struct Unpacked {
    crates: Vec<Published>,
    folder: PathBuf,
    archives: PathBuf,
}

static UNPACKED: LazyLock<Unpacked> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let mut crates = in_order(published());
    let mut package = cargo(&root(), &["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"]);
    package.arg("--target-dir").arg(folder.join("made"));
    package.args(crates.iter().flat_map(|one| ["-p", one.name.as_str()]));
    said(package);
    let (archives, unpacked) = (folder.join("made/package"), folder.join("unpacked"));
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked).unwrap();
    for one in &mut crates {
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(archives.join(format!("{}.crate", one.folder()))).arg("-C").arg(&unpacked);
        said(tar);
        one.manifest = fs::read_to_string(unpacked.join(one.folder()).join("Cargo.toml")).unwrap();
    }
    Unpacked { crates, folder: unpacked, archives }
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

fn cargo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).args(arguments);
    command
}

/// Runs a command that must succeed, and returns its standard output.
fn said(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Returns the crates of the workspace that are published on crates.io.
fn published() -> Vec<Published> {
    let told = said(cargo(&root(), &["metadata", "--no-deps", "--format-version", "1", "--offline"]));
    let mut told: Value = serde_json::from_str(&told).expect("JSON of cargo");
    let Value::Array(packages) = told["packages"].take() else { panic!("cargo metadata lists no packages") };
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    packages
        .into_iter()
        .filter(|package| package["publish"] != Value::Array(Vec::new()))
        .map(|metadata| Published {
            name: text(&metadata["name"]),
            version: text(&metadata["version"]),
            metadata,
            manifest: String::new(),
        })
        .collect()
}

/// Returns the crates in an order for publishing: each after the crates it needs.
fn in_order(mut waiting: Vec<Published>) -> Vec<Published> {
    let mut ordered: Vec<Published> = Vec::new();
    while !waiting.is_empty() {
        let ready =
            |one: &Published| one.needs().all(|name| ordered.iter().any(|before| before.name == name));
        let Some(next) = waiting.iter().position(ready) else {
            let left: Vec<_> =
                waiting.iter().map(|one| (&one.name, one.needs().collect::<Vec<_>>())).collect();
            panic!("these need each other, or a crate that is not published: {left:?}");
        };
        ordered.push(waiting.remove(next));
    }
    ordered
}

/// Creates a workspace of the unpacked crates and a program that uses them, as if they came from crates.io.
fn workspace() -> PathBuf {
    let Unpacked { crates, folder, .. } = &*UNPACKED;
    let patches: BTreeMap<_, _> = crates.iter().map(|one| (&one.name, one.folder())).collect();
    let patches: String =
        patches.iter().map(|(name, at)| format!("{name} = {{ path = \"{at}\" }}\n")).collect();
    let members: Vec<_> = crates.iter().map(Published::folder).chain(["program".to_owned()]).collect();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[patch.crates-io]\n{patches}\n[profile.dev]\ndebug = 0\n"
    );
    fs::create_dir_all(folder.join("program/src")).unwrap();
    fs::write(folder.join("program/src/main.rs"), PROGRAM).unwrap();
    let version = &crates.iter().find(|one| one.name == "mayhap").expect("the library").version;
    let program = format!(
        "[package]\nname = \"program\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n[dependencies]\nmayhap = \"{version}\"\n"
    );
    fs::write(folder.join("program/Cargo.toml"), program).unwrap();
    if !is_long() {
        // Otherwise cargo would compile the test dependencies of all crates to run one crate's documentation tests.
        for one in crates {
            let manifest = folder.join(one.folder()).join("Cargo.toml");
            fs::write(manifest, without_dev_dependencies(&one.manifest)).unwrap();
        }
    }
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    // Use the versions that are available offline.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder.clone()
}

/// Returns whether to compile every package, which takes minutes.
fn is_long() -> bool {
    std::env::var_os("MAYHAP_PACKAGES").is_some_and(|form| form == "all")
}

fn without_dev_dependencies(manifest: &str) -> String {
    let mut is_kept = true;
    let kept = manifest.split_inclusive('\n').filter(|line| {
        if line.starts_with('[') {
            is_kept = !line.starts_with("[dev-dependencies");
        }
        is_kept
    });
    kept.collect()
}

/// Runs documentation tests, and returns how many passed.
fn doc_tests(folder: &Path, arguments: &[&str]) -> u64 {
    let mut command = cargo(folder, &["test", "--doc", "--offline"]);
    command.args(arguments).arg("--target-dir").arg(folder.with_file_name("built"));
    let said = said(command);
    let results = said.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.map(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn every_package_says_what_it_is() {
    let license = |name: &str| fs::read(root().join(name)).unwrap();
    let (mit, apache) = (license("LICENSE-MIT"), license("LICENSE-APACHE"));
    assert!(UNPACKED.crates.len() >= 6, "the library, the program and what they need");
    for one in &UNPACKED.crates {
        let name = &one.name;
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(one.metadata[field].is_string(), "{name}: no {field}");
        }
        for (field, most) in [("keywords", 5), ("categories", 5)] {
            let count = one.metadata[field].as_array().map_or(0, Vec::len);
            assert!((1..=most).contains(&count), "{name}: {count} {field}");
        }
        let folder = UNPACKED.folder.join(one.folder());
        assert_eq!(fs::read(folder.join("LICENSE-MIT")).unwrap(), mit, "{name}");
        assert_eq!(fs::read(folder.join("LICENSE-APACHE")).unwrap(), apache, "{name}");
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(
            readme.contains("## When not to use it"),
            "{name}: README.md does not say when not to use it"
        );
        // A relative path does not work on crates.io.
        let broken = readme.split("](").skip(1).find(|link| !link.starts_with("https://"));
        assert_eq!(broken, None, "{name}: a link of README.md");
    }
}

#[test]
fn packages_are_small_and_need_nothing_of_the_workspace() {
    for one in &UNPACKED.crates {
        let name = &one.name;
        let archive = UNPACKED.archives.join(format!("{}.crate", one.folder()));
        let bytes = fs::metadata(&archive).unwrap().len();
        assert!(bytes <= MOST_BYTES, "{name}: {bytes} bytes; see `cargo package --list -p {name}`");
        let folder = UNPACKED.folder.join(one.folder());
        assert!(!folder.join("tests").exists(), "{name}: tests belong in `exclude`");
        for unpublished in ["mayhap-testkit", "mayhap-fuzz"] {
            let is_needed = one.manifest.contains(unpublished);
            assert!(!is_needed, "{name} needs {unpublished}: name it without a version");
        }
    }
}

/// Compiles the library from the unpacked archive, as a user's cargo does.
#[test]
fn a_program_that_uses_the_packaged_library_works() {
    let folder = workspace();
    let built = folder.with_file_name("built");
    let saved = folder.with_file_name("seen.mayhap");
    let mut run = cargo(&folder, &["run", "--offline", "--quiet", "-p", "program"]);
    run.arg("--target-dir").arg(&built).arg("--").arg(&saved);
    assert_eq!(said(run), "ada true bob false\n");
    let passed = doc_tests(&folder, &["-p", "mayhap"]);
    assert!(passed >= 40, "the packaged library has {passed} documentation tests");

    // Every package compiles, and its documentation tests pass.
    if is_long() {
        let mut check = cargo(&folder, &["check", "--offline", "--workspace", "--all-features"]);
        check.arg("--target-dir").arg(&built);
        said(check);
        let passed = doc_tests(&folder, &["--workspace", "--all-features"]);
        println!("{} packages compile; {passed} documentation tests passed", UNPACKED.crates.len());
    }
}
