//! The server's own filters: `BF.*`, `CF.*`, `MF.*`.

use mayhap::{Item as _, Kind};
use mayhap_remote::redis::{self, Value};
use mayhap_remote::{Access, Answer, Inserted, RemoteError, Request};

use super::facts::ServerFacts;
use super::{Copies, Replies, Server};
use crate::change::counts_copies;
use crate::error::CliError;
use crate::item_form::LineItem;
use crate::remote::Family;

/// The number of items in one command.
const ITEMS_AT_ONCE: usize = 500;
/// The `TYPE` reply for a filter of valkey-bloom.
const VALKEY_BLOOM: &str = "bloomfltr";

/// A filter of the server's own.
pub(super) struct Named {
    family: Family,
    kind: String,
}

impl Named {
    /// Returns the filter if this `TYPE` reply is that of one.
    pub(super) fn of_type(kind: &str) -> Option<Self> {
        let family = if kind == VALKEY_BLOOM { Some(Family::Bloom) } else { Family::of_type(kind) };
        family.map(|family| Self { family, kind: kind.to_owned() })
    }

    /// The commands for this filter.
    pub(super) const fn family(&self) -> Family {
        self.family
    }

    pub(super) async fn ask(&self, server: &Server, items: &[LineItem<'_>]) -> Replies<Answer> {
        let answer = |value: &Value| match value {
            Value::Int(1) | Value::Boolean(true) => Ok(Answer::Maybe),
            Value::Int(0) | Value::Boolean(false) => Ok(Answer::No),
            other => Err((Answer::NotReady, RemoteError::reply("1 or 0", other))),
        };
        let command = || redis::cmd(self.family.ask_command()).arg(&server.name).take();
        let mut replies = self.batch(server, items, command, Access::Read, answer, Answer::NotReady).await;
        // RedisBloom answers *no* if the filter does not exist, so check that it still exists.
        let says_anything = replies.answers.iter().any(|answer| *answer != Answer::NotReady);
        if self.family != Family::Mayhap && says_anything {
            let still = server.link.ask_one(Request::read("TYPE", &server.name)).await;
            let cause = match still {
                Ok(Value::SimpleString(kind)) if kind == self.kind => return replies,
                Ok(_) => {
                    let name = String::from_utf8_lossy(&server.name).into_owned();
                    RemoteError::Unready { name, what: "it was deleted or replaced in between" }
                }
                Err(cause) => cause,
            };
            replies = Replies::new(vec![Answer::NotReady; items.len()], Some(&cause));
        }
        replies
    }

    pub(super) async fn add(
        &self,
        server: &Server,
        items: &[LineItem<'_>],
        copies: Copies,
    ) -> Replies<Inserted> {
        let added = |value: &Value| match value {
            Value::Int(1) | Value::Boolean(true) => Ok(Inserted::New),
            Value::Int(0) | Value::Boolean(false) => Ok(Inserted::MaybeBefore),
            Value::Int(-1) => Ok(Inserted::Full),
            Value::ServerError(error) => {
                let (code, text) = (error.code().to_owned(), error.details().unwrap_or_default().to_owned());
                let became = if says_full(&text) { Inserted::Full } else { Inserted::NotReady };
                Err((became, RemoteError::Refused { code, text }))
            }
            other => Err((Inserted::NotReady, RemoteError::reply("1 or 0", other))),
        };
        let command = || match (self.family, copies) {
            (Family::Mayhap, _) => redis::cmd("MF.MADD").arg(&server.name).take(),
            (Family::Bloom, _) => {
                redis::cmd("BF.INSERT").arg(&server.name).arg("NOCREATE").arg("ITEMS").take()
            }
            (Family::Cuckoo, copies) => {
                let command = if copies == Copies::NewOnly { "CF.INSERTNX" } else { "CF.INSERT" };
                redis::cmd(command).arg(&server.name).arg("NOCREATE").arg("ITEMS").take()
            }
        };
        let access = if self.takes_copies(server, copies).await { Access::Once } else { Access::Write };
        self.batch(server, items, command, access, added, Inserted::NotReady).await
    }

    /// Removes items, one by one. A request whose answer was lost is not sent again, because that could remove another copy.
    pub(super) async fn remove(&self, server: &Server, items: &[&[u8]]) -> Vec<Result<bool, RemoteError>> {
        let command = if self.family == Family::Cuckoo { "CF.DEL" } else { "MF.DEL" };
        let requests = items.iter().map(|item| Request::once(command, &server.name).arg(*item));
        let replies = server.link.ask(requests.collect()).await;
        let was_in = |reply| match reply {
            Value::Int(1) | Value::Boolean(true) => Ok(true),
            Value::Int(0) | Value::Boolean(false) => Ok(false),
            other => Err(RemoteError::reply("1 or 0", &other)),
        };
        replies.into_iter().map(|reply| reply.and_then(was_in)).collect()
    }

    /// Whether adding an item twice stores two copies. Then a request whose answer was lost is not sent again.
    async fn takes_copies(&self, server: &Server, copies: Copies) -> bool {
        match self.family {
            Family::Bloom => false,
            Family::Cuckoo => copies == Copies::Another,
            Family::Mayhap => {
                let kind = server.link.ask_one(Request::read("MF.INFO", &server.name).arg("kind")).await;
                let is_named = |kind: &Kind, name: &[u8]| kind.name().as_bytes() == name;
                let kind = match &kind {
                    Ok(Value::BulkString(name)) => Kind::ALL.iter().find(|kind| is_named(kind, name)),
                    _ => None,
                };
                kind.is_none_or(|&kind| counts_copies(kind))
            }
        }
    }

    async fn batch<A: Copy>(
        &self,
        server: &Server,
        items: &[LineItem<'_>],
        command: impl Fn() -> redis::Cmd,
        access: Access,
        read: impl Fn(&Value) -> Result<A, (A, RemoteError)>,
        not_ready: A,
    ) -> Replies<A> {
        let groups = items.chunks(ITEMS_AT_ONCE);
        let requests = groups.clone().map(|group| {
            let mut command = command();
            for item in group {
                item.with_bytes(|bytes| {
                    command.arg(bytes);
                });
            }
            Request::whole(command, &server.name, access)
        });
        let replies = server.link.ask(requests.collect()).await;
        let (mut answers, mut error) = (Vec::with_capacity(items.len()), None);
        for (group, reply) in groups.zip(replies) {
            let values = match reply {
                // RedisBloom stops at the first item that it rejects.
                Ok(Value::Array(mut values))
                    if matches!(values.last(), Some(Value::ServerError(_))) && values.len() < group.len() =>
                {
                    let refused = values[values.len() - 1].clone();
                    values.resize(group.len(), refused);
                    Ok(values)
                }
                Ok(Value::Array(values)) if values.len() == group.len() => Ok(values),
                Ok(other) => Err(RemoteError::reply("an answer for each item", &other)),
                Err(cause) => Err(cause),
            };
            match values {
                Ok(values) => answers.extend(values.iter().map(|value| {
                    read(value).unwrap_or_else(|(answer, cause)| {
                        error = Some(cause);
                        answer
                    })
                })),
                Err(cause) => {
                    answers.resize(answers.len() + group.len(), not_ready);
                    error = Some(cause);
                }
            }
        }
        Replies::new(answers, error.as_ref())
    }

    pub(super) fn facts(&self, server: &Server) -> Result<ServerFacts, CliError> {
        let command = self.family.info_command();
        let reply = server.wait(server.link.ask_one(Request::read(command, &server.name)))?;
        let pairs = match reply {
            Value::Array(list) => {
                list.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
            }
            Value::Map(pairs) => pairs,
            other => return Err(server.odd(RemoteError::reply("pairs", &other).to_string())),
        };
        let layout = match self.family {
            Family::Bloom => "a filter of the server (BF.*)",
            Family::Cuckoo => "a filter of the server (CF.*)",
            Family::Mayhap => "a filter of the server (MF.*)",
        };
        let mut facts = ServerFacts::new(layout, self.family.format().name());
        for (name, value) in pairs {
            facts.add_reply(&name, &value);
        }
        facts.of_family(self.family);
        Ok(facts)
    }
}

/// Whether the server rejects an item because the filter is full: `filter is full …`, `non scaling filter is full`, `Filter is full`.
fn says_full(text: &str) -> bool {
    text.to_ascii_lowercase().contains("filter is full")
}
