//! What one request means for one named filter. The server and the module share it, so that they cannot drift apart.
//!
//! ```text
//! arguments ─▶ table ─▶ Command ─▶ Run ─▶ Slot (one name and what it holds) ─▶ Reply
//! ```
//!
//! * [`table`] has every command once: name, arity, flags, where the names stand, help. Dispatch, `COMMAND`, the module's
//!   registration and `docs/commands.md` read it.
//! * A family ([`bf`], …) parses its arguments and applies them to what one name holds. It never sees a socket, a lock or a log.
//! * [`Refusal`] has every text a client may be refused with, in one place, for clients match on them.
//! * [`Context`] is the world outside: limits, parameters, the clock, randomness. [`Context::admit`] is the one door through which
//!   everything passes that makes or loads a filter.
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
pub mod moment;
pub mod number;
pub mod overfull;
pub mod parameters;
pub mod payload;
mod pipeline;
pub mod refusal;
pub mod reply;
pub mod run;
pub mod server;
pub mod stored;
pub mod syntax;
pub mod table;
pub mod touch;
pub mod value;
mod work;

pub use command::{Access, Arity, Command, Family, Flags, Names};
pub use context::{Budget, Context, Environment, ForNow, Growth, Limits, Promises};
pub use describe::Description;
pub use health::{Assessment, Health};
pub use lost::Lost;
pub use moment::Moment;
pub use overfull::Overfull;
pub use parameters::Parameters;
pub use refusal::Refusal;
pub use reply::Reply;
pub use run::{Batch, Request, Run, Scratch, Slot};
pub use touch::Touch;
pub use value::Value;
