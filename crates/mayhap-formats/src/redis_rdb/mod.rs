//! RedisBloom's values in RDB files and `DUMP` payloads.
//!
//! ```text
//! ┌────┬────────────────────────┬────────────────────────────────┬───┬─────────────┬───────────────┐
//! │ 07 │ module id: 81, 8 bytes │ fields: an opcode and a value  │ 0 │ RDB version │ CRC-64, Jones │     lengths big-endian,
//! │    │ type and its version   │ numbers, doubles, strings      │   │ 2           │ 8             │     the rest little-endian
//! └────┴────────────────────────┴────────────────────────────────┴───┴─────────────┴───────────────┘
//! └──────────────── a value in an RDB file ──────────────────────────┘
//!
//! MBbloom--  items, layers, options, growth; for every layer: entries, error, probes, bits per entry, bits, n2, bitmap, items
//! MBbloomCF  tables, buckets, items, deletes, bucket size, max iterations, expansion; for every table: buckets, slots
//! ```
//!
//! | version | `MBbloom--` | `MBbloomCF` |
//! |---|---|---|
//! | 0, 1 | no options, which means a hash of 32 bits: rejected | tables, buckets, items; then the slots of every table, all of the same length |
//! | 2, 3 | no growth; it is 2 | as in versions 0 and 1 |
//! | 4 | as above | as above |
//! | later | rejected: [`DecodeError::NewerModule`] | rejected too |
//!
//! [`read_dump`] reads the reply of `DUMP`, including compressed strings, and [`write_dump`] writes a payload for `RESTORE`. [`read_value`] and
//! [`write_value`] handle only the fields, as in an RDB file. [`FileReader`] reads a whole RDB file. [`read_fields`] and [`write_fields`] are for
//! a module inside Redis, where the host passes one field at a time.
//!
//! Traps:
//! * A server rejects a payload with a newer RDB version than its own: 10 in Redis 7.0, 11 in 7.2, 12 in 7.4 and 8.0. Use 10 for payloads that
//!   any of them should restore.
//! * `DUMP` payloads are limited to 512 MB. Use [`redis_bloom::chunks`] and [`redis_cuckoo::chunks`] for larger filters.
//! * Payloads written here are not compressed. They restore to the same filter, but differ from the bytes that `DUMP` then returns.
//!
//! ```
//! use mayhap_formats::redis_bloom::{self, Scaling};
//! use mayhap_formats::redis_rdb::{self, Value};
//!
//! let mut seen = redis_bloom::create(100, 0.01, Scaling::By(2))?;
//! seen.insert("ada")?;
//! let payload = redis_rdb::write_dump(&seen, 10)?; // RESTORE seen 0 payload
//!
//! let Value::Bloom(same) = redis_rdb::read_dump(&payload, 1 << 20)? else { unreachable!() };
//! assert!(same.may_contain("ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod crc64;
mod fields;
mod file;
mod lzf;

pub use fields::{LoadFields, SaveFields};
pub use file::{Entry, EntryValue, FileReader, RdbFileError};

use std::borrow::Cow;

use mayhap::internals::scalable::Plan;
use mayhap::{BuildError, DecodeError, ScalableBloom, ScalableCuckoo, internals};

use self::crc64::crc64;
use self::fields::{DumpFields, put_end, put_length};
use crate::foreign::{Resemblance, WriteError};
use crate::redis_bloom::{Link, assemble, options};
use crate::redis_cuckoo::CuckooHead;
use crate::{redis_bloom, redis_cuckoo};

/// A RedisBloom value.
#[derive(Debug)]
#[non_exhaustive]
pub enum Value {
    /// A Bloom filter, `MBbloom--`.
    Bloom(ScalableBloom),
    /// A cuckoo filter, `MBbloomCF`.
    Cuckoo(ScalableCuckoo),
}

/// A RedisBloom value to be written.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ValueRef<'a> {
    /// A Bloom filter.
    Bloom(&'a ScalableBloom),
    /// A cuckoo filter.
    Cuckoo(&'a ScalableCuckoo),
}

/// The type of a module's value. Redis identifies it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueType {
    /// `MBbloom--`.
    Bloom,
    /// `MBbloomCF`.
    Cuckoo,
}

/// The newest version of both types. This version is written.
pub const ENCODING_VERSION: u32 = 4;
/// A module's value, in the form that marks its end.
const MODULE_2: u8 = 7;
/// An uncompressed string.
const STRING: u8 = 0;
/// The bits of a module id that hold the version; the others are nine letters of six bits.
const VERSION_BITS: u64 = 0x3ff;
/// RDB version and checksum.
const TRAILER_BYTES: usize = 10;

