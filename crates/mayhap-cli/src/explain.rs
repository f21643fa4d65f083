//! `mayhap explain`: why a filter answers as it does for an item.

mod json;
mod lesson;
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

use crate::filter_file::{self, ForeignArgs};
use crate::item_form::{ItemForm, LineItem};
use crate::trouble::Trouble;
use crate::whole_file;
use crate::{Verdict, output};

/// Show why a filter answers as it does for an item: the hash, what is looked at, the reason
#[derive(Args, Debug)]
#[command(after_help = "\
Nothing is guessed: positions and contents come from the code that answers
lookups. The secret key of a filter built with --untrusted is never shown; but
show such explanations only to people who may read the filter.

A mayhap cannot tell a member from a stranger that happens to look the same.
The explanation says how many strangers do, now.

Exit codes: 0 mayhap (for one ITEM at least), 1 certainly not, 2 trouble.

Examples:
  mayhap explain urls.mayhap https://example.org/       which bits, set or clear?
  mayhap explain urls.mayhap /a /b /c                   several items
  head -1 access.log | mayhap explain seen.mayhap -     a line of the standard input
  mayhap explain seen.mayhap --hex 00ff10               bytes that are no text
  mayhap explain phones.mayhap 13800138000              the bit of a bitmap
  mayhap explain urls.mayhap /a --svg a.svg             a picture of it
  mayhap explain urls.mayhap /a --json | jq .explanations[0].reason
  mayhap explain guava.bin ada --items-as utf8          another program's filter")]
pub(crate) struct Explain {
    /// The filter: a .mayhap file, or one of another program
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// What to ask about; each - is one line of the standard input
    #[arg(value_name = "ITEM", required = true, allow_negative_numbers = true)]
    items: Vec<OsString>,
    /// ITEM is bytes, two hexadecimal digits each
    #[arg(long)]
    hex: bool,
    /// Draw it; one ITEM only
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    foreign: ForeignArgs,
}

/// An item, and what the filter does with it.
struct Explained {
    /// As it was given.
    given: Vec<u8>,
    explanation: Explanation,
}

/// The filter that explains itself.
struct Subject<'a> {
    /// The name of its file.
    name: String,
    filter: &'a Filter,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<Verdict, Trouble> {
        if self.svg.is_some() && self.items.len() != 1 {
            let what = format!("--svg draws one ITEM, got {}", self.items.len());
            return Err(Trouble::Usage(what));
        }
        let opened = filter_file::open(&self.filter, &self.foreign)?;
        let filter = &opened.filter;
        let form = ItemForm::of(filter);
        let explained: Vec<Explained> =
            self.items.iter().map(|item| self.explain(filter, form, item)).collect::<Result<_, _>>()?;
        opened.check_unchanged()?;
        let subject = Subject { name: self.filter.display().to_string(), filter };
        if let (Some(path), [only]) = (&self.svg, &explained[..]) {
            if whole_file::is_same(path, &self.filter) {
                return Err(Trouble::Usage(format!("--svg: {} is the filter", path.display())));
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

    fn explain(&self, filter: &Filter, form: ItemForm, item: &OsString) -> Result<Explained, Trouble> {
        let given = if item == "-" { line()? } else { item.as_bytes().to_vec() };
        let given = if self.hex { unhex(&given)? } else { given };
        // Bytes are taken as they are, also by another program's filter.
        let item = if self.hex { Ok(LineItem::Bytes(&given)) } else { form.item(&given) };
        let item = item.map_err(|error| Trouble::Usage(error.to_string()))?;
        let explanation = filter.explain(&item);
        Ok(Explained { explanation, given })
    }
}

/// One line of the standard input, without its end.
fn line() -> Result<Vec<u8>, Trouble> {
    let mut line = Vec::new();
    let name = || "the standard input".to_owned();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    if read.map_err(|cause| Trouble::Read { name: name(), cause })? == 0 {
        return Err(Trouble::Input { name: name(), what: "there is no line left to explain".into() });
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(line)
}

/// The bytes these digits are.
fn unhex(digits: &[u8]) -> Result<Vec<u8>, Trouble> {
    let digit = |&digit: &u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let shown = || shown::item(digits, 60);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        let what = format!("--hex takes two digits for every byte, {} has {}", shown(), digits.len());
        return Err(Trouble::Usage(what));
    }
    let byte = |[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.ok_or_else(|| Trouble::Usage(format!("--hex takes digits 0 to 9 and a to f, got {}", shown())))
}
