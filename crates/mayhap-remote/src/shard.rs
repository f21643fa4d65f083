//! The commands for shards and the meaning of their replies, without I/O. One command per shard and batch, or
//! per item for plain shards.
//!
//! Every reply shows whether the shard exists and is complete:
//!
//! | backend | lookup | ready if |
//! |---|---|---|
//! | `bf` | `BF.MEXISTS shard item … sentinel sentinel` | both sentinels are members |
//! | `mf` | `MF.MEXISTS shard item … sentinel sentinel` | the reply is not an error, and both sentinels are members |
//! | `plain` | `GETRANGE shard` of the item's block | the block is complete, and its first bit is set |

use redis::Value;

use crate::descriptor::Generation;
use crate::name::FilterName;
use crate::plain::{PlainImage, PlainShape, empty, without_ready_bits};
use crate::plan::{Backend, SENTINELS};
use crate::route::{ItemRoute, sentinels};
use crate::{Access, Answer, Inserted, RemoteError, Request};

/// The maximum number of items in one command.
const MOST_ITEMS: usize = 4096;
/// The maximum number of bytes of the items in one command.
const MOST_BYTES: usize = 1 << 20;
/// The number of bytes that one command writes to a string.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;

/// One command for one shard, with its items.
pub(crate) struct Job {
    pub(crate) key: Vec<u8>,
    shard: u32,
    /// The route of its first item. A job for a plain shard has no other.
    route: ItemRoute,
    /// Indices of the items in the batch.
    pub(crate) items: Vec<usize>,
}

/// The jobs of a batch.
pub(crate) fn jobs<I: AsRef<[u8]>>(generation: &Generation, name: &FilterName, items: &[I]) -> Vec<Job> {
    let shards = generation.measures.shards;
    let one_each = generation.measures.plain.is_some();
    // An item is hashed once: its route decides the shard, and in a plain shard the positions.
    let place = |(index, item): (usize, &I)| {
        let route = ItemRoute::of(&generation.key, item.as_ref());
        (route.shard(shards), index, route)
    };
    let mut order: Vec<(u32, usize, ItemRoute)> = items.iter().enumerate().map(place).collect();
    order.sort_unstable_by_key(|(shard, index, _)| (*shard, *index));
    let (mut jobs, mut bytes): (Vec<Job>, usize) = (Vec::new(), 0);
    for (shard, index, route) in order {
        let size = items[index].as_ref().len();
        let fits = |job: &&mut Job| {
            job.shard == shard && !one_each && job.items.len() < MOST_ITEMS && bytes + size <= MOST_BYTES
        };
        match jobs.last_mut().filter(fits) {
            Some(job) => {
                job.items.push(index);
                bytes += size;
            }
            None => {
                let key = generation.shard_key(name, shard);
                jobs.push(Job { key, shard, route, items: vec![index] });
                bytes = size;
            }
        }
    }
    jobs
}

impl Job {
    /// The command that looks up its items.
    pub(crate) fn lookup<I: AsRef<[u8]>>(&self, generation: &Generation, items: &[I]) -> Request {
        let command = match &generation.measures.plain {
            Some(plain) => {
                let (first, _) = plain.bits_of(self.route);
                let from = first / 8;
                let to = from + plain.block_bytes() as u64 - 1;
                return Request::read("GETRANGE", &self.key).arg(from).arg(to);
            }
            None if generation.measures.backend == Backend::Mayhap => "MF.MEXISTS",
            None => "BF.MEXISTS",
        };
        let request = self.with_items(Request::read(command, &self.key), items);
        sentinels(&generation.key, self.shard)
            .iter()
            .fold(request, |request, item| request.arg(item.as_slice()))
    }

