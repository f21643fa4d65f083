//! Random histories of a log on a disk that loses everything it may lose. Safe records are there, in order;
//! of the others a prefix; and nothing else.
//!
//! `MAYHAP_CRASH_STATES` is the number of states to try (`just crash-states`: ten million). A failure reports
//! its seed, and `MAYHAP_CRASH_SEED` runs only the history of that seed.

mod support;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use mayhap_engine::LogError;
use mayhap_engine::log::{Commit, Limits, Log, Policy, Recovered, Refused, Salts, State};
use mayhap_testkit::rng::{Rng, mix};
use support::histories::{Coverage, see};
use support::simulated::{Fault, Simulated, Spoiled};

const STATES: u64 = 200_000;
const STEPS: u64 = 40;

type Opened = (Arc<Log>, Recovered, Vec<(u64, Vec<u8>)>);

fn open(disk: &Simulated, from: u64, policy: Policy, seed: u64) -> Result<Opened, LogError> {
    let mut played = Vec::new();
    let limits = Limits { salts: Salts::Seeded(seed), ..Limits::default() };
    let (log, recovered) =
        Log::open_quiet(Arc::new(disk.clone()), from, policy, limits, |number, record: &[u8]| {
            played.push((number, record.to_vec()));
            Ok::<_, Infallible>(())
        })?;
    Ok((log, recovered, played))
}

/// The records that were appended, and what the log promised.
#[derive(Clone, Default)]
struct Model {
    records: Vec<Vec<u8>>,
    /// Numbers at which a log must not end: inside groups.
    inside: Vec<u64>,
    /// The number from which on the log is needed.
    from: u64,
    /// Everything below this survives a power loss.
    safe: u64,
    /// Everything below this survives the end of the process.
    committed: u64,
}

impl Model {
    /// Checks the records that were read. Everything below `least` must be there.
    fn check(&self, least: u64, recovered: &Recovered, played: &[(u64, Vec<u8>)]) -> Result<(), String> {
        let next = recovered.next;
        if next < least {
            return Err(format!("{least} records were promised, {next} are there"));
        }
        if next > self.records.len() as u64 {
            return Err(format!("{next} records are there, {} were appended", self.records.len()));
        }
        if self.inside.contains(&next) {
            return Err(format!("only a part of a group is there: the log ends at {next}"));
        }
        if recovered.played != played.len() as u64 || played.len() as u64 != next - self.from {
            return Err(format!("{} records from {} to {next}", played.len(), self.from));
        }
        for (at, (number, record)) in (self.from..).zip(played) {
            if *number != at || *record != self.records[at as usize] {
                return Err(format!("record {at} differs from the one that was appended"));
            }
        }
        Ok(())
    }

    /// Continues the history from what was read.
    fn cut(&mut self, next: u64) {
        self.records.truncate(next as usize);
        self.inside.retain(|&number| number < next);
        (self.safe, self.committed) = (next, next);
    }
}

/// The situations that histories met. A test that never sees a torn log proves nothing about it.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Crashes and restarts, each followed by a recovery.
    states: u64,
    /// Of these, those in which the end of the log was cut off,
    cut: u64,
    /// and those in which records that were never safe are gone.
    shorter: u64,
    /// Logs that found no space, and logs that failed.
    full: u64,
    failed: u64,
    /// Logs of several files.
    rotated: u64,
}

impl Coverage for Seen {
    fn states(&self) -> u64 {
        self.states
    }

    fn add(&mut self, other: Self) {
        self.states += other.states;
        self.cut += other.cut;
        self.shorter += other.shorter;
        self.full += other.full;
        self.failed += other.failed;
        self.rotated += other.rotated;
    }
}

struct History<'a> {
    rng: Rng,
    disk: Simulated,
    log: Arc<Log>,
    model: Model,
    seen: &'a mut Seen,
    opened: u64,
}

