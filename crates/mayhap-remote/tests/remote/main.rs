//! Filters on real servers: alone, in a cluster, while slots move, masters die and generations change.

mod cluster;
mod costs;
mod generations;
mod late;
mod link;
mod losses;
mod ours;
mod routing;
mod single;
mod support;