const DEFAULT_GROWTH: u32 = 2;
const DEFAULT_ITERATIONS: u64 = 20;

impl ValueType {
    /// The nine-letter name in Redis.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "MBbloom--",
            Self::Cuckoo => "MBbloomCF",
        }
    }

    /// The id of the type: its letters and the version of its values.
    fn id(self) -> u64 {
        module_id(self.name(), ENCODING_VERSION)
    }

    /// The type with this id, and the version of the value.
    fn of_id(id: u64) -> Result<(Self, u32), DecodeError> {
        let is = |value_type: &Self| value_type.id() & !VERSION_BITS == id & !VERSION_BITS;
        let value_type = [Self::Bloom, Self::Cuckoo].into_iter().find(is);
        let value_type =
            value_type.ok_or_else(|| DecodeError::OtherModule { name: module_name(id).into() })?;
        Ok((value_type, (id & VERSION_BITS) as u32))
    }
}

/// The 64 letters in the names of module types; each stands for six bits.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The nine letters in the id of a module's type.
fn module_name(id: u64) -> String {
    (0..9).rev().map(|at| char::from(LETTERS[(id >> (10 + 6 * at) & 63) as usize])).collect()
}

/// Nine letters of six bits, and a version.
fn module_id(name: &str, version: u32) -> u64 {
    let number = |letter: u8| LETTERS.iter().position(|&there| there == letter).unwrap_or_default() as u64;
    name.bytes().fold(0, |id, letter| id << 6 | number(letter)) << 10 | u64::from(version)
}

/// A value type of our own that RedisBloom does not have. Readers that do not support it reject it by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OwnType {
    /// `mayhap---`: filters of the `MF.*` family, of any kind.
    Mayhap,
    /// `mayhapBF-`: filters of the `BF.*` family that have a secret key.
    KeyedBloom,
    /// `mayhapCF-`: filters of the `CF.*` family that have a secret key.
    KeyedCuckoo,
}

impl OwnType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Mayhap, Self::KeyedBloom, Self::KeyedCuckoo];
    /// The only version of each type.
    pub const VERSION: u32 = 1;

    /// The nine-letter name in Redis.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mayhap => "mayhap---",
            Self::KeyedBloom => "mayhapBF-",
            Self::KeyedCuckoo => "mayhapCF-",
        }
    }

    fn id(self) -> u64 {
        module_id(self.name(), Self::VERSION)
    }

    /// The type with this id.
    fn of_id(id: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.id() == id)
    }
}

impl<'a> From<&'a ScalableBloom> for ValueRef<'a> {
    fn from(filter: &'a ScalableBloom) -> Self {
        Self::Bloom(filter)
    }
}

impl<'a> From<&'a ScalableCuckoo> for ValueRef<'a> {
    fn from(filter: &'a ScalableCuckoo) -> Self {
        Self::Cuckoo(filter)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Bloom(filter) => Self::Bloom(filter),
            Value::Cuckoo(filter) => Self::Cuckoo(filter),
        }
    }
}

impl ValueRef<'_> {
    /// The kind of value.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::Bloom(_) => ValueType::Bloom,
            Self::Cuckoo(_) => ValueType::Cuckoo,
        }
    }
}

/// Reads the filter in a `DUMP` payload. It takes no more than `limit_bytes`, compressed or not.
///
/// # Errors
/// [`DecodeError`] for anything but an intact payload of a filter that RedisBloom can have made, [`DecodeError::PayloadDamaged`] for a
/// checksum mismatch.
pub fn read_dump(payload: &[u8], limit_bytes: u64) -> Result<Value, DecodeError> {
    match read_payload(payload, limit_bytes)? {
        RdbPayload::RedisBloom(value) => Ok(value),
        RdbPayload::String(_) => {
            Err(DecodeError::BadField { field: "type of the value", got: STRING.into() })
        }
        RdbPayload::Mayhap { of, .. } => Err(DecodeError::OtherModule { name: of.name().into() }),
    }
}

/// The content of a `DUMP` payload.
#[derive(Debug)]
#[non_exhaustive]
pub enum RdbPayload<'a> {
    /// A RedisBloom filter.
    RedisBloom(Value),
    /// A Redis string.
    String(Cow<'a, [u8]>),
    /// A filter of our own server that RedisBloom does not have.
    Mayhap {
        /// The type of the value.
        of: OwnType,
        /// The form of the bytes.
        form: u64,
        /// The bytes.
        bytes: Cow<'a, [u8]>,
    },
}

