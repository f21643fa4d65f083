//! Adds items to a filter on its server, and removes items from it.

use std::time::{Duration, Instant};

use mayhap::say;
use mayhap_remote::{Inserted, RemoteError};
use serde::Serialize;

use super::report::Changed;
use super::{Add, Remove};
use crate::error::CliError;
use crate::item_form::LineItem;
use crate::progress::{self, Progress};
use crate::remote::Remote;
use crate::remote_filter::{Copies, Fullness, LayoutArgs, RemoteFilter, Replies};
use crate::{Verdict, filling, output};

/// The report about a change of a filter on its server. The field names are a stable interface.
#[derive(Debug, Serialize)]
struct ChangeReport {
    filter: String,
    /// Items read.
    items_read: u64,
    #[serde(flatten)]
    changed: Changed,
    /// The false-positive rate now, and whether it exceeds the target, if that is known.
    #[serde(flatten)]
    fullness: Option<Fullness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_capacity: Option<bool>,
    seconds: f64,
}

impl Add {
    pub(super) fn add_on_server(&self, remote: &Remote) -> Result<Verdict, CliError> {
        let args = &self.change;
        if args.output.is_some() {
            return Err(CliError::Usage("-o: a filter on a server is changed in place".into()));
        }
        let started = Instant::now();
        let filter = RemoteFilter::open(remote, &self.server, &self.layout, args.foreign.items_as)?;
        filter.check_for_adding()?;
        let copies = if self.new_only { Copies::NewOnly } else { Copies::Another };
        let progress = Progress::start(args.progress);
        let (mut read, mut new) = (0, 0);
        let mut blocks = args.input.open(&progress)?;
        while let Some(block) = blocks.next()? {
            let item = |(index, line)| filling::item(filter.form(), &block, index, line);
            let items = block.items().enumerate().map(item).collect::<Result<Vec<LineItem<'_>>, _>>()?;
            let told = filter.add(&items, copies);
            let refused =
                told.answers.iter().position(|added| !matches!(added, Inserted::New | Inserted::MaybeBefore));
            if let Some(index) = refused {
                return Err(refusal(&filter, block.place(index), index, &told));
            }
            new += told.answers.iter().filter(|added| **added == Inserted::New).count() as u64;
            read += block.len() as u64;
            progress.add_items(block.len() as u64);
            drop(items);
            blocks.reuse(block);
        }
        drop(progress);
        let changed = Changed::Added { items_new: new, items_there_before: read - new };
        let seconds = started.elapsed().as_secs_f64();
        let fullness = filter.fullness();
        let over_capacity = fullness.map(|full| full.is_over_capacity());
        let name = filter.shown().to_owned();
        let report =
            ChangeReport { filter: name, items_read: read, changed, fullness, over_capacity, seconds };
        if !args.quiet {
            args.input.warn_of_skipped();
            if let Some(warning) = fullness.and_then(|full| full.warning()) {
                output::warn(format_args!("{}: {warning}", report.filter));
            }
            let before = match read - new {
                0 => String::new(),
                before => format!(", {} of them maybe there before", say::count(before)),
            };
            let took = progress::duration(Duration::from_secs_f64(seconds));
            output::tell(format_args!("{}: {} added{before}, {took}", report.filter, say::items(read)));
        }
        if args.json {
            output::to_stdout(|out, _| output::json(out, &report))?;
        }
        Ok(Verdict::Yes)
    }
}

impl Remove {
    pub(super) fn remove_on_server(&self, remote: &Remote) -> Result<Verdict, CliError> {
        let args = &self.change;
        if args.output.is_some() {
            return Err(CliError::Usage("-o: a filter on a server is changed in place".into()));
        }
        let started = Instant::now();
        let layout = LayoutArgs::default();
        let filter = RemoteFilter::open(remote, &self.server, &layout, args.foreign.items_as)?;
        filter.check_for_removing()?;
        let progress = Progress::start(args.progress);
        let (mut read, mut removed) = (0, 0);
        let mut blocks = args.input.open(&progress)?;
        while let Some(block) = blocks.next()? {
            let items: Vec<&[u8]> = block.items().collect();
            for (index, outcome) in filter.remove(&items).into_iter().enumerate() {
                let failed = |why: RemoteError| CliError::Input {
                    name: block.place(index),
                    what: format!(
                        "{}: this item was not removed, and later items may not have been removed either: {why}",
                        filter.shown()
                    ),
                };
                removed += u64::from(outcome.map_err(failed)?);
            }
            read += block.len() as u64;
            progress.add_items(block.len() as u64);
            drop(items);
            blocks.reuse(block);
        }
        drop(progress);
        let changed = Changed::Removed { items_removed: removed, items_not_in: read - removed };
        let seconds = started.elapsed().as_secs_f64();
        let name = filter.shown().to_owned();
        let report = ChangeReport {
            filter: name,
            items_read: read,
            changed,
            fullness: None,
            over_capacity: None,
            seconds,
        };
        if !args.quiet {
            args.input.warn_of_skipped();
            let not_in = match read - removed {
                0 => String::new(),
                not_in => format!(", {} not in the filter", say::count(not_in)),
            };
            let took = progress::duration(Duration::from_secs_f64(seconds));
            output::tell(format_args!("{}: {} removed{not_in}, {took}", report.filter, say::items(removed)));
        }
        if args.json {
            output::to_stdout(|out, _| output::json(out, &report))?;
        }
        Ok(Verdict::Yes)
    }
}

/// The error for an item that was not added, or for which that is unknown.
fn refusal(filter: &RemoteFilter, place: String, index: usize, told: &Replies<Inserted>) -> CliError {
    let why = told.why.as_deref().unwrap_or("the server gave no reason");
    let what = match told.answers[index] {
        Inserted::Full => {
            let said = told.why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!(
                "is full{said}: this item was not added, and maybe other items near it; `mayhap build --force` builds a larger filter from \
                 all items, with --grows one that grows"
            )
        }
        _ => format!(
            "not ready: this item was not added, and later items may or may not have been added: {why}"
        ),
    };
    CliError::Input { name: place, what: format!("{}: {what}", filter.shown()) }
}
