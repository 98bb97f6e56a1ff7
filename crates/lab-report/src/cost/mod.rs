//! What a run would cost by the month: dated price files, and pure functions from records to
//! dollars.
//!
//! I1: every amount comes with the name and the date of its prices.
//! I2: input and output are priced twice: as *provisioned* (the caps of the run) and as *required*
//! (what the run used); a run that stayed in memory is not charged for what it did not use.
//! I3: what cannot be priced is `None` with the reason, never 0.

mod crossover;
mod estimate;
mod model;
mod render;
#[cfg(test)]
mod tests;

pub use crossover::{Leaders, Span, leaders};
pub use estimate::{Cost, CostLine, CostOptions, Mode, estimate, size_and_rate};
pub use model::{Priced, Requirement, price, price_of};
pub use render::render;
