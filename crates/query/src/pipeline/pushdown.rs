//! The leading part of a pipeline that storage can execute: a filter, a sort, skip and limit, a set
//! of fields.

use std::collections::BTreeSet;

use super::{Pipeline, dependency};
use crate::filter::Filter;
use crate::sort::Sort;
use crate::stage::Stage;

/// The part of a pipeline that storage executes, in this order: filter, sort, skip, limit.
#[derive(Debug, Clone, Default)]
pub struct Pushdown {
    /// Which documents.
    pub filter: Option<Filter>,
    /// In which order.
    pub sort: Option<Sort>,
    /// How many of them to leave out.
    pub skip: u64,
    /// How many of the rest to give.
    pub limit: Option<u64>,
    /// The paths that the rest of the pipeline reads; none when it reads whole documents.
    pub fields: Option<BTreeSet<String>>,
    /// Whether the rest of the pipeline only counts the documents.
    pub counts: bool,
}

impl Pipeline {
    /// Takes off the beginning what storage can do.
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
        // The limit of a sort counts before what is skipped after it.
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
        };
        pushdown.counts = matches!(rest.stages.first(), Some(Stage::Count(_)));
        pushdown.fields = dependency::fields(&rest.stages);
        (pushdown, rest)
    }
}
