//! Redisson's `RBloomFilter`, used beside the programs in Java that it belongs to.
//!
//! ```text
//! NAME            a string of bits: as long as its highest set bit needs, and no key at all while there is none
//! {NAME}:config   a hash: size, hashIterations, expectedInsertions, falseProbability
//! ```
//!
//! Bits, config and answers are Redisson's own ([`mayhap::codec::redisson`] has the layout and the codecs), so both sides may add and ask
//! as they like. What is different here:
//!
//! - **Three answers.** No config: [`Answer::NotReady`]. Redisson throws then, or, where it has read the config before, says *absent*.
//! - **A bitmap that is missing is not ready either**, although Redisson's empty filters have none: an empty filter and one whose bitmap was
//!   evicted or deleted look the same, and of these two only the second does harm. Who knows better says
//!   [`empty_is_absent`](RedissonFilter::empty_is_absent). Adding an item makes the bitmap.
//! - **The config is looked at with every batch**, as Redisson does with every item: before the bits and behind them, on the same
//!   connection. When it has changed, what was read is thrown away, and the batch begins anew with the new one. (A filter that is deleted and
//!   made again *with the same numbers* while a batch is under way has the answers of either.) Additions go by a script that
//!   looks at the config first, so none is ever made to a filter that is another by then.
//! - **A new generation in one step**: [`replace_with`](RedissonFilter::replace_with).
//!
//! It asks for `BITFIELD_RO`, which Redis has since 6.0, and, as Redisson does, for `EVAL`. In a cluster both keys are in one slot, unless the name has
//! a brace but no tag: such filters do not work there, with Redisson neither.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use mayhap::codec::redisson::{self, Config, config_key};
use mayhap::{Bloom, HashScheme, Item, ItemEncoding, sizing};
use redis::Value;

use crate::java_bitmap::{self, AT_ONCE, Gathered, Guarded, TOGETHER};
use crate::java_swap::Successor;
use crate::{Access, Added, Additions, Answer, Answers, Link, RemoteError, Request};

/// `KEYS`: the config. `ARGV`: its fields.
const INIT: &str = "\
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('hset', KEYS[1], unpack(ARGV))
return 1";

/// `KEYS`: the bitmap, the config. `ARGV`: the size and the hash iterations it must have, and what is to be done.
const ADD: &str = "\
local now = redis.call('hmget', KEYS[2], 'size', 'hashIterations')
if now[1] ~= ARGV[1] or now[2] ~= ARGV[2] then return false end
return redis.call('bitfield', KEYS[1], unpack(ARGV, 3))";

/// The fields of a config, as Redisson names them.
const FIELDS: [&str; 4] = ["size", "hashIterations", "expectedInsertions", "falseProbability"];

/// How often a config is read again for one batch before that is given up.
const TRIES: u32 = 5;

/// A filter of Redisson's.
///
/// ```no_run
/// use mayhap::ItemEncoding;
/// use mayhap_remote::{Answer, Link, LinkOptions, RedissonFilter};
///
/// # async fn example() -> Result<(), mayhap_remote::RemoteError> {
/// let link = Link::open(["redis://localhost"], LinkOptions::default()).await?;
/// // As `redisson.getBloomFilter("users")`, whose codec is Kryo5 unless it was told another.
/// let users = RedissonFilter::open(&link, "users", ItemEncoding::Kryo5).await?;
/// let answers = users.ask(&["ada", "grace"]).await;
/// if answers.as_slice()[0] == Answer::Absent {
///     // Certainly nobody. For NotReady, ask the database.
/// }
/// # Ok(())
/// # }
/// ```
pub struct RedissonFilter {
    link: Link,
    name: String,
    config_key: String,
    items: ItemEncoding,
    /// What it was when somebody looked last.
    config: Mutex<Option<Config>>,
    empty: Answer,
}

impl RedissonFilter {
    /// The filter of this name, whose codec makes bytes of items in this way. Nothing is asked of the server yet.
    #[must_use]
    pub fn named(link: &Link, name: &str, items: ItemEncoding) -> Self {
        Self {
            link: link.clone(),
            name: name.to_owned(),
            config_key: config_key(name),
            items,
            config: Mutex::new(None),
            empty: Answer::NotReady,
        }
    }

    /// The filter of this name, and what its config says.
    ///
    /// It need not be there yet: then it is not ready, and is looked for again with every batch.
    ///
    /// # Errors
    /// A config that makes no filter, or a server that does not answer.
    pub async fn open(link: &Link, name: &str, items: ItemEncoding) -> Result<Self, RemoteError> {
        let filter = Self::named(link, name, items);
        match filter.read_config().await {
            Ok(_) | Err(RemoteError::Unready { .. }) => Ok(filter),
            Err(cause) => Err(cause),
        }
    }

