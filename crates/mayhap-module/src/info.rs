//! Our part of `INFO`.

use std::ffi::{CStr, c_int};

use crate::host::{Ctx, call, raw};
use crate::overfull;
use crate::tally::{self, BUDGET};
use crate::types::{Type, guarded};

/// # Safety
/// `ctx` is the context with which the module is being loaded.
pub(crate) unsafe fn register(ctx: Ctx) {
    // SAFETY: guaranteed by the caller.
    let _: c_int = unsafe { call!(RedisModule_RegisterInfoFunc(ctx, Some(tell))) };
}

unsafe extern "C" fn tell(info: *mut raw::RedisModuleInfoCtx, _: c_int) {
    let field = |name: &CStr, number: u64| {
        // SAFETY: the host called the callback, and copies the name.
        unsafe { call!(RedisModule_InfoAddFieldULongLong(info, name.as_ptr(), number)) };
    };
    // SAFETY: as above.
    if unsafe { call!(RedisModule_InfoAddSection(info, c"filters".as_ptr())) } == 0 {
        guarded("writing the INFO section", || {
            let (keyed_bloom, keyed_cuckoo) =
                (tally::values(Type::KeyedBloom), tally::values(Type::KeyedCuckoo));
            field(c"bloom_filters", tally::values(Type::Bloom) + keyed_bloom);
            field(c"cuckoo_filters", tally::values(Type::Cuckoo) + keyed_cuckoo);
            field(c"other_filters", tally::values(Type::Mayhap));
            field(c"keyed_bloom_filters", keyed_bloom);
            field(c"keyed_cuckoo_filters", keyed_cuckoo);
            field(c"filters_memory_bytes", BUDGET.used());
            let overfull = overfull::figures();
            field(c"filters_over_capacity", overfull.over_capacity());
            field(c"filters_over_ten_times_target", overfull.over_tenfold + overfull.over_half);
            field(c"filters_over_half", overfull.over_half);
            let (name, worst) = (c"worst_expected_fpr".as_ptr(), overfull.worst_expected_fpr);
            // SAFETY: as above.
            unsafe { call!(RedisModule_InfoAddFieldDouble(info, name, worst)) };
        });
    }
}
