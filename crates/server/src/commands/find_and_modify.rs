//! `findAndModify`.

use bson::Bson;
use docdb::FindAndModify;
use query::{Error, Result};
use wire::Builder;

use super::find::{collation, variables};
use super::update::{array_filters, change, integer};
use super::write::{hint, retried};
use crate::access::{Asked, Needed};
use crate::arguments::Arguments;
use crate::command::{API, Class, Lane, RETRYABLE, TRANSACTION, WRITES, Written};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[Row::new(
    "findAndModify",
    find_and_modify,
    "Update or delete one document and return it",
)
.aliases(&["findandmodify"])
.lane(Lane::Storage)
.class(Class::Write)
.written(Written::One)
.flags(API | WRITES | TRANSACTION | RETRYABLE)
.fields(&[
    "query",
    "sort",
    "remove",
    "update",
    "new",
    "fields",
    "upsert",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "collation",
    "arrayFilters",
    "hint",
    "let",
    "encryptionInformation",
    "sampleId",
])
.own(needs)];

/// The request of the command.
///
/// # Errors
/// Arguments that are not right.
pub(super) fn asked(arguments: &Arguments<'_>) -> Result<FindAndModify> {
    let remove = arguments.is_on("remove")?;
    let update = arguments.get("update").map(change).transpose()?;
    let (new, upsert) = (arguments.is_on("new")?, arguments.is_on("upsert")?);
    let problem = match (&update, remove) {
        (None, false) => Some("Either an update or remove=true must be specified"),
        (Some(_), true) => Some("Cannot specify both an update and remove=true"),
        (None, true) if upsert => Some("Cannot specify both upsert=true and remove=true"),
        (None, true) if new => Some(
            "Cannot specify both new=true and remove=true; 'remove' always returns the deleted \
             document",
        ),
        (None, true) if arguments.get("arrayFilters").is_some() => {
            Some("Cannot specify arrayFilters and remove=true")
        }
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(Error::parse(problem));
    }
    let sort = arguments.document("sort")?.filter(|sort| !sort.is_empty());
    let fields = arguments
        .document("fields")?
        .filter(|fields| !fields.is_empty());
    Ok(FindAndModify {
        filter: arguments
            .document("query")?
            .map(ToOwned::to_owned)
            .unwrap_or_default(),
        sort: sort.map(ToOwned::to_owned),
        update,
        new,
        fields: fields.map(ToOwned::to_owned),
        upsert,
        array_filters: array_filters(arguments)?,
        hint: hint(arguments)?,
        collation: collation(arguments)?,
        variables: variables(arguments)?,
        bypass_validation: arguments.is_on("bypassDocumentValidation")?,
    })
}

/// The privileges of a `findAndModify`.
fn needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    let (removes, upserts) = (
        sent.arguments.is_on("remove")?,
        sent.arguments.is_on("upsert")?,
    );
    let actions: &[&'static str] = match (removes, upserts) {
        (true, _) => &["find", "remove"],
        (false, true) => &["find", "update", "insert"],
        (false, false) => &["find", "update"],
    };
    needed.extend(actions.iter().copied().map(|action| sent.on(action)));
    Ok(())
}

fn find_and_modify(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    docdb::check_user_write(&ns)?;
    let asked = asked(request.arguments())?;
    let done = request.with_store(|store, op| store.find_and_modify(op, &ns, &asked))?;
    reply.open_document("lastErrorObject");
    integer(reply, "n", done.n);
    if asked.update.is_some() {
        reply.boolean("updatedExisting", done.updated_existing);
    }
    if let Some(id) = &done.upserted {
        reply.value("upserted", id);
    }
    reply.close();
    match &done.value {
        Some(document) => reply.document("value", document),
        None => reply.value("value", &Bson::Null),
    };
    if done.retried {
        retried(request, reply, &[request.generic.stmt_id.unwrap_or(0)]);
    }
    Ok(())
}
