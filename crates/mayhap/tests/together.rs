//! The atomic filters in every possible interleaving of threads, by loom: an item whose insert returned is found by every thread that learned of it, at
//! least one thread is told that it was new, no layer counts more items than it has room for, and growth loses nothing. Faulty variants of the steps
//! are detected.
//!
//! The sources of those steps are compiled here again, with loom's atomics in place of the system's. Filters have two words and two bits per item.

#[path = "../src/together"]
mod together {
    // Each model uses a part of it.
    #![allow(dead_code, unreachable_pub)]

    mod bits;
    mod insert;
    mod room;
    mod stripes;

    mod sync {
        pub(super) use loom::sync::atomic::{AtomicU64, Ordering};

        pub(super) fn take(number: &mut AtomicU64) -> u64 {
            number.with_mut(std::mem::take)
        }
    }

    use std::panic::{AssertUnwindSafe, catch_unwind};

    use loom::sync::atomic::AtomicBool;
    use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use loom::sync::{Arc, RwLock};
    use loom::thread;

    use bits::{set_bits, set_masks};
    use insert::{Layer, insert_one, insert_word};
    use room::Room;
    use stripes::StripedCount;
    use sync::AtomicU64;

    /// An item is its two bits. These share one of them.
    type Item = [u64; 2];
    const A: Item = [3, 64];
    const B: Item = [64, 5];

