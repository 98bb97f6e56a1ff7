//! Stages of a pipeline: their parsed specifications. [`crate::execute`] runs them.

mod bucket;
mod granularity;
mod group;
mod join;
mod kind;
mod merge;
mod options;
mod out;
mod parse;
mod statistics;
#[cfg(test)]
mod tests;
mod unwind;

pub use bucket::BucketAuto;
pub use granularity::Granularity;
pub use group::Group;
pub(crate) use join::bindings;
pub use join::{Facet, GraphLookup, Lookup, SubPipeline, UnionWith};
pub use kind::Stage;
pub use merge::{Merge, MergeOutcome, WhenMatched, WhenNotMatched};
pub use out::{Out, Target};
pub use statistics::Statistics;
pub use unwind::Unwind;

pub use crate::transform::Transform;
