//! Filters above their capacity: a line in the host's log for each threshold that a filter passes, and
//! figures for `INFO`.
//!
//! A timer of the host scans its keyspace, some keys at a time. The host has one thread, so each turn is
//! short. After a round over a large keyspace the scan rests for as long as the round took.

use std::borrow::Cow;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mayhap::Sampling;
use mayhap_command::health;
use mayhap_command::overfull::{Figures, Overfull};

use crate::host::{self, Ctx, HostString, Key, Level, OK, call, raw};
use crate::tally;
use crate::types::{Held, guarded};

/// The maximum duration of a turn: 1 % of the host's time during a round.
const TURN: Duration = Duration::from_millis(1);
/// The time between two turns, in milliseconds.
const TICK_MS: i64 = 100;
/// The shortest rest between two rounds.
const REST: Duration = Duration::from_secs(1);
/// The longest rest between two rounds, if no value was changed.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// The maximum number of bytes of a name in the log.
const SHOWN_BYTES: usize = 128;

static ROUNDS: LazyLock<Mutex<Rounds>> = LazyLock::new(Mutex::default);

#[derive(Debug, Default)]
struct Rounds {
    overfull: Overfull,
    figures: Figures,
    /// The current round.
    walk: Option<Walk>,
    /// When the last round ended, how long it took, and the number of changes when it began.
    last: Option<(Instant, Duration, u64)>,
}

#[derive(Debug)]
struct Walk {
    cursor: Cursor,
    database: c_int,
    began: Instant,
    changes: u64,
}

/// A scan cursor of the host.
#[derive(Debug)]
struct Cursor(*mut raw::RedisModuleScanCursor);

// SAFETY: the host does not bind it to a thread, and only the holder of the lock uses it.
unsafe impl Send for Cursor {}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: the host created it, and it is no longer used.
        unsafe { call!(RedisModule_ScanCursorDestroy(self.0)) };
    }
}

fn rounds() -> MutexGuard<'static, Rounds> {
    ROUNDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The figures of the last round.
pub(crate) fn figures() -> Figures {
    rounds().figures
}

/// Starts the timer.
///
/// # Safety
/// `ctx` is the context of a call from the host.
pub(crate) unsafe fn start(ctx: Ctx) {
    // SAFETY: guaranteed by the caller. A timer fires once.
    unsafe { call!(RedisModule_CreateTimer(ctx, TICK_MS, Some(tick), null_mut())) };
}

unsafe extern "C" fn tick(ctx: Ctx, _: *mut c_void) {
    // SAFETY: the host passes a context for this turn.
    unsafe {
        guarded("scanning the filters", || {
            if host::flags(ctx) & raw::REDISMODULE_CTX_FLAGS_LOADING == 0 {
                rounds().turn(ctx);
            }
        });
        start(ctx);
    }
}

/// The data that a scan passes to its callback.
struct Seen<'a> {
    overfull: &'a mut Overfull,
    sampling: Sampling,
    database: c_int,
}

unsafe extern "C" fn see(_: Ctx, name: HostString, key: Key, seen: *mut c_void) {
    guarded("assessing a filter", || {
        // SAFETY: `Rounds::turn` started the scan with a pointer of this type, and nothing else uses the
        // value of the key during the callback. The host closes the key.
        let (seen, name, held) = unsafe { (&mut *seen.cast::<Seen<'_>>(), host::bytes(name), Held::of(key)) };
        let Held::Ours(..) = held else { return };
        // SAFETY: as above.
        let Some(assessed) = (unsafe { held.value() }).and_then(|value| value.assess(seen.sampling)) else {
            return;
        };
        // The same name may exist in several databases.
        let known = match seen.database {
            0 => Cow::Borrowed(name),
            database => Cow::Owned([name, &database.to_le_bytes()].concat()),
        };
        if seen.overfull.see(&known, &assessed) {
            let name = String::from_utf8_lossy(&name[..name.len().min(SHOWN_BYTES)]);
            host::log(null_mut(), Level::Warning, &format!("mayhap: {name:?}: {}", assessed.warning()));
        }
    });
}

impl Rounds {
    /// Continues the round for at most [`TURN`], or starts one if it is due.
    ///
    /// # Safety
    /// `ctx` is the context of a timer.
    unsafe fn turn(&mut self, ctx: Ctx) {
        if self.walk.is_none() {
            if !self.is_due() {
                return;
            }
            // SAFETY: may be called at any time.
            let cursor = Cursor(unsafe { call!(RedisModule_ScanCursorCreate()) });
            let (began, changes) = (Instant::now(), tally::changes());
            self.walk = Some(Walk { cursor, database: 0, began, changes });
        }
        let Some(walk) = &mut self.walk else { return };
        let turn_began = Instant::now();
        let sampling = health::glance();
        loop {
            let mut seen = Seen { overfull: &mut self.overfull, sampling, database: walk.database };
            let seen: *mut c_void = (&raw mut seen).cast();
            // SAFETY: guaranteed by the caller. Databases are numbered from 0 without gaps.
            let scanned = unsafe {
                if call!(RedisModule_SelectDb(ctx, walk.database)) != OK {
                    break;
                }
                call!(RedisModule_Scan(ctx, walk.cursor.0, Some(see), seen))
            };
            if scanned == 0 {
                walk.database += 1;
                // SAFETY: the cursor has not been destroyed.
                unsafe { call!(RedisModule_ScanCursorRestart(walk.cursor.0)) };
            }
            if turn_began.elapsed() >= TURN {
                return;
            }
        }
        let round = self.overfull.end_round();
        self.figures = round.figures;
        if round.without_line > 0 {
            let text = format!(
                "mayhap: {} more filters exceed their target false-positive rate; check them with MF.INFO",
                round.without_line
            );
            host::log(null_mut(), Level::Warning, &text);
        }
        if let Some(walk) = self.walk.take() {
            self.last = Some((Instant::now(), walk.began.elapsed(), walk.changes));
        }
    }

    fn is_due(&self) -> bool {
        self.last.is_none_or(|(ended, took, changes)| {
            let rested = ended.elapsed();
            rested >= LONGEST_REST.max(took) || rested >= REST.max(took) && tally::changes() != changes
        })
    }
}
