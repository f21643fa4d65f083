//! What a name of the `MF.*` family holds: the generation that serves, the one that is coming, and a dump that is being read.

use std::io::{self, Write};

use mayhap::{BuildError, DecodeError, Filter, HashScheme, Kind, Sampling, codec};

use super::body::Body;
use super::build::Building;
use super::dump::Dump;
use super::load::Load;
use super::refused::{MayhapRefusal, NotReady, unbuildable};
use super::served::Served;
use super::{stored_holder, stored_list};
use crate::context::Context;
use crate::health::{Assessment, Health};
use crate::lost::Lost;
use crate::refusal::Refusal;
use crate::reply::room_for;

/// What a name holds. There may be a hundred million of them: what few need is behind a pointer.
#[derive(Debug)]
pub struct Holder {
    pub(crate) served: Served,
    pub(crate) side: Option<Box<Side>>,
    /// When the generation that serves was made.
    created_ms: u64,
    /// Counts the generations that served.
    generation: u32,
}

/// What is there beside the generation that serves.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) next: Option<Next>,
    pub(crate) dump: Option<Dump>,
    /// What is coming is to replace what was lost.
    pub(crate) lost: Option<Lost>,
}

/// The generation that is coming.
#[derive(Debug)]
pub(crate) enum Next {
    /// By `MF.BUILD`.
    Building(Building),
    /// By `MF.LOAD`.
    Loading(Load),
}

/// What there is to know about a filter, for `MF.INFO` and for dashboards. How long that takes is bounded by how much of the bits is read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// The kind; nothing while the first generation is being loaded.
    pub kind: Option<Kind>,
    /// Whose rule decides where items go.
    pub placement: &'static str,
    /// Items it is for.
    pub capacity: u64,
    /// Items in it, by its own count.
    pub inserted: u64,
    /// The rate promised.
    pub target_fpr: f64,
    /// The rate now: that of the model for the items counted, or that of the bits where it is higher.
    pub expected_fpr: f64,
    /// The share of bits or slots in use, counted or from a sample.
    pub fill: f64,
    /// Whether the rate is past the target, and how far.
    pub health: Health,
    /// Bytes of all generations and dumps, all in.
    pub memory_bytes: u64,
    /// Layers, tables or generations that a lookup may ask.
    pub layers: u64,
    /// The generation that serves.
    pub generation: u32,
    /// When that was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Is there a secret key?
    pub keyed: bool,
    /// `ready`, `loading`, `building`, `unbuilt`.
    pub state: &'static str,
    /// What is coming: `none`, `loading`, `building`.
    pub next: &'static str,
}

impl Holder {
    /// A new one, of generation 1 unless its first one is still to be built.
    pub(crate) fn new(served: Served, now_ms: u64) -> Self {
        let generation = u32::from(!matches!(served.body, Body::Nothing));
        Self { served, side: None, created_ms: now_ms, generation }
    }

    /// One whose first generation is still to come.
    pub(crate) fn awaiting(next: Next, now_ms: u64) -> Self {
        let served = Served { body: Body::Nothing, recipe: None, scheme: HashScheme::fast(0) };
        let side = Some(Box::new(Side { next: Some(next), ..Side::default() }));
        Self { served, side, created_ms: now_ms, generation: 0 }
    }

    /// The filter in the bytes of a `.mayhap` file, served from now on; for `RESTORE` and snapshots.
    ///
    /// # Errors
    /// [`Refusal`] for anything but an intact filter, and for memory that is refused.
    pub fn decode(bytes: &[u8], context: &Context<'_>) -> Result<Self, Refusal> {
        context.admit(bytes.len() as u64, bytes.len() as u64)?;
        let filter = Filter::decode(bytes).map_err(MayhapRefusal::Decode)?;
        Ok(Self::of(filter, context))
    }

    /// A name that serves this filter.
    pub(crate) fn of(filter: Filter, context: &Context<'_>) -> Self {
        Self::new(Served::loaded(filter), context.environment.now_ms())
    }

    /// The generation that serves as the bytes of a `.mayhap` file; for `DUMP` and snapshots.
    ///
    /// # Errors
    /// `NOTREADY` where none does, and for memory that is refused.
    pub fn encode(&mut self, context: &Context<'_>) -> Result<Vec<u8>, Refusal> {
        self.ready()?;
        let bytes = self.encoded_bytes();
        context.admit(bytes, bytes)?;
        drop(room_for(bytes)?);
        match self.served.with_filter(|filter| filter.encode()) {
            Some(encoded) => encoded.map_err(unbuildable),
            None => Err(self.not_ready().into()),
        }
    }

