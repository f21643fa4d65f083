//! The value of an `MF.*` key: the current generation, the next one, and a dump that is being read.

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

/// The value of an `MF.*` key. There may be a hundred million of them, so rarely used parts are in a separate allocation.
#[derive(Debug)]
pub struct Holder {
    pub(crate) served: Served,
    pub(crate) side: Option<Box<Side>>,
    /// When the current generation was made.
    created_ms: u64,
    /// The number of the current generation.
    generation: u32,
}

/// The parts besides the current generation.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) next: Option<Next>,
    pub(crate) dump: Option<Dump>,
    /// The loss that the next generation replaces.
    pub(crate) lost: Option<Lost>,
}

/// The next generation.
#[derive(Debug)]
pub(crate) enum Next {
    /// By `MF.BUILD`.
    Building(Building),
    /// By `MF.LOAD`.
    Loading(Load),
}

/// What is known about a filter, for `MF.INFO` and dashboards. The time to collect it depends on how much of the bits is read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// The kind; `None` while the first generation is being loaded.
    pub kind: Option<Kind>,
    /// The program whose rule places the items.
    pub placement: &'static str,
    /// Items it is sized for.
    pub capacity: u64,
    /// Items in it, by its own count.
    pub inserted: u64,
    /// The target false-positive rate.
    pub target_fpr: f64,
    /// The rate now: by the model for the inserted items, or by the bits that are set if that is higher.
    pub expected_fpr: f64,
    /// The share of bits or slots in use, counted or from a sample.
    pub fill: f64,
    /// Whether the rate is above the target, and how far.
    pub health: Health,
    /// Bytes of all generations and dumps in total.
    pub memory_bytes: u64,
    /// Layers, tables or generations that a lookup may read.
    pub layers: u64,
    /// The number of the current generation.
    pub generation: u32,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Is there a secret key?
    pub keyed: bool,
    /// `ready`, `loading`, `building`, `unbuilt`.
    pub state: &'static str,
    /// The state of the next generation: `none`, `loading`, `building`.
    pub next: &'static str,
}

impl Holder {
    /// A new value, with generation 1 unless its first generation must still be built.
    pub(crate) fn new(served: Served, now_ms: u64) -> Self {
        let generation = u32::from(!matches!(served.body, Body::Nothing));
        Self { served, side: None, created_ms: now_ms, generation }
    }

    /// A value whose first generation does not exist yet.
    pub(crate) fn awaiting(next: Next, now_ms: u64) -> Self {
        let served = Served { body: Body::Nothing, recipe: None, scheme: HashScheme::fast(0) };
        let side = Some(Box::new(Side { next: Some(next), ..Side::default() }));
        Self { served, side, created_ms: now_ms, generation: 0 }
    }

    /// Decodes the filter of a `.mayhap` file; for `RESTORE` and snapshots.
    ///
    /// # Errors
    /// [`Refusal`] if the filter is not intact, or if memory is refused.
    pub fn decode(bytes: &[u8], context: &Context<'_>) -> Result<Self, Refusal> {
        context.admit(bytes.len() as u64, bytes.len() as u64)?;
        let filter = Filter::decode(bytes).map_err(MayhapRefusal::Decode)?;
        Ok(Self::of(filter, context))
    }

    /// A value with this filter.
    pub(crate) fn of(filter: Filter, context: &Context<'_>) -> Self {
        Self::new(Served::loaded(filter), context.environment.now_ms())
    }

    /// Encodes the current generation as a `.mayhap` file; for `DUMP` and snapshots.
    ///
    /// # Errors
    /// `NOTREADY` if there is none, and if memory is refused.
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

    /// Writes the current filter as a `.mayhap` file, without an intermediate copy; writes nothing if there is none.
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

    /// A value with these parts.
    pub(crate) const fn with(served: Served, side: Option<Box<Side>>) -> Self {
        Self { served, side, created_ms: 0, generation: 0 }
    }

    /// Can it be stored as just its history and the current filter, or as a list?
    pub(crate) fn is_plain(&self) -> bool {
        self.next().is_none() && self.is_ready() && (self.served_as_list() || self.served.recipe.is_none())
    }

    /// Appends everything that precedes the current filter in a snapshot.
    pub(crate) fn store_head(&mut self, out: &mut Vec<u8>) {
        stored_holder::head(self, out);
    }

    /// The number of bytes before the filter in the output of [`store_head`](Self::store_head).
    pub(crate) fn head_bytes(bytes: &[u8]) -> Result<usize, DecodeError> {
        stored_holder::head_bytes(bytes)
    }

    /// Loads the output of [`store_head`](Self::store_head), followed by its filter.
    pub(crate) fn load(bytes: &[u8]) -> Result<Self, DecodeError> {
        stored_holder::load(bytes)
    }

    /// Writes its list of first items for a snapshot; writes nothing if it is not a list.
    pub(crate) fn store_list(&self, out: &mut dyn Write) -> Option<io::Result<()>> {
        match (&self.served.body, &self.served.recipe) {
            (Body::List(list), Some(recipe)) => {
                Some(stored_list::store(list, recipe, self.served.scheme, out))
            }
            _ => None,
        }
    }

