//! The names of commands that other code refers to. All other names are only in their rows.

/// `BF.MEXISTS`.
pub const BF_MEXISTS: &str = "bf.mexists";
/// `CF.MEXISTS`.
pub const CF_MEXISTS: &str = "cf.mexists";
/// `FLUSHALL`.
pub const FLUSHALL: &str = "flushall";
/// `INFO`.
pub const INFO: &str = "info";
/// `MF.BUILD`.
pub const MF_BUILD: &str = "mf.build";
/// `MF.INFO`.
pub const MF_INFO: &str = "mf.info";
/// `MF.MEXISTS`.
pub const MF_MEXISTS: &str = "mf.mexists";
/// `RESTORE`.
pub const RESTORE: &str = "restore";
/// `SCAN`.
pub const SCAN: &str = "scan";
