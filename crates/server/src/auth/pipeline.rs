//! What a pipeline needs: the collections its stages read and write, at any depth.

use bson::{RawArray, RawBsonRef, RawDocument};
use query::{Error, Result};

use super::privilege::Wanted;

/// How deep pipelines may nest; the parser of stages has its own limit, reached before.
const DEPTH: usize = 64;

fn strings<'a>(
    value: RawBsonRef<'a>,
    database: &'a str,
    field: &str,
) -> Option<(&'a str, &'a str)> {
    match value {
        RawBsonRef::String(name) => Some((database, name)),
        RawBsonRef::Document(at) => {
            let name = at.get(field).ok().flatten().and_then(RawBsonRef::as_str)?;
            let own = at.get("db").ok().flatten().and_then(RawBsonRef::as_str);
            Some((own.unwrap_or(database), name))
        }
        _ => None,
    }
}

fn field<'a>(document: &'a RawDocument, name: &str) -> Option<RawBsonRef<'a>> {
    document.get(name).ok().flatten()
}

/// What the stages of a pipeline on `database.collection` need beside `find` on it.
///
/// # Errors
/// Pipelines that nest too deep, or are no pipelines.
pub(crate) fn needs(
    database: &str,
    collection: &str,
    pipeline: &RawArray,
    depth: usize,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    if depth > DEPTH {
        return Err(Error::bad_value("pipelines nest too deep"));
    }
    for stage in pipeline {
        let RawBsonRef::Document(stage) = stage? else {
            continue;
        };
        for element in stage.iter() {
            let (name, value) = element?;
            of_stage(database, collection, (name.as_str(), value), depth, wanted)?;
        }
    }
    Ok(())
}

/// The collection a stage reads beside its input, if it names one, and its database.
fn source<'a>(database: &'a str, stage: &str, value: RawBsonRef<'a>) -> (&'a str, Option<&'a str>) {
    let Some(spec) = value.as_document() else {
        return (database, value.as_str());
    };
    let from = if stage == "$unionWith" {
        "coll"
    } else {
        "from"
    };
    // A union may name its database beside the collection.
    let own = field(spec, "db").and_then(RawBsonRef::as_str);
    let database = own.unwrap_or(database);
    match field(spec, from).and_then(|from| strings(from, database, "coll")) {
        Some((database, collection)) => (database, Some(collection)),
        None => (database, None),
    }
}

fn of_stage(
    database: &str,
    collection: &str,
    (name, value): (&str, RawBsonRef<'_>),
    depth: usize,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    let on =
        |db: &str, coll: &str, action| Wanted::Collection(db.to_owned(), coll.to_owned(), action);
    match (name, value) {
        ("$lookup" | "$graphLookup" | "$unionWith", value) => {
            let (db, coll) = source(database, name, value);
            if let Some(coll) = coll {
                wanted.push(on(db, coll, "find"));
            }
            let inner = value.as_document().and_then(|spec| field(spec, "pipeline"));
            if let Some(RawBsonRef::Array(inner)) = inner {
                needs(db, coll.unwrap_or_default(), inner, depth + 1, wanted)?;
            }
        }
        ("$facet", RawBsonRef::Document(facets)) => {
            for facet in facets.iter() {
                if let (_, RawBsonRef::Array(inner)) = facet? {
                    needs(database, collection, inner, depth + 1, wanted)?;
                }
            }
        }
        ("$out", value) => {
            if let Some((db, coll)) = strings(value, database, "coll") {
                wanted.extend([on(db, coll, "insert"), on(db, coll, "remove")]);
            }
        }
        ("$merge", value) => {
            let into = match value {
                RawBsonRef::Document(spec) => field(spec, "into").unwrap_or(value),
                other => other,
            };
            if let Some((db, coll)) = strings(into, database, "coll") {
                wanted.extend([on(db, coll, "insert"), on(db, coll, "update")]);
            }
        }
        ("$collStats", _) => wanted.push(on(database, collection, "collStats")),
        ("$indexStats", _) => wanted.push(on(database, collection, "indexStats")),
        ("$planCacheStats", _) => wanted.push(on(database, collection, "planCacheRead")),
        ("$changeStream", _) => wanted.push(on(database, collection, "changeStream")),
        // Everybody sees what they do themselves. An option that is no switch is refused later.
        ("$currentOp", value) => {
            let all = value.as_document().and_then(|spec| field(spec, "allUsers"));
            if !matches!(all, None | Some(RawBsonRef::Boolean(false))) {
                wanted.push(Wanted::Cluster("inprog"));
            }
        }
        ("$listSessions" | "$listLocalSessions", _) => {
            wanted.push(Wanted::Cluster("listSessions"));
        }
        _ => {}
    }
    Ok(())
}
