//! A type's name says which type it is: no name is used twice in a crate for types that other modules see.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Names that may repeat, because a reader never meets two of them without their module.
const ALLOWED: [(&str, &str); 1] = [
    // Each command of the bench program has its arguments.
    ("bench", "Args"),
];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// The name of the type that `line` declares with a visibility, if it declares one.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let rest = rest.strip_prefix(' ')?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let words = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = words.iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

/// Names declared more than once in the files of a crate, with the places.
fn repeated(files: &[(PathBuf, String)]) -> Vec<(String, Vec<String>)> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, text) in files {
        for (number, line) in text.lines().enumerate() {
            if let Some(name) = declared(line) {
                places.entry(name).or_default().push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    places
        .into_iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| (name.to_owned(), places))
        .collect()
}

#[test]
fn no_visible_type_name_is_used_twice_in_a_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut crates = vec![root.join("bench")];
    crates.extend(fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path()));
    let (mut wrong, mut types) = (Vec::new(), 0);
    for folder in crates.iter().filter(|folder| folder.join("src").is_dir()) {
        let mut paths = Vec::new();
        rust_files(&folder.join("src"), &mut paths).unwrap();
        let files: Vec<_> = paths
            .into_iter()
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                (path.strip_prefix(&root).unwrap().to_owned(), text)
            })
            .collect();
        types += files.iter().flat_map(|(_, text)| text.lines()).filter_map(declared).count();
        let name = folder.file_name().unwrap().to_str().unwrap();
        wrong.extend(repeated(&files).into_iter().filter(|(found, _)| !ALLOWED.contains(&(name, found))));
    }
    assert!(types > 500, "only {types} type declarations were found: the search is broken");
    assert!(wrong.is_empty(), "type names used twice in a crate: {wrong:#?}");
}

#[test]
fn a_repeated_name_is_found() {
    let file = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let files = [
        file("a.rs", "pub(crate) struct Place<'a> {\n}\nstruct Hidden;\npub enum Other {}\n"),
        file("b.rs", "    pub(in crate::x) enum Place {\n    struct Hidden;\npub type Another = u8;\n"),
    ];
    let found = repeated(&files);
    assert_eq!(found, [("Place".to_owned(), vec!["a.rs:1".to_owned(), "b.rs:1".to_owned()])]);
}
