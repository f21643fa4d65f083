//! No false negatives: random operations compared with the exact model.

use super::{Failure, Operation, Place, Refusals, Report, Script};
use crate::items::{mixed_member_into, mixed_non_member_into};
use crate::model::Model;
use crate::rng::Rng;
use crate::{Inserted, Subject};

/// The largest batch; every length up to it occurs.
const MOST_IN_BATCH: u64 = 24;
/// Non-members for which a decoded filter must give the same answers as the original.
const COMPARED: u64 = 512;
/// Each of the first rejections is followed by a check of all members: a failed insert must lose nothing.
const SWEPT_REFUSALS: u64 = 8;
/// The size of the pool of non-members; far more than are ever queried.
const NON_MEMBERS: u64 = 1 << 33;
/// With fewer lookups of non-members, a filter is not judged useless.
const MIN_ASKED: u64 = 100;

/// Runs `script` on a filter and compares every answer with the exact model.
///
/// `make` creates an empty filter for `script.capacity` items from a seed. It is called with the script's seed, several times if the filter can merge.
/// After every step, every queried member must be answered *maybe*, and no insert of a member may be reported as new. All members are checked after every
/// round trip and merge, after the first rejections and at the end. Only members are removed.
///
/// ```
/// use mayhap_testkit::bad::AlwaysNo;
/// use mayhap_testkit::suite::{Failure, Script, never_forgets};
///
/// let make = |seed| AlwaysNo::for_capacity(500, 0.01, seed);
/// let failure = never_forgets(make, &Script::new(10_000, 500)).unwrap_err();
/// assert!(matches!(failure, Failure::Forgot { .. }));
/// println!("{failure}"); // forgot "https://…" at seed 1, operation 3 (insert)
/// ```
///
/// # Errors
///
/// The first [`Failure`], with the seed, the number of the operation and the item.
pub fn never_forgets<S: Subject>(make: impl Fn(u64) -> S, script: &Script) -> Result<Report, Failure> {
    let pool = 2 * script.capacity;
    let mut probe = make(script.seed);
    probe.insert(b"probe");
    let can_remove = probe.remove(b"probe").is_some();
    drop(probe);
    let mut run = Run {
        script,
        filter: make(script.seed),
        can_remove,
        pool,
        model: Model::new(pool),
        pending: Model::new(pool),
        rng: Rng::new(script.seed),
        item: Vec::new(),
        batch: vec![Vec::new(); MOST_IN_BATCH as usize],
        report: Report::default(),
        operation: 0,
    };
    let (mut round_trips, mut merges) = (0, 0);
    for operation in 0..script.operations {
        run.operation = operation;
        if due(operation, script.operations, round_trips, script.round_trips) {
            round_trips += 1;
            run.round_trip()?;
        } else if due(operation, script.operations, merges, script.merges) {
            merges += 1;
            run.merge(&make, merges)?;
        } else {
            run.step()?;
        }
    }
    run.finish()
}

/// Returns whether it is time for number `done` of `planned`, spread evenly over all operations with some distance from both ends.
fn due(operation: u64, operations: u64, done: u64, planned: u64) -> bool {
    let at = |number: u64| u128::from(operations) * u128::from(number) / u128::from(planned + 1);
    done < planned && u128::from(operation) >= at(done + 1)
}

struct Run<'a, S> {
    script: &'a Script,
    filter: S,
    can_remove: bool,
    /// Members have numbers below this: twice the capacity, so that half of them are not in the filter.
    pool: u64,
    model: Model,
    /// Items chosen for the next batch or merge; the model gets them after they are inserted.
    pending: Model,
    rng: Rng,
    /// The bytes of the current item.
    item: Vec<u8>,
    batch: Vec<Vec<u8>>,
    report: Report,
    operation: u64,
}

