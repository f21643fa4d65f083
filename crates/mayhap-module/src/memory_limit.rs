//! The host's `maxmemory`. It refuses requests once it is past; what would take it far past at once is refused here, before. Without one all
//! filters together have at most what the machine has: the system would promise more, and end the host when it is used.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::host::{self, Ctx, call, raw};
use crate::tally::BUDGET;

/// `maxmemory`; 0: none.
static MAX_BYTES: AtomicU64 = AtomicU64::new(0);
/// What the machine has; 0: nobody knows.
static MACHINE_BYTES: AtomicU64 = AtomicU64::new(0);
/// Does the host make room by removing names?
static EVICTS: AtomicBool = AtomicBool::new(false);

/// What the host says of its memory.
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
        // SAFETY: the caller's.
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

    /// From now on this holds.
    pub(crate) fn keep(&self) {
        MAX_BYTES.store(self.max_bytes, Relaxed);
        MACHINE_BYTES.store(self.machine_bytes, Relaxed);
        EVICTS.store(self.evicts, Relaxed);
    }
}

/// Follows `CONFIG SET maxmemory`.
///
/// # Safety
/// `ctx` is the context with which the module is being loaded.
pub(crate) unsafe fn follow(ctx: Ctx) {
    unsafe extern "C" fn changed(ctx: Ctx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
        // SAFETY: the host calls with the context of this event.
        unsafe { HostMemory::ask(ctx) }.keep();
    }
    let event = raw::RedisModuleEvent { id: raw::REDISMODULE_EVENT_CONFIG, dataver: 1 };
    // SAFETY: the caller's. A host that knows no such event answers so, and then the limit stays what it was.
    let _: c_int = unsafe { call!(RedisModule_SubscribeToServerEvent(ctx, event, Some(changed))) };
}

/// Bytes that may be taken now.
pub(crate) fn room() -> u64 {
    refresh();
    BUDGET.room()
}

/// Sets what filters may take from here on by what the host takes by now.
pub(crate) fn refresh() {
    let max = MAX_BYTES.load(Relaxed);
    let limit = match (max, EVICTS.load(Relaxed)) {
        (0, _) => MACHINE_BYTES.load(Relaxed),
        // The host removes what has not been used for long: only what could never fit is refused.
        (max, true) => max.saturating_add(BUDGET.used()),
        (max, false) => {
            // SAFETY: may be called at any time.
            let ratio = unsafe { call!(RedisModule_GetUsedMemoryRatio()) };
            let room = max as f64 * (1.0 - f64::from(ratio)).max(0.0);
            // A limit of 0 means none.
            BUDGET.used().saturating_add(room as u64).max(1)
        }
    };
    BUDGET.set_limit(limit);
}
