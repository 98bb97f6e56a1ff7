//! `$changeStream`: a change stream (`change`) over the oplog of the store, as a cursor.
//!
//! The stages behind map each event to one document or none. A batch ends when it is full or no
//! visible entry has a further event; `getMore` then waits for entries ([`Batch::awaits`]). An
//! event that did not fit stays with the cursor; entries and snapshots do not.
//!
//! - C1. The resume token of a batch stands behind all documents that were returned, and before
//!   those that the cursor keeps.
//! - C2. The entries of returned events survive a power loss: a batch with events is returned after
//!   a sync that began behind them. One without events needs none.

mod explain;
mod source;

use std::collections::VecDeque;
use std::sync::Arc;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use query::execute::{Host, Rows, Tally, build, build_counted};
use query::pipeline::Pipeline;
use query::{Code, Error, Namespace, Result, Row};
use stdx::sync::Mutex;

use super::host::PipelineHost;
use super::source::Sources;
use super::{AggregateRequest, in_execution, parse, random};
use crate::catalog::Named;
use crate::change::event::Event;
use crate::change::large::Splitter;
use crate::change::options::{Options, Start, check_stages};
use crate::change::stream::Stream;
use crate::change::token::Token;
use crate::cursor::{Batch, Collector, Cursor, FIRST_BATCH, GetMore, Next};
use crate::store::{self, Store};
use crate::txn::{Op, with_view};
use source::{Current, Tail};

/// A change stream between batches.
struct WatchCursor {
    stream: Stream,
    stages: Stages,
    splitter: Option<Splitter>,
    /// Documents that did not fit into the last batch.
    pending: VecDeque<(Token, RawDocumentBuf)>,
    /// The resume token of the last batch.
    token: Token,
    /// Bytes of the stages.
    request: usize,
}

/// Bytes of a pending document in addition to its own: its resume token.
const PENDING: usize = 512;

/// A stream and what is behind it, before it is read.
struct Prepared {
    stream: Stream,
    /// The stages behind `$changeStream`, without that of the splitter.
    behind: Pipeline,
    splitter: Option<Splitter>,
    /// Bytes of the pipeline.
    bytes: usize,
}

/// The stages behind `$changeStream`.
struct Stages {
    /// `None` for no stages.
    rows: Option<Box<dyn Rows>>,
    feed: Arc<Mutex<Option<Row>>>,
    ns: Namespace,
    rng: stdx::Rng,
}

/// The input of the stages: the event of the moment.
struct Feed(Arc<Mutex<Option<Row>>>);

impl Rows for Feed {
    fn next(&mut self, _: &mut dyn Host) -> Result<Option<Row>> {
        Ok(self.0.lock().take())
    }
}

impl Stages {
    /// With `tallies`, each stage counts its documents in a new one of them.
    fn new(
        ns: &Namespace,
        pipeline: Pipeline,
        tallies: Option<&mut Vec<Arc<Tally>>>,
    ) -> Result<Stages> {
        let feed = Arc::new(Mutex::new(None));
        let rows = match pipeline.is_empty() {
            true => None,
            false => {
                let input = Box::new(Feed(Arc::clone(&feed)));
                Some(match tallies {
                    None => build(pipeline, input)?,
                    Some(tallies) => build_counted(pipeline, input, tallies)?,
                })
            }
        };
        Ok(Stages {
            rows,
            feed,
            ns: ns.clone(),
            rng: random(),
        })
    }

    /// The document that the stages make of an event, if any.
    fn run(&mut self, store: &Store, op: &Op<'_>, event: &Event) -> Result<Option<RawDocumentBuf>> {
        let Some(rows) = &mut self.rows else {
            return Ok(Some(event.document.clone()));
        };
        *self.feed.lock() = Some(Row::from_raw(event.document.clone()));
        let (ns, rng) = (&self.ns, &mut self.rng);
        let mut sources = Sources::default();
        let row = with_view(store, op, &mut |view| {
            rows.next(&mut PipelineHost {
                view,
                sources: &mut sources,
                ns,
                allow_disk_use: false,
                hint: None,
                bypass_validation: false,
                report: None,
                rng,
            })
        })?;
        let document = row.map(Row::into_raw).transpose()?;
        if let Some(document) = &document
            && document.get("_id")? != event.document.get("_id")?
        {
            return Err(Error::new(
                Code::CHANGE_STREAM_FATAL_ERROR,
                "Encountered an event whose _id field, which contains the resume token, was \
                 modified by the pipeline. Modifying the _id field of an event makes it \
                 impossible to resume the stream from that point. Only transformations that \
                 retain the unmodified _id field are allowed.",
            ));
        }
        Ok(document)
    }
}

impl WatchCursor {
    /// The documents of a batch that are ready now, and whether the stream has ended.
    fn fill(&mut self, store: &Store, op: &Op<'_>, wanted: u64) -> Result<Next> {
        let mut collector = Collector::new(wanted, None);
        let mut returned = Vec::new();
        place(&mut self.pending, &mut collector, &mut returned)?;
        if collector.left() != 0 {
            let (mut tail, current) = (Tail::new(store, op), Current { store, op });
            let mut reading = self.stream.read(&mut tail, &current)?;
            while collector.left() != 0 {
                let Some(event) = reading.next_event()? else {
                    break;
                };
                let Some(document) = self.stages.run(store, op, &event)? else {
                    continue;
                };
                match &mut self.splitter {
                    Some(splitter) => self.pending.extend(splitter.split(&event.token, document)?),
                    None => self.pending.push_back((event.token, document)),
                }
                place(&mut self.pending, &mut collector, &mut returned)?;
            }
        }
        let (documents, over) = collector.finish();
        if let Some(over) = over {
            let token = returned.pop().expect("the token of what did not fit");
            self.pending.push_front((token, over));
        }
        // C1.
        match (self.pending.is_empty(), returned.pop()) {
            (true, _) => self.token = self.stream.token().clone(),
            (false, Some(last)) => self.token = last,
            (false, None) => {}
        }
        if !documents.is_empty() {
            // C2.
            store.confirm_oplog()?;
        }
        let ended = self.stream.is_over() && self.pending.is_empty();
        Ok(Next::of(documents, ended))
    }
}

