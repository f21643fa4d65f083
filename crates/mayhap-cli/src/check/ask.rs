//! Looks up the records of a block in a filter.

use std::iter;
use std::sync::Arc;

use mayhap::{Answers, BatchBits};
use mayhap_remote::Answer;

use super::distant::ServerFilter;
use crate::error::CliError;
use crate::filter_file::Opened;
use crate::input::Block;
use crate::item_form::{ItemForm, LineItem, NoSuchItem};
use crate::remote_filter::RemoteFilter;

/// Looks up items in one filter, in the form that the filter needs.
pub(super) struct Asker<'a> {
    filter: Asked<'a>,
    allow_misfits: bool,
}

/// A local filter, or a filter on a server.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Local(&'a Opened),
    OnServer(&'a ServerFilter<'a>),
}

/// A filter that is ready to answer.
enum Ready<'a> {
    Local(&'a Opened),
    OnServer(&'a ServerFilter<'a>, Arc<RemoteFilter>),
}

/// The records with the answer maybe, and those without an answer.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) maybe: BatchBits,
    pub(super) unready: Option<Unready>,
}

/// Records without an answer.
#[derive(Clone, Debug)]
pub(super) struct Unready {
    pub(super) records: BatchBits,
    /// Why the last of them has no answer.
    pub(super) why: String,
}

impl From<BatchBits> for Answered {
    fn from(maybe: BatchBits) -> Self {
        Self { maybe, unready: None }
    }
}

impl Answered {
    /// No answer for any of `records` records.
    fn not_ready(records: usize, why: String) -> Self {
        let none: BatchBits = iter::repeat_n(false, records).collect();
        let unready = (records > 0).then(|| Unready { records: !none.clone(), why });
        Self { maybe: none, unready }
    }
}

impl Ready<'_> {
    /// How lines become items of this filter.
    fn form(&self) -> ItemForm {
        match self {
            Self::Local(opened) => ItemForm::of(&opened.filter),
            Self::OnServer(_, filter) => filter.form(),
        }
    }
}

impl<'a> Asker<'a> {
    pub(super) fn local(opened: &'a Opened, allow_misfits: bool) -> Self {
        Self { filter: Asked::Local(opened), allow_misfits }
    }

    pub(super) fn on_server(filter: &'a ServerFilter<'a>, allow_misfits: bool) -> Self {
        Self { filter: Asked::OnServer(filter), allow_misfits }
    }

    /// The filter, or why it cannot answer now.
    fn ready(&self) -> Result<Ready<'a>, String> {
        match self.filter {
            Asked::Local(opened) => Ok(Ready::Local(opened)),
            Asked::OnServer(distant) => Ok(Ready::OnServer(distant, distant.filter()?)),
        }
    }

    /// The answers for the records of a block.
    pub(super) fn ask(&self, block: &Block) -> Result<Answered, CliError> {
        let ready = match self.ready() {
            Ok(ready) => ready,
            Err(why) => return Ok(Answered::not_ready(block.len(), why)),
        };
        let form = ready.form();
        if let (Ready::Local(Opened { filter, .. }), ItemForm::Bytes) = (&ready, form) {
            let items: Vec<&[u8]> = block.items().collect();
            let mut answers = Answers::new();
            filter.may_contain_batch(&items, &mut answers);
            return Ok(answers.into_bits().into());
        }
        let mut items: Vec<LineItem<'_>> = Vec::with_capacity(block.len());
        let mut misfits = Vec::new();
        for index in 0..block.len() {
            match form.item(block.item(index)) {
                Ok(item) => items.push(item),
                Err(_) if self.allow_misfits => misfits.push(index),
                Err(misfit) => return Err(cli_error(block.place(index), &misfit)),
            }
        }
        let answered = ask_items(&ready, &items);
        if misfits.is_empty() {
            return Ok(answered);
        }
        let among_all = |those: &BatchBits| -> BatchBits {
            let (mut misfits, mut those) = (misfits.iter().copied().peekable(), those.iter());
            let bit = |index| misfits.next_if_eq(&index).is_none() && those.next() == Some(true);
            (0..block.len()).map(bit).collect()
        };
        let unready =
            answered.unready.map(|unready| Unready { records: among_all(&unready.records), ..unready });
        Ok(Answered { maybe: among_all(&answered.maybe), unready })
    }

    /// `Ok` if all answers so far come from the filter that was opened, because its file has not changed.
    pub(super) fn check_answers(&self) -> Result<(), CliError> {
        match self.filter {
            Asked::Local(opened) => opened.check_unchanged(),
            Asked::OnServer(_) => Ok(()),
        }
    }

    /// The answer for one item, as record 0.
    pub(super) fn ask_one(&self, item: &[u8]) -> Result<Answered, CliError> {
        let ready = match self.ready() {
            Ok(ready) => ready,
            Err(why) => return Ok(Answered::not_ready(1, why)),
        };
        match ready.form().item(item) {
            Ok(item) => Ok(ask_items(&ready, &[item])),
            Err(_) if self.allow_misfits => Ok(BatchBits::from_iter([false]).into()),
            Err(misfit) => Err(cli_error("--item".into(), &misfit)),
        }
    }
}

fn ask_items(ready: &Ready<'_>, items: &[LineItem<'_>]) -> Answered {
    match ready {
        Ready::Local(Opened { filter, .. }) => {
            let mut answers = Answers::new();
            filter.may_contain_batch(items, &mut answers);
            answers.into_bits().into()
        }
        Ready::OnServer(distant, filter) => {
            let told = distant.ask(filter, items);
            let those =
                |wanted: fn(&Answer) -> bool| -> BatchBits { told.answers.iter().map(wanted).collect() };
            let records = those(|answer| !matches!(answer, Answer::Maybe | Answer::No));
            let maybe = those(|answer| *answer == Answer::Maybe);
            let why = told.why.clone().unwrap_or_else(|| "the server gave no reason".into());
            let unready = (records.count_ones() > 0).then_some(Unready { records, why });
            Answered { maybe, unready }
        }
    }
}

fn cli_error(name: String, misfit: &NoSuchItem) -> CliError {
    CliError::Input {
        name,
        what: format!("{misfit}; --allow-misfits treats such lines as not in the filter"),
    }
}
