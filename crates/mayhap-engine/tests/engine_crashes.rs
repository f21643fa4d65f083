//! Random histories of a whole engine, with its log and its snapshots, on a disk that loses everything it may
//! lose. The power may fail before any call to the disk, again while the rest is read, and a third time. Then
//! everything that was promised is there, and the state is one that existed: every name has, bit for bit, the
//! value it had after some request, the same request for all names.
//!
//! ```text
//! requests, snapshots, rotations, faults ─▶ engine ─▶ disk ─ before a call ─▶ pictures ─ crash ─▶ recover ─▶ same as at that number?
//!                          └─ the values of all names, at every number of the log ─────────────────────────────────────┘
//! ```
//!
//! `MAYHAP_CRASH_STATES` is the number of states to try (`just crash-states`: eight million). A failure
//! reports its seed, and `MAYHAP_CRASH_SEED` runs only the history of that seed.

mod support;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mayhap_command::{Limits, Request, Scratch, parameters, table};
use mayhap_engine::log::{self, Commit, Policy, Salts, State};
use mayhap_engine::snapshot::{MANIFEST, SnapshotError};
use mayhap_engine::{Disk, Engine, LogError, RecoverError, Recovery};
use mayhap_testkit::rng::{Rng, mix};
use support::FixedClock;
use support::histories::{Coverage, see};
use support::simulated::{Fault, Simulated, Spoiled};

const STATES: u64 = 20_000;
const STEPS: u64 = 40;
/// A crash, another one during recovery, and a third one.
const CRASHES: u32 = 3;

/// Every name, with a hash of its value.
type Held = BTreeMap<Vec<u8>, u64>;

/// What the engine did, and what it promised.
#[derive(Default)]
struct Model {
    /// The values after a request or a transaction had ended, by the number of records in the log.
    held: BTreeMap<u64, Held>,
    /// Records below this number survive a power loss: that was acknowledged.
    acknowledged: u64,
    /// Records below this number survive the end of the process.
    committed: u64,
}

impl Model {
    /// Checks the recovered values. The log must end with one of `numbers`.
    fn check(&self, numbers: &RangeInclusive<u64>, next: u64, held: &Held) -> Result<(), String> {
        if !numbers.contains(&next) {
            return Err(format!("numbers {numbers:?} were promised, but the log ends with {next}"));
        }
        if let Some(before) = self.held.get(&next) {
            return difference(before, held).map_or(Ok(()), |what| Err(format!("at number {next}: {what}")));
        }
        // The records of one request, and of one transaction, are written together.
        Err(format!("only a part of a request is there: the log ends at {next}"))
    }

    /// Continues the history from here.
    fn cut(&mut self, next: u64, held: Held) {
        self.held.split_off(&next);
        self.held.insert(next, held);
        (self.acknowledged, self.committed) = (next, next);
    }
}

fn difference(before: &Held, after: &Held) -> Option<String> {
    for (name, digest) in before {
        match after.get(name) {
            None => return Some(format!("{} is missing", name.escape_ascii())),
            Some(other) if other != digest => return Some(format!("{} is another", name.escape_ascii())),
            Some(_) => {}
        }
    }
    let more = after.keys().find(|name| !before.contains_key(*name))?;
    Some(format!("{} should not exist", more.escape_ascii()))
}

/// The situations that histories met. A test that never sees an incomplete snapshot proves nothing about it.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The number of recoveries.
    states: u64,
    /// Of these: after a second crash, and after a third one,
    second: u64,
    third: u64,
    /// with a snapshot and a log that were read,
    snapshots_read: u64,
    /// with files of a snapshot that no manifest names,
    half_snapshots: u64,
    /// with large values in files of their own,
    large: u64,
    /// with a log whose end was cut off,
    cut: u64,
    /// with a change missing that was never promised.
    shorter: u64,
    /// Snapshots that were written, abandoned, and failed.
    snapshots: u64,
    given_up: u64,
    snapshots_failed: u64,
    /// Logs that found no space, and logs that failed.
    full: u64,
    failed: u64,
    /// Records that were acknowledged with `always`.
    acknowledged: u64,
    /// Disks that failed while they were read.
    unread: u64,
}

