//! No reply that says something changed leaves before the log has it.

use mayhap_command::{Refusal, Reply, Request};
use mayhap_engine::Engine;
use mayhap_engine::log::{Commit, Refused};

/// Has the log take what `requests`, which were run just now, changed. What cannot be kept is not acknowledged: its reply becomes a
/// refusal. If there is a number, replies must wait until all records of the log below it are as safe as they have to be.
pub(crate) fn commit(engine: &Engine, requests: &[Request<'_>], replies: &mut [Reply]) -> Option<u64> {
    let log = engine.log()?;
    if !requests.iter().any(is_change) {
        return None;
    }
    let next = log.next();
    match log.commit_later(next) {
        Ok(Commit::Done) => None,
        Ok(Commit::Wait) => Some(next),
        Err(refused) => {
            refuse(refused, requests, replies);
            None
        }
    }
}

/// The same, and waits: for a thread that nobody else waits for.
pub(crate) fn commit_and_wait(engine: &Engine, requests: &[Request<'_>], replies: &mut [Reply]) {
    if let Some(next) = commit(engine, requests, replies)
        && let Some(Err(refused)) = engine.log().map(|log| log.wait_synced(next))
    {
        refuse(refused, requests, replies);
    }
}

/// Waits until all records below `next` are safe.
pub(crate) fn wait(engine: &Engine, next: u64) -> Result<(), Refusal> {
    engine.log().map_or(Ok(()), |log| log.wait_synced(next).map_err(refusal))
}

fn is_change(request: &Request<'_>) -> bool {
    request.command.changes()
}

/// What a client is told.
pub(crate) const fn refusal(refused: Refused) -> Refusal {
    match refused {
        Refused::NoSpace => Refusal::NoSpace,
        _ => Refusal::DiskFailed,
    }
}

fn refuse(refused: Refused, requests: &[Request<'_>], replies: &mut [Reply]) {
    for (_, reply) in requests.iter().zip(replies).filter(|(request, _)| is_change(request)) {
        *reply = refusal(refused).into();
    }
}

#[cfg(test)]
mod tests {
    use mayhap_command::table;

    use super::*;

    #[test]
    fn every_command_that_changes_a_filter_waits_for_the_log() {
        for (name, changes) in
            [("cf.compact", true), ("bf.add", true), ("bf.exists", false), ("cf.info", false)]
        {
            let command = table::find(name.as_bytes()).unwrap();
            assert_eq!(is_change(&Request { command, words: &[] }), changes, "{name}");
        }
    }
}
