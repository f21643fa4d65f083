//! `DUMP`, `RESTORE`.

use mayhap_command::{Refusal, Reply, Request, Value, args, payload};

use crate::engine::{Engine, Turn};
use crate::entry::Now;

/// The options after the payload of `RESTORE`.
#[derive(Debug, Default)]
struct Options {
    replace: bool,
    /// The time to live is absolute, since 1970.
    absolute: bool,
    idle_secs: Option<u32>,
}

impl Options {
    fn parse(words: &[&[u8]]) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut frequency = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let is = |option: &[u8]| word.eq_ignore_ascii_case(option);
            let mut number = || {
                let word = words.next().ok_or(Refusal::Syntax)?;
                args::integer(word).ok_or(Refusal::NotAnInteger)
            };
            if is(b"replace") {
                options.replace = true;
            } else if is(b"absttl") {
                options.absolute = true;
            } else if is(b"idletime") && frequency.is_none() {
                let secs = u64::try_from(number()?).map_err(|_| Refusal::InvalidIdleTime)?;
                options.idle_secs = Some(u32::try_from(secs).unwrap_or(u32::MAX));
            } else if is(b"freq") && options.idle_secs.is_none() {
                // Checked and ignored: nothing is evicted.
                frequency = Some(u8::try_from(number()?).map_err(|_| Refusal::InvalidFrequency)?);
            } else {
                return Err(Refusal::Syntax);
            }
        }
        Ok(options)
    }
}

impl Engine {
    pub(super) fn dump(&self, request: &Request<'_>, now: Now) -> Result<Reply, Refusal> {
        if self.find(request.name(), now).is_none() {
            return self
                .unknown_losses
                .of(request.name())
                .map_or(Ok(Reply::Null), |lost| Err(Refusal::Lost(lost)));
        }
        self.hold(request.name(), now, |hold| match hold.value_mut() {
            None => Ok(Reply::Null),
            Some(value) => payload::dump(value, payload::PORTABLE_RDB_VERSION).map(Reply::Bulk),
        })
    }

    pub(super) fn restore(&self, request: &Request<'_>, turn: &Turn<'_>) -> Result<Reply, Refusal> {
        let Turn { context, now, moment } = *turn;
        let options = Options::parse(&request.words[4..])?;
        // A lost value is created again.
        let holds = |value: Option<&Value>| value.is_some_and(|value| value.lost().is_none());
        let is_busy = || self.find(request.name(), now).is_some_and(|entry| holds(entry.read().as_ref()));
        if !options.replace && is_busy() {
            return Err(Refusal::BusyName);
        }
        let ttl = args::integer(request.words[2]).ok_or(Refusal::NotAnInteger)?;
        let ttl = u64::try_from(ttl).map_err(|_| Refusal::InvalidTtl)?;
        let deadline = match (ttl, options.absolute) {
            (0, _) => None,
            (ttl, true) => Some(ttl),
            (ttl, false) => Some(now.ms.saturating_add(ttl)),
        };
        let value = payload::restore(request.words[3], context)?;
        self.hold(request.name(), now, |hold| {
            if holds(hold.value()) && !options.replace {
                return Err(Refusal::BusyName);
            }
            let is_over = deadline.is_some_and(|deadline| deadline <= now.ms);
            if is_over {
                if hold.remove() {
                    hold.log(self.log_removed(request.name(), Some(moment)));
                }
                return Ok(Reply::Ok);
            }
            hold.put(value);
            hold.log(self.log_words(&[request.name()], request, &[], moment));
            self.expiries.set(hold.entry(), deadline);
            hold.entry().set_made_secs(now.unix_secs());
            hold.entry().set_idle_secs(now, options.idle_secs.unwrap_or(0));
            self.statistics.take_answers_of(hold.entry());
            Ok(Reply::Ok)
        })
    }
}
