//! Records for later comparison: JSON lines under `bench/record/`; the first describes the machine.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

use crate::{bars, row::Row};

/// The machine that the figures were measured on. No names of hosts or people.
#[derive(Serialize)]
struct Machine {
    machine: String,
    cpus: usize,
    huge_pages: String,
    os: &'static str,
    arch: &'static str,
    rustc: &'static str,
    date: String,
}

impl Machine {
    fn this(date: &str) -> Machine {
        Machine {
            machine: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            huge_pages: fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
                .map_or_else(|_| "unknown".to_owned(), |modes| chosen_mode(&modes)),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            rustc: env!("MAYHAP_BENCH_RUSTC"),
            date: date.to_owned(),
        }
    }
}

/// Serializes a row or a machine as one line of JSON.
pub(crate) fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("rows have string keys and finite numbers")
}

/// Appends `rows` and their bars to the record of that date and these settings.
pub(crate) fn keep(rows: &[Row], date: &str) -> io::Result<PathBuf> {
    let bars = bars::bars(rows);
    append(&file_name(rows, date), rows.iter().map(line).chain(bars.iter().map(line)), date)
}

/// Appends lines to the record of this name, after a line about the machine.
pub(crate) fn append(name: &str, lines: impl Iterator<Item = String>, date: &str) -> io::Result<PathBuf> {
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    let mut file = fs::File::options().create(true).append(true).open(&path)?;
    writeln!(file, "{}", line(&Machine::this(date)))?;
    for line in lines {
        writeln!(file, "{line}")?;
    }
    Ok(path)
}

/// `filters-1000000-0.01-u64-2026-01-31.jsonl`
fn file_name(rows: &[Row], date: &str) -> String {
    let date: String = date.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    match rows.first() {
        Some(row) => {
            format!("filters-{}-{}-{:?}-{date}.jsonl", row.items, row.target_fpr, row.shape).to_lowercase()
        }
        None => format!("filters-{date}.jsonl"),
    }
}

/// The folder of the records: in this crate's folder under `cargo run`, else in the working directory.
fn folder() -> PathBuf {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(manifest) => Path::new(&manifest).join("record"),
        None => Path::new("bench").join("record"),
    }
}

/// Today's date in UTC, as YYYY-MM-DD.
pub(crate) fn today() -> String {
    let secs = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(secs / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Converts a number of days since 1970-01-01 into year, month and day. The computation uses a year that begins in March, so that the leap day comes
/// last and months follow one rule.
fn civil(days: u64) -> (u64, u64, u64) {
    let from_year_0 = days + 719_468;
    let era = from_year_0 / 146_097;
    let day_of_era = from_year_0 % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Returns the bracketed word of `always [madvise] never`.
fn chosen_mode(modes: &str) -> String {
    let inside = modes.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or("unknown".to_owned(), |(mode, _)| mode.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
        assert_eq!(today().len(), 10);
    }

    #[test]
    fn the_machine_is_read_from_kernel_files() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU 9000\n"), "Some CPU 9000");
        assert_eq!(cpu_model(""), "unknown");
        assert_eq!(chosen_mode("always [madvise] never\n"), "madvise");
    }

    #[test]
    fn a_date_cannot_leave_the_folder() {
        assert_eq!(file_name(&[], "../../2026-01-01"), "filters-2026-01-01.jsonl");
    }
}