/// Move documents into a batch until it is full.
fn place(
    pending: &mut VecDeque<(Token, RawDocumentBuf)>,
    collector: &mut Collector,
    returned: &mut Vec<Token>,
) -> Result<()> {
    while collector.left() != 0
        && let Some((token, document)) = pending.pop_front()
    {
        collector.push(document)?;
        returned.push(token);
    }
    Ok(())
}

impl Cursor for WatchCursor {
    fn more(&mut self, store: &Store, op: &Op<'_>, request: &GetMore) -> Result<Next> {
        // Registered before reading, so that any later entry of what it follows ends the wait.
        let followed = self.stream.followed();
        let awaiting = store.oplog().map(|oplog| oplog.awaiting(followed));
        let mut next = self
            .fill(store, op, request.wanted())
            .map_err(|error| error.within("Executor error during getMore"))?;
        let waits = next.documents.is_empty() && !next.ended;
        next.awaits = awaiting.filter(|_| waits);
        Ok(next)
    }

    fn awaits_data(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        let pending = self.pending.iter();
        let pending = pending.map(|(_, document)| PENDING + document.as_bytes().len());
        self.request + pending.sum::<usize>()
    }

    fn resume_token(&self) -> Option<RawDocumentBuf> {
        Some(self.token.to_document())
    }
}

/// The options of `$changeStream`, if a pipeline begins with it.
pub(super) fn options_of(request: &AggregateRequest) -> Result<Option<&RawDocument>> {
    let first = request.pipeline.into_iter().next().transpose()?;
    let Some(RawBsonRef::Document(stage)) = first else {
        return Ok(None);
    };
    match stage.get("$changeStream")? {
        Some(RawBsonRef::Document(options)) => Ok(Some(options)),
        // The parser of stages refuses the others.
        _ => Ok(None),
    }
}

impl Store {
    /// `aggregate` with `$changeStream`.
    ///
    /// # Errors
    /// 40573 for a store without an oplog; `CommandNotSupportedOnView`;
    /// `OperationNotSupportedInTransaction`; those of [`Options::parse`] and [`check_stages`];
    /// errors of the stages and of execution.
    pub(super) fn watch(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &AggregateRequest,
        options: &RawDocument,
    ) -> Result<Batch> {
        let prepared = self.prepare_watch(op, ns, request, options)?;
        let mut cursor = WatchCursor {
            token: prepared.stream.token().clone(),
            stream: prepared.stream,
            stages: Stages::new(ns, prepared.behind, None)?,
            splitter: prepared.splitter,
            pending: VecDeque::new(),
            request: prepared.bytes,
        };
        let wanted = request.batch_size.unwrap_or(FIRST_BATCH);
        let filled = cursor.fill(self, op, wanted);
        let next = filled.map_err(|error| in_execution(error, ns))?;
        let resume = cursor.resume_token();
        let id = match next.ended {
            true => 0,
            false => self.cursors().open(op, ns, false, Box::new(cursor))?,
        };
        Ok(Batch {
            id,
            ns: ns.clone(),
            documents: next.documents,
            awaits: None,
            resume,
        })
    }

    fn prepare_watch(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &AggregateRequest,
        options: &RawDocument,
    ) -> Result<Prepared> {
        let Some(oplog) = self.oplog() else {
            return Err(Error::location(
                40_573,
                "The $changeStream stage is only supported on replica sets that keep an oplog \
                 (replication.oplogSizeMB)",
            ));
        };
        if op.transaction.is_some() {
            return Err(Error::new(
                Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "$changeStream cannot be used in a transaction",
            ));
        }
        if op.held.is_some() {
            return Err(Error::new(
                Code::INVALID_OPTIONS,
                "$changeStream cannot be used with the read concern snapshot",
            ));
        }
        if let Some(Named::View(_)) = self.named(op, ns)? {
            return Err(store::is_view(ns));
        }
        let options = Options::parse(options, ns)?;
        let splits = check_stages(names(request)?)?;
        let pipeline = with_view(self, op, &mut |view| parse(ns, request, view))?;
        let settings = pipeline.settings().clone();
        let bytes = pipeline.bytes().saturating_add(request.let_bytes());
        let behind = pipeline.into_stages().into_iter().skip(1).collect();
        let behind = Pipeline::from_stages(behind, &settings).optimize();
        let splitter = splits.then(|| match &options.start {
            Start::After(token) => Splitter::new(Some(token)),
            _ => Splitter::new(None),
        });
        let stream = Stream::new(options, oplog.visible(), splits)?;
        Ok(Prepared {
            stream,
            behind,
            splitter,
            bytes,
        })
    }
}

/// The names of the stages behind the first.
fn names(request: &AggregateRequest) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    for stage in request.pipeline.into_iter().skip(1) {
        // The parser of stages refuses what is none.
        if let RawBsonRef::Document(stage) = stage?
            && let Some(first) = stage.iter_elements().next()
        {
            names.push(first?.key().as_str());
        }
    }
    Ok(names)
}
