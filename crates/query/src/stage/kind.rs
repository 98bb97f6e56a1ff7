//! The stages of pipelines.

use bson::Document;

use super::{
    BucketAuto, Facet, GraphLookup, Group, Lookup, Merge, Out, Statistics, Transform, UnionWith,
    Unwind,
};
use crate::expr::Expr;
use crate::filter::Filter;
use crate::sort::Sort;
use crate::window::WindowStage;

/// One stage, parsed.
///
/// A stage that is an abbreviation is already replaced: `$bucket` and `$sortByCount` by `$group`
/// and `$sort`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Stage {
    /// `$match`.
    Match(Filter),
    /// `$sort`, and the number of documents to return; `None` for all.
    Sort(Sort, Option<u64>),
    /// `$limit`.
    Limit(u64),
    /// `$skip`.
    Skip(u64),
    /// `$project`, `$addFields`, `$set`, `$unset`, `$replaceRoot`, `$replaceWith`, `$redact`.
    Transform(Transform),
    /// `$group`.
    Group(Group),
    /// `$count`, with the name of the result field.
    Count(String),
    /// `$unwind`.
    Unwind(Unwind),
    /// `$lookup`.
    Lookup(Box<Lookup>),
    /// `$graphLookup`.
    GraphLookup(Box<GraphLookup>),
    /// `$unionWith`.
    UnionWith(UnionWith),
    /// `$facet`.
    Facet(Facet),
    /// `$bucketAuto`.
    BucketAuto(BucketAuto),
    /// `$out`.
    Out(Out),
    /// `$merge`.
    Merge(Box<Merge>),
    /// `$sample`, with the number of documents.
    Sample(u64),
    /// `$setWindowFields`, `$fill`, `$densify`.
    Window(Box<WindowStage>),
    /// `$documents`, with the expression of the array of documents.
    Documents(Expr),
    /// `$collStats`, `$indexStats`, `$currentOp` and others that report on the server.
    Statistics(Statistics),
    /// `$changeStream`, with its options.
    ChangeStream(Document),
}

impl Stage {
    /// The name of the stage, with its dollar, as explain shows it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Stage::Match(_) => "$match",
            Stage::Sort(..) => "$sort",
            Stage::Limit(_) => "$limit",
            Stage::Skip(_) => "$skip",
            Stage::Transform(transform) => transform.name(),
            Stage::Group(_) => "$group",
            Stage::Count(_) => "$count",
            Stage::Unwind(_) => "$unwind",
            Stage::Lookup(_) => "$lookup",
            Stage::GraphLookup(_) => "$graphLookup",
            Stage::UnionWith(_) => "$unionWith",
            Stage::Facet(_) => "$facet",
            Stage::BucketAuto(_) => "$bucketAuto",
            Stage::Out(_) => "$out",
            Stage::Merge(_) => "$merge",
            Stage::Sample(_) => "$sample",
            Stage::Window(window) => window.name(),
            Stage::Documents(_) => "$documents",
            Stage::Statistics(statistics) => statistics.name(),
            Stage::ChangeStream(_) => "$changeStream",
        }
    }

    /// Whether the stage produces documents itself: it must come first, and it reads no collection.
    #[must_use]
    pub fn is_source(&self) -> bool {
        matches!(
            self,
            Stage::Documents(_) | Stage::Statistics(_) | Stage::ChangeStream(_)
        )
    }

    /// Whether the stage sorts all documents.
    #[must_use]
    pub fn sorts(&self) -> bool {
        matches!(self, Stage::Sort(..))
    }

    /// Whether the stage writes to a collection, so that it must come last.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(self, Stage::Out(_) | Stage::Merge(_))
    }
}
