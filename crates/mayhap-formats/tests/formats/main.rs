//! The filters of other programs, read and written: every case of `tests/vectors`, byte for byte and answer for answer, and data that no program ever
//! wrote.
//!
//! Each module prints the number of vectors it ran.

mod any_format;
mod hostile;
mod vectors;

mod bip37;
mod bits_and_blooms;
mod block_filter;
mod cassandra;
mod datasketches;
mod dcso;
mod fast_filter;
mod guava;
mod leveldb;
mod parquet;
mod pybloom_live;
mod pyprobables;
mod rbloom;
mod rdb_file;
mod redis_bloom;
mod redis_cuckoo;
mod redis_rdb;
mod redisson;
mod rocksdb;
mod sbbf;
mod spark;

use mayhap_testkit::alloc_meter::AllocMeter;

#[global_allocator]
static METER: AllocMeter = AllocMeter;
