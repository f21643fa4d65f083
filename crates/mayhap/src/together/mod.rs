//! Everything in the atomic filters that depends on the order in which threads run: shared bits, shared
//! counters, and claimed room.
//!
//! Bits are set and read with relaxed atomics, which is sufficient. A bit never returns to zero while the
//! filter is shared, and all threads see the changes of one word in the same order. A thread that learns,
//! through a lock, a channel or the end of a thread, that an insert has returned finds the bits of that
//! insert. No other memory is read because of a bit.
//!
//! `tests/together.rs` compiles these files again with loom's atomics in `sync`, and tries all orders in
//! which threads can meet here.

mod bits;
mod insert;
mod room;
mod stripes;
mod sync;

pub(crate) use bits::{set_bits, set_masks};
pub(crate) use insert::{Layer, insert_one, insert_word, places_in};
pub(crate) use room::Room;
pub(crate) use stripes::StripedCount;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_addition_is_lost() {
        let each = if cfg!(miri) { 100 } else { 10_000 };
        let count = StripedCount::new(5);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let count = &count;
                scope.spawn(move || (0..each).for_each(|i| count.add(thread * 7 + i, 1)));
            }
        });
        assert_eq!(count.total(), 4 * each + 5);
    }
}
