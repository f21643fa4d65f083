//! `WATCH`: who wants to know whether a name changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

/// All who watch. Costs a writer one load while nobody does.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    watching: AtomicUsize,
    by_name: Mutex<ByName>,
}

/// Everybody who watches a name.
type ByName = HashMap<Box<[u8]>, Vec<Arc<AtomicBool>>>;

/// Some names that are watched until this is dropped.
///
/// It is *disturbed* once one of them was made, changed or removed, or expired.
#[derive(Debug)]
pub struct Watch {
    names: Vec<Box<[u8]>>,
    disturbed: Arc<AtomicBool>,
    watchers: Arc<Watchers>,
}

impl Watchers {
    pub(crate) fn watch(self: &Arc<Self>, names: &[&[u8]]) -> Watch {
        let disturbed = Arc::new(AtomicBool::new(false));
        let mut distinct: Vec<Box<[u8]>> = names.iter().map(|&name| name.into()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut by_name = self.by_name.lock();
        for name in &distinct {
            by_name.entry(name.clone()).or_default().push(Arc::clone(&disturbed));
        }
        self.watching.fetch_add(1, Relaxed);
        Watch { names: distinct, disturbed, watchers: Arc::clone(self) }
    }

    /// `name` changed.
    #[inline]
    pub(crate) fn changed(&self, name: &[u8]) {
        if self.watching.load(Relaxed) > 0 {
            self.disturb(name);
        }
    }

    #[cold]
    fn disturb(&self, name: &[u8]) {
        for disturbed in self.by_name.lock().get(name).into_iter().flatten() {
            disturbed.store(true, Relaxed);
        }
    }

    /// The names that are watched.
    pub(crate) fn names(&self) -> Vec<Box<[u8]>> {
        match self.watching.load(Relaxed) {
            0 => Vec::new(),
            _ => self.by_name.lock().keys().cloned().collect(),
        }
    }
}

impl Watch {
    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }

    /// Was one of the names changed? [`Engine::run_transaction`](crate::Engine::run_transaction) asks when it matters.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.disturbed.load(Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut by_name = self.watchers.by_name.lock();
        for name in &self.names {
            if let Some(watching) = by_name.get_mut(name) {
                watching.retain(|other| !Arc::ptr_eq(other, &self.disturbed));
                if watching.is_empty() {
                    by_name.remove(name);
                }
            }
        }
        self.watchers.watching.fetch_sub(1, Relaxed);
    }
}
