//! Guava's placement in a string of Redis, by hand: what many programs in Java do with `SETBIT` and `GETBIT`.
//!
//! ```text
//! NAME   ┌──────────┬──────────┬───────┬───┐   bit i is byte i/8, mask 80 >> i % 8
//!        │ 01234567 │ 89…      │   m-1 │ m │   bit m: ready, where a marker is kept
//!        └──────────┴──────────┴───────┴───┘
//! ```
//!
//! They take `optimalNumOfBits` and `optimalNumOfHashFunctions` from Guava's source ([`GuavaShape::sized`]; Guava's own filters have their bits in
//! whole words, [`GuavaShape::in_words`]), hash with `murmur3_128`, and split the first 64 bits in two halves: that is Guava's older
//! strategy, [`Strategy::Mitz32`]. The newer one, [`Strategy::Mitz64`], takes all 128.
//!
//! Nothing on the server says any of this: neither the measurements nor the strategy nor the funnel. Whoever asks must know, and a wrong number
//! makes a filter that forgets. What can be known is whether the bitmap is *there*:
//!
//! - A name that is missing is [`Answer::NotReady`], and no addition makes it: [`create`](GuavaBitmap::create) does. Where the other side adds first,
//!   its `SETBIT` does.
//! - [`with_marker`](GuavaBitmap::with_marker) keeps a bit behind the last one, which programs in Java never touch. Without it a bitmap is not ready,
//!   so one that was evicted, and made again by the next addition of somebody else, is told apart from the whole one. It costs nothing: the bit is
//!   read with the others.

use std::ops::ControlFlow;

pub use mayhap::codec::guava::{Rounding, Strategy};
use mayhap::{HashScheme, Item, ItemEncoding, sizing};

mod image;
mod shape;

pub use image::GuavaImage;
pub use shape::GuavaShape;

use crate::java_bitmap::{self, AT_ONCE, Gathered, Guarded, TOGETHER};
use crate::java_swap::Successor;
use crate::{Access, Added, Additions, Answer, Answers, Link, RemoteError, Request};

/// `KEYS`: the bitmap. `ARGV`: a position, and what its bit is to be.
const CREATE: &str = "\
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('setbit', KEYS[1], ARGV[1], ARGV[2])
return 1";

/// `KEYS`: the bitmap. `ARGV`: where the marker is.
const MARK: &str = "\
if redis.call('exists', KEYS[1]) == 0 then return 0 end
redis.call('setbit', KEYS[1], ARGV[1], 1)
return 1";

/// `KEYS`: the bitmap. `ARGV`: where the marker is, or nothing, and what is to be done.
const ADD: &str = "\
if redis.call('exists', KEYS[1]) == 0 then return false end
if ARGV[1] ~= '' and redis.call('getbit', KEYS[1], ARGV[1]) == 0 then return false end
return redis.call('bitfield', KEYS[1], unpack(ARGV, 2))";

/// How a bitmap is known to be there, all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// Its name is.
    Named,
    /// So is the bit behind the last one.
    Marked,
}

/// A string of bits with Guava's placement.
///
/// ```no_run
/// use mayhap::ItemEncoding;
/// use mayhap_remote::guava::{GuavaBitmap, GuavaShape, Rounding, Strategy};
/// use mayhap_remote::{Link, LinkOptions};
///
/// # async fn example() -> Result<(), mayhap_remote::RemoteError> {
/// let link = Link::open(["redis://localhost"], LinkOptions::default()).await?;
/// // expectedInsertions = 1000000, fpp = 0.01, stringFunnel(UTF_8), hash64 split in two.
/// let shape = GuavaShape::sized(1_000_000, 0.01, Rounding::Until33, Strategy::Mitz32)?;
/// let seen = GuavaBitmap::new(&link, "bloom:seen", shape, ItemEncoding::Utf8);
/// let answers = seen.ask(&["ada", "grace"]).await;
/// # Ok(())
/// # }
/// ```
pub struct GuavaBitmap {
    link: Link,
    name: String,
    shape: GuavaShape,
    scheme: HashScheme,
    ready: Ready,
}

