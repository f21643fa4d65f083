//! Restores the state of an engine: a snapshot, and the log replayed after it.
//!
//! Every name in a snapshot has the number of the log at which it was written: it contains every change with
//! a lower number, and none at or above. (A Bloom filter that was copied while items were added may have some
//! of their bits too early. That does no harm: inserting an item again changes nothing, and counts come from
//! the records.) The log is replayed from the number that was next when the snapshot began.
//!
//! * A record about a name that has a larger number is skipped.
//! * A name that is not in the snapshot did not exist when the snapshot visited its part. An earlier record
//!   may create it now, even with a wrong value, but a later record removes it. For this reason a request
//!   that left no value is logged as a removal only.
//! * Values made from other names (`RENAME`, `COPY`, `MF.MERGE`, `BITOP`) while a snapshot is written are
//!   written again at its end. So wherever a source is not what it was, the target has a larger number, or a
//!   later record removes it.
//! * Names are removed by records, never because their deadline has passed by now.
//! * A request runs again at its original time, with the random bytes it drew, with the parameters of that
//!   time and without limits: words that were refused for lack of memory were left out of the record.

#[cfg(test)]
mod generations;
#[cfg(test)]
mod model;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mayhap::BatchBits;
use mayhap_command::run::Keyspace as KeyspaceCommand;
use mayhap_command::{Budget, Context, Lost, Parameters, Request, Run, Value, table};

use crate::disk::Disk;
use crate::engine::{Engine, Turn, UNLIMITED};
use crate::entry::Now;
use crate::environment::Moment;
use crate::journal::{Journal, PARTS, part_of};
use crate::log::{self, Log, LogError, Needed, Policy, Recovered};
pub use crate::record::RecordError;
use crate::record::{self, Record};
use crate::snapshot::{Done, SnapshotError, load_all, remove_stale};
use crate::unknown_losses;

/// What was found on the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The snapshot.
    pub snapshot: Done,
    /// What the log had.
    pub log: Recovered,
}

/// Why the data on the disk could not be restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoverError {
    /// The snapshot could not be read.
    Snapshot(SnapshotError),
    /// The log could not be read.
    Log(LogError),
    /// The engine already has a log.
    Again,
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::Again => f.write_str("this engine already has a log"),
        }
    }
}

impl std::error::Error for RecoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Snapshot(error) => Some(error),
            Self::Log(error) => Some(error),
            _ => None,
        }
    }
}

impl Engine {
    /// Reads the snapshot and replays the log on `disk` into this engine, which is empty and not used by any
    /// other thread. From then on every change is logged.
    ///
    /// # Errors
    /// [`RecoverError`] if anything is damaged. The engine is empty then, has no log, and can only be used
    /// for another attempt.
    pub fn recover(&self, disk: Arc<dyn Disk>, policy: Policy) -> Result<Recovery, RecoverError> {
        self.recover_by(disk, |disk, needed, play| Log::open_needed(disk, needed, policy, play))
    }

    /// As [`recover`](Self::recover), without a thread that syncs, for tests that control the order of
    /// events.
    ///
    /// # Errors
    /// As [`recover`](Self::recover).
    pub fn recover_quiet(
        &self,
        disk: Arc<dyn Disk>,
        policy: Policy,
        limits: log::Limits,
    ) -> Result<Recovery, RecoverError> {
        self.recover_by(disk, |disk, needed, play| Log::open_needed_quiet(disk, needed, policy, limits, play))
    }

    fn recover_by(
        &self,
        disk: Arc<dyn Disk>,
        open: impl FnOnce(Arc<dyn Disk>, Needed, &mut Play<'_>) -> Result<(Arc<Log>, Recovered), LogError>,
    ) -> Result<Recovery, RecoverError> {
        if self.journal.get().is_some() {
            return Err(RecoverError::Again);
        }
        self.replaying.store(true, Relaxed);
        let recovered = self.read_and_play(disk, open);
        self.replaying.store(false, Relaxed);
        if recovered.is_err() {
            let _closed = self.gate.close();
            self.flush();
        }
        recovered
    }

    /// Replays records from the beginning on.
    pub(crate) fn replay(&self) -> Replay<'_> {
        Replay { engine: self, parameters: Parameters::default(), changed: [false; PARTS], is_torn: false }
    }

