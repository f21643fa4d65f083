//! Asking a filter about the records of a block.

use std::sync::Arc;

use mayhap::Answers;
use mayhap_remote::Answer;

use super::distant::Distant;
use super::selection::Selection;
use crate::error::CliError;
use crate::filter_file::Opened;
use crate::input::Block;
use crate::item_form::{ItemForm, LineItem, NoSuchItem};
use crate::remote_filter::RemoteFilter;

/// Asks one filter, in whatever form it takes its items.
pub(super) struct Asker<'a> {
    filter: Asked<'a>,
    allow_misfits: bool,
}

/// A filter that is here, or one that a server has.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Here(&'a Opened),
    There(&'a Distant<'a>),
}

/// A filter that can be asked now.
enum Ready<'a> {
    Here(&'a Opened),
    There(&'a Distant<'a>, Arc<RemoteFilter>),
}

/// The records that are mayhap in, and those of which nobody can say it.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) mayhaps: Selection,
    pub(super) unready: Option<Unready>,
}

/// Records without an answer.
#[derive(Clone, Debug)]
pub(super) struct Unready {
    pub(super) records: Selection,
    /// Why the last of them has none.
    pub(super) why: String,
}

impl From<Selection> for Answered {
    fn from(mayhaps: Selection) -> Self {
        Self { mayhaps, unready: None }
    }
}

impl Answered {
    /// None of `records` records has an answer.
    fn not_ready(records: usize, why: String) -> Self {
        let none = Selection::none(records);
        let unready = (records > 0).then(|| Unready { records: none.inverted(), why });
        Self { mayhaps: none, unready }
    }
}

impl Ready<'_> {
    /// What lines are to it.
    fn form(&self) -> ItemForm {
        match self {
            Self::Here(opened) => ItemForm::of(&opened.filter),
            Self::There(_, filter) => filter.form(),
        }
    }
}

impl<'a> Asker<'a> {
    pub(super) fn here(opened: &'a Opened, allow_misfits: bool) -> Self {
        Self { filter: Asked::Here(opened), allow_misfits }
    }

    pub(super) fn there(filter: &'a Distant<'a>, allow_misfits: bool) -> Self {
        Self { filter: Asked::There(filter), allow_misfits }
    }

    /// The filter, or why it cannot be asked now.
    fn ready(&self) -> Result<Ready<'a>, String> {
        match self.filter {
            Asked::Here(opened) => Ok(Ready::Here(opened)),
            Asked::There(distant) => Ok(Ready::There(distant, distant.filter()?)),
        }
    }

    /// What is to be said of the records of a block.
    pub(super) fn ask(&self, block: &Block) -> Result<Answered, CliError> {
        let ready = match self.ready() {
            Ok(ready) => ready,
            Err(why) => return Ok(Answered::not_ready(block.len(), why)),
        };
        let form = ready.form();
        if let (Ready::Here(Opened { filter, .. }), ItemForm::Bytes) = (&ready, form) {
            let items: Vec<&[u8]> = block.items().collect();
            let mut answers = Answers::new();
            filter.may_contain_batch(&items, &mut answers);
            return Ok(Selection::of_words(answers.words(), items.len()).into());
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
        let among_all = |selection: &Selection| {
            let mut all = Selection::none(block.len());
            let mut misfits = misfits.iter().copied().peekable();
            let fits = (0..block.len()).filter(|index| misfits.next_if_eq(index).is_none());
            fits.enumerate().filter(|&(item, _)| selection.contains(item)).for_each(|(_, at)| all.insert(at));
            all
        };
        let unready =
            answered.unready.map(|unready| Unready { records: among_all(&unready.records), ..unready });
        Ok(Answered { mayhaps: among_all(&answered.mayhaps), unready })
    }

    /// `Ok` if the answers so far are those of the filter that was opened: nothing was done to its file meanwhile.
    pub(super) fn check_answers(&self) -> Result<(), CliError> {
        match self.filter {
            Asked::Here(opened) => opened.check_unchanged(),
            Asked::There(_) => Ok(()),
        }
    }

    /// The answer for one item, which is record 0.
    pub(super) fn ask_one(&self, item: &[u8]) -> Result<Answered, CliError> {
        let ready = match self.ready() {
            Ok(ready) => ready,
            Err(why) => return Ok(Answered::not_ready(1, why)),
        };
        match ready.form().item(item) {
            Ok(item) => Ok(ask_items(&ready, &[item])),
            Err(_) if self.allow_misfits => Ok(Selection::none(1).into()),
            Err(misfit) => Err(cli_error("--item".into(), &misfit)),
        }
    }
}

fn ask_items(ready: &Ready<'_>, items: &[LineItem<'_>]) -> Answered {
    match ready {
        Ready::Here(Opened { filter, .. }) => {
            let mut answers = Answers::new();
            filter.may_contain_batch(items, &mut answers);
            Selection::of_words(answers.words(), items.len()).into()
        }
        Ready::There(distant, filter) => {
            let told = distant.ask(filter, items);
            let those = |wanted: fn(&Answer) -> bool| {
                let mut selection = Selection::none(items.len());
                let of_those = told.answers.iter().enumerate().filter(|(_, answer)| wanted(answer));
                of_those.for_each(|(index, _)| selection.insert(index));
                selection
            };
            let records = those(|answer| !matches!(answer, Answer::Mayhap | Answer::Absent));
            let mayhaps = those(|answer| *answer == Answer::Mayhap);
            let why = told.why.clone().unwrap_or_else(|| "the server does not say why".into());
            let unready = (records.count_first(items.len()) > 0).then_some(Unready { records, why });
            Answered { mayhaps, unready }
        }
    }
}

fn cli_error(name: String, misfit: &NoSuchItem) -> CliError {
    CliError::Input { name, what: format!("{misfit}; --allow-misfits takes such lines for certainly not in") }
}
