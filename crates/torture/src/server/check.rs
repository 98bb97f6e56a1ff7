//! Compares the data of a restarted server with the expected data.

use bson::{Bson, Document, doc};

use super::builder;
use super::link::{Link, is_ok};
use super::model::{Model, Side};
use super::operation::{COUNTS, DATABASE};

/// Documents in a batch of a read.
const BATCH: i32 = 1000;

/// Create the collections, their indexes and the counters, with this write concern; called once.
pub(crate) fn prepare(link: &mut Link, concern: &Document) -> Result<(), String> {
    for side in Side::BOTH {
        ask(link, &doc! { "create": side.name() })?;
        let indexes = vec![
            doc! { "key": { "tag": 1 }, "name": "tag" },
            doc! { "key": { "tag": -1, "n": 1 }, "name": "tag_n" },
            doc! { "key": { "v": 1 }, "name": "v", "unique": true },
        ];
        ask(
            link,
            &doc! { "createIndexes": side.name(), "indexes": indexes },
        )?;
    }
    let counts: Vec<Document> = Side::BOTH
        .iter()
        .map(|side| doc! { "_id": side.name(), "n": 0_i64 })
        .collect();
    ask(
        link,
        &doc! { "insert": COUNTS, "documents": counts, "writeConcern": concern.clone() },
    )
}

fn ask(link: &mut Link, command: &Document) -> Result<(), String> {
    let reply = link
        .command(DATABASE, command)
        .map_err(|lost| lost.to_string())?;
    match is_ok(&reply) {
        true => Ok(()),
        false => Err(format!("{command} was answered {reply}")),
    }
}

/// Compare everything (W1, W3) and let the server check itself (W4). Returns the number of
/// documents.
pub(crate) fn whole(link: &mut Link, model: &Model) -> Result<u64, String> {
    let mut met = 0;
    for side in Side::BOTH {
        let find = doc! { "find": side.name(), "filter": {}, "batchSize": BATCH };
        let found = link.all(DATABASE, &find).map_err(|lost| lost.to_string())?;
        let different = model.differences(side, &found);
        if !different.is_empty() {
            return Err(different.join("\n  "));
        }
        met += found.len() as u64;
        by_index(link, model, side)?;
        counter(link, model, side)?;
        validate(link, side.name())?;
    }
    validate(link, COUNTS)?;
    Ok(met)
}

/// Check that a scan of each index returns every document.
fn by_index(link: &mut Link, model: &Model, side: Side) -> Result<(), String> {
    for index in builder::names(link, side)? {
        let find = doc! {
            "find": side.name(), "filter": {}, "hint": &index, "batchSize": BATCH,
        };
        let found = link.all(DATABASE, &find).map_err(|lost| lost.to_string())?;
        let different = model.differences(side, &found);
        if !different.is_empty() {
            return Err(format!("by index {index}: {}", different.join("\n  ")));
        }
    }
    Ok(())
}

fn counter(link: &mut Link, model: &Model, side: Side) -> Result<(), String> {
    let find = doc! { "find": COUNTS, "filter": { "_id": side.name() } };
    let found = link.all(DATABASE, &find).map_err(|lost| lost.to_string())?;
    let n = found.first().and_then(|d| d.get_i64("n").ok());
    let wanted = model.count(side);
    if n == Some(wanted) {
        return Ok(());
    }
    Err(format!(
        "the shared counter {} is {n:?}, and should be {wanted}",
        side.name()
    ))
}

fn validate(link: &mut Link, collection: &str) -> Result<(), String> {
    let command = doc! { "validate": collection, "full": true };
    let reply = link
        .command(DATABASE, &command)
        .map_err(|lost| lost.to_string())?;
    if is_ok(&reply) && reply.get("valid") == Some(&Bson::Boolean(true)) {
        return Ok(());
    }
    Err(format!("validate of {collection}: {reply}"))
}