impl Seen {
    fn fields(&mut self) -> [&mut u64; 15] {
        [
            &mut self.states,
            &mut self.second,
            &mut self.third,
            &mut self.snapshots_read,
            &mut self.half_snapshots,
            &mut self.large,
            &mut self.cut,
            &mut self.shorter,
            &mut self.snapshots,
            &mut self.given_up,
            &mut self.snapshots_failed,
            &mut self.full,
            &mut self.failed,
            &mut self.acknowledged,
            &mut self.unread,
        ]
    }
}

impl Coverage for Seen {
    fn states(&self) -> u64 {
        self.states
    }

    fn add(&mut self, mut other: Self) {
        for (sum, more) in self.fields().into_iter().zip(other.fields()) {
            *sum += *more;
        }
    }
}

/// Few bytes may be pending, so they are written in the middle of requests.
fn limits(salts: Salts) -> log::Limits {
    log::Limits { pending_bytes: 300, salts, ..log::Limits::default() }
}

/// An engine that was recovered from a disk.
struct Opened {
    disk: Simulated,
    engine: Arc<Engine>,
    clock: Arc<FixedClock>,
    recovery: Recovery,
    held: Held,
}

struct History<'a> {
    rng: Rng,
    disk: Simulated,
    engine: Arc<Engine>,
    clock: Arc<FixedClock>,
    model: Model,
    seen: &'a mut Seen,
    opened: u64,
    /// The number of names in each family.
    names: u64,
}

const POLICIES: [Policy; 3] = [Policy::Always, Policy::EverySec, Policy::No];

/// Small filters of several kinds.
const KINDS: [&str; 11] = [
    "KIND bloom CAPACITY 20 FPR 0.01",
    "KIND bloom CAPACITY 600 FPR 0.01",
    "KIND blocked-bloom CAPACITY 20 FPR 0.01",
    "KIND scalable-bloom CAPACITY 5 FPR 0.01",
    "KIND counting-bloom CAPACITY 20 FPR 0.01",
    "KIND cuckoo CAPACITY 20 FPR 0.01",
    "KIND growable-cuckoo CAPACITY 10 MAX 200 FPR 0.01",
    "KIND quotient CAPACITY 20 FPR 0.01",
    "KIND growing CAPACITY 10 FPR 0.01",
    "KIND window WINDOW 10 FPR 0.01",
    "KIND bitmap RANGE 0 300",
];

