//! A filter on a server that may be unreachable at times.
//!
//! ```text
//! answered ──▶ no answer for PATIENCE: not ready ──▶ each later block: one short request ──▶ answered again
//!                                                        └─▶ no answer: not ready, and no request for as long as it took
//! ```
//!
//! So a stream keeps moving: at most half of the time is spent waiting for a server that is down, and a server that is
//! back is noticed soon.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mayhap::{Item as _, ItemEncoding};
use mayhap_remote::Answer;

use crate::error::CliError;
use crate::item_form::{ItemForm, LineItem};
use crate::output;
use crate::remote::{Remote, RemoteArgs};
use crate::remote_filter::{Haste, LayoutArgs, RemoteFilter, Replies};

/// The longest pause between requests to a server that is down.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// The address of a filter, and the options to open it.
pub(super) struct Opening<'a> {
    pub(super) remote: &'a Remote,
    pub(super) args: &'a RemoteArgs,
    pub(super) layout: &'a LayoutArgs,
    pub(super) items_as: Option<ItemEncoding>,
    /// Print no warning when an outage begins.
    pub(super) quiet: bool,
}

/// A filter on a server.
pub(super) struct ServerFilter<'a> {
    opening: Opening<'a>,
    state: Mutex<State>,
}

struct State {
    /// `None` until it could be opened.
    filter: Option<Arc<RemoteFilter>>,
    outage: Option<Outage>,
}

/// A time without answers.
#[derive(Clone)]
struct Outage {
    why: String,
    /// When the last request ended.
    asked: Instant,
    /// How long no request is sent after that.
    rest: Duration,
    /// No item is answered; otherwise some shards still answer.
    is_total: bool,
    /// An item that got no answer, if items are bytes. An answer for it ends the outage.
    witness: Option<Vec<u8>>,
}

impl Outage {
    fn is_resting(&self) -> bool {
        self.asked.elapsed() < self.rest
    }
}

impl<'a> ServerFilter<'a> {
    /// Opens it. If no server answers and `answers_lines`, it is opened later, and until then nothing is ready.
    ///
    /// # Errors
    /// It cannot be opened, for another reason than a missing answer.
    pub(super) fn open(opening: Opening<'a>, answers_lines: bool) -> Result<Self, CliError> {
        let state = match opening.open(Haste::Little) {
            Ok(filter) => State { filter: Some(Arc::new(filter)), outage: None },
            Err(away @ CliError::Unreachable { .. }) if answers_lines => {
                let (why, asked) = (away.to_string(), Instant::now());
                let outage = Outage { why, asked, rest: Duration::ZERO, is_total: true, witness: None };
                State { filter: None, outage: Some(outage) }
            }
            Err(error) => return Err(error),
        };
        Ok(Self { opening, state: Mutex::new(state) })
    }

    /// The filter. Opens it if it is not open yet.
    ///
    /// # Errors
    /// Why it cannot be opened now.
    pub(super) fn filter(&self) -> Result<Arc<RemoteFilter>, String> {
        let mut state = self.state();
        if let Some(filter) = &state.filter {
            return Ok(filter.clone());
        }
        if let Some(outage) = state.outage.as_ref().filter(|outage| outage.is_resting()) {
            return Err(outage.why.clone());
        }
        let begun = Instant::now();
        match self.opening.open(Haste::Great) {
            Ok(filter) => {
                filter.hurry(false);
                let filter = Arc::new(filter);
                *state = State { filter: Some(filter.clone()), outage: None };
                Ok(filter)
            }
            Err(error) => {
                let why = error.to_string();
                let rest = begun.elapsed().min(LONGEST_REST);
                let asked = Instant::now();
                state.outage = Some(Outage { why: why.clone(), asked, rest, is_total: true, witness: None });
                Err(why)
            }
        }
    }

    /// The answers of [`filter`](Self::filter) for these items; not ready for items that get no answer.
    pub(super) fn ask(&self, filter: &RemoteFilter, items: &[LineItem<'_>]) -> Replies<Answer> {
        let Some(first) = items.first() else { return filter.ask(items) };
        let outage = self.state().outage.clone();
        if let Some(outage) = outage {
            let not_ready = |why: &str| Replies::not_ready(Answer::NotReady, items.len(), why.to_owned());
            if outage.is_total && outage.is_resting() {
                return not_ready(&outage.why);
            }
            let begun = Instant::now();
            let witness = outage.witness.as_deref().map_or(*first, LineItem::Bytes);
            let told = filter.ask(&[witness]);
            if told.answers.contains(&Answer::NotReady) {
                let why = told.why.unwrap_or(outage.why);
                let rest = begun.elapsed().min(LONGEST_REST);
                if outage.is_total {
                    let told = not_ready(&why);
                    self.state().outage = Some(Outage { why, asked: Instant::now(), rest, ..outage });
                    return told;
                }
            } else {
                self.state().outage = None;
                filter.hurry(false);
            }
        }
        let told = filter.ask(items);
        if told.unreachable {
            self.begin_outage(filter, items, &told);
        }
        told
    }

    fn begin_outage(&self, filter: &RemoteFilter, items: &[LineItem<'_>], told: &Replies<Answer>) {
        filter.hurry(true);
        let unready = |answer: &Answer| !matches!(answer, Answer::Maybe | Answer::No);
        let first = told.answers.iter().position(unready).and_then(|index| items.get(index));
        let witness = first.filter(|_| filter.form() == ItemForm::Bytes);
        let outage = Outage {
            why: told.why.clone().unwrap_or_default(),
            asked: Instant::now(),
            rest: Duration::ZERO,
            is_total: told.answers.iter().all(unready),
            witness: witness.map(|item| item.with_bytes(<[u8]>::to_vec)),
        };
        let before = self.state().outage.replace(outage);
        if before.is_none() && !self.opening.quiet {
            output::warn(format_args!(
                "{}: the server does not answer; lines are not ready until it is back",
                self.opening.remote.shown()
            ));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opening<'_> {
    fn open(&self, haste: Haste) -> Result<RemoteFilter, CliError> {
        RemoteFilter::open_in(haste, self.remote, self.args, self.layout, self.items_as)
    }
}