/// Reads a `DUMP` payload. Its value takes no more than `limit_bytes`, compressed or not.
///
/// # Errors
/// As [`read_dump`].
pub fn read_payload(payload: &[u8], limit_bytes: u64) -> Result<RdbPayload<'_>, DecodeError> {
    let too_short = DecodeError::TooShort { need: TRAILER_BYTES as u64 + 1, got: payload.len() as u64 };
    let Some((body, checksum)) = payload.split_last_chunk::<8>() else { return Err(too_short) };
    let (Some((&value_type, value)), true) = (body.split_first(), body.len() > 2) else {
        return Err(too_short);
    };
    if crc64(body) != u64::from_le_bytes(*checksum) {
        return Err(DecodeError::PayloadDamaged);
    }
    if !matches!(value_type, MODULE_2 | STRING) {
        return Err(DecodeError::BadField { field: "type of the value", got: value_type.into() });
    }
    // The RDB version is ignored: the fields of a module are the same in all versions.
    let mut fields = DumpFields::new(&value[..value.len() - 2], limit_bytes);
    if value_type == STRING {
        let string = fields.raw_string()?;
        internals::check_memory(string.len() as u64, limit_bytes)?;
        fields.end()?;
        return Ok(RdbPayload::String(string));
    }
    let id = fields.length()?;
    if let Some(of) = OwnType::of_id(id) {
        let (form, bytes) = (fields.unsigned()?, fields.string()?);
        internals::check_memory(bytes.len() as u64, limit_bytes)?;
        fields.finish()?;
        return Ok(RdbPayload::Mayhap { of, form, bytes });
    }
    if let Some(own) = OwnType::ALL.into_iter().find(|own| id & !VERSION_BITS == own.id() & !VERSION_BITS) {
        let got = (id & VERSION_BITS) as u32;
        return Err(DecodeError::NewerModule { name: own.name(), got, newest: OwnType::VERSION });
    }
    let (value_type, version) = ValueType::of_id(id)?;
    let value = read_fields(value_type, version, &mut fields, limit_bytes)?;
    fields.finish()?;
    Ok(RdbPayload::RedisBloom(value))
}

/// Returns the `RESTORE` payload of a string, for a server that reads this RDB version.
///
/// # Errors
/// [`BuildError::OutOfMemory`] if the allocation fails.
pub fn write_string_dump(bytes: &[u8], rdb_version: u16) -> Result<Vec<u8>, BuildError> {
    let mut out = payload_of(STRING, bytes.len())?;
    put_length(&mut out, bytes.len() as u64);
    out.extend_from_slice(bytes);
    seal(&mut out, rdb_version);
    Ok(out)
}

/// Returns the payload of a filter that RedisBloom does not have. Our own server restores it: [`RdbPayload::Mayhap`].
///
/// # Errors
/// [`BuildError::OutOfMemory`] if the allocation fails.
pub fn write_mayhap_dump(
    of: OwnType,
    form: u64,
    bytes: &[u8],
    rdb_version: u16,
) -> Result<Vec<u8>, BuildError> {
    let mut out = payload_of(MODULE_2, bytes.len())?;
    put_length(&mut out, of.id());
    out.unsigned(form);
    out.string(bytes);
    put_end(&mut out);
    seal(&mut out, rdb_version);
    Ok(out)
}

/// Begins a payload, with room for `bytes` and the fields around them.
fn payload_of(value_type: u8, bytes: usize) -> Result<Vec<u8>, BuildError> {
    const BESIDES: usize = 64;
    let mut out = Vec::new();
    let refused = |_| BuildError::OutOfMemory { bytes: bytes as u64 };
    out.try_reserve_exact(bytes.saturating_add(BESIDES)).map_err(refused)?;
    out.push(value_type);
    Ok(out)
}

/// Appends the version and the checksum.
fn seal(out: &mut Vec<u8>, rdb_version: u16) {
    out.extend_from_slice(&rdb_version.to_le_bytes());
    let checksum = crc64(out);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Returns the `RESTORE` payload of a filter, for a server that reads this RDB version; 10 is that of Redis 7.0.
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's.
pub fn write_dump<'a>(value: impl Into<ValueRef<'a>>, rdb_version: u16) -> Result<Vec<u8>, WriteError> {
    let value = value.into();
    // Reserved in one step: growing step by step would briefly take twice the memory.
    let bytes = match &value {
        ValueRef::Bloom(filter) => filter.memory_bytes(),
        ValueRef::Cuckoo(filter) => filter.memory_bytes(),
    };
    let mut out = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0).saturating_add(4 << 10));
    out.push(MODULE_2);
    put_length(&mut out, value.value_type().id());
    write_fields(value, &mut out)?;
    put_end(&mut out);
    seal(&mut out, rdb_version);
    Ok(out)
}

