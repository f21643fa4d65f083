//! Redisson's `RBloomFilter`, shared with the Java programs that use it.
//!
//! ```text
//! NAME            a string of bits: as long as its highest set bit needs, and no key at all while there is none
//! {NAME}:config   a hash: size, hashIterations, expectedInsertions, falseProbability
//! ```
//!
//! Bits, config and answers are the same as Redisson's ([`mayhap_formats::redisson`] has the layout and the
//! codecs), so both sides may insert and look up. The differences:
//!
//! - **Three answers.** Without a config the answer is [`Answer::NotReady`]. Redisson throws, or answers *no*
//!   if it has read the config before.
//! - **A missing bitmap is not ready either**, although Redisson's empty filters have none. An empty filter
//!   looks the same as one whose bitmap was evicted or deleted, and the second would answer *no* for members.
//!   Callers that know better use [`empty_means_no`](RedissonFilter::empty_means_no). Inserting an item
//!   creates the bitmap.
//! - **The config is checked with every batch**, as Redisson does with every item: before and after the bits,
//!   on the same connection. If it has changed, the replies are dropped, and the batch starts again with the
//!   new config. (If a filter is deleted and created again *with the same numbers* during a batch, the
//!   answers may be those of either.) Insertions use a script that checks the config first, so no item goes
//!   to a filter that has been replaced.
//! - **A new generation in one step**: [`replace_with`](RedissonFilter::replace_with).
//!
//! It needs `BITFIELD_RO`, which Redis has since 6.0, and `EVAL`, as Redisson does. In a cluster both keys
//! are in one slot, unless the name has a brace but no hash tag. Such filters do not work in a cluster, not
//! with Redisson either.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use mayhap::{Bloom, HashScheme, Item, ItemEncoding, sizing};
use mayhap_formats::redisson::{self, Config, config_key};
use redis::Value;

use crate::java_bitmap::{self, AT_ONCE, Gathered, Guarded, TOGETHER};
use crate::java_swap::Successor;
use crate::{Access, Answer, Answers, Inserted, Insertions, Link, RemoteError, Request};

/// `KEYS`: the config. `ARGV`: its fields.
const INIT: &str = "\
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('hset', KEYS[1], unpack(ARGV))
return 1";

/// `KEYS`: the bitmap, the config. `ARGV`: the required size and hash iterations, and the words of the
/// command.
const ADD: &str = "\
local now = redis.call('hmget', KEYS[2], 'size', 'hashIterations')
if now[1] ~= ARGV[1] or now[2] ~= ARGV[2] then return false end
return redis.call('bitfield', KEYS[1], unpack(ARGV, 3))";

/// The fields of a config, as Redisson names them.
const FIELDS: [&str; 4] = ["size", "hashIterations", "expectedInsertions", "falseProbability"];

/// How many times a batch starts again because the config changed, before it fails.
const TRIES: u32 = 5;

/// A filter in Redisson's layout.
///
/// ```no_run
/// use mayhap::ItemEncoding;
/// use mayhap_remote::{Answer, Link, LinkOptions, RedissonFilter};
///
/// # async fn example() -> Result<(), mayhap_remote::RemoteError> {
/// let link = Link::open(["redis://localhost"], LinkOptions::default()).await?;
/// // As `redisson.getBloomFilter("users")`, whose default codec is Kryo5.
/// let users = RedissonFilter::open(&link, "users", ItemEncoding::Kryo5).await?;
/// let answers = users.may_contain(&["ada", "grace"]).await;
/// if answers.as_slice()[0] == Answer::No {
///     // Certainly not a user. For Maybe and NotReady, ask the database.
/// }
/// # Ok(())
/// # }
/// ```
pub struct RedissonFilter {
    link: Link,
    name: String,
    config_key: String,
    items: ItemEncoding,
    /// The config as it was read last.
    config: Mutex<Option<Config>>,
    empty: Answer,
}

impl RedissonFilter {
    /// The filter with this name. `items` is the encoding of its codec. Sends no request.
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

    /// Opens the filter with this name and reads its config.
    ///
    /// The filter need not exist yet: then it is not ready, and every batch looks for it again.
    ///
    /// # Errors
    /// The config is invalid, or a server does not answer.
    pub async fn open(link: &Link, name: &str, items: ItemEncoding) -> Result<Self, RemoteError> {
        let filter = Self::named(link, name, items);
        match filter.read_config().await {
            Ok(_) | Err(RemoteError::Unready { .. }) => Ok(filter),
            Err(cause) => Err(cause),
        }
    }

    /// Creates a filter as `tryInit` does.
    ///
    /// # Errors
    /// [`RemoteError::Taken`] if there is a config already, [`RemoteError::Unbuildable`] for invalid numbers,
    /// or a server does not answer. If the first answer was lost, the error may be *taken* for a filter that
    /// was just created.
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

