//! Values: their types, their total order, and keys for hash tables.

mod compare;
mod equivalence;
mod view;

pub use crate::kind::{
    rank, rank_raw, truthy, truthy_raw, type_name, type_name_raw, type_number, uuid_raw,
};
pub use compare::{
    compare, compare_mixed, compare_raw, compare_raw_documents, compare_raw_with, compare_with,
};
pub use equivalence::{equivalence_key, equivalence_key_raw};
pub use view::encoded;

#[cfg(test)]
pub(crate) mod random;
#[cfg(test)]
mod tests;