    /// Makes a filter as `tryInit` does.
    ///
    /// # Errors
    /// [`RemoteError::Taken`] if there is a config already, [`RemoteError::Unbuildable`] for numbers that make none, or a server that does not
    /// answer. A server whose first answer got lost may say *taken* of what was just made.
    pub async fn try_init(
        link: &Link,
        name: &str,
        expected_insertions: u64,
        false_probability: f64,
        items: ItemEncoding,
    ) -> Result<Self, RemoteError> {
        let config = Config::sized(expected_insertions, false_probability)?;
        let key = config_key(name);
        let mut command = redis::cmd("EVAL");
        command.arg(INIT).arg(1).arg(&key);
        for (field, value) in config.fields() {
            command.arg(field).arg(value);
        }
        let made = link.ask_one(Request::whole(command, key.as_bytes(), Access::Write)).await?;
        match java_bitmap::number(&made)? {
            1 => Self::open(link, name, items).await,
            _ => Err(RemoteError::Taken { name: key }),
        }
    }

    /// Is there the config of such a filter?
    ///
    /// # Errors
    /// A server that does not answer.
    pub async fn is_there(link: &Link, name: &str) -> Result<bool, RemoteError> {
        let key = config_key(name);
        let kind = link.ask_one(Request::read("TYPE", key.as_bytes())).await?;
        Ok(matches!(kind, Value::SimpleString(kind) if kind == "hash"))
    }

    /// A bitmap that is missing means that nothing was added, as it does to Redisson, rather than *not ready*.
    #[must_use]
    pub fn empty_is_absent(mut self) -> Self {
        self.empty = Answer::Absent;
        self
    }

    /// The answers for these items.
    pub async fn ask<I: Item>(&self, items: &[I]) -> Answers {
        let mut all = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for group in items.chunks(AT_ONCE) {
            match self.ask_group(group).await {
                Ok(answers) => all.append(answers),
                Err(cause) => {
                    all.give_up(items.len(), Answer::NotReady, cause);
                    break;
                }
            }
        }
        Answers::new(all.given, all.error)
    }

    /// Adds these items.
    pub async fn add<I: Item>(&self, items: &[I]) -> Additions {
        let mut all = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for group in items.chunks(AT_ONCE) {
            match self.add_group(group).await {
                Ok(added) => all.append(added),
                Err(cause) => {
                    all.give_up(items.len(), Added::NotReady, cause);
                    break;
                }
            }
        }
        Additions::new(all.given, all.error)
    }

    async fn ask_group<I: Item>(&self, items: &[I]) -> Result<Gathered<Answer>, RemoteError> {
        for _ in 0..TRIES {
            let config = self.config().await?;
            if let Some(answers) = self.look(&config, items).await? {
                return Ok(answers);
            }
            self.remember(None);
        }
        Err(self.changing())
    }

    /// The answers by this config. `None`: it is another one now.
    async fn look<I: Item>(
        &self,
        config: &Config,
        items: &[I],
    ) -> Result<Option<Gathered<Answer>>, RemoteError> {
        let check = || {
            let mut command = redis::cmd("HMGET");
            command.arg(&self.config_key).arg(&FIELDS[..2]);
            Request::whole(command, self.config_key.as_bytes(), TOGETHER)
        };
        let looks = items
            .iter()
            .map(|item| java_bitmap::look(&self.name, config.positions(item, self.items), TOGETHER));
        let len = java_bitmap::len(&self.name, TOGETHER);
        let requests = [check()].into_iter().chain(looks).chain([len, check()]).collect();
        let mut replies = self.link.ask(requests).await;
        let (Some(after), Some(len)) = (replies.pop(), replies.pop()) else { return Err(self.changing()) };
        let mut replies = replies.into_iter();
        let before = replies.next().ok_or_else(|| self.changing())?;
        if !is_config(&before?, config) || !is_config(&after?, config) {
            return Ok(None);
        }
        if java_bitmap::number(&len?)? == 0 {
            let error = (self.empty == Answer::NotReady).then(|| self.unready("it has no bitmap"));
            return Ok(Some(Gathered { given: vec![self.empty; items.len()], error }));
        }
        let mut answers = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for reply in replies {
            let answer = reply.and_then(|value| {
                java_bitmap::bits(&value, config.hash_iterations() as usize).map(java_bitmap::answer)
            });
            answers.push(answer, Answer::NotReady);
        }
        Ok(Some(answers))
    }

    async fn add_group<I: Item>(&self, items: &[I]) -> Result<Gathered<Added>, RemoteError> {
        for _ in 0..TRIES {
            let config = self.config().await?;
            let positions =
                items.iter().flat_map(|item| config.positions(item, self.items)).collect::<Vec<_>>();
            let [(_, size), (_, iterations), ..] = config.fields();
            let guarded =
                Guarded { script: ADD, keys: &[&self.name, &self.config_key], words: &[size, iterations] };
            if let Some(added) = guarded.set(&self.link, config.hash_iterations() as usize, &positions).await
            {
                return Ok(added);
            }
            self.remember(None);
        }
        Err(self.changing())
    }