/// Reads a filter from all its fields and the end marker, as they follow the module id in an RDB file. The id contains type and version.
///
/// # Errors
/// As [`read_dump`]; there is no checksum.
pub fn read_value(
    value_type: ValueType,
    version: u32,
    bytes: &[u8],
    limit_bytes: u64,
) -> Result<Value, DecodeError> {
    let mut fields = DumpFields::new(bytes, limit_bytes);
    let value = read_fields(value_type, version, &mut fields, limit_bytes)?;
    fields.finish()?;
    Ok(value)
}

/// Returns all fields and the end marker, in version [`ENCODING_VERSION`].
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's.
pub fn write_value<'a>(value: impl Into<ValueRef<'a>>) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    write_fields(value, &mut out)?;
    put_end(&mut out);
    Ok(out)
}

/// Reads a filter from `fields`, saved with this version.
///
/// # Errors
/// [`DecodeError`] for a filter that RedisBloom cannot have made, one larger than `limit_bytes`, a version above 4, and any error of `fields`.
pub fn read_fields<'a>(
    value_type: ValueType,
    version: u32,
    fields: &mut dyn LoadFields<'a>,
    limit_bytes: u64,
) -> Result<Value, DecodeError> {
    if version > ENCODING_VERSION {
        let (name, newest) = (value_type.name(), ENCODING_VERSION);
        return Err(DecodeError::NewerModule { name, got: version, newest });
    }
    match value_type {
        ValueType::Bloom => read_bloom(version, fields, limit_bytes).map(Value::Bloom),
        ValueType::Cuckoo => read_cuckoo(version, fields, limit_bytes).map(Value::Cuckoo),
    }
}

/// Writes the fields to `fields`, in version [`ENCODING_VERSION`].
///
/// # Errors
/// [`WriteError::OtherPlacement`] for a filter that is not RedisBloom's; nothing was written.
pub fn write_fields<'a>(
    value: impl Into<ValueRef<'a>>,
    fields: &mut dyn SaveFields,
) -> Result<(), WriteError> {
    match value.into() {
        ValueRef::Bloom(filter) => write_bloom(filter, fields),
        ValueRef::Cuckoo(filter) => write_cuckoo(filter, fields),
    }
}

/// Returns whether this looks like a `DUMP` payload of one of the two types.
#[must_use]
pub fn resembles(bytes: &[u8]) -> Resemblance {
    let Some((&MODULE_2, value)) = bytes.split_first() else { return Resemblance::No };
    let id = DumpFields::new(value, 0).length();
    match id.map(ValueType::of_id) {
        Ok(Ok(_)) => Resemblance::Surely,
        _ => Resemblance::No,
    }
}

fn narrow(field: &'static str, got: u64) -> Result<u32, DecodeError> {
    u32::try_from(got).map_err(|_| DecodeError::BadField { field, got })
}

fn read_bloom<'a>(
    version: u32,
    fields: &mut dyn LoadFields<'a>,
    limit_bytes: u64,
) -> Result<ScalableBloom, DecodeError> {
    let (items, layers) = (fields.unsigned()?, fields.unsigned()?);
    let options = if version >= 2 { narrow("options", fields.unsigned()?)? } else { 0 };
    let growth = if version >= 4 { narrow("growth", fields.unsigned()?)? } else { DEFAULT_GROWTH };
    if layers == 0 || layers > Plan::RedisBloom.max_layers() as u64 {
        return Err(DecodeError::BadField { field: "number of layers", got: layers });
    }
    let (mut links, mut bitmaps, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
    for _ in 0..layers {
        let (link, bitmap) = read_layer(version, fields)?;
        bytes = bytes.saturating_add(bitmap.len() as u64);
        internals::check_memory(bytes, limit_bytes)?;
        links.push(link);
        bitmaps.push(bitmap);
    }
    let mut filter = assemble(items, options, growth, &links)?;
    for (layer, bitmap) in internals::scalable::layers_mut(&mut filter).iter_mut().zip(bitmaps) {
        internals::bloom::bits_mut(layer).put_le_bytes(0, &bitmap);
    }
    Ok(filter)
}

/// Reads one layer and its bitmap, whose length must match the layer.
fn read_layer<'a>(
    version: u32,
    fields: &mut dyn LoadFields<'a>,
) -> Result<(Link, Cow<'a, [u8]>), DecodeError> {
    let (entries, error) = (fields.unsigned()?, fields.double()?);
    let (probes, bits_per_entry) = (narrow("probes of a layer", fields.unsigned()?)?, fields.double()?);
    let (bits, n2) = match version {
        0 => ((entries as f64 * bits_per_entry) as u64, 0),
        _ => (fields.unsigned()?, fields.unsigned()?),
    };
    let bitmap = fields.string()?;
    let n2 = u8::try_from(n2).map_err(|_| DecodeError::BadField { field: "n2 of a layer", got: n2 })?;
    let bytes = bitmap.len() as u64;
    let link = Link { bytes, bits, items: fields.unsigned()?, error, bits_per_entry, probes, entries, n2 };
    Ok((link, bitmap))
}

