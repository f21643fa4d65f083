//! The commands of mayhap inside a Redis or Valkey server, for users who outgrow one machine: the host
//! provides replication, failover, clusters, RDB and AOF.
//!
//! ```text
//! redis-server --loadmodule /path/of/libmayhap_module.so
//! ```
//!
//! * `register` registers every filter command of `mayhap-command`'s table with the host, with its flags, key
//!   positions and help.
//! * `run` runs one command: it finds the value of the name, calls `mayhap-command`, stores the result and
//!   replies.
//! * `commit` builds a large static set in another thread, so that only the client of `MF.BUILD … COMMIT`
//!   waits.
//! * `effect` decides what is sent to replicas and to the AOF: the request itself if it gives the same filter
//!   everywhere, and otherwise `MF.REDO`, which carries the time, the random bytes and the parameters.
//! * `types` defines the types of values: RedisBloom's two, byte for byte in RDB files, and our own.
//! * `allocator` takes all memory from the host, so that `maxmemory` holds.
//!
//! All unsafe code calls the host's functions, which take and return raw pointers. It is in small functions
//! that state why each call is sound.

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

/// All memory comes from the host.
#[global_allocator]
static ALLOCATOR: allocator::HostAllocator = allocator::HostAllocator;
