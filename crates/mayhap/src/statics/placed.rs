//! A table with our own slots, or one read from another program, with that program's slots.

use std::fmt::Debug;

use super::fingerprint::Fingerprint;
use super::foreign::ForeignGraph;
use super::graph::{FuseGraph, OwnGraph, Sharded, XorGraph};
use super::table::StaticTable;
use crate::answers::Answers;
use crate::batch::Hashed;
use crate::codec::{Body, DecodeError, Header};
use crate::error::BuildError;
use crate::hash::ForeignHash;
use crate::hash::{HashScheme, ItemHash};
use crate::kind::Kind;
use crate::store::Lines;

/// How an [`XorFuse`](crate::xor_fuse::XorFuse) filter chooses an item's three slots: [`XorGraph`] or
/// [`FuseGraph`].
///
/// It cannot be implemented outside this crate.
pub trait SlotGraph: OwnGraph + Debug + Eq {
    /// The kind of filter that has these slots.
    const KIND: Kind;

    /// The same measurements with the slots of other programs.
    #[doc(hidden)]
    type Foreign: ForeignGraph<Own = Self>;
}

impl SlotGraph for FuseGraph {
    const KIND: Kind = Kind::BinaryFuse;

    type Foreign = super::foreign::ForeignFuse;
}

impl SlotGraph for XorGraph {
    const KIND: Kind = Kind::Xor;

    type Foreign = super::foreign::ForeignXor;
}

/// Placement scheme 1: our own slots, in shards.
const OWN: u16 = 1;
/// Placement scheme 2: the slots of the FastFilter libraries.
const FOREIGN: u16 = 2;

/// A table, and the rule that places its items.
#[derive(Debug, PartialEq)]
pub(crate) struct Placed<F: Fingerprint, G: SlotGraph> {
    /// Our own table, empty if the slots are those of other programs. Lookups check for an empty table
    /// anyway, so supporting other programs costs them nothing.
    own: StaticTable<F, G>,
    foreign: Option<StaticTable<F, G::Foreign>>,
}

/// Evaluates the same expression for either table.
macro_rules! either {
    ($placed:expr, $table:ident => $value:expr) => {{
        let $table = &$placed.own;
        if let Some($table) = &$placed.foreign { $value } else { $value }
    }};
}

impl<F: Fingerprint, G: SlotGraph> Placed<F, G> {
    pub(crate) const fn own(own: StaticTable<F, G>) -> Self {
        Self { own, foreign: None }
    }

    pub(crate) fn foreign(table: StaticTable<F, G::Foreign>) -> Result<Self, BuildError> {
        Ok(Self { own: StaticTable::empty()?, foreign: Some(table) })
    }

    /// Returns the table if the slots are those of other programs.
    pub(crate) const fn as_foreign(&self) -> Option<&StaticTable<F, G::Foreign>> {
        self.foreign.as_ref()
    }

    /// Returns our own table, which is empty if the slots are those of other programs.
    pub(super) const fn as_own(&self) -> &StaticTable<F, G> {
        &self.own
    }

    #[inline(always)]
    pub(crate) fn may_contain(&self, hash: ItemHash) -> bool {
        match self.own.difference(hash) {
            Some(difference) => difference == F::default(),
            None => self.may_contain_elsewhere(hash),
        }
    }

    /// Continues a lookup when our own table is empty.
    #[cold]
    #[inline(never)]
    fn may_contain_elsewhere(&self, hash: ItemHash) -> bool {
        self.foreign.as_ref().is_some_and(|table| table.difference(hash) == Some(F::default()))
    }

    #[inline(always)]
    pub(crate) fn may_contain_batch<H: Hashed>(
        &self,
        scheme: &HashScheme,
        items: &[H],
        answers: &mut Answers,
    ) {
        either!(self, table => table.may_contain_batch(scheme, items, answers));
    }

    /// The number of items it was made for.
    pub(crate) const fn items(&self) -> u64 {
        either!(self, table => table.items())
    }

    /// The number of different items it was built from; 0 if the program that wrote it did not record it.
    pub(crate) const fn inserted(&self) -> u64 {
        either!(self, table => table.inserted())
    }

    /// Returns its measurements.
    pub(crate) fn places(&self) -> Sharded<G> {
        if let Some(table) = &self.foreign {
            return table.places().with_graph(table.places().graph().own());
        }
        *self.own.places()
    }

    pub(crate) const fn lines(&self) -> &Lines {
        either!(self, table => table.lines())
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.lines().memory_bytes()
    }

    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            own: self.own.try_clone()?,
            foreign: self.foreign.as_ref().map(StaticTable::try_clone).transpose()?,
        })
    }

    pub(crate) fn header(&self, scheme: &HashScheme) -> Header {
        let placement = if self.foreign.is_some() { FOREIGN } else { OWN };
        let mut header = Header::new(G::KIND, placement, Some(scheme));
        either!(self, table => table.describe(&mut header));
        header
    }

    /// Returns the table that a header describes, and how its items are hashed.
    pub(crate) fn restore(header: &Header, body: &Body<'_>) -> Result<(Self, HashScheme), DecodeError> {
        if header.placement == FOREIGN && is_of_numbers(&header.scheme()?) {
            if header.parameters[2] != 0 {
                return Err(DecodeError::BadField { field: "shards", got: header.parameters[2] });
            }
            return Ok((Self::foreign(StaticTable::restore(header, body)?)?, header.scheme()?));
        }
        header.expect_placement(OWN)?;
        Ok((Self::own(StaticTable::restore(header, body)?), header.scheme()?))
    }
}

/// Returns whether tables with this hash scheme have the slots of other programs.
fn is_of_numbers(scheme: &HashScheme) -> bool {
    matches!(scheme, HashScheme::Foreign(scheme) if scheme.function() == ForeignHash::Number)
}
