//! Stages over ordered partitions: `$setWindowFields`, `$fill`, `$densify`.
//!
//! All three hold their input, bring it into the order of partitions and then of `sortBy`, and give
//! it in that order. Functions see one partition at a time, as a slice of documents.

mod bounds;
mod densify;
mod fill;
mod function;
mod moving;
mod partition;
mod place;
mod series;
mod set_fields;
mod slope;
mod stage;

#[cfg(test)]
mod tests;

pub use densify::Densify;
pub use fill::Fill;
pub(crate) use function::names;
pub use set_fields::SetWindowFields;
pub use stage::WindowStage;
