//! `aggregate`.

use std::borrow::Cow;

use bson::{Document, RawArray, RawBsonRef, RawDocument, doc};
use docdb::{AggregateRequest, Verbosity};
use query::pipeline::Access;
use query::stage::Statistics;
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use super::find::{collation, variables};
use super::index::search_not_enabled;
use super::write::hint;
use super::{current_op, cursor, list_sessions, pipeline};
use crate::access::{Asked, Needed, bypasses};
use crate::arguments::Arguments;
use crate::command::{ABANDON, API, Class, ELSEWHERE, Kind, Lane, READS, SNAPSHOT, TRANSACTION};
use crate::metrics::Latency;
use crate::request::{Call, Understood, failure};
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("aggregate", aggregate, "Run an aggregation pipeline")
        .lane(Lane::Storage)
        .class(Class::Read)
        .writing_stage(written)
        .flags(API | TRANSACTION | READS | ABANDON | SNAPSHOT | ELSEWHERE)
        .fields(&[
            "pipeline",
            "cursor",
            "explain",
            "allowDiskUse",
            "hint",
            "collation",
            "let",
            "bypassDocumentValidation",
            "fromMongos",
            "needsMerge",
            "encryptionInformation",
            "isMapReduceCommand",
            "includeQueryStatsMetrics",
        ])
        .own(needs),
];

/// The target: a collection or the whole database.
///
/// # Errors
/// `InvalidNamespace`, `FailedToParse` for what names neither.
pub(super) fn namespace(target: RawBsonRef<'_>, database: &str) -> Result<Namespace> {
    match target {
        RawBsonRef::String(name) => Namespace::new(database, name),
        RawBsonRef::Int32(1) | RawBsonRef::Int64(1) | RawBsonRef::Double(1.0) => {
            Ok(Namespace::collectionless(database))
        }
        _ => {
            let message = "Invalid command format: the 'aggregate' field must specify a \
                 collection name or 1";
            Err(Error::parse(message))
        }
    }
}

/// Parse the request of an `aggregate`; an explained one need not specify a cursor.
///
/// # Errors
/// Arguments that are not right.
pub(super) fn asked(arguments: &Arguments<'_>, explained: bool) -> Result<AggregateRequest> {
    let pipeline = arguments.need_array("pipeline")?;
    check_search(pipeline)?;
    let batch_size = match arguments.document("cursor")? {
        Some(options) => {
            let options = Arguments::of("aggregate.cursor", options)?;
            options.only(&["batchSize"])?;
            options.count("batchSize")?
        }
        None if explained => None,
        None => return Err(no_cursor()),
    };
    Ok(AggregateRequest {
        pipeline: pipeline.to_owned(),
        batch_size,
        allow_disk_use: arguments.boolean("allowDiskUse")?.unwrap_or(true),
        hint: hint(arguments)?,
        collation: collation(arguments)?,
        variables: variables(arguments)?,
        bypass_validation: arguments.is_on("bypassDocumentValidation")?,
        parsed: None,
    })
}

/// The privileges of an `aggregate`. The pipeline that they are computed from is the one that runs
/// (A4).
fn needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    let ns = namespace(sent.arguments.target(), sent.database)?;
    let bypass = bypasses(sent.arguments);
    let read = self::asked(sent.arguments, true);
    let added = read.and_then(|read| pipeline::add(asked, (read, &ns), bypass, needed));
    if added.is_err() && !ns.is_collectionless() {
        pipeline::needs(&[Access::Read(ns)], false, asked.user, &mut needed.wanted)?;
    }
    added
}

/// The request of a command.
fn understood<'a>(call: &'a Call<'_>, explained: bool) -> Result<Cow<'a, AggregateRequest>> {
    let arguments = call.arguments();
    // Authorization has checked all of a request except that it has options of a cursor.
    let is_read = matches!(call.understood, Some(Understood::Request(_)));
    if is_read && !explained && arguments.document("cursor")?.is_none() {
        return Err(no_cursor());
    }
    pipeline::authorized(call, || asked(arguments, explained))
}

fn no_cursor() -> Error {
    let message = "The 'cursor' option is required, except for aggregate with the explain argument";
    Error::parse(message)
}

