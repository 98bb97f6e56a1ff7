//! `explain`: the plan of a command, and statistics of its execution.
//!
//! The structure and the names are MongoDB's (version 1, the classic engine), so that existing
//! tools can read it.

mod tree;
mod write;

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, doc};
use query::path::Path;
use query::{Namespace, Result};

use crate::catalog::Named;
use crate::collection::Collection;
use crate::exec::Executor;
use crate::find::{
    CountRequest, Distinct, DistinctRequest, Express, FindRequest, Planned, Query, Scanned, Write,
    build, describe, drain, index_for, scan, try_all,
};
use crate::index::Index;
use crate::store::Store;
use crate::txn::{Op, View, with_view};

use tree::{NO_ROOM, Room, Tree, Use, number, shown};

/// The level of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// The plan.
    QueryPlanner,
    /// The plan and its execution statistics.
    ExecutionStats,
    /// As `ExecutionStats`, with the statistics of rejected plans (default).
    #[default]
    AllPlansExecution,
}

impl Verbosity {
    /// Parse the name used in commands.
    #[must_use]
    pub fn parse(name: &str) -> Option<Verbosity> {
        Some(match name {
            "queryPlanner" => Verbosity::QueryPlanner,
            "executionStats" => Verbosity::ExecutionStats,
            "allPlansExecution" => Verbosity::AllPlansExecution,
            _ => return None,
        })
    }
}

/// A query to be explained.
pub(crate) struct Subject<'a> {
    pub(crate) ns: &'a Namespace,
    pub(crate) used_for: UsedFor,
    pub(crate) verbosity: Verbosity,
}

/// The purpose of the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsedFor {
    /// The documents are returned.
    Documents,
    /// The documents are counted.
    Count,
}

impl Store {
    /// [`Store::explain_find`] in a collection; `None` if the name is a view's. `write` is the
    /// express write stage of a write that MongoDB does not plan.
    pub(crate) fn explain_find_in_collection(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        (request, write): (&FindRequest, Option<Option<Write>>),
        verbosity: Verbosity,
    ) -> Result<Option<Document>> {
        let subject = Subject {
            ns,
            used_for: UsedFor::Documents,
            verbosity,
        };
        let explained = self.explain_named(op, request, &subject, &|collection| {
            let mut query = Query::of_find(op, collection, request, &self.spill_place())?;
            if let Some(write) = write {
                let express = write.map(|write| Express::write(collection, write));
                query.purpose.express = express;
            }
            self.explain_query(op, collection, &query, &subject)
        })?;
        if explained.is_none() {
            self.check_find(op, request)?;
        }
        Ok(explained)
    }

    /// [`Store::explain_count`] in a collection; `None` when the name is a view's.
    pub(crate) fn explain_count_in_collection(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &CountRequest,
        verbosity: Verbosity,
    ) -> Result<Option<Document>> {
        let subject = Subject {
            ns,
            used_for: UsedFor::Count,
            verbosity,
        };
        self.explain_named(op, &FindRequest::default(), &subject, &|collection| {
            let query = request.query(op, collection)?;
            self.explain_query(op, collection, &query, &subject)
        })
    }

    /// [`Store::explain_distinct`] in a collection; `None` when the name is a view's.
    pub(crate) fn explain_distinct_in_collection(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &DistinctRequest,
        verbosity: Verbosity,
    ) -> Result<Option<Document>> {
        let subject = Subject {
            ns,
            used_for: UsedFor::Documents,
            verbosity,
        };
        self.explain_named(op, &FindRequest::default(), &subject, &|collection| {
            let query = request.query(op, collection)?;
            match index_for(collection, request, &query) {
                None => self.explain_query(op, collection, &query, &subject),
                Some(index) => {
                    self.explain_distinct_scan(op, collection, (request, &index), &subject)
                }
            }
        })
    }

