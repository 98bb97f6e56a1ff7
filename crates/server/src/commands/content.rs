//! Commands that read whole collections: `dataSize`, `dbHash`.

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use docdb::{FindRequest, Op, Store};
use md5::{Digest as _, Md5};
use query::{Code, Error, Namespace, Result};
use wire::Builder;

use super::cursor;
use super::find::number;
use crate::access::{Asked, Needed, Privilege};
use crate::auth::privilege::Wanted;
use crate::command::{ABANDON, Class, Lane, READS, SNAPSHOT};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "dataSize",
        data_size,
        "Return the size of a collection's documents",
    )
    .lane(Lane::Storage)
    .class(Class::Read)
    .flags(READS | ABANDON)
    .fields(&[
        "keyPattern",
        "min",
        "max",
        "estimate",
        "maxSize",
        "maxObjects",
    ])
    .own(size_needs),
    Row::new("dbHash", db_hash, "Return a hash of each collection")
        .aliases(&["dbhash"])
        .lane(Lane::Storage)
        .class(Class::Read)
        .flags(READS | ABANDON | SNAPSHOT)
        .fields(&["collections", "skipTempCollections"])
        .privilege(Privilege::Database("dbHash")),
];

/// The privileges of `dataSize`, whose first field names the database as well.
fn size_needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let ns = Namespace::parse(asked.sent.collection())?;
    needed.push(Wanted::Collection(ns.db, ns.coll, "find"));
    Ok(())
}

