//! One manual page, from clap's description of a command.
//!
//! ```text
//! about          ─▶ NAME, DESCRIPTION           after_help: paragraphs ─▶ DESCRIPTION, indented lines kept
//! usage          ─▶ SYNOPSIS                                 `Examples:` ─▶ EXAMPLES
//! options        ─▶ OPTIONS, INPUT, …                        `Heading:`  ─▶ a section of its own
//! ```

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// The exit codes at the end of every page.
const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Success, or the answer is yes. A reader that closes the pipe, as head does, is not an error."),
    ("1", "The answer is no: nothing was found or selected, or a check failed."),
    ("2", "Error. One line on standard error describes it."),
    ("130", "Interrupted by Ctrl-C. No file is left half-written."),
];

/// The page of the program: its purpose and its verbs.
pub(super) fn of_program(program: &Command) -> io::Result<Vec<u8>> {
    let mut page = Page::new(program, "mayhap")?;
    page.description(|paragraph| !paragraph.starts_with("Exit codes:"))?;
    page.roff.control("SH", ["VERBS"]);
    for verb in program.get_subcommands() {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        page.roff.control("TP", []);
        page.roff.text([bold(format!("mayhap-{}", verb.get_name())), roman("(1)")]);
        page.roff.text([roman(about)]);
    }
    page.options()?;
    page.finish(None)
}

/// The page of a verb.
pub(super) fn of_verb(verb: &Command) -> io::Result<Vec<u8>> {
    let mut page = Page::new(verb, &format!("mayhap-{}", verb.get_name()))?;
    page.description(|_| true)?;
    page.options()?;
    page.finish(Some("mayhap(1)"))
}

struct Page<'a> {
    command: &'a Command,
    /// Renders the parts that clap can write.
    man: Man,
    written: Vec<u8>,
    /// The parts that are not yet in `written`.
    roff: Roff,
}

impl<'a> Page<'a> {
    /// Writes the page up to the synopsis.
    fn new(command: &'a Command, name: &str) -> io::Result<Self> {
        let version = command.get_version().unwrap_or(env!("CARGO_PKG_VERSION"));
        let man = Man::new(command.clone())
            .title(name.to_uppercase())
            .source(format!("mayhap {version}"))
            .manual("mayhap: have I seen this before?");
        let mut written = Vec::new();
        man.render_title(&mut written)?;
        // No hyphenation and no justified lines, so options are never broken.
        writeln!(written, ".nh\n.ad l")?;
        let mut page = Self { command, man, written, roff: Roff::default() };
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        page.roff.control("SH", ["NAME"]);
        page.roff.text([roman(format!("{name} - {}", about.trim_end_matches('.')))]);
        page.roff.control("SH", ["SYNOPSIS"]);
        let usage = command.clone().render_usage().to_string();
        for form in usage.trim_start_matches("Usage:").lines().map(str::trim).filter(|form| !form.is_empty())
        {
            page.roff.text([bold(form)]);
            page.roff.control("br", []);
        }
        Ok(page)
    }

    /// Writes the description: the `about` text, and the paragraphs of `after_help` that belong here.
    fn description(&mut self, belongs: impl Fn(&str) -> bool) -> io::Result<()> {
        self.roff.control("SH", ["DESCRIPTION"]);
        let about = self.command.get_long_about().or_else(|| self.command.get_about());
        paragraphs(&mut self.roff, &about.map(ToString::to_string).unwrap_or_default());
        for part in parts(&after_help(self.command)) {
            if part.heading.is_none() && belongs(&part.text) {
                self.roff.control("PP", []);
                paragraphs(&mut self.roff, &part.text);
            }
        }
        self.flush()
    }

    fn options(&mut self) -> io::Result<()> {
        self.flush()?;
        self.man.render_options_section(&mut self.written)
    }

    /// Writes the other sections of `after_help`, the exit status and the reference to another page.
    fn finish(mut self, see_also: Option<&str>) -> io::Result<Vec<u8>> {
        for part in parts(&after_help(self.command)) {
            if let Some(heading) = part.heading {
                self.roff.control("SH", [heading.to_uppercase().as_str()]);
                paragraphs(&mut self.roff, &part.text);
            }
        }
        self.roff.control("SH", ["EXIT STATUS"]);
        for (code, meaning) in EXIT_STATUS {
            self.roff.control("TP", []);
            self.roff.text([bold(code)]);
            self.roff.text([roman(meaning)]);
        }
        if let Some(page) = see_also {
            self.roff.control("SH", ["SEE ALSO"]);
            self.roff.text([roman(page)]);
        }
        self.flush()?;
        Ok(in_ascii(&self.written))
    }

