//! Names that long requests hold. A thread that serves many clients should not wait for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// The names of running requests that take long. There are few.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// Each with the number of requests that hold it.
    names: Mutex<HashMap<Box<[u8]>, usize>>,
    /// The number of names. Can be read without the lock.
    count: AtomicUsize,
}

/// Its names are busy until it is dropped.
#[derive(Debug)]
pub(crate) struct BusyNames<'a> {
    busy: &'a Busy,
    names: Vec<Box<[u8]>>,
}

impl Busy {
    pub(crate) fn add(&self, names: &[&[u8]]) -> BusyNames<'_> {
        let names: Vec<Box<[u8]>> = names.iter().map(|&name| name.into()).collect();
        let mut all = self.names.lock();
        for name in &names {
            *all.entry(name.clone()).or_default() += 1;
        }
        self.count.store(all.len(), Ordering::Relaxed);
        BusyNames { busy: self, names }
    }

    /// Whether any name is busy.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether this name is busy.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.any() && self.names.lock().contains_key(name)
    }
}

impl Drop for BusyNames<'_> {
    fn drop(&mut self) {
        let mut all = self.busy.names.lock();
        for name in &self.names {
            if let Some(count) = all.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    all.remove(name);
                }
            }
        }
        self.busy.count.store(all.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_busy_while_any_request_holds_it() {
        let busy = Busy::default();
        let one = busy.add(&[b"a", b"b"]);
        let other = busy.add(&[b"a"]);
        drop(one);
        assert!(busy.has(b"a") && !busy.has(b"b") && busy.any());
        drop(other);
        assert!(!busy.has(b"a") && !busy.any());
    }
}