    fn read_and_play(
        &self,
        disk: Arc<dyn Disk>,
        open: impl FnOnce(Arc<dyn Disk>, Needed, &mut Play<'_>) -> Result<(Arc<Log>, Recovered), LogError>,
    ) -> Result<Recovery, RecoverError> {
        let loaded = load_all(self, &*disk).map_err(RecoverError::Snapshot)?;
        let from = loaded.saved.manifest.play_from;
        let mut replay = Replay { changed: loaded.changed, ..self.replay() };
        if !loaded.saved.manifest.parameters.is_empty() {
            let number = from;
            let damaged = |error: RecordError| LogError::Play { number, source: error.into() };
            replay
                .play(from, &loaded.saved.manifest.parameters)
                .map_err(|error| RecoverError::Log(damaged(error)))?;
        }
        let (files, needed) = (Arc::clone(&disk), Needed { from, seen: loaded.numbers_below, tracked: true });
        let (log, recovered) = open(disk, needed, &mut |number, record| replay.play(number, record))
            .map_err(RecoverError::Log)?;
        let journal = Journal::new(log);
        journal.mark_parts(&replay.changed);
        // Sets the defaults for new filters of that time, whatever the settings are now.
        journal.log.append(&record::parameters(&self.parameters(), self.unknown_losses.parts()));
        // The process that wrote the manifest may have ended before its name was safe. While the previous
        // manifest may come back, its files stay. Files that cannot be removed now are removed next time.
        if files.sync_dir().is_ok() {
            let _ = remove_stale(&*files, &loaded.saved);
        }
        *self.saved.lock() = loaded.saved;
        if self.journal.set(journal).is_err() {
            return Err(RecoverError::Again);
        }
        Ok(Recovery { snapshot: loaded.done, log: recovered })
    }
}

/// Replays one record.
type Play<'a> = dyn FnMut(u64, &[u8]) -> Result<(), RecordError> + 'a;

/// The state of a replay.
pub(crate) struct Replay<'e> {
    engine: &'e Engine,
    parameters: Parameters,
    /// Parts that the next snapshot must write again.
    changed: [bool; PARTS],
    /// Whether earlier changes are missing. Then a record that cannot be replayed is a lost change.
    is_torn: bool,
}