    /// What `explain` returns for a collection, or for a name without one, in which `request`
    /// finds nothing; `None` if the name is a view's.
    fn explain_named(
        &self,
        op: &Op<'_>,
        request: &FindRequest,
        subject: &Subject<'_>,
        explain: &dyn Fn(&Arc<Collection>) -> Result<Document>,
    ) -> Result<Option<Document>> {
        match self.named(op, subject.ns)? {
            Some(Named::Collection(collection)) => explain(&collection).map(Some),
            Some(Named::View(_)) => Ok(None),
            None => self.explain_nothing(op, request, subject).map(Some),
        }
    }

    /// The plan of `distinct` from an index.
    fn explain_distinct_scan(
        &self,
        op: &Op<'_>,
        collection: &Arc<Collection>,
        (request, index): (&DistinctRequest, &Index),
        subject: &Subject<'_>,
    ) -> Result<Document> {
        let plan = describe(request, index, None);
        let plan = plan.as_document().cloned().unwrap_or_default();
        let mut all = doc! {
            "explainVersion": "1",
            "queryPlanner": planner(subject.ns, Document::new(), plan, Vec::new()),
        };
        if Verbosity::QueryPlanner == subject.verbosity {
            return Ok(all);
        }
        let began = stdx::time::now();
        let mut done = Scanned::default();
        with_view(self, op, &mut |view| {
            self.check_unchanged(op, collection)?;
            let mut distinct = Distinct::new(Path::parse(&request.key)?, None);
            done = Scanned::default();
            scan(
                op,
                view.snapshot()?,
                (collection, index),
                &mut distinct,
                &mut done,
            )?;
            Ok(())
        })?;
        let took = stdx::time::now().saturating_duration_since(began);
        let mut stats = doc! {
            "executionSuccess": true,
            "nReturned": number(done.keys),
            "executionTimeMillis": i32::try_from(took.as_millis()).unwrap_or(i32::MAX),
            "totalKeysExamined": number(done.keys),
            "totalDocsExamined": number(done.documents),
            "executionStages": describe(request, index, Some(done)),
        };
        if subject.verbosity == Verbosity::AllPlansExecution {
            stats.insert("allPlansExecution", Vec::<Bson>::new());
        }
        all.insert("executionStats", stats);
        Ok(all)
    }

    /// The plan of a query of a collection that does not exist.
    fn explain_nothing(
        &self,
        op: &Op<'_>,
        request: &FindRequest,
        subject: &Subject<'_>,
    ) -> Result<Document> {
        self.check_find(op, request)?;
        let mut all = doc! {
            "explainVersion": "1",
            "queryPlanner":
                planner(subject.ns, Document::new(), doc! { "stage": "EOF" }, Vec::new()),
        };
        if Verbosity::QueryPlanner < subject.verbosity {
            all.insert(
                "executionStats",
                doc! {
                    "executionSuccess": true,
                    "nReturned": 0,
                    "executionTimeMillis": 0,
                    "totalKeysExamined": 0,
                    "totalDocsExamined": 0,
                    "executionStages": { "stage": "EOF", "nReturned": 0 },
                },
            );
        }
        Ok(all)
    }

    /// Explain a query of a collection.
    pub(crate) fn explain_query(
        &self,
        op: &Op<'_>,
        collection: &Arc<Collection>,
        query: &Query,
        subject: &Subject<'_>,
    ) -> Result<Document> {
        self.explain_run(op, collection, query, subject, &mut |mut executor, view| {
            let began = stdx::time::now();
            drain(collection, &mut executor, view, &mut |_| Ok(()))?;
            Ok((executor, stdx::time::now().saturating_duration_since(began)))
        })
    }

