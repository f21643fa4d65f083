//! Makes changes durable: no reply that acknowledges a change leaves before the change is in the log.

use mayhap_command::{Refusal, Reply, Request};
use mayhap_engine::Engine;
use mayhap_engine::log::{Commit, Refused};

/// Logs the changes of `requests`, which have just run. If a change cannot be logged, its reply is replaced
/// by a refusal. If a number is returned, the replies must wait until all log records below it are as safe as
/// the fsync policy demands.
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

/// As [`commit`], and waits. For threads that no other request depends on.
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

/// The refusal that the client gets.
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
