//! How many values there are, and what they take: for `INFO`, and as the used part of the budget.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayhap_command::{Budget, Value};

use crate::types::Type;

/// What all values take, and may take.
pub(crate) static BUDGET: LazyLock<Budget> = LazyLock::new(Budget::default);

static VALUES: [AtomicU64; Type::ALL.len()] = [const { AtomicU64::new(0) }; Type::ALL.len()];

/// How many values of this type there are.
pub(crate) fn values(of: Type) -> u64 {
    VALUES[of as usize].load(Relaxed)
}

/// Bytes that a value takes: what it is behind, too.
pub(crate) fn bytes(value: &Value) -> u64 {
    size_of::<Value>() as u64 + value.memory_bytes()
}

static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Changes of values since the start.
pub(crate) fn changes() -> u64 {
    CHANGES.load(Relaxed)
}

/// What a name holds was changed.
pub(crate) fn changed() {
    CHANGES.fetch_add(1, Relaxed);
}

/// A value came into the keyspace.
pub(crate) fn came(value: &Value) {
    changed();
    VALUES[Type::of(value) as usize].fetch_add(1, Relaxed);
    BUDGET.book(0, bytes(value));
}

/// A value left it, which takes so many bytes.
pub(crate) fn went(of: Type, bytes: u64) {
    changed();
    VALUES[of as usize].fetch_sub(1, Relaxed);
    BUDGET.book(bytes, 0);
}
