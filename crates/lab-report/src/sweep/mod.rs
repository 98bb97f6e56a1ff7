//! A sweep as a grid: for each step and target the rate, the costs and the state at each cell, and
//! what the series of rates show.
//!
//! - S1. Rates of a load are compared over equal rows: if time stopped a load short of its rows at
//!   any cell, every repeat of that step counts from its start to the most rows that all reach. Not
//!   if the number of rows itself is swept.
//! - S2. A series has all values of one ordered axis, with the values of the other axes fixed. The
//!   plateau of a series is that of the module `analysis::plateau`; all series of a sweep are
//!   judged together.
//! - S3. A cell that was not run, failed, or is invalid has no rate, and its reason.

mod cost;
mod grid;
mod series;

pub use cost::CellCost;
pub use grid::{Grid, Point, StepGrid};
pub use series::Series;

use crate::record::SweepRecord;

/// What the series of a sweep show, a line for each text and the series that share it.
#[must_use]
pub fn findings(record: &SweepRecord) -> Vec<String> {
    let grid = Grid::of(record);
    let lines = grid.findings(record).into_iter();
    lines
        .map(|(series, subject)| format!("{subject}: {}", series.text))
        .collect()
}
