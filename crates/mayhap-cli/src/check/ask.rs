//! Asking a filter about the records of a block.

use mayhap::{Answers, Filter};

use super::selection::Selection;
use crate::input::Block;
use crate::item_form::{ItemForm, LineItem, NoSuchItem};
use crate::trouble::Trouble;

/// Asks one filter, in whatever form it takes its items.
#[derive(Debug)]
pub(super) struct Asker<'a> {
    filter: &'a Filter,
    form: ItemForm,
    allow_misfits: bool,
}

impl<'a> Asker<'a> {
    pub(super) fn new(filter: &'a Filter, allow_misfits: bool) -> Self {
        Self { filter, form: ItemForm::of(filter), allow_misfits }
    }

    /// The records that are mayhap in.
    pub(super) fn ask(&self, block: &Block) -> Result<Selection, Trouble> {
        let mut answers = Answers::new();
        if self.form == ItemForm::Bytes {
            let items: Vec<&[u8]> = block.items().collect();
            self.filter.may_contain_batch(&items, &mut answers);
            return Ok(Selection::of_words(answers.words(), items.len()));
        }
        let mut items: Vec<LineItem<'_>> = Vec::with_capacity(block.len());
        let mut misfits = Vec::new();
        for index in 0..block.len() {
            match self.form.item(block.item(index)) {
                Ok(item) => items.push(item),
                Err(_) if self.allow_misfits => misfits.push(index),
                Err(misfit) => return Err(trouble(block.place(index), &misfit)),
            }
        }
        self.filter.may_contain_batch(&items, &mut answers);
        if misfits.is_empty() {
            return Ok(Selection::of_words(answers.words(), items.len()));
        }
        let mut selection = Selection::none(block.len());
        let (mut misfits, mut answers) = (misfits.into_iter().peekable(), answers.iter());
        for index in 0..block.len() {
            if misfits.next_if_eq(&index).is_none() && answers.next() == Some(true) {
                selection.insert(index);
            }
        }
        Ok(selection)
    }

    /// Whether one item is mayhap in.
    pub(super) fn ask_one(&self, item: &[u8]) -> Result<bool, Trouble> {
        match self.form.item(item) {
            Ok(item) => Ok(self.filter.may_contain(&item)),
            Err(_) if self.allow_misfits => Ok(false),
            Err(misfit) => Err(trouble("--item".into(), &misfit)),
        }
    }
}

fn trouble(name: String, misfit: &NoSuchItem) -> Trouble {
    Trouble::Input { name, what: format!("{misfit}; --allow-misfits takes such lines for certainly not in") }
}
