//! What a request does to a named filter. The server and the Redis module share this crate, so their behaviour cannot diverge.
//!
//! ```text
//! arguments ─▶ table ─▶ Command ─▶ Run ─▶ Slot (one key and its value) ─▶ Reply
//! ```
//!
//! * [`table`] has every command once: name, arity, flags, positions of keys, help, and its [`Traits`]. Dispatch, `COMMAND`, users, the
//!   module's registration and `docs/commands.md` read it.
//! * A family ([`bf`], …) parses its arguments and applies them to the value of one key. It never sees a socket, a lock or a log.
//! * [`Refusal`] has every error text in one place, because clients match on them.
//! * [`Context`] is the outside world: limits, parameters, the clock, randomness. Everything that creates or loads a filter goes
//!   through [`Context::admit`].
#![forbid(unsafe_code)]

pub mod args;
pub mod bf;
pub mod bits;
pub mod cf;
pub mod command;
pub mod context;
pub mod describe;
mod duplicate;
pub mod health;
pub mod keyspace;
mod lost;
pub mod mf;
pub mod names;
pub mod number;
pub mod overfull;
pub mod parameters;
pub mod payload;
mod pipeline;
pub mod refusal;
pub mod replayable;
pub mod reply;
pub mod run;
pub mod server;
pub mod stored;
pub mod syntax;
pub mod table;
pub mod touch;
pub mod traits;
pub mod value;
mod work;

pub use command::{Access, Arity, Changes, Command, Family, Flags, Names};
pub use context::{AdmittedGrowth, Budget, Context, Environment, ForNow, Limits, Promises};
pub use describe::Description;
pub use health::{Assessment, Health};
pub use lost::Lost;
pub use overfull::Overfull;
pub use parameters::Parameters;
pub use refusal::Refusal;
pub use replayable::ReplayableEnvironment;
pub use reply::Reply;
pub use run::{Adds, Asks, Ran, Request, Run, Scratch, Slot};
pub use touch::Touch;
pub use traits::Traits;
pub use value::Value;

/// Runs the code of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
