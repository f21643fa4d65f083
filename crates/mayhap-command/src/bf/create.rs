//! `BF.RESERVE`, `BF.INSERT`.

use mayhap::{AtomicScalableBloom, BatchBits, BuildError, ItemHash};
use mayhap_formats::redis_bloom::{self, Scaling};

use super::items;
use crate::args;
use crate::context::Context;
use crate::parameters::{BloomGrowth, MAX_CAPACITY, MAX_EXPANSION, Parameters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::run::{Added, Ran, Request, Scratch, Slot};
use crate::value::Value;

/// The options of a new filter.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    capacity: u64,
    error: f64,
    /// 0 if it does not grow.
    expansion: u32,
    /// The rate of a sub-filter relative to the one before it; `None` to follow `bf-growth`.
    tightening: Option<f64>,
}

impl Wanted {
    const fn by_default(parameters: &Parameters) -> Self {
        Self {
            capacity: parameters.bf_initial_size,
            error: parameters.bf_error_rate,
            expansion: parameters.bf_expansion_factor,
            tightening: None,
        }
    }

    fn scaling(&self, parameters: &Parameters) -> Scaling {
        let by = self.expansion;
        match (by, self.tightening, parameters.bf_growth) {
            (0, _, _) => Scaling::Never,
            (_, Some(tightening), _) => Scaling::Tightened { by, tightening },
            (_, None, BloomGrowth::Compact) => Scaling::Tightened { by, tightening: redis_bloom::COMPACT },
            (_, None, BloomGrowth::RedisBloom) => Scaling::By(by),
        }
    }

    /// Creates the filter, if there is memory for it. It must be able to grow to `scale_to` items.
    fn create(&self, scale_to: Option<u64>, context: &Context<'_>) -> Result<Value, Refusal> {
        let (capacity, error, scaling) = (self.capacity, self.error, self.scaling(context.parameters));
        let shape = redis_bloom::shape(capacity, error, scaling).map_err(|error| not_created(&error))?;
        if let Some(items) = scale_to {
            let bytes = shape.memory_bytes_for(items).map_err(|error| match error {
                BuildError::RateTooLow { .. } | BuildError::RateOutOfRange { .. } => Refusal::ScaleToNoRate,
                _ => Refusal::ScaleToTooLarge,
            })?;
            context.admit(bytes, bytes).map_err(|_| Refusal::ScaleToTooLarge)?;
        }
        let bytes = shape.layer(0).map_err(|error| not_created(&error))?.memory_bytes();
        context.admit(bytes, bytes).map_err(|refusal| match refusal {
            Refusal::TooLarge { .. } => Refusal::InsufficientMemory,
            refusal => refusal,
        })?;
        let filter = match context.parameters.bf_hash.draw_key(context.environment) {
            Some(key) => redis_bloom::create_keyed(capacity, error, scaling, key),
            None => redis_bloom::create(capacity, error, scaling),
        };
        let filter = filter.map_err(|error| not_created(&error))?;
        Ok(Value::Bloom(Box::new(AtomicScalableBloom::from(filter))))
    }
}

fn not_created(error: &BuildError) -> Refusal {
    match error {
        BuildError::OutOfMemory { .. } | BuildError::TooLarge { .. } => Refusal::InsufficientMemory,
        _ => Refusal::CouldNotCreate,
    }
}

/// The filter that an insertion into a missing key creates.
pub(super) fn by_default(context: &Context<'_>) -> Result<Value, Refusal> {
    Wanted::by_default(context.parameters).create(None, context)
}