    /// The config as it was seen last, or else as it is.
    ///
    /// # Errors
    /// [`RemoteError::Unready`] if there is none, [`RemoteError::Config`] for one that makes no filter, or a server that does not answer.
    pub async fn config(&self) -> Result<Config, RemoteError> {
        let seen = *self.config.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Some(config) => Ok(config),
            None => self.read_config().await,
        }
    }

    async fn read_config(&self) -> Result<Config, RemoteError> {
        // Its four fields, and not whatever else somebody may have put there.
        let reply =
            self.link.ask_one(Request::read("HMGET", self.config_key.as_bytes()).arg(&FIELDS)).await?;
        let Value::Array(values) = &reply else { return Err(RemoteError::reply("fields", &reply)) };
        let fields = FIELDS.iter().zip(values).filter_map(|(name, value)| match value {
            Value::BulkString(text) => Some((*name, text)),
            _ => None,
        });
        if fields.clone().next().is_none() {
            return Err(self.unready("it has no config"));
        }
        let config = Config::from_fields(fields)
            .map_err(|cause| RemoteError::Config { name: self.config_key.clone(), cause })?;
        self.remember(Some(config));
        Ok(config)
    }

    fn remember(&self, config: Option<Config>) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// How many items Redisson's `count()` says there are. (Of a full bitmap that says nothing but *very many*, and so does this.)
    ///
    /// # Errors
    /// [`RemoteError::Unready`] if there is no config, or a server that does not answer.
    pub async fn count(&self) -> Result<u64, RemoteError> {
        let config = self.read_config().await?;
        Ok(sizing::classic::items_from_fill(config.size(), config.hash_iterations(), self.ones().await?))
    }

    /// How many of its bits are set.
    ///
    /// # Errors
    /// A server that does not answer, or says that there is no bitmap of this name but something else.
    pub async fn ones(&self) -> Result<u64, RemoteError> {
        java_bitmap::number(&self.link.ask_one(Request::read("BITCOUNT", self.name.as_bytes())).await?)
    }

    /// Puts another filter in its place, config and all, in one step: a new generation. Whoever asks meanwhile gets the old one.
    ///
    /// Fill it with [`redisson::create`] and the methods of [`Bloom`]; it may be larger or smaller than the one that is there, or the first of its
    /// name. What anybody adds to the old one while the new one is on its way is gone with the old: programs in Java know nothing of
    /// generations, so whoever adds must add to both, or wait. The expiry of the old one goes over.
    ///
    /// # Errors
    /// [`RemoteError::OtherLayout`] for a filter that is not Redisson's or whose items have another encoding, or a server that does not
    /// answer; then the old one stays, unless no answer came to the very last request.
    pub async fn replace_with(&self, filter: &Bloom) -> Result<(), RemoteError> {
        self.replace_watched(filter, |_| ControlFlow::Continue(())).await
    }

    /// [`replace_with`](Self::replace_with); `watch` is told how many bytes have arrived, and may stop it.
    ///
    /// # Errors
    /// As there, and [`RemoteError::Stopped`].
    pub async fn replace_watched(
        &self,
        filter: &Bloom,
        watch: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), RemoteError> {
        let layout = |why| RemoteError::OtherLayout { wanted: "Redisson's", why };
        let config = redisson::config(filter).map_err(|cause| layout(cause.to_string()))?;
        match filter.scheme() {
            HashScheme::Foreign(scheme) if scheme.items() != self.items => {
                let why = format!("its items are {}, not {}", scheme.items(), self.items);
                return Err(layout(why));
            }
            _ => {}
        }
        let bitmap = redisson::bitmap(filter).map_err(|cause| layout(cause.to_string()))?;
        let fields = config.fields();
        let successor =
            Successor { name: &self.name, bitmap: &bitmap, config: Some((&self.config_key, fields)) };
        successor.take_place(&self.link, watch).await?;
        self.remember(Some(config));
        Ok(())
    }

    /// Removes bitmap and config in one step.
    ///
    /// # Errors
    /// A server that does not answer.
    pub async fn delete(&self) -> Result<(), RemoteError> {
        self.remember(None);
        let request = Request::write("DEL", self.name.as_bytes()).arg(&self.config_key);
        self.link.ask_one(request).await.map(|_| ())
    }

    /// How items become bytes.
    #[must_use]
    pub const fn items(&self) -> ItemEncoding {
        self.items
    }

    fn unready(&self, what: &'static str) -> RemoteError {
        RemoteError::Unready { name: self.name.clone(), what }
    }

    fn changing(&self) -> RemoteError {
        RemoteError::Changing { name: self.name.clone(), tries: TRIES }
    }
}

/// Does a server still say the same of size and hash iterations?
fn is_config(reply: &Value, config: &Config) -> bool {
    let is =
        |value: &Value, text: &str| matches!(value, Value::BulkString(there) if there == text.as_bytes());
    let [(_, size), (_, iterations), ..] = config.fields();
    matches!(reply, Value::Array(values) if values.len() == 2 && is(&values[0], &size) && is(&values[1], &iterations))
}
