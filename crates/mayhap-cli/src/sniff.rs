//! `mayhap sniff`: detects the format of a file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use mayhap::file;
use mayhap_formats::{Argument, Format, Sniffed};
use serde::Serialize;

use crate::error::CliError;
use crate::filter_file;
use crate::input;
use crate::{Verdict, output, whole_file};

/// Detect what format a file is in, and how to open it
#[derive(Args, Debug)]
#[command(after_help = "\
Few formats begin with a signature. The others are recognized by their lengths
and fields: `could be` is usually right, and several names mean that each is
possible. LevelDB and rbloom filters and Redisson bitmaps have almost nothing to
recognize them by: to confirm one, check an item that is known to be in it.

In files larger than 1 GiB, only signatures are looked for. Pipes and devices are
rejected.

Exit codes: 0 all files could be filters, 1 a file is something else, 2 error.

Examples:
  mayhap sniff unknown.bin
  mayhap sniff --json *.bloom
  mayhap sniff urls.txt.gz                        text is recognized, too")]
pub(crate) struct Sniff {
    /// Files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// The findings about one file. The field names are those of `--json` and a stable interface.
#[derive(Debug, Serialize)]
struct Found {
    file: String,
    bytes: u64,
    /// It is, or could be, a filter.
    known: bool,
    /// The possible formats, likeliest first.
    formats: Vec<Candidate>,
    /// A description of the file: its type if it is not a filter, else the kind of filter.
    what: String,
}

#[derive(Debug, Serialize)]
struct Candidate {
    format: &'static str,
    about: &'static str,
    /// The file has the signature of this format.
    certain: bool,
    /// The flags needed to open it.
    flags: Vec<&'static str>,
}

#[derive(Serialize)]
struct Report {
    files: Vec<Found>,
}

/// Files up to this size are read whole, because the length is the best clue to the format.
const WHOLE_BYTES: u64 = 1 << 30;
/// The number of bytes that decide whether a file is text.
const TEXT_BYTES: usize = 1 << 16;

impl Sniff {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        let files = self.files.iter().map(|path| sniff(path)).collect::<Result<Vec<_>, _>>()?;
        let all_known = files.iter().all(|found| found.known);
        if self.json {
            output::to_stdout(|out, _| output::json(out, &Report { files }))?;
        } else {
            output::to_stdout(|out, _| {
                files
                    .iter()
                    .try_for_each(|found| Ok(found.said().try_for_each(|line| writeln!(out, "{line}"))?))
            })?;
        }
        Ok(if all_known { Verdict::Yes } else { Verdict::No })
    }
}

