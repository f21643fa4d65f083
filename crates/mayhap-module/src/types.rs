//! The types of values and their callbacks: RedisBloom's two, with its names, versions and fields, so that
//! files can be exchanged in both directions; two of our own for the same filters with a secret key, which
//! RedisBloom would misread; and one for everything else, including RedisBloom filters that are only partly
//! loaded.

use std::alloc::Layout;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use mayhap::{AtomicScalableBloom, Relocate, ScalableCuckoo, relocate_box};
use mayhap_command::stored::Form;
use mayhap_command::{Budget, Context, Limits, Value};
use mayhap_formats::redis_rdb::{self, ENCODING_VERSION, LoadFields as _, OwnType, SaveFields, ValueType};
use mayhap_formats::{redis_bloom, redis_cuckoo};

use crate::environment::HostEnvironment;
use crate::fields::{HostDigest, HostLoads, HostSaves};
use crate::host::{self, Ctx, HostString, Key, Level, call, raw};
use crate::{allocator, aof, memory_limit, settings, tally};

/// The host frees a value in the background if it has more than 64 times this many bytes, which take a
/// millisecond to free. Smaller values are freed immediately: a host that evicts keys evicts more of them
/// than it must while it waits for memory that is freed in the background.
const FREED_AT_ONCE: u64 = 128 << 10;

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Type {
    Bloom,
    Cuckoo,
    Mayhap,
    KeyedBloom,
    KeyedCuckoo,
}

/// The host's pointer to each type, once it is registered.
static POINTERS: [AtomicPtr<raw::RedisModuleType>; Type::ALL.len()] =
    [const { AtomicPtr::new(null_mut()) }; Type::ALL.len()];

impl Type {
    pub(crate) const ALL: [Self; 5] =
        [Self::Bloom, Self::Cuckoo, Self::Mayhap, Self::KeyedBloom, Self::KeyedCuckoo];

    /// The type of this value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Bloom(_) if value.is_keyed() => Self::KeyedBloom,
            Value::Cuckoo(_) if value.is_keyed() => Self::KeyedCuckoo,
            Value::Bloom(_) => Self::Bloom,
            Value::Cuckoo(_) => Self::Cuckoo,
            _ => Self::Mayhap,
        }
    }

    /// Our own type, if this is not one of RedisBloom's.
    const fn own(self) -> Option<OwnType> {
        match self {
            Self::Bloom | Self::Cuckoo => None,
            Self::Mayhap => Some(OwnType::Mayhap),
            Self::KeyedBloom => Some(OwnType::KeyedBloom),
            Self::KeyedCuckoo => Some(OwnType::KeyedCuckoo),
        }
    }

    /// The name in `TYPE` and in RDB files.
    const fn name(self) -> &'static CStr {
        match self {
            Self::Bloom => c"MBbloom--",
            Self::Cuckoo => c"MBbloomCF",
            Self::Mayhap => c"mayhap---",
            Self::KeyedBloom => c"mayhapBF-",
            Self::KeyedCuckoo => c"mayhapCF-",
        }
    }

    const fn version(self) -> u32 {
        match self.own() {
            None => ENCODING_VERSION,
            Some(_) => OwnType::VERSION,
        }
    }

    fn pointer(self) -> *mut raw::RedisModuleType {
        POINTERS[self as usize].load(Relaxed)
    }

    fn of_pointer(pointer: *mut raw::RedisModuleType) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.pointer() == pointer)
    }

    fn methods(self) -> raw::RedisModuleTypeMethods {
        /// The version of the host's struct. We fill in all fields of this version.
        const METHODS: u64 = 3;
        let (load, free): (unsafe extern "C" fn(_, _) -> _, unsafe extern "C" fn(_)) = match self {
            Self::Bloom => (load::<0>, free::<0>),
            Self::Cuckoo => (load::<1>, free::<1>),
            Self::Mayhap => (load::<2>, free::<2>),
            Self::KeyedBloom => (load::<3>, free::<3>),
            Self::KeyedCuckoo => (load::<4>, free::<4>),
        };
        raw::RedisModuleTypeMethods {
            version: METHODS,
            rdb_load: Some(load),
            rdb_save: Some(save),
            aof_rewrite: Some(rewrite),
            mem_usage: Some(memory_usage),
            digest: Some(digest),
            free: Some(free),
            aux_load: None,
            aux_save: None,
            aux_save_triggers: 0,
            free_effort: Some(free_effort),
            unlink: None,
            copy: Some(copy),
            defrag: Some(defrag),
            mem_usage2: None,
            free_effort2: None,
            unlink2: None,
            copy2: None,
            aux_save2: None,
        }
    }
}