impl History<'_> {
    fn policy(&mut self) -> Policy {
        [Policy::Always, Policy::EverySec, Policy::No][self.rng.below(3) as usize]
    }

    /// A seed that no log had before.
    fn seed(&mut self) -> u64 {
        self.opened += 1;
        mix(self.rng.next_u64() ^ self.opened)
    }

    fn append(&mut self) {
        if self.log.may_change().is_err() {
            return;
        }
        let length = [0, 1, 20, 100, 600, 3000][self.rng.below(6) as usize];
        let mut record = vec![0; self.rng.below(length + 1) as usize];
        record.fill_with(|| self.rng.next_u64() as u8);
        assert_eq!(self.log.append(&record), self.model.records.len() as u64);
        self.model.records.push(record);
    }

    /// What the log reports about itself is a promise.
    fn listen(&mut self) {
        self.model.safe = self.model.safe.max(self.log.synced());
        self.model.committed = self.model.committed.max(self.log.figures().written);
    }

    fn commit(&mut self) -> Result<(), String> {
        let next = self.log.next();
        match self.log.commit(next) {
            Ok(Commit::Done) => self.model.committed = next,
            Ok(Commit::Wait) => {
                let context = Context::from_waker(Waker::noop());
                match self.rng.below(4) {
                    0 => _ = self.log.sync(),
                    1 => self.log.set_policy(Policy::No),
                    _ => {}
                }
                match self.log.poll_synced(next, &context) {
                    Poll::Ready(Ok(())) if self.log.policy() == Policy::Always => self.model.safe = next,
                    Poll::Ready(Ok(())) => self.model.committed = next,
                    Poll::Ready(Err(_)) => {}
                    Poll::Pending if self.log.synced() >= next => {
                        return Err("the record is safe, but the task waits".into());
                    }
                    Poll::Pending => {}
                }
            }
            Err(refused) => self.refused(refused)?,
        }
        Ok(())
    }

    fn refused(&mut self, refused: Refused) -> Result<(), String> {
        match (refused, self.log.state()) {
            (Refused::NoSpace, State::NoSpace) | (Refused::Failed, State::Failed) => Ok(()),
            (refused, state) => Err(format!("{refused:?} in state {state:?}")),
        }
    }

    fn group(&mut self) {
        if self.log.may_change().is_err() {
            return;
        }
        let first = self.log.next();
        self.log.begin_group();
        for _ in 0..2 + self.rng.below(3) {
            self.append();
            if self.rng.below(3) == 0 {
                // Another thread syncs meanwhile.
                let _ = self.log.sync();
            }
        }
        self.log.end_group();
        self.model.inside.extend(first + 1..self.log.next());
    }

    /// Opens the log on an image of the disk, possibly with failing calls and crashes. What it finds must
    /// stay the same.
    fn read(&mut self, image: Simulated, least: u64) -> Result<(Simulated, Opened), String> {
        let (mut image, mut least) = (image, least);
        let mut model = self.model.clone();
        for round in 0.. {
            let faulty = round < 3 && self.rng.below(4) == 0;
            if faulty {
                let error = [ErrorKind::Other, ErrorKind::StorageFull][self.rng.below(2) as usize];
                image.fail(Some(Fault { after: self.rng.below(16), error }));
            }
            let (policy, seed) = (self.policy(), self.seed());
            self.seen.states += 1;
            let opened = open(&image, model.from, policy, seed);
            image.fail(None);
            match opened {
                Ok((log, recovered, played)) => {
                    model.check(least, &recovered, &played)?;
                    self.seen.cut += u64::from(recovered.cut_bytes > 0);
                    self.seen.shorter += u64::from(recovered.next < model.records.len() as u64);
                    model.cut(recovered.next);
                    if round > 2 || self.rng.below(4) > 0 {
                        return Ok((image, (log, recovered, played)));
                    }
                    least = log.synced();
                }
                Err(LogError::Disk { .. }) if faulty => {}
                Err(error) => return Err(error.to_string()),
            }
            if self.rng.below(2) == 0 {
                image = image.crashed(&mut self.rng);
            }
        }
        unreachable!("the loop does not end")
    }

    /// Continues the history with this disk.
    fn go_on(&mut self, disk: Simulated, opened: Opened) {
        let (log, recovered, _) = opened;
        (self.disk, self.log) = (disk, log);
        self.model.cut(recovered.next);
        self.model.safe = self.log.synced();
    }

    fn power_loss(&mut self) -> Result<(), String> {
        self.seen.full += u64::from(self.log.state() == State::NoSpace);
        self.seen.failed += u64::from(self.log.state() == State::Failed);
        self.seen.rotated += u64::from(self.log.figures().segments > 1);
        let image = self.disk.crashed(&mut self.rng);
        let (disk, opened) = self.read(image, self.model.safe)?;
        if self.rng.below(4) == 0 || self.log.state() == State::Failed && self.rng.below(2) == 0 {
            self.go_on(disk, opened);
        }
        Ok(())
    }

    fn kill(&mut self) -> Result<(), String> {
        let image = self.disk.copied();
        image.set_room(None);
        image.fail(None);
        let seed = self.seed();
        self.seen.states += 1;
        let opened = open(&image, self.model.from, Policy::No, seed).map_err(|error| error.to_string())?;
        self.model.check(self.model.committed, &opened.1, &opened.2)?;
        self.go_on(image, opened);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let next = self.log.next();
        if self.log.close().is_err() {
            return Ok(());
        }
        let image = self.disk.crashed(&mut self.rng);
        let seed = self.seed();
        self.seen.states += 1;
        let opened = open(&image, self.model.from, Policy::No, seed).map_err(|error| error.to_string())?;
        self.model.check(next, &opened.1, &opened.2)?;
        if !opened.1.clean {
            return Err("the log was closed, but reports that it was not".into());
        }
        self.go_on(image, opened);
        Ok(())
    }

    /// Runs something that syncs. Sometimes another thread appends and commits in the middle of it.
    fn meanwhile<T>(&mut self, does: impl FnOnce(&Log) -> T) -> T {
        let others = Arc::new(Mutex::new(Vec::new()));
        // Only then the first sync is one during which other threads may write.
        if self.log.state() == State::Writing && self.log.next() > self.log.synced() && self.rng.below(2) == 0
        {
            self.log.set_policy(Policy::No);
            let record: Vec<u8> = (0..self.rng.below(700)).map(|_| self.rng.next_u64() as u8).collect();
            let (log, others) = (Arc::clone(&self.log), Arc::clone(&others));
            self.disk.during_sync(move || {
                let number = log.append(&record);
                others.lock().unwrap().push(record);
                let _ = log.commit(number + 1);
            });
        }
        let done = does(&self.log);
        self.disk.during_sync(|| {});
        self.model.records.append(&mut others.lock().unwrap());
        done
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.below(32) {
            0..=7 => self.append(),
            8 => self.group(),
            9..=17 => self.commit()?,
            18 => {
                let next = self.log.next();
                match self.meanwhile(Log::sync) {
                    Ok(()) if self.log.synced() < next => return Err("a sync did not sync everything".into()),
                    Ok(()) => {}
                    Err(refused) => self.refused(refused)?,
                }
            }
            19 => {
                if let Ok(number) = self.meanwhile(Log::rotate) {
                    // A snapshot has everything before this number.
                    if self.rng.below(2) == 0 && number > self.model.from {
                        self.model.from = number;
                        let _ = self.log.forget_before(number);
                    }
                }
            }
            20 => {
                let policy = self.policy();
                self.log.set_policy(policy);
            }
            21 | 22 => {
                let kinds = [ErrorKind::Other, ErrorKind::StorageFull, ErrorKind::Interrupted];
                let error = kinds[self.rng.below(3) as usize];
                self.disk.fail(Some(Fault { after: self.rng.below(4), error }));
            }
            23 => self.disk.set_room(Some(self.rng.below(6000))),
            24 if self.rng.below(2) == 0 => self.disk.set_short(Some(1 + self.rng.below(900) as usize)),
            25 => {
                self.disk.set_room(None);
                self.disk.fail(None);
                if self.log.state() == State::NoSpace && self.log.sync().is_err() {
                    return Err("there is space again, but the log does not continue".into());
                }
            }
            26 if self.rng.below(4) == 0 => self.kill()?,
            27 if self.rng.below(8) == 0 => self.close()?,
            _ => {
                self.listen();
                for _ in 0..1 + self.rng.below(4) {
                    self.power_loss()?;
                }
            }
        }
        self.listen();
        Ok(())
    }
}

