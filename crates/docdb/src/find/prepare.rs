//! Prepares a `find`: parses it, plans it and chooses a plan.

use std::sync::Arc;

use bson::{Bson, Document, RawDocument};
use query::filter::{Filter, Node};
use query::meter::Held;
use query::projection::Projection;
use query::settings::Settings;
use query::sort::Sort;
use query::{Code, Error, Result};

use super::build::{Purpose, SORT_MEMORY, build};
use super::choose::choose;
use super::express::Express;
use super::request::FindRequest;
use super::settings::{Collated, hint, natural};
use crate::collection::Collection;
use crate::exec::{Executor, Order, SpillPlace, Tail};
use crate::plan::{Access, Candidate, Hint, Plans, Request, Space, candidates};
use crate::txn::{Op, View};
use crate::variables::Let;

/// A query of one collection, parsed.
pub(crate) struct Query {
    /// The collection's indexes, as the planner sees them.
    pub(crate) space: Arc<Space>,
    /// The collation of the query.
    pub(crate) collated: Collated,
    /// The parts that execution needs.
    pub(crate) purpose: Purpose,
    hint: Option<Hint>,
    min: Option<Document>,
    max: Option<Document>,
    /// The only paths read of a document; `None` for all.
    needed: Option<Vec<String>>,
}

/// The chosen plan and its alternatives.
pub(crate) struct Planned {
    /// The plans that were tried.
    pub(crate) candidates: Vec<Candidate>,
    /// The index of the chosen plan.
    pub(crate) chosen: usize,
    /// The memory of the plans.
    held: Held,
}

impl Planned {
    /// The chosen plan.
    pub(crate) fn candidate(&self) -> &Candidate {
        self.candidates
            .get(self.chosen)
            .expect("the choice is among the candidates")
    }

    /// The memory of the chosen plan alone, for its executor.
    ///
    /// # Errors
    /// The budget refuses it.
    fn into_held(mut self) -> Result<Held> {
        let bytes = self.candidate().access.bytes();
        self.held.require("A query plan", bytes)?;
        Ok(self.held)
    }
}

impl Query {
    /// A query for all documents that `filter` matches, in no particular order.
    pub(crate) fn plain(
        op: &Op<'_>,
        collection: &Collection,
        filter: &RawDocument,
        collation: Option<&RawDocument>,
        variables: Option<&Let>,
    ) -> Result<Query> {
        let space = collection.space()?;
        let collated = Collated::of(collation, Some(&space))?;
        let settings = collated.settings(op, variables)?;
        let filter = Arc::new(Filter::parse(filter, &settings)?);
        Ok(Query::of_filter(space, collated, filter))
    }

    /// A query for all documents that `filter` matches, in no particular order.
    pub(crate) fn of_filter(space: Arc<Space>, collated: Collated, filter: Arc<Filter>) -> Query {
        Query {
            purpose: Purpose {
                filter,
                sort: None,
                collator: collated.collator.clone(),
                tail: Tail::default(),
                records_only: false,
                kept: None,
                projection: None,
                spill: None,
                memory: SORT_MEMORY,
                tailable: false,
                once: false,
                express: None,
            },
            space,
            collated,
            hint: None,
            min: None,
            max: None,
            needed: None,
        }
    }

    /// The query of a `find` request.
    pub(crate) fn of_find(
        op: &Op<'_>,
        collection: &Collection,
        request: &FindRequest,
        spill: &SpillPlace,
    ) -> Result<Query> {
        let mut query = Query::plain(
            op,
            collection,
            &request.filter,
            request.collation.as_deref(),
            request.variables.as_ref(),
        )?;
        let settings = query.collated.settings(op, request.variables.as_ref())?;
        query.hint = hint(request.hint.as_ref())?;
        query.min.clone_from(&request.min);
        query.max.clone_from(&request.max);
        if let Some(sort) = &request.sort {
            query.set_sort(sort)?;
        }
        if let Some(projection) = request.projection.as_deref().filter(|p| !p.is_empty()) {
            let filter = &query.purpose.filter;
            let parsed = parse_projection(projection, &settings, filter, request)?;
            query.set_projection(parsed, projection)?;
        }
        if request.tailable && query.purpose.sort.is_some() {
            return Err(Error::bad_value(
                "cannot use tailable option with a sort other than {$natural: 1}",
            ));
        }
        query.purpose.tailable = request.tailable;
        if request.batch_size.is_none() {
            query.purpose.express = Some(Express::read(collection));
        }
        query.purpose.tail.skip = request.skip;
        query.purpose.tail.limit = request.limit;
        // With `returnKey` only the key is returned.
        query.purpose.tail.record_id = request.show_record_id && !request.return_key;
        query.purpose.tail.return_key = request.return_key;
        if request.show_record_id || request.return_key {
            query.needed = None;
            query.purpose.kept = None;
        }
        if request.allow_disk_use {
            query.purpose.spill = Some(spill.clone());
        }
        Ok(query)
    }

    /// Set the sort order. `{$natural: 1}` is treated as a hint.
    pub(crate) fn set_sort(&mut self, sort: &RawDocument) -> Result<()> {
        if let Some(direction) = sort.get("$natural")? {
            let direction = Bson::try_from(direction)?;
            let backward = natural(&direction)?;
            if 1 < sort.iter_elements().count() {
                let message = "Cannot include '$natural' in compound sort";
                return Err(Error::bad_value(message));
            }
            self.hint = Some(Hint::Natural { backward });
            return Ok(());
        }
        let sort = Sort::parse(sort)?;
        if !sort.is_empty() {
            self.purpose.sort = Some(Arc::new(sort));
        }
        Ok(())
    }

