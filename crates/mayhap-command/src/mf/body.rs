//! The data of a filter, in the form that fits its size and kind.

use mayhap::codec::{self, Pieces};
use mayhap::{
    Answers, AtomicBlockedBloom, AtomicBloom, AtomicScalableBloom, BuildError, Filter, ItemHash, Kind,
};

use super::list::List;
use super::recipe::Recipe;

/// From this size, several threads can fill a Bloom filter at the same time. For smaller filters that is not worth its two kibibytes.
const SHARED_FROM_BYTES: u64 = 64 << 10;

/// A filter in the form that answers. Everything is in one allocation.
#[derive(Debug)]
pub(crate) enum Body {
    /// No filter yet.
    Nothing,
    /// The first few items.
    List(List),
    /// A growing chain. Several threads can fill it until it grows.
    Scalable(Box<AtomicScalableBloom>),
    /// A large classic filter. Several threads can fill it.
    Bloom(Box<AtomicBloom>),
    /// A large blocked filter. Several threads can fill it.
    Blocked(Box<AtomicBlockedBloom>),
    /// Any other filter: one thread at a time changes it.
    Plain(Box<Filter>),
}

impl Body {
    /// Converts `filter` to the form that answers.
    pub(crate) fn of(filter: Filter) -> Self {
        let large = filter.memory_bytes() >= SHARED_FROM_BYTES;
        match filter {
            Filter::ScalableBloom(filter) => Self::Scalable(Box::new(filter.into())),
            Filter::Bloom(filter) if large => Self::Bloom(Box::new(filter.into())),
            Filter::BlockedBloom(filter) if large => Self::Blocked(Box::new(filter.into())),
            filter => Self::Plain(Box::new(filter)),
        }
    }

    /// The plain filter; `None` if there is none, and for a list.
    pub(crate) fn into_filter(self) -> Option<Filter> {
        match self {
            Self::Nothing | Self::List(_) => None,
            Self::Scalable(filter) => Some(Filter::ScalableBloom(filter.into_inner())),
            Self::Bloom(filter) => Some(Filter::Bloom(filter.into_inner())),
            Self::Blocked(filter) => Some(Filter::BlockedBloom(filter.into_inner())),
            Self::Plain(filter) => Some(*filter),
        }
    }

    /// A plain copy; `None` if there is none, and for a list.
    pub(crate) fn copy(&self) -> Option<Result<Filter, BuildError>> {
        match self {
            Self::Nothing | Self::List(_) => None,
            Self::Scalable(filter) => Some(filter.snapshot().map(Filter::ScalableBloom)),
            Self::Bloom(filter) => Some(filter.snapshot().map(Filter::Bloom)),
            Self::Blocked(filter) => Some(filter.snapshot().map(Filter::BlockedBloom)),
            Self::Plain(filter) => Some(filter.try_clone()),
        }
    }

    /// Its encoding, to be written in pieces; `None` if there is no filter, and for a list.
    pub(crate) fn pieces(&mut self) -> Option<Pieces> {
        match self {
            Self::Nothing | Self::List(_) => None,
            Self::Scalable(filter) => Some(Pieces::of(filter.get_mut())),
            Self::Bloom(filter) => Some(Pieces::of(filter.plain()).counting(filter.inserted())),
            Self::Blocked(filter) => Some(Pieces::of(filter.plain()).counting(filter.inserted())),
            Self::Plain(filter) => Some(Pieces::of(&**filter)),
        }
    }