    /// The command that inserts its items. It never creates a missing shard.
    pub(crate) fn insertion<I: AsRef<[u8]>>(&self, generation: &Generation, items: &[I]) -> Request {
        let Some(plain) = &generation.measures.plain else {
            let request = match generation.measures.backend {
                Backend::Mayhap => Request::write("MF.MADD", &self.key),
                _ => Request::write("BF.INSERT", &self.key).arg("NOCREATE").arg("ITEMS"),
            };
            return self.with_items(request, items);
        };
        let (first, positions) = plain.bits_of(self.route);
        let request = Request::write("BITFIELD", &self.key).arg("GET").arg("u1").arg(first);
        positions.fold(request, |request, position| request.arg("SET").arg("u1").arg(first + position).arg(1))
    }

    /// The answers for its items, from the reply to [`lookup`](Self::lookup).
    pub(crate) fn answers(&self, generation: &Generation, reply: &Value) -> Result<Vec<Answer>, RemoteError> {
        let answer = |is_there| if is_there { Answer::Maybe } else { Answer::No };
        if let Some(plain) = &generation.measures.plain {
            let Value::BulkString(block) = reply else {
                return Err(RemoteError::reply("a block", reply));
            };
            let covers = plain.covers(block, self.route);
            let covers = covers.ok_or_else(|| self.not_ready("its block is missing"))?;
            return Ok(vec![answer(covers)]);
        }
        let flags = flags(reply).filter(|flags| flags.len() == self.items.len() + SENTINELS as usize);
        let mut flags = flags.ok_or_else(|| RemoteError::reply("an answer for each item", reply))?;
        let sentinels = flags.split_off(self.items.len());
        if !sentinels.iter().all(|&is_there| is_there) {
            return Err(self.not_ready("it is missing, incomplete, or not part of this filter"));
        }
        Ok(flags.into_iter().map(answer).collect())
    }

    /// The results for its items, from the reply to [`insertion`](Self::insertion).
    pub(crate) fn inserted(
        &self,
        generation: &Generation,
        reply: &Value,
    ) -> Result<Vec<Inserted>, RemoteError> {
        let result = |is_new| if is_new { Inserted::New } else { Inserted::MaybeBefore };
        let Value::Array(parts) = reply else {
            return Err(RemoteError::reply("an answer for each item", reply));
        };
        if let Some(plain) = &generation.measures.plain {
            let old = flags(reply).filter(|old| old.len() == plain.probes() as usize + 1);
            let old = old.ok_or_else(|| RemoteError::reply("an old bit for each position", reply))?;
            if !old[0] {
                return Err(self.not_ready("its block is missing"));
            }
            return Ok(vec![result(old[1..].iter().any(|was_set| !was_set))]);
        }
        // A full filter returns an error in place of the first item that it rejects, and nothing for the
        // items after it.
        let full = parts.iter().position(|part| matches!(part, Value::ServerError(_)));
        let answered = full.unwrap_or(parts.len());
        let flags = flags(&Value::Array(parts[..answered].to_vec()));
        let flags = flags.filter(|flags| flags.len() == self.items.len() || full.is_some());
        let flags = flags.ok_or_else(|| RemoteError::reply("an answer for each item", reply))?;
        let mut inserted: Vec<Inserted> = flags.into_iter().map(result).collect();
        inserted.resize(self.items.len(), Inserted::Full);
        Ok(inserted)
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }

    fn not_ready(&self, what: &str) -> RemoteError {
        RemoteError::Shard { key: self.shown(), what: what.to_owned() }
    }

    fn with_items<I: AsRef<[u8]>>(&self, request: Request, items: &[I]) -> Request {
        self.items.iter().fold(request, |request, &index| request.arg(items[index].as_ref()))
    }
}

/// Adds the key of the shard to an error reply that means: the filter is missing, or is something else.
pub(crate) fn named(key: &[u8], error: RemoteError) -> RemoteError {
    match error {
        RemoteError::Refused { code, text }
            if matches!(code.as_str(), "ERR" | "WRONGTYPE" | "NOTREADY")
                && !text.starts_with("unknown command") =>
        {
            let key = String::from_utf8_lossy(key).into_owned();
            RemoteError::Shard { key, what: format!("{code} {text}") }
        }
        other => other,
    }
}