/// Registers the types.
///
/// # Errors
/// The name of a type that the host rejects because another module defines it.
///
/// # Safety
/// `ctx` is the context with which the module is being loaded.
pub(crate) unsafe fn register(ctx: Ctx) -> Result<(), &'static CStr> {
    for of in Type::ALL {
        let mut methods = of.methods();
        let version = of.version().cast_signed();
        // SAFETY: guaranteed by the caller; the host copies the methods.
        let pointer =
            unsafe { call!(RedisModule_CreateDataType(ctx, of.name().as_ptr(), version, &raw mut methods)) };
        if pointer.is_null() {
            return Err(of.name());
        }
        POINTERS[of as usize].store(pointer, Relaxed);
    }
    Ok(())
}

/// The value of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    Nothing,
    /// One of our values, and its type in the host.
    Ours(NonNull<Value>, Type),
    /// A value of another type.
    Foreign,
}

/// The value that commands see for a name of another type. It is not a filter.
static FOREIGN: LazyLock<Value> = LazyLock::new(empty);

/// A value that takes almost no memory and may be freed.
pub(crate) fn empty() -> Value {
    Value::Text(Box::default())
}

impl Held {
    /// # Safety
    /// The key is open, or null.
    pub(crate) unsafe fn of(key: Key) -> Self {
        if key.is_null() {
            return Self::Nothing;
        }
        // SAFETY: guaranteed by the caller. A value of one of our types is a box of ours.
        unsafe {
            let pointer = call!(RedisModule_ModuleTypeGetType(key));
            match Type::of_pointer(pointer) {
                Some(of) if !pointer.is_null() => {
                    let value: *mut Value = call!(RedisModule_ModuleTypeGetValue(key)).cast();
                    NonNull::new(value).map_or(Self::Foreign, |value| Self::Ours(value, of))
                }
                _ if call!(RedisModule_KeyType(key)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int => {
                    Self::Nothing
                }
                _ => Self::Foreign,
            }
        }
    }

    /// A shared reference to the value.
    ///
    /// # Safety
    /// The key it was read from is open, and nothing changes its value for `'a`.
    pub(crate) unsafe fn value<'a>(&self) -> Option<&'a Value> {
        match self {
            Self::Nothing => None,
            // SAFETY: guaranteed by the caller.
            Self::Ours(value, _) => Some(unsafe { value.as_ref() }),
            Self::Foreign => Some(&FOREIGN),
        }
    }

    /// Moves the value out. A value must be written back in every case before anything reads it again.
    ///
    /// # Safety
    /// The key it was read from is open, and there is no other reference to its value.
    pub(crate) unsafe fn take(&self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            // SAFETY: guaranteed by the caller.
            Self::Ours(value, _) => Some(unsafe { value.read() }),
            Self::Foreign => Some(empty()),
        }
    }
}

/// Stores `value` under an open name and replaces its old value.
///
/// # Safety
/// The key is open for writing.
pub(crate) unsafe fn put(key: Key, value: Value) {
    tally::came(&value);
    let pointer = Type::of(&value).pointer();
    let value: *mut Value = Box::into_raw(Box::new(value));
    // SAFETY: guaranteed by the caller; the host owns the box from here on and passes it to `free`.
    unsafe { call!(RedisModule_ModuleTypeSetValue(key, pointer, value.cast())) };
}

/// Passes a value to the host, which owns it from here on.
fn hand_over(value: Value) -> *mut c_void {
    tally::came(&value);
    Box::into_raw(Box::new(value)).cast()
}

/// Runs `work` for a callback of the host, and keeps a panic from ending the host. Returns `None` if `work`
/// panicked.
pub(crate) fn guarded<T>(what: &str, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    if done.is_err() {
        host::log(
            null_mut(),
            Level::Warning,
            &format!("mayhap: {what} failed with a panic, see the line above"),
        );
    }
    done.ok()
}

/// Why a value could not be loaded.
struct Unloadable(String);