    /// Appends the next piece. Returns `false` if the filter was replaced.
    pub(crate) fn next_piece(&self, pieces: &mut Pieces, most: usize, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Nothing | Self::List(_) => false,
            Self::Scalable(filter) => pieces.next(filter.uncounted(), most, out),
            Self::Bloom(filter) => pieces.next(filter.plain(), most, out),
            Self::Blocked(filter) => pieces.next(filter.plain(), most, out),
            Self::Plain(filter) => pieces.next(&**filter, most, out),
        }
    }

    /// Appends the encoded filter, if there is one.
    pub(crate) fn encode(&mut self, out: &mut Vec<u8>) {
        let at = out.len();
        if let Some(mut pieces) = self.pieces() {
            while pieces.left() > 0 && self.next_piece(&mut pieces, usize::MAX, out) {}
            // Sealing bytes that were just written cannot fail.
            let _ = codec::seal(&mut out[at..]);
        }
    }

    /// Inserts items again that were new when they were logged. Only Bloom filters that several threads can fill support this.
    pub(crate) fn put_back(&mut self, hashes: &[ItemHash]) {
        match self {
            Self::Scalable(filter) => filter.put_back(hashes),
            Self::Bloom(filter) => filter.put_back(hashes),
            Self::Blocked(filter) => filter.put_back(hashes),
            Self::Nothing | Self::List(_) | Self::Plain(_) => {}
        }
    }

    /// A recipe for a filter like this one, as far as the filter knows its parameters.
    pub(crate) fn recipe(&self) -> Option<Recipe> {
        match self {
            Self::Nothing | Self::List(_) => None,
            Self::Scalable(filter) => Some(Recipe::Scalable(*filter.uncounted().shape())),
            Self::Bloom(filter) => Some(Recipe::Bloom(*filter.shape())),
            Self::Blocked(filter) => Some(Recipe::Blocked(*filter.shape())),
            Self::Plain(filter) => Recipe::of(filter),
        }
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Nothing | Self::List(_) => None,
            Self::Scalable(_) => Some(Kind::ScalableBloom),
            Self::Bloom(_) => Some(Kind::Bloom),
            Self::Blocked(_) => Some(Kind::BlockedBloom),
            Self::Plain(filter) => Some(filter.kind()),
        }
    }

    /// An upper bound of the layers, tables or generations that have their own header when encoded.
    pub(crate) fn layers(&self) -> u64 {
        match self {
            Self::Nothing | Self::List(_) | Self::Bloom(_) | Self::Blocked(_) => 1,
            Self::Scalable(filter) => filter.layers() as u64,
            Self::Plain(filter) => super::facts::layers_of(filter),
        }
    }

    /// Can items be looked up by hash?
    pub(crate) fn takes_hashes(&self) -> bool {
        match self {
            Self::Plain(filter) => filter.scheme().is_some() && filter.items().is_none(),
            Self::Nothing => false,
            _ => true,
        }
    }

    /// Looks up all `hashes` in one batch, at time `now_ms`; not for lists.
    pub(crate) fn ask_all(&self, hashes: &[ItemHash], now_ms: u64, answers: &mut Answers) {
        match self {
            Self::Nothing | Self::List(_) => {}
            Self::Scalable(filter) => filter.may_contain_hash_batch(hashes, answers),
            Self::Bloom(filter) => filter.may_contain_hash_batch(hashes, answers),
            Self::Blocked(filter) => filter.may_contain_hash_batch(hashes, answers),
            Self::Plain(filter) => match &**filter {
                Filter::Window(window) => window.may_contain_hash_batch_at(hashes, now_ms, answers),
                filter => filter.may_contain_hash_batch(hashes, answers),
            },
        }
    }

    /// Bytes of its allocation.
    pub(crate) fn memory_bytes(&self) -> u64 {
        /// The counters of a filter that several threads can fill.
        const STRIPES_BYTES: u64 = 16 * 128;
        match self {
            Self::Nothing => 0,
            Self::List(list) => list.memory_bytes(),
            Self::Scalable(filter) => size_of::<AtomicScalableBloom>() as u64 + filter.memory_bytes(),
            Self::Bloom(filter) => size_of::<AtomicBloom>() as u64 + STRIPES_BYTES + filter.memory_bytes(),
            Self::Blocked(filter) => {
                size_of::<AtomicBlockedBloom>() as u64 + STRIPES_BYTES + filter.memory_bytes()
            }
            Self::Plain(filter) => size_of::<Filter>() as u64 + filter.memory_bytes(),
        }
    }
}
