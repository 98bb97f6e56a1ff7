//! `getMore` and `killCursors`, and the replies of all cursors.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bson::RawBsonRef;
use docdb::{Batch, GetMore, Op, Origin, Owner};
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use crate::access::is_allowed;
use crate::arguments::type_name;
use crate::auth::privilege::Wanted;
use crate::command::{ABANDON, API, CONTINUES, Class, Kind, Lane, SNAPSHOT, TRANSACTION};
use crate::request::{Call, Request, shown};
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    // The privileges of the command that opened a cursor are kept with the cursor.
    Row::new("getMore", get_more, "Return the next batch of a cursor")
        .lane(Lane::Storage)
        .class(Class::Read)
        .kind(Kind::GetMore)
        .flags(API | TRANSACTION | ABANDON | SNAPSHOT | CONTINUES)
        .fields(&[
            "collection",
            "batchSize",
            "term",
            "lastKnownCommittedOpTime",
        ]),
    Row::new("killCursors", kill_cursors, "Close cursors")
        .lane(Lane::Reserved)
        .flags(API | TRANSACTION)
        .fields(&["cursors"])
        // The command checks the owners of the cursors.
        .own(|_, _| Ok(())),
];

/// Append a batch of a cursor.
pub(super) fn answer(request: &Call<'_>, reply: &mut Builder, name: &str, batch: &Batch) {
    request
        .server
        .metrics
        .documents
        .returned
        .size(batch.documents.len());
    reply.open_document("cursor");
    reply.documents(name, batch.documents.iter().map(|document| &**document));
    if let Some(resume) = &batch.resume {
        reply.document("postBatchResumeToken", resume);
    }
    if name == "firstBatch" {
        at_time(request, reply);
        opened(request, batch);
    }
    reply
        .long("id", batch.id)
        .string("ns", &batch.ns.to_string());
    reply.close();
    request
        .more
        .store(batch.id != 0 && name == "nextBatch", Ordering::Relaxed);
}

/// Record with a cursor the command that opened it, if the cursor stays open.
fn opened(request: &Call<'_>, batch: &Batch) {
    if batch.id != 0 {
        let origin = Origin {
            command: shown(request),
            plan: request.examined.plans(),
            committed: request.reads_committed(),
            needs: request.needs.get().map(|needs| {
                let needs: Arc<dyn Any + Send + Sync> = Arc::clone(needs) as _;
                needs
            }),
        };
        request.server.store.set_cursor_origin(batch.id, origin);
    }
}

/// Append the first batch of a list, with the fields in MongoDB's order for lists.
pub(super) fn answer_list(request: &Call<'_>, reply: &mut Builder, batch: &Batch) {
    opened(request, batch);
    reply.open_document("cursor").long("id", batch.id);
    reply.string("ns", &batch.ns.to_string());
    let documents = batch.documents.iter().map(|document| &**document);
    reply.documents("firstBatch", documents).close();
}

/// Append the time of the snapshot that was read.
pub(super) fn at_time(request: &Call<'_>, reply: &mut Builder) {
    if let Some(held) = request.op().held {
        reply.timestamp("atClusterTime", held.time());
    }
}

/// The cursor id in a value of any type that MongoDB accepts for ids.
pub(super) fn cursor_id(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int64(id) => Some(id),
        RawBsonRef::Int32(id) => Some(i64::from(id)),
        _ => None,
    }
}

/// The namespace of a cursor, including names that are not collections, such as that of
/// `listCollections`.
fn namespace(request: &Request, collection: &str) -> Result<Namespace> {
    if collection.starts_with("$cmd.") {
        return Ok(Namespace {
            db: request.database().to_owned(),
            coll: collection.to_owned(),
        });
    }
    Namespace::new(request.database(), collection)
}

