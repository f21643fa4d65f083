//! The command family from the view of a client.

mod generations;
mod health;
mod kinds;
mod limits;
mod lists;
mod loads;
mod rates;
pub(crate) mod stage;
