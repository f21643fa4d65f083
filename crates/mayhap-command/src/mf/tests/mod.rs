//! The family as a client sees it.

mod generations;
mod health;
mod kinds;
mod limits;
mod lists;
mod loads;
mod rates;
pub(crate) mod stage;
