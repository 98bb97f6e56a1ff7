//! Queries that would use all memory and time without limits.

use std::time::Duration;

use bson::{Bson, Document, doc};
use stdx::sync::atomic::{AtomicBool, Ordering};
use stdx::{Rng, time};

use super::super::link::{Link, code, is_ok};
use super::figures::Part;
use super::load::OUT_OF_MEMORY;
use super::tally::{self, Tally};

/// Number of documents in the collection that runaway queries read.
const KEPT: i64 = 2_000;
/// Queries that run longer are ended by `killOp`.
const INTERRUPTED_AFTER: Duration = Duration::from_millis(300);
/// Number of elements in the arrays that queries build.
const MANY: i32 = 300_000;
/// A query that executes for so long after `killOp` is not expected to end.
const NO_END: Duration = Duration::from_secs(100);
/// The pause between two checks of running queries.
const LOOK: Duration = Duration::from_millis(10);

/// Makes the collection that queries read.
pub(super) fn fill(port: u16) -> Result<(), String> {
    let mut link = Link::to(port).map_err(|lost| lost.to_string())?;
    let documents: Vec<_> = (0..KEPT)
        .map(|n| doc! {"_id": n, "n": n % 100, "s": "abc ".repeat(50), "a": [1, 2, 3, n]})
        .collect();
    let reply = link.command("load", &doc! {"insert": "kept", "documents": documents});
    let reply = reply.map_err(|lost| lost.to_string())?;
    is_ok(&reply)
        .then_some(())
        .ok_or(format!("the collection cannot be filled: {reply}"))
}

/// Sends runaway queries until stopped. Three of four clients set `maxTimeMS`.
pub(super) fn run(port: u16, number: u32, mut rng: Rng, tally: &Tally) -> Result<Part, String> {
    let mut link = Link::to(port).map_err(|lost| format!("H3: no connection: {lost}"))?;
    let mut part = Part::default();
    while !tally.is_stopped() {
        let mut command = command(&mut rng);
        let limit = Duration::from_millis(20 + rng.below(600));
        if !number.is_multiple_of(4) {
            let ms = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
            command.insert("maxTimeMS", ms);
        }
        let begun = time::now();
        let reply = link.command("load", &command);
        let reply = reply.map_err(|lost| format!("H4: {command} was not answered: {lost}"))?;
        part.queries += 1;
        tally::one(&tally.queries);
        part.out_of_memory += u64::from(OUT_OF_MEMORY.contains(&code(&reply)));
        if command.contains_key("maxTimeMS") {
            let late = begun.elapsed().saturating_sub(limit);
            part.late.push(late, &command);
            tally::one(&tally.limited);
        }
        if let Ok(cursor) = reply.get_document("cursor") {
            close(&mut link, cursor)?;
        }
    }
    Ok(part)
}

fn close(link: &mut Link, cursor: &Document) -> Result<(), String> {
    let id = cursor.get_i64("id").unwrap_or(0);
    if id != 0 {
        let kill = doc! {"killCursors": "kept", "cursors": [id]};
        let killed = link.command("load", &kill);
        killed.map_err(|lost| format!("H3: {kill} was not answered: {lost}"))?;
    }
    Ok(())
}

/// Ends long queries that have no `maxTimeMS`, and measures how long this takes. Some of them would
/// execute for hours, so it must not stop before every client has its reply: see `replied`.
pub(super) fn interrupt(port: u16, replied: &AtomicBool) -> Result<Part, String> {
    let mut link = Link::to(port).map_err(|lost| format!("H3: no connection: {lost}"))?;
    let mut part = Part::default();
    while !replied.load(Ordering::Relaxed) {
        time::sleep(LOOK);
        let Some(operation) = running(&mut link)?.into_iter().find(is_long) else {
            continue;
        };
        let Some(id) = operation.get("opid").cloned() else {
            return Err(format!("H5: an operation without a number: {operation}"));
        };
        let kill = link.command("admin", &doc! {"killOp": 1, "op": id.clone()});
        kill.map_err(|lost| format!("H5: killOp was not answered: {lost}"))?;
        let begun = time::now();
        while running(&mut link)?
            .iter()
            .any(|op| op.get("opid") == Some(&id))
        {
            if NO_END < begun.elapsed() {
                return Err(format!(
                    "H5: {operation} did not end {NO_END:?} after killOp"
                ));
            }
            time::sleep(LOOK);
        }
        part.killed.push(begun.elapsed());
    }
    Ok(part)
}

fn running(link: &mut Link) -> Result<Vec<Document>, String> {
    let reply = link.command("admin", &doc! {"currentOp": 1});
    let reply = reply.map_err(|lost| format!("H5: currentOp was not answered: {lost}"))?;
    let all = reply.get_array("inprog").into_iter().flatten();
    Ok(all.filter_map(Bson::as_document).cloned().collect())
}

