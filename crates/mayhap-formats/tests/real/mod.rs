//! Real programs of others, and their input.

// Every test binary compiles this module for itself, and uses a part of it.
#![allow(dead_code, unused_imports)]

pub(crate) mod items;
pub(crate) mod redis;

pub(crate) use mayhap_testkit::real::{Folder, PATIENCE, Running, find, run};
