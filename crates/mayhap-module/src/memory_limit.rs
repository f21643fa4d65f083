//! The host's `maxmemory`. The host refuses requests once it is over the limit. A request that would take it
//! far over the limit in one step is refused here. Without `maxmemory` the limit for all filters together is
//! the machine's memory: the system would promise more, and kill the host when the memory is used.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::host::{self, Ctx, call, raw};
use crate::tally::BUDGET;

/// `maxmemory`; 0: no limit.
static MAX_BYTES: AtomicU64 = AtomicU64::new(0);
/// The memory of the machine; 0: unknown.
static MACHINE_BYTES: AtomicU64 = AtomicU64::new(0);
/// Whether the host evicts keys to free memory.
static EVICTS: AtomicBool = AtomicBool::new(false);

/// The memory figures of the host's `INFO`.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    pub(crate) is_jemalloc: bool,
    max_bytes: u64,
    machine_bytes: u64,
    evicts: bool,
}

impl HostMemory {
    /// # Safety
    /// `ctx` is the context of the call that is being served.
    pub(crate) unsafe fn ask(ctx: Ctx) -> Self {
        // SAFETY: guaranteed by the caller.
        let field = |field: &CStr| unsafe { host::info(ctx, c"memory", field) };
        let policy = field(c"maxmemory_policy");
        let number =
            |name: &CStr| String::from_utf8(field(name)).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            is_jemalloc: field(c"mem_allocator").starts_with(b"jemalloc"),
            max_bytes: number(c"maxmemory"),
            machine_bytes: number(c"total_system_memory"),
            evicts: !policy.is_empty() && policy != b"noeviction",
        }
    }

    /// Stores these figures as the current ones.
    pub(crate) fn keep(&self) {
        MAX_BYTES.store(self.max_bytes, Relaxed);
        MACHINE_BYTES.store(self.machine_bytes, Relaxed);
        EVICTS.store(self.evicts, Relaxed);
    }
}

/// Watches for `CONFIG SET maxmemory`.
///
/// # Safety
/// `ctx` is the context with which the module is being loaded.
pub(crate) unsafe fn follow(ctx: Ctx) {
    unsafe extern "C" fn changed(ctx: Ctx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
        // SAFETY: the host passes the context of this event.
        unsafe { HostMemory::ask(ctx) }.keep();
    }
    let event = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_CONFIG, dataver: 1 };
    // SAFETY: guaranteed by the caller. A host without this event returns an error, and then the limit does
    // not change.
    let _: c_int = unsafe { call!(RedisModule_SubscribeToServerEvent(ctx, event, Some(changed))) };
}

/// The number of bytes that may be allocated now.
pub(crate) fn room() -> u64 {
    refresh();
    BUDGET.room()
}

/// Updates the limit for filters from the memory that the host uses now.
pub(crate) fn refresh() {
    let max = MAX_BYTES.load(Relaxed);
    let limit = match (max, EVICTS.load(Relaxed)) {
        (0, _) => MACHINE_BYTES.load(Relaxed),
        // The host evicts keys: refuse only what could never fit.
        (max, true) => max.saturating_add(BUDGET.used()),
        (max, false) => {
            // SAFETY: may be called at any time.
            let ratio = unsafe { call!(RedisModule_GetUsedMemoryRatio()) };
            let room = max as f64 * (1.0 - f64::from(ratio)).max(0.0);
            // A limit of 0 would mean no limit.
            BUDGET.used().saturating_add(room as u64).max(1)
        }
    };
    BUDGET.set_limit(limit);
}
