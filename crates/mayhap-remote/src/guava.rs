//! Guava's bit positions in a Redis string, as many Java programs use them by hand with `SETBIT` and
//! `GETBIT`.
//!
//! ```text
//! NAME   ┌──────────┬──────────┬───────┬───┐   bit i is byte i/8, mask 80 >> i % 8
//!        │ 01234567 │ 89…      │   m-1 │ m │   bit m: the marker, if there is one
//!        └──────────┴──────────┴───────┴───┘
//! ```
//!
//! Such programs copy `optimalNumOfBits` and `optimalNumOfHashFunctions` from Guava's source
//! ([`GuavaShape::sized`]; Guava's own filters round their bits up to whole words, [`GuavaShape::in_words`]).
//! They hash with `murmur3_128` and split the first 64 bits in two halves: this is Guava's older strategy,
//! [`Strategy::Mitz32`]. The newer one, [`Strategy::Mitz64`], uses all 128 bits.
//!
//! The server stores none of this: not the number of bits, the strategy or the funnel. The caller must know
//! them, and a wrong number causes false negatives. A client can only check whether the bitmap *exists*:
//!
//! - A missing name is [`Answer::NotReady`], and no insertion creates it: [`create`](GuavaBitmap::create)
//!   does. If the Java side inserts first, its `SETBIT` does.
//! - [`with_marker`](GuavaBitmap::with_marker) keeps a bit after the last one, which Java programs never
//!   touch. A bitmap without this bit is not ready. So a bitmap that was evicted, and created again by the
//!   next insertion of another client, is told apart from the complete one. This costs nothing: the bit is
//!   read together with the others.

use std::ops::ControlFlow;

use mayhap::{HashScheme, Item, ItemEncoding, sizing};
pub use mayhap_formats::guava::{Rounding, Strategy};

mod image;
mod shape;

pub use image::GuavaImage;
pub use shape::GuavaShape;

use crate::java_bitmap::{self, AT_ONCE, Gathered, Guarded, TOGETHER};
use crate::java_swap::Successor;
use crate::{Access, Answer, Answers, Inserted, Insertions, Link, RemoteError, Request};

/// `KEYS`: the bitmap. `ARGV`: a position, and the new value of its bit.
const CREATE: &str = "\
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('setbit', KEYS[1], ARGV[1], ARGV[2])
return 1";

/// `KEYS`: the bitmap. `ARGV`: the position of the marker.
const MARK: &str = "\
if redis.call('exists', KEYS[1]) == 0 then return 0 end
redis.call('setbit', KEYS[1], ARGV[1], 1)
return 1";

/// `KEYS`: the bitmap. `ARGV`: the position of the marker or nothing, and the words of the command.
const ADD: &str = "\
if redis.call('exists', KEYS[1]) == 0 then return false end
if ARGV[1] ~= '' and redis.call('getbit', KEYS[1], ARGV[1]) == 0 then return false end
return redis.call('bitfield', KEYS[1], unpack(ARGV, 2))";

/// The condition for a complete bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// The name exists.
    Named,
    /// The name exists, and the bit after the last one is set.
    Marked,
}

/// A bitmap with Guava's bit positions.
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
/// let answers = seen.may_contain(&["ada", "grace"]).await;
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
    /// A bitmap with this name and shape. `items` is the encoding that its funnel uses. The bitmap need not
    /// exist yet.
    #[must_use]
    pub fn new(link: &Link, name: &str, shape: GuavaShape, items: ItemEncoding) -> Self {
        let scheme = mayhap_formats::guava::scheme(items);
        Self { link: link.clone(), name: name.to_owned(), shape, scheme, ready: Ready::Named }
    }

    /// Requires the bit after the last one: without it, the bitmap is not ready.
    #[must_use]
    pub fn with_marker(mut self) -> Self {
        self.ready = Ready::Marked;
        self
    }

    /// Creates an empty bitmap at its full length, with the marker if it is required.
    ///
    /// # Errors
    /// [`RemoteError::Taken`] if the name is in use, or a server does not answer.
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

    /// Sets the marker of a bitmap that another program has filled.
    ///
    /// # Errors
    /// [`RemoteError::Unready`] if there is no bitmap, or a server does not answer.
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

    /// Looks up items and returns an answer for each.
    pub async fn may_contain<I: Item>(&self, items: &[I]) -> Answers {
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

    /// Reads the marker together with the bits of each item, in one command: no change can come in between.
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

    /// Checks before and after all items that the name exists.
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

    /// Inserts items if the bitmap is ready, and returns a result for each.
    pub async fn insert<I: Item>(&self, items: &[I]) -> Insertions {
        let marker = match self.ready {
            Ready::Named => String::new(),
            Ready::Marked => self.shape.bits().to_string(),
        };
        let guarded = Guarded { script: ADD, keys: &[&self.name], words: &[marker] };
        let mut all = Gathered { given: Vec::with_capacity(items.len()), error: None };
        for group in items.chunks(AT_ONCE) {
            let positions = group.iter().flat_map(|item| self.positions(item)).collect::<Vec<_>>();
            match guarded.set(&self.link, self.shape.probes() as usize, &positions).await {
                Some(inserted) => all.append(inserted),
                None => {
                    all.give_up(items.len(), Inserted::NotReady, self.unready());
                    break;
                }
            }
        }
        Insertions::new(all.given, all.error)
    }

    fn positions<I: Item + ?Sized>(&self, item: &I) -> impl Iterator<Item = u64> + use<I> {
        self.shape.positions_of(self.scheme.hash(item))
    }

    /// The estimated number of items, from the number of bits that are set.
    ///
    /// # Errors
    /// A server does not answer.
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

    /// Replaces the bitmap by another in one step, with the marker if it is required. Until then lookups use
    /// the old one, and insertions into it are lost with it. The new bitmap keeps the expiry of the old one.
    ///
    /// # Errors
    /// [`RemoteError::OtherLayout`] for another shape, or a server does not answer. Then the old bitmap
    /// stays, unless the answer to the very last request was lost.
    pub async fn replace_with(&self, image: &GuavaImage) -> Result<(), RemoteError> {
        self.replace_watched(image, |_| ControlFlow::Continue(())).await
    }

    /// As [`replace_with`](Self::replace_with). `watch` gets the number of bytes that have arrived, and may
    /// stop the transfer.
    ///
    /// # Errors
    /// As there, and [`RemoteError::Stopped`].
    pub async fn replace_watched(
        &self,
        image: &GuavaImage,
        watch: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), RemoteError> {
        if image.shape() != &self.shape {
            let why = format!("its shape is {:?}, not {:?}", image.shape(), self.shape);
            return Err(RemoteError::OtherLayout { wanted: "the bitmap's", why });
        }
        let bitmap = image.bytes(self.ready == Ready::Marked);
        let successor = Successor { name: &self.name, bitmap: &bitmap, config: None };
        successor.replace(&self.link, watch).await
    }

    /// The shape of the bitmap.
    #[must_use]
    pub const fn shape(&self) -> &GuavaShape {
        &self.shape
    }

    /// Removes the bitmap.
    ///
    /// # Errors
    /// A server does not answer.
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
