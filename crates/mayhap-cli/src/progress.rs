//! The progress of long work: a bar on a terminal, plain lines with `--progress`, otherwise nothing.

mod estimate;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use mayhap::say;

use self::estimate::Estimate;

/// Whether progress is shown.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ProgressArgs {
    /// Show progress as plain lines, one per second, even if standard error is not a terminal
    #[arg(long)]
    pub(crate) progress: bool,
}

/// The interval between updates of the bar, and between lines.
const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Work in progress. It is shown until this is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Arc<State>,
    shown: Option<JoinHandle<()>>,
}

/// The counters that the working threads update.
#[derive(Debug)]
struct State {
    phase: Mutex<Phase>,
    items: AtomicU64,
    bytes: AtomicU64,
    ended: AtomicBool,
}

/// One part of the work, with its own total.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// `reading`, `saving`, ….
    name: &'static str,
    total_items: Option<u64>,
    total_bytes: Option<u64>,
}

/// Counts the bytes of the input as they are read.
#[derive(Clone, Debug)]
pub(crate) struct Reading(Arc<State>);

impl Reading {
    /// Adds `bytes` to the bytes read.
    pub(crate) fn add(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Progress {
    /// Starts to show progress, as `args` and the type of standard error decide.
    pub(crate) fn start(args: ProgressArgs) -> Self {
        let phase = Phase { name: "reading", total_items: None, total_bytes: None };
        let state = Arc::new(State::new(phase));
        let shown = match () {
            () if args.progress => Some(thread::spawn(show_lines(Arc::clone(&state)))),
            () if io::stderr().is_terminal() => Some(thread::spawn(show_bar(Arc::clone(&state)))),
            () => None,
        };
        Self { state, shown }
    }

    /// Progress that is not shown: a bar would mix with records on the same terminal.
    pub(crate) fn unseen() -> Self {
        let phase = Phase { name: "reading", total_items: None, total_bytes: None };
        Self { state: Arc::new(State::new(phase)), shown: None }
    }

    /// Begins the next part of the work, with its total bytes if they are known.
    pub(crate) fn phase(&self, name: &'static str, total_bytes: Option<u64>) {
        let mut phase = self.state.phase();
        *phase = Phase { name, total_items: None, total_bytes };
        self.state.items.store(0, Ordering::Relaxed);
        self.state.bytes.store(0, Ordering::Relaxed);
    }

    /// Begins to read input, with its total bytes if they are known.
    pub(crate) fn reading(&self, total_bytes: Option<u64>) -> Reading {
        self.state.phase().total_bytes = total_bytes;
        Reading(Arc::clone(&self.state))
    }

    /// Sets the expected number of items.
    pub(crate) fn expect_items(&self, items: u64) {
        self.state.phase().total_items = Some(items);
    }

    /// Adds to the number of finished items.
    pub(crate) fn add_items(&self, items: u64) {
        self.state.items.fetch_add(items, Ordering::Relaxed);
    }

    /// Adds to the finished bytes of this part.
    pub(crate) fn done_bytes(&self, bytes: u64) {
        self.state.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Removes the bar, to make room for the command's messages.
impl Drop for Progress {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        if let Some(shown) = self.shown.take() {
            shown.thread().unpark();
            let _ = shown.join();
        }
    }
}

impl State {
    fn new(phase: Phase) -> Self {
        Self {
            phase: Mutex::new(phase),
            items: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    fn phase(&self) -> std::sync::MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current part, its finished items and bytes, and its finished share if the total is known.
    fn now(&self) -> (Phase, u64, u64, Option<f64>) {
        let phase = *self.phase();
        let (items, bytes) = (self.items.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let part = |done: u64, total: Option<u64>| {
            let total = total.filter(|&total| total > 0)?;
            Some((done as f64 / total as f64).min(1.0))
        };
        let done = part(bytes, phase.total_bytes).or_else(|| part(items, phase.total_items));
        (phase, items, bytes, done)
    }

    /// Calls `show` at each interval with the text and the finished share, until the work ends.
    fn watch(&self, every: Duration, mut show: impl FnMut(&str, Option<f64>)) {
        let mut estimate = Estimate::default();
        let (mut phase_name, mut since) = ("", Instant::now());
        loop {
            thread::park_timeout(every);
            let ended = self.ended.load(Ordering::Relaxed);
            let (phase, items, bytes, done) = self.now();
            if phase.name != phase_name {
                (phase_name, since, estimate) = (phase.name, Instant::now(), Estimate::default());
            }
            let elapsed = since.elapsed();
            let left = done.and_then(|done| estimate.left(elapsed, done));
            show(&line(phase, items, bytes, done, elapsed, left), done);
            if ended {
                return;
            }
        }
    }
}

fn show_lines(state: Arc<State>) -> impl FnOnce() {
    move || {
        state.watch(LINE_EVERY, |line, _| {
            // A failed write of a progress line is ignored.
            let _ = writeln!(io::stderr(), "mayhap: {line}");
        });
    }
}

fn show_bar(state: Arc<State>) -> impl FnOnce() {
    move || {
        const STEPS: u64 = 1000;
        let bar = ProgressBar::new(STEPS);
        let known = ProgressStyle::with_template("{bar:24} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let unknown = ProgressStyle::with_template("{spinner} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        state.watch(BAR_EVERY, |line, done| {
            bar.set_style(if done.is_some() { known.clone() } else { unknown.clone() });
            bar.set_position((done.unwrap_or(0.0) * STEPS as f64) as u64);
            bar.set_message(line.to_owned());
            bar.tick();
        });
        bar.finish_and_clear();
    }
}

/// `reading: 12% of 722 MB, 1,234,567 items, 3,100,000 items/s, about 12 s left`.
fn line(
    phase: Phase,
    items: u64,
    bytes: u64,
    done: Option<f64>,
    elapsed: Duration,
    left: Option<Duration>,
) -> String {
    let mut parts = Vec::new();
    match (done, phase.total_bytes, phase.total_items) {
        (Some(done), Some(total), _) => parts.push(format!("{:.0}% of {}", done * 100.0, say::bytes(total))),
        (Some(done), None, Some(total)) => {
            parts.push(format!("{:.0}% of {} items", done * 100.0, say::count(total)));
        }
        _ if bytes > 0 => parts.push(say::bytes(bytes)),
        _ => {}
    }
    if items > 0 {
        parts.push(say::items(items));
        let per_second = items as f64 / elapsed.as_secs_f64().max(1e-3);
        parts.push(format!("{} a second", say::count(rounded(per_second))));
    }
    if let Some(left) = left {
        parts.push(format!("about {} left", duration(left)));
    }
    if parts.is_empty() {
        format!("{} …", phase.name)
    } else {
        format!("{}: {}", phase.name, parts.join(", "))
    }
}

/// Rounds a speed to three significant digits.
fn rounded(number: f64) -> u64 {
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 2.0).max(0.0));
    ((number / unit).round() * unit) as u64
}

/// A duration for readers: `850 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_contains_only_known_values() {
        let phase = |total_bytes, total_items| Phase { name: "reading", total_items, total_bytes };
        let second = Duration::from_secs(1);
        let said = |phase, items, bytes, done, left| line(phase, items, bytes, done, second, left);
        assert_eq!(said(phase(None, None), 0, 0, None, None), "reading …");
        assert_eq!(said(phase(None, None), 0, 5_000, None, None), format!("reading: {}", say::bytes(5_000)));
        assert_eq!(
            said(phase(Some(1 << 20), None), 12_345, 1 << 19, Some(0.5), Some(second)),
            "reading: 50% of 1.00 MiB, 12,345 items, 12,300 a second, about 1 s left"
        );
        assert_eq!(
            said(phase(None, Some(1_000)), 100, 9, Some(0.1), None),
            "reading: 10% of 1,000 items, 100 items, 100 a second"
        );
    }

    #[test]
    fn durations_are_readable() {
        let said = |milliseconds| duration(Duration::from_millis(milliseconds));
        assert_eq!(
            [said(85), said(12_000), said(200_000), said(7_500_000)],
            ["85 ms", "12 s", "3 min 20 s", "2 h 5 min"]
        );
    }
}