impl GuavaBitmap {
    /// The bitmap of this name, of these measurements, whose funnel makes bytes of items in this way. It need not be there yet.
    #[must_use]
    pub fn new(link: &Link, name: &str, shape: GuavaShape, items: ItemEncoding) -> Self {
        let scheme = mayhap::codec::guava::scheme(items);
        Self { link: link.clone(), name: name.to_owned(), shape, scheme, ready: Ready::Named }
    }

    /// It is ready only with the bit behind its last one.
    #[must_use]
    pub fn with_marker(mut self) -> Self {
        self.ready = Ready::Marked;
        self
    }

    /// Makes an empty bitmap, at its full length and with its marker if there is to be one.
    ///
    /// # Errors
    /// [`RemoteError::Taken`] if there is something of this name, or a server that does not answer.
    pub async fn create(&self) -> Result<(), RemoteError> {
        let (position, bit) = match self.ready {
            Ready::Named => (self.shape.bits() - 1, 0),
            Ready::Marked => (self.shape.bits(), 1),
        };
        match self.run(CREATE, &[position, bit]).await? {
            1 => Ok(()),
            _ => Err(RemoteError::Taken { name: self.name.clone() }),
        }
    }

    /// Sets the marker of a bitmap that somebody else has filled.
    ///
    /// # Errors
    /// [`RemoteError::Unready`] if there is none, or a server that does not answer.
    pub async fn mark_ready(&self) -> Result<(), RemoteError> {
        match self.run(MARK, &[self.shape.bits()]).await? {
            1 => Ok(()),
            _ => Err(self.unready()),
        }
    }

    async fn run(&self, script: &str, words: &[u64]) -> Result<u64, RemoteError> {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(1).arg(&self.name).arg(words);
        let request = Request::whole(command, self.name.as_bytes(), Access::Write);
        java_bitmap::number(&self.link.ask_one(request).await?)
    }

    /// The answers for these items.
    pub async fn ask<I: Item>(&self, items: &[I]) -> Answers {
        let mut all = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for group in items.chunks(AT_ONCE) {
            let answers = match self.ready {
                Ready::Named => self.ask_named(group).await,
                Ready::Marked => Ok(self.ask_marked(group).await),
            };
            match answers {
                Ok(answers) => all.append(answers),
                Err(cause) => {
                    all.give_up(items.len(), Answer::NotReady, cause);
                    break;
                }
            }
        }
        Answers::new(all.given, all.error)
    }

    /// Each with its marker: nothing can come in between.
    async fn ask_marked<I: Item>(&self, items: &[I]) -> Gathered<Answer> {
        let marker = self.shape.bits();
        let looks = items.iter().map(|item| {
            let positions = [marker].into_iter().chain(self.positions(item));
            java_bitmap::look(&self.name, positions, Access::Read)
        });
        let replies = self.link.ask(looks.collect()).await;
        let mut answers = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for reply in replies {
            let answer = reply.and_then(|value| {
                let mut bits = java_bitmap::bits(&value, 1 + self.shape.probes() as usize)?;
                if bits.next() == Some(true) { Ok(java_bitmap::answer(bits)) } else { Err(self.unready()) }
            });
            answers.push(answer, Answer::NotReady);
        }
        answers
    }

    /// All between two looks at whether the name is there.
    async fn ask_named<I: Item>(&self, items: &[I]) -> Result<Gathered<Answer>, RemoteError> {
        let len = || java_bitmap::len(&self.name, TOGETHER);
        let looks = items.iter().map(|item| java_bitmap::look(&self.name, self.positions(item), TOGETHER));
        let mut replies =
            self.link.ask([len()].into_iter().chain(looks).chain([len()]).collect()).await.into_iter();
        let (Some(before), Some(after)) = (replies.next(), replies.next_back()) else {
            return Err(self.unready());
        };
        if java_bitmap::number(&before?)? == 0 || java_bitmap::number(&after?)? == 0 {
            return Err(self.unready());
        }
        let mut answers = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for reply in replies {
            let answer = reply.and_then(|value| {
                java_bitmap::bits(&value, self.shape.probes() as usize).map(java_bitmap::answer)
            });
            answers.push(answer, Answer::NotReady);
        }
        Ok(answers)
    }