impl<E: fmt::Display> From<E> for Unloadable {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

unsafe extern "C" fn load<const TYPE: u8>(io: *mut raw::RedisModuleIO, version: c_int) -> *mut c_void {
    let of = Type::ALL[usize::from(TYPE)];
    // SAFETY: the host calls it to load a value.
    let loaded = guarded("loading a value", || unsafe { load_value(of, io, version) });
    match loaded {
        Some(Ok(value)) => hand_over(value),
        Some(Err(Unloadable(why))) => {
            let name = of.name().to_string_lossy();
            host::log(
                null_mut(),
                Level::Warning,
                &format!("mayhap: a value of type {name} cannot be loaded: {why}"),
            );
            null_mut()
        }
        None => null_mut(),
    }
}

/// # Safety
/// The host called a load callback.
unsafe fn load_value(of: Type, io: *mut raw::RedisModuleIO, version: c_int) -> Result<Value, Unloadable> {
    // SAFETY: guaranteed by the caller.
    let mut fields = unsafe { HostLoads::new(io) };
    // SAFETY: guaranteed by the caller.
    let is_start = unsafe { is_loading(io) };
    let version = u32::try_from(version)?;
    if let Some(own) = of.own() {
        let value = load_own(own, version, &mut fields, is_start)?;
        return match Type::of(&value) == of {
            true => Ok(value),
            false => Err(Unloadable("it holds a filter of another type".into())),
        };
    }
    let value_type = if of == Type::Bloom { ValueType::Bloom } else { ValueType::Cuckoo };
    let most = if is_start { u64::MAX } else { memory_limit::room() };
    Ok(match redis_rdb::read_fields(value_type, version, &mut fields, most)? {
        redis_rdb::Value::Bloom(filter) => Value::Bloom(Box::new(AtomicScalableBloom::from(filter))),
        redis_rdb::Value::Cuckoo(filter) => {
            check_tables(&filter, is_start)?;
            Value::Cuckoo(Box::new(filter))
        }
        _ => return Err(Unloadable("it holds a filter of another kind".into())),
    })
}

/// Checks the number of tables of a filter that a client loads. It is limited because every lookup reads all
/// tables.
fn check_tables(filter: &ScalableCuckoo, is_start: bool) -> Result<(), Unloadable> {
    let most = settings::parameters().max_loaded_tables();
    if !is_start && filter.tables() as u64 > most {
        return Err(Unloadable(format!("{} tables exceed the limit of {most}", filter.tables())));
    }
    Ok(())
}

fn load_own(own: OwnType, version: u32, fields: &mut HostLoads, is_start: bool) -> Result<Value, Unloadable> {
    const KNOWN: u32 = OwnType::VERSION;
    if version != KNOWN {
        return Err(Unloadable(format!("version {version} is not supported, only {KNOWN} is")));
    }
    let (number, bytes) = (fields.unsigned()?, fields.string()?);
    // A partly loaded RedisBloom filter is stored as our own type.
    let loading =
        |form: &Form| own == OwnType::Mayhap && matches!(form, Form::LoadingBloom | Form::LoadingCuckoo);
    let known = u8::try_from(number).ok().and_then(Form::from_number);
    let Some(form) = known.filter(|form| form.is_of(own) || loading(form)) else {
        return Err(Unloadable(format!("unknown form of a filter: {number}")));
    };
    // A filter takes about as much memory as its bytes. Memory that requests add later is checked then.
    if !is_start && bytes.len() as u64 > memory_limit::room() {
        return Err(Unloadable(format!("not enough memory for {} bytes", bytes.len())));
    }
    let (limits, budget, parameters) = (Limits::default(), Budget::default(), settings::parameters());
    let environment = HostEnvironment;
    let context =
        Context { limits: &limits, budget: &budget, parameters: &parameters, environment: &environment };
    let value = Value::load(form, &bytes, &context)?;
    if let Value::Cuckoo(filter) = &value {
        check_tables(filter, is_start)?;
    }
    Ok(value)
}

/// Returns `true` if the host reads its own file or is a replica, and `false` if a client sent the data.
///
/// # Safety
/// The host called a callback with it.
unsafe fn is_loading(io: *mut raw::RedisModuleIO) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { host::flags(call!(RedisModule_GetContextFromIO(io))) & OBEYS != 0 }
}

/// The host follows its own file or its master: nothing is refused because of memory.
const OBEYS: u32 = raw::REDISMODULE_CTX_FLAGS_LOADING | raw::REDISMODULE_CTX_FLAGS_SLAVE;

unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the host calls it to save a value of ours, and nothing else uses the value during the call.
    let (fields, value) = unsafe { (&mut HostSaves::new(io), &mut *value.cast::<Value>()) };
    if guarded("saving a value", || write(value, fields)) != Some(true) {
        give_up_file();
    }
}

/// Aborts a child process that could not write a value, so that the host keeps its old file. A file with half
/// a value cannot be loaded, and a file without it has lost it. If the host itself writes the file, it goes
/// on: it must not end.
fn give_up_file() {
    // SAFETY: may be called at any time; there is no client.
    if unsafe { host::flags(null_mut()) } & raw::REDISMODULE_CTX_FLAGS_IS_CHILD != 0 {
        std::process::abort();
    }
}

