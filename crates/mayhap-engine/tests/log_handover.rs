//! The hand-over of the log in every interleaving of threads, by loom: no task waits for ever, nothing is
//! lost or reordered, and a record that is reported as safe is safe.
//!
//! The source of the hand-over is compiled here again, with loom's locks and atomics in place of the real
//! ones.

#[path = "../src/log"]
mod log {
    // Each model uses a part of it.
    #![allow(dead_code, unreachable_pub)]

    mod frame;
    mod handover;

    mod sync {
        pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
        pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
    }

    use std::future::poll_fn;
    use std::task::Poll;

    use handover::{Call, FAILED, Handover};
    use loom::future::block_on;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// A log with a list of numbers as its disk.
    struct Model {
        handover: Handover,
        /// The numbers in the order in which they were written. The thread that holds the lock writes.
        written: Mutex<Vec<u64>>,
        safe: Mutex<Vec<u64>>,
    }

    impl Model {
        fn new() -> Arc<Self> {
            let (written, safe) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
            Arc::new(Self { handover: Handover::new(0, 0, 1000), written, safe })
        }

        /// Writes pending records, as the writer of the log does.
        fn write(&self, written: &mut Vec<u64>) {
            if let Ok(taken) = self.handover.take(Vec::new()) {
                written.extend(taken.first..taken.next());
                self.handover.wrote(taken.next());
            }
        }

        /// Appends a record and waits until it is safe. Returns `false` if that failed.
        fn change(&self) -> bool {
            let number = self.handover.append(b"x");
            self.handover.ring(number + 1);
            let safe = block_on(poll_fn(|context| {
                self.handover.poll(number + 1, context, || {
                    if self.handover.synced() > number {
                        Poll::Ready(true)
                    } else if self.handover.flags() & FAILED != 0 {
                        Poll::Ready(false)
                    } else {
                        Poll::Pending
                    }
                })
            }));
            assert_eq!(safe, self.safe.lock().unwrap().contains(&number));
            safe
        }

        /// The thread that syncs. The disk fails after `syncs` syncs.
        fn sync(&self, syncs: usize) {
            let mut done = 0;
            loop {
                match self.handover.wait(done < syncs, None) {
                    Call::Wanted => {}
                    Call::Look => continue,
                    Call::Stop => return,
                }
                let mut written = self.written.lock().unwrap();
                self.write(&mut written);
                let (now, next) = (written.clone(), self.handover.written());
                drop(written);
                done += 1;
                if done == syncs {
                    self.handover.raise(FAILED);
                    continue;
                }
                *self.safe.lock().unwrap() = now;
                self.handover.safe(next);
            }
        }

        fn in_order(&self) -> usize {
            let written = self.written.lock().unwrap();
            assert!(written.iter().copied().eq(0..written.len() as u64), "{written:?}");
            written.len()
        }
    }

    fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(model);
    }

    #[test]
    fn all_tasks_are_woken_when_their_record_is_safe() {
        check(2, || {
            let log = Model::new();
            let syncs = thread::spawn({
                let log = Arc::clone(&log);
                move || log.sync(usize::MAX)
            });
            let other = thread::spawn({
                let log = Arc::clone(&log);
                move || assert!(log.change())
            });
            assert!(log.change());
            other.join().unwrap();
            log.handover.stop();
            syncs.join().unwrap();
            assert_eq!(log.in_order(), 2);
            assert_eq!((log.handover.synced(), log.handover.pending_bytes()), (2, 0));
        });
    }

    #[test]
    fn all_tasks_are_woken_when_the_disk_failed() {
        check(2, || {
            let log = Model::new();
            let syncs = thread::spawn({
                let log = Arc::clone(&log);
                move || log.sync(1)
            });
            let other = thread::spawn({
                let log = Arc::clone(&log);
                move || assert!(!log.change())
            });
            assert!(!log.change());
            other.join().unwrap();
            log.handover.stop();
            syncs.join().unwrap();
        });
    }

    /// As with `everysec` and `no`: the first thread writes for all.
    #[test]
    fn committed_records_are_written_by_whichever_thread() {
        check(2, || {
            let log = Model::new();
            let commit = |log: &Model| {
                let number = log.handover.append(b"x");
                if log.handover.written() <= number {
                    let mut written = log.written.lock().unwrap();
                    if log.handover.written() <= number {
                        log.write(&mut written);
                    }
                }
                assert!(log.written.lock().unwrap().contains(&number));
            };
            let others = [(); 2].map(|()| {
                let log = Arc::clone(&log);
                thread::spawn(move || commit(&log))
            });
            commit(&log);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(log.in_order(), 3);
        });
    }

    /// A group is taken as a whole, whichever thread writes meanwhile.
    #[test]
    fn a_group_stays_together() {
        check(3, || {
            let log = Model::new();
            let other = thread::spawn({
                let log = Arc::clone(&log);
                move || {
                    let mut written = log.written.lock().unwrap();
                    log.write(&mut written);
                    assert!([0, 1, 3].contains(&written.len()), "{written:?}");
                }
            });
            log.handover.append(b"before");
            log.handover.begin_group();
            log.handover.append(b"one");
            log.handover.append(b"two");
            log.handover.end_group();
            other.join().unwrap();
            log.write(&mut log.written.lock().unwrap());
            assert_eq!(log.in_order(), 3);
        });
    }
}
