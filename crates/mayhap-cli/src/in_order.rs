//! Several threads process blocks; the results arrive in the order of the input.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::CliError;
use crate::input::{Block, Blocks};

/// The most threads: more than machines have cores, and few enough for any system.
const MOST_THREADS: usize = 256;

/// The number of threads: `asked`, or one per core.
pub(crate) fn threads(asked: Option<NonZero<usize>>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get).min(MOST_THREADS)
}

/// Calls `work` on every block, in `threads` threads, and `then` in this thread with each block and its result, in order.
///
/// # Errors
/// The first error in the order of the input: of the input itself, of `work`, or of `then`.
pub(crate) fn in_order<T: Send>(
    blocks: Blocks,
    threads: usize,
    work: impl Fn(&Block) -> Result<T, CliError> + Sync,
    mut then: impl FnMut(&Block, T) -> Result<(), CliError>,
) -> Result<(), CliError> {
    in_order_until(blocks, threads, work, |block, done| then(block, done).map(ControlFlow::Continue))
}

/// Like [`in_order`], until `then` breaks. Blocks that were read ahead are dropped.
///
/// # Errors
/// As [`in_order`], for the blocks that were passed to `then`.
pub(crate) fn in_order_until<T: Send>(
    mut blocks: Blocks,
    threads: usize,
    work: impl Fn(&Block) -> Result<T, CliError> + Sync,
    mut then: impl FnMut(&Block, T) -> Result<ControlFlow<()>, CliError>,
) -> Result<(), CliError> {
    if threads <= 1 {
        while let Some(block) = blocks.next()? {
            let done = work(&block)?;
            if then(&block, done)?.is_break() {
                return Ok(());
            }
            blocks.reuse(block);
        }
        return Ok(());
    }
    let work = &work;
    let (todo, todo_out) = mpsc::sync_channel::<(u64, Block)>(2 * threads);
    let (done_in, done) = mpsc::channel();
    // Held by one thread at a time, while it waits for a block.
    let todo_out = &Mutex::new(todo_out);
    thread::scope(|scope| {
        // Dropped when this function ends, in whatever way. The threads then end, too.
        let todo = todo;
        for started in 0..threads {
            let done_in = done_in.clone();
            let worker = move || {
                loop {
                    let next = todo_out.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, mut block)) = next else { return };
                    let result = block.find_items().and_then(|()| work(&block));
                    if done_in.send((number, block, result)).is_err() {
                        return;
                    }
                }
            };
            // Fewer threads than requested are enough. If not even one starts, the command fails.
            match thread::Builder::new().spawn_scoped(scope, worker) {
                Ok(_) => {}
                Err(cause) if started == 0 => {
                    return Err(CliError::Usage(format!("cannot start a thread ({cause}); use -j 1")));
                }
                Err(_) => break,
            }
        }
        let (mut sent, mut taken) = (0_u64, 0_u64);
        let mut early = BTreeMap::new();
        let mut input = Ok(true);
        loop {
            // Limits the blocks in progress, so that results that are too early for `then` do not pile up. It never
            // waits for input while there are results: a typed line is answered before the next one is read.
            while matches!(input, Ok(true)) && sent < taken + 2 * threads as u64 {
                let next = if sent == taken {
                    blocks.next_without_items()
                } else {
                    match blocks.ready_without_items() {
                        Some(next) => next,
                        None => break,
                    }
                };
                match next {
                    Ok(Some(block)) => {
                        // The threads live as long as this function.
                        let _ = todo.send((sent, block));
                        sent += 1;
                    }
                    Ok(None) => input = Ok(false),
                    Err(error) => input = Err(error),
                }
            }
            if taken == sent {
                return input.map(drop);
            }
            if let Ok((number, block, result)) = done.recv() {
                early.insert(number, (block, result));
            }
            while let Some((block, result)) = early.remove(&taken) {
                taken += 1;
                if then(&block, result?)?.is_break() {
                    return Ok(());
                }
                blocks.reuse(block);
            }
        }
    })
}