/// Call `visit` with each document that a request finds, until it returns false.
fn scan(
    (store, op): (&Store, &Op<'_>),
    ns: &Namespace,
    wanted: &FindRequest,
    visit: &mut dyn FnMut(&RawDocument) -> bool,
) -> Result<()> {
    let mut next = Some(store.find(op, ns, wanted)?);
    while let Some(batch) = next {
        for document in &batch.documents {
            if !visit(document) {
                store.end_cursor(batch.id);
                return Ok(());
            }
        }
        op.check()?;
        next = store.following(op, &batch)?;
    }
    Ok(())
}

fn data_size(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = call.arguments();
    let target = call.target().as_str().unwrap_or_default();
    let ns = Namespace::parse(target)?;
    let begun = stdx::time::now();
    let (min, max) = (arguments.tree("min")?, arguments.tree("max")?);
    let pattern = arguments.tree("keyPattern")?;
    if min.is_some() != max.is_some() {
        let message = "min and max must be given together";
        return Err(Error::bad_value(message));
    }
    let limit = |name| arguments.count(name).map(|n| n.filter(|n| *n > 0));
    let (most_bytes, most) = (limit("maxSize")?, limit("maxObjects")?);
    let collection = call.server.store.collection(&ns);
    let whole = min.is_none() && most_bytes.is_none() && most.is_none();
    let estimate = arguments.is_on("estimate")?;
    let (mut size, mut documents) = (0_u64, 0_u64);
    let mut reached = false;
    match collection {
        None => {}
        Some(collection) if whole => {
            documents = u64::try_from(collection.count()).unwrap_or(0);
            size = u64::try_from(collection.data_size()).unwrap_or(0);
        }
        Some(collection) => {
            let mean = collection.data_size() / collection.count().max(1);
            let mean = u64::try_from(mean).unwrap_or(0);
            let bounded = min.is_some();
            let key = || doc! {"_id": 1};
            let wanted = FindRequest {
                hint: bounded.then(|| Bson::Document(pattern.unwrap_or_else(key))),
                min,
                max,
                ..FindRequest::default()
            };
            let mut add = |document: &RawDocument| {
                documents += 1;
                size += match estimate {
                    true => mean,
                    false => u64::try_from(document.as_bytes().len()).unwrap_or(0),
                };
                // As in MongoDB, the document that exceeds the limit is included in the sums.
                reached = most_bytes.is_some_and(|most| most < size)
                    || most.is_some_and(|most| most < documents);
                !reached
            };
            call.with_store(|store, op| scan((store, op), &ns, &wanted, &mut add))?;
        }
    }
    reply.boolean("estimate", estimate);
    if reached {
        reply.boolean("maxReached", true);
    }
    number(reply, "size", size);
    number(reply, "numObjects", documents);
    let millis = begun.elapsed().as_millis();
    reply.int("millis", i32::try_from(millis).unwrap_or(i32::MAX));
    Ok(())
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of the documents of a collection, in the order of their `_id`; of a capped one in
/// the order they were inserted.
fn digest(place: (&Store, &Op<'_>), ns: &Namespace, capped: bool) -> Result<String> {
    let by_id = RawDocumentBuf::try_from(&doc! {"_id": 1})?;
    let wanted = FindRequest {
        sort: (!capped).then_some(by_id),
        ..FindRequest::default()
    };
    let mut hash = Md5::new();
    scan(place, ns, &wanted, &mut |document| {
        hash.update(document.as_bytes());
        true
    })?;
    Ok(hex(&hash.finalize()))
}

/// How often `dbHash` is tried while collections of the database are created, changed and
/// dropped.
const ATTEMPTS: usize = 100;

fn db_hash(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let begun = stdx::time::now();
    let database = call.database();
    let mut only = Vec::new();
    if let Some(names) = call.arguments().array("collections")? {
        for name in names {
            let name = name?;
            let name = name.as_str().ok_or_else(|| {
                let message = "collections entries have to be strings";
                Error::new(Code::BAD_VALUE, message)
            })?;
            only.push(name.to_owned());
        }
    }
    reply.string("host", &call.server.topology.me);
    // All collections at one moment: the hashes of two members at equal times are equal.
    let mut attempts = 1..=ATTEMPTS;
    loop {
        let hashed = call.with_store(|store, op| {
            store.at_present(op, |op| hash_all((store, op), (database, &only)))
        });
        // A collection was created, changed or dropped since that moment: take a later one.
        let mut changed = |error: &Error| {
            error.code == Code::SNAPSHOT_UNAVAILABLE
                && call.op().held.is_none()
                && attempts.next().is_some()
        };
        match hashed {
            Err(error) if changed(&error) => {}
            hashed => break hashed?.append(reply),
        }
    }
    // The time that a concern names, or that of its snapshot.
    cursor::at_time(call, reply);
    let millis = begun.elapsed().as_millis();
    reply.int("timeMillis", i32::try_from(millis).unwrap_or(i32::MAX));
    Ok(())
}

/// The hashes of the collections of a database.
#[derive(Default)]
struct Hashes {
    each: Document,
    capped: Vec<Bson>,
    uuids: Document,
    whole: String,
}

impl Hashes {
    fn append(self, reply: &mut Builder) {
        reply.value("collections", &Bson::Document(self.each));
        reply.value("capped", &Bson::Array(self.capped));
        reply.value("uuids", &Bson::Document(self.uuids));
        reply.string("md5", &self.whole);
    }
}

/// The hashes of the collections of a database, of those named in `only` if it has names.
fn hash_all((store, op): (&Store, &Op<'_>), (database, only): (&str, &[String])) -> Result<Hashes> {
    let now = store.catalog();
    let catalog = op.held.map_or(&*now, |held| held.catalog());
    let mut hashes = Hashes::default();
    let mut whole = Md5::new();
    for (ns, named) in catalog.in_database(database) {
        let Some(collection) = named.collection() else {
            continue;
        };
        // As in MongoDB, collections that each member keeps for itself are excluded.
        let own = ns.coll.starts_with("system.") && ns.coll != "system.users";
        if own || (!only.is_empty() && !only.contains(&ns.coll)) {
            continue;
        }
        let hash = digest((store, op), ns, collection.is_capped())?;
        whole.update(hash.as_bytes());
        if collection.is_capped() {
            hashes.capped.push(Bson::String(ns.coll.clone()));
        }
        hashes.uuids.insert(ns.coll.as_str(), collection.uuid());
        hashes.each.insert(ns.coll.as_str(), hash);
    }
    hashes.whole = hex(&whole.finalize());
    Ok(hashes)
}
