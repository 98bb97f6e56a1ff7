//! `delete`.

use bson::RawDocument;
use docdb::{DeleteStatement, Let};
use query::{Code, Error, Result};
use wire::Builder;

use super::brief;
use super::find::{collation, variables};
use super::update::integer;
use super::write::{command_error, errors, hint, retried, statements};
use crate::access::Privilege;
use crate::arguments::Arguments;
use crate::command::{
    API, Class, Kind, Lane, RETRYABLE, STREAMS, TRANSACTION, WRITE_ERRORS, WRITES, Written,
};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[Row::new("delete", delete, "Delete documents")
    .lane(Lane::Storage)
    .brief(brief::delete)
    .class(Class::Write)
    .kind(Kind::Remove)
    .written(Written::Deleted)
    .flags(API | WRITES | TRANSACTION | RETRYABLE | STREAMS | WRITE_ERRORS)
    .fields(&[
        "deletes",
        "ordered",
        "let",
        "encryptionInformation",
        "isTimeseriesNamespace",
    ])
    .privilege(Privilege::Collection("remove"))];

/// The statement of a command that is explained, which must be the only one.
///
/// # Errors
/// `InvalidLength` for more or none; what is no statement.
pub(super) fn explained(arguments: &Arguments<'_>) -> Result<DeleteStatement> {
    let one = super::write::only_one(arguments, "deletes")?;
    statement(one, variables(arguments)?.as_ref())
}

fn statement(document: &RawDocument, variables: Option<&Let>) -> Result<DeleteStatement> {
    let arguments = Arguments::of("delete.deletes", document)?;
    arguments.only(&["q", "limit", "hint", "collation", "sampleId"])?;
    arguments.need("limit")?;
    let multi = match arguments.long("limit")? {
        Some(0) => true,
        Some(1) => false,
        limit => {
            let limit = limit.unwrap_or_default();
            let message = format!("The limit field in delete objects must be 0 or 1. Got {limit}");
            return Err(Error::parse(message));
        }
    };
    Ok(DeleteStatement {
        filter: arguments.need_document("q")?.to_owned(),
        multi,
        hint: hint(&arguments)?,
        collation: collation(&arguments)?,
        variables: variables.cloned(),
    })
}

fn delete(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    docdb::check_user_write(&ns)?;
    let arguments = request.arguments();
    let documents = statements(request, arguments, "deletes")?;
    let variables = variables(arguments)?;
    let parsed = documents
        .iter()
        .map(|document| statement(document, variables.as_ref()));
    let parsed = parsed.collect::<Result<Vec<DeleteStatement>>>()?;
    if request.generic.txn_number.is_some()
        && !request.generic.in_transaction
        && parsed.iter().any(|statement| statement.multi)
    {
        let message = "Cannot use retryable writes with limit=0";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let ordered = arguments.boolean("ordered")?.unwrap_or(true);
    let done = request.with_store(|store, op| store.delete(op, &ns, &parsed, ordered))?;
    command_error(request, &done.errors)?;
    let metrics = &request.server.metrics;
    metrics.ops.delete.size(documents.len());
    metrics.documents.deleted.add(done.n);
    integer(reply, "n", done.n);
    errors(request, reply, &done.errors);
    retried(request, reply, &done.retried);
    Ok(())
}
