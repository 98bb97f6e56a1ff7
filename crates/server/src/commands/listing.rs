//! Lists of the catalog: `listDatabases`, `listCollections`, `listIndexes`.
//!
//! A list is made when it is asked for: a deployment has thousands of collections at most, not
//! millions. What does not fit into `batchSize` follows by `getMore`, as from any cursor.

use bson::raw::cstr;
use bson::{RawDocumentBuf, rawdoc};
use docdb::{Named, Op, Store};
use query::filter::Filter;
use query::settings::Settings;
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use super::cursor;
use crate::access::{Asked, Needed, Privilege, is_allowed};
use crate::arguments::Arguments;
use crate::auth::privilege::Wanted;
use crate::command::{ADMIN, API, Class, Lane, READS};
use crate::request::{Call, Request};
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("listDatabases", list_databases, "List the databases")
        .lane(Lane::Storage)
        .class(Class::Read)
        .flags(ADMIN | API)
        .fields(&["nameOnly", "filter", "authorizedDatabases"])
        // The command lists only what its user may see.
        .own(|_, _| Ok(())),
    Row::new(
        "listCollections",
        list_collections,
        "List the collections of a database",
    )
    .lane(Lane::Storage)
    .class(Class::Read)
    .flags(API)
    .fields(&["nameOnly", "filter", "authorizedCollections", "cursor"])
    .own(collections_need),
    Row::new(
        "listIndexes",
        list_indexes,
        "List the indexes of a collection",
    )
    .lane(Lane::Storage)
    .class(Class::Read)
    .flags(API | READS)
    .fields(&["cursor", "includeBuildUUIDs", "includeIndexBuildInfo"])
    .privilege(Privilege::Collection("listIndexes")),
];

/// The documents that match the argument `filter`.
fn chosen(request: &Request, documents: Vec<RawDocumentBuf>) -> Result<Vec<RawDocumentBuf>> {
    let filter = match request.arguments().document("filter")? {
        Some(filter) => Some(Filter::parse(filter, &Settings::default())?),
        None => None,
    };
    let mut chosen = Vec::new();
    for document in documents {
        let matches = match &filter {
            Some(filter) => filter.matches(&document)?,
            None => true,
        };
        if matches {
            chosen.push(document);
        }
    }
    Ok(chosen)
}

fn list_databases(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let name_only = request.arguments().is_on("nameOnly")?;
    let catalog = request.server.store.catalog();
    let mut databases = Vec::new();
    let mut total = 0;
    let all = is_allowed(request, &Wanted::Cluster("listDatabases"));
    for name in catalog.databases() {
        let wanted = Wanted::Database(name.to_owned(), "listCollections");
        if !all && !is_allowed(request, &wanted) {
            continue;
        }
        if name_only {
            databases.push(rawdoc! {"name": name});
            continue;
        }
        let collections = catalog
            .in_database(name)
            .filter_map(|(_, named)| named.collection());
        let size: i64 = collections.map(|collection| collection.data_size()).sum();
        total += size;
        databases.push(rawdoc! {"name": name, "sizeOnDisk": size, "empty": size == 0});
    }
    let databases = chosen(request, databases)?;
    reply.documents("databases", databases.iter().map(|document| &**document));
    if !name_only {
        reply
            .long("totalSize", total)
            .long("totalSizeMb", total >> 20);
    }
    Ok(())
}

/// One collection or view as `listCollections` shows it.
fn describe(ns: &Namespace, named: &Named, name_only: bool) -> Result<RawDocumentBuf> {
    let kind = if named.collection().is_some() {
        "collection"
    } else {
        "view"
    };
    let mut shown = rawdoc! {"name": ns.coll.as_str(), "type": kind};
    if name_only {
        return Ok(shown);
    }
    shown.append(cstr!("options"), named.options().to_raw()?);
    match named.collection() {
        None => shown.append(cstr!("info"), rawdoc! {"readOnly": true}),
        Some(collection) => {
            let info = rawdoc! {"readOnly": false, "uuid": bson::Binary::from(collection.uuid())};
            shown.append(cstr!("info"), info);
            if let Some(index) = collection.id_index() {
                shown.append(cstr!("idIndex"), index.spec().to_raw()?);
            }
        }
    }
    Ok(shown)
}

/// Whether only names are requested, of collections on which the client has any privilege: that
/// requires no further privilege.
///
/// # Errors
/// `TypeMismatch`.
fn is_own(arguments: &Arguments<'_>) -> Result<bool> {
    Ok(arguments.is_on("authorizedCollections")? && arguments.is_on("nameOnly")?)
}

/// The privileges of `listCollections`; none if [`is_own`].
fn collections_need(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    if !is_own(asked.sent.arguments)? {
        needed.push(asked.sent.on_database("listCollections"));
    }
    Ok(())
}

fn list_collections(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let name_only = arguments.is_on("nameOnly")?;
    let database = request.database();
    let catalog = request.server.store.catalog();
    let listed = catalog.in_database(database);
    let only = arguments.is_on("authorizedCollections")? && request.server.config.authorization;
    let user = request.server.user_of(&request.client).filter(|_| only);
    let seen = |collection: &str| {
        let user = user.as_ref();
        user.is_none_or(|user| user.may_anything(database, collection))
    };
    let listed = listed
        .filter(|(ns, _)| seen(&ns.coll))
        .map(|(ns, named)| describe(ns, named, name_only))
        .collect::<Result<_>>()?;
    let listed = chosen(request, listed)?;
    answer(request, reply, "$cmd.listCollections", listed)
}

fn list_indexes(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let Some(collection) = request.server.store.collection(&ns) else {
        let message = format!("ns does not exist: {ns}");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    };
    let listed = request.server.store.list_indexes(collection.ns())?;
    answer(request, reply, &ns.coll, listed)
}

/// The size of the first batch, from the argument `cursor`.
pub(super) fn batch_size(arguments: &Arguments<'_>) -> Result<Option<u64>> {
    let Some(options) = arguments.document("cursor")? else {
        return Ok(None);
    };
    let options = Arguments::of("cursor", options)?;
    options.only(&["batchSize"])?;
    options.count("batchSize")
}

fn answer(
    request: &Call<'_>,
    reply: &mut Builder,
    collection: &str,
    listed: Vec<RawDocumentBuf>,
) -> Result<()> {
    let batch_size = batch_size(request.arguments())?;
    let ns = Namespace {
        db: request.database().to_owned(),
        coll: collection.to_owned(),
    };
    let open = |store: &Store, op: &Op<'_>| store.open_list(op, &ns, listed, batch_size);
    let batch = request.with_store(open)?;
    cursor::answer_list(request, reply, &batch);
    Ok(())
}
