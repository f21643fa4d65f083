//! Memory that a caller moves to a better place.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Moves memory. For a program whose allocator knows a better place for it, such as a module in a server that
/// defragments. A filter's `relocate` offers all its memory to one of these.
///
/// # Safety
/// [`relocate`](Self::relocate) never unwinds. It returns `None` and has changed nothing, or it returns
/// memory of the program's global allocator that was allocated with this layout and has the bytes of the old
/// memory, and has freed the old memory.
pub unsafe trait Relocate {
    /// Moves this memory if another place is better.
    fn relocate(&mut self, start: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>>;
}

/// Offers the memory of a box to `by`; not the memory its content points to.
pub fn relocate_box<T>(held: &mut Box<T>, by: &mut dyn Relocate) {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return;
    }
    let start = NonNull::from(&mut **held);
    if let Some(moved) = by.relocate(start.cast(), layout) {
        // SAFETY: by the contract of `Relocate` this memory is like that of a box of `T`, with the same
        // bytes, and the old memory is freed. Writing over the old box forgets it without dropping it.
        // Nothing unwinds in between.
        unsafe { std::ptr::write(held, Box::from_raw(moved.cast().as_ptr())) };
    }
}

/// Offers the memory of a vector to `by`; not the memory its elements point to.
pub(crate) fn relocate_vec<T>(held: &mut Vec<T>, by: &mut dyn Relocate) {
    let Ok(layout) = Layout::array::<T>(held.capacity()) else { return };
    let Some(start) = NonNull::new(held.as_mut_ptr()).filter(|_| layout.size() > 0) else { return };
    if let Some(moved) = by.relocate(start.cast(), layout) {
        let old = ManuallyDrop::new(std::mem::take(held));
        // SAFETY: by the contract of `Relocate` this memory is like that of a vector of this capacity, with
        // the same bytes, and the old memory is freed. The old vector is forgotten, not dropped.
        *held = unsafe { Vec::from_raw_parts(moved.cast().as_ptr(), old.len(), old.capacity()) };
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{alloc, dealloc};

    use super::*;

    /// Always moves the memory, and overwrites the old memory.
    #[derive(Debug, Default)]
    struct Mover {
        moved: usize,
    }

    // SAFETY: returns memory of the same layout from the global allocator with the same bytes, and frees the
    // old memory.
    unsafe impl Relocate for Mover {
        fn relocate(&mut self, start: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
            // SAFETY: the layout is not empty. Both memories are valid for its size, and the old one came
            // from the same allocator.
            unsafe {
                let new = NonNull::new(alloc(layout))?;
                std::ptr::copy_nonoverlapping(start.as_ptr(), new.as_ptr(), layout.size());
                start.write_bytes(0xa5, layout.size());
                dealloc(start.as_ptr(), layout);
                self.moved += 1;
                Some(new)
            }
        }
    }

    #[test]
    fn relocated_filters_answer_as_before() -> Result<(), Box<dyn std::error::Error>> {
        let mut mover = Mover::default();
        let mut bloom = crate::ScalableBloom::for_capacity(100, 0.01, 1)?;
        let mut cuckoo = crate::ScalableCuckoo::for_capacity(64, 1)?;
        for item in 0..2_000_u64 {
            bloom.insert(&item)?;
            cuckoo.insert_copy(&item)?;
        }
        let before = (bloom.encode(), cuckoo.encode());
        bloom.relocate(&mut mover);
        cuckoo.relocate(&mut mover);
        assert!(mover.moved > bloom.layers().len() + 2, "{mover:?}");
        assert_eq!((bloom.encode(), cuckoo.encode()), before);
        // Every table of this filter has memory of its own, and all of it is offered.
        let mut tables = crate::ScalableCuckoo::for_capacity(8_192, 1)?;
        (0..4).try_for_each(|_| tables.add_table())?;
        tables.insert_copy("ada")?;
        let (before, moved) = (tables.encode(), mover.moved);
        tables.relocate(&mut mover);
        assert_eq!(mover.moved - moved, 5 + 2, "five tables, and two lists");
        assert_eq!(tables.encode(), before);
        for item in 2_000..4_000_u64 {
            bloom.insert(&item)?;
            cuckoo.insert_copy(&item)?;
        }
        assert!((0..4_000_u64).all(|item| bloom.may_contain(&item) && cuckoo.may_contain(&item)));
        Ok(())
    }

    #[test]
    fn relocated_boxes_and_vectors_keep_their_contents() {
        let mut mover = Mover::default();
        let mut held = Box::new([7_u64; 9]);
        relocate_box(&mut held, &mut mover);
        let mut list = vec!["a".to_owned(), "b".to_owned()];
        list.reserve(9);
        relocate_vec(&mut list, &mut mover);
        let (mut empty, mut nothing) = (Vec::<u64>::new(), Box::new(()));
        relocate_vec(&mut empty, &mut mover);
        relocate_box(&mut nothing, &mut mover);
        list.push("c".to_owned());
        assert_eq!((*held, list.concat(), mover.moved), ([7; 9], "abc".to_owned(), 2));
    }
}