/// The last stage of a pipeline, if it writes the result to a collection.
fn written(body: &RawDocument) -> Option<&'static str> {
    let last = body.get_array("pipeline").ok()?.into_iter().last()?.ok()?;
    let (name, _) = last.as_document()?.iter().next()?.ok()?;
    ["$out", "$merge"].into_iter().find(|stage| name == *stage)
}

/// Stages that are not part of version 1 of the stable API.
const UNSTABLE: &[&str] = &[
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
];
/// Stages of the search engine.
const SEARCH: &[&str] = &[
    "$listSearchIndexes",
    "$search",
    "$searchMeta",
    "$vectorSearch",
];

/// Refuse stages of the search engine.
fn check_search(stages: &RawArray) -> Result<()> {
    for stage in stages {
        let stage = stage?;
        let first = stage.as_document().and_then(|stage| stage.iter().next());
        if let Some((name, _)) = first.transpose()?
            && SEARCH.contains(&name.as_str())
        {
            return Err(search_not_enabled());
        }
    }
    Ok(())
}

/// Refuse stages that are not part of the stable API to clients with `apiStrict`.
fn check_stages(request: &Call<'_>) -> Result<()> {
    let Ok(stages) = request.body().get_array("pipeline") else {
        return Ok(());
    };
    for stage in stages {
        let stage = stage?;
        let Some(first) = stage.as_document().and_then(|stage| stage.iter().next()) else {
            continue;
        };
        let (name, value) = first?;
        // Drivers use `$collStats` for the count of a collection.
        let counts = name == "$collStats"
            && value.as_document().is_some_and(|options| {
                options
                    .iter()
                    .all(|o| o.is_ok_and(|(name, _)| name == "count"))
            });
        if request.generic.api_strict && UNSTABLE.contains(&name.as_str()) && !counts {
            let message =
                format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
            return Err(Error::new(Code::API_STRICT_ERROR, message));
        }
    }
    Ok(())
}

/// The rows of stages that report on the server.
fn report(request: &Call<'_>, ns: &Namespace, what: &Statistics) -> Result<Vec<Document>> {
    match what {
        Statistics::CurrentOp(options) => {
            let shown = current_op::Shown::of(options)?;
            Ok(current_op::list(request, shown))
        }
        Statistics::ListSessions(options) | Statistics::ListLocalSessions(options) => {
            let listed = list_sessions::Listed::of(what.name(), options)?;
            list_sessions::list(request, &listed)
        }
        Statistics::CollStats(_) => Ok(vec![latencies(request, ns)]),
        Statistics::IndexStats => Ok(vec![doc! {"host": &request.server.topology.me}]),
        _ => Ok(Vec::new()),
    }
}

/// Latencies of the commands on the collection.
fn latencies(request: &Call<'_>, ns: &Namespace) -> Document {
    let usage = request.server.usages.get(&ns.db, &ns.coll);
    let usage = usage.unwrap_or_default();
    let shown = |latency: &Latency| {
        doc! {"latency": latency.micros.get(), "ops": latency.ops.get()}
    };
    doc! {
        "reads": shown(&usage.reads),
        "writes": shown(&usage.writes),
        "commands": shown(usage.of(Kind::Command)),
        "transactions": shown(&Latency::default()),
    }
}

fn aggregate(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let ns = namespace(request.target(), request.database())?;
    if arguments.is_on("explain")? {
        let asked = understood(request, true)?;
        let verbosity = Verbosity::QueryPlanner;
        let explained =
            request.with_store(|store, op| store.explain_aggregate(op, &ns, &asked, verbosity))?;
        failure::append(reply, &explained);
        return Ok(());
    }
    check_stages(request)?;
    let asked = understood(request, false)?;
    let concern = request.generic.read_concern.as_ref();
    if concern.is_some_and(|concern| concern.level == "linearizable")
        && let Some(stage) = written(request.body())
    {
        let message = format!("{stage} stage cannot be used with a 'linearizable' read concern");
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let report = |ns: &Namespace, what: &Statistics| report(request, ns, what);
    let batch =
        request.with_store(|store, op| store.aggregate_with(op, &ns, &asked, Some(&report)))?;
    cursor::answer(request, reply, "firstBatch", &batch);
    Ok(())
}
