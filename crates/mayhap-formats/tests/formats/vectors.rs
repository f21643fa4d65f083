//! The cases in `tests/vectors`.

use std::path::{Path, PathBuf};

pub(crate) use mayhap_testkit::vectors::*;

/// A case or a test names every file.
#[test]
fn every_file_is_read_by_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut sources = String::new();
    // The library's own tests read some of them.
    for folder in [tests.clone(), tests.join("formats"), tests.join("../../mayhap/tests")] {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.extension().is_some_and(|extension| extension == "rs") {
                sources += &std::fs::read_to_string(entry).unwrap();
            }
        }
    }
    sources += &std::fs::read_to_string(tests.join("../../mayhap/src/gcs/rice.rs")).unwrap();
    let mut counted = 0;
    for folder in std::fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let names = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
        let tables: String = files
            .iter()
            .filter(|file| names(file).contains(".json"))
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect();
        let folder_name = names(&folder);
        assert!(sources.contains(&format!("{folder_name}/")), "no test reads the folder {folder_name}");
        for name in files.iter().map(names).filter(|name| name != "README.md") {
            let stem = name.trim_end_matches(".json").trim_end_matches("_scandump");
            assert!(
                sources.contains(&name) || tables.contains(&name) || sources.contains(stem),
                "no test reads {folder_name}/{name}"
            );
            counted += 1;
        }
    }
    println!("{counted} files, each read by a test");
}
