//! `mayhap sniff`: what is this file?

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use mayhap::codec::format::{Argument, Format, Sniffed};
use mayhap::file;
use serde::Serialize;

use crate::error::CliError;
use crate::filter_file;
use crate::input;
use crate::{Verdict, output, whole_file};

/// Say what a file is or could be, and how to open it
#[derive(Args, Debug)]
#[command(after_help = "\
Few formats have a mark of their own. The others are told by their lengths and
fields: `could be` is mostly right, and several names are several chances. Where
one is a filter of LevelDB or rbloom, or the bitmap of Redisson, which has nothing
to tell it by, even that is little: ask for an item that is in.

Of files of more than 1 GiB only the marks are looked for. Pipes and devices are
refused.

Exit codes: 0 all could be filters, 1 one is something else, 2 error.

Examples:
  mayhap sniff unknown.bin
  mayhap sniff --json *.bloom
  mayhap sniff urls.txt.gz                        text is told apart, too")]
pub(crate) struct Sniff {
    /// Files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// What a file is. The field names are those of `--json`, and a promise.
#[derive(Debug, Serialize)]
struct Found {
    file: String,
    bytes: u64,
    /// It is, or could be, a filter.
    known: bool,
    /// What it could be, the likeliest first.
    formats: Vec<Candidate>,
    /// What it is if it is no filter, or of what kind it is.
    what: String,
}

#[derive(Debug, Serialize)]
struct Candidate {
    format: &'static str,
    about: &'static str,
    /// It has the mark of this format.
    certain: bool,
    /// What must be told to open it.
    flags: Vec<&'static str>,
}

#[derive(Serialize)]
struct Report {
    files: Vec<Found>,
}

/// Files up to this size are read whole, for their lengths tell most.
const WHOLE_BYTES: u64 = 1 << 30;
/// So much of a file tells whether it is text.
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
    // Its length tells most, and it is read more than once: a device has no end, and a pipe has no second time.
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
    // These two fit many a file that is no filter at all.
    let hardly = could_be.iter().all(|format| matches!(format, Format::LevelDb | Format::Rbloom));
    if !hardly {
        let what = could_be[0].about().into();
        return Ok(found(could_be.into_iter().map(|format| candidate(format, false)).collect(), what));
    }
    let (packing, first) = input::first_bytes(path, TEXT_BYTES).map_err(cli_error)?;
    let text = is_text(&first);
    let what = match (packing, text) {
        (Some(packing), true) => format!("a {packing} file of text, not a filter; build one with `mayhap build OUT {name}`"),
        (Some(packing), false) => format!("a {packing} file, not of text and not a filter that mayhap knows"),
        (None, true) => format!("text, not a filter; build one with `mayhap build OUT {name}`"),
        (None, false) if !could_be.is_empty() => could_be[0].about().into(),
        (None, false) if bytes > WHOLE_BYTES => {
            "nothing with a mark; files of more than 1 GiB are not looked at closer: say what it is with --from".into()
        }
        (None, false) => "nothing that mayhap knows; the bitmap of Redisson has nothing to tell it by".into(),
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

/// Text has no control characters but white space; its end may be in the middle of a letter.
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
                "opens as it is".to_owned()
            } else {
                format!("open it with {}", flags.join(" "))
            }
        };
        let lines: Vec<String> = match &self.formats[..] {
            [] => vec![format!("{name}: {}", self.what)],
            [only] if only.certain => vec![format!("{name}: {}; {}", self.what, opened(only, false))],
            // Named or not, it is the one that is tried.
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
    fn text_is_told_from_bytes() {
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
