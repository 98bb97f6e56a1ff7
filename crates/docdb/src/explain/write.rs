//! `explain` of writes: the plan that finds the documents, and the changes the write would make.
//! Nothing is written.

use bson::{Bson, Document, RawBson, RawDocumentBuf};
use query::Namespace;
use query::Result;
use query::update::Update;

use super::Verbosity;
use super::tree::number;
use crate::find::FindRequest;
use crate::store::{Store, is_view};
use crate::txn::Op;
use crate::write::{
    DeleteStatement, FindAndModify, Seek, Selection, UpdateStatement, would_change,
};

/// A write to be explained.
struct Subject<'a> {
    selection: Selection<'a>,
    /// Whether it writes at most one document and not all that match.
    one: bool,
    /// The update and its array filters; a delete has none.
    update: Option<(&'a RawBson, &'a [RawDocumentBuf])>,
    upsert: bool,
    /// Whether the documents are returned.
    returns: bool,
}

/// The number of documents a write matches, and would change.
#[derive(Clone, Copy, Default)]
struct Would {
    matched: u64,
    changed: u64,
}

impl Store {
    /// `explain` of a statement of `update`.
    ///
    /// # Errors
    /// Errors of the statement; errors of execution.
    pub fn explain_update(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        statement: &UpdateStatement,
        verbosity: Verbosity,
    ) -> Result<Document> {
        let subject = Subject {
            selection: statement.selection(),
            one: !statement.multi,
            update: Some((&statement.update, &statement.array_filters)),
            upsert: statement.upsert,
            returns: false,
        };
        self.explain_write(op, ns, &subject, verbosity)
    }

    /// `explain` of a statement of `delete`.
    ///
    /// # Errors
    /// Errors of the statement; errors of execution.
    pub fn explain_delete(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        statement: &DeleteStatement,
        verbosity: Verbosity,
    ) -> Result<Document> {
        let subject = Subject {
            selection: statement.selection(),
            one: !statement.multi,
            update: None,
            upsert: false,
            returns: false,
        };
        self.explain_write(op, ns, &subject, verbosity)
    }

    /// `explain` of `findAndModify`.
    ///
    /// # Errors
    /// Errors of the statement; errors of execution.
    pub fn explain_find_and_modify(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        asked: &FindAndModify,
        verbosity: Verbosity,
    ) -> Result<Document> {
        let subject = Subject {
            selection: asked.selection(),
            one: true,
            update: asked
                .update
                .as_ref()
                .map(|update| (update, asked.array_filters.as_slice())),
            upsert: asked.upsert,
            returns: true,
        };
        self.explain_write(op, ns, &subject, verbosity)
    }

    fn explain_write(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        subject: &Subject<'_>,
        verbosity: Verbosity,
    ) -> Result<Document> {
        self.check_writable(op, ns)?;
        let would = self.would(op, ns, subject, Verbosity::QueryPlanner < verbosity)?;
        let write = Some(subject.selection.write);
        let find = (&subject.find(), write);
        let all = self.explain_find_in_collection(op, ns, find, verbosity)?;
        let mut all = all.ok_or_else(|| is_view(ns))?;
        if let Ok(planner) = all.get_document_mut("queryPlanner") {
            if let Some(Bson::Document(plan)) = planner.remove("winningPlan") {
                planner.insert("winningPlan", subject.stage(plan, None));
            }
            let rejected = planner.get_array_mut("rejectedPlans").into_iter().flatten();
            for plan in rejected {
                if let Bson::Document(inner) = plan {
                    *plan = subject.stage(std::mem::take(inner), None).into();
                }
            }
        }
        if let Ok(stats) = all.get_document_mut("executionStats") {
            let returned = subject.returned(would);
            stats.insert("nReturned", number(returned));
            if let Some(Bson::Document(stages)) = stats.remove("executionStages") {
                let stages = subject.stage(stages, Some(would));
                stats.insert("executionStages", stages);
            }
        }
        Ok(all)
    }

    /// Check a write, and, if `counted`, count the documents it would change.
    fn would(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        subject: &Subject<'_>,
        counted: bool,
    ) -> Result<Would> {
        let collection = self.collection_for(op, ns)?;
        let seek = Seek::parse(op, &subject.selection, collection.as_deref())?;
        let update = match subject.update {
            None => None,
            Some((update, filters)) => {
                let update = update.as_raw_bson_ref();
                Some(Update::parse(update, filters, &seek.settings)?)
            }
        };
        let Some(collection) = collection.filter(|_| counted) else {
            return Ok(Would::default());
        };
        self.read(op, &mut |snapshot| {
            self.check_unchanged(op, &collection)?;
            let mut would = Would::default();
            let matching = seek.matching(subject.limit());
            let mut matched = self.matching(op, &collection, snapshot, &matching)?;
            while let Some((record, document)) = matched.next(op, snapshot)? {
                let Some(found) = seek.details(record, document)? else {
                    continue;
                };
                would.matched += 1;
                let changes = match &update {
                    None => true,
                    Some(update) => would_change(self, op, update, &found)?,
                };
                would.changed += u64::from(changes);
            }
            Ok(would)
        })
    }
}

impl Subject<'_> {
    fn limit(&self) -> Option<u64> {
        self.one.then_some(1)
    }

    /// The query that finds its documents.
    fn find(&self) -> FindRequest {
        let selection = &self.selection;
        FindRequest {
            filter: selection.filter.to_owned(),
            sort: selection.sort.map(ToOwned::to_owned),
            hint: selection.hint.cloned(),
            collation: selection.collation.map(ToOwned::to_owned),
            variables: selection.variables.cloned(),
            limit: self.limit(),
            ..FindRequest::default()
        }
    }

    fn returned(&self, would: Would) -> u64 {
        if self.returns { would.matched } else { 0 }
    }

    /// The stage of the write around the one that finds documents.
    fn stage(&self, mut input: Document, would: Option<Would>) -> Document {
        // One document: the write stops by itself.
        if input.get_str("stage").is_ok_and(|name| name == "LIMIT")
            && let Some(Bson::Document(inner)) = input.remove("inputStage")
        {
            input = inner;
        }
        if let Some(write) = self.selection.write
            && input.get_str("stage").is_ok_and(|name| name == write)
        {
            return self.express(input, would);
        }
        let mut stage = Document::new();
        let name = match self.update {
            Some(_) => "UPDATE",
            None => "DELETE",
        };
        stage.insert("stage", name);
        if let Some(would) = would {
            stage.insert("nReturned", number(self.returned(would)));
            stage.insert("executionTimeMillisEstimate", 0);
            if self.update.is_some() {
                stage.insert("nMatched", number(would.matched));
                stage.insert("nWouldModify", number(would.changed));
                let inserts = self.upsert && would.matched == 0;
                stage.insert("nWouldUpsert", number(u64::from(inserts)));
            } else {
                stage.insert("nWouldDelete", number(would.changed));
            }
        }
        stage.insert("inputStage", input);
        stage
    }

    /// The one stage that finds and writes.
    fn express(&self, mut stage: Document, would: Option<Would>) -> Document {
        if let Some(would) = would {
            let changed = |is: bool| number(if is { would.changed } else { 0 });
            stage.insert("nReturned", number(self.returned(would)));
            stage.insert("nWouldModify", changed(self.update.is_some()));
            stage.insert("nWouldUpsert", number(0));
            stage.insert("nWouldDelete", changed(self.update.is_none()));
        }
        stage
    }
}
