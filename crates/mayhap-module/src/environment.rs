//! The host's clock, and the system's randomness.

use mayhap_command::Environment;

use crate::host::call;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HostEnvironment;

impl Environment for HostEnvironment {
    fn now_ms(&self) -> u64 {
        // SAFETY: may be called at any time.
        let ms = unsafe { call!(RedisModule_Milliseconds()) };
        u64::try_from(ms).unwrap_or(0)
    }

    /// # Panics
    /// If the system cannot provide random bytes. That does not happen on the systems we support.
    fn random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system provides random bytes");
    }
}
