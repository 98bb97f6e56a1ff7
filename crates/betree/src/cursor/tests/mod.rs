//! Cursors and point reads over whole trees, against a model.

mod fixture;
mod laws;
mod merging;
mod speed;
mod town;
mod under_change;
