//! `CF.RESERVE`, `CF.INSERT`, `CF.INSERTNX`.

use mayhap::{BuildError, ScalableCuckooShape};
use mayhap_formats::redis_cuckoo;

use super::items::{self, Copies, Outcome};
use crate::args;
use crate::context::Context;
use crate::parameters::{MAX_BUCKET_SIZE, MAX_CAPACITY, MAX_EXPANSION, Parameters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Request, Slot};
use crate::value::Value;

/// The options of a new filter.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    capacity: u64,
    bucket_size: u32,
    max_iterations: u32,
    expansion: u32,
}

impl Wanted {
    const fn by_default(capacity: u64, parameters: &Parameters) -> Self {
        Self {
            capacity,
            bucket_size: parameters.cf_bucket_size,
            max_iterations: parameters.cf_max_iterations,
            expansion: parameters.cf_expansion_factor,
        }
    }

    fn shape(&self) -> Result<ScalableCuckooShape, BuildError> {
        ScalableCuckooShape::for_capacity(self.capacity)?
            .with_bucket_size(self.bucket_size)?
            .with_max_iterations(self.max_iterations)?
            .with_expansion(self.expansion)
    }

    /// Creates the filter, if there is memory for it.
    fn create(&self, context: &Context<'_>) -> Result<Value, Refusal> {
        let not_created = |error: BuildError| match error {
            BuildError::OutOfMemory { .. } | BuildError::TooLarge { .. } => Refusal::InsufficientMemory,
            _ => Refusal::CuckooNotCreated,
        };
        let shape = self.shape().map_err(not_created)?;
        let bytes = shape.memory_bytes(1).map_err(not_created)?;
        context.admit(bytes, bytes).map_err(|refusal| match refusal {
            Refusal::TooLarge { .. } => Refusal::InsufficientMemory,
            refusal => refusal,
        })?;
        let filter = match context.parameters.cf_hash.draw_key(context.environment) {
            Some(key) => redis_cuckoo::create_keyed(shape, key),
            None => redis_cuckoo::create(shape),
        };
        Ok(Value::Cuckoo(Box::new(filter.map_err(not_created)?)))
    }
}