/// Writes all fields. Returns `false` if that failed. Exclusive access makes the counts match the bits; the
/// value does not change.
fn write(value: &mut Value, fields: &mut dyn SaveFields) -> bool {
    let written = match value {
        Value::Bloom(filter) if !redis_bloom::is_keyed(filter.uncounted()) => {
            redis_rdb::write_fields(&*filter.get_mut(), fields).map_err(|error| error.to_string())
        }
        Value::Cuckoo(filter) if !redis_cuckoo::is_keyed(filter) => {
            redis_rdb::write_fields(&**filter, fields).map_err(|error| error.to_string())
        }
        value => stored(value).map(|bytes| {
            fields.unsigned(value.form() as u64);
            fields.string(&bytes);
        }),
    };
    if let Err(why) = &written {
        host::log(null_mut(), Level::Warning, &format!("mayhap: a value cannot be saved: {why}"));
    }
    written.is_ok()
}

/// The stored bytes of a value of our own type.
pub(crate) fn stored(value: &mut Value) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    value.store(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

unsafe extern "C" fn rewrite(io: *mut raw::RedisModuleIO, name: HostString, value: *mut c_void) {
    // SAFETY: the host calls it to write a value of ours, and nothing else uses the value during the call.
    let value = unsafe { &mut *value.cast::<Value>() };
    // SAFETY: guaranteed by the host.
    if guarded("rewriting a value", || unsafe { aof::emit(io, name, value) }) != Some(true) {
        give_up_file();
    }
}

unsafe extern "C" fn memory_usage(value: *const c_void) -> usize {
    // SAFETY: the host calls it with a value of ours.
    let value = unsafe { &*value.cast::<Value>() };
    guarded("measuring a value", || usize::try_from(tally::bytes(value)).unwrap_or(usize::MAX)).unwrap_or(0)
}

unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the host calls it with a value of ours, and nothing else uses the value during the call.
    let (mut fields, value) = unsafe { (HostDigest::new(digest), &mut *value.cast::<Value>()) };
    guarded("computing a digest", || {
        write(value, &mut fields);
        fields.end();
    });
}

unsafe extern "C" fn free<const TYPE: u8>(value: *mut c_void) {
    // SAFETY: the host returns the box that it owns, once.
    let value = unsafe { Box::from_raw(value.cast::<Value>()) };
    guarded("freeing a value", || {
        tally::went(Type::ALL[usize::from(TYPE)], tally::bytes(&value));
        drop(value);
    });
}

unsafe extern "C" fn free_effort(_: HostString, value: *const c_void) -> usize {
    // SAFETY: the host calls it with a value of ours.
    let value = unsafe { &*value.cast::<Value>() };
    guarded("measuring a value", || {
        usize::try_from(1 + value.memory_bytes() / FREED_AT_ONCE).unwrap_or(usize::MAX)
    })
    .unwrap_or(1)
}

unsafe extern "C" fn copy(_: HostString, _: HostString, value: *const c_void) -> *mut c_void {
    // SAFETY: the host calls it with a value of ours.
    let value = unsafe { &*value.cast::<Value>() };
    // SAFETY: may be called at any time; there is no client.
    let obeys = unsafe { host::flags(null_mut()) } & OBEYS != 0;
    let has_room = |value: &Value| obeys || tally::bytes(value) <= memory_limit::room();
    match guarded("copying a value", || has_room(value).then(|| value.try_clone())) {
        Some(Some(Ok(value))) => hand_over(value),
        _ => null_mut(),
    }
}

unsafe extern "C" fn defrag(
    ctx: *mut raw::RedisModuleDefragCtx,
    _: HostString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the host passes the place of its pointer to a value of ours. Nothing else uses the value during
    // the call, and the host calls for one value at a time.
    unsafe {
        let mut by = HostDefrag(ctx);
        let mut held = Box::from_raw((*value).cast::<Value>());
        relocate_box(&mut held, &mut by);
        held.relocate(&mut by);
        *value = Box::into_raw(held).cast();
    }
    0
}

/// The host's defragmenter, which can move memory to a better place.
struct HostDefrag(*mut raw::RedisModuleDefragCtx);

// SAFETY: the host copies the bytes into memory of the same size class of its allocator, which is the global
// allocator here, and frees the old memory. The alignment depends on the class. Layouts that are aligned by
// hand are not moved.
unsafe impl Relocate for HostDefrag {
    fn relocate(&mut self, start: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        if !allocator::is_as_it_came(layout) {
            return None;
        }
        // SAFETY: the host called us to defragment, and the memory is the start of a block of the host.
        NonNull::new(unsafe { call!(RedisModule_DefragAlloc(self.0, start.as_ptr().cast())) }.cast())
    }
}
