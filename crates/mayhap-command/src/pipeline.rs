//! Pipelined requests whose items are hashed, looked up or inserted together.

use mayhap::{Answers, BatchBits, ItemHash};

use crate::command::Arity;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Asked, Request, Scratch};

/// The items follow the key.
pub(crate) const ITEMS_FROM: usize = 2;

/// Items that are hashed before the filter is accessed. With more, lookups would not overlap better, and the hashes would leave the
/// cache.
pub(crate) const GROUP: usize = 4_096;

/// Is the reply an array? It is not for commands with one item.
pub(crate) fn is_many(request: &Request<'_>) -> bool {
    request.command.arity != Arity::Exactly(3)
}

/// Returns the first of `requests`, at least one, that form a group.
pub(crate) fn group<'r, 'w>(
    requests: &'r [Request<'w>],
    items: impl Fn(&Request<'_>) -> usize,
) -> &'r [Request<'w>] {
    let mut total = 0;
    let fits = |request: &&Request<'_>| {
        total += items(request);
        total <= GROUP
    };
    let count = requests.iter().take_while(fits).count();
    &requests[..count.max(1).min(requests.len())]
}

/// Hashes all items of `requests`: the last `items(request)` words of each.
pub(crate) fn hash_all(
    requests: &[Request<'_>],
    items: impl Fn(&Request<'_>) -> usize,
    hashes: &mut Vec<ItemHash>,
    hash: impl Fn(&[u8]) -> ItemHash,
) {
    hashes.clear();
    // Huge requests are rare: free the memory of their hashes.
    hashes.shrink_to(4 * GROUP);
    let items = requests.iter().flat_map(|request| &request.words[request.words.len() - items(request)..]);
    hashes.extend(items.map(|item| hash(item)));
}

/// The item of a single request with a single item.
pub(crate) fn only_item<'a>(requests: &[Request<'a>]) -> Option<&'a [u8]> {
    match requests {
        [request] if !is_many(request) => Some(request.words[ITEMS_FROM]),
        _ => None,
    }
}

/// Looks up all items of all `requests`: many with `ask`, or a single one with `one`, which needs no lists of hashes and answers.
pub(crate) fn ask_all(
    requests: &[Request<'_>],
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
    hash: impl Fn(&[u8]) -> ItemHash,
    one: impl Fn(&[u8]) -> bool,
    ask: impl Fn(&[ItemHash], &mut Answers),
) -> Asked {
    if let Some(item) = only_item(requests) {
        let held = one(item);
        replies.push(Reply::Boolean(held));
        return Asked { hits: held.into(), misses: (!held).into() };
    }
    let items = |request: &Request<'_>| request.words.len() - ITEMS_FROM;
    let mut asked = Asked::default();
    let mut left = requests;
    while !left.is_empty() {
        let now = group(left, items);
        hash_all(now, items, &mut scratch.hashes, &hash);
        ask(&scratch.hashes, &mut scratch.answers);
        let hits = scratch.answers.maybe_count() as u64;
        asked.hits += hits;
        asked.misses += scratch.hashes.len() as u64 - hits;
        let mut at = 0;
        for request in now {
            replies.push(reply(request, items(request), &scratch.answers, at));
            at += items(request);
        }
        left = &left[now.len()..];
    }
    asked
}

/// Refuses all `requests` with the same error.
pub fn refuse_all(requests: &[Request<'_>], refusal: &Refusal, replies: &mut Vec<Reply>) -> Asked {
    replies.extend(requests.iter().map(|_| Reply::from(refusal.clone())));
    Asked::default()
}

/// The replies to all `requests` if the filter does not exist: *no* for every item.
pub(crate) fn nothing_in(requests: &[Request<'_>], replies: &mut Vec<Reply>) -> Asked {
    replies.extend(requests.iter().map(nothing));
    Asked::default()
}

/// The reply to `request`, whose answers, as many as `items`, begin at `at`.
pub(crate) fn reply(request: &Request<'_>, items: usize, bits: &BatchBits, at: usize) -> Reply {
    match is_many(request) {
        true => Reply::Booleans(bits.part(at, items)),
        false => Reply::Boolean(bits.get(at).unwrap_or(false)),
    }
}

fn nothing(request: &Request<'_>) -> Reply {
    match is_many(request) {
        true => Reply::Array(vec![Reply::Boolean(false); request.words.len() - ITEMS_FROM]),
        false => Reply::Boolean(false),
    }
}
