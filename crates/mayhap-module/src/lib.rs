//! The commands of mayhap inside of a Redis or Valkey server, for those who outgrow one machine: replication, failover, clusters, RDB
//! and AOF are the host's.
//!
//! ```text
//! redis-server --loadmodule /path/of/libmayhap_module.so
//! ```
//!
//! * `register` tells the host every command of `mayhap-command`'s table that is about filters, with its flags, names and help.
//! * `run` runs one: finds what the name holds, asks `mayhap-command`, puts back what became of it, and replies.
//! * `commit` has another thread build a large static set, so that only the client of `MF.BUILD … COMMIT` waits for it.
//! * `effect` is what replicas and the AOF are told: the request itself where that gives the same filter anywhere, and otherwise
//!   `MF.REDO`, which has the time, the randomness and the parameters with it.
//! * `types` are the three types of values: RedisBloom's two, byte for byte in RDB files, and our own.
//! * `allocator` takes all memory from the host, so that `maxmemory` holds.
//!
//! All unsafe code is about the host's functions, which take and give raw pointers. It is in small functions that say why they may.

mod allocator;
mod aof;
mod commit;
mod effect;
mod environment;
mod fields;
mod host;
mod info;
mod load;
mod memory_limit;
mod overfull;
mod register;
mod reply;
mod run;
mod settings;
mod tally;
mod types;

/// All memory is the host's.
#[global_allocator]
static ALLOCATOR: allocator::HostAllocator = allocator::HostAllocator;