    /// Explain a query of a collection that is executed by `run`.
    pub(crate) fn explain_run(
        &self,
        op: &Op<'_>,
        collection: &Arc<Collection>,
        query: &Query,
        subject: &Subject<'_>,
        run: &mut Run<'_>,
    ) -> Result<Document> {
        with_view(self, op, &mut |view| {
            self.check_unchanged(op, collection)?;
            let planned = query.plan(collection, view)?;
            let room = Room::new();
            let tree = |at: usize| {
                planned.candidates.get(at).map(|candidate| {
                    Tree {
                        candidate,
                        purpose: &query.purpose,
                        used_for: used(subject.used_for),
                        executor: None,
                        room: &room,
                    }
                    .document()
                })
            };
            let winner = tree(planned.chosen).unwrap_or_default();
            let rejected = (0..planned.candidates.len())
                .filter(|at| *at != planned.chosen)
                .filter_map(|at| tree(at).map(Bson::Document))
                .collect();
            let parsed = shown(&query.purpose.filter, &room);
            let parsed = parsed.unwrap_or_else(|| doc! { "warning": NO_ROOM });
            let mut all = doc! {
                "explainVersion": "1",
                "queryPlanner": planner(subject.ns, parsed, winner, rejected),
            };
            if Verbosity::QueryPlanner < subject.verbosity {
                let mut stats =
                    executed(collection, (query, &planned), (subject, &room), (view, run))?;
                if subject.verbosity == Verbosity::AllPlansExecution {
                    let all = all_plans(collection, (query, &planned), view, &room)?;
                    stats.insert("allPlansExecution", Bson::Array(all));
                }
                all.insert("executionStats", stats);
            }
            Ok(all)
        })
    }
}

fn used(of: UsedFor) -> Use {
    match of {
        UsedFor::Documents => Use::Find,
        UsedFor::Count => Use::Count,
    }
}

fn planner(ns: &Namespace, parsed: Document, winner: Document, rejected: Vec<Bson>) -> Document {
    doc! {
        "namespace": ns.to_string(),
        "parsedQuery": parsed,
        "indexFilterSet": false,
        "optimizationTimeMillis": 0,
        "maxIndexedOrSolutionsReached": false,
        "maxIndexedAndSolutionsReached": false,
        "maxScansToExplodeReached": false,
        "prunedSimilarIndexes": false,
        "winningPlan": winner,
        "rejectedPlans": rejected,
    }
}

/// The trial statistics of each plan, if there are several plans.
fn all_plans(
    collection: &Arc<Collection>,
    (query, planned): (&Query, &Planned),
    view: &View<'_>,
    room: &Room,
) -> Result<Vec<Bson>> {
    if planned.candidates.len() < 2 {
        return Ok(Vec::new());
    }
    let runs = try_all(collection, &planned.candidates, &query.purpose, view)?;
    let shown = runs
        .iter()
        .zip(&planned.candidates)
        .map(|(run, candidate)| {
            let counts = run.0.counts();
            let tree = Tree {
                candidate,
                purpose: &query.purpose,
                used_for: Use::Find,
                executor: Some(&run.0),
                room,
            };
            Bson::Document(doc! {
                "nReturned": number(counts.returned),
                "executionTimeMillisEstimate": 0,
                "totalKeysExamined": number(counts.keys),
                "totalDocsExamined": number(counts.documents),
                "executionStages": tree.document(),
            })
        });
    Ok(shown.collect())
}

/// Runs a plan; returns its executor and the time it took.
pub(crate) type Run<'r> = dyn FnMut(Executor, &mut View<'_>) -> Result<(Executor, Duration)> + 'r;

/// Run the plan and return its execution statistics.
fn executed(
    collection: &Arc<Collection>,
    (query, planned): (&Query, &Planned),
    (subject, room): (&Subject<'_>, &Room),
    (view, run): (&mut View<'_>, &mut Run<'_>),
) -> Result<Document> {
    let candidate = planned.candidate();
    let (executor, took) = run(build(collection, candidate, &query.purpose)?, view)?;
    let counts = executor.counts();
    let tree = Tree {
        candidate,
        purpose: &query.purpose,
        used_for: used(subject.used_for),
        executor: Some(&executor),
        room,
    };
    let counted = subject.used_for == UsedFor::Count;
    Ok(doc! {
        "executionSuccess": true,
        "nReturned": number(if counted { 0 } else { counts.returned }),
        "executionTimeMillis": i32::try_from(took.as_millis()).unwrap_or(i32::MAX),
        "totalKeysExamined": number(counts.keys),
        "totalDocsExamined": number(counts.documents),
        "executionStages": tree.document(),
    })
}
