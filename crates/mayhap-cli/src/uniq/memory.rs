//! The lines seen before: fingerprints, which are shortened when the memory is used up, or a window.

use mayhap::{Answers, Filter, FingerprintSet, HashScheme, InsertError, ItemHash, Kind, say};

use super::keep::WantedLines;
use super::loss::Loss;
use super::state::State;
use super::window::{Recent, WindowLength};
use crate::error::CliError;
use crate::output;

/// The user's limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) limit_bytes: u64,
    pub(super) fpr: f64,
    pub(super) strict: bool,
    pub(super) quiet: bool,
    pub(super) repeated: bool,
}

/// All runs use the same seed, so that one run can read the state of another.
const SCHEME: HashScheme = HashScheme::fast(0);
/// The memory that the program needs apart from the remembered lines: blocks read ahead, and parts of both arrays while
/// the fingerprints move to a larger one.
const BESIDES_BYTES: u64 = 13 << 19;
/// Below this limit that memory is not subtracted: most of the limit is used for the remembered lines.
const LITTLE_BYTES: u64 = 16 << 20;
/// New lines between two measurements of the rate, if it must be measured.
const RATE_EVERY: u64 = 1 << 16;

/// The lines seen so far, and the counts for the report.
#[derive(Debug)]
pub(super) struct Memory {
    seen: Seen,
    /// The lines that occurred twice, if that is needed.
    again: Option<Box<Fingerprints>>,
    pub(super) lines: u64,
    pub(super) kept: u64,
    pub(super) loss: Loss,
    judged: Judged,
    selected: Vec<u64>,
}

#[derive(Debug)]
enum Seen {
    Fingerprints(Box<Fingerprints>),
    Window(Box<Recent>),
}

/// Which lines of a batch were seen before.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Bit `i` of word `w` is line `64 w + i`.
    pub(super) seen: Vec<u64>,
    pub(super) count: usize,
    /// The first line that was judged by shortened fingerprints.
    pub(super) doubtful_from: usize,
}

impl Judged {
    pub(super) fn clear(&mut self) {
        self.seen.clear();
        (self.count, self.doubtful_from) = (0, usize::MAX);
    }

    /// Appends the answers.
    fn add(&mut self, answers: &Answers) {
        let shift = self.count % 64;
        for &word in answers.words() {
            match self.seen.last_mut().filter(|_| shift > 0) {
                Some(last) => {
                    *last |= word << shift;
                    self.seen.push(word >> (64 - shift));
                }
                None => self.seen.push(word),
            }
        }
        self.count += answers.len();
        self.seen.truncate(self.count.div_ceil(64));
    }

    /// The number of lines that were seen before.
    pub(super) fn old(&self) -> u64 {
        self.seen.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The indexes of lines seen before, from `first` on.
    fn old_from(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        (first..self.count).filter(|&index| self.seen[index / 64] >> (index % 64) & 1 == 1)
    }
}

impl Memory {
    pub(super) fn of_fingerprints(settings: &Settings, state: Option<&mut State>) -> Result<Self, CliError> {
        let part = if settings.repeated { settings.limit_bytes / 2 } else { settings.limit_bytes };
        let again = settings.repeated.then(|| Fingerprints::new(part, settings).map(Box::new)).transpose()?;
        let seen = match state.and_then(|state| state.take().map(|filter| (filter, &*state))) {
            None => Fingerprints::new(part, settings)?,
            Some((Filter::Fingerprints(set), state)) => Fingerprints::continued(set, part, settings, state)?,
            Some((filter, state)) => return Err(state.other_kind(filter.kind(), Kind::Fingerprints)),
        };
        Ok(Self::of(Seen::Fingerprints(Box::new(seen)), again))
    }

