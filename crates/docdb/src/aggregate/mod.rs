//! `aggregate`: the part of a pipeline that storage can execute becomes a query of a collection;
//! the rest is run by `query::execute` over its rows.
//!
//! The pipeline of a view is prepended. The scans that a pipeline reads, including those of
//! `$lookup` and similar stages, are kept by its cursor (`source`), and read through the batch's
//! view.

mod explain;
mod host;
mod request;
mod source;
mod statistics;
mod view;
mod watch;

use bson::RawDocumentBuf;
use query::execute::Rows;
use query::pipeline::{Access, Pipeline};
use query::stage::Statistics;
use query::{Code, Error, Namespace, Result};

use crate::catalog::Named;
use crate::cursor::{Batch, Collector, Cursor, FIRST_BATCH, GetMore, Next, check_alive, or_killed};
use crate::store::Store;
use crate::txn::{Op, View, with_view};

pub use host::Report;
use host::{PipelineHost, settings_of};
pub use request::{AggregateRequest, Parsed};
use source::Sources;

/// A pipeline between batches.
struct PipelineCursor {
    rows: Box<dyn Rows>,
    sources: Sources,
    ns: Namespace,
    allow_disk_use: bool,
    bypass_validation: bool,
    rng: stdx::Rng,
    /// The document that did not fit into the last batch.
    pending: Option<RawDocumentBuf>,
    /// Bytes of the variables of the command.
    variables: usize,
}

impl PipelineCursor {
    /// Fill a batch; returns whether the pipeline has ended.
    fn fill(
        &mut self,
        collector: &mut Collector,
        view: &mut View<'_>,
        report: Option<Report<'_>>,
    ) -> Result<bool> {
        let mut host = PipelineHost {
            view,
            sources: &mut self.sources,
            ns: &self.ns,
            allow_disk_use: self.allow_disk_use,
            hint: None,
            bypass_validation: self.bypass_validation,
            report,
            rng: &mut self.rng,
        };
        host.sources.announce(host.view.op());
        let ended = take(self.rows.as_mut(), &mut host, collector);
        let (store, op) = (view.store(), view.op());
        let ended = ended.map_err(|error| {
            let read = self.sources.iter().map(|source| &source.collection);
            read.fold(error, |error, was| or_killed(store, op, was, error))
        });
        self.sources.report(view.op());
        self.sources.save();
        ended
    }
}

impl Cursor for PipelineCursor {
    fn more(&mut self, store: &Store, op: &Op<'_>, request: &GetMore) -> Result<Next> {
        let mut filled = Collector::new(request.wanted(), self.pending.take());
        let ended = with_view(store, op, &mut |view| {
            // Checked after the snapshot was opened: up to then the indexes were maintained.
            for source in self.sources.iter_mut() {
                check_alive(store, op, &source.collection, &source.executor)?;
                source.executor.check_position(view)?;
            }
            self.fill(&mut filled, view, None)
                .map_err(|error| error.within("Executor error during getMore"))
        })?;
        let (documents, pending) = filled.finish();
        let ended = ended && pending.is_none();
        self.pending = pending;
        Ok(Next::of(documents, ended))
    }

    fn bytes(&self) -> usize {
        let pending = self.pending.as_ref();
        self.variables + pending.map_or(0, |document| document.as_bytes().len())
    }
}

/// Take rows until the batch is full; returns whether no rows are left.
fn take(
    rows: &mut dyn Rows,
    host: &mut PipelineHost<'_, '_>,
    collector: &mut Collector,
) -> Result<bool> {
    while collector.left() != 0 {
        match rows.next(host)? {
            Some(row) => collector.push(row.into_raw()?)?,
            None => return Ok(true),
        }
    }
    Ok(false)
}

impl Store {
    /// `aggregate`: the first batch, and a cursor for the rest. A pipeline on a database uses
    /// [`Namespace::collectionless`].
    ///
    /// # Errors
    /// Errors of the request; errors of execution.
    pub fn aggregate(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &AggregateRequest,
    ) -> Result<Batch> {
        self.aggregate_with(op, ns, request, None)
    }

    /// As [`Store::aggregate`], where `report` provides the rows of stages that storage does not
    /// implement: `$currentOp`, `$listSessions` and similar.
    ///
    /// # Errors
    /// As [`Store::aggregate`].
    pub fn aggregate_with(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &AggregateRequest,
        report: Option<Report<'_>>,
    ) -> Result<Batch> {
        if let Some(options) = watch::options_of(request)? {
            return self.watch(op, ns, request, options);
        }
        let wanted = request.batch_size.unwrap_or(FIRST_BATCH);
        let (cursor, documents, ended) = with_view(self, op, &mut |view| {
            let pipeline = parse(ns, request, view)?;
            let writes = pipeline.writes();
            let mut cursor = open(ns, pipeline, request, view, report)?;
            // The command writes all documents, regardless of its batch size.
            let mut collector = Collector::new(if writes { FIRST_BATCH } else { wanted }, None);
            let ended = match collector.left() {
                0 => {
                    cursor.sources.announce(op);
                    cursor.sources.report(op);
                    false
                }
                _ => cursor
                    .fill(&mut collector, view, report)
                    .map_err(|error| in_execution(error, ns))?,
            };
            let (documents, pending) = collector.finish();
            let ended = ended && pending.is_none();
            cursor.pending = pending;
            Ok((cursor, documents, ended))
        })?;
        let id = if ended {
            0
        } else {
            self.cursors().open(op, ns, false, Box::new(cursor))?
        };
        Ok(Batch {
            id,
            ns: ns.clone(),
            documents,
            awaits: None,
            resume: None,
        })
    }
}

