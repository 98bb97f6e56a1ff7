//! `explain` of `aggregate`: the plan of the part that storage executes, and the remaining stages.
//! With statistics the whole pipeline is run once, except a last stage that writes.

use std::sync::Arc;
use std::time::Duration;

use bson::{Bson, Document, doc};
use query::execute::{Tally, build_counted};
use query::pipeline::Pipeline;
use query::stage::Stage;
use query::{Code, Error, Namespace, Result};

use super::host::{PipelineHost, planned, resolve};
use super::source::{Read, Sources};
use super::view::named;
use super::{AggregateRequest, parse, random, watch};
use crate::collection::Collection;
use crate::exec::Executor;
use crate::explain::{Subject, UsedFor, Verbosity};
use crate::find::Query;
use crate::store::Store;
use crate::txn::{Op, View, with_view};

/// Statistics of the stages, that of storage first.
type Tallies = Vec<Arc<Tally>>;

impl Store {
    /// `explain` of `aggregate`. A stage that writes does not write.
    ///
    /// # Errors
    /// As [`Store::aggregate`].
    pub fn explain_aggregate(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &AggregateRequest,
        verbosity: Verbosity,
    ) -> Result<Document> {
        let subject = Subject {
            ns,
            used_for: UsedFor::Documents,
            verbosity,
        };
        if let Some(options) = watch::options_of(request)? {
            return self.explain_watch(op, ns, (request, options), verbosity);
        }
        let (found, pipeline, _) = with_view(self, op, &mut |view| {
            let pipeline = parse(ns, request, view)?;
            resolve(view, ns, pipeline)
        })?;
        let Some(collection) = found.filter(|_| !pipeline.has_source()) else {
            let stages: Vec<Bson> = std::iter::once("$cursor")
                .filter(|_| !pipeline.has_source())
                .chain(pipeline.stages().iter().map(Stage::name))
                .map(named)
                .collect();
            return Ok(doc! { "explainVersion": "1", "stages": stages });
        };
        let (mut query, rest) = with_view(self, op, &mut |view| {
            planned(&collection, pipeline.clone(), request.allow_disk_use, view)
        })?;
        query.set_hint(request.hint.as_ref())?;
        if rest.is_empty() {
            return self.explain_query(op, &collection, &query, &subject);
        }
        let names: Vec<&str> = rest.stages().iter().map(Stage::name).collect();
        let (plan, tallies) =
            self.explain_whole(op, (&collection, &query, rest), request, &subject)?;
        let mut stages = vec![Bson::Document(doc! { "$cursor": plan })];
        stages.extend(names.into_iter().map(named));
        for (stage, tally) in stages.iter_mut().zip(&tallies) {
            if let Some(stage) = stage.as_document_mut() {
                add_figures(stage, tally.rows(), tally.time());
            }
        }
        // A stage that would have written consumes all rows and returns none.
        if let Some(last) = tallies.last()
            && let Some(Bson::Document(stage)) = stages.get_mut(tallies.len())
        {
            add_figures(stage, 0, last.time());
        }
        Ok(doc! { "explainVersion": "1", "stages": stages })
    }

    /// The plan of the part that storage executes, with statistics if the pipeline was run.
    fn explain_whole(
        &self,
        op: &Op<'_>,
        (collection, query, rest): (&Arc<Collection>, &Query, Pipeline),
        request: &AggregateRequest,
        subject: &Subject<'_>,
    ) -> Result<(Document, Tallies)> {
        let mut tallies = Vec::new();
        let mut rest = Some(rest);
        let mut run = |executor: Executor, view: &mut View<'_>| {
            let rest = rest.take().unwrap_or_default();
            let whole = Whole {
                ns: subject.ns,
                collection,
                query,
                request,
            };
            let (executor, counted) = whole.run(view, executor, rest)?;
            tallies = counted;
            let own = tallies.first().map(|tally| tally.time());
            Ok((executor, own.unwrap_or_default()))
        };
        let mut plan = self.explain_run(op, collection, query, subject, &mut run)?;
        plan.remove("explainVersion");
        Ok((plan, tallies))
    }
}

/// A pipeline to run for its statistics.
struct Whole<'w> {
    ns: &'w Namespace,
    collection: &'w Arc<Collection>,
    query: &'w Query,
    request: &'w AggregateRequest,
}

impl Whole<'_> {
    /// Run `rest` over the rows of `executor`, and return the executor.
    fn run(
        &self,
        view: &mut View<'_>,
        executor: Executor,
        rest: Pipeline,
    ) -> Result<(Executor, Tallies)> {
        let mut sources = Sources::default();
        let read = Read {
            collection: Arc::clone(self.collection),
            executor,
            order: self.query.order().filter(|_| rest.reads_sort_key()),
            first: true,
        };
        let input = sources.add(view.op(), read);
        sources.keep(&input);
        let (input, first) = Tally::of(Box::new(input));
        let mut tallies = vec![first];
        let mut rows = build_counted(without_writer(rest), input, &mut tallies)?;
        let mut rng = random();
        let mut host = PipelineHost {
            view,
            sources: &mut sources,
            ns: self.ns,
            allow_disk_use: self.request.allow_disk_use,
            hint: None,
            bypass_validation: false,
            report: None,
            rng: &mut rng,
        };
        while rows.next(&mut host)?.is_some() {}
        let executor = sources
            .into_kept()
            .ok_or_else(|| Error::new(Code::INTERNAL_ERROR, "the scan of a pipeline is gone"))?;
        Ok((executor, tallies))
    }
}

/// The stages before one that writes.
fn without_writer(pipeline: Pipeline) -> Pipeline {
    let settings = pipeline.settings().clone();
    let mut stages = pipeline.into_stages();
    if stages.last().is_some_and(Stage::writes) {
        stages.pop();
    }
    Pipeline::from_stages(stages, &settings)
}

pub(super) fn add_figures(stage: &mut Document, rows: u64, time: Duration) {
    let long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    stage.insert("nReturned", long(rows));
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    stage.insert("executionTimeMillisEstimate", long(millis));
}