impl Replay<'_> {
    /// Records that changes are missing. From now on a name is lost if a record does not fit its state.
    pub(crate) const fn tear(&mut self) {
        self.is_torn = true;
    }

    /// Records below this number are missing. Any of them may have been about any name with a lower number.
    pub(crate) fn lose_all(&mut self, below: u64) {
        self.is_torn = true;
        self.engine.unknown_losses.add(unknown_losses::ALL);
        let mut cursor = 0;
        loop {
            let (next, entries) = self.engine.walk_all(cursor, 1_000);
            for entry in entries.into_iter().filter(|entry| entry.number() < below) {
                let name = entry.name().to_vec();
                drop(entry);
                self.lose(&name, None);
            }
            match next {
                0 => return,
                next => cursor = next,
            }
        }
    }

    /// Marks a change of `name` as lost. The number is that of the record that shows it, if there is one.
    fn lose(&self, name: &[u8], number: Option<u64>) {
        self.engine.hold(name, self.at(0), |hold| {
            if hold.value().and_then(Value::lost).is_none() {
                hold.put(Value::Lost(Lost::Changes));
            }
            // Its deadline may have changed as well.
            self.engine.expiries.set(hold.entry(), None);
            hold.log(number);
        });
    }

    /// Replays the record with this number.
    pub(crate) fn play(&mut self, number: u64, record: &[u8]) -> Result<(), RecordError> {
        match Record::read(record)? {
            Record::Items { name, hashes } => {
                self.changed[part_of(name)] = true;
                if self.is_there(name, number) {
                    let is_whole = self.engine.hold(name, self.at(0), |hold| {
                        hold.changed = true;
                        hold.log(Some(number));
                        hold.value_mut().is_some_and(|value| {
                            value.put_back(&hashes);
                            value.is_ready()
                        })
                    });
                    if self.is_torn && !is_whole {
                        self.lose(name, Some(number));
                    }
                } else if self.is_torn && !self.is_newer(name, number) {
                    self.lose(name, Some(number));
                }
            }
            Record::Removed { name } => {
                self.changed[part_of(name)] = true;
                self.remove(name, number);
            }
            Record::Parameters(parameters, lost_parts) => {
                self.parameters = *parameters;
                match self.is_torn {
                    false => self.engine.unknown_losses.set(lost_parts),
                    // The record does not know what is missing now.
                    true => self.engine.unknown_losses.add(lost_parts),
                }
            }
            Record::Words { ms, random, words } => {
                let unknown = || RecordError::UnknownCommand {
                    word: String::from_utf8_lossy(words.first().copied().unwrap_or_default()).into_owned(),
                };
                let command = table::find(words.first().copied().unwrap_or_default()).ok_or_else(unknown)?;
                if !command.arity.admits(words.len()) {
                    return Err(unknown());
                }
                self.run(number, ms, random, &Request { command, words: &words });
            }
        }
        Ok(())
    }

    fn at(&self, ms: u64) -> Now {
        Now { ms, ..self.engine.now() }
    }

    /// Whether this name has a value that is older than the record with this number.
    fn is_there(&self, name: &[u8], number: u64) -> bool {
        #[cfg(test)]
        if self.engine.is_spoilt(crate::journal::Spoilt::Numbers) {
            return self.engine.keyspace.get(name).is_some();
        }
        self.engine.keyspace.get(name).is_some_and(|entry| entry.number() <= number)
    }

    /// Whether this name has a value that is newer than the record with this number.
    fn is_newer(&self, name: &[u8], number: u64) -> bool {
        #[cfg(test)]
        if self.engine.is_spoilt(crate::journal::Spoilt::Numbers) {
            return false;
        }
        self.engine.keyspace.get(name).is_some_and(|entry| entry.number() > number)
    }

    fn remove(&mut self, name: &[u8], number: u64) {
        if self.is_there(name, number) {
            self.engine.hold(name, self.at(0), |hold| {
                hold.remove();
            });
        }
    }

    fn run(&mut self, number: u64, ms: u64, random: &[u8], request: &Request<'_>) {
        let engine = self.engine;
        match request.command.run {
            Run::Keyspace(KeyspaceCommand::Flush) => {
                self.changed = [true; PARTS];
                return self.flush(number);
            }
            Run::Keyspace(KeyspaceCommand::Rename | KeyspaceCommand::RenameNew) => {
                let (from, to) = (request.words[1], request.words[2]);
                self.changed[part_of(from)] = true;
                self.changed[part_of(to)] = true;
                return self.rename(number, ms, from, to);
            }
            _ => {}
        }
        let target = match request.command.run {
            Run::Keyspace(KeyspaceCommand::Copy) => request.words[2],
            _ => request.name(),
        };
        self.changed[part_of(target)] = true;
        if self.is_newer(target, number) {
            return;
        }
        let moment = Moment::again(ms, random);
        let context = Context {
            limits: &UNLIMITED,
            budget: &Budget::default(),
            parameters: &self.parameters,
            environment: &moment,
        };
        let turn = Turn { context: &context, moment: &moment, now: self.at(ms) };
        // The reply does not matter: the client got it long ago.
        let reply = match request.command.run {
            Run::Add(adds) => {
                let begun = BatchBits::new();
                engine.alone(request, &turn, |slot| adds.add_alone(request, &begun, slot, &context))
            }
            _ => engine.apply(request, &turn),
        };
        // It changed something the first time.
        if self.is_torn && reply.is_err() {
            self.lose(target, Some(number));
        }
        if let Some(entry) = engine.keyspace.get(target) {
            entry.log(number);
        }
    }

    /// Replays `RENAME` or `RENAMENX`, which had succeeded. Newer values are not changed.
    fn rename(&self, number: u64, ms: u64, from: &[u8], to: &[u8]) {
        let engine = self.engine;
        if !self.is_there(from, number) || from == to {
            if self.is_torn && from != to && !self.is_newer(from, number) && !self.is_newer(to, number) {
                self.lose(to, Some(number));
            }
            return;
        }
        if self.is_newer(to, number) {
            engine.hold(from, self.at(ms), |hold| {
                hold.remove();
            });
            return;
        }
        engine.hold_both([from, to], self.at(ms), |from, to| {
            engine.hand_over(from, to);
            to.log(Some(number));
        });
    }

    /// Removes everything that is older.
    fn flush(&mut self, number: u64) {
        self.engine.unknown_losses.set(0);
        let mut cursor = 0;
        loop {
            let (next, entries) = self.engine.walk_all(cursor, 1_000);
            for entry in entries {
                let name = entry.name().to_vec();
                drop(entry);
                self.remove(&name, number);
            }
            match next {
                0 => return,
                next => cursor = next,
            }
        }
    }
}
