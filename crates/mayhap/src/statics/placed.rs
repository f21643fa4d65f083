//! A table with our own slots, or one read from other programs with theirs.

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

/// A graph of ours that other programs have in their own way.
pub(crate) trait Twofold: OwnGraph {
    /// The same measurements with the slots of other programs.
    type Foreign: ForeignGraph<Own = Self>;
}

impl Twofold for FuseGraph {
    type Foreign = super::foreign::ForeignFuse;
}

impl Twofold for XorGraph {
    type Foreign = super::foreign::ForeignXor;
}

/// Placement scheme 1: our own slots, in shards.
const OWN: u16 = 1;
/// Placement scheme 2: the slots of the FastFilter libraries.
const FOREIGN: u16 = 2;

/// A table, and by whose rule it is read.
#[derive(Debug)]
pub(crate) struct Placed<F: Fingerprint, G: Twofold> {
    /// Ours. It is empty if the slots are those of other programs, and an empty one is noticed anyway: so the others cost ours nothing.
    own: StaticTable<F, G>,
    foreign: Option<StaticTable<F, G::Foreign>>,
}

/// The same expression for whichever table it is.
macro_rules! either {
    ($placed:expr, $table:ident => $value:expr) => {{
        let $table = &$placed.own;
        if let Some($table) = &$placed.foreign { $value } else { $value }
    }};
}

impl<F: Fingerprint, G: Twofold> Placed<F, G> {
    pub(crate) const fn own(own: StaticTable<F, G>) -> Self {
        Self { own, foreign: None }
    }

    pub(crate) fn foreign(table: StaticTable<F, G::Foreign>) -> Result<Self, BuildError> {
        Ok(Self { own: StaticTable::empty()?, foreign: Some(table) })
    }

    /// The table, if the slots are those of other programs.
    pub(crate) const fn as_foreign(&self) -> Option<&StaticTable<F, G::Foreign>> {
        self.foreign.as_ref()
    }

    /// Our own table; an empty one, if the slots are those of other programs.
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

    /// For a table of ours that is empty.
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

    /// Items it was made for.
    pub(crate) const fn items(&self) -> u64 {
        either!(self, table => table.items())
    }

    /// Different items it was built from; 0 if the program that wrote it did not say.
    pub(crate) const fn inserted(&self) -> u64 {
        either!(self, table => table.inserted())
    }

    /// Its measurements.
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

    pub(crate) fn header(&self, kind: Kind, scheme: &HashScheme) -> Header {
        let placement = if self.foreign.is_some() { FOREIGN } else { OWN };
        let mut header = Header::new(kind, placement, Some(scheme));
        either!(self, table => table.describe(&mut header));
        header
    }

    /// The table a header describes, and how its items are hashed.
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

/// Do tables that hash like this have the slots of other programs?
fn is_of_numbers(scheme: &HashScheme) -> bool {
    matches!(scheme, HashScheme::Foreign(scheme) if scheme.function() == ForeignHash::Number)
}