    fn flush(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.roff).to_writer(&mut self.written)
    }
}

/// Replaces characters outside ASCII with their roff codes, which work in any input encoding.
fn in_ascii(page: &[u8]) -> Vec<u8> {
    let mut ascii = Vec::with_capacity(page.len());
    for letter in String::from_utf8_lossy(page).chars() {
        match u8::try_from(letter) {
            Ok(byte) if byte.is_ascii() => ascii.push(byte),
            _ => ascii.extend_from_slice(format!("\\[u{:04X}]", u32::from(letter)).as_bytes()),
        }
    }
    ascii
}

fn after_help(command: &Command) -> String {
    let text = command.get_after_long_help().or_else(|| command.get_after_help());
    text.map(ToString::to_string).unwrap_or_default()
}

/// A section of `after_help`: the text under a heading, or before the first one.
#[derive(Debug, Default, PartialEq, Eq)]
struct HelpSection {
    heading: Option<String>,
    text: String,
}

/// Splits `text` at its headings. A heading is a line of a few words that ends with a colon, comes first or after an empty line, and has
/// indented lines below it. A later paragraph without indentation belongs to no heading.
fn parts(text: &str) -> Vec<HelpSection> {
    let mut parts = vec![HelpSection::default()];
    for paragraph in text.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let heading = first.strip_suffix(':').filter(|heading| {
            rest.starts_with(' ') && heading.len() < 24 && heading.starts_with(char::is_uppercase)
        });
        let (inside, indented) =
            (parts.last().is_some_and(|part| part.heading.is_some()), paragraph.starts_with(' '));
        match heading {
            Some(heading) => {
                parts.push(HelpSection { heading: Some(heading.to_owned()), text: rest.to_owned() });
            }
            None if inside && !indented => {
                parts.push(HelpSection { heading: None, text: paragraph.to_owned() });
            }
            None => {
                if let Some(part) = parts.last_mut() {
                    part.text.push_str(if part.text.is_empty() { "" } else { "\n\n" });
                    part.text.push_str(paragraph);
                }
            }
        }
    }
    parts.retain(|part| !part.text.trim().is_empty());
    parts
}

/// Writes `text`: lines without indentation flow, indented ones stay as they are.
fn paragraphs(roff: &mut Roff, text: &str) {
    let mut as_it_is = false;
    for line in text.lines() {
        if line.starts_with(' ') != as_it_is && !line.is_empty() {
            as_it_is = !as_it_is;
            if as_it_is {
                roff.control("PP", []);
                roff.control("nf", []);
            } else {
                roff.control("fi", []);
                roff.control("PP", []);
            }
        }
        match line {
            "" if as_it_is => roff.text([roman("")]),
            "" => roff.control("PP", []),
            line => roff.text([roman(line.trim_end())]),
        };
    }
    if as_it_is {
        roff.control("fi", []);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_help_is_split_at_its_headings() {
        let text = "Give two of them.\nAnd more.\n\nNumbers are written so:\n  1e9\n\nExamples:\n  mayhap plan   # what?\n\n  mayhap man";
        let parts = parts(text);
        assert_eq!(parts[0].heading, None);
        assert_eq!(parts[0].text, "Give two of them.\nAnd more.");
        assert_eq!(parts[1].heading.as_deref(), Some("Numbers are written so"));
        assert_eq!(parts[2].heading.as_deref(), Some("Examples"));
        assert_eq!(parts[2].text, "  mayhap plan   # what?\n\n  mayhap man");
        assert_eq!(parts.len(), 3);
        assert_eq!(super::parts("Examples:\n  mayhap man\n\nAnd then.")[1].text, "And then.");
        assert!(super::parts("").is_empty());
    }

    #[test]
    fn output_is_ascii() {
        assert_eq!(in_ascii("a … b".as_bytes()), br"a \[u2026] b");
    }

    #[test]
    fn only_indented_lines_keep_their_breaks() {
        let mut roff = Roff::default();
        paragraphs(&mut roff, "one\ntwo\n  three\nfour");
        let written = roff.to_roff();
        assert!(written.contains("one\ntwo\n.PP\n.nf\n  three\n.fi\n.PP\nfour\n"), "{written}");
    }
}
