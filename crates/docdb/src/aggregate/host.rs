//! The store as accessed by a running pipeline.

use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf, doc, oid::ObjectId};
use query::execute::{Host, Listed, Rows, Spill, build};
use query::filter::Filter;
use query::pipeline::Pipeline;
use query::settings::Settings;
use query::stage::{Merge, Stage, Statistics};
use query::{Code, Error, Namespace, Result, Row};

use super::AggregateRequest;
use super::source::{Read, Sources};
use crate::catalog::Named;
use crate::collection::Collection;
use crate::cursor::check_alive;
use crate::ddl::too_deep;
use crate::exec::{Cx, SpillFile, Step};
use crate::find::{Collated, Express, Query};
use crate::limits::VIEW_DEPTH;
use crate::txn::{Op, View};
use crate::write::InsertOptions;

/// Number of documents per insert by `$out`.
const WRITE_BATCH: usize = 500;

/// Callback to the server for stages that storage does not implement.
pub type Report<'r> = &'r dyn Fn(&Namespace, &Statistics) -> Result<Vec<Document>>;

/// The host of a pipeline for the time of one batch.
pub(super) struct PipelineHost<'h, 'v> {
    pub(super) view: &'h mut View<'v>,
    pub(super) sources: &'h mut Sources,
    /// The namespace the pipeline was sent to.
    pub(super) ns: &'h Namespace,
    pub(super) allow_disk_use: bool,
    pub(super) hint: Option<Bson>,
    pub(super) bypass_validation: bool,
    pub(super) report: Option<Report<'h>>,
    pub(super) rng: &'h mut stdx::Rng,
}

impl PipelineHost<'_, '_> {
    /// Open the rows of `pipeline` over `ns`. `first` marks the pipeline of the command itself, to
    /// which the hint applies.
    pub(super) fn open(
        &mut self,
        ns: &Namespace,
        pipeline: Pipeline,
        first: bool,
    ) -> Result<Box<dyn Rows>> {
        if pipeline.has_source() {
            self.sources.hold(pipeline.bytes(), first)?;
            return self.open_source(ns, pipeline, first);
        }
        // A collection that a `$lookup` reads may be newer than the view.
        if !first && self.view.is_behind() {
            self.renew()?;
        }
        let (found, pipeline, ns) = resolve(self.view, ns, pipeline)?;
        self.sources.hold(pipeline.bytes(), first)?;
        if pipeline.has_source() {
            return self.open_source(&ns, pipeline, first);
        }
        let Some(collection) = found else {
            if first {
                self.view.op().plan("EOF");
            }
            return build(pipeline.optimize(), Box::new(Listed::new(Vec::new())));
        };
        let (query, rest) = planned(&collection, pipeline, self.allow_disk_use, self.view)?;
        let mut query = query;
        if first {
            query.set_hint(self.hint.as_ref())?;
            self.sources.sorts = rest.stages().iter().any(Stage::sorts);
        }
        let executor = query.execute(&collection, self.view)?;
        let order = query.order().filter(|_| rest.reads_sort_key());
        let read = Read {
            collection,
            executor,
            order,
            first,
        };
        let input = self.sources.add(self.view.op(), read);
        build(rest, Box::new(input))
    }

    /// Open the rows of a pipeline that reads no collection. The server's report is about `ns`,
    /// which may differ from the namespace of the command. Errors of the command's own pipeline
    /// name it.
    fn open_source(
        &mut self,
        ns: &Namespace,
        pipeline: Pipeline,
        first: bool,
    ) -> Result<Box<dyn Rows>> {
        let Some(Stage::Statistics(statistics)) = pipeline.stages().first() else {
            return build(pipeline.optimize(), Box::new(Listed::default()));
        };
        let reported = self
            .report_of(ns, statistics)
            .map_err(|error| match first {
                true => super::in_execution(error, self.ns),
                false => error,
            })?;
        let rows = reported.into_iter().map(Row::from_document).collect();
        let settings = pipeline.settings().clone();
        let rest = pipeline.into_stages().into_iter().skip(1).collect();
        let rest = Pipeline::from_stages(rest, &settings);
        build(rest.optimize(), Box::new(Listed::new(rows)))
    }

