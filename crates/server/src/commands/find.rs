//! `find`, `count`, `distinct`.

use bson::{Bson, RawDocument, RawDocumentBuf};
use docdb::{CountRequest, DistinctRequest, FindRequest, Let};
use query::repeated::distinct;
use query::{Error, Result};
use wire::Builder;

use super::write::hint;
use super::{brief, cursor};
use crate::access::Privilege;
use crate::arguments::Arguments;
use crate::command::{ABANDON, API, Class, Kind, Lane, READS, SNAPSHOT, TRANSACTION};
use crate::request::Call;
use crate::row::Row;

/// The arguments of `find`.
const FIND: &[&str] = &[
    "filter",
    "sort",
    "projection",
    "hint",
    "skip",
    "limit",
    "batchSize",
    "singleBatch",
    "ntoreturn",
    "allowDiskUse",
    "allowPartialResults",
    "collation",
    "max",
    "min",
    "returnKey",
    "showRecordId",
    "tailable",
    "awaitData",
    "oplogReplay",
    "noCursorTimeout",
    "readOnce",
    "let",
    "term",
    "mirrored",
    "encryptionInformation",
    "includeQueryStatsMetrics",
];

/// The arguments of `count`.
const COUNT: &[&str] = &[
    "query",
    "limit",
    "skip",
    "hint",
    "collation",
    "fields",
    "let",
    "mirrored",
];

/// What a client in a transaction should do instead of `count`.
const COUNT_ADVICE: &str = " Please see http://dochub.mongodb.org/core/transaction-count for a \
     recommended alternative.";

/// The arguments of `distinct`.
const DISTINCT: &[&str] = &["key", "query", "hint", "collation", "mirrored"];

pub(super) const ROWS: &[Row] = &[
    Row::new("find", find, "Find documents")
        .lane(Lane::Storage)
        .brief(brief::find)
        .class(Class::Read)
        .flags(API | TRANSACTION | READS | ABANDON | SNAPSHOT)
        .kind(Kind::Query)
        .fields(FIND)
        .privilege(Privilege::Collection("find")),
    Row::new("count", count, "Count documents")
        .lane(Lane::Storage)
        .class(Class::Read)
        .flags(API | READS | ABANDON)
        .fields(COUNT)
        .outside_advice(COUNT_ADVICE)
        .privilege(Privilege::Collection("find")),
    Row::new(
        "distinct",
        distinct_values,
        "List the distinct values of a field",
    )
    .lane(Lane::Storage)
    .class(Class::Read)
    .flags(TRANSACTION | READS | ABANDON | SNAPSHOT)
    .fields(DISTINCT)
    .privilege(Privilege::Collection("find")),
];

fn owned(document: Option<&RawDocument>) -> Option<RawDocumentBuf> {
    document.map(ToOwned::to_owned)
}

/// The variables of a command (`let`).
///
/// # Errors
/// 40413 for a variable that is given twice; 16406 and 15983 for expressions with names given
/// twice.
pub(super) fn variables(arguments: &Arguments<'_>) -> Result<Option<Let>> {
    let Some(given) = arguments.document("let")? else {
        return Ok(None);
    };
    distinct(&format!("{}.let", arguments.name()), given)?;
    query::expr::check_each(given)?;
    Ok(Some(Let::new(given)))
}

/// The request of a `find`.
pub(super) fn find_request(arguments: &Arguments<'_>) -> Result<FindRequest> {
    let defaults = FindRequest::default();
    let sort = arguments.document("sort")?.filter(|sort| !sort.is_empty());
    let projection = arguments.document("projection")?.filter(|p| !p.is_empty());
    let request = FindRequest {
        filter: owned(arguments.document("filter")?).unwrap_or(defaults.filter),
        projection: owned(projection),
        sort: owned(sort),
        hint: hint(arguments)?.filter(|hint| *hint != Bson::Document(bson::Document::new())),
        min: arguments.tree("min")?.filter(|min| !min.is_empty()),
        max: arguments.tree("max")?.filter(|max| !max.is_empty()),
        skip: arguments.count("skip")?.unwrap_or(0),
        limit: arguments.count("limit")?.filter(|&limit| limit > 0),
        batch_size: arguments.count("batchSize")?,
        single_batch: arguments.is_on("singleBatch")?,
        return_key: arguments.is_on("returnKey")?,
        show_record_id: arguments.is_on("showRecordId")?,
        tailable: arguments.is_on("tailable")?,
        await_data: arguments.is_on("awaitData")?,
        no_cursor_timeout: arguments.is_on("noCursorTimeout")?,
        allow_disk_use: arguments.boolean("allowDiskUse")?.unwrap_or(true),
        collation: collation(arguments)?,
        variables: variables(arguments)?,
    };
    if request.await_data && !request.tailable {
        let message = "Cannot set 'awaitData' without also setting 'tailable'";
        return Err(Error::parse(message));
    }
    Ok(request)
}

/// The collation; `None` if it is missing or empty.
pub(super) fn collation(arguments: &Arguments<'_>) -> Result<Option<RawDocumentBuf>> {
    let collation = arguments.document("collation")?;
    if let Some(collation) = collation {
        distinct(&format!("{}.collation", arguments.name()), collation)?;
    }
    Ok(owned(collation.filter(|collation| !collation.is_empty())))
}

/// The request of a `count`.
pub(super) fn count_request(arguments: &Arguments<'_>) -> Result<CountRequest> {
    // A negative limit counts as positive: old drivers sent it for "one batch".
    let limit = arguments
        .long("limit")?
        .map(i64::unsigned_abs)
        .filter(|&limit| limit > 0);
    Ok(CountRequest {
        filter: owned(arguments.document("query")?).unwrap_or_default(),
        skip: arguments.count("skip")?.unwrap_or(0),
        limit,
        hint: hint(arguments)?,
        collation: collation(arguments)?,
        variables: variables(arguments)?,
    })
}

/// The request of a `distinct`.
pub(super) fn distinct_request(arguments: &Arguments<'_>) -> Result<DistinctRequest> {
    Ok(DistinctRequest {
        key: arguments.need_string("key")?.to_owned(),
        filter: owned(arguments.document("query")?).unwrap_or_default(),
        hint: hint(arguments)?,
        collation: collation(arguments)?,
        variables: None,
    })
}

fn find(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    request.server.metrics.ops.query.one();
    let ns = request.namespace()?;
    let wanted = find_request(request.arguments())?;
    let batch = request.with_store(|store, op| store.find(op, &ns, &wanted))?;
    cursor::answer(request, reply, "firstBatch", &batch);
    Ok(())
}

/// Append a count in MongoDB's form: an int32 where it fits.
pub(super) fn number(reply: &mut Builder, name: &str, n: u64) {
    match (i32::try_from(n), i64::try_from(n)) {
        (Ok(n), _) => reply.int(name, n),
        (_, n) => reply.long(name, n.unwrap_or(i64::MAX)),
    };
}

fn count(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let wanted = count_request(request.arguments())?;
    let n = request.with_store(|store, op| store.count(op, &ns, &wanted))?;
    number(reply, "n", n);
    Ok(())
}

fn distinct_values(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let wanted = distinct_request(request.arguments())?;
    let values = request.with_store(|store, op| store.distinct(op, &ns, &wanted))?;
    reply.open_array("values");
    for (i, value) in values.iter().enumerate() {
        reply.value(&i.to_string(), value);
    }
    reply.close();
    cursor::at_time(request, reply);
    Ok(())
}