/// Check that the user still has the privileges that the cursor's command required.
///
/// # Errors
/// `Unauthorized`. A cursor of another user is refused where it is used.
fn check_needs(request: &Request, id: i64) -> Result<()> {
    let store = &request.server.store;
    if !request.server.config.authorization {
        return Ok(());
    }
    let own = |owner: &Owner| owner.user == request.user();
    if !store.cursor_owner(id).is_some_and(|(_, owner)| own(&owner)) {
        return Ok(());
    }
    let needs = store.cursor_needs(id);
    let needs = needs
        .as_deref()
        .and_then(|n| n.downcast_ref::<Vec<Wanted>>());
    // A cursor without privileges is internal to a command.
    match needs.is_some_and(|needs| needs.iter().all(|wanted| is_allowed(request, wanted))) {
        true => Ok(()),
        false => {
            let message = format!("not authorized for getMore with cursor id {id}");
            Err(Error::new(Code::UNAUTHORIZED, message))
        }
    }
}

fn get_more(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let target = request.target();
    let Some(id) = cursor_id(target) else {
        let found = type_name(target);
        return Err(Error::type_mismatch(format!(
            "BSON field 'getMore.getMore' is the wrong type '{found}', expected type 'long'"
        )));
    };
    check_needs(request, id)?;
    let arguments = request.arguments();
    let wanted = GetMore {
        id,
        ns: namespace(request, arguments.need_string("collection")?)?,
        batch_size: arguments.count("batchSize")?,
        waits: !request.awaits.is_over(),
        waited: request.awaits.has_waited(),
    };
    let batch = request.with_store(|store, op| {
        // The time limit of `getMore` only limits the wait for data; the deadline was set when the
        // cursor was opened.
        let left = store.cursor_left(id);
        if let Some(origin) = store.cursor_origin(op, id) {
            request.origin.get_or_init(|| origin);
        }
        if let Some(code) = request.server.failpoints.hit_cursor() {
            let message = "Hit the 'failGetMoreAfterCursorCheckout' failpoint";
            return Err(Error::new(Code(code), message));
        }
        if request
            .server
            .failpoints
            .hit_limit(left.is_some())
            .is_some()
        {
            let message = "operation exceeded time limit";
            return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, message));
        }
        let deadline = left.map(|left| *request.ends.get_or_init(|| stdx::time::now() + left));
        let op = Op {
            deadline,
            ..op.clone()
        };
        store.get_more(&op, &wanted)
    })?;
    answer(request, reply, "nextBatch", &batch);
    request.awaits.set(id, batch.awaits);
    Ok(())
}

/// Whether a client may close a cursor on `ns`, whatever namespace the command names: its own
/// cursor, or any cursor if it has the privilege.
fn may_kill(request: &Request, ns: &Namespace, owner: &Owner) -> bool {
    let action = "killAnyCursor";
    let on = Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
    owner.user == request.user()
        || is_allowed(request, &Wanted::Cluster(action))
        || is_allowed(request, &on)
}

fn kill_cursors(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let Some(collection) = request.target().as_str() else {
        let message = "BSON field 'killCursors.killCursors' is the wrong type, expected 'string'";
        return Err(Error::new(Code::TYPE_MISMATCH, message));
    };
    let ns = namespace(request, collection)?;
    let mut ids = Vec::new();
    for id in request.arguments().need_array("cursors")? {
        let id = id?;
        ids.push(cursor_id(id).ok_or_else(|| {
            let found = type_name(id);
            Error::type_mismatch(format!(
                "BSON field 'killCursors.cursors' is the wrong type '{found}', expected type 'long'"
            ))
        })?);
    }
    if ids.is_empty() {
        let message = "Must specify at least one cursor id in: killCursors";
        return Err(Error::bad_value(message));
    }
    let store = &request.server.store;
    let owned = ids.iter().filter_map(|id| store.cursor_owner(*id));
    for (of, owner) in owned {
        if !may_kill(request, &of, &owner) {
            let message = format!("not authorized to kill cursors on {ns}");
            return Err(Error::new(Code::UNAUTHORIZED, message));
        }
    }
    let killed = store.kill_cursors(&ids, &|of, owner| may_kill(request, of, owner));
    for (name, ids) in [
        ("cursorsKilled", &killed.killed),
        ("cursorsNotFound", &killed.not_found),
        ("cursorsAlive", &killed.alive),
        ("cursorsUnknown", &Vec::new()),
    ] {
        reply.open_array(name);
        for (i, id) in ids.iter().enumerate() {
            reply.long(&i.to_string(), *id);
        }
        reply.close();
    }
    Ok(())
}
