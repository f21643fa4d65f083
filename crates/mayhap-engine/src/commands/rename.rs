//! `RENAME`, `RENAMENX`, `COPY`.

use mayhap_command::{Refusal, Reply, Request, Value, args};

use super::only_database;
use crate::engine::{Engine, Turn};
use crate::entry::Now;
use crate::hold::Hold;

impl Engine {
    pub(super) fn rename(&self, request: &Request<'_>, turn: &Turn<'_>) -> Result<Reply, Refusal> {
        let now = turn.now;
        let (from, to) = (request.words[1], request.words[2]);
        self.must_hold(from, now)?;
        if from == to {
            return Ok(Reply::Ok);
        }
        self.hold_both([from, to], now, |from, to| {
            if from.value().is_none() {
                return Err(Refusal::NoSuchName);
            }
            self.log_renamed(request, turn, from, to);
            self.hand_over(from, to);
            Ok(Reply::Ok)
        })
    }

    pub(super) fn rename_new(&self, request: &Request<'_>, turn: &Turn<'_>) -> Result<Reply, Refusal> {
        let now = turn.now;
        let (from, to) = (request.words[1], request.words[2]);
        self.must_hold(from, now)?;
        if from == to {
            return Ok(Reply::Integer(0));
        }
        self.hold_both([from, to], now, |from, to| {
            if from.value().is_none() {
                return Err(Refusal::NoSuchName);
            }
            if to.value().is_some() {
                return Ok(Reply::Integer(0));
            }
            self.log_renamed(request, turn, from, to);
            self.hand_over(from, to);
            Ok(Reply::Integer(1))
        })
    }

    fn must_hold(&self, name: &[u8], now: Now) -> Result<(), Refusal> {
        match self.find(name, now) {
            Some(entry) if entry.read().is_some() => Ok(()),
            _ => Err(Refusal::NoSuchName),
        }
    }

    fn log_renamed(&self, request: &Request<'_>, turn: &Turn<'_>, from: &mut Hold<'_>, to: &mut Hold<'_>) {
        let names = [from.entry().name(), to.entry().name()];
        let number = self.log_words(&names, request, &[], turn.moment);
        from.log(number);
        to.log(number);
        self.log_made_of_others(to.entry().name());
    }

    /// Moves everything that belongs to a value: its deadline, its age, its counts.
    pub(crate) fn hand_over(&self, from: &mut Hold<'_>, to: &mut Hold<'_>) {
        let Some(value) = from.take() else { return };
        to.put(value);
        let deadline = self.expiries.set(from.entry(), None);
        self.expiries.set(to.entry(), deadline);
        to.entry().set_made_secs(from.entry().made_secs());
        self.statistics.take_answers_of(to.entry());
        let (hits, misses) = self.statistics.take_answers_of(from.entry());
        to.entry().count(hits, misses, |hits, misses| self.statistics.count_large(to.entry(), hits, misses));
    }

    pub(super) fn copy(&self, request: &Request<'_>, turn: &Turn<'_>) -> Result<Reply, Refusal> {
        let Turn { context, now, moment } = *turn;
        let (from, to) = (request.words[1], request.words[2]);
        let mut replace = false;
        let mut words = request.words[3..].iter();
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"replace") {
                replace = true;
            } else if word.eq_ignore_ascii_case(b"db") {
                let number = words.next().ok_or(Refusal::Syntax)?;
                only_database(args::integer(number).ok_or(Refusal::NotAnInteger)?)?;
            } else {
                return Err(Refusal::Syntax);
            }
        }
        if from == to {
            return Err(Refusal::SameName);
        }
        if self.must_hold(from, now).is_err() {
            return self
                .unknown_losses
                .of(from)
                .map_or(Ok(Reply::Integer(0)), |lost| Err(Refusal::Lost(lost)));
        }
        self.hold_both([from, to], now, |from, to| {
            if from.value().is_none() || to.value().is_some() && !replace {
                return Ok(Reply::Integer(0));
            }
            let bytes = from.value().map_or(0, Value::memory_bytes);
            context.admit(bytes, bytes)?;
            let Some(value) = from.value_mut() else { return Ok(Reply::Integer(0)) };
            to.put(value.try_clone()?);
            to.log(self.log_words(&[to.entry().name()], request, &[], moment));
            self.log_made_of_others(to.entry().name());
            let deadline = self.expiries.get(from.entry());
            self.expiries.set(to.entry(), deadline);
            to.entry().set_made_secs(now.unix_secs());
            self.statistics.take_answers_of(to.entry());
            Ok(Reply::Integer(1))
        })
    }
}
