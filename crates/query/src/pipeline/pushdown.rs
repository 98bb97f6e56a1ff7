//! Divides a pipeline: storage executes its leading filter, sort, skip and limit, and reads only
//! the fields that the rest needs.

use std::collections::BTreeSet;

use super::{Pipeline, dependency};
use crate::filter::Filter;
use crate::sort::Sort;
use crate::stage::Stage;

/// The part of a pipeline that storage executes, in this order: filter, sort, skip, limit.
#[derive(Debug, Clone, Default)]
pub struct Pushdown {
    /// The documents to return; `None` for all.
    pub filter: Option<Filter>,
    /// The order of the documents.
    pub sort: Option<Sort>,
    /// Number of matching documents to skip.
    pub skip: u64,
    /// Maximum number of documents to return after the skipped ones.
    pub limit: Option<u64>,
    /// The paths that the rest of the pipeline reads; `None` when it reads whole documents.
    pub fields: Option<BTreeSet<String>>,
    /// Whether the rest of the pipeline only counts the documents.
    pub counts: bool,
}

impl Pipeline {
    /// Splits off the leading stages that storage can execute.
    #[must_use]
    pub fn split_pushdown(self) -> (Pushdown, Pipeline) {
        let mut pushdown = Pushdown::default();
        let mut rest = self.stages.into_iter().peekable();
        while let Some(Stage::Match(filter)) = rest.next_if(|s| matches!(s, Stage::Match(_))) {
            pushdown.filter = Some(match pushdown.filter {
                None => filter,
                Some(before) => before.and(filter),
            });
        }
        let mut cut = None;
        if let Some(Stage::Sort(sort, limit)) = rest.next_if(|s| matches!(s, Stage::Sort(..))) {
            pushdown.sort = Some(sort);
            cut = limit;
        }
        // The limit of a sort applies before a later `$skip`.
        if let Some(limit) = cut {
            pushdown.limit = Some(limit);
        }
        while let Some(stage) = rest.next_if(|s| matches!(s, Stage::Skip(_) | Stage::Limit(_))) {
            match stage {
                Stage::Skip(skip) => {
                    pushdown.skip = pushdown.skip.saturating_add(skip);
                    pushdown.limit = pushdown.limit.map(|limit| limit.saturating_sub(skip));
                }
                Stage::Limit(limit) => {
                    let known = pushdown.limit.unwrap_or(u64::MAX);
                    pushdown.limit = Some(known.min(limit));
                }
                _ => {}
            }
        }
        let rest = Pipeline {
            stages: rest.collect(),
            settings: self.settings,
            bytes: self.bytes,
        };
        pushdown.counts = matches!(rest.stages.first(), Some(Stage::Count(_)));
        pushdown.fields = dependency::fields(&rest.stages);
        (pushdown, rest)
    }
}
