//! Compares our log of changes with crates that offer one: the cost of a record, and the number of changes that share one sync.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use mayhap_engine::log::{Commit, Policy};
use mayhap_engine::{Files, Log};

use crate::clock;
use crate::samples::Samples;

/// Settings of the measurement.
#[derive(Parser)]
pub(crate) struct Args {
    /// Rounds of every measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Records written to the system together, like those of a pipeline.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Batches per measurement.
    #[arg(long, default_value_t = 2_000)]
    batches: usize,
    /// Threads that each wait until their record is synced.
    #[arg(long, default_value_t = 50)]
    threads: usize,
    /// Records that each thread waits for, one by one.
    #[arg(long, default_value_t = 40)]
    waits: usize,
}

/// The length of a record for one item and a filter with a short name.
const RECORD: [u8; 40] = [7; 40];

type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// A log that stores records.
trait Keeper: Sync {
    fn name(&self) -> &'static str;
    /// Writes this many records to the system, not necessarily to the disk. Returns `false` if it cannot without a sync.
    fn hand_over(&self, records: usize) -> Result<bool, Trouble>;
    /// Appends one record and waits until it is synced.
    fn keep(&self) -> Result<(), Trouble>;
}

struct Ours {
    written: Arc<Log>,
    safe: Arc<Log>,
}

impl Ours {
    fn new(folder: &Path) -> Result<Self, Trouble> {
        let open = |name: &str, policy| -> Result<Arc<Log>, Trouble> {
            let disk = Arc::new(Files::open(folder.join(name))?);
            Ok(Log::open(disk, 0, policy, |_, _| Ok::<(), io::Error>(()))?.0)
        };
        Ok(Self { written: open("no", Policy::No)?, safe: open("always", Policy::Always)? })
    }
}

impl Keeper for Ours {
    fn name(&self) -> &'static str {
        "mayhap"
    }

    fn hand_over(&self, records: usize) -> Result<bool, Trouble> {
        let mut next = 0;
        for _ in 0..records {
            next = self.written.append(&RECORD) + 1;
        }
        Ok(self.written.commit(next)? == Commit::Done)
    }

    fn keep(&self) -> Result<(), Trouble> {
        let next = self.safe.append(&RECORD) + 1;
        if self.safe.commit(next)? == Commit::Wait {
            self.safe.wait_synced(next)?;
        }
        Ok(())
    }
}

struct OkayWal(okaywal::WriteAheadLog);

impl Keeper for OkayWal {
    fn name(&self) -> &'static str {
        "okaywal"
    }

    fn hand_over(&self, _: usize) -> Result<bool, Trouble> {
        Ok(false)
    }

    fn keep(&self) -> Result<(), Trouble> {
        let mut entry = self.0.begin_entry()?;
        entry.write_chunk(&RECORD)?;
        entry.commit()?;
        Ok(())
    }
}

struct Fjall {
    database: fjall::Database,
    keyspace: fjall::Keyspace,
    next: AtomicU64,
}

impl Fjall {
    fn new(folder: &Path) -> Result<Self, Trouble> {
        let database = fjall::Database::builder(folder).open()?;
        let keyspace = database.keyspace("log", fjall::KeyspaceCreateOptions::default)?;
        Ok(Self { database, keyspace, next: AtomicU64::new(0) })
    }

    fn number(&self) -> [u8; 8] {
        self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }
}

impl Keeper for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn hand_over(&self, records: usize) -> Result<bool, Trouble> {
        let mut batch = self.database.batch();
        (0..records).for_each(|_| batch.insert(&self.keyspace, self.number(), RECORD));
        batch.commit()?;
        self.database.persist(fjall::PersistMode::Buffer)?;
        Ok(true)
    }

    fn keep(&self) -> Result<(), Trouble> {
        self.keyspace.insert(self.number(), RECORD)?;
        self.database.persist(fjall::PersistMode::SyncData)?;
        Ok(())
    }
}

struct Redb {
    database: redb::Database,
    next: AtomicU64,
}

const TABLE: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("log");

impl Redb {
    fn put(&self, records: usize, durability: redb::Durability) -> Result<(), Trouble> {
        let mut write = self.database.begin_write()?;
        write.set_durability(durability)?;
        {
            let mut table = write.open_table(TABLE)?;
            for _ in 0..records {
                table.insert(self.next.fetch_add(1, Ordering::Relaxed), &RECORD[..])?;
            }
        }
        write.commit()?;
        Ok(())
    }
}

impl Keeper for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn hand_over(&self, records: usize) -> Result<bool, Trouble> {
        self.put(records, redb::Durability::None)?;
        Ok(true)
    }

    fn keep(&self) -> Result<(), Trouble> {
        self.put(1, redb::Durability::Immediate)
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let folder = std::env::temp_dir().join(format!("mayhap-bench-logs-{}", std::process::id()));
    let measured = measure(args, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mayhap-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args, folder: &Path) -> Result<(), Trouble> {
    let place = |name: &str| -> Result<PathBuf, Trouble> {
        let place = folder.join(name);
        std::fs::create_dir_all(&place)?;
        Ok(place)
    };
    let keepers: Vec<Box<dyn Keeper>> = vec![
        Box::new(Ours::new(&place("mayhap")?)?),
        Box::new(OkayWal(okaywal::WriteAheadLog::recover(place("okaywal")?, okaywal::LogVoid)?)),
        Box::new(Fjall::new(&place("fjall")?)?),
        Box::new(Redb {
            database: redb::Database::create(place("redb")?.join("redb"))?,
            next: AtomicU64::new(0),
        }),
    ];
    let mut costs = vec![Samples::default(); keepers.len()];
    let mut rates = vec![Samples::default(); keepers.len()];
    for _ in 0..args.rounds {
        for ((keeper, cost), rate) in keepers.iter().zip(&mut costs).zip(&mut rates) {
            let (handed, spent) = clock::time_all_threads(|| -> Result<bool, Trouble> {
                for _ in 0..args.batches {
                    if !keeper.hand_over(args.batch)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            });
            if handed? {
                cost.record(spent.process, args.batches * args.batch);
            }
            let (kept, spent) = clock::time_all_threads(|| keep_together(&**keeper, args));
            kept?;
            rate.record((args.threads * args.waits) as f64 / spent.wall * 1e9, 1);
        }
    }
    println!(
        "{:<10}{:>36}{:>40}",
        "",
        format!("CPU ns per record, {} at a time, no sync", args.batch),
        format!("synced records per second, {} threads", args.threads)
    );
    let (own_cost, own_rate) = (costs[0].median(), rates[0].median());
    let say = |value: Option<f64>, own: Option<f64>| match (value, own) {
        (Some(value), Some(own)) => format!("{value:.0} ({:.2} of ours)", value / own),
        _ => "-".to_owned(),
    };
    for ((keeper, cost), rate) in keepers.iter().zip(&costs).zip(&rates) {
        println!(
            "{:<10}{:>36}{:>40}",
            keeper.name(),
            say(cost.median(), own_cost),
            say(rate.median(), own_rate)
        );
    }
    Ok(())
}

/// Every thread appends one record after the other.
fn keep_together(keeper: &dyn Keeper, args: &Args) -> Result<(), Trouble> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads)
            .map(|_| scope.spawn(|| (0..args.waits).try_for_each(|_| keeper.keep())))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}