    /// Set a sort order that is already parsed.
    pub(crate) fn set_parsed_sort(&mut self, sort: Sort) {
        self.purpose.sort = Some(Arc::new(sort)).filter(|sort| !sort.is_empty());
    }

    /// Set the index hint.
    pub(crate) fn set_hint(&mut self, value: Option<&Bson>) -> Result<()> {
        if let Some(hint) = hint(value)? {
            self.hint = Some(hint);
        }
        Ok(())
    }

    /// The requested sort order.
    pub(crate) fn order(&self) -> Option<Order> {
        let sort = self.purpose.sort.as_ref()?;
        Some(Order {
            sort: Arc::clone(sort),
            collator: self.purpose.collator.clone(),
        })
    }

    /// Limit reading to these paths.
    pub(crate) fn set_needed(&mut self, needed: Option<Vec<String>>) {
        self.needed = needed;
    }

    fn set_projection(&mut self, projection: Projection, spec: &RawDocument) -> Result<()> {
        let keyed = projection.reads_sort_key();
        if keyed {
            self.purpose.tail.order = self.order();
        }
        if projection.needs_match() {
            self.purpose.tail.positional = Some(Arc::clone(&self.purpose.filter));
        } else if keyed {
            // The sort key needs whole documents.
        } else if let Some(paths) = projection.required_fields() {
            let paths: Vec<String> = paths.iter().map(|path| path.as_str().to_owned()).collect();
            if projection.is_simple() && projection.is_inclusion() {
                self.purpose.kept = Some(paths.clone());
            }
            self.needed = Some(paths);
        }
        self.purpose.projection = Some(Document::try_from(spec)?);
        self.purpose.tail.projection = Some(Arc::new(projection));
        Ok(())
    }

    /// The candidate plans.
    ///
    /// # Errors
    /// Hints that cannot be used.
    pub(crate) fn candidates(&self) -> Result<Plans> {
        self.candidates_in(&self.space)
    }

    fn candidates_in(&self, space: &Space) -> Result<Plans> {
        let request = Request {
            filter: &self.purpose.filter,
            sort: self.purpose.sort.as_deref(),
            hint: self.hint.as_ref(),
            min: self.min.as_ref(),
            max: self.max.as_ref(),
            needed: self.needed.as_deref(),
            collation: self.collated.collation.as_ref(),
        };
        candidates(&request, space)
    }

    /// The best plan.
    ///
    /// # Errors
    /// Hints that cannot be used; errors of execution.
    pub(crate) fn plan(
        &self,
        collection: &Arc<Collection>,
        view: &mut View<'_>,
    ) -> Result<Planned> {
        let Plans {
            mut candidates,
            held,
        } = match self.purpose.sort {
            None => self.candidates()?,
            // The view may be newer than the space of this query. A space made now includes all
            // that the view sees, in particular the first truncated key.
            Some(_) => {
                let space = collection.space()?;
                self.candidates_in(&space)?
            }
        };
        if view.store().tuning().no_table_scan() {
            self.without_table_scans(collection, &mut candidates)?;
        }
        let chosen = choose(collection, &candidates, &self.purpose, view)?;
        let planned = Planned {
            candidates,
            chosen,
            held,
        };
        for scan in planned.candidate().access.scans().take(1) {
            if let Some(index) = scan.index.source() {
                index.usage().note();
            }
        }
        Ok(planned)
    }

    /// Remove the plans that scan the whole collection to evaluate a filter.
    ///
    /// # Errors
    /// `NoQueryExecutionPlans` when no plan remains.
    fn without_table_scans(
        &self,
        collection: &Collection,
        candidates: &mut Vec<Candidate>,
    ) -> Result<()> {
        let ns = collection.ns();
        let internal = matches!(ns.db.as_str(), "admin" | "config" | "local");
        let everything = matches!(self.purpose.filter.root(), Node::AlwaysTrue);
        if internal || everything || ns.coll.starts_with("system.") {
            return Ok(());
        }
        candidates.retain(|candidate| {
            !matches!(candidate.access, Access::Collection { ranges: None, .. })
        });
        if !candidates.is_empty() {
            return Ok(());
        }
        let message = match self.hint {
            Some(Hint::Natural { .. }) => {
                "hint $natural is not allowed, because 'notablescan' is enabled".to_owned()
            }
            _ => format!(
                "error processing query: ns={ns} planner returned error :: caused by :: No \
                 indexed plans available, and running with 'notablescan'"
            ),
        };
        Err(Error::new(Code::NO_QUERY_EXECUTION_PLANS, message))
    }

    /// Plan the query and build the executor.
    ///
    /// # Errors
    /// As [`Query::plan`].
    pub(crate) fn execute(
        &self,
        collection: &Arc<Collection>,
        view: &mut View<'_>,
    ) -> Result<Executor> {
        let planned = self.plan(collection, view)?;
        let mut executor = build(collection, planned.candidate(), &self.purpose)?;
        executor.hold(planned.into_held()?);
        Ok(executor)
    }
}

/// Parse the projection of a query, which may refer to the sort key only if the query has a sort.
///
/// # Errors
/// Errors of projections; `BadValue` without a sort.
pub(super) fn parse_projection(
    spec: &RawDocument,
    settings: &Settings,
    filter: &Filter,
    request: &FindRequest,
) -> Result<Projection> {
    let projection = Projection::parse(spec, settings, Some(filter))?;
    // `$natural` is not a sort.
    let sorts = match &request.sort {
        Some(sort) => !sort.is_empty() && sort.get("$natural")?.is_none(),
        None => false,
    };
    if !sorts && projection.reads_sort_key() {
        return Err(Error::bad_value(
            "cannot use sortKey $meta projection without a sort",
        ));
    }
    Ok(projection)
}
