//! `EXPIRE`, `TTL` and related commands.

use mayhap_command::keyspace::{Since, TimeFormat};
use mayhap_command::{Refusal, Reply, Request, args};

use super::quoted;
use crate::engine::{Engine, Turn};
use crate::entry::Now;

/// The conditions of `EXPIRE`.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    /// `NX`: only if the name has no deadline.
    never: bool,
    /// `XX`: only if it has one.
    some_time: bool,
    /// `GT`: only if the deadline becomes later; no deadline counts as the latest.
    later: bool,
    /// `LT`: only if the deadline becomes earlier.
    earlier: bool,
}

impl Conditions {
    fn parse(words: &[&[u8]]) -> Result<Self, Refusal> {
        let mut conditions = Self::default();
        for word in words {
            let condition = match &word.to_ascii_lowercase()[..] {
                b"nx" => &mut conditions.never,
                b"xx" => &mut conditions.some_time,
                b"gt" => &mut conditions.later,
                b"lt" => &mut conditions.earlier,
                _ => {
                    return Err(Refusal::UnsupportedOption { option: quoted(word) });
                }
            };
            *condition = true;
        }
        if conditions.never && (conditions.some_time || conditions.later || conditions.earlier) {
            return Err(Refusal::NewAndOthers);
        }
        if conditions.later && conditions.earlier {
            return Err(Refusal::GreaterAndLess);
        }
        Ok(conditions)
    }

    fn admit(self, current: Option<i64>, next: i64) -> bool {
        !(self.never && current.is_some()
            || self.some_time && current.is_none()
            || self.later && current.is_none_or(|current| next <= current)
            || self.earlier && current.is_some_and(|current| next >= current))
    }
}

impl Engine {
    pub(super) fn expire(
        &self,
        request: &Request<'_>,
        format: TimeFormat,
        turn: &Turn<'_>,
    ) -> Result<Reply, Refusal> {
        let now = turn.now;
        let conditions = Conditions::parse(&request.words[3..])?;
        let given = args::integer(request.words[2]).ok_or(Refusal::NotAnInteger)?;
        let base = match format.since {
            Since::Now => signed(now.ms),
            Since::Epoch => 0,
        };
        let invalid = Refusal::InvalidExpiry { command: request.command.name };
        let deadline = given.checked_mul(format.unit_ms).and_then(|ms| match ms > i64::MAX - base {
            true => None,
            false => Some(ms.saturating_add(base)),
        });
        let deadline = deadline.ok_or(invalid)?;
        if self.find(request.name(), now).is_none() {
            return Ok(Reply::Integer(0));
        }
        Ok(Reply::Integer(self.hold(request.name(), now, |hold| {
            let current = self.expiries.get(hold.entry()).map(signed);
            if hold.value().is_none() || !conditions.admit(current, deadline) {
                return 0;
            }
            hold.changed = true;
            match u64::try_from(deadline) {
                Ok(deadline) if deadline > now.ms => {
                    hold.log(self.log_words(&[request.name()], request, &[], turn.moment));
                    self.expiries.set(hold.entry(), Some(deadline));
                }
                // The deadline has passed already.
                _ => {
                    hold.log(self.log_removed(request.name(), Some(turn.moment)));
                    hold.remove();
                }
            }
            1
        })))
    }

    pub(super) fn remaining(&self, request: &Request<'_>, format: TimeFormat, now: Now) -> Reply {
        const MISSING: i64 = -2;
        const NEVER: i64 = -1;
        let Some(entry) = self.find(request.name(), now) else { return Reply::Integer(MISSING) };
        let value = entry.read();
        if value.is_none() {
            return Reply::Integer(MISSING);
        }
        let Some(deadline) = self.expiries.get(&entry) else { return Reply::Integer(NEVER) };
        let ms = match format.since {
            Since::Now => deadline.saturating_sub(now.ms),
            Since::Epoch => deadline,
        };
        let unit = format.unit_ms.unsigned_abs();
        Reply::count(ms.saturating_add(unit / 2) / unit)
    }

    pub(super) fn persist(&self, request: &Request<'_>, turn: &Turn<'_>) -> Reply {
        let now = turn.now;
        if self.find(request.name(), now).is_none() {
            return Reply::Integer(0);
        }
        Reply::Integer(self.hold(request.name(), now, |hold| {
            let expired = self.expiries.set(hold.entry(), None).is_some();
            hold.changed |= expired;
            if expired {
                hold.log(self.log_words(&[request.name()], request, &[], turn.moment));
            }
            i64::from(expired)
        }))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