/// Runs the history of `seed` and counts the situations.
fn history(seed: u64, spoiled: Spoiled, seen: &mut Seen) -> Result<(), String> {
    let disk = Simulated::new(spoiled);
    let (log, ..) = open(&disk, 0, Policy::No, mix(seed)).map_err(|error| error.to_string())?;
    let mut history = History { rng: Rng::new(seed), disk, log, model: Model::default(), seen, opened: 0 };
    for step in 0..STEPS {
        history.step().map_err(|what| format!("seed {seed}, step {step}: {what}"))?;
    }
    Ok(())
}

#[test]
fn no_safe_record_is_lost_and_nothing_else_is_read() {
    let Some((seen, histories)) = see::<Seen>(STATES, |seed, seen| history(seed, Spoiled::Not, seen)) else {
        return;
    };
    println!("{} crash states of {} histories: {seen:?}", seen.states, histories);
    for some in [seen.cut, seen.shorter, seen.full, seen.failed, seen.rotated] {
        assert!(some > seen.states / 100, "{seen:?}");
    }
}

#[test]
fn disks_that_break_a_promise_are_detected() {
    for spoiled in [Spoiled::Sync, Spoiled::SyncDir, Spoiled::SetLen, Spoiled::Rots] {
        let noticed = (0..500).filter(|&seed| history(seed, spoiled, &mut Seen::default()).is_err()).count();
        println!("{spoiled:?}: detected in {noticed} of 500 histories");
        assert!(noticed > 5, "{spoiled:?}: detected in only {noticed} of 500 histories");
    }
}