    /// Continue with a new view. Every source releases the old view, not only the one that used up
    /// its work.
    fn renew(&mut self) -> Result<()> {
        self.sources.save();
        self.view.renew()?;
        let (store, op) = (self.view.store(), self.view.op());
        let mut sources = self.sources.iter_mut();
        sources.try_for_each(|source| {
            check_alive(store, op, &source.collection, &source.executor)?;
            source.executor.check_position(self.view)
        })
    }

    fn report_of(&self, ns: &Namespace, statistics: &Statistics) -> Result<Vec<Document>> {
        let store = self.view.store();
        match statistics {
            Statistics::IndexStats => super::statistics::index_stats(store, ns, self.report),
            Statistics::CollStats(options) => {
                super::statistics::coll_stats(store, ns, options, self.report)
            }
            Statistics::PlanCacheStats => super::statistics::plan_cache(store, ns),
            other => match self.report {
                Some(report) => report(ns, other),
                None => Err(Error::new(
                    Code::COMMAND_NOT_SUPPORTED,
                    format!("{} is not supported here", other.name()),
                )),
            },
        }
    }

    fn insert(&self, ns: &Namespace, documents: &mut Vec<RawDocumentBuf>) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let refs: Vec<&bson::RawDocument> = documents.iter().map(AsRef::as_ref).collect();
        let options = InsertOptions {
            bypass_validation: self.bypass_validation,
            ..InsertOptions::default()
        };
        let reply = self
            .view
            .store()
            .insert(self.view.op(), ns, &refs, options)?;
        documents.clear();
        match reply.errors.into_iter().next() {
            None => Ok(()),
            Some(first) => Err(first.error),
        }
    }
}

/// Name prefix of the collections that `$out` fills, as in MongoDB. The catalog marks them as
/// temporary, because clients may create collections with such names.
const TEMPORARY: &str = "tmp.agg_out.";

/// The collection that `$out` fills before it replaces `target`.
fn temporary(target: &Namespace, number: u64) -> Result<Namespace> {
    Namespace::new(target.db.as_str(), format!("{TEMPORARY}{number:016x}"))
}

/// The collection that a name resolves to, with its name and with the pipelines of the views on the
/// way prepended to the pipeline.
pub(super) fn resolve(
    view: &View<'_>,
    ns: &Namespace,
    mut pipeline: Pipeline,
) -> Result<(Option<Arc<Collection>>, Pipeline, Namespace)> {
    let mut ns = ns.clone();
    for _ in 0..VIEW_DEPTH {
        let options = match view.named(&ns)? {
            None => return Ok((None, pipeline, ns)),
            Some(Named::Collection(collection)) => return Ok((Some(collection), pipeline, ns)),
            Some(Named::View(options)) => options,
        };
        let Some(of) = &options.view else {
            return Ok((None, pipeline, ns));
        };
        // A view reads its own database, regardless of the database of the command.
        let settings = pipeline.settings().clone().within(&ns.db);
        let stages = Pipeline::parse_raw(of.pipeline(), &settings)?;
        pipeline = pipeline.behind(stages)?;
        ns = Namespace::new(ns.db, of.on())?;
    }
    Err(too_deep())
}