    /// Writes the filter that serves as the bytes of a `.mayhap` file, without a copy of it in between; nothing where none does.
    pub(crate) fn encode_into(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.is_ready() {
            return Ok(());
        }
        match self.served.with_filter(|filter| codec::encode_into(filter, out)) {
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(io::ErrorKind::OutOfMemory.into()),
            None => Ok(()),
        }
    }

    /// One with these parts.
    pub(crate) const fn with(served: Served, side: Option<Box<Side>>) -> Self {
        Self { served, side, created_ms: 0, generation: 0 }
    }

    /// Can it be stored as nothing but its history and the filter that serves, or as a list?
    pub(crate) fn is_plain(&self) -> bool {
        self.next().is_none() && self.is_ready() && (self.served_as_list() || self.served.recipe.is_none())
    }

    /// Appends all that stands in front of the filter that serves, for snapshots.
    pub(crate) fn store_head(&mut self, out: &mut Vec<u8>) {
        stored_holder::head(self, out);
    }

    /// How many bytes stand in front of the filter in what [`store_head`](Self::store_head) began.
    pub(crate) fn head_bytes(bytes: &[u8]) -> Result<usize, DecodeError> {
        stored_holder::head_bytes(bytes)
    }

    /// What [`store_head`](Self::store_head) began, with its filter behind it.
    pub(crate) fn load(bytes: &[u8]) -> Result<Self, DecodeError> {
        stored_holder::load(bytes)
    }

    /// Writes the list it still is, for snapshots; nothing if it is none.
    pub(crate) fn store_list(&self, out: &mut dyn Write) -> Option<io::Result<()>> {
        match (&self.served.body, &self.served.recipe) {
            (Body::List(list), Some(recipe)) => {
                Some(stored_list::store(list, recipe, self.served.scheme, out))
            }
            _ => None,
        }
    }

    /// What [`store_list`](Self::store_list) wrote.
    pub(crate) fn load_list(bytes: &[u8], context: &Context<'_>) -> Result<Self, DecodeError> {
        Ok(Self::new(stored_list::load(bytes)?, context.environment.now_ms()))
    }

    /// Which generation serves, and since when, in milliseconds since 1970; for snapshots.
    pub(crate) const fn history(&self) -> (u32, u64) {
        (self.generation, self.created_ms)
    }

    /// The same filter with the history it had when it was saved.
    pub(crate) const fn with_history(mut self, (generation, created_ms): (u32, u64)) -> Self {
        (self.generation, self.created_ms) = (generation, created_ms);
        self
    }

    /// About as many bytes as it takes encoded, never less.
    fn encoded_bytes(&self) -> u64 {
        /// More than the headers of all its layers.
        const HEADERS: u64 = 512;
        let full = self.served.recipe.as_ref().and_then(|recipe| recipe.memory_bytes().ok()).unwrap_or(0);
        self.served.body.memory_bytes().max(full) + HEADERS * (self.served.body.layers() + 2)
    }