impl History<'_> {
    fn one_of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.rng.below(all.len() as u64) as usize]
    }

    /// A name of a family, sometimes of another one.
    fn name(&mut self, family: &str) -> String {
        let family = if self.rng.below(16) == 0 { self.one_of(&["b", "c", "m", "s"]) } else { family };
        format!("{family}{}", self.rng.below(self.names))
    }

    fn any(&mut self) -> String {
        let family = self.one_of(&["b", "c", "m", "s"]);
        self.name(family)
    }

    fn items(&mut self, most: u64) -> String {
        (0..=self.rng.below(most)).map(|_| format!(" {}", self.rng.below(300))).collect()
    }

    fn line(&mut self) -> String {
        let item = self.rng.below(300);
        match self.rng.below(40) {
            0 => {
                let (capacity, grows) =
                    (self.one_of(&["5", "20", "500"]), self.one_of(&["NONSCALING", "EXPANSION 2"]));
                format!("BF.RESERVE {} 0.01 {capacity} {grows}", self.name("b"))
            }
            1..=5 => format!("BF.ADD {} {item}", self.name("b")),
            6 | 7 => format!("BF.MADD {}{}", self.name("b"), self.items(4)),
            8 => format!("BF.INSERT {} CAPACITY 10 ITEMS{}", self.name("b"), self.items(3)),
            9 => {
                let (capacity, grows) = (self.one_of(&["8", "32"]), self.one_of(&["0", "1", "2"]));
                format!("CF.RESERVE {} {capacity} EXPANSION {grows}", self.name("c"))
            }
            10..=12 => format!("CF.INSERT {} CAPACITY 8 ITEMS{}", self.name("c"), self.items(3)),
            13 => {
                let command = self.one_of(&["CF.ADD", "CF.ADDNX", "CF.DEL", "CF.DEL"]);
                format!("{command} {} {item}", self.name("c"))
            }
            14 => format!("CF.COMPACT {}", self.name("c")),
            15..=17 => {
                let kind = self.one_of(&KINDS);
                format!("MF.RESERVE {} {kind}", self.name("m"))
            }
            18..=20 => format!("MF.MADD {}{}", self.name("m"), self.items(4)),
            21 => format!("MF.DEL {} {item}", self.name("m")),
            22 => format!("MF.MERGE {} {}", self.name("m"), self.name("m")),
            23 => {
                let step = match self.rng.below(4) {
                    0 => "BEGIN KIND xor CAPACITY 10".into(),
                    1 | 2 => format!("ADD{}", self.items(6)),
                    _ => "COMMIT".into(),
                };
                format!("MF.BUILD {} {step}", self.name("m"))
            }
            24 => format!("SET {} {}", self.name("s"), "x".repeat(self.rng.below(700) as usize)),
            25 => format!("SET {} value PX {}", self.any(), 1 + self.rng.below(3_000)),
            26 => format!("SETBIT {} {} 1", self.name("s"), self.rng.below(2_000)),
            27 => format!("APPEND {} {item}", self.name("s")),
            28 => {
                let how = self.one_of(&["OR", "XOR", "AND"]);
                format!("BITOP {how} {} {} {}", self.name("s"), self.name("s"), self.name("s"))
            }
            29 | 30 => {
                let (command, family) =
                    (self.one_of(&["RENAME", "RENAMENX"]), self.one_of(&["b", "c", "m", "s"]));
                format!("{command} {} {}", self.name(family), self.name(family))
            }
            31 | 32 => {
                let family = self.one_of(&["b", "c", "m", "s"]);
                format!("COPY {} {} REPLACE", self.name(family), self.name(family))
            }
            33 => format!("PEXPIRE {} {}", self.any(), 1 + self.rng.below(3_000)),
            34 => format!("{} {}", self.one_of(&["PERSIST", "MF.CLEAR", "GETDEL"]), self.any()),
            35 | 36 => format!("DEL {} {}", self.any(), self.any()),
            37 if self.rng.below(8) == 0 => "FLUSHALL".into(),
            _ => format!("EXISTS {}", self.any()),
        }
    }

    fn log(&self) -> &Arc<log::Log> {
        self.engine.log().expect("it was recovered")
    }

    /// Runs requests, as a transaction if they are one. Returns the number that has to be safe before the
    /// replies leave.
    fn run(&mut self, lines: &[String], alone: bool) -> Result<u64, String> {
        let words: Vec<Vec<&[u8]>> =
            lines.iter().map(|line| line.split(' ').map(str::as_bytes).collect()).collect();
        let requests: Vec<Request<'_>> = words
            .iter()
            .map(|words| Request { command: table::find(words[0]).expect("a command"), words })
            .collect();
        self.show(&format!("{}{lines:?}", if alone { "together " } else { "" }));
        let (mut replies, mut scratch) = (Vec::new(), Scratch::default());
        let logged = match alone {
            true => self.engine.execute_alone(&requests, &mut scratch, &mut replies),
            false => self.engine.execute(&requests, &mut scratch, &mut replies),
        };
        self.listen().map_err(|what| format!("{lines:?}: {what}"))?;
        Ok(logged)
    }

    /// To follow the history of one seed.
    fn show(&self, what: &str) {
        if std::env::var_os("MAYHAP_SHOW").is_some() {
            let log::Figures { next, written, synced, .. } = self.log().figures();
            eprintln!(
                "{what}: {next}, {written} written, {synced} safe, {:?}, {:?}; {:?}",
                self.log().policy(),
                self.log().state(),
                self.disk
            );
        }
    }

    /// Records the values of all names for this number, after a request has ended.
    fn listen(&mut self) -> Result<(), String> {
        let (next, held) = (self.log().next(), self.engine.digests());
        if let Some(before) = self.model.held.get(&next) {
            let changed = difference(before, &held);
            return changed.map_or(Ok(()), |what| Err(format!("a change was not logged: {what}")));
        }
        self.model.held.insert(next, held);
        Ok(())
    }

    /// Makes records as safe as the policy demands, as a server does before replies leave.
    fn commit(&mut self, next: u64) -> Result<(), String> {
        let log = Arc::clone(self.log());
        let policy = log.policy();
        match log.commit(next) {
            Ok(Commit::Done) if policy == Policy::Always => self.acknowledged(next),
            Ok(Commit::Done) => self.model.committed = self.model.committed.max(next),
            Ok(Commit::Wait) => {
                if self.rng.below(4) > 0 {
                    let _ = log.sync();
                }
                match log.poll_synced(next, &Context::from_waker(Waker::noop())) {
                    Poll::Ready(Ok(())) => self.acknowledged(next),
                    Poll::Pending if log.synced() >= next => {
                        return Err("the record is safe, but the task waits".into());
                    }
                    _ => {}
                }
            }
            // The change is not acknowledged.
            Err(_) => {}
        }
        Ok(())
    }

    fn acknowledged(&mut self, next: u64) {
        self.seen.acknowledged += 1;
        self.model.acknowledged = self.model.acknowledged.max(next);
        self.model.committed = self.model.committed.max(next);
    }

    /// A request of a client, with its replies.
    fn serve(&mut self) -> Result<(), String> {
        let mut logged = 0;
        if self.rng.below(12) == 0 {
            let lines: Vec<String> = (0..2 + self.rng.below(3)).map(|_| self.line()).collect();
            logged = self.run(&lines, true)?;
        } else {
            for _ in 0..1 + self.rng.below(3) {
                let line = self.line();
                logged = logged.max(self.run(&[line], false)?);
            }
        }
        self.commit(logged)
    }

    /// A snapshot, with requests between its steps. It may fail or be abandoned.
    fn snapshot(&mut self) -> Result<(), String> {
        let (engine, disk) = (Arc::clone(&self.engine), self.disk.clone());
        let fault = |error: SnapshotError| match error {
            SnapshotError::Disk { .. } | SnapshotError::Log(Some(_)) => Ok(()),
            error => Err(error.to_string()),
        };
        let sound = disk.is_sound() && engine.log().is_some_and(|log| log.state() == State::Writing);
        let mut snapshot = match engine.begin_snapshot(&disk) {
            Ok(begun) => begun.with_sizes(400, 150, 1 + self.rng.below(3)),
            Err(error) if sound => return Err(error.to_string()),
            Err(error) => {
                self.seen.snapshots_failed += 1;
                return fault(error);
            }
        };
        for _ in 0..self.rng.below(5) {
            if let Err(error) = snapshot.step() {
                self.seen.snapshots_failed += 1;
                return fault(error);
            }
            self.serve()?;
        }
        if self.rng.below(6) == 0 {
            self.seen.given_up += 1;
            return Ok(());
        }
        match snapshot.finish() {
            Ok(_) => self.seen.snapshots += 1,
            Err(error) if sound => return Err(format!("on a disk without faults: {error}")),
            Err(error) => {
                self.seen.snapshots_failed += 1;
                fault(error)?;
            }
        }
        Ok(())
    }

    /// Time passes, and names expire: on access, or in a sweep.
    fn time(&mut self) -> Result<(), String> {
        self.clock.pass(self.rng.below(1_500));
        if self.rng.below(2) == 0 {
            self.engine.sweep(Duration::ZERO);
            return self.listen();
        }
        Ok(())
    }

    /// Recovers from a disk, possibly with failing calls and crashes during recovery. The log must end with
    /// one of `numbers`; after a crash during recovery, at least with `safe`.
    fn open(
        &mut self,
        disk: Simulated,
        numbers: RangeInclusive<u64>,
        safe: u64,
        crashes: u32,
    ) -> Result<Opened, String> {
        self.seen.states += 1;
        self.show(&format!("recovers from {disk:?}, crashes {crashes}"));
        match crashes {
            1 => self.seen.second += 1,
            0 => self.seen.third += 1,
            _ => {}
        }
        // Pictures, or a fault; no crash after the last one.
        let chance = if crashes == 0 { 2 } else { self.rng.below(8) };
        match chance {
            0 => {
                let (one_in, seed) = (1 + self.rng.below(24), self.rng.next_u64());
                disk.watch(one_in, Rng::new(seed), move || safe);
            }
            1 => {
                let error = [ErrorKind::Other, ErrorKind::StorageFull][self.rng.below(2) as usize];
                disk.fail(Some(Fault { after: self.rng.below(24), error }));
                if self.rng.below(2) == 0 {
                    disk.set_room(Some(self.rng.below(500)));
                }
            }
            _ => {}
        }
        self.opened += 1;
        let salts = Salts::Seeded(mix(self.rng.next_u64() ^ self.opened));
        let policy = POLICIES[self.rng.below(3) as usize];
        let clock = self.clock.like(self.opened);
        let engine = Arc::new(Engine::new(Limits::default(), clock.clone()));
        let recovered = engine.recover_quiet(Arc::new(disk.clone()), policy, limits(salts));
        let shots = disk.shots();
        let recovery = match recovered {
            Ok(recovery) => recovery,
            Err(
                RecoverError::Snapshot(SnapshotError::Disk { .. }) | RecoverError::Log(LogError::Disk { .. }),
            ) if chance == 1 => {
                // An operator repairs the disk and tries again.
                self.seen.unread += 1;
                let (again, least) = match self.rng.below(2) {
                    0 => (disk.sound_copy(), *numbers.start()),
                    _ => (disk.crashed(&mut self.rng), safe),
                };
                return self.open(again, least..=*numbers.end(), safe, crashes - 1);
            }
            Err(error) => return Err(format!("recovery failed: {error}")),
        };
        let (held, next) = (engine.digests(), recovery.log.next);
        self.model.check(&numbers, next, &held)?;
        self.seen.cut += u64::from(recovery.log.cut_bytes > 0);
        self.seen.shorter += u64::from(next < *numbers.end());
        self.seen.snapshots_read += u64::from(recovery.snapshot.names > 0);
        for shot in shots {
            let crashed = shot.disk.crashed(&mut self.rng);
            self.open(crashed, safe..=*numbers.end(), safe, crashes - 1)?;
        }
        // After a successful recovery, every later one finds the same, however often the power fails.
        let log = engine.log().ok_or("there is no log")?;
        if crashes > 0 && (log.state() == State::NoSpace || self.rng.below(8) == 0) {
            let crashed = disk.crashed(&mut self.rng);
            let safe = log.synced().max(safe);
            self.open(crashed, safe..=next, safe, crashes - 1)?;
        }
        Ok(Opened { disk, engine, clock, recovery, held })
    }

    /// Continues the history with the recovered engine.
    fn go_on(&mut self, opened: Opened) -> Result<(), String> {
        opened.disk.fail(None);
        (self.disk, self.engine, self.clock) = (opened.disk, opened.engine, opened.clock);
        self.model.cut(opened.recovery.log.next, opened.held);
        self.model.acknowledged = self.log().synced();
        // It logs the defaults for new filters.
        self.listen()
    }

    fn look_at(&mut self, disk: &Simulated) -> Result<(), String> {
        let files = disk.list().map_err(|error| error.to_string())?;
        self.seen.large += u64::from(files.iter().any(|file| file.starts_with("value-")));
        let unnamed = files.iter().any(|file| file == "MANIFEST.new")
            || !files.iter().any(|file| file == MANIFEST)
                && files.iter().any(|file| file.starts_with("part-"));
        self.seen.half_snapshots += u64::from(unnamed);
        Ok(())
    }

    /// The power fails before any call that this step makes to the disk, and after the last one.
    fn step_with_crashes(&mut self) -> Result<(), String> {
        let log = Arc::clone(self.log());
        let (acknowledged, committed) = (self.model.acknowledged, self.model.committed);
        let (one_in, seed) = (1 + self.rng.below(6), self.rng.next_u64());
        self.disk.watch(one_in, Rng::new(seed), move || log.synced());
        let watched = self.disk.clone();
        let stepped = self.step();
        let shots = watched.shots();
        stepped?;
        let most = *self.model.held.last_key_value().ok_or("nothing was held")?.0;
        for shot in shots {
            let safe = shot.promised.max(acknowledged);
            for _ in 0..1 + self.rng.below(3) {
                let (image, least) = match self.rng.below(6) {
                    // The process ended, but not the machine.
                    0 => (shot.disk.sound_copy(), committed.max(safe)),
                    _ => (shot.disk.crashed(&mut self.rng), safe),
                };
                self.look_at(&image)?;
                self.open(image, least..=most, safe, CRASHES - 1)?;
            }
        }
        Ok(())
    }

    /// The process or the machine ends here, and the history continues after that.
    fn restart(&mut self) -> Result<(), String> {
        // The pictures no longer show the state from which the history continues.
        drop(self.disk.shots());
        self.seen.full += u64::from(self.log().state() == State::NoSpace);
        self.seen.failed += u64::from(self.log().state() == State::Failed);
        let mut safe = self.log().synced().max(self.model.acknowledged);
        let most = self.log().next();
        let (image, least) = match self.rng.below(4) {
            0 => (self.disk.sound_copy(), self.model.committed.max(safe)),
            1 if self.log().close().is_ok() => {
                safe = most;
                (self.disk.crashed(&mut self.rng), most)
            }
            _ => (self.disk.crashed(&mut self.rng), safe),
        };
        let opened = self.open(image, least..=most, safe, CRASHES - 1)?;
        self.go_on(opened)
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.below(32) {
            0..=14 => self.serve()?,
            15..=19 => self.snapshot()?,
            20 => self.time()?,
            21 => {
                let next = self.log().next();
                if self.log().sync().is_ok() && self.log().synced() < next {
                    return Err("a sync did not sync everything".into());
                }
            }
            22 => drop(self.log().rotate()),
            23 => {
                let policy = POLICIES[self.rng.below(3) as usize];
                self.log().set_policy(policy);
            }
            24 => {
                let kinds = [ErrorKind::Other, ErrorKind::StorageFull, ErrorKind::Interrupted];
                let error = kinds[self.rng.below(3) as usize];
                self.disk.fail(Some(Fault { after: self.rng.below(8), error }));
            }
            25 => self.disk.set_room(Some(self.rng.below(6_000))),
            26 => {
                self.disk.set_room(None);
                self.disk.fail(None);
                if self.log().state() == State::NoSpace && self.log().sync().is_err() {
                    return Err("there is space again, but the log does not continue".into());
                }
            }
            27 => {
                let capacity = self.one_of(&["4", "16", "64"]);
                self.engine.set_parameters(|changed| {
                    let parameter = parameters::find(b"bf-initial-size").expect("a parameter");
                    (parameter.set)(changed, capacity.as_bytes()).expect("a size");
                });
                self.listen()?;
            }
            28 | 29 => self.restart()?,
            _ if self.log().state() == State::Failed => self.restart()?,
            _ => self.serve()?,
        }
        Ok(())
    }
}

