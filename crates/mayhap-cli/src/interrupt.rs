//! Ctrl-C (and the polite request to end that `kill` sends).
//!
//! Nothing the program does leaves anything behind when it ends at once, so that is what it does, but for the few places
//! that have something to put right first: those are [`polite`], ask [`check`] often, and end with [`CliError::Interrupted`].
//! A second Ctrl-C ends those at once, too.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use signal_hook::consts::{SIGABRT, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::error::CliError;
use crate::input::Message;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static POLITE: AtomicUsize = AtomicUsize::new(0);
/// When the request was heard first.
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);
/// Whoever waits for input is woken.
static WAITING: Mutex<Vec<SyncSender<Message>>> = Mutex::new(Vec::new());

/// Signals that come so soon after the first are the same request.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// From now on the signals come here.
pub(crate) fn listen() -> io::Result<()> {
    // A file that has grown to its limit is an error where it is written, not the end.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            // `timeout` sends a signal to the program and to its group: one request, heard twice.
            let again = {
                let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
                let again = first.is_some_and(|first| first.elapsed() >= ONE_REQUEST);
                first.get_or_insert_with(Instant::now);
                REQUESTED.store(true, Ordering::SeqCst);
                again
            };
            if again || POLITE.load(Ordering::SeqCst) == 0 {
                let _ = emulate_default_handler(signal);
            }
            let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            for waiting in waiting.drain(..) {
                // A full channel has something in it to wake up for.
                let _ = waiting.try_send(Err(CliError::Interrupted));
            }
        }
    })?;
    Ok(())
}

/// From now on the program ends with this code where it would abort: when the system refuses a small piece of memory that is not asked for by
/// itself. The standard library has said how many bytes it was then. Large pieces are errors of their own. Not for a server, whose owner
/// wants to see where it was.
pub(crate) fn end_instead_of_aborting(code: u8) -> io::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGABRT, code.into(), always)?;
    Ok(())
}

/// As long as it lives, Ctrl-C only asks to end.
#[derive(Debug)]
pub(crate) struct Polite(());

/// Something begins that must be put right before the program ends.
pub(crate) fn polite() -> Polite {
    POLITE.fetch_add(1, Ordering::SeqCst);
    Polite(())
}

impl Drop for Polite {
    fn drop(&mut self) {
        POLITE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether somebody asked to end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// # Errors
/// [`CliError::Interrupted`] if somebody asked to end.
pub(crate) fn check() -> Result<(), CliError> {
    if requested() { Err(CliError::Interrupted) } else { Ok(()) }
}

/// Returns when somebody asks to end. Be [`polite`] before.
pub(crate) fn wait() {
    let (sender, asked) = std::sync::mpsc::sync_channel(1);
    wake(sender);
    if !requested() {
        let _ = asked.recv();
    }
}

/// The request cannot be granted: the next one is heard as if it were the first.
pub(crate) fn refuse() {
    // The same request, heard once more, must not pass for another.
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    thread::sleep(ONE_REQUEST);
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    REQUESTED.store(false, Ordering::SeqCst);
    *first = None;
}

/// Sends word through `waiting` when somebody asks to end.
pub(crate) fn wake(waiting: SyncSender<Message>) {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
}
