//! The number of values and their memory: for `INFO`, and as the used part of the budget.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayhap_command::{Budget, Value};

use crate::types::Type;

/// The memory that all values take, and its limit.
pub(crate) static BUDGET: LazyLock<Budget> = LazyLock::new(Budget::default);

static VALUES: [AtomicU64; Type::ALL.len()] = [const { AtomicU64::new(0) }; Type::ALL.len()];

/// The number of values of this type.
pub(crate) fn values(of: Type) -> u64 {
    VALUES[of as usize].load(Relaxed)
}

/// The memory of a value in bytes, including its box.
pub(crate) fn bytes(value: &Value) -> u64 {
    size_of::<Value>() as u64 + value.memory_bytes()
}

static CHANGES: AtomicU64 = AtomicU64::new(0);

/// The number of changes of values since the start.
pub(crate) fn changes() -> u64 {
    CHANGES.load(Relaxed)
}

/// Counts a change of a value.
pub(crate) fn changed() {
    CHANGES.fetch_add(1, Relaxed);
}

/// Counts a value that was added to the keyspace.
pub(crate) fn came(value: &Value) {
    changed();
    VALUES[Type::of(value) as usize].fetch_add(1, Relaxed);
    BUDGET.book(0, bytes(value));
}

/// Counts a value of this many bytes that was removed from the keyspace.
pub(crate) fn went(of: Type, bytes: u64) {
    changed();
    VALUES[of as usize].fetch_sub(1, Relaxed);
    BUDGET.book(bytes, 0);
}