/// `BF.RESERVE key error_rate capacity [EXPANSION expansion] [NONSCALING]`. Other words are ignored.
pub(super) fn reserve(
    request: &Request<'_>,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    const MOST_WORDS: usize = 7;
    if request.words.len() > MOST_WORDS {
        return Err(Refusal::WrongArity { command: request.command.name });
    }
    let error = args::double(request.words[2]).ok_or(Refusal::BadErrorRate)?;
    if !(error > 0.0 && error < 1.0) {
        return Err(Refusal::ErrorRateOutOfRange);
    }
    let capacity = args::integer(request.words[3]).ok_or(Refusal::BadCapacity)?;
    let capacity = u64::try_from(capacity).ok().filter(|capacity| (1..=MAX_CAPACITY).contains(capacity));
    let capacity = capacity.ok_or(Refusal::CapacityOutOfRange)?;
    let options = &request.words[4..];
    let find = |option: &str| options.iter().position(|word| word.eq_ignore_ascii_case(option.as_bytes()));
    let mut wanted = Wanted { capacity, error, ..Wanted::by_default(context.parameters) };
    let non_scaling = find("NONSCALING").is_some();
    let expansion = find("EXPANSION").map(|at| expansion(options.get(at + 1).copied())).transpose()?;
    match expansion {
        Some(1..) if non_scaling => return Err(Refusal::NonScalingExpands),
        _ if non_scaling => wanted.expansion = 0,
        Some(expansion) => wanted.expansion = expansion,
        None => {}
    }
    match slot.get() {
        None => {
            slot.put(wanted.create(None, context)?);
            Ok(Reply::Ok)
        }
        Some(Value::Bloom(_) | Value::LoadingBloom(_)) => Err(Refusal::Exists),
        Some(_) => Err(Refusal::WrongType),
    }
}

fn expansion(word: Option<&[u8]>) -> Result<u32, Refusal> {
    let word = word.ok_or(Refusal::NoExpansion)?;
    let number = args::integer(word).ok_or(Refusal::BadExpansion)?;
    narrow_expansion(number).ok_or(Refusal::ExpansionOutOfRange)
}

fn narrow_expansion(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&number| u64::from(number) <= MAX_EXPANSION)
}

/// The parsed arguments of `BF.INSERT`.
#[derive(Debug)]
struct Insertion<'a> {
    wanted: Wanted,
    may_create: bool,
    scale_to: Option<u64>,
    items: &'a [&'a [u8]],
}

impl<'a> Insertion<'a> {
    /// As in RedisBloom, the first letters identify an option: `C…` is a capacity, `ER…` an error rate, any other `E…` an expansion, `NOC…`
    /// means *do not create*, any other `N…` *do not grow*. The items follow the first `I…`.
    ///
    /// The options of valkey-bloom are recognised by their full names:
    /// * `TIGHTENING ratio` is supported, and the filter still keeps its target rate: the first sub-filter gets half of it, and the others
    ///   share the other half by that ratio.
    /// * `VALIDATESCALETO capacity` is supported: a filter that could not grow to that capacity within the limits is not created.
    /// * `SEED` is refused, after a check that it has 32 bytes: RedisBloom's hash has no seed, and the key of a keyed filter is secret.
    fn parse(request: &Request<'a>, context: &Context<'_>) -> Result<Self, Refusal> {
        let wrong_arity = Refusal::WrongArity { command: request.command.name };
        let mut insertion = Self {
            wanted: Wanted::by_default(context.parameters),
            may_create: true,
            scale_to: None,
            items: &[],
        };
        let mut never_grows = false;
        let mut words = &request.words[2..];
        while let [option, rest @ ..] = words {
            words = rest;
            let letter = |index: usize| option.get(index).map(u8::to_ascii_lowercase);
            let takes_value = match letter(0) {
                Some(b'i') => {
                    insertion.items = rest;
                    break;
                }
                Some(b'n') => {
                    match letter(2) {
                        Some(b'c') => insertion.may_create = false,
                        _ => never_grows = true,
                    }
                    continue;
                }
                Some(b'c' | b'e') => true,
                _ => [&b"TIGHTENING"[..], b"SEED", b"VALIDATESCALETO"]
                    .iter()
                    .any(|known| option.eq_ignore_ascii_case(known)),
            };
            if !takes_value {
                return Err(Refusal::UnknownArgument);
            }
            let [value, rest @ ..] = words else { return Err(wrong_arity) };
            words = rest;
            insertion.set((letter(0), letter(1)), value)?;
        }
        if insertion.items.is_empty() {
            return Err(wrong_arity);
        }
        if never_grows {
            insertion.wanted.expansion = 0;
        }
        // In a replay, an existing filter gets its items whatever the defaults are here.
        let is_bound = never_grows || context.limits.bound_by_settings;
        if insertion.wanted.expansion == 0 && insertion.scale_to.is_some() && is_bound {
            return Err(Refusal::NonScalingScaleTo);
        }
        Ok(insertion)
    }

