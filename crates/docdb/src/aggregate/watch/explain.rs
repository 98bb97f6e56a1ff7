//! `explain` of a change stream: the scan of the oplog from its start, and its stages. With
//! statistics the stream is read once, up to the last visible entry; it does not wait.

use std::time::Duration;

use bson::{Bson, Document, RawDocument, doc, rawdoc};
use query::stage::Stage;
use query::{Namespace, Result};

use super::super::AggregateRequest;
use super::super::explain::add_figures;
use super::super::view::named;
use super::source::{Current, Tail};
use super::{Prepared, Stages};
use crate::change::options::SPLIT;
use crate::explain::{Subject, UsedFor, Verbosity};
use crate::find::{FindRequest, Query};
use crate::oplog;
use crate::store::Store;
use crate::txn::Op;

impl Store {
    /// `explain` of `aggregate` with `$changeStream`.
    ///
    /// # Errors
    /// As [`Store::watch`].
    pub(in crate::aggregate) fn explain_watch(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        (request, options): (&AggregateRequest, &RawDocument),
        verbosity: Verbosity,
    ) -> Result<Document> {
        let prepared = self.prepare_watch(op, ns, request, options)?;
        let mut stages: Vec<Bson> = prepared.names().into_iter().map(named).collect();
        let scanned = oplog::namespace();
        let collection = self.existing(&scanned)?;
        let from = prepared.stream.position().begins();
        let find = FindRequest {
            filter: rawdoc! { "ts": { "$gte": from } },
            ..FindRequest::default()
        };
        let query = Query::of_find(op, &collection, &find, &self.spill_place())?;
        let subject = Subject {
            ns: &scanned,
            used_for: UsedFor::Documents,
            verbosity,
        };
        let mut plan = self.explain_query(op, &collection, &query, &subject)?;
        plan.remove("explainVersion");
        if Verbosity::QueryPlanner < verbosity {
            for (stage, (rows, time)) in stages.iter_mut().zip(prepared.run(self, op, ns)?) {
                if let Some(stage) = stage.as_document_mut() {
                    add_figures(stage, rows, time);
                }
            }
        }
        stages.insert(0, Bson::Document(doc! { "$cursor": plan }));
        Ok(doc! { "explainVersion": "1", "stages": stages })
    }
}

impl Prepared {
    /// The names of its stages.
    fn names(&self) -> Vec<&str> {
        let behind = self.behind.stages().iter().map(Stage::name);
        let last = self.splitter.iter().map(|_| SPLIT);
        let all = std::iter::once("$changeStream").chain(behind).chain(last);
        all.collect()
    }

    /// Read the stream up to its end; the documents and the time of each of its stages.
    fn run(mut self, store: &Store, op: &Op<'_>, ns: &Namespace) -> Result<Vec<(u64, Duration)>> {
        let began = stdx::time::now();
        let mut tallies = Vec::new();
        let mut stages = Stages::new(ns, self.behind, Some(&mut tallies))?;
        let (mut events, mut parts) = (0, 0);
        let mut within = Duration::ZERO;
        let (mut tail, current) = (Tail::new(store, op), Current { store, op });
        let mut reading = self.stream.read(&mut tail, &current)?;
        while let Some(event) = reading.next_event()? {
            events += 1;
            let passed = stdx::time::now();
            let document = stages.run(store, op, &event)?;
            if let (Some(splitter), Some(document)) = (&mut self.splitter, document) {
                parts += splitter.split(&event.token, document)?.len() as u64;
            }
            within += passed.elapsed();
        }
        // As in MongoDB, the time of a stage includes that of the stages before.
        let whole = began.elapsed();
        let own = whole.saturating_sub(within);
        let mut figures = vec![(events, own)];
        let behind = tallies
            .iter()
            .map(|tally| (tally.rows(), own + tally.time()));
        figures.extend(behind);
        if self.splitter.is_some() {
            figures.push((parts, whole));
        }
        Ok(figures)
    }
}