    pub(super) fn of_window(
        length: WindowLength,
        memory: Option<u64>,
        settings: &Settings,
        state: Option<&mut State>,
    ) -> Result<Self, CliError> {
        let recent = match state.and_then(|state| state.take().map(|filter| (filter, &*state))) {
            None => Recent::new(length, memory, settings)?,
            Some((Filter::Window(window), state)) => Recent::continued(window, length, settings, state)?,
            Some((filter, state)) => return Err(state.other_kind(filter.kind(), Kind::Window)),
        };
        Ok(Self::of(Seen::Window(Box::new(recent)), None))
    }

    fn of(seen: Seen, again: Option<Box<Fingerprints>>) -> Self {
        let (loss, judged) = (Loss::default(), Judged::default());
        Self { seen, again, lines: 0, kept: 0, loss, judged, selected: Vec::new() }
    }

    /// How lines are hashed.
    pub(super) const fn scheme(&self) -> HashScheme {
        match &self.seen {
            Seen::Fingerprints(fingerprints) => *fingerprints.set.scheme(),
            Seen::Window(recent) => *recent.window.scheme(),
        }
    }

    /// Called when lines arrive: a window of time reads the clock.
    pub(super) fn block_arrived(&mut self) {
        if let Seen::Window(recent) = &mut self.seen {
            recent.look_at_the_clock();
        }
    }

    /// Finds which of these lines were seen before, and remembers all of them.
    pub(super) fn judge(&mut self, hashes: &[ItemHash]) -> Result<(), CliError> {
        self.judged.clear();
        match &mut self.seen {
            Seen::Fingerprints(fingerprints) => {
                fingerprints.judge(hashes, &mut self.judged, &mut self.loss, self.lines)?;
            }
            Seen::Window(recent) => recent.judge(hashes, &mut self.judged, &mut self.loss),
        }
        self.lines += hashes.len() as u64;
        self.kept += hashes.len() as u64 - self.judged.old();
        Ok(())
    }

    /// The lines of the last batch to write: bit `i` of word `w` is line `64 w + i`.
    pub(super) fn selected(
        &mut self,
        hashes: &[ItemHash],
        selection: WantedLines,
    ) -> Result<&[u64], CliError> {
        self.selected.clear();
        match selection {
            WantedLines::Dropped => self.selected.extend_from_slice(&self.judged.seen),
            WantedLines::New => {
                self.selected.extend(self.judged.seen.iter().map(|word| !word));
                if let (Some(last), remainder @ 1..) = (self.selected.last_mut(), hashes.len() % 64) {
                    *last &= (1 << remainder) - 1;
                }
            }
            WantedLines::Repeated => {
                self.selected.resize(self.judged.seen.len(), 0);
                let Some(again) = &mut self.again else { return Ok(&self.selected) };
                let old: Vec<usize> = self.judged.old_from(0).collect();
                let old_hashes: Vec<ItemHash> = old.iter().map(|&index| hashes[index]).collect();
                let mut twice = Judged::default();
                twice.clear();
                // A false positive here loses a line that occurs a second time and should be written.
                again.judge(&old_hashes, &mut twice, &mut self.loss, self.lines)?;
                for (index, &line) in old.iter().enumerate() {
                    let new = twice.seen[index / 64] >> (index % 64) & 1 == 0;
                    self.selected[line / 64] |= u64::from(new) << (line % 64);
                }
            }
        }
        Ok(&self.selected)
    }

    /// The lines of the last batch that were dropped because of shortened fingerprints.
    pub(super) fn suspects(&self) -> impl Iterator<Item = usize> + '_ {
        self.judged.old_from(self.judged.doubtful_from)
    }

    /// The fingerprints, unless it is a window.
    pub(super) fn fingerprints(&self) -> Option<&Fingerprints> {
        match &self.seen {
            Seen::Fingerprints(fingerprints) => Some(fingerprints),
            Seen::Window(_) => None,
        }
    }

