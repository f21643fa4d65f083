//! Filters that are past what they were made for: a line in the host's log for each threshold one passes, and figures for `INFO`.
//!
//! A timer of the host walks over its keyspace, some keys at a time. The host has one thread, so each turn is short, and a round over a large
//! keyspace is followed by a rest of its own length.

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

/// How long a turn may take: 1 % of the host's time while a round is under way.
const TURN: Duration = Duration::from_millis(1);
/// How often there is one, in milliseconds.
const TICK_MS: i64 = 100;
/// The shortest time between the end of a round and the next one.
const REST: Duration = Duration::from_secs(1);
/// The longest, if nothing was changed meanwhile.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Bytes of a name in the log.
const SHOWN_BYTES: usize = 128;

static ROUNDS: LazyLock<Mutex<Rounds>> = LazyLock::new(Mutex::default);

#[derive(Debug, Default)]
struct Rounds {
    overfull: Overfull,
    figures: Figures,
    /// The round that is under way.
    walk: Option<Walk>,
    /// When the last one ended, how long it took, and how many changes there had been when it began.
    last: Option<(Instant, Duration, u64)>,
}

#[derive(Debug)]
struct Walk {
    cursor: Cursor,
    database: c_int,
    began: Instant,
    changes: u64,
}

/// The host's cursor.
#[derive(Debug)]
struct Cursor(*mut raw::RedisModuleScanCursor);

// SAFETY: the host knows of no thread it belongs to, and only who holds the lock uses it.
unsafe impl Send for Cursor {}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: it was made by the host, and is not used any more.
        unsafe { call!(RedisModule_ScanCursorDestroy(self.0)) };
    }
}

fn rounds() -> MutexGuard<'static, Rounds> {
    ROUNDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the last round found.
pub(crate) fn figures() -> Figures {
    rounds().figures
}

/// Starts the timer.
///
/// # Safety
/// `ctx` is the context of a call of the host's.
pub(crate) unsafe fn start(ctx: Ctx) {
    // SAFETY: the caller's. A timer fires once.
    unsafe { call!(RedisModule_CreateTimer(ctx, TICK_MS, Some(tick), null_mut())) };
}

unsafe extern "C" fn tick(ctx: Ctx, _: *mut c_void) {
    // SAFETY: the host calls with a context of its own for this turn.
    unsafe {
        guarded("a look at all filters", || {
            if host::flags(ctx) & raw::REDISMODULE_CTX_FLAGS_LOADING == 0 {
                rounds().turn(ctx);
            }
        });
        start(ctx);
    }
}

/// What a scan's callback is given.
struct Seen<'a> {
    overfull: &'a mut Overfull,
    sampling: Sampling,
    database: c_int,
}

unsafe extern "C" fn see(_: Ctx, name: HostString, key: Key, seen: *mut c_void) {
    guarded("a look at a filter", || {
        // SAFETY: the host scans for `Rounds::turn`, which gave a pointer of this type; nothing else uses what the key holds meanwhile. The host
        // closes the key.
        let (seen, name, held) = unsafe { (&mut *seen.cast::<Seen<'_>>(), host::bytes(name), Held::of(key)) };
        let Held::Ours(..) = held else { return };
        // SAFETY: as above.
        let Some(assessed) = (unsafe { held.value() }).and_then(|value| value.assess(seen.sampling)) else {
            return;
        };
        // The same name may stand in several databases.
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
    /// Goes on for a moment.
    ///
    /// # Safety
    /// `ctx` is the context of a timer.
    unsafe fn turn(&mut self, ctx: Ctx) {
        if self.walk.is_none() {
            if !self.is_due() {
                return;
            }
            // SAFETY: may be asked for at any time.
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
            // SAFETY: the caller's. The databases have numbers from 0 on, and no other number is one.
            let scanned = unsafe {
                if call!(RedisModule_SelectDb(ctx, walk.database)) != OK {
                    break;
                }
                call!(RedisModule_Scan(ctx, walk.cursor.0, Some(see), seen))
            };
            if scanned == 0 {
                walk.database += 1;
                // SAFETY: it is alive.
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
                "mayhap: {} more filters answer maybe for non-members more often than promised; MF.INFO tells of each",
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
