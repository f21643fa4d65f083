//! Requests of a pipeline whose items are hashed, asked about or added together.

use mayhap::{Answers, ItemHash};

use crate::command::Arity;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Scratch, Together};

/// The items stand behind the name.
pub(crate) const ITEMS_FROM: usize = 2;

/// Items that are hashed before the filter is touched. More would not overlap better, and their hashes leave the cache.
pub(crate) const GROUP: usize = 4_096;

/// Is the reply an array? Those of the commands of one item are not.
pub(crate) fn is_many(request: &Request<'_>) -> bool {
    request.command.arity != Arity::Exactly(3)
}

/// As many of `requests` as make a group, at least one.
pub(crate) fn group<'r, 'w>(requests: &'r [Request<'w>]) -> &'r [Request<'w>] {
    let mut items = 0;
    let fits = |request: &&Request<'_>| {
        items += request.words.len() - ITEMS_FROM;
        items <= GROUP
    };
    let count = requests.iter().take_while(fits).count();
    &requests[..count.max(1).min(requests.len())]
}

/// The hashes of all items of `requests`.
pub(crate) fn hash_all(
    requests: &[Request<'_>],
    hashes: &mut Vec<ItemHash>,
    hash: impl Fn(&[u8]) -> ItemHash,
) {
    hashes.clear();
    // A huge request is over soon, and the memory of its hashes should be too.
    hashes.shrink_to(4 * GROUP);
    let items = requests.iter().flat_map(|request| &request.words[ITEMS_FROM..]);
    hashes.extend(items.map(|item| hash(item)));
}

/// The item of a request that is alone and has no other.
pub(crate) fn only_item<'a>(requests: &[Request<'a>]) -> Option<&'a [u8]> {
    match requests {
        [request] if !is_many(request) => Some(request.words[ITEMS_FROM]),
        _ => None,
    }
}

/// Asks a filter about all items of all `requests`: many `together`, or `one`, which needs no list of hashes and answers.
pub(crate) fn ask_all(
    requests: &[Request<'_>],
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
    hash: impl Fn(&[u8]) -> ItemHash,
    one: impl Fn(&[u8]) -> bool,
    ask: impl Fn(&[ItemHash], &mut Answers),
) -> Together {
    let mut together = Together { done: requests.len(), ..Together::default() };
    if let Some(item) = only_item(requests) {
        let held = one(item);
        (together.hits, together.misses) = (held.into(), (!held).into());
        replies.push(Reply::Boolean(held));
        return together;
    }
    let mut left = requests;
    while !left.is_empty() {
        let now = group(left);
        hash_all(now, &mut scratch.hashes, &hash);
        ask(&scratch.hashes, &mut scratch.answers);
        let hits = scratch.answers.mayhaps() as u64;
        together.hits += hits;
        together.misses += scratch.hashes.len() as u64 - hits;
        let mut at = 0;
        for request in now {
            replies.push(reply(request, &scratch.answers, at));
            at += request.words.len() - ITEMS_FROM;
        }
        left = &left[now.len()..];
    }
    together
}

/// Refuses all `requests` alike.
pub(crate) fn refuse_all(requests: &[Request<'_>], refusal: &Refusal, replies: &mut Vec<Reply>) -> Together {
    replies.extend(requests.iter().map(|_| Reply::from(refusal.clone())));
    Together { done: requests.len(), ..Together::default() }
}

/// What all `requests` are answered by a name that holds no such filter: nothing is in.
pub(crate) fn nothing_in(requests: &[Request<'_>], replies: &mut Vec<Reply>) -> Together {
    replies.extend(requests.iter().map(nothing));
    Together { done: requests.len(), ..Together::default() }
}

/// What `request` is answered: the answers from `at` on are its own.
pub(crate) fn reply(request: &Request<'_>, answers: &Answers, at: usize) -> Reply {
    match is_many(request) {
        true => Reply::Booleans(answers.part(at, request.words.len() - ITEMS_FROM)),
        false => Reply::Boolean(answers.get(at).unwrap_or(false)),
    }
}

fn nothing(request: &Request<'_>) -> Reply {
    match is_many(request) {
        true => Reply::Array(vec![Reply::Boolean(false); request.words.len() - ITEMS_FROM]),
        false => Reply::Boolean(false),
    }
}