fn sniff(path: &Path) -> Result<Found, CliError> {
    let name = path.display().to_string();
    let cli_error = |cause| CliError::Read { name: name.clone(), cause };
    let about = fs::metadata(path).map_err(cli_error)?;
    if about.is_dir() {
        return Err(cli_error(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    // The length is needed, and the file is read more than once. Devices have no length, and pipes can be read only
    // once.
    if !about.is_file() {
        return Err(cli_error(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    let bytes = about.len();
    let found = |formats: Vec<Candidate>, what: String| Found {
        file: name.clone(),
        bytes,
        known: !formats.is_empty(),
        formats,
        what,
    };
    if let Ok(kind) = file::kind(path) {
        return Ok(found(vec![candidate(Format::Mayhap, true)], format!("a {kind} filter of mayhap")));
    }
    if filter_file::is_parquet(path) {
        let what = "a Parquet file; `mayhap info` lists the filters in it";
        return Ok(found(vec![candidate(Format::Parquet, true)], what.into()));
    }
    if bytes == 0 {
        return Ok(found(Vec::new(), "an empty file".into()));
    }
    let sniffed = if bytes > WHOLE_BYTES {
        let mut first = Vec::new();
        let file = File::open(path).map_err(cli_error)?;
        file.take(TEXT_BYTES as u64).read_to_end(&mut first).map_err(cli_error)?;
        match Format::sniff(&first) {
            Sniffed::Is(format) => Sniffed::Is(format),
            _ => Sniffed::Unknown,
        }
    } else {
        Format::sniff(&whole_file::read(path)?)
    };
    let could_be = match sniffed {
        Sniffed::Is(format) => return Ok(found(vec![candidate(format, true)], format.about().into())),
        Sniffed::CouldBe(formats) => formats,
        Sniffed::Unknown => Vec::new(),
    };
    // These two match many files that are not filters.
    let hardly = could_be.iter().all(|format| matches!(format, Format::LevelDb | Format::Rbloom));
    if !hardly {
        let what = could_be[0].about().into();
        return Ok(found(could_be.into_iter().map(|format| candidate(format, false)).collect(), what));
    }
    let (packing, first) = input::first_bytes(path, TEXT_BYTES).map_err(cli_error)?;
    let text = is_text(&first);
    let what = match (packing, text) {
        (Some(packing), true) => format!("a {packing} file of text, not a filter; build one with `mayhap build OUT {name}`"),
        (Some(packing), false) => format!("a {packing} file, neither text nor a known filter format"),
        (None, true) => format!("text, not a filter; build one with `mayhap build OUT {name}`"),
        (None, false) if !could_be.is_empty() => could_be[0].about().into(),
        (None, false) if bytes > WHOLE_BYTES => {
            "no known signature; files larger than 1 GiB are not examined further: name the format with --from".into()
        }
        (None, false) => "not a known format; a Redisson bitmap cannot be recognized, because it has no header".into(),
    };
    let formats = if packing.is_none() && !text { could_be } else { Vec::new() };
    Ok(found(formats.into_iter().map(|format| candidate(format, false)).collect(), what))
}

fn candidate(format: Format, certain: bool) -> Candidate {
    let flags = format.needs().iter().map(|&argument| flag(argument)).collect();
    Candidate { format: format.name(), about: format.about(), certain, flags }
}

fn flag(argument: Argument) -> &'static str {
    match argument {
        Argument::Items => "--items-as ENCODING",
        Argument::RedissonConfig => "--redisson-config FIELDS",
        Argument::Golomb => "--golomb-key HEX",
        Argument::PybloomLive => "--pybloom-version VERSION",
        Argument::Cassandra => "--cassandra-version VERSION",
        Argument::Column => "--column PATH",
        Argument::FingerprintBits => "--fingerprint-bits BITS",
        _ => "",
    }
}

/// Returns `true` for UTF-8 without control characters except white space. The last character may be cut off.
fn is_text(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && text.chars().all(|letter| !letter.is_control() || letter.is_ascii_whitespace())
}

impl Found {
    fn said(&self) -> impl Iterator<Item = String> {
        let name = &self.file;
        let opened = |candidate: &Candidate, from: bool| {
            let from = from.then(|| format!("--from {}", candidate.format));
            let flags: Vec<String> =
                from.into_iter().chain(candidate.flags.iter().map(|&flag| flag.to_owned())).collect();
            if flags.is_empty() {
                "opens without flags".to_owned()
            } else {
                format!("open it with {}", flags.join(" "))
            }
        };
        let lines: Vec<String> = match &self.formats[..] {
            [] => vec![format!("{name}: {}", self.what)],
            [only] if only.certain => vec![format!("{name}: {}; {}", self.what, opened(only, false))],
            // With or without its name, this format is the one that is tried.
            [only] => {
                vec![format!("{name}: could be {} ({}); {}", only.format, only.about, opened(only, false))]
            }
            several => {
                let each = several
                    .iter()
                    .map(|one| format!("  {} ({}): {}", one.format, one.about, opened(one, true)));
                std::iter::once(format!("{name}: could be one of {}:", several.len())).chain(each).collect()
            }
        };
        lines.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_binary_are_distinguished() {
        assert!(is_text("grüße\n\tada\r\n".as_bytes()));
        assert!(!is_text(&"é".as_bytes()[..1]) && is_text("aé".as_bytes().split_last().unwrap().1));
        assert!(!is_text(b"\x00abc") && !is_text(b"\xffabc") && !is_text(b""));
    }

    #[test]
    fn every_argument_has_its_flag() {
        for format in Format::ALL {
            assert!(format.needs().iter().all(|&argument| flag(argument).starts_with("--")), "{format}");
        }
    }
}
