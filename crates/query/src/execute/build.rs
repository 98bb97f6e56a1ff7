//! Turns the stages of a pipeline into operators that return rows.

use std::sync::Arc;

use super::bucket_auto::BucketAutoRows;
use super::facet::FacetRows;
use super::graph::GraphRows;
use super::group::GroupRows;
use super::lookup::LookupRows;
use super::sample::SampleRows;
use super::simple::{Count, Documents, Limit, Match, Report, Skip, Transformed};
use super::sort::SortRows;
use super::union::UnionRows;
use super::unwind::UnwindRows;
use super::window::WindowRows;
use super::write::{MergeRows, OutRows};
use super::{Rows, Tally};
use crate::pipeline::Pipeline;
use crate::settings::Settings;
use crate::stage::Stage;
use crate::{Error, Result};

/// The rows of `pipeline` over `input`. A first stage that produces documents itself ignores
/// `input`.
///
/// # Errors
/// 40573 for `$changeStream`, which only storage can execute.
pub fn build(pipeline: Pipeline, input: Box<dyn Rows>) -> Result<Box<dyn Rows>> {
    let settings = pipeline.settings().clone();
    let keyed = pipeline.reads_sort_key();
    let mut rows = input;
    for stage in pipeline.into_stages() {
        rows = add(stage, rows, &settings, keyed)?;
    }
    Ok(rows)
}

/// As [`build`], counting the rows of each stage: `tallies` gets one tally per stage.
///
/// # Errors
/// As [`build`].
pub fn build_counted(
    pipeline: Pipeline,
    input: Box<dyn Rows>,
    tallies: &mut Vec<Arc<Tally>>,
) -> Result<Box<dyn Rows>> {
    let settings = pipeline.settings().clone();
    let keyed = pipeline.reads_sort_key();
    let mut rows = input;
    for stage in pipeline.into_stages() {
        let (counted, tally) = Tally::of(add(stage, rows, &settings, keyed)?);
        tallies.push(tally);
        rows = counted;
    }
    Ok(rows)
}

/// The rows of one stage; with `keyed`, a sort attaches the sort key to each row.
fn add(
    stage: Stage,
    input: Box<dyn Rows>,
    settings: &Settings,
    keyed: bool,
) -> Result<Box<dyn Rows>> {
    Ok(match stage {
        Stage::Match(filter) => Box::new(Match { input, filter }),
        Stage::Limit(left) => Box::new(Limit { input, left }),
        Stage::Skip(left) => Box::new(Skip { input, left }),
        Stage::Transform(transform) => Box::new(Transformed::new(input, transform, settings)),
        Stage::Count(field) => Box::new(Count::new(input, field)),
        Stage::Sort(sort, limit) => {
            let rows = SortRows::new(input, sort, limit, settings.collator.clone());
            Box::new(rows.keyed(keyed))
        }
        Stage::Group(group) => Box::new(GroupRows::new(input, group, settings)),
        Stage::BucketAuto(bucket) => Box::new(BucketAutoRows::new(input, bucket, settings)),
        Stage::Unwind(unwind) => Box::new(UnwindRows::new(input, unwind)),
        Stage::Lookup(lookup) => Box::new(LookupRows::new(input, *lookup)),
        Stage::GraphLookup(lookup) => Box::new(GraphRows::new(input, *lookup)),
        Stage::UnionWith(union) => Box::new(UnionRows::new(input, union)),
        Stage::Facet(facet) => Box::new(FacetRows::new(input, facet)),
        Stage::Sample(size) => Box::new(SampleRows::new(input, size)),
        Stage::Window(stage) => {
            let rows = WindowRows::new(input, *stage, settings);
            Box::new(rows.keyed(keyed))
        }
        Stage::Documents(expr) => Box::new(Documents::new(expr, settings)),
        Stage::Statistics(statistics) => Box::new(Report::new(statistics)),
        Stage::Out(out) => Box::new(OutRows::new(input, out)),
        Stage::Merge(merge) => Box::new(MergeRows::new(input, *merge)),
        Stage::ChangeStream(_) => {
            return Err(Error::location(
                40_573,
                "The $changeStream stage is only supported on replica sets, and not by this \
                 server yet",
            ));
        }
    })
}
