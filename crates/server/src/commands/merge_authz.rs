//! `_mergeAuthzCollections`: restores users and roles of a dump from temporary collections.

use bson::{Bson, Document, RawDocumentBuf, doc};
use query::{Error, Namespace, Result};
use wire::Builder;

use crate::access::{Asked, Needed};
use crate::arguments::Arguments;
use crate::auth::custom::{self, Role, Roles};
use crate::auth::privilege::Wanted;
use crate::auth::users::{self, User};
use crate::command::{ADMIN, Lane, WRITES};
use crate::own;
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[Row::new(
    "_mergeAuthzCollections",
    merge,
    "Import users and roles from other collections",
)
.lane(Lane::Storage)
.flags(ADMIN | WRITES)
.own(needs)
.fields(&["tempUsersCollection", "tempRolesCollection", "db", "drop"])];

/// The collection that an argument names, if any.
fn source(arguments: &Arguments<'_>, name: &str) -> Result<Option<Namespace>> {
    match arguments.string(name)? {
        None | Some("") => Ok(None),
        Some(named) => Namespace::parse(named).map(Some),
    }
}

/// Its privileges: to create and drop users and roles on every database, and to read the temporary
/// collections.
fn needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let arguments = asked.sent.arguments;
    let mut actions = vec!["createUser", "createRole", "grantRole", "revokeRole"];
    if arguments.is_on("drop")? {
        actions.extend(["dropUser", "dropRole"]);
    }
    let mut wanted: Vec<Wanted> = actions.into_iter().map(Wanted::Everywhere).collect();
    for name in ["tempUsersCollection", "tempRolesCollection"] {
        if let Some(ns) = source(arguments, name)? {
            wanted.push(Wanted::Collection(ns.db, ns.coll, "find"));
        }
    }
    needed.extend(wanted);
    Ok(())
}

/// The documents of a temporary collection, for one database or for all.
fn waiting(request: &Call<'_>, ns: &Namespace, database: &str) -> Result<Vec<Document>> {
    let filter = match database {
        "" => doc! {},
        database => doc! {"db": database},
    };
    request.with_store(|store, op| own::find(store, op, ns, &filter))
}

/// Delete the existing documents, of one database or of all, that are not in `kept`.
fn drop_others(
    request: &Call<'_>,
    ns: &Namespace,
    kept: &[Document],
    database: &str,
) -> Result<()> {
    if request.server.store.collection(ns).is_none() {
        return Ok(());
    }
    let kept: Vec<Bson> = kept.iter().filter_map(|d| d.get("_id").cloned()).collect();
    let mut filter = doc! {"_id": {"$nin": kept}};
    if !database.is_empty() {
        filter.insert("db", database);
    }
    request.with_store(|store, op| own::delete(store, op, ns, &filter))?;
    Ok(())
}

fn bad(kind: &str, document: &Document) -> Error {
    let id = document.get("_id").cloned().unwrap_or(Bson::Null);
    let message = format!("the document {id} is no {kind}");
    Error::bad_value(message)
}

fn merge(request: &Call<'_>, _: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let database = arguments.string("db")?.unwrap_or_default();
    let drop = arguments.is_on("drop")?;
    let users_from = source(arguments, "tempUsersCollection")?;
    let roles_from = source(arguments, "tempRolesCollection")?;
    if users_from.is_none() && roles_from.is_none() {
        let message = "Must provide at least one of \"tempUsersCollection\" and \
             \"tempRolesCollection\"";
        return Err(Error::bad_value(message));
    }
    let _alone = super::users::alone(request)?;
    // Everything is read and checked before the first change.
    let mut changes = Vec::new();
    if let Some(ns) = roles_from {
        let roles = waiting(request, &ns, database)?;
        if let Some(wrong) = roles.iter().find(|role| Role::of(role).is_none()) {
            return Err(bad("role", wrong));
        }
        changes.push((custom::collection(), roles));
    }
    if let Some(ns) = users_from {
        let mut found = waiting(request, &ns, database)?;
        for user in &mut found {
            let raw = RawDocumentBuf::try_from(&*user)?;
            let read = User::of(&raw, &Roles::default())?;
            let id = user.get_str("_id").unwrap_or_default();
            if read.is_none_or(|read| custom::key(&read.database, &read.name) != id) {
                return Err(bad("user", user));
            }
            if !user.contains_key("userId") {
                let id = bson::Binary::from(bson::Uuid::new());
                user.insert("userId", Bson::Binary(id));
            }
        }
        changes.push((users::collection(), found));
    }
    for (ns, documents) in &changes {
        request.with_store(|store, op| own::put(store, op, ns, documents))?;
        if drop {
            drop_others(request, ns, documents, database)?;
        }
    }
    Ok(())
}
