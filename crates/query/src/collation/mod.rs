//! Collations: how strings compare by the rules of a language.

mod collator;
mod locale;
mod spec;

pub use collator::Collator;
pub use spec::{Alternate, CaseFirst, Collation, MaxVariable};

#[cfg(test)]
mod tests;