/// An error of execution with the command that it ended. Errors that MongoDB finds while parsing
/// the pipeline, and this server when a stage begins, have no such context.
fn in_execution(error: Error, ns: &Namespace) -> Error {
    const OF_PARSING: [Code; 6] = [
        Code::UNAUTHORIZED,
        Code::INVALID_OPTIONS,
        Code::INVALID_NAMESPACE,
        Code::COMMAND_NOT_SUPPORTED,
        Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
        // `$merge` without a unique index.
        Code(51_183),
    ];
    if OF_PARSING.contains(&error.code) {
        return error;
    }
    error.within(format_args!(
        "Executor error during aggregate command on namespace: {ns}"
    ))
}

fn parse(ns: &Namespace, request: &AggregateRequest, view: &View<'_>) -> Result<Pipeline> {
    let named = view.named(ns)?;
    let settings = settings_of(named.as_ref(), view.op(), request)?.within(&ns.db);
    let pipeline = request.to_run(ns, &settings)?;
    check_reports(ns, &pipeline, view.op())?;
    check_collations(ns, &pipeline, view)?;
    if ns.is_collectionless() && !pipeline.has_source() {
        return Err(Error::new(
            Code::INVALID_NAMESPACE,
            "{aggregate: 1} is not valid for this pipeline; the first stage must be one that does \
             not read a collection",
        ));
    }
    Ok(pipeline)
}

/// Check that reports on the server are asked for where they are made.
///
/// # Errors
/// `InvalidNamespace`; `OperationNotSupportedInTransaction` for sessions.
fn check_reports(ns: &Namespace, pipeline: &Pipeline, op: &Op<'_>) -> Result<()> {
    // A stage with an invalid name reports its own error.
    for access in pipeline.accesses(ns).unwrap_or_default() {
        let Access::Report(at, statistics) = access else {
            continue;
        };
        statistics.check_place(&at)?;
        if let Statistics::ListSessions(_) | Statistics::ListLocalSessions(_) = statistics {
            host::refuse_in_transaction(op, statistics.name())?;
        }
    }
    Ok(())
}

/// Check that the views that a pipeline reads have the collation of the command.
///
/// # Errors
/// `OptionNotSupportedOnView`.
fn check_collations(ns: &Namespace, pipeline: &Pipeline, view: &View<'_>) -> Result<()> {
    // A stage with an invalid name reports its own error.
    let accesses = pipeline.accesses(ns).unwrap_or_default();
    let collator = pipeline.settings().collator.as_ref();
    let collation = collator.map(|collator| collator.collation().to_document());
    for access in accesses {
        let Access::Read(read) = access else {
            continue;
        };
        if let Some(Named::View(options)) = view.store().named(view.op(), &read)?
            && options.collation != collation
        {
            let others = if read == *ns {
                String::new()
            } else {
                format!(" {read}")
            };
            return Err(Error::new(
                Code::OPTION_NOT_SUPPORTED_ON_VIEW,
                format!("Cannot override a view's default collation{others}"),
            ));
        }
    }
    Ok(())
}

/// Random numbers for `$sample` and similar.
fn random() -> stdx::Rng {
    let nanos = stdx::time::wall().as_nanos() & u128::from(u64::MAX);
    stdx::Rng::new(u64::try_from(nanos).unwrap_or(0))
}

fn open(
    ns: &Namespace,
    pipeline: Pipeline,
    request: &AggregateRequest,
    view: &mut View<'_>,
    report: Option<Report<'_>>,
) -> Result<PipelineCursor> {
    let mut rng = random();
    let mut sources = Sources::default();
    let rows = PipelineHost {
        view,
        sources: &mut sources,
        ns,
        allow_disk_use: request.allow_disk_use,
        hint: request.hint.clone(),
        bypass_validation: request.bypass_validation,
        report,
        rng: &mut rng,
    }
    .open(ns, pipeline, true)?;
    Ok(PipelineCursor {
        rows,
        sources,
        ns: ns.clone(),
        allow_disk_use: request.allow_disk_use,
        bypass_validation: request.bypass_validation,
        rng,
        pending: None,
        variables: request.let_bytes(),
    })
}
