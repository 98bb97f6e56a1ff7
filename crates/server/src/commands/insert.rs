//! `insert`.

use docdb::InsertOptions;
use query::Result;
use wire::Builder;

use super::brief;
use super::write::{command_error, errors, retried, statements};
use crate::access::Privilege;
use crate::command::{
    API, Class, Kind, Lane, RETRYABLE, STREAMS, TRANSACTION, WRITE_ERRORS, WRITES, Written,
};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[Row::new("insert", insert, "Insert documents")
    .lane(Lane::Storage)
    .brief(brief::insert)
    .class(Class::Write)
    .kind(Kind::Insert)
    .written(Written::Inserted)
    .flags(API | WRITES | TRANSACTION | RETRYABLE | STREAMS | WRITE_ERRORS)
    .fields(&[
        "documents",
        "ordered",
        "bypassDocumentValidation",
        "bypassEmptyTsReplacement",
        "encryptionInformation",
        "isTimeseriesNamespace",
        "maxTimeMS",
    ])
    .privilege(Privilege::Collection("insert"))];

fn insert(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    docdb::check_user_write(&ns)?;
    let arguments = request.arguments();
    let documents = statements(request, arguments, "documents")?;
    let options = InsertOptions {
        ordered: arguments.boolean("ordered")?.unwrap_or(true),
        bypass_validation: arguments.is_on("bypassDocumentValidation")?,
        keep_zero_timestamps: arguments.is_on("bypassEmptyTsReplacement")?,
    };
    let done = request.with_store(|store, op| store.insert(op, &ns, &documents, options))?;
    command_error(request, &done.errors)?;
    let metrics = &request.server.metrics;
    metrics.ops.insert.size(documents.len());
    metrics.documents.inserted.add(i64::from(done.n));
    reply.int("n", done.n);
    errors(request, reply, &done.errors);
    retried(request, reply, &done.retried);
    Ok(())
}
