//! The laws, one file for each theme.

pub(crate) mod blind;
pub(crate) mod bound;
pub(crate) mod cursor;
pub(crate) mod insert;
pub(crate) mod many;
pub(crate) mod point;
pub(crate) mod purge;
pub(crate) mod scan;
pub(crate) mod seek;
pub(crate) mod size;
