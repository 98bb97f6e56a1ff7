//! The command `applyOps`.

use std::sync::Arc;

use bson::{Bson, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use docdb::{AppliedEntry, CollectionOptions};
use query::{Code, Error, Namespace, Result};
use stdx::sync::OnceLock;
use tokio::sync::Notify;
use wire::{Builder, Decoder, Message, Parts};

use super::needs::{DEPTH_MAX, needs, too_deep};
use super::operation::{Inner, Kind, Operation, Ordered, Target, inner, parse_all};
use super::target::{self, How, target};
use crate::arguments::{Generic, Parsed};
use crate::command::{ELSEWHERE, Lane, WRITES};
use crate::request::{Call, Request};
use crate::row::Row;
use crate::state;

pub(in crate::commands) const ROWS: &[Row] =
    &[Row::new("applyOps", apply_ops, "Apply oplog entries")
        .lane(Lane::Storage)
        .flags(WRITES | ELSEWHERE)
        .fields(&[
            "alwaysUpsert",
            "allowAtomic",
            "bypassDocumentValidation",
            "oplogApplicationMode",
            "preCondition",
        ])
        .own(needs)];

/// The results of entries: for each entry that was tried whether it was applied, and the error.
struct Outcome {
    results: Vec<bool>,
    failed: Option<Error>,
}

fn apply_ops(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    if arguments.get("preCondition").is_some() {
        let message = "applyOps command no longer supports the 'preCondition' option";
        return Err(Error::location(6_711_600, message));
    }
    let how = How {
        always_upsert: arguments.boolean("alwaysUpsert")?.unwrap_or(true),
        bypass_validation: arguments.is_on("bypassDocumentValidation")?,
    };
    let outcome = apply(request, arguments.need_array("applyOps")?, how, 0)?;
    let applied = i32::try_from(outcome.results.len()).unwrap_or(i32::MAX);
    let results: Vec<Bson> = outcome.results.into_iter().map(Bson::Boolean).collect();
    match outcome.failed {
        None => {
            reply.int("applied", applied);
            reply.value("results", &Bson::Array(results));
            Ok(())
        }
        Some(error) => {
            let mut details = doc! {"applied": applied, "results": results};
            details.extend(error.details.as_deref().cloned().unwrap_or_default());
            Err(error.with_details(details))
        }
    }
}

fn apply(request: &Call<'_>, list: &RawArray, how: How, depth: usize) -> Result<Outcome> {
    if DEPTH_MAX < depth {
        return Err(too_deep());
    }
    let operations = parse_all(list)?;
    let documents = |operation: &Operation<'_>| operation.kind != Kind::Command;
    if !operations.iter().all(documents) || of_capped(request, &operations, how)? {
        return one_by_one(request, &operations, how, depth);
    }
    let failed = changes(request, &operations, how).err();
    let tried = failed.as_ref().map_or(operations.len(), |(at, _)| at + 1);
    Ok(Outcome {
        results: vec![failed.is_none(); tried],
        failed: failed.map(|(_, error)| error),
    })
}

/// Whether the entries change a capped collection: those are locked one at a time.
fn of_capped(request: &Call<'_>, operations: &[Operation<'_>], how: How) -> Result<bool> {
    for operation in operations.iter().filter(|o| o.kind != Kind::Nothing) {
        let ns = target(request, operation, how)?;
        let found = request.server.store.collection(&ns);
        if found.is_some_and(|found| found.options().capped.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Apply document changes together (E1). On failure the index of the failing entry is returned.
fn changes(
    request: &Call<'_>,
    operations: &[Operation<'_>],
    how: How,
) -> Result<(), (usize, Error)> {
    let mut entries = Vec::new();
    let mut places = Vec::new();
    for (place, operation) in operations.iter().enumerate() {
        if operation.kind == Kind::Nothing {
            continue;
        }
        let entry = operation.change(how.always_upsert).and_then(|change| {
            let ns = target(request, operation, how)?;
            Ok(AppliedEntry { ns, change })
        });
        entries.push(entry.map_err(|error| (place, error))?);
        places.push(place);
    }
    let store = &request.server.store;
    let done = store.apply(request.op(), &entries, how.bypass_validation);
    done.map_err(|(at, error)| (places.get(at).copied().unwrap_or(at), error))?;
    let ops = &request.server.metrics.ops;
    for operation in operations {
        match operation.kind {
            Kind::Insert => ops.insert.one(),
            Kind::Update => ops.update.one(),
            Kind::Delete => ops.delete.one(),
            Kind::Command | Kind::Nothing => {}
        }
    }
    Ok(())
}

/// Apply entries one by one. A failing document change ends the loop; a failing command is reported
/// after the last entry.
fn one_by_one(
    request: &Call<'_>,
    operations: &[Operation<'_>],
    how: How,
    depth: usize,
) -> Result<Outcome> {
    let mut outcome = Outcome {
        results: Vec::new(),
        failed: None,
    };
    for operation in operations {
        request.op().check()?;
        let done = match operation.kind {
            Kind::Command => command(request, operation, how, depth),
            _ => changes(request, std::slice::from_ref(operation), how).map_err(|(_, e)| e),
        };
        outcome.results.push(done.is_ok());
        let Err(error) = done else {
            continue;
        };
        if operation.kind != Kind::Command {
            outcome.failed = Some(error);
            break;
        }
        outcome.failed.get_or_insert_with(|| {
            let message = format!(
                "applyOps had one or more errors applying ops :: caused by :: {}",
                error.message
            );
            Error::new(Code::UNKNOWN_ERROR, message)
        });
    }
    Ok(outcome)
}

/// Run the command of an entry.
fn command(request: &Call<'_>, operation: &Operation<'_>, how: How, depth: usize) -> Result<()> {
    let ordered = match operation.command()? {
        Inner::Command(ordered) => ordered,
        Inner::Entries(body) => {
            let nested = apply(request, inner(&body)?, how, depth + 1)?;
            return nested.failed.map_or(Ok(()), Err);
        }
    };
    let done = apply_command(request, operation.uuid, &ordered);
    match done {
        Err(error) if ordered.form.accepted.contains(&error.code) => Ok(()),
        done => done,
    }
}

fn apply_command(
    request: &Call<'_>,
    uuid: Option<bson::Uuid>,
    ordered: &Ordered<'_>,
) -> Result<()> {
    let body = &ordered.body;
    let (Some(uuid), row) = (uuid, ordered.row) else {
        return run(request, (ordered.database, ordered.row), body);
    };
    if ordered.form.target == Target::New && body.get("viewOn")?.is_none() {
        return create(request, ordered.database, body, uuid);
    }
    match target::command(request, ordered, uuid)? {
        Some((database, body)) => run(request, (&database, row), &body),
        None => run(request, (ordered.database, row), body),
    }
}

/// Create a collection with the UUID of the entry.
fn create(request: &Call<'_>, database: &str, body: &RawDocument, uuid: bson::Uuid) -> Result<()> {
    let Some(RawBsonRef::String(name)) = body.get("create")? else {
        let message = "collection name has invalid type";
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    };
    let ns = Namespace::new(database, name)?;
    let mut fields = RawDocumentBuf::new();
    for element in body {
        let (name, value) = element?;
        if name != "create" {
            fields.append(name, value);
        }
    }
    let options = CollectionOptions::parse_raw(&fields)?;
    request.with_store(|store, op| store.create_with_uuid(op, &ns, options, uuid))
}

/// Run another command as part of this one. Its privileges were checked together with the entries.
fn run(
    request: &Call<'_>,
    (database, row): (&str, &'static Row),
    body: &RawDocument,
) -> Result<()> {
    let parts = Parts {
        request_id: 0,
        response_to: 0,
        flags: 0,
    };
    let bad = |error: wire::Error| Error::bad_value(format!("the command of an op: {error}"));
    let mut decoder = Decoder::new();
    decoder.push(&wire::encode(parts, body, &[]));
    let frame = decoder.frame().map_err(bad)?;
    let frame = frame.ok_or_else(|| Error::bad_value("the command of an op is cut"))?;
    let inner = state::Operation {
        client: Arc::clone(&request.client),
        parsed: Parsed::of(Message::decode(frame).map_err(bad)?)?,
        command: &row.command,
        generic: Generic {
            database: database.to_owned(),
            ..request.generic.clone()
        },
        number: request.number,
        started: request.started,
        killed: Arc::clone(&request.killed),
        interrupted: Notify::new(),
        examined: Arc::clone(&request.examined),
        origin: OnceLock::new(),
    };
    let inner = Request::new(&request.server, inner, row.run);
    request.within(&inner, &mut Builder::new())
}
