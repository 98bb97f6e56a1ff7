//! Changes of the catalog: collections and views, databases, renames, options.

use std::borrow::Cow;

use bson::raw::{CString, cstr};
use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use docdb::{CollectionOptions, View};
use query::pipeline::check_pipeline;
use query::{Code, Error, Namespace, Result, namespace};
use wire::Builder;

use super::pipeline;
use crate::access::{Asked, Needed, Privilege};
use crate::arguments::{Arguments, GENERIC};
use crate::auth::privilege::Wanted;
use crate::command::{ADMIN, API, LOOSE, Lane, TRANSACTION, WRITES};
use crate::request::{Call, Understood, failure};
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("create", create, "Create a collection or a view")
        .lane(Lane::Storage)
        // The parser of the options checks their names.
        .flags(API | WRITES | LOOSE | TRANSACTION)
        .privilege(Privilege::Collection("createCollection"))
        .also(create_needs),
    Row::new("drop", drop, "Drop a collection or a view")
        .lane(Lane::Storage)
        .flags(API | WRITES)
        .privilege(Privilege::Collection("dropCollection")),
    Row::new("dropDatabase", drop_database, "Drop a database")
        .lane(Lane::Storage)
        .flags(API | WRITES)
        .privilege(Privilege::Database("dropDatabase")),
    Row::new("renameCollection", rename, "Rename a collection")
        .lane(Lane::Storage)
        .flags(ADMIN | WRITES)
        .fields(&["to", "dropTarget", "stayTemp"])
        .own(rename_needs),
    Row::new(
        "collMod",
        modify,
        "Change options of a collection or an index",
    )
    .lane(Lane::Storage)
    .flags(API | WRITES | LOOSE)
    .privilege(Privilege::Collection("collMod"))
    .also(modify_needs),
    Row::new(
        "convertToCapped",
        convert_to_capped,
        "Convert a collection to a capped one",
    )
    .lane(Lane::Storage)
    .flags(WRITES)
    .fields(&["size"])
    .privilege(Privilege::Collection("convertToCapped")),
];

/// The arguments that are specific to a command, as owned values.
fn own_fields(arguments: &Arguments<'_>) -> Result<RawDocumentBuf> {
    let mut fields = RawDocumentBuf::new();
    for (name, value) in arguments.iter().skip(1) {
        if GENERIC.contains(&name) {
            continue;
        }
        if let ("pipeline", RawBsonRef::Array(stages)) = (name, value) {
            check_pipeline(stages)?;
        }
        fields.append(CString::try_from(name)?, value);
    }
    Ok(fields)
}

/// The options of a `create`.
///
/// # Errors
/// Options that are not right.
fn created(arguments: &Arguments<'_>) -> Result<CollectionOptions> {
    CollectionOptions::parse_raw(&own_fields(arguments)?)
}

/// The view that the fields of a `collMod` define. Both parts are required: with one part of the
/// old view the user could define a view over collections that it cannot read.
///
/// # Errors
/// `InvalidOptions`; options that are not right.
fn modified(fields: &RawDocument) -> Result<Option<View>> {
    match (fields.get("viewOn")?, fields.get("pipeline")?) {
        (None, None) => Ok(None),
        (Some(on), Some(stages)) => {
            let mut view = RawDocumentBuf::new();
            view.append(cstr!("viewOn"), on);
            view.append(cstr!("pipeline"), stages);
            Ok(CollectionOptions::parse_raw(&view)?.view)
        }
        _ => {
            let message = "Must specify both 'viewOn' and 'pipeline' when modifying a view";
            Err(Error::new(Code::INVALID_OPTIONS, message))
        }
    }
}

/// A user that defines a view must be allowed to read its collections.
fn view_needs(view: Option<&View>, asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    match view {
        Some(view) => {
            let accesses = view.accesses(asked.sent.database)?;
            pipeline::needs(accesses, false, asked.user, &mut needed.wanted)
        }
        None => Ok(()),
    }
}

/// The privileges of `create`, whose options are kept for the command to run with (A4).
fn create_needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    let options = created(sent.arguments)?;
    view_needs(options.view.as_ref(), asked, needed)?;
    needed.understood = Understood::Created(Box::new(options)).kept(sent.bytes());
    Ok(())
}

