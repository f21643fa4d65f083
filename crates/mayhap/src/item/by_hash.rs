//! Items of any type with `Hash`.

use std::hash::Hash;

use super::Item;
use super::joined::Joined;

/// Makes an item of any value that implements [`Hash`]: an enum, a struct, a set.
///
/// ```
/// use mayhap::{Bloom, ByHash};
///
/// #[derive(Hash)]
/// enum Event {
///     Click { user: u64, at: (u16, u16) },
///     Close,
/// }
///
/// let mut seen = Bloom::new(1_000, 0.01)?;
/// seen.insert(&ByHash(Event::Click { user: 7, at: (10, 20) }));
/// assert!(seen.may_contain(&ByHash(Event::Click { user: 7, at: (10, 20) })));
/// assert!(!seen.may_contain(&ByHash(&Event::Close)));
/// # Ok::<(), mayhap::BuildError>(())
/// ```
///
/// The bytes of the item are all bytes that the value's `Hash` writes. The filter hashes them as it hashes any item.
///
/// * **Within one program only.** The standard library does not promise what its types write, and `#[derive(Hash)]` follows
///   the order of fields and variants. Another version of Rust or of the type may write other bytes. A filter that was
///   saved before then answers *no* for its own items. For files, and for filters that several programs share or merge, use
///   items with a fixed encoding: text, integers, tuples, or an [`Item`] of your own.
/// * **A different item.** `ByHash("ada")` and `"ada"` are two items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByHash<T: ?Sized>(pub T);

impl<T: Hash + ?Sized> Item for ByHash<T> {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let mut written = Joined::new();
        self.0.hash(&mut written);
        read(written.as_bytes())
    }
}
