//! Execution of plans: stages that are pulled, item by item.
//!
//! A stage borrows nothing from the store: each call passes it a view ([`Cx`]), and it is notified
//! when that view ends. A cursor can therefore wait for its next `getMore` for any length of time.

mod cx;
mod executor;
mod input;
mod item;
mod output;
mod point;
mod scan;
mod sorter;
mod spill;

pub(crate) use cx::Cx;
pub(crate) use executor::{Executor, Order, Tail};
pub(crate) use input::{Input, Merge, Or};
pub(crate) use item::{Counts, Item, Step};
pub(crate) use output::{Keyed, Output, Records, Shape};
pub(crate) use point::Point;
pub(crate) use scan::{Parts, Scan, Source};
pub(crate) use sorter::{SortLimits, Sorter};
pub(crate) use spill::{SpillFile, SpillPlace};