/// The part of a pipeline that storage executes, and the rest.
pub(super) fn planned(
    collection: &Arc<Collection>,
    pipeline: Pipeline,
    allow_disk_use: bool,
    view: &View<'_>,
) -> Result<(Query, Pipeline)> {
    let (pushdown, rest) = pipeline.optimize().split_pushdown();
    let space = collection.space()?;
    let collator = rest.settings().collator.clone();
    let collated = Collated {
        collation: collator
            .as_ref()
            .map(|collator| collator.collation().to_document()),
        collator,
    };
    let filter = match pushdown.filter {
        Some(filter) => filter,
        None => Filter::parse(&RawDocumentBuf::new(), rest.settings())?,
    };
    let mut query = Query::of_filter(space, collated, Arc::new(filter));
    if let Some(sort) = pushdown.sort {
        query.set_parsed_sort(sort);
    }
    query.purpose.tail.skip = pushdown.skip;
    query.purpose.tail.limit = pushdown.limit;
    query.purpose.records_only = pushdown.counts && query.purpose.sort.is_none();
    query.purpose.express = Some(Express::read(collection));
    // The sort key needs whole documents.
    let fields = pushdown.fields.filter(|_| !rest.reads_sort_key());
    query.set_needed(fields.map(|fields| fields.into_iter().collect()));
    if allow_disk_use {
        query.purpose.spill = Some(view.store().spill_place());
    }
    Ok((query, rest))
}

impl Host for PipelineHost<'_, '_> {
    fn check(&mut self) -> Result<()> {
        self.view.op().check()
    }

    fn database(&self) -> &str {
        &self.ns.db
    }

    fn aggregate(&mut self, ns: &Namespace, pipeline: Pipeline) -> Result<Box<dyn Rows>> {
        self.open(ns, pipeline, false)
    }

    fn pull(&mut self, number: u64) -> Result<Option<Row>> {
        let op = self.view.op();
        loop {
            let mut check = || op.check();
            let mut cx = Cx::new(self.view.snapshot()?, &mut check);
            cx.set_budget(self.view.budget());
            let Some(source) = self.sources.get(number) else {
                return Ok(None);
            };
            match source.executor.next(&mut cx)? {
                Step::Row(document) => return source.row(document).map(Some),
                Step::End => {
                    self.sources.remove(number, op);
                    return Ok(None);
                }
                Step::Pause => {}
            }
            self.renew()?;
        }
    }

    fn spill(&mut self) -> Result<Box<dyn Spill>> {
        if let Some(examined) = &self.view.op().examined {
            examined.spills();
        }
        let file = SpillFile::create(&self.view.store().spill_place())?;
        Ok(Box::new(file))
    }

    fn allow_disk_use(&self) -> bool {
        self.allow_disk_use
    }

    fn write_out(&mut self, ns: &Namespace, input: &mut dyn Rows) -> Result<()> {
        let store = self.view.store();
        let op = self.view.op();
        refuse_in_transaction(op, "$out")?;
        let options = match store.lookup(ns) {
            None => None,
            Some(Named::View(_)) => {
                return Err(Error::new(
                    Code::COMMAND_NOT_SUPPORTED_ON_VIEW,
                    format!("namespace '{ns}' is a view and cannot be the target of $out"),
                ));
            }
            Some(Named::Collection(old)) if old.is_capped() => {
                return Err(Error::location(
                    17152,
                    format!("namespace '{ns}' is capped so it can't be used for $out"),
                ));
            }
            Some(Named::Collection(old)) => Some(old.options().clone()),
        };
        let temporary = temporary(ns, self.rng.next_u64())?;
        store.create_temporary(op, &temporary, options.clone().unwrap_or_default())?;
        let filled = self
            .fill_out(ns, &temporary, input)
            .and_then(|()| store.rename(op, &temporary, ns, true));
        if filled.is_err() {
            // The operation may be killed or past its deadline, but must still clean up. The first
            // error is returned; a collection that remains is dropped at the next opening.
            let anew = crate::Op::new(op.durability);
            drop(store.drop_collection(&anew, &temporary));
        }
        filled
    }

