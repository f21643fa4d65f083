//! The hand-over of the log in every order in which threads can meet in it, by loom: nobody waits for ever, nothing is lost
//! or turned round, and who is told that something is safe is told the truth.
//!
//! The source of the hand-over is compiled here once more, with loom's locks and numbers in place of the system's.

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

    /// A log with numbers for a disk.
    struct Model {
        handover: Handover,
        /// Numbers in the order in which they were written. Who has it writes.
        written: Mutex<Vec<u64>>,
        safe: Mutex<Vec<u64>>,
    }

    impl Model {
        fn new() -> Arc<Self> {
            let (written, safe) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
            Arc::new(Self { handover: Handover::new(0, 0, 1000), written, safe })
        }

        /// Writes what is pending, as the log's writer does.
        fn write(&self, written: &mut Vec<u64>) {
            if let Ok(taken) = self.handover.take(Vec::new()) {
                written.extend(taken.first..taken.next());
                self.handover.wrote(taken.next());
            }
        }

        /// Appends, has it made safe, and waits for that. `false`: it was told that it cannot be.
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

        /// The thread that syncs; after `syncs` of them the disk fails.
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
    fn everybody_is_told_when_it_is_safe() {
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
    fn everybody_is_told_when_the_disk_failed() {
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

    /// As with `everysec` and `no`: whoever comes first writes for all.
    #[test]
    fn what_is_committed_is_written_whoever_writes_it() {
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

    /// A group is taken whole, whoever writes meanwhile.
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