    /// Does the config of this filter exist?
    ///
    /// # Errors
    /// A server does not answer.
    pub async fn is_there(link: &Link, name: &str) -> Result<bool, RemoteError> {
        let key = config_key(name);
        let kind = link.ask_one(Request::read("TYPE", key.as_bytes())).await?;
        Ok(matches!(kind, Value::SimpleString(kind) if kind == "hash"))
    }

    /// Treats a missing bitmap as an empty filter, as Redisson does, instead of *not ready*.
    #[must_use]
    pub fn empty_means_no(mut self) -> Self {
        self.empty = Answer::No;
        self
    }

    /// Looks up items and returns an answer for each.
    pub async fn may_contain<I: Item>(&self, items: &[I]) -> Answers {
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

    /// Inserts items and returns a result for each.
    pub async fn insert<I: Item>(&self, items: &[I]) -> Insertions {
        let mut all = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for group in items.chunks(AT_ONCE) {
            match self.add_group(group).await {
                Ok(inserted) => all.append(inserted),
                Err(cause) => {
                    all.give_up(items.len(), Inserted::NotReady, cause);
                    break;
                }
            }
        }
        Insertions::new(all.given, all.error)
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

    /// The answers with this config. `None`: the config has changed.
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

    async fn add_group<I: Item>(&self, items: &[I]) -> Result<Gathered<Inserted>, RemoteError> {
        for _ in 0..TRIES {
            let config = self.config().await?;
            let positions =
                items.iter().flat_map(|item| config.positions(item, self.items)).collect::<Vec<_>>();
            let [(_, size), (_, iterations), ..] = config.fields();
            let guarded =
                Guarded { script: ADD, keys: &[&self.name, &self.config_key], words: &[size, iterations] };
            if let Some(inserted) =
                guarded.set(&self.link, config.hash_iterations() as usize, &positions).await
            {
                return Ok(inserted);
            }
            self.remember(None);
        }
        Err(self.changing())
    }

    /// The config as it was read last, or read now.
    ///
    /// # Errors
    /// [`RemoteError::Unready`] if there is none, [`RemoteError::Config`] if it is invalid, or a server does
    /// not answer.
    pub async fn config(&self) -> Result<Config, RemoteError> {
        let seen = *self.config.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Some(config) => Ok(config),
            None => self.read_config().await,
        }
    }

    async fn read_config(&self) -> Result<Config, RemoteError> {
        // Read the four fields only; other clients may have stored more in this hash.
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

    /// The number of items that Redisson's `count()` returns. (For a full bitmap both only mean *very many*.)
    ///
    /// # Errors
    /// [`RemoteError::Unready`] if there is no config, or a server does not answer.
    pub async fn count(&self) -> Result<u64, RemoteError> {
        let config = self.read_config().await?;
        Ok(sizing::classic::items_from_fill(config.size(), config.hash_iterations(), self.ones().await?))
    }

    /// The number of bits that are set.
    ///
    /// # Errors
    /// A server does not answer, or the name does not hold a bitmap.
    pub async fn ones(&self) -> Result<u64, RemoteError> {
        java_bitmap::number(&self.link.ask_one(Request::read("BITCOUNT", self.name.as_bytes())).await?)
    }

    /// Replaces the filter and its config in one step: a new generation. Until then lookups use the old
    /// filter.
    ///
    /// Fill the new filter with [`redisson::create`] and the methods of [`Bloom`]. It may be larger or
    /// smaller than the old one, or the first with this name. Items that are inserted into the old one during
    /// the transfer are lost with it. Java programs know nothing of generations: writers must insert into
    /// both, or wait. The new filter keeps the expiry of the old one.
    ///
    /// # Errors
    /// [`RemoteError::OtherLayout`] for a filter without Redisson's layout or with another item encoding, or
    /// a server does not answer. Then the old filter stays, unless the answer to the very last request was
    /// lost.
    pub async fn replace_with(&self, filter: &Bloom) -> Result<(), RemoteError> {
        self.replace_watched(filter, |_| ControlFlow::Continue(())).await
    }

    /// As [`replace_with`](Self::replace_with). `watch` gets the number of bytes that have arrived, and may
    /// stop the transfer.
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
        successor.replace(&self.link, watch).await?;
        self.remember(Some(config));
        Ok(())
    }

    /// Removes bitmap and config in one step.
    ///
    /// # Errors
    /// A server does not answer.
    pub async fn delete(&self) -> Result<(), RemoteError> {
        self.remember(None);
        let request = Request::write("DEL", self.name.as_bytes()).arg(&self.config_key);
        self.link.ask_one(request).await.map(|_| ())
    }

    /// The encoding of items.
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

/// Does the server still report the same size and hash iterations?
fn is_config(reply: &Value, config: &Config) -> bool {
    let is =
        |value: &Value, text: &str| matches!(value, Value::BulkString(there) if there == text.as_bytes());
    let [(_, size), (_, iterations), ..] = config.fields();
    matches!(reply, Value::Array(values) if values.len() == 2 && is(&values[0], &size) && is(&values[1], &iterations))
}