    pub(super) fn window(&self) -> Option<&Recent> {
        match &self.seen {
            Seen::Window(recent) => Some(recent),
            Seen::Fingerprints(_) => None,
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let seen = match &self.seen {
            Seen::Fingerprints(fingerprints) => fingerprints.set.memory_bytes(),
            Seen::Window(recent) => recent.window.memory_bytes(),
        };
        seen + self.again.as_ref().map_or(0, |again| again.set.memory_bytes())
    }

    pub(super) fn save(&self, state: &State) -> Result<(), CliError> {
        match &self.seen {
            Seen::Fingerprints(fingerprints) => state.save(&fingerprints.set),
            Seen::Window(recent) => state.save(&recent.window),
        }
    }
}

/// Fingerprints, which are shortened when there is no more room.
#[derive(Debug)]
pub(super) struct Fingerprints {
    pub(super) set: FingerprintSet,
    settings: Settings,
    /// The sizes of the fingerprints in bits, each with the first line for which it was used.
    pub(super) stages: Vec<Stage>,
    /// From this line on, new lines are not remembered.
    pub(super) full_from_line: Option<u64>,
    /// New lines that were not remembered.
    pub(super) forgotten: u64,
    answers: Answers,
    rate: f64,
    rate_looked_at: u64,
}

/// From line `from_line` on (the first is 1), fingerprints have `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) bits: u32,
    pub(super) from_line: u64,
}

impl Fingerprints {
    fn new(limit_bytes: u64, settings: &Settings) -> Result<Self, CliError> {
        let set = FingerprintSet::within(limit_for_the_set(limit_bytes), SCHEME);
        let set = set.map_err(|error| CliError::Usage(format!("--memory: {error}")))?;
        Ok(Self::with(set, settings))
    }

    /// Continues with the fingerprints of an earlier run.
    fn continued(
        mut set: FingerprintSet,
        limit_bytes: u64,
        settings: &Settings,
        state: &State,
    ) -> Result<Self, CliError> {
        let (bits, rate) = (set.fingerprint_bits(), FingerprintSet::highest_fpr(set.fingerprint_bits()));
        let limit = limit_for_the_set(limit_bytes);
        if set.memory_bytes() > limit {
            return Err(state.cli_error(format!(
                "this state takes {}, but --memory {} leaves {} for it: raise --memory, or begin a new state",
                say::bytes(set.memory_bytes()),
                say::bytes(limit_bytes),
                say::bytes(limit)
            )));
        }
        if bits < 64 && rate > settings.fpr {
            return Err(state.cli_error(format!(
                "the fingerprints of this state were shortened to {bits} bits, which drops up to {} of the new lines by mistake, but \
                 --fpr is {}: raise --fpr, or begin a new state",
                say::rate(rate),
                say::rate(settings.fpr)
            )));
        }
        set.set_memory_limit_bytes(limit);
        Ok(Self::with(set, settings))
    }

    fn with(set: FingerprintSet, settings: &Settings) -> Self {
        let stages = vec![Stage { bits: set.fingerprint_bits(), from_line: 1 }];
        Self {
            settings: *settings,
            stages,
            full_from_line: None,
            forgotten: 0,
            answers: Answers::new(),
            rate: 0.0,
            rate_looked_at: u64::MAX,
            set,
        }
    }

    /// `lines` lines came before these.
    fn judge(
        &mut self,
        hashes: &[ItemHash],
        judged: &mut Judged,
        loss: &mut Loss,
        lines: u64,
    ) -> Result<(), CliError> {
        let mut left = hashes;
        loop {
            if self.set.fingerprint_bits() < 64 {
                judged.doubtful_from = judged.doubtful_from.min(judged.count);
            }
            let before = self.rate();
            let done = match self.full_from_line {
                None => self.set.insert_hash_batch(left, &mut self.answers),
                Some(_) => {
                    self.set.may_contain_hash_batch(left, &mut self.answers);
                    Ok(())
                }
            };
            let new = (self.answers.len() - self.answers.maybe_count()) as u64;
            let dropped = self.answers.maybe_count() as u64;
            loss.add(new, dropped, f64::midpoint(before, self.rate()));
            self.forgotten += if self.full_from_line.is_some() { new } else { 0 };
            judged.add(&self.answers);
            left = &left[self.answers.len()..];
            match done {
                Ok(()) => return Ok(()),
                Err(refused) => self.make_room(&refused, lines + judged.count as u64 + 1)?,
            }
        }
    }

