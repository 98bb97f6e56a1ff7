//! Stages of a pipeline: their parsed specifications. [`crate::execute`] runs them.

mod bucket;
mod granularity;
mod group;
mod join;
mod kind;
mod merge;
mod options;
mod out;
pub(crate) mod parse;
mod statistics;
#[cfg(test)]
mod tests;
mod transform;
mod unwind;

pub use bucket::BucketAuto;
pub use granularity::Granularity;
pub use group::Group;
pub(crate) use join::bindings;
pub use join::{Facet, GraphLookup, Lookup, SubPipeline, UnionWith};
pub use kind::Stage;
pub use merge::{Merge, MergeOutcome, WhenMatched, WhenNotMatched};
pub use out::{Out, Target};
pub(crate) use parse::names;
pub use statistics::Statistics;
pub use transform::Transform;
pub use unwind::Unwind;