    /// How a filter is spoiled.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Spoilt {
        Not,
        /// Bits are set by a load and a store.
        Bits,
        /// Room is claimed by a load and an addition.
        Room,
        /// Items inserted through `&self` are forgotten when the filter grows.
        Growth,
        /// A thread that waits for an insert is notified without memory ordering.
        Told,
    }

    /// The bits of a filter.
    struct Words {
        words: Vec<AtomicU64>,
        spoilt: Spoilt,
    }

    impl Words {
        fn new(spoilt: Spoilt) -> Self {
            Self { words: (0..2).map(|_| AtomicU64::new(0)).collect(), spoilt }
        }
    }

    impl Layer for Words {
        type Hash = Item;

        fn prefetch(&self, _: Item) {}

        /// The relaxed loads that `Bits::next` makes.
        fn holds(&self, item: Item) -> bool {
            let bit = |at: &u64| self.words[(at / 64) as usize].load(Relaxed) >> (at % 64) & 1 == 1;
            item.iter().all(bit)
        }

        fn set(&self, item: Item) -> bool {
            if self.spoilt != Spoilt::Bits {
                return set_bits(&self.words, item.into_iter());
            }
            let mut changed = false;
            for at in item {
                let (word, bit) = (&self.words[(at / 64) as usize], 1 << (at % 64));
                let before = word.load(Relaxed);
                word.store(before | bit, Relaxed);
                changed |= before & bit == 0;
            }
            changed
        }
    }

    /// `Shared`: looks, then sets, then counts.
    struct Filter {
        words: Words,
        inserted: StripedCount,
    }

    impl Filter {
        fn new(spoilt: Spoilt) -> Arc<Self> {
            Arc::new(Self { words: Words::new(spoilt), inserted: StripedCount::new(0) })
        }

        fn insert(&self, item: Item) -> bool {
            let new = !self.words.holds(item) && self.words.set(item);
            if new {
                self.inserted.add(item[0], 1);
            }
            new
        }
    }

    /// A layer, and the number of items it counted while it was not shared.
    type Full = (Words, u64);

    /// `AtomicScalableBloom`: a chain of layers that have room for one item each.
    struct Chain {
        older: Vec<Full>,
        newest: Full,
        counted: Room,
        spoilt: Spoilt,
    }

    const ROOM: u64 = 1;

    impl Chain {
        fn new(spoilt: Spoilt) -> Self {
            Self { older: Vec::new(), newest: (Words::new(spoilt), 0), counted: Room::new(), spoilt }
        }

        fn holds(&self, item: Item) -> bool {
            self.newest.0.holds(item) || self.older.iter().any(|(layer, _)| layer.holds(item))
        }

        /// Inserts through `&self`. `None`: it needs another layer.
        fn insert(&self, item: Item) -> Option<bool> {
            if self.holds(item) {
                return Some(false);
            }
            let mut new = 0;
            let left = ROOM - self.newest.1;
            let done = match self.spoilt {
                Spoilt::Room => {
                    if self.counted.taken() >= left {
                        return None;
                    }
                    let changed = self.newest.0.set(item);
                    self.counted.claim(u64::from(changed), u64::MAX);
                    new = u64::from(changed);
                    1
                }
                // One of the two as a batch, so that each meets the other.
                _ if item == B => return insert_one(&self.newest.0, &self.counted, left, item),
                _ => insert_word(&self.newest.0, &self.counted, left, &[item], 1, &mut new),
            };
            (done == 1).then_some(new == 1)
        }

        /// Inserts with exclusive access.
        fn insert_alone(&mut self, item: Item) -> bool {
            let counted = self.counted.take();
            if self.spoilt != Spoilt::Growth {
                self.newest.1 += counted;
            }
            if self.holds(item) {
                return false;
            }
            if self.newest.1 >= ROOM {
                let full = std::mem::replace(&mut self.newest, (Words::new(self.spoilt), 0));
                self.older.push(full);
            }
            let new = self.newest.0.set(item);
            self.newest.1 += u64::from(new);
            new
        }

        fn inserted(&self) -> u64 {
            self.older.iter().map(|(_, count)| count).sum::<u64>() + self.newest.1 + self.counted.taken()
        }
    }

    /// As the engine does it: together with others, and alone if it has to grow.
    fn insert(chain: &RwLock<Chain>, item: Item) -> bool {
        let together = chain.read().unwrap().insert(item);
        together.unwrap_or_else(|| chain.write().unwrap().insert_alone(item))
    }

    fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// The model must fail.
    fn is_caught(model: impl Fn() + Send + Sync + 'static) {
        assert!(
            catch_unwind(AssertUnwindSafe(|| check(model))).is_err(),
            "a faulty variant was not detected"
        );
    }

    fn spawn<T: 'static>(work: impl FnOnce() -> T + 'static) -> thread::JoinHandle<T> {
        thread::spawn(work)
    }

    /// Two threads insert two items that share a bit; a third queries as soon as it learned that one insert had returned.
    fn who_learned_of_an_insert(spoilt: Spoilt) {
        let (filter, told) = (Filter::new(spoilt), Arc::new(AtomicBool::new(false)));
        let order = if spoilt == Spoilt::Told { Relaxed } else { Release };
        let first = spawn({
            let (filter, told) = (Arc::clone(&filter), Arc::clone(&told));
            move || {
                filter.insert(A);
                told.store(true, order);
            }
        });
        let other = spawn({
            let filter = Arc::clone(&filter);
            move || filter.insert(B)
        });
        if told.load(Acquire) {
            assert!(filter.words.holds(A), "an item whose insert had returned");
        }
        first.join().unwrap();
        other.join().unwrap();
        assert!(filter.words.holds(A) && filter.words.holds(B), "an item is lost");
    }

    #[test]
    fn a_thread_that_learned_of_an_insert_finds_the_item() {
        check(|| who_learned_of_an_insert(Spoilt::Not));
        is_caught(|| who_learned_of_an_insert(Spoilt::Bits));
        is_caught(|| who_learned_of_an_insert(Spoilt::Told));
    }

    /// An item found by one thread is found by another that learned of it, even if the insert itself has not returned.
    #[test]
    fn an_item_found_once_is_found_from_then_on() {
        check(|| {
            let (filter, told) = (Filter::new(Spoilt::Not), Arc::new(AtomicBool::new(false)));
            let inserts = spawn({
                let filter = Arc::clone(&filter);
                move || filter.insert(A)
            });
            let finds = spawn({
                let (filter, told) = (Arc::clone(&filter), Arc::clone(&told));
                move || told.store(filter.words.holds(A), Release)
            });
            if told.load(Acquire) {
                assert!(filter.words.holds(A));
            }
            inserts.join().unwrap();
            finds.join().unwrap();
        });
    }

    #[test]
    fn one_of_two_threads_that_insert_the_same_item_is_told_it_is_new() {
        check(|| {
            let filter = Filter::new(Spoilt::Not);
            let other = spawn({
                let filter = Arc::clone(&filter);
                move || filter.insert(A)
            });
            let told = [filter.insert(A), other.join().unwrap()];
            let new = told.iter().filter(|&&new| new).count() as u64;
            assert!(new >= 1, "no thread was told that it was new");
            assert_eq!(filter.inserted.total(), new);
            assert!(filter.words.holds(A) && !filter.insert(A));
        });
    }

    /// The blocked filter sets whole words; its items have all their bits side by side.
    #[test]
    fn masks_lose_no_bits_and_each_change_is_reported_once() {
        check(|| {
            let words: Arc<Vec<AtomicU64>> = Arc::new((0..2).map(|_| AtomicU64::new(0)).collect());
            let other = spawn({
                let words = Arc::clone(&words);
                move || set_masks(&words, &[0b011, 0b1])
            });
            let changed = [set_masks(&words, &[0b011, 0b1]), other.join().unwrap()];
            assert!(changed[0] || changed[1]);
            assert!(!set_masks(&words, &[0b001, 0b1]) && set_masks(&words, &[0b100, 0]));
            assert_eq!(words.iter().map(|word| word.load(Relaxed)).collect::<Vec<_>>(), [0b111, 0b1]);
        });
    }

    /// Two threads insert, with room for one item in the first layer: both items are found afterwards, and no layer is overfull.
    fn growth(spoilt: Spoilt, others: Item) {
        let chain = Arc::new(RwLock::new(Chain::new(spoilt)));
        let other = spawn({
            let chain = Arc::clone(&chain);
            move || {
                let new = insert(&chain, others);
                assert!(chain.read().unwrap().holds(others), "lost directly after the insert");
                new
            }
        });
        let mine = insert(&chain, A);
        assert!(chain.read().unwrap().holds(A), "lost directly after the insert");
        let new = u64::from(mine) + u64::from(other.join().unwrap());
        let chain = chain.read().unwrap();
        assert!(chain.holds(A) && chain.holds(others), "an item is lost");
        assert!(new >= 1, "no thread was told that it was new");
        assert_eq!(chain.inserted(), new, "reported as new {new} times");
        assert!(chain.newest.1 + chain.counted.taken() <= ROOM, "a layer has more than it was made for");
        assert!(chain.older.iter().all(|(_, count)| *count == ROOM));
    }

    #[test]
    fn growth_loses_nothing_and_no_layer_is_overfilled() {
        check(|| growth(Spoilt::Not, B));
        check(|| growth(Spoilt::Not, A));
        is_caught(|| growth(Spoilt::Room, B));
        is_caught(|| growth(Spoilt::Growth, B));
    }

    /// Of a batch that does not fit completely, the inserted items are counted once, whatever other threads insert at the same time.
    #[test]
    fn a_batch_stops_where_the_room_ends() {
        const C: Item = [7, 70];
        check(|| {
            let (words, room) = (Arc::new(Words::new(Spoilt::Not)), Arc::new(Room::new()));
            let work = |items: [Item; 2]| {
                let (words, room) = (Arc::clone(&words), Arc::clone(&room));
                move || {
                    let mut new = 0;
                    let done = insert_word(&*words, &room, 2, &items, 0b11, &mut new);
                    assert!(
                        items[..done].iter().all(|&item| words.holds(item)),
                        "reported as done without its bits"
                    );
                    u64::from(new.count_ones())
                }
            };
            let other = spawn(work([A, C]));
            let new = work([A, [9, 90]])() + other.join().unwrap();
            assert_eq!(room.taken(), new);
            assert!(new <= 2, "{new} items in room for two");
        });
    }
}