/// Prints the seed of the history if it panics.
struct Names(u64);

impl Drop for Names {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("this was MAYHAP_CRASH_SEED={}", self.0);
        }
    }
}

/// Runs the history of `seed` and counts the situations.
fn history(seed: u64, spoiled: Spoiled, seen: &mut Seen) -> Result<(), String> {
    let _names = Names(seed);
    let disk = Simulated::new(spoiled);
    let clock = FixedClock::new(seed);
    let engine = Arc::new(Engine::new(Limits::default(), clock.clone()));
    let mut rng = Rng::new(seed);
    let policy = POLICIES[rng.below(3) as usize];
    engine
        .recover_quiet(Arc::new(disk.clone()), policy, limits(Salts::Seeded(mix(seed))))
        .map_err(|error| format!("seed {seed}: {error}"))?;
    let names = 1 + rng.below(3);
    let mut history =
        History { rng, disk, engine, clock, model: Model::default(), seen, opened: seed << 32, names };
    history.model.held.insert(0, Held::new());
    history.listen()?;
    for step in 0..STEPS {
        history.step_with_crashes().map_err(|what| format!("seed {seed}, step {step}: {what}"))?;
    }
    Ok(())
}

#[test]
fn acknowledged_changes_survive_and_the_state_is_one_that_existed() {
    let began = Instant::now();
    let Some((seen, histories)) = see::<Seen>(STATES, |seed, seen| history(seed, Spoiled::Not, seen)) else {
        return;
    };
    let secs = began.elapsed().as_secs_f64();
    println!("{} crash states of {} histories in {secs:.1} s: {seen:?}", seen.states, histories);
    let often = [seen.second, seen.snapshots_read, seen.half_snapshots, seen.large, seen.cut, seen.shorter];
    for some in often {
        assert!(some > seen.states / 100, "{seen:?}");
    }
    let seldom = [seen.third, seen.snapshots, seen.given_up, seen.snapshots_failed];
    for some in seldom.into_iter().chain([seen.full, seen.failed, seen.acknowledged, seen.unread]) {
        assert!(some > seen.states / 10_000, "{seen:?}");
    }
}