/// The privileges of `collMod`, whose fields are kept for the command to run with (A4).
fn modify_needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    let fields = own_fields(sent.arguments)?;
    let view = modified(&fields)?;
    view_needs(view.as_ref(), asked, needed)?;
    needed.understood = Understood::Modified(fields, view).kept(sent.bytes());
    Ok(())
}

/// The privileges of `renameCollection`, within a database or between two.
fn rename_needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let arguments = asked.sent.arguments;
    let from = Namespace::parse(asked.sent.collection())?;
    let to = Namespace::parse(arguments.need_string("to")?)?;
    let on = |ns: &Namespace, action| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
    if from.db == to.db {
        let action = "renameCollectionSameDB";
        needed.extend([on(&from, action), on(&to, action)]);
        // A rename must not let users read a collection that they could not read before.
        if asked.user.may(&on(&to, "find")) {
            needed.push(on(&from, "find"));
        }
    } else {
        needed.extend([
            on(&from, "find"),
            on(&from, "dropCollection"),
            on(&to, "insert"),
            on(&to, "createIndex"),
            on(&to, "createCollection"),
        ]);
    }
    if arguments.is_on("dropTarget")? {
        needed.push(on(&to, "dropCollection"));
    }
    Ok(())
}

fn create(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let options = match &request.understood {
        Some(Understood::Created(options)) => options.as_ref().clone(),
        _ => created(request.arguments())?,
    };
    if options.auto_index_id.is_some() {
        let note = "The autoIndexId option is deprecated and will be removed in a future release";
        reply.string("note", note);
    }
    request.with_store(|store, op| store.create(op, &ns, options))
}

/// Check that a collection may be dropped: of the system collections only those that the server
/// recreates.
fn check_drop(ns: &Namespace) -> Result<()> {
    let Some(rest) = ns.coll.strip_prefix("system.") else {
        return Ok(());
    };
    let again = match ns.db.as_str() {
        "admin" => rest == "keys",
        "config" => rest == "sessions",
        "local" => rest == "healthlog",
        _ => false,
    };
    if again || matches!(rest, "profile" | "views") || rest.starts_with("buckets.") {
        return Ok(());
    }
    let message = format!("can't drop system collection {ns}");
    Err(Error::new(Code::ILLEGAL_OPERATION, message))
}

fn drop(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    if request.server.store.lookup(&ns).is_some() {
        check_drop(&ns)?;
    }
    let store = &request.server.store;
    let indexes = store
        .collection(&ns)
        .map_or(0, |collection| collection.indexes().len());
    let dropped = request.with_store(|store, op| store.drop_collection(op, &ns))?;
    if dropped {
        reply.int("nIndexesWas", i32::try_from(indexes).unwrap_or(i32::MAX));
        reply.string("ns", &ns.to_string());
    }
    Ok(())
}

fn drop_database(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let database = request.database();
    namespace::check_database(database)?;
    if matches!(database, "admin" | "local" | "config") {
        let message = format!("Dropping the '{database}' database is prohibited.");
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let dropped = request.with_store(|store, op| store.drop_database(op, database))?;
    if dropped {
        reply.string("dropped", database);
    }
    Ok(())
}

fn rename(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let from = request.target().as_str().unwrap_or_default();
    let (from, to) = (
        Namespace::parse(from)?,
        Namespace::parse(arguments.need_string("to")?)?,
    );
    let drop_target = arguments.is_on("dropTarget")?;
    request.with_store(|store, op| store.rename(op, &from, &to, drop_target))
}

fn modify(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let (fields, view) = match &request.understood {
        Some(Understood::Modified(fields, view)) => (Cow::Borrowed(fields), view.as_ref()),
        _ => (Cow::Owned(own_fields(request.arguments())?), None),
    };
    let done = request.with_store(|store, op| store.coll_mod_parsed(op, &ns, (&fields, view)))?;
    failure::append(reply, &done);
    Ok(())
}

fn convert_to_capped(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let size = request.arguments().long("size")?;
    let size = size.ok_or_else(|| Error::bad_value("convertToCapped needs a size"))?;
    request.with_store(|store, op| store.convert_to_capped(op, &ns, size))
}
