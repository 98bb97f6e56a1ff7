//! Sorted runs: to be written.

mod meta;

pub(crate) use meta::RunMeta;