    /// Adds these items, if the bitmap is there.
    pub async fn add<I: Item>(&self, items: &[I]) -> Additions {
        let marker = match self.ready {
            Ready::Named => String::new(),
            Ready::Marked => self.shape.bits().to_string(),
        };
        let guarded = Guarded { script: ADD, keys: &[&self.name], words: &[marker] };
        let mut all = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for group in items.chunks(AT_ONCE) {
            let positions = group.iter().flat_map(|item| self.positions(item)).collect::<Vec<_>>();
            match guarded.set(&self.link, self.shape.probes() as usize, &positions).await {
                Some(added) => all.append(added),
                None => {
                    all.give_up(items.len(), Added::NotReady, self.unready());
                    break;
                }
            }
        }
        Additions::new(all.given, all.error)
    }

    fn positions<I: Item + ?Sized>(&self, item: &I) -> impl Iterator<Item = u64> + use<I> {
        self.shape.positions_of(self.scheme.hash(item))
    }

    /// How many items there probably are, going by the bits that are set.
    ///
    /// # Errors
    /// A server that does not answer.
    pub async fn estimated_items(&self) -> Result<u64, RemoteError> {
        let request = Request::read("BITCOUNT", self.name.as_bytes());
        let ones = java_bitmap::number(&self.link.ask_one(request).await?)?;
        let marker = u64::from(self.ready == Ready::Marked);
        Ok(sizing::classic::items_from_fill(
            self.shape.bits(),
            self.shape.probes(),
            ones.saturating_sub(marker),
        ))
    }

    /// Puts another bitmap in its place, in one step and with its marker if there is to be one. Whoever asks meanwhile gets the old one; what is
    /// added to the old one meanwhile is gone with it. The expiry of the old one goes over.
    ///
    /// # Errors
    /// [`RemoteError::OtherLayout`] for other measurements, or a server that does not answer; then the old one stays, unless no answer came to the
    /// very last request.
    pub async fn replace_with(&self, image: &GuavaImage) -> Result<(), RemoteError> {
        self.replace_watched(image, |_| ControlFlow::Continue(())).await
    }

    /// [`replace_with`](Self::replace_with); `watch` is told how many bytes have arrived, and may stop it.
    ///
    /// # Errors
    /// As there, and [`RemoteError::Stopped`].
    pub async fn replace_watched(
        &self,
        image: &GuavaImage,
        watch: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), RemoteError> {
        if image.shape() != &self.shape {
            let why = format!("its measurements are {:?}, not {:?}", image.shape(), self.shape);
            return Err(RemoteError::OtherLayout { wanted: "the bitmap's", why });
        }
        let bitmap = image.bytes(self.ready == Ready::Marked);
        let successor = Successor { name: &self.name, bitmap: &bitmap, config: None };
        successor.take_place(&self.link, watch).await
    }

    /// Its measurements.
    #[must_use]
    pub const fn shape(&self) -> &GuavaShape {
        &self.shape
    }

    /// Removes it.
    ///
    /// # Errors
    /// A server that does not answer.
    pub async fn delete(&self) -> Result<(), RemoteError> {
        self.link.ask_one(Request::write("DEL", self.name.as_bytes())).await.map(|_| ())
    }

    fn unready(&self) -> RemoteError {
        let what = match self.ready {
            Ready::Named => "there is no such key",
            Ready::Marked => "its marker is not set",
        };
        RemoteError::Unready { name: self.name.clone(), what }
    }
}
