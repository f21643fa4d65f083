//! Ctrl-C (SIGINT) and SIGTERM.
//!
//! The program can end at any moment without leaving anything half done, so by default it ends immediately. A few places
//! have to clean up first: those call [`polite`], call [`check`] often, and end with [`CliError::Interrupted`]. A second
//! Ctrl-C ends those immediately, too.

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
/// When the first signal arrived.
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);
/// The channels of threads that wait for input; each is woken by a signal.
static WAITING: Mutex<Vec<SyncSender<Message>>> = Mutex::new(Vec::new());

/// Signals within this time after the first count as the same request.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// Begins to handle the signals.
pub(crate) fn listen() -> io::Result<()> {
    // Without this, writing past the file size limit ends the program. With it, the write returns an error.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            // `timeout` signals the program and its process group, so one request arrives twice.
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
                // If the channel is full, its receiver is about to wake up anyway.
                let _ = waiting.try_send(Err(CliError::Interrupted));
            }
        }
    })?;
    Ok(())
}

/// Makes the program exit with this code instead of aborting. It aborts if the system refuses a small allocation that is
/// not checked by itself; the standard library has then printed how many bytes were requested. Large allocations are
/// checked and return an error. Not for a server, whose operator needs to see where it failed.
pub(crate) fn end_instead_of_aborting(code: u8) -> io::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGABRT, code.into(), always)?;
    Ok(())
}

/// While this lives, Ctrl-C only sets the request to end.
#[derive(Debug)]
pub(crate) struct Polite(());

/// Begins work that must be cleaned up before the program ends.
pub(crate) fn polite() -> Polite {
    POLITE.fetch_add(1, Ordering::SeqCst);
    Polite(())
}

impl Drop for Polite {
    fn drop(&mut self) {
        POLITE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns `true` after a request to end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// # Errors
/// [`CliError::Interrupted`] after a request to end.
pub(crate) fn check() -> Result<(), CliError> {
    if requested() { Err(CliError::Interrupted) } else { Ok(()) }
}

/// Waits for a request to end. Call [`polite`] before.
pub(crate) fn wait() {
    let (sender, asked) = std::sync::mpsc::sync_channel(1);
    wake(sender);
    if !requested() {
        let _ = asked.recv();
    }
}

/// Rejects the request to end. The next signal counts as the first again.
pub(crate) fn refuse() {
    // A repetition of the same request must not count as the next one.
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    thread::sleep(ONE_REQUEST);
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    REQUESTED.store(false, Ordering::SeqCst);
    *first = None;
}

/// Sends a message through `waiting` at a request to end.
pub(crate) fn wake(waiting: SyncSender<Message>) {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
}