    /// Another one like it, without what is coming; for `COPY`.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let (created_ms, generation) = (self.created_ms, self.generation);
        Ok(Self { served: self.served.try_clone()?, side: None, created_ms, generation })
    }

    /// Does a generation serve? One that does not is never saved.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        !matches!(self.served.body, Body::Nothing)
    }

    /// Is it still the list of its first items?
    pub(crate) const fn served_as_list(&self) -> bool {
        matches!(self.served.body, Body::List(_))
    }

    /// The generation that serves.
    pub(crate) fn ready(&self) -> Result<&Served, Refusal> {
        if self.is_ready() { Ok(&self.served) } else { Err(self.not_ready().into()) }
    }

    /// The same, to be changed.
    pub(crate) fn ready_mut(&mut self) -> Result<&mut Served, Refusal> {
        if self.is_ready() { Ok(&mut self.served) } else { Err(self.not_ready().into()) }
    }

    /// Why it does not serve.
    fn not_ready(&self) -> NotReady {
        match (self.next(), self.served.kind()) {
            (Some(Next::Loading(_)), _) => NotReady::Loading,
            (Some(Next::Building(_)), _) => NotReady::Building,
            (None, Some(kind)) => NotReady::Unbuilt { kind },
            (None, None) => NotReady::Missing,
        }
    }

    /// It is to replace what was lost, once a generation serves.
    pub(crate) fn replaces(&mut self, lost: Lost) {
        if !self.is_ready() {
            self.side.get_or_insert_default().lost = Some(lost);
        }
    }

    /// What was lost, and is not replaced yet.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.side.as_ref()?.lost.filter(|_| !self.is_ready())
    }

    /// What is coming.
    pub(crate) fn next(&self) -> Option<&Next> {
        self.side.as_ref()?.next.as_ref()
    }

    /// The place of what is coming.
    pub(crate) fn next_mut(&mut self) -> &mut Option<Next> {
        &mut self.side.get_or_insert_default().next
    }

    /// What `MF.BUILD` is filling.
    pub(crate) fn building_mut(&mut self) -> Option<&mut Building> {
        match self.side.as_mut()?.next.as_mut()? {
            Next::Building(building) => Some(building),
            Next::Loading(_) => None,
        }
    }

    /// Puts `items` in the generation that serves, as [`Served::add`] does, and all that it took in the one that is being built. Of the
    /// first `begun` the one that serves has taken already; their outcome is not handed out.
    pub(crate) fn add(
        &mut self,
        items: &[&[u8]],
        begun: usize,
        context: &Context<'_>,
        mut each: impl FnMut(Result<bool, Refusal>),
    ) -> Result<(), Refusal> {
        let follows = matches!(self.next(), Some(Next::Building(_)));
        let (done, left) = items.split_at(begun.min(items.len()));
        let served = self.ready_mut()?;
        if !follows {
            served.add(left, context, each);
            return Ok(());
        }
        let mut taken = done.to_vec();
        let mut next = left.iter();
        served.add(left, context, |outcome| {
            let item = next.next();
            taken.extend(item.filter(|_| outcome.is_ok()));
            each(outcome);
        });
        if let Some(building) = self.building_mut() {
            building.follow(&taken, context);
        }
        Ok(())
    }

    /// Takes away what is coming, and the place for it.
    pub(crate) fn take_next(&mut self) -> Option<Next> {
        let next = self.side.as_mut().and_then(|side| side.next.take());
        self.tidy();
        next
    }

    /// Gives the memory of an empty side back.
    pub(crate) fn tidy(&mut self) {
        if self
            .side
            .as_ref()
            .is_some_and(|side| side.next.is_none() && side.dump.is_none() && side.lost.is_none())
        {
            self.side = None;
        }
    }

    /// From now on this one serves. Returns its number.
    pub(crate) fn serve(&mut self, served: Served, now_ms: u64) -> u32 {
        self.generation = self.generation.saturating_add(1);
        (self.served, self.created_ms) = (served, now_ms);
        if let Some(side) = &mut self.side {
            (side.dump, side.lost) = (None, None);
        }
        self.tidy();
        self.generation
    }

    /// Bytes it takes, all in.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let side = self.side.as_ref().map_or(0, |side| {
            let next = side.next.as_ref().map_or(0, |next| match next {
                Next::Building(building) => building.memory_bytes(),
                Next::Loading(load) => load.memory_bytes(),
            });
            size_of::<Side>() as u64 + next + side.dump.as_ref().map_or(0, Dump::memory_bytes)
        });
        size_of::<Self>() as u64 + self.served.body.memory_bytes() + side
    }

    /// Items in the generation that serves, by its own count; 0 for a bitmap, whose bits would have to be counted one by one.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.served.items()
    }

    /// Does the generation that serves hash with a secret key?
    pub(crate) const fn is_keyed(&self) -> bool {
        matches!(self.served.scheme, HashScheme::Keyed { .. })
    }

    /// The rates of the generation that serves, if one does.
    pub(crate) fn assess(&self, sampling: Sampling) -> Option<Assessment> {
        self.is_ready().then(|| super::facts::assess(&self.served, sampling))
    }

    /// What there is to know, after a look at as much of the bits as `sampling` says.
    #[must_use]
    pub fn facts(&self, sampling: Sampling) -> Facts {
        let numbers = super::facts::of(&self.served, sampling);
        Facts {
            kind: self.served.kind(),
            placement: numbers.placement,
            capacity: numbers.capacity,
            inserted: numbers.inserted,
            target_fpr: numbers.target_fpr,
            expected_fpr: numbers.expected_fpr,
            fill: numbers.fill,
            health: numbers.health,
            memory_bytes: self.memory_bytes(),
            layers: numbers.layers,
            generation: self.generation,
            created_ms: self.created_ms,
            keyed: self.is_keyed(),
            state: match self.not_ready() {
                _ if self.is_ready() => "ready",
                NotReady::Loading => "loading",
                NotReady::Building => "building",
                NotReady::Unbuilt { .. } | NotReady::Missing => "unbuilt",
            },
            next: match self.next() {
                None => "none",
                Some(Next::Building(_)) => "building",
                Some(Next::Loading(_)) => "loading",
            },
        }
    }
}