    /// Shortens the fingerprints, or stops remembering, from `line` on.
    fn make_room(&mut self, refused: &InsertError, line: u64) -> Result<(), CliError> {
        let bits = self.set.fingerprint_bits() / 2;
        let allowed = bits >= 16 && FingerprintSet::highest_fpr(bits) <= self.settings.fpr;
        if allowed && self.set.cut().is_ok() {
            self.stages.push(Stage { bits, from_line: line });
            self.rate_looked_at = u64::MAX;
            return Ok(());
        }
        let used_up = format!(
            "--memory {} is used up by {} distinct lines, at line {}",
            say::bytes(self.settings.limit_bytes),
            say::count(self.set.inserted()),
            say::count(line)
        );
        let advice = if bits >= 16 { "raise --memory or --fpr" } else { "raise --memory" };
        if self.settings.strict {
            return Err(CliError::Usage(format!("{used_up}: {advice}")));
        }
        if !self.settings.quiet {
            let cause = match refused {
                InsertError::CannotGrow { cause: cause @ mayhap::BuildError::OutOfMemory { .. }, .. } => {
                    format!(" ({cause})")
                }
                _ => String::new(),
            };
            output::warn(format!(
                "{used_up}{cause}: new lines are kept but no longer remembered, so they may be written again ({advice})"
            ));
        }
        self.full_from_line = Some(line);
        // The set no longer changes, and neither does its rate.
        self.rate_looked_at = u64::MAX;
        Ok(())
    }

    /// The probability that a new line is dropped.
    fn rate(&mut self) -> f64 {
        let inserted = self.set.inserted();
        // Measured often while the set is small, because the rate grows with every line.
        let every = RATE_EVERY.min(inserted / 16).max(1);
        if self.set.fingerprint_bits() > 16 || inserted.abs_diff(self.rate_looked_at) >= every {
            self.rate = self.set.expected_fpr();
            self.rate_looked_at = inserted;
        }
        self.rate
    }
}

/// The part of the limit for the set itself. While the set grows, it temporarily needs one byte for every 64.
fn limit_for_the_set(limit_bytes: u64) -> u64 {
    let part = |bytes: u64| bytes - bytes / 8;
    if limit_bytes <= LITTLE_BYTES {
        return part(limit_bytes);
    }
    (limit_bytes - BESIDES_BYTES - limit_bytes / 64).max(part(LITTLE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_joined_at_any_offset() {
        let mut set = FingerprintSet::new(SCHEME).unwrap();
        let hashes: Vec<ItemHash> = (0..500).map(|i| set.hash(&(i * i % 97_u64))).collect();
        let mut plain = Vec::new();
        let (mut judged, mut answers) = (Judged::default(), Answers::new());
        judged.clear();
        let mut at = 0;
        for count in [1, 63, 64, 65, 0, 128, 7, 100, 72] {
            set.insert_hash_batch(&hashes[at..at + count], &mut answers).unwrap();
            plain.extend(answers.iter());
            judged.add(&answers);
            at += count;
        }
        assert_eq!((judged.count, judged.seen.len()), (500, 8));
        let together: Vec<bool> = (0..500).map(|i| judged.seen[i / 64] >> (i % 64) & 1 == 1).collect();
        assert_eq!(together, plain);
        assert_eq!(judged.old(), plain.iter().filter(|&&old| old).count() as u64);
    }
}
