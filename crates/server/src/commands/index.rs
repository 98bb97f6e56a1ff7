//! `createIndexes`, `dropIndexes`, `reIndex`.

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf};
use docdb::IndexNames;
use query::repeated::tree;
use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::arguments::type_name;
use crate::command::{API, LOOSE, Lane, TRANSACTION, WRITES};
use crate::request::Call;
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new("createIndexes", create, "Create indexes")
        .lane(Lane::Storage)
        .flags(API | WRITES | TRANSACTION)
        .fields(&[
            "indexes",
            "ignoreUnknownIndexOptions",
            "commitQuorum",
            "isTimeseriesNamespace",
        ])
        .privilege(Privilege::Collection("createIndex")),
    Row::new("dropIndexes", drop, "Drop indexes")
        .aliases(&["deleteIndexes"])
        .lane(Lane::Storage)
        .flags(API | WRITES)
        .fields(&["index", "isTimeseriesNamespace"])
        .privilege(Privilege::Collection("dropIndex")),
    search("createSearchIndexes"),
    search("updateSearchIndex"),
    search("dropSearchIndex"),
    search("listSearchIndexes"),
];

/// A command of the search engine that only MongoDB's own service has.
const fn search(name: &'static str) -> Row {
    Row::new(name, no_search, "Refused: search indexes are not supported").flags(LOOSE)
}

fn no_search(_: &Call<'_>, _: &mut Builder) -> Result<()> {
    Err(search_not_enabled())
}

/// MongoDB's error where the search engine is not available.
pub(super) fn search_not_enabled() -> Error {
    Error::new(
        Code::SEARCH_NOT_ENABLED,
        "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage \
         requires additional configuration. Please connect to Atlas or an AtlasCLI local \
         deployment to enable.",
    )
}

/// The index options that `ignoreUnknownIndexOptions` keeps; all others are dropped.
const OPTIONS: &[&str] = &[
    "v",
    "key",
    "name",
    "unique",
    "sparse",
    "partialFilterExpression",
    "expireAfterSeconds",
    "hidden",
    "collation",
    "wildcardProjection",
    "storageEngine",
    "prepareUnique",
    "background",
    "clustered",
];

fn create(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let arguments = request.arguments();
    arguments.need_array("indexes")?;
    let documents = arguments.documents("indexes")?.unwrap_or_default();
    if documents.is_empty() {
        let message = "Must specify at least one index to create";
        return Err(Error::bad_value(message));
    }
    let lenient = arguments.is_on("ignoreUnknownIndexOptions")?;
    let mut specs = Vec::new();
    for document in documents {
        check_name(document)?;
        let mut spec = RawDocumentBuf::new();
        for option in document {
            let (name, value) = option?;
            if !lenient || OPTIONS.contains(&name.as_str()) {
                spec.append(name, value);
            }
        }
        specs.push(spec);
    }
    let done = request.with_store(|store, op| store.create_indexes_raw(op, &ns, &specs))?;
    reply
        .int("numIndexesBefore", done.before)
        .int("numIndexesAfter", done.after);
    reply.boolean("createdCollectionAutomatically", done.created_collection);
    if request.server.topology.is_replica_set() {
        reply.string("commitQuorum", "votingMembers");
    }
    if done.before == done.after {
        reply.string("note", "all indexes already exist");
    }
    Ok(())
}

/// Check that the client gave the index a name.
fn check_name(spec: &RawDocument) -> Result<()> {
    if spec.get("name")?.is_some() {
        return Ok(());
    }
    let spec = Document::try_from(spec)?;
    let message = format!(
        "Error in specification {spec} :: caused by :: The 'name' field is a required property of \
         an index specification"
    );
    Err(Error::parse(message))
}

fn drop(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let arguments = request.arguments();
    let names = match arguments.need("index")? {
        RawBsonRef::String("*") => IndexNames::All,
        RawBsonRef::String(name) => IndexNames::Names(vec![name.to_owned()]),
        RawBsonRef::Document(key) => IndexNames::Key(tree("dropIndexes.index", key)?),
        RawBsonRef::Array(list) => {
            let mut names = Vec::new();
            for name in list {
                match Bson::try_from(name?)? {
                    Bson::String(name) => names.push(name),
                    _ => return Err(Error::type_mismatch("dropIndexes takes a list of names")),
                }
            }
            IndexNames::Names(names)
        }
        other => {
            let found = type_name(other);
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "BSON field 'dropIndexes.index' is the wrong type '{found}', expected types \
                 '[array, object, string]'"
                ),
            ));
        }
    };
    let before = request.with_store(|store, op| store.drop_indexes(op, &ns, &names))?;
    reply.int("nIndexesWas", before);
    if names == IndexNames::All {
        reply.string("msg", "non-_id indexes dropped for collection");
    }
    Ok(())
}