/// The filter that an insertion into a missing key creates.
pub(super) fn by_default(capacity: u64, context: &Context<'_>) -> Result<Value, Refusal> {
    Wanted::by_default(capacity, context.parameters).create(context)
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`. Other pairs of words are ignored.
pub(super) fn reserve(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    if request.words.len().is_multiple_of(2) {
        return Err(Refusal::WrongArity { command: request.command.name });
    }
    let capacity = args::integer(request.words[2]).ok_or(Refusal::PlainBadCapacity)?;
    let options = &request.words[3..];
    let option = |option, least, most| number(options, option, least, most);
    let mut wanted = Wanted::by_default(0, context.parameters);
    if let Some(moves) = option("MAXITERATIONS", 1, u16::MAX.into())? {
        wanted.max_iterations = moves;
    }
    let most_slots = match context.limits.bound_by_settings {
        true => context.parameters.max_bucket_size(),
        false => MAX_BUCKET_SIZE,
    };
    if let Some(slots) = option("BUCKETSIZE", 1, most_slots)? {
        wanted.bucket_size = slots;
    }
    if let Some(times) = option("EXPANSION", 0, MAX_EXPANSION)? {
        wanted.expansion = times;
    }
    let capacity = u64::try_from(capacity).ok();
    let fits = |capacity: &u64| (2 * u64::from(wanted.bucket_size)..=MAX_CAPACITY).contains(capacity);
    wanted.capacity = capacity.filter(fits).ok_or(Refusal::CuckooCapacity)?;
    match slot.get() {
        None => {
            slot.put(wanted.create(context)?);
            Ok(Reply::Ok)
        }
        Some(Value::Cuckoo(_) | Value::LoadingCuckoo(_)) => Err(Refusal::Exists),
        Some(_) => Err(Refusal::WrongType),
    }
}

/// The number after an option, if the option is given.
fn number(words: &[&[u8]], option: &'static str, least: u64, most: u64) -> Result<Option<u32>, Refusal> {
    let Some(at) = words.iter().position(|word| word.eq_ignore_ascii_case(option.as_bytes())) else {
        return Ok(None);
    };
    let number = words.get(at + 1).and_then(|word| args::integer(word));
    let number = number.ok_or(Refusal::CuckooOption { option })?;
    let number = u32::try_from(number).ok().filter(|&number| (least..=most).contains(&number.into()));
    number.map(Some).ok_or(Refusal::CuckooOptionOutOfRange { option, least, most })
}

/// `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item …`.
pub(super) fn insert(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let outcomes = insert_all(request, slot, Copies::Any, context)?;
    let reply = |outcome| match outcome {
        Outcome::Refused(Refusal::CuckooFull) => {
            Reply::Split { resp2: Box::new(Reply::Integer(-1)), resp3: Box::new(Reply::Boolean(false)) }
        }
        Outcome::Refused(refusal) => refusal.into(),
        outcome => Reply::Boolean(outcome == Outcome::Added),
    };
    Ok(Reply::Array(outcomes.into_iter().map(reply).collect()))
}

/// `CF.INSERTNX key [CAPACITY n] [NOCREATE] ITEMS item …`: numbers in both protocols.
pub(super) fn insertnx(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let outcomes = insert_all(request, slot, Copies::One, context)?;
    let reply = |outcome| match outcome {
        Outcome::Added => Reply::Integer(1),
        Outcome::IsIn => Reply::Integer(0),
        Outcome::Refused(Refusal::CuckooFull) => Reply::Integer(-1),
        Outcome::Refused(refusal) => refusal.into(),
    };
    Ok(Reply::Array(outcomes.into_iter().map(reply).collect()))
}

fn insert_all(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    copies: Copies,
    context: &Context<'_>,
) -> Result<Vec<Outcome>, Refusal> {
    let insertion = Insertion::parse(request, context)?;
    let booked = Value::booked_bytes(slot.get());
    if slot.get().is_none() {
        if !insertion.may_create {
            return Err(Refusal::NotFound);
        }
        slot.put(by_default(insertion.capacity, context)?);
    }
    let mut outcomes = Vec::with_capacity(insertion.items.len());
    items::add_all(slot, booked, insertion.items, copies, context, |outcome| outcomes.push(outcome))?;
    Ok(outcomes)
}

/// The parsed arguments of `CF.INSERT`.
#[derive(Debug)]
struct Insertion<'a> {
    capacity: u64,
    may_create: bool,
    items: &'a [&'a [u8]],
}

impl<'a> Insertion<'a> {
    /// As in RedisBloom, the first letter identifies an option, and the items follow the first `I…`.
    fn parse(request: &Request<'a>, context: &Context<'_>) -> Result<Self, Refusal> {
        let wrong_arity = Refusal::WrongArity { command: request.command.name };
        let parameters = context.parameters;
        // In a replay, an existing filter gets its items whatever the settings are here.
        let least = match context.limits.bound_by_settings {
            true => 2 * u64::from(parameters.cf_bucket_size),
            false => 1,
        };
        let mut insertion = Self { capacity: parameters.cf_initial_size, may_create: true, items: &[] };
        let mut words = &request.words[2..];
        while let [option, rest @ ..] = words {
            words = rest;
            match option.first().map(u8::to_ascii_lowercase) {
                Some(b'i') => {
                    insertion.items = rest;
                    break;
                }
                Some(b'n') => insertion.may_create = false,
                Some(b'c') => {
                    let [value, rest @ ..] = words else { return Err(wrong_arity) };
                    words = rest;
                    let capacity = args::integer(value).ok_or(Refusal::PlainBadCapacity)?;
                    let capacity = u64::try_from(capacity).ok();
                    let capacity = capacity.filter(|capacity| (least..=MAX_CAPACITY).contains(capacity));
                    insertion.capacity = capacity.ok_or(Refusal::CuckooInsertCapacity)?;
                }
                _ => return Err(Refusal::UnknownArgument),
            }
        }
        match insertion.items.is_empty() {
            true => Err(wrong_arity),
            false => Ok(insertion),
        }
    }
}
