//! `WATCH`: notifies watchers that a name was changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

/// All watchers. A writer pays one load while there are none.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    watching: AtomicUsize,
    by_name: Mutex<ByName>,
}

/// The watchers of a name.
type ByName = HashMap<Box<[u8]>, Vec<Arc<AtomicBool>>>;

/// A set of names that are watched until this is dropped.
///
/// It is *disturbed* after one of them was created, changed or removed, or expired.
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

    /// Notifies the watchers of `name`.
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

    /// The watched names.
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

    /// Whether one of the names was changed. [`Engine::execute_transaction`](crate::Engine::execute_transaction)
    /// checks it at the right moment.
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