/// Reads an array of flags: integers in RESP2, booleans in RESP3.
fn flags(reply: &Value) -> Option<Vec<bool>> {
    let Value::Array(parts) = reply else { return None };
    let flag = |part: &Value| match part {
        Value::Int(0) | Value::Boolean(false) => Some(false),
        Value::Int(1) | Value::Boolean(true) => Some(true),
        _ => None,
    };
    parts.iter().map(flag).collect()
}

/// The commands that create one empty shard at an unused key, in order.
pub(crate) fn creation(generation: &Generation, key: &[u8]) -> impl Iterator<Item = Request> {
    let measures = &generation.measures;
    let (capacity, rate) = (measures.shard_capacity + SENTINELS, measures.target_fpr);
    let filter = match (measures.backend, &measures.plain) {
        (_, Some(_)) => None,
        (Backend::Mayhap, None) => {
            let request = Request::write("MF.RESERVE", key).arg("KIND").arg("bloom");
            Some(request.arg("CAPACITY").arg(capacity).arg("FPR").arg(rate))
        }
        (_, None) => Some(Request::write("BF.RESERVE", key).arg(rate).arg(capacity).arg("NONSCALING")),
    };
    let chunks = measures.plain.map(|plain| empty_plain(plain, key));
    filter.into_iter().chain(chunks.into_iter().flatten())
}

/// The commands that write an empty string, in chunks. A chunk that arrived a second time, after insertions,
/// would erase items. So each is sent once.
fn empty_plain(plain: PlainShape, key: &[u8]) -> impl Iterator<Item = Request> {
    (0..plain.bytes().div_ceil(CHUNK_BYTES)).map(move |chunk| {
        let from = chunk * CHUNK_BYTES;
        let bytes = empty(&plain, (plain.bytes() - from).min(CHUNK_BYTES));
        Request::once("SETRANGE", key).arg(from).arg(bytes)
    })
}

/// One of the two sentinels. They mark the beginning and the end of making a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sentinel {
    /// We created the shard. A filter that another client created at this key does not have this item.
    Made,
    /// The shard has all its items.
    Complete,
}

/// The command that inserts a sentinel. `None` for a plain shard, which has none.
pub(crate) fn sentinel(
    generation: &Generation,
    key: &[u8],
    shard: u32,
    sentinel: Sentinel,
) -> Option<Request> {
    let item = sentinels(&generation.key, shard)[sentinel as usize];
    let request = match (generation.measures.backend, &generation.measures.plain) {
        (_, Some(_)) => return None,
        (Backend::Mayhap, None) => Request::write("MF.MADD", key),
        (_, None) => Request::write("BF.INSERT", key).arg("NOCREATE").arg("ITEMS"),
    };
    Some(request.arg(item.as_slice()))
}

/// The command that checks whether a shard is complete.
pub(crate) fn readiness(generation: &Generation, key: &[u8], shard: u32) -> Request {
    let latest = |command: &str| Request::whole(redis::cmd(command).arg(key).take(), key, Access::ReadLatest);
    let exists = match (generation.measures.backend, &generation.measures.plain) {
        (_, Some(plain)) => {
            let bits = ready_bits(plain).into_iter();
            return bits.fold(latest("BITFIELD"), |request, bit| request.arg("GET").arg("u1").arg(bit));
        }
        (Backend::Mayhap, None) => "MF.MEXISTS",
        (_, None) => "BF.MEXISTS",
    };
    let [first, second] = sentinels(&generation.key, shard);
    latest(exists).arg(first.as_slice()).arg(second.as_slice())
}