impl<S: Subject> Run<'_, S> {
    /// Runs one random step. Of a hundred: 40 inserts, 28 lookups of members, 10 of items not in the filter, 10 of non-members, 10 removals, one batch of
    /// each sort.
    fn step(&mut self) -> Result<(), Failure> {
        match self.rng.below(100) {
            0..40 => self.insert(),
            40..68 => self.lookup_member(),
            68..78 => self.lookup_absent(),
            78..88 => self.lookup_non_member(),
            88..98 if self.can_remove => self.remove(),
            88..98 => self.lookup_member(),
            98 => self.insert_batch(),
            _ => self.lookup_batch(),
        }
    }

    fn insert(&mut self) -> Result<(), Failure> {
        let Some(number) = self.admitted(self.plain_limit()) else { return self.lookup_member() };
        self.hold(number);
        let outcome = self.filter.insert(&self.item);
        let step = if self.model.holds(number) { Operation::InsertAgain } else { Operation::Insert };
        self.report.did(step);
        self.inserted(number, outcome, step)
    }

    fn insert_batch(&mut self) -> Result<(), Failure> {
        let mut numbers = Vec::new();
        for _ in 0..=self.rng.below(MOST_IN_BATCH) {
            let repeated = numbers.last().copied().filter(|_| self.rng.below(8) == 0);
            let repeated = repeated.filter(|&number| self.admits(number, self.plain_limit()));
            if let Some(number) = repeated.or_else(|| self.admitted(self.plain_limit())) {
                self.pend(number);
                numbers.push(number);
            }
        }
        self.pending.clear();
        for (&number, item) in numbers.iter().zip(&mut self.batch) {
            mixed_member_into(self.script.seed, number, item);
        }
        let items: Vec<&[u8]> = self.batch[..numbers.len()].iter().map(Vec::as_slice).collect();
        let outcomes = self.filter.insert_batch(&items);
        let step = Operation::InsertBatch;
        self.report.did(step);
        self.same_length(step, numbers.len(), outcomes.len())?;
        for (&number, outcome) in numbers.iter().zip(outcomes) {
            self.hold(number);
            self.inserted(number, outcome, step)?;
        }
        Ok(())
    }

    /// Checks the result for the current item, and updates the model.
    fn inserted(&mut self, number: u64, outcome: Inserted, step: Operation) -> Result<(), Failure> {
        match outcome {
            Inserted::New if self.model.holds(number) => {
                return Err(Failure::NewTwice { place: self.place(step), item: self.item.clone() });
            }
            Inserted::New => self.report.new += 1,
            Inserted::Mayhap => {}
            Inserted::Refused => return self.refused(step),
        }
        self.model.add(number);
        self.expect_mayhap(step)
    }

    fn refused(&mut self, step: Operation) -> Result<(), Failure> {
        if self.script.refusals == Refusals::Forbidden {
            return Err(Failure::Refused { place: self.place(step), item: self.item.clone() });
        }
        self.report.refused += 1;
        if self.report.refused <= SWEPT_REFUSALS { self.sweep(step) } else { Ok(()) }
    }

    fn lookup_member(&mut self) -> Result<(), Failure> {
        let Some(number) = self.model.pick(&mut self.rng) else { return self.lookup_absent() };
        self.hold(number);
        self.report.did(Operation::LookupMember);
        self.expect_mayhap(Operation::LookupMember)
    }

    fn lookup_absent(&mut self) -> Result<(), Failure> {
        let number = self.rng.below(self.pool);
        if self.model.holds(number) {
            return self.lookup_non_member();
        }
        self.hold(number);
        self.report.did(Operation::LookupAbsent);
        self.report.mayhap_to_absent += u64::from(self.filter.may_contain(&self.item));
        Ok(())
    }

    fn lookup_non_member(&mut self) -> Result<(), Failure> {
        mixed_non_member_into(self.script.seed, self.rng.below(NON_MEMBERS), &mut self.item);
        self.report.did(Operation::LookupNonMember);
        self.report.mayhap_to_non_members += u64::from(self.filter.may_contain(&self.item));
        Ok(())
    }

    fn lookup_batch(&mut self) -> Result<(), Failure> {
        let length = 1 + self.rng.below(MOST_IN_BATCH) as usize;
        let mut must_be_in = Vec::with_capacity(length);
        for item in &mut self.batch[..length] {
            let number = match self.rng.below(3) {
                0 => self.model.pick(&mut self.rng),
                1 => Some(self.rng.below(self.pool)),
                _ => None,
            };
            match number {
                Some(number) => mixed_member_into(self.script.seed, number, item),
                None => mixed_non_member_into(self.script.seed, self.rng.below(NON_MEMBERS), item),
            }
            must_be_in.push(number.is_some_and(|number| self.model.holds(number)));
        }
        let items: Vec<&[u8]> = self.batch[..length].iter().map(Vec::as_slice).collect();
        let answers = self.filter.may_contain_batch(&items);
        let step = Operation::LookupBatch;
        self.report.did(step);
        self.same_length(step, length, answers.len())?;
        for ((item, answer), must_be_in) in items.iter().zip(answers).zip(must_be_in) {
            self.report.members_asked += u64::from(must_be_in);
            if must_be_in && !answer {
                return Err(Failure::Forgot { place: self.place(step), item: item.to_vec() });
            }
            if answer != self.filter.may_contain(item) {
                return Err(Failure::BatchDisagrees { place: self.place(step), item: item.to_vec() });
            }
        }
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Failure> {
        let Some(number) = self.model.pick(&mut self.rng) else { return self.lookup_absent() };
        self.hold(number);
        self.report.did(Operation::Remove);
        if self.filter.remove(&self.item) != Some(true) {
            let place = self.place(Operation::Remove);
            return Err(Failure::WouldNotRemove { place, item: self.item.clone() });
        }
        self.model.take(number);
        if self.model.holds(number) {
            return self.expect_mayhap(Operation::Remove);
        }
        self.report.did(Operation::LookupRemoved);
        self.report.mayhap_to_removed += u64::from(self.filter.may_contain(&self.item));
        Ok(())
    }

    fn round_trip(&mut self) -> Result<(), Failure> {
        let step = Operation::RoundTrip;
        let decoded = match self.filter.round_trip() {
            None => return Ok(()),
            Some(Err(reason)) => return Err(Failure::RoundTripFailed { place: self.place(step), reason }),
            Some(Ok(decoded)) => decoded,
        };
        self.report.did(step);
        for _ in 0..COMPARED {
            mixed_non_member_into(self.script.seed, self.rng.below(NON_MEMBERS), &mut self.item);
            if self.filter.may_contain(&self.item) != decoded.may_contain(&self.item) {
                return Err(Failure::DecodedDiffers { place: self.place(step), item: self.item.clone() });
            }
        }
        self.filter = decoded;
        self.sweep(step)
    }

    /// Fills another filter with up to an eighth of the capacity and merges it. Each merge has its own share of the room reserved for merges, so that
    /// every one adds new items.
    fn merge(&mut self, make: &impl Fn(u64) -> S, nth: u64) -> Result<(), Failure> {
        let step = Operation::Merge;
        let limit = self.plain_limit() + self.script.capacity / 8 * nth / self.script.merges;
        let mut other = make(self.script.seed);
        let mut numbers = Vec::new();
        for _ in 0..(self.script.capacity / 8).clamp(8, 10_000) {
            let Some(number) = self.admitted(limit) else { continue };
            self.hold(number);
            match other.insert(&self.item) {
                Inserted::Refused => self.refused(step)?,
                Inserted::New | Inserted::Mayhap => {
                    self.pend(number);
                    numbers.push(number);
                }
            }
        }
        self.pending.clear();
        match self.filter.merge(&other) {
            None => return Ok(()),
            Some(Err(reason)) => return Err(Failure::MergeFailed { place: self.place(step), reason }),
            Some(Ok(())) => self.report.did(step),
        }
        numbers.into_iter().for_each(|number| self.model.add(number));
        self.sweep(step)
    }

    /// Looks up all members.
    fn sweep(&mut self, step: Operation) -> Result<(), Failure> {
        self.report.did(Operation::Sweep);
        for place in 0..self.model.held().len() {
            self.hold(self.model.held()[place]);
            self.expect_mayhap(step)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Report, Failure> {
        self.operation = self.script.operations;
        self.sweep(Operation::Sweep)?;
        self.report.held = self.model.held().len() as u64;
        let (seed, limit) = (self.script.seed, self.script.mayhap_limit);
        if self.report.held == 0 {
            return Err(Failure::NothingHeld { seed });
        }
        for (step, mayhap) in [
            (Operation::LookupNonMember, self.report.mayhap_to_non_members),
            (Operation::LookupAbsent, self.report.mayhap_to_absent),
            (Operation::LookupRemoved, self.report.mayhap_to_removed),
        ] {
            let asked = self.report.times(step);
            if asked >= MIN_ASKED && mayhap as f64 > asked as f64 * limit {
                return Err(Failure::SaysMayhapTooOften { seed, step, asked, mayhap, limit });
            }
        }
        Ok(self.report)
    }

    /// Makes member `number` the current item.
    fn hold(&mut self, number: u64) {
        mixed_member_into(self.script.seed, number, &mut self.item);
    }

    fn expect_mayhap(&mut self, step: Operation) -> Result<(), Failure> {
        self.report.members_asked += 1;
        if self.filter.may_contain(&self.item) {
            Ok(())
        } else {
            Err(Failure::Forgot { place: self.place(step), item: self.item.clone() })
        }
    }

    fn same_length(&self, step: Operation, items: usize, answers: usize) -> Result<(), Failure> {
        if items == answers {
            Ok(())
        } else {
            Err(Failure::BatchLength { place: self.place(step), items, answers })
        }
    }

    const fn place(&self, step: Operation) -> Place {
        Place { seed: self.script.seed, operation: self.operation, step }
    }

    /// Plain inserts leave an eighth of the capacity to merges.
    const fn plain_limit(&self) -> u64 {
        self.script.capacity - self.script.capacity / 8
    }

    /// Picks a random member that fits in addition to the pending ones, or `None` if the filter is full.
    fn admitted(&mut self, limit: u64) -> Option<u64> {
        let number = self.rng.below(self.pool);
        if self.admits(number, limit) {
            return Some(number);
        }
        let held = self.model.pick(&mut self.rng)?;
        self.admits(held, limit).then_some(held)
    }

    fn admits(&self, number: u64, limit: u64) -> bool {
        let (model, pending) = (&self.model, &self.pending);
        if self.can_remove {
            model.copies(number) + pending.copies(number) < self.script.max_copies
                && model.total_copies() + pending.total_copies() < limit
        } else {
            model.holds(number)
                || pending.holds(number)
                || ((model.held().len() + pending.held().len()) as u64) < limit
        }
    }

    /// Reserves room for `number`. In a filter that cannot remove, an item that is already a member needs no room.
    fn pend(&mut self, number: u64) {
        if self.can_remove || !self.model.holds(number) {
            self.pending.add(number);
        }
    }
}