/// The process ends when the new manifest has its name but the folder is not synced. The next start finds no
/// space for its log, and then the power fails: the old manifest may be back, and its files must still exist.
#[test]
fn a_manifest_whose_name_is_not_safe_removes_no_files() {
    let mut second = 0;
    for after in 0..60 {
        let disk = Simulated::new(Spoiled::Not);
        let read = |disk: &Simulated, seed| {
            let engine = Engine::new(Limits::default(), FixedClock::new(seed));
            let recovered =
                engine.recover_quiet(Arc::new(disk.clone()), Policy::No, limits(Salts::Seeded(seed)));
            recovered.map(|_| engine)
        };
        let engine = read(&disk, 1).unwrap();
        support::run(&engine, &["BF.ADD a 1", "SET b 1", "CF.ADD c 1"]);
        engine.snapshot(&disk).unwrap();
        support::run(&engine, &["BF.ADD a 2", "SET b 2", "CF.ADD c 2"]);
        engine.log().unwrap().sync().unwrap();
        let held = engine.digests();
        disk.fail(Some(Fault { after, error: ErrorKind::Other }));
        let _ = engine.snapshot(&disk);
        let killed = disk.sound_copy();
        killed.set_room(Some(0));
        let full = read(&killed, 2).unwrap();
        assert_eq!((full.log().unwrap().state(), full.digests() == held), (State::NoSpace, true));
        for seed in 0..40 {
            let crashed = killed.crashed(&mut Rng::new(seed));
            let again =
                read(&crashed, 3).unwrap_or_else(|error| panic!("call {after}, seed {seed}: {error}"));
            assert!(again.digests() == held, "call {after}, seed {seed}");
            second +=
                u64::from(crashed.list().unwrap().iter().any(|file| file.ends_with("-0000000000000002")));
        }
    }
    assert!(second > 0, "no crash kept the second snapshot");
}

#[test]
fn disks_that_break_a_promise_are_detected() {
    const MOST: u64 = 200;
    for spoiled in [Spoiled::Sync, Spoiled::SyncDir, Spoiled::Parts, Spoiled::SetLen, Spoiled::Rots] {
        let mut noticed = 0;
        let third = (0..MOST).find(|&seed| {
            noticed += u64::from(history(seed, spoiled, &mut Seen::default()).is_err());
            noticed == 3
        });
        println!("{spoiled:?}: detected in 3 of {:?} histories", third.map(|seed| seed + 1));
        assert!(third.is_some(), "{spoiled:?}: detected in only {noticed} of {MOST} histories");
    }
}