/// Does the reply to [`readiness`] show a complete shard?
pub(crate) fn is_ready(generation: &Generation, reply: &Value) -> bool {
    let due = generation.measures.plain.as_ref().map_or(SENTINELS as usize, |plain| ready_bits(plain).len());
    flags(reply).is_some_and(|flags| flags.len() == due && flags.into_iter().all(|is_there| is_there))
}

/// Positions of the ready bits that show whether a plain shard is the one that was created first.
///
/// Only [`creation`] writes ready bits, from the front to the back. A shard that was lost later, and created
/// again by an insertion or an image, has none at all. One that was lost while it was created has none in
/// front. The ready bit of the last block, and of one block in each chunk before it, show that all of the
/// shard was created.
fn ready_bits(plain: &PlainShape) -> Vec<u64> {
    let last = plain.bytes() - plain.block_bytes() as u64;
    (0..plain.bytes()).step_by(CHUNK_BYTES as usize).chain([last]).map(|byte| byte * 8).collect()
}

/// The key of the image of a plain shard, before it is joined to the shard. It has the same hash tag, so the
/// same slot.
pub(crate) fn image_key(key: &[u8]) -> Vec<u8> {
    [key, b":image"].concat()
}

/// The commands that write an image to its own key, without ready bits: if the shard is missing, joining the
/// image does not make a ready one.
pub(crate) fn sending(image: &PlainImage, image_key: &[u8]) -> Vec<Request> {
    let chunks = (0_u64..).step_by(CHUNK_BYTES as usize).zip(image.as_bytes().chunks(CHUNK_BYTES as usize));
    let requests = chunks.map(|(from, chunk)| {
        Request::write("SETRANGE", image_key).arg(from).arg(without_ready_bits(image.shape(), chunk.to_vec()))
    });
    requests.collect()
}

/// The number of bits that are set in an image as it is sent.
pub(crate) fn ones(image: &PlainImage) -> u64 {
    let all: u64 = image.as_bytes().iter().map(|byte| u64::from(byte.count_ones())).sum();
    all - image.shape().blocks()
}

/// The commands that read whether a shard is ready, and how full it is.
pub(crate) fn inventory(generation: &Generation, key: &[u8], shard: u32) -> [Request; 2] {
    let count = match (generation.measures.backend, &generation.measures.plain) {
        (_, Some(_)) => "BITCOUNT",
        (Backend::Mayhap, None) => "MF.CARD",
        (_, None) => "BF.CARD",
    };
    [readiness(generation, key, shard), Request::read(count, key)]
}