    /// Parses the value of an option that begins with these letters.
    fn set(&mut self, letters: (Option<u8>, Option<u8>), value: &[u8]) -> Result<(), Refusal> {
        let rate = |refusal| args::double(value).ok_or(refusal);
        let between = |number: &f64| *number > 0.0 && *number < 1.0;
        let wanted = &mut self.wanted;
        match letters {
            (Some(b'c'), _) => wanted.capacity = capacity(value).ok_or(Refusal::PlainBadCapacity)?,
            (Some(b'e'), Some(b'r')) => {
                let error = rate(Refusal::InsertErrorRate)?;
                wanted.error = Some(error).filter(between).ok_or(Refusal::InsertErrorRate)?;
            }
            (Some(b'e'), _) => {
                let number = args::integer(value).and_then(narrow_expansion);
                wanted.expansion = number.ok_or(Refusal::InsertExpansion)?;
            }
            (Some(b't'), _) => {
                let ratio = rate(Refusal::BadTightening)?;
                let ratio = Some(ratio).filter(between).ok_or(Refusal::TighteningOutOfRange)?;
                wanted.tightening = Some(ratio);
            }
            (Some(b'v'), _) => {
                let number = args::integer(value).and_then(|number| u64::try_from(number).ok());
                self.scale_to = Some(number.filter(|&number| number > 0).ok_or(Refusal::BadScaleTo)?);
            }
            _ => {
                const SEED_BYTES: usize = 32;
                return Err(match value.len() {
                    SEED_BYTES => Refusal::SeedNotHonoured,
                    _ => Refusal::InvalidSeed,
                });
            }
        }
        Ok(())
    }
}

fn capacity(word: &[u8]) -> Option<u64> {
    let capacity = u64::try_from(args::integer(word)?).ok()?;
    (1..=MAX_CAPACITY).contains(&capacity).then_some(capacity)
}

/// Returns the items of `BF.INSERT key [NOCREATE] ITEMS item …`, and `None` for all other requests. With only these options, the request
/// just adds items to an existing filter.
pub(crate) fn inserted_items<'r, 'w>(request: &'r Request<'w>) -> Option<&'r [&'w [u8]]> {
    let mut words = &request.words[2..];
    while let [option, rest @ ..] = words {
        words = rest;
        let letter = |index: usize| option.get(index).map(u8::to_ascii_lowercase);
        match letter(0) {
            // The same rule as in `Insertion::parse`.
            Some(b'i') => return (!rest.is_empty()).then_some(rest),
            Some(b'n') if letter(2) == Some(b'c') => {}
            _ => return None,
        }
    }
    None
}

/// Runs `BF.INSERT` requests while the filter exists and need not grow.
pub(crate) fn insert_together(
    requests: &[Request<'_>],
    value: Option<&Value>,
    new: Option<&mut Vec<ItemHash>>,
    scratch: &mut Scratch,
    replies: &mut Vec<Reply>,
) -> Added {
    let Some(Value::Bloom(filter)) = value else { return Added::none() };
    let items = |request: &Request<'_>| inserted_items(request).map_or(0, <[_]>::len);
    let joined = requests.iter().take_while(|request| items(request) > 0).count();
    let added = items::add_groups(filter, &requests[..joined], items, new, scratch, replies);
    match added.ran {
        Ran::All if joined < requests.len() => Added { ran: Ran::only(joined), ..added },
        _ => added,
    }
}

/// Runs `BF.INSERT key [options] ITEMS item …` with exclusive access. If the filter exists, the options are checked and ignored.
pub(crate) fn insert_alone(
    request: &Request<'_>,
    begun: &BatchBits,
    slot: &mut Slot<'_>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let insertion = Insertion::parse(request, context)?;
    let booked = Value::booked_bytes(slot.get());
    if slot.get().is_none() {
        if !insertion.may_create {
            return Err(Refusal::NotFound);
        }
        slot.put(insertion.wanted.create(insertion.scale_to, context)?);
    }
    items::add(slot, booked, insertion.items, begun, context).map(Reply::Array)
}