fn is_long(operation: &Document) -> bool {
    let command = operation.get_document("command");
    let is_query =
        command.is_ok_and(|c| c.contains_key("aggregate") && !c.contains_key("maxTimeMS"));
    let micros = match operation.get("microsecs_running") {
        Some(Bson::Int64(n)) => u64::try_from(*n).unwrap_or(0),
        Some(Bson::Int32(n)) => u64::try_from(*n).unwrap_or(0),
        _ => 0,
    };
    is_query && INTERRUPTED_AFTER < Duration::from_micros(micros)
}

/// A random runaway query.
fn command(rng: &mut Rng) -> Document {
    let expressions = expressions();
    let expression = expressions.get(rng.index(expressions.len())).cloned();
    let expression = expression.unwrap_or_default();
    if rng.chance(0.5) {
        let documents = vec![doc! {"$documents": [{"x": expression}]}];
        return doc! {"aggregate": 1, "pipeline": documents, "cursor": {}};
    }
    let pipelines = pipelines(&expression);
    let pipeline = pipelines.get(rng.index(pipelines.len())).cloned();
    doc! {
        "aggregate": "kept", "pipeline": pipeline.unwrap_or_default(),
        "cursor": {"batchSize": 1_000}, "allowDiskUse": rng.chance(0.5),
    }
}

fn expressions() -> Vec<Document> {
    // Below the memory limit of one expression, so that the operators that use it are executed.
    let many = doc! {"$range": [0, MANY]};
    let map = |inner: Document| doc! {"$map": {"input": {"$range": [0, MANY]}, "in": inner}};
    let text = doc! {"$reduce": {
        "input": {"$range": [0, 20]}, "initialValue": "abcdefgh",
        "in": {"$concat": ["$$value", "$$value"]},
    }};
    let doubled = doc! {"$reduce": {
        "input": {"$range": [0, 40]}, "initialValue": [1, 2],
        "in": {"$concatArrays": ["$$value", "$$value"]},
    }};
    let pairs = doc! {"$map": {
        "input": many.clone(), "in": [{"$toString": "$$this"}, 1],
    }};
    vec![
        many.clone(),
        text.clone(),
        doubled,
        map(doc! {"k": "$$this", "s": "xxxxxxxxxxxxxxxx"}),
        map(map(doc! {"$add": ["$$this", 1]})),
        doc! {"$filter": {"input": many.clone(), "cond": {"$in": ["$$this", many.clone()]}}},
        doc! {"$zip": {"inputs": [many.clone(), many.clone(), many.clone()]}},
        doc! {"$split": [text.clone(), "a"]},
        doc! {"$sortArray": {"input": many.clone(), "sortBy": -1}},
        doc! {"$setUnion": [many.clone(), {"$reverseArray": many.clone()}]},
        doc! {"$setDifference": [many.clone(), map(doc! {"$multiply": ["$$this", 2]})]},
        doc! {"$trim": {"input": text.clone(), "chars": text.clone()}},
        doc! {"$regexFindAll": {"input": text.clone(), "regex": "(a|b|c)*?h"}},
        doc! {"$regexMatch": {"input": text.clone(), "regex": "(a*b*c*)*z$"}},
        doc! {"$replaceAll": {"input": text.clone(), "find": "a", "replacement": text}},
        doc! {"$objectToArray": {"$arrayToObject": pairs}},
        doc! {"$reduce": {"input": many.clone(), "initialValue": 0, "in": {"$sum": many}}},
    ]
}

fn pipelines(expression: &Document) -> Vec<Vec<Document>> {
    let joined = || doc! {"$lookup": {"from": "kept", "pipeline": [], "as": "j"}};
    let unwound = || doc! {"$unwind": "$j"};
    let is_array = doc! {"$isArray": expression.clone()};
    let array = doc! {"$cond": [is_array, expression.clone(), []]};
    let all = doc! {"$push": "$$ROOT"};
    vec![
        vec![doc! {"$set": {"x": expression.clone()}}],
        vec![doc! {"$match": {"$expr": {"$gt": [{"$size": array}, 0]}}}],
        vec![joined(), joined(), unwound(), joined()],
        vec![
            doc! {"$group": {"_id": Bson::Null, "all": all.clone()}},
            doc! {"$unwind": "$all"},
            joined(),
        ],
        vec![joined(), unwound(), doc! {"$sort": {"j.s": 1, "s": -1}}],
        vec![
            joined(),
            unwound(),
            doc! {"$group": {"_id": {"a": "$_id", "b": "$j._id"}, "v": {"$addToSet": "$s"}}},
        ],
        vec![
            doc! {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"w": {
                "$push": "$s", "window": {"documents": ["unbounded", "unbounded"]},
            }}}},
        ],
        vec![doc! {"$densify": {"field": "_id", "range": {"step": 0.001, "bounds": "full"}}}],
        vec![
            doc! {"$bucketAuto": {"groupBy": "$n", "buckets": 5, "output": {"all": all}}},
            joined(),
        ],
        vec![doc! {"$facet": {"a": [joined()], "b": [joined()], "c": [joined()]}}],
        vec![doc! {"$graphLookup": {
            "from": "kept", "startWith": "$n", "connectFromField": "a", "connectToField": "n",
            "as": "g",
        }}],
    ]
}