fn write_bloom(filter: &ScalableBloom, fields: &mut dyn SaveFields) -> Result<(), WriteError> {
    let options = options(filter)?;
    fields.unsigned(filter.inserted());
    fields.unsigned(filter.layers().len() as u64);
    fields.unsigned(options.into());
    fields.unsigned(filter.shape().growth_factor() as u64);
    for layer in filter.layers() {
        let link = Link::of(layer);
        fields.unsigned(link.entries);
        fields.double(link.error);
        fields.unsigned(link.probes.into());
        fields.double(link.bits_per_entry);
        fields.unsigned(link.bits);
        fields.unsigned(link.n2.into());
        fields.string(&internals::bloom::bits(layer).le_bytes(0, redis_bloom::layer_bytes(layer) as usize));
        fields.unsigned(link.items);
    }
    Ok(())
}

fn read_cuckoo<'a>(
    version: u32,
    fields: &mut dyn LoadFields<'a>,
    limit_bytes: u64,
) -> Result<ScalableCuckoo, DecodeError> {
    let (tables, buckets, items) = (fields.unsigned()?, fields.unsigned()?, fields.unsigned()?);
    let mut head = CuckooHead {
        items,
        buckets,
        deletes: 0,
        tables,
        bucket_size: 0,
        max_iterations: DEFAULT_ITERATIONS,
        expansion: 1,
    };
    let mut first = None;
    if version >= ENCODING_VERSION {
        head.deletes = fields.unsigned()?;
        head.bucket_size = fields.unsigned()?;
        head.max_iterations = fields.unsigned()?;
        head.expansion = fields.unsigned()?;
    } else {
        // Not stored: derived from the length of the first table and its number of buckets.
        let slots = fields.string()?;
        head.bucket_size = (slots.len() as u64).checked_div(buckets).unwrap_or_default();
        first = Some(slots);
    }
    let (shape, all_slots) = head.shape()?;
    internals::check_memory(all_slots, limit_bytes)?;
    let mut read = Vec::new();
    for index in 0..tables {
        let (table, slots) = match first.take() {
            Some(slots) => (buckets, slots),
            None if version < ENCODING_VERSION => (buckets, fields.string()?),
            None => (fields.unsigned()?, fields.string()?),
        };
        if internals::scalable_cuckoo::table_buckets(&shape, index)? != table {
            return Err(DecodeError::BadField { field: "buckets of a table", got: table });
        }
        if table.checked_mul(head.bucket_size) != Some(slots.len() as u64) {
            return Err(DecodeError::BadField { field: "slots of a table", got: slots.len() as u64 });
        }
        read.push(slots);
    }
    // Allocated only after the slots of all tables have been read.
    let mut filter = head.filter()?;
    let mut at = 0;
    for slots in read {
        internals::scalable_cuckoo::put_slots(&mut filter, at, &slots);
        at += slots.len();
    }
    Ok(filter)
}

fn write_cuckoo(filter: &ScalableCuckoo, fields: &mut dyn SaveFields) -> Result<(), WriteError> {
    redis_cuckoo::check(filter)?;
    let head = CuckooHead::of(filter);
    fields.unsigned(head.tables);
    fields.unsigned(head.buckets);
    fields.unsigned(head.items);
    fields.unsigned(head.deletes);
    fields.unsigned(head.bucket_size);
    fields.unsigned(head.max_iterations);
    fields.unsigned(head.expansion);
    for (start, slots) in
        (0..filter.tables()).map(|index| internals::scalable_cuckoo::table_range(filter, index))
    {
        fields.unsigned(slots as u64 / head.bucket_size);
        fields.string(&internals::scalable_cuckoo::slot_bytes(filter, start, slots));
    }
    Ok(())
}
