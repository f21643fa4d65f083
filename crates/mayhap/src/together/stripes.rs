//! A counter that many threads may bump without fighting over one cache line.

use super::sync::{AtomicU64, Ordering};

const STRIPES: usize = 16;

#[repr(align(128))]
#[derive(Debug, Default)]
struct Stripe(AtomicU64);

/// The sum of sixteen counters, each on cache lines of its own; the item's hash picks the one to bump.
///
/// Boxed: a filter with the counters inside would look changeable as a whole to the compiler, which would then read the
/// filter's measurements from memory again for every lookup (7 ns instead of 5).
#[derive(Debug)]
pub(crate) struct StripedCount(Box<[Stripe; STRIPES]>);

impl StripedCount {
    pub(crate) fn new(count: u64) -> Self {
        let stripes: Box<[Stripe; STRIPES]> = Box::default();
        stripes[0].0.store(count, Ordering::Relaxed);
        Self(stripes)
    }

    #[inline]
    pub(crate) fn add(&self, stripe: u64, amount: u64) {
        self.0[stripe as usize % STRIPES].0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}
