//! `mayhap explain`: shows why a filter answers as it does for an item.

mod how_it_works;
mod json;
mod shown;
mod svg;
mod text;

use std::ffi::OsString;
use std::io::{self, BufRead};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::Args;
use mayhap::Filter;
use mayhap::explain::Explanation;

use crate::error::CliError;
use crate::filter_file::{self, ForeignArgs};
use crate::item_form::{ItemForm, LineItem};
use crate::place::{self, Place};
use crate::progress::{Progress, ProgressArgs};
use crate::remote::{Remote, RemoteArgs};
use crate::remote_filter::{LayoutArgs, RemoteFilter};
use crate::whole_file;
use crate::{Verdict, output};

/// Show why a filter answers as it does for an item: the hash, the positions, the reason
#[derive(Args, Debug)]
#[command(after_help = "\
Positions and contents come from the code that answers lookups. The secret key of a
filter built with --untrusted is never shown. Positions can help an attacker too, so
show such an explanation only to people who may read the filter.

FILTER may be in a server: redis://host:port/NAME, an MF.*, BF.* or CF.* filter. The
whole filter is read, as with `mayhap pull`, which needs permission to dump. For a
sharded filter, give the name of the shard.

After a maybe, the explanation cannot tell whether the item is a member: a non-member
can have the same positions. It shows how many non-members currently get a maybe.

Exit codes: 0 maybe (for at least one ITEM), 1 no, 2 error.

Examples:
  mayhap explain urls.mayhap https://example.org/       which bits, set or clear?
  mayhap explain urls.mayhap /a /b /c                   several items
  head -1 access.log | mayhap explain seen.mayhap -     a line of standard input
  mayhap explain seen.mayhap --hex 00ff10               bytes that are not text
  mayhap explain phones.mayhap 13800138000              the bit of a bitmap
  mayhap explain urls.mayhap /a --svg a.svg             a picture
  mayhap explain urls.mayhap /a --json | jq .explanations[0].reason
  mayhap explain guava.bin ada --items-as utf8          a filter of another program
  mayhap explain redis://localhost:6399/seen /a         a filter in a server")]
pub(crate) struct Explain {
    /// The filter: a .mayhap file, a file of another program, or redis://host[:port]/NAME
    #[arg(value_name = "FILTER", value_parser = place::parser())]
    filter: Place,
    /// Items to look up; `-` reads one line of standard input as an item
    #[arg(value_name = "ITEM", required = true, allow_negative_numbers = true)]
    items: Vec<OsString>,
    /// ITEM is given as bytes, two hexadecimal digits each
    #[arg(long)]
    hex: bool,
    /// Draw the lookup as SVG; one ITEM only
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    server: RemoteArgs,
}

/// An item, and the explanation of its lookup.
struct Explained {
    /// The item as given.
    given: Vec<u8>,
    explanation: Explanation,
}

/// The filter to explain.
struct Subject<'a> {
    /// Its file name or address.
    name: String,
    filter: &'a Filter,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<Verdict, CliError> {
        if self.svg.is_some() && self.items.len() != 1 {
            let what = format!("--svg draws one ITEM, got {}", self.items.len());
            return Err(CliError::Usage(what));
        }
        let (filter, backing) = match &self.filter {
            Place::File(path) => {
                let opened = filter_file::open(path, &self.foreign)?;
                (opened.filter, opened.backing)
            }
            Place::Server(remote) => (self.fetch(remote)?, None),
        };
        let form = ItemForm::of(&filter);
        let explained: Vec<Explained> =
            self.items.iter().map(|item| self.explain(&filter, form, item)).collect::<Result<_, _>>()?;
        filter_file::check_unchanged(backing.as_slice())?;
        let subject = Subject { name: self.filter.to_string(), filter: &filter };
        if let (Some(path), [only]) = (&self.svg, &explained[..]) {
            if matches!(&self.filter, Place::File(filter) if whole_file::is_same(path, filter)) {
                return Err(CliError::Usage(format!("--svg: {} is the filter", path.display())));
            }
            whole_file::write(path, svg::draw(&subject, only).as_bytes())?;
        }
        output::to_stdout(|out, width| {
            if self.json {
                return json::write(out, &subject, &explained);
            }
            Ok(text::write(out, &subject, &explained, width)?)
        })?;
        let mayhap = explained.iter().any(|explained| explained.explanation.answer);
        Ok(if mayhap { Verdict::Yes } else { Verdict::No })
    }

    /// Reads the filter from its server.
    fn fetch(&self, remote: &Remote) -> Result<Filter, CliError> {
        let items_as = self.foreign.items_as;
        let filter = RemoteFilter::open(remote, &self.server, &LayoutArgs::default(), items_as)?;
        if filter.is_named() {
            let progress = Progress::start(ProgressArgs::default());
            return filter.fetch(remote, &self.server, &progress).map(|(filter, _)| filter);
        }
        let shard = self.items.first().and_then(|item| filter.shard_of(item.as_bytes()));
        let what = match shard {
            Some(shard) => {
                format!("is sharded, and {:?} belongs to {shard}: explain that name", self.items[0])
            }
            None => {
                "is stored in plain strings and cannot be explained; check and info accept its address".into()
            }
        };
        Err(CliError::Filter { name: remote.shown(), what })
    }

    fn explain(&self, filter: &Filter, form: ItemForm, item: &OsString) -> Result<Explained, CliError> {
        let given = if item == "-" { line()? } else { item.as_bytes().to_vec() };
        let given = if self.hex { unhex(&given)? } else { given };
        // Bytes are used without an encoding, also for a filter of another program.
        let item = if self.hex { Ok(LineItem::Bytes(&given)) } else { form.item(&given) };
        let item = item.map_err(|error| CliError::Usage(error.to_string()))?;
        let explanation = filter.explain(&item);
        Ok(Explained { explanation, given })
    }
}

/// Reads one line of standard input, without its end.
fn line() -> Result<Vec<u8>, CliError> {
    let mut line = Vec::new();
    let name = || "the standard input".to_owned();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    if read.map_err(|cause| CliError::Read { name: name(), cause })? == 0 {
        return Err(CliError::Input { name: name(), what: "there is no line left to explain".into() });
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(line)
}

/// Decodes hexadecimal digits.
fn unhex(digits: &[u8]) -> Result<Vec<u8>, CliError> {
    let digit = |&digit: &u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let shown = || shown::item(digits, 60);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        let what = format!("--hex needs two digits for every byte, {} has {}", shown(), digits.len());
        return Err(CliError::Usage(what));
    }
    let byte = |[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.ok_or_else(|| CliError::Usage(format!("--hex needs digits 0 to 9 and a to f, got {}", shown())))
}
