//! Pages that are generated from tables. A stale page fails its test; `MAYHAP_WRITE_MANUAL=1` (`just manual`)
//! writes it again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use mayhap_command::{Access, Family, table};
use mayhap_server::Settings;
use mayhap_server::settings::table::{Setting, Shown};

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Checks that the page is `fresh`, or writes it.
fn keep(name: &str, fresh: &str) {
    let path = page(name);
    if std::env::var_os("MAYHAP_WRITE_MANUAL").is_some() {
        fs::write(&path, fresh).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(page == fresh, "docs/{name} is stale: run `just manual` to write it");
}

/// Escapes the text of a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn commands_md_has_the_table_of_commands() {
    let families = [
        (Family::Bloom, "Bloom filters, compatible with RedisBloom"),
        (Family::Cuckoo, "Cuckoo filters, compatible with RedisBloom"),
        (Family::Mayhap, "Filters of every kind"),
        (Family::Bitmap, "Bitmaps and strings"),
        (Family::Keyspace, "Keys of any type"),
        (Family::Connection, "The connection"),
        (Family::Server, "The server"),
    ];
    let count = table::all().count();
    let mut fresh = format!(
        "# Commands\n\n<!-- generated from the table of commands: `just manual` -->\n\n\
         {count} commands, by family. `R` reads, `W` writes. See [server.md](server.md) for how to run the server.\n"
    );
    let mut told = 0;
    for (family, title) in families {
        let rows: Vec<_> = table::all().filter(|command| command.family == family).collect();
        if rows.is_empty() {
            continue;
        }
        told += rows.len();
        write!(fresh, "\n## {title}\n\n| command | | what it does | time |\n|---|---|---|---|\n").unwrap();
        for command in rows {
            let access = match command.flags.declared {
                _ if command.changes() => "W",
                Access::Read => "R",
                Access::Write | Access::Neither => "",
            };
            let line = format!("{} {}", command.name.to_uppercase(), command.syntax);
            let (line, summary) = (cell(line.trim_end()), cell(command.summary));
            writeln!(fresh, "| `{line}` | {access} | {summary} | {} |", cell(command.complexity)).unwrap();
        }
    }
    assert_eq!(told, count, "every family has a section");
    keep("commands.md", &fresh);
}

#[test]
fn server_md_has_every_setting() {
    let mut rows = String::from("\n| setting | default | meaning |\n|---|---|---|\n");
    let settings = Settings::of_program();
    for setting in Setting::all() {
        let usual = match setting.get(&settings) {
            Shown::Nothing => String::new(),
            Shown::Number(number) => format!("`{number}`"),
            Shown::Fraction(fraction) => format!("`{fraction}`"),
            Shown::Text(text) => format!("`{text}`"),
            Shown::Texts(texts) if texts.is_empty() => String::new(),
            Shown::Texts(texts) => format!("`{}`", texts.join(", ")),
            Shown::Switch(yes) => format!("`{yes}`"),
        };
        writeln!(rows, "| `{}` | {usual} | {} |", setting.name(), cell(setting.help())).unwrap();
    }
    rows.push('\n');
    let page = fs::read_to_string(page("server.md")).expect("docs/server.md exists");
    let (before, rest) = page.split_once("<!-- settings: ").expect("the start of the table");
    let (note, rest) = rest.split_once(" -->\n").expect("the end of the note");
    let (_, after) = rest.split_once("<!-- end of settings -->").expect("the end of the table");
    keep("server.md", &format!("{before}<!-- settings: {note} -->\n{rows}<!-- end of settings -->{after}"));
}

/// The alert rules on the page would never fire with a metric that does not exist.
#[test]
fn every_metric_on_the_page_exists() {
    let page = fs::read_to_string(page("server.md")).unwrap();
    let source = include_str!("../src/metrics.rs");
    let words = page.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let named: Vec<&str> = words.filter(|word| word.starts_with("mayhap_")).collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(
            source.contains(&format!("\"{name}\"")),
            "docs/server.md names {name}, which /metrics does not have"
        );
    }
}
