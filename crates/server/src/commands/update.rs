//! `update`.

use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use docdb::{Let, UpdateStatement};
use query::repeated::distinct;
use query::settings::Settings;
use query::update::Update;
use query::{Code, Error, Result};
use wire::Builder;

use super::brief;
use super::find::{collation, variables};
use super::write::{command_error, errors, hint, retried, statements};
use crate::access::{Asked, Needed};
use crate::arguments::Arguments;
use crate::command::{
    API, Class, Kind, Lane, RETRYABLE, STREAMS, TRANSACTION, WRITE_ERRORS, WRITES, Written,
};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[Row::new("update", update, "Update documents")
    .lane(Lane::Storage)
    .brief(brief::update)
    .class(Class::Write)
    .kind(Kind::Update)
    .written(Written::Updated)
    .flags(API | WRITES | TRANSACTION | RETRYABLE | STREAMS | WRITE_ERRORS)
    .fields(&[
        "updates",
        "ordered",
        "bypassDocumentValidation",
        "bypassEmptyTsReplacement",
        "let",
        "encryptionInformation",
        "isTimeseriesNamespace",
    ])
    .own(needs)];

/// The privileges of an `update`: `insert` as well where a statement may insert. Statements are in
/// the body or in a sequence.
fn needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    needed.push(sent.on("update"));
    let apart = sent.message.and_then(|message| message.sequence("updates"));
    let statements = match apart {
        Some(statements) => statements,
        None => sent.arguments.documents("updates")?.unwrap_or_default(),
    };
    for statement in statements {
        if Arguments::of("update.updates", statement)?.is_on("upsert")? {
            needed.push(sent.on("insert"));
            break;
        }
    }
    Ok(())
}

const STATEMENT: &[&str] = &[
    "q",
    "u",
    "c",
    "multi",
    "upsert",
    "upsertSupplied",
    "arrayFilters",
    "hint",
    "collation",
    "sort",
    "sampleId",
    "allowShardKeyUpdatesWithoutFullShardKeyInQuery",
];

/// An update: a document or a pipeline.
pub(super) fn change(value: RawBsonRef<'_>) -> Result<RawBson> {
    match value {
        RawBsonRef::Document(_) | RawBsonRef::Array(_) => Ok(value.into()),
        _ => {
            let message = "Update argument must be either an object or an array";
            Err(Error::parse(message))
        }
    }
}

/// Filters for `$[name]`.
pub(super) fn array_filters(arguments: &Arguments<'_>) -> Result<Vec<RawDocumentBuf>> {
    let filters = arguments.documents("arrayFilters")?.unwrap_or_default();
    Ok(filters.into_iter().map(ToOwned::to_owned).collect())
}

/// Refuse `upsertSupplied`, which only routers send to shards: it inserts the document of a
/// variable.
pub(super) fn refuse_supplied(arguments: &Arguments<'_>) -> Result<()> {
    if arguments.is_on("upsertSupplied")? {
        let message = "upsertSupplied is not supported: there are no shards";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    Ok(())
}

/// An unknown stage is an error of the whole command and not of its statement.
fn check_stages(update: &RawBson) -> Result<()> {
    let unknown = |code: Code| code.0 == 40_324;
    if !matches!(update, RawBson::Array(_)) {
        return Ok(());
    }
    match Update::parse(update.as_raw_bson_ref(), &[], &Settings::default()) {
        Err(error) if unknown(error.code) => Err(error),
        _ => Ok(()),
    }
}

/// The statement of a command that is explained, which must be the only one.
///
/// # Errors
/// `InvalidLength` for more or none; what is no statement.
pub(super) fn explained(arguments: &Arguments<'_>) -> Result<UpdateStatement> {
    let one = super::write::only_one(arguments, "updates")?;
    statement(one, variables(arguments)?.as_ref())
}

/// The variables of a statement: those of its command, and its constants, the argument `name`.
///
/// # Errors
/// 40413 for a constant that is given twice.
pub(super) fn with_constants(
    arguments: &Arguments<'_>,
    name: &str,
    variables: Option<&Let>,
) -> Result<Option<Let>> {
    let Some(constants) = arguments.document(name)? else {
        return Ok(variables.cloned());
    };
    distinct(&format!("{}.{name}", arguments.name()), constants)?;
    let known = variables.cloned().unwrap_or_default();
    Ok(Some(known.with_constants(constants)))
}

fn statement(document: &RawDocument, variables: Option<&Let>) -> Result<UpdateStatement> {
    let arguments = Arguments::of("update.updates", document)?;
    arguments.only(STATEMENT)?;
    refuse_supplied(&arguments)?;
    let multi = arguments.is_on("multi")?;
    let update = change(arguments.need("u")?)?;
    check_stages(&update)?;
    let sort = arguments.document("sort")?.filter(|sort| !sort.is_empty());
    if multi && sort.is_some() {
        let message = "Cannot specify sort with multi=true";
        return Err(Error::parse(message));
    }
    Ok(UpdateStatement {
        filter: arguments.need_document("q")?.to_owned(),
        update,
        multi,
        upsert: arguments.is_on("upsert")?,
        hint: hint(&arguments)?,
        collation: collation(&arguments)?,
        array_filters: array_filters(&arguments)?,
        sort: sort.map(ToOwned::to_owned),
        variables: with_constants(&arguments, "c", variables)?,
    })
}

fn update(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    docdb::check_user_write(&ns)?;
    let arguments = request.arguments();
    let documents = statements(request, arguments, "updates")?;
    let variables = variables(arguments)?;
    let parsed = documents
        .iter()
        .map(|document| statement(document, variables.as_ref()));
    let parsed = parsed.collect::<Result<Vec<UpdateStatement>>>()?;
    if request.generic.txn_number.is_some()
        && !request.generic.in_transaction
        && parsed.iter().any(|statement| statement.multi)
    {
        let message = "Cannot use retryable writes with multi=true";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let ordered = arguments.boolean("ordered")?.unwrap_or(true);
    let bypass = arguments.is_on("bypassDocumentValidation")?;
    let done = request.with_store(|store, op| store.update(op, &ns, &parsed, ordered, bypass))?;
    command_error(request, &done.errors)?;
    let metrics = &request.server.metrics;
    metrics.ops.update.size(documents.len());
    metrics.documents.updated.add(done.n_modified);
    integer(reply, "n", done.n);
    if !done.upserted.is_empty() {
        reply.open_array("upserted");
        for (i, (index, id)) in done.upserted.iter().enumerate() {
            reply.open_document(&i.to_string());
            reply.int("index", i32::try_from(*index).unwrap_or(i32::MAX));
            reply.value("_id", id).close();
        }
        reply.close();
    }
    integer(reply, "nModified", done.n_modified);
    errors(request, reply, &done.errors);
    retried(request, reply, &done.retried);
    Ok(())
}

/// Append a count as an int32 where it fits.
pub(super) fn integer(reply: &mut Builder, name: &str, n: i64) {
    match i32::try_from(n) {
        Ok(n) => reply.int(name, n),
        Err(_) => reply.long(name, n),
    };
}