    /// Loads the output of [`store_list`](Self::store_list).
    pub(crate) fn load_list(bytes: &[u8], context: &Context<'_>) -> Result<Self, DecodeError> {
        Ok(Self::new(stored_list::load(bytes)?, context.environment.now_ms()))
    }

    /// The current generation and when it was made, in milliseconds since 1970; for snapshots.
    pub(crate) const fn history(&self) -> (u32, u64) {
        (self.generation, self.created_ms)
    }

    /// Restores the history of a saved filter.
    pub(crate) const fn with_history(mut self, (generation, created_ms): (u32, u64)) -> Self {
        (self.generation, self.created_ms) = (generation, created_ms);
        self
    }

    /// An upper bound, not far off, of its encoded size in bytes.
    fn encoded_bytes(&self) -> u64 {
        /// An upper bound of the headers of all its layers.
        const HEADERS: u64 = 512;
        let full = self.served.recipe.as_ref().and_then(|recipe| recipe.memory_bytes().ok()).unwrap_or(0);
        self.served.body.memory_bytes().max(full) + HEADERS * (self.served.body.layers() + 2)
    }

    /// Returns a copy without the next generation; for `COPY`.
    ///
    /// # Errors
    /// [`BuildError::OutOfMemory`] if the system refuses the memory.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let (created_ms, generation) = (self.created_ms, self.generation);
        Ok(Self { served: self.served.try_clone()?, side: None, created_ms, generation })
    }

    /// Can the current generation answer?
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        !matches!(self.served.body, Body::Nothing)
    }

    /// Is it still the list of its first items?
    pub(crate) const fn served_as_list(&self) -> bool {
        matches!(self.served.body, Body::List(_))
    }

    /// The current generation, if it can answer.
    pub(crate) fn ready(&self) -> Result<&Served, Refusal> {
        if self.is_ready() { Ok(&self.served) } else { Err(self.not_ready().into()) }
    }

    /// Like [`ready`](Self::ready), but mutable.
    pub(crate) fn ready_mut(&mut self) -> Result<&mut Served, Refusal> {
        if self.is_ready() { Ok(&mut self.served) } else { Err(self.not_ready().into()) }
    }

    /// Why it cannot answer.
    fn not_ready(&self) -> NotReady {
        match (self.next(), self.served.kind()) {
            (Some(Next::Loading(_)), _) => NotReady::Loading,
            (Some(Next::Building(_)), _) => NotReady::Building,
            (None, Some(kind)) => NotReady::Unbuilt { kind },
            (None, None) => NotReady::Missing,
        }
    }

    /// Records a loss that the first generation replaces.
    pub(crate) fn replaces(&mut self, lost: Lost) {
        if !self.is_ready() {
            self.side.get_or_insert_default().lost = Some(lost);
        }
    }

    /// The loss that is not replaced yet.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.side.as_ref()?.lost.filter(|_| !self.is_ready())
    }

    /// The next generation.
    pub(crate) fn next(&self) -> Option<&Next> {
        self.side.as_ref()?.next.as_ref()
    }

    /// The place of the next generation.
    pub(crate) fn next_mut(&mut self) -> &mut Option<Next> {
        &mut self.side.get_or_insert_default().next
    }

    /// The build that `MF.BUILD` is filling.
    pub(crate) fn building_mut(&mut self) -> Option<&mut Building> {
        match self.side.as_mut()?.next.as_mut()? {
            Next::Building(building) => Some(building),
            Next::Loading(_) => None,
        }
    }

    /// Inserts `items` into the current generation, as [`Served::add`] does, and those it accepted into the build as well. The current
    /// generation has accepted the first `begun` items already; their results are not passed on.
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

    /// Removes the next generation and its place.
    pub(crate) fn take_next(&mut self) -> Option<Next> {
        let next = self.side.as_mut().and_then(|side| side.next.take());
        self.tidy();
        next
    }

    /// Frees an empty side.
    pub(crate) fn tidy(&mut self) {
        if self
            .side
            .as_ref()
            .is_some_and(|side| side.next.is_none() && side.dump.is_none() && side.lost.is_none())
        {
            self.side = None;
        }
    }

    /// Makes this the current generation and returns its number.
    pub(crate) fn serve(&mut self, served: Served, now_ms: u64) -> u32 {
        self.generation = self.generation.saturating_add(1);
        (self.served, self.created_ms) = (served, now_ms);
        if let Some(side) = &mut self.side {
            (side.dump, side.lost) = (None, None);
        }
        self.tidy();
        self.generation
    }

    /// Bytes it takes in total.
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

    /// Items in the current generation, by its own count; 0 for a bitmap, whose bits would have to be counted one by one.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.served.items()
    }

    /// Does the current generation hash with a secret key?
    pub(crate) const fn is_keyed(&self) -> bool {
        matches!(self.served.scheme, HashScheme::Keyed { .. })
    }

    /// The rates of the current generation, if it can answer.
    pub(crate) fn assess(&self, sampling: Sampling) -> Option<Assessment> {
        self.is_ready().then(|| super::facts::assess(&self.served, sampling))
    }

    /// Collects the facts. Reads as much of the bits as `sampling` allows.
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