/// The number of items in a shard, from the replies to [`inventory`]. `None`: it is not ready.
pub(crate) fn counted(generation: &Generation, ready: &Value, count: &Value) -> Option<u64> {
    let Value::Int(count) = count else { return None };
    let count = u64::try_from(*count).ok().filter(|_| is_ready(generation, ready))?;
    Some(match &generation.measures.plain {
        Some(plain) => plain.items_from_ones(count),
        None => count.saturating_sub(SENTINELS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FilterPlan;
    use mayhap::SecretKey;

    fn generation(backend: Backend) -> Generation {
        let measures = FilterPlan::new(backend, 10_000, 0.01).shards(4).measure().unwrap();
        Generation::new(1, measures, SecretKey::new([7; 16]))
    }

    fn a_job(backend: Backend, count: usize) -> (Generation, Vec<Vec<u8>>, Job) {
        let (generation, name) = (generation(backend), FilterName::new("seen").unwrap());
        let in_shard_0 = (0_u32..).map(|number| number.to_le_bytes().to_vec());
        let items: Vec<Vec<u8>> = in_shard_0
            .filter(|item| ItemRoute::of(&generation.key, item).shard(4) == 0)
            .take(count)
            .collect();
        let mut jobs = jobs(&generation, &name, &items);
        (generation, items, jobs.remove(0))
    }

    fn ints(numbers: &[i64]) -> Value {
        Value::Array(numbers.iter().map(|&number| Value::Int(number)).collect())
    }

    #[test]
    fn a_batch_is_one_command_for_each_shard() {
        let name = FilterName::new("seen").unwrap();
        let items: Vec<Vec<u8>> = (0..1000_u32).map(|number| number.to_le_bytes().to_vec()).collect();
        for backend in [Backend::Bloom, Backend::Mayhap] {
            let jobs = jobs(&generation(backend), &name, &items);
            assert_eq!(jobs.len(), 4);
            assert_eq!(jobs.iter().map(|job| job.items.len()).sum::<usize>(), 1000);
        }
        assert_eq!(jobs(&generation(Backend::Plain), &name, &items).len(), 1000);
        let large = vec![vec![0; MOST_BYTES]; 3];
        assert_eq!(jobs(&generation(Backend::Bloom), &name, &large).len(), 3, "bounded in bytes");
    }

    #[test]
    fn without_both_sentinels_there_is_no_answer() {
        for backend in [Backend::Bloom, Backend::Mayhap] {
            let (generation, _, job) = a_job(backend, 2);
            let answers = |reply: &Value| job.answers(&generation, reply);
            assert_eq!(answers(&ints(&[1, 0, 1, 1])).unwrap(), [Answer::Maybe, Answer::No]);
            let yes = Value::Array([true, false, true, true].map(Value::Boolean).to_vec());
            assert_eq!(answers(&yes).unwrap(), [Answer::Maybe, Answer::No]);
            for odd in [&[0, 0, 0, 0][..], &[1, 1, 1, 0], &[1, 1, 0, 1], &[1, 1, 1], &[1, 1, 1, 1, 1], &[]] {
                assert!(answers(&ints(odd)).is_err(), "{odd:?}");
            }
            assert!(answers(&ints(&[2, 0, 1, 1])).is_err());
            assert!(answers(&Value::Nil).is_err() && answers(&Value::Int(1)).is_err());
        }
    }

    #[test]
    fn without_the_ready_bit_there_is_no_answer() {
        let (generation, _, job) = a_job(Backend::Plain, 1);
        let answers = |block: Vec<u8>| job.answers(&generation, &Value::BulkString(block));
        let mut block = vec![0; 64];
        assert!(answers(block.clone()).is_err() && answers(Vec::new()).is_err());
        block[0] = 0x80;
        assert_eq!(answers(block.clone()).unwrap(), [Answer::No]);
        assert!(answers(block[..63].to_vec()).is_err(), "too short");
        assert_eq!(answers(vec![0xff; 64]).unwrap(), [Answer::Maybe]);
        assert!(job.answers(&generation, &Value::Nil).is_err());
    }

    #[test]
    fn insertion_replies_give_a_result_for_each_item() {
        let (generation, _, job) = a_job(Backend::Bloom, 3);
        let inserted = |reply: &Value| job.inserted(&generation, reply);
        assert_eq!(
            inserted(&ints(&[1, 0, 1])).unwrap(),
            [Inserted::New, Inserted::MaybeBefore, Inserted::New]
        );
        assert!(inserted(&ints(&[1, 0])).is_err() && inserted(&ints(&[1, 0, 1, 1])).is_err());
        assert!(inserted(&Value::Okay).is_err());
        let (generation, _, job) = a_job(Backend::Plain, 1);
        let probes = generation.measures.plain.unwrap().probes() as usize;
        let old = |ready, bit| {
            let mut old = vec![bit; probes + 1];
            old[0] = ready;
            job.inserted(&generation, &ints(&old))
        };
        assert_eq!(old(1, 0).unwrap(), [Inserted::New]);
        assert_eq!(old(1, 1).unwrap(), [Inserted::MaybeBefore]);
        assert!(old(0, 0).is_err(), "a stray bit in a string that is not ready");
        assert!(job.inserted(&generation, &ints(&[1])).is_err());
    }
}
