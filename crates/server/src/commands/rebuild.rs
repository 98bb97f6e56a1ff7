//! Commands that rebuild collections and indexes: `reIndex`, `cloneCollectionAsCapped`.

use bson::doc;
use docdb::{CollectionOptions, FindRequest, IndexNames, IndexSpec, InsertOptions};
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use crate::access::{Asked, Needed, Privilege};
use crate::command::{Lane, WRITES};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("reIndex", re_index, "Rebuild the indexes of a collection")
        .lane(Lane::Storage)
        .flags(WRITES)
        .privilege(Privilege::Collection("reIndex")),
    Row::new(
        "cloneCollectionAsCapped",
        clone_as_capped,
        "Copy a collection to a new capped collection",
    )
    .lane(Lane::Storage)
    .flags(WRITES)
    .fields(&["toCollection", "size", "temp"])
    .own(clone_needs),
];

/// The privileges of `cloneCollectionAsCapped` on both collections.
fn clone_needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let sent = &asked.sent;
    let to = sent.arguments.need_string("toCollection")?;
    let into = |action| sent.on_collection(to, action);
    needed.extend([sent.on("find"), into("insert"), into("convertToCapped")]);
    Ok(())
}

/// Rebuild all indexes except the one on `_id`, which exists as long as its collection.
fn re_index(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    if call.server.topology.is_replica_set() {
        let message = "reIndex is only allowed on a standalone mongod instance.";
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let ns = call.namespace()?;
    let Some(collection) = call.server.store.collection(&ns) else {
        let message = format!("collection does not exist: {ns}");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    };
    let all = collection.indexes().iter().map(|index| index.spec());
    let specs = all.clone().map(IndexSpec::to_raw);
    let specs = specs.collect::<Result<Vec<_>>>()?;
    let again = all.filter(|spec| !spec.is_id()).map(IndexSpec::to_raw);
    let again = again.collect::<Result<Vec<_>>>()?;
    collection.check_no_build()?;
    call.with_store(|store, op| {
        store.drop_indexes(op, &ns, &IndexNames::All)?;
        if again.is_empty() {
            return Ok(());
        }
        store.create_indexes_raw(op, &ns, &again).map(|_| ())
    })?;
    let count = i32::try_from(specs.len()).unwrap_or(i32::MAX);
    reply.int("nIndexesWas", count).int("nIndexes", count);
    reply.documents("indexes", specs.iter().map(|spec| &**spec));
    Ok(())
}

fn clone_as_capped(call: &Call<'_>, _: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let from = call.namespace()?;
    let to = Namespace::new(call.database(), arguments.need_string("toCollection")?)?;
    let size = arguments.long("size")?.unwrap_or(0);
    if size <= 0 {
        let message = "Capped collection size must be greater than zero";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    let store = &call.server.store;
    if store.collection(&from).is_none() {
        let message = format!("cloneCollectionAsCapped: source collection {from} does not exist");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    }
    if store.lookup(&to).is_some() {
        let message = format!("cloneCollectionAsCapped: target {to} already exists");
        return Err(Error::new(Code::NAMESPACE_EXISTS, message));
    }
    let options = CollectionOptions::parse(&doc! {"capped": true, "size": size})?;
    call.with_store(|store, op| {
        store.create(op, &to, options)?;
        let mut next = Some(store.find(op, &from, &FindRequest::default())?);
        while let Some(batch) = next {
            let documents: Vec<_> = batch.documents.iter().map(AsRef::as_ref).collect();
            let done = store.insert(op, &to, &documents, InsertOptions::default())?;
            if let Some(failed) = done.errors.into_iter().next() {
                return Err(failed.error);
            }
            next = store.following(op, &batch)?;
        }
        Ok(())
    })
}