    fn merge(&mut self, ns: &Namespace, merge: &Merge, input: &mut dyn Rows) -> Result<()> {
        let store = self.view.store();
        refuse_in_transaction(self.view.op(), "$merge")?;
        store.check_writable(self.view.op(), ns)?;
        check_identifies(store, ns, merge)?;
        // Otherwise an existing document keeps its `_id`, and a new one gets one when it is
        // inserted.
        let by_id = merge.on.iter().any(|path| path == "_id");
        while let Some(row) = input.next(self)? {
            self.check()?;
            let mut document = row.into_document()?;
            if by_id && !document.contains_key("_id") {
                document.insert("_id", ObjectId::new());
            }
            let bypass = self.bypass_validation;
            store.merge_document(self.view.op(), ns, merge, &document, bypass)?;
        }
        Ok(())
    }

    fn statistics(&mut self, statistics: &Statistics) -> Result<Vec<Document>> {
        self.report_of(self.ns, statistics)
    }

    fn random(&mut self) -> u64 {
        self.rng.next_u64()
    }
}

impl PipelineHost<'_, '_> {
    /// Insert the rows of `$out` into the collection that will replace `target`.
    fn fill_out(
        &mut self,
        target: &Namespace,
        temporary: &Namespace,
        input: &mut dyn Rows,
    ) -> Result<()> {
        let store = self.view.store();
        let mut indexes = Vec::new();
        if store.lookup(target).is_some() {
            indexes = store.list_indexes(target)?;
            indexes.retain(|index| index.get_str("name").ok() != Some("_id_"));
            indexes.retain(|index| !index.get_bool("clustered").unwrap_or(false));
        }
        if !indexes.is_empty() {
            store.create_indexes_raw(self.view.op(), temporary, &indexes)?;
        }
        let mut batch = Vec::new();
        while let Some(row) = input.next(self)? {
            batch.push(row.into_raw()?);
            if WRITE_BATCH <= batch.len() {
                self.insert(temporary, &mut batch)?;
            }
        }
        self.insert(temporary, &mut batch)
    }
}

/// Check that the fields of a `$merge` identify a document of the target.
///
/// # Errors
/// 51183 without a unique index on exactly these fields.
fn check_identifies(store: &crate::Store, ns: &Namespace, merge: &Merge) -> Result<()> {
    let same = |key: &Document| {
        key.len() == merge.on.len() && merge.on.iter().all(|path| key.contains_key(path))
    };
    if merge.on.len() == 1 && same(&doc! { "_id": 1 }) {
        return Ok(());
    }
    let unique = store.collection(ns).is_some_and(|collection| {
        collection.indexes().iter().any(|index| {
            let spec = index.spec();
            spec.unique && spec.partial.is_none() && index.is_ready() && same(&spec.key)
        })
    });
    if unique {
        return Ok(());
    }
    Err(Error::location(
        51_183,
        "Cannot find index to verify that join fields will be unique",
    ))
}

pub(super) fn refuse_in_transaction(op: &crate::Op<'_>, stage: &str) -> Result<()> {
    if op.transaction.is_none() {
        return Ok(());
    }
    Err(Error::new(
        Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
        format!("{stage} cannot be used in a transaction"),
    ))
}

/// The settings of a pipeline on `ns`: those of the command, or else the defaults of the
/// collection.
pub(super) fn settings_of(
    named: Option<&Named>,
    op: &Op<'_>,
    request: &AggregateRequest,
) -> Result<Settings> {
    let collation = request.collation.as_deref();
    let collated = match named {
        Some(Named::Collection(collection)) => {
            let space = collection.space()?;
            Collated::of(collation, Some(&space))?
        }
        Some(Named::View(options)) => {
            let own = options.collation.as_ref().map(RawDocumentBuf::try_from);
            let own = own.transpose()?;
            let asked = collation.filter(|asked| !asked.is_empty());
            Collated::of(asked.or(own.as_deref()), None)?
        }
        None => Collated::of(collation, None)?,
    };
    collated.settings(op, request.variables.as_ref())
}
