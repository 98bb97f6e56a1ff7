//! Forms of the stages of pipelines.

use bson::{Bson, bson};
use query::vocabulary;

use super::Entry::{self, Bounded, Grows, Works};
use super::host::{Memory, documents, drain, open};
use super::{ALONE, complete, limited, stopped};

const PASSES: &str = "it passes rows on, of which it holds none";
const REPORT: &str = "the server reports on itself, of which it holds the source already";

fn entries() -> Vec<(&'static str, Entry)> {
    let huge = bson!({"$range": [0, 200_000]});
    let wide = bson!({"$map": {"input": {"$range": [0, 200]}, "in": "$t"}});
    let object = bson!({"x": wide.clone(), "y": "$a"});
    let all = bson!({"$push": "$$ROOT"});
    let mut entries = grown(&wide, &object, &all);
    entries.extend([
        (
            "$match",
            Works(bson!([{"$match": {"$expr": {"$lt": [{"$size": "$a"}, 5]}}}])),
        ),
        ("$count", Works(bson!([{"$count": "n"}]))),
        (
            "$unionWith",
            Works(bson!([{"$unionWith": "other"}, {"$count": "n"}])),
        ),
        ("$unwind", Works(bson!([{"$unwind": "$a"}]))),
        ("$redact", Works(bson!([{"$redact": "$$DESCEND"}]))),
        ("$unset", Works(bson!([{"$unset": "a.b"}, {"$count": "n"}]))),
        (
            "$documents",
            Grows(bson!([{"$documents": {"$map": {"input": huge,
            "in": {"k": "$$this"}}}}])),
        ),
        ("$out", Works(bson!([{"$out": "other"}]))),
        ("$merge", Works(bson!([{"$merge": "other"}]))),
        ("$limit", Bounded(PASSES)),
        ("$skip", Works(bson!([{"$skip": 5_999}]))),
        ("$collStats", Bounded(REPORT)),
        ("$currentOp", Bounded(REPORT)),
        ("$indexStats", Bounded(REPORT)),
        ("$listLocalSessions", Bounded(REPORT)),
        ("$listSessions", Bounded(REPORT)),
        ("$planCacheStats", Bounded(REPORT)),
    ]);
    entries
}

fn grown(wide: &Bson, object: &Bson, all: &Bson) -> Vec<(&'static str, Entry)> {
    vec![
        (
            "$addFields",
            Grows(bson!([{"$addFields": {"a.b": wide, "y": wide}}])),
        ),
        ("$set", Grows(bson!([{"$set": {"a.b.c": wide}}]))),
        (
            "$project",
            Grows(
                bson!([{"$project": {"x": [wide, wide, wide, wide, wide, wide,
            wide, wide, wide, wide, wide, wide, wide, wide, wide, wide, wide, wide, wide, wide]}}]),
            ),
        ),
        (
            "$replaceRoot",
            Grows(bson!([{"$replaceRoot": {"newRoot": object}}])),
        ),
        ("$replaceWith", Grows(bson!([{"$replaceWith": object}]))),
        ("$sort", Grows(bson!([{"$sort": {"t": -1}}]))),
        ("$sample", Grows(bson!([{"$sample": {"size": 5_000}}]))),
        (
            "$group",
            Grows(bson!([{"$group": {"_id": null, "all": all}}])),
        ),
        ("$sortByCount", Grows(bson!([{"$sortByCount": "$t"}]))),
        (
            "$bucket",
            Grows(
                bson!([{"$bucket": {"groupBy": "$_id", "boundaries": [0, 10_000],
            "output": {"all": all}}}]),
            ),
        ),
        (
            "$bucketAuto",
            Grows(bson!([{"$bucketAuto": {"groupBy": "$_id", "buckets": 1,
            "output": {"all": all}}}])),
        ),
        (
            "$facet",
            Grows(bson!([{"$facet": {"x": [{"$match": {}}], "y": [{"$match": {}}]}}])),
        ),
        (
            "$lookup",
            Grows(bson!([{"$lookup": {"from": "other", "as": "o",
            "pipeline": [{"$addFields": {"z": "$t", "w": "$t"}}]}}])),
        ),
        (
            "$graphLookup",
            Grows(
                bson!([{"$limit": 1}, {"$graphLookup": {"from": "other", "startWith": "$next",
            "connectFromField": "next", "connectToField": "_id", "as": "o"}}]),
            ),
        ),
        (
            "$setWindowFields",
            Grows(bson!([{"$setWindowFields": {"sortBy": {"_id": 1},
            "output": {"all": all}}}])),
        ),
        (
            "$fill",
            Grows(bson!([{"$fill": {"output": {"v": {"value": wide}}}}])),
        ),
        (
            "$densify",
            Grows(bson!([{"$densify": {"field": "x",
            "range": {"step": 0.05, "bounds": "full"}}}])),
        ),
    ]
}

#[test]
fn every_stage_has_its_entry() {
    complete(&vocabulary::stages(), &entries());
    for (name, entry) in entries() {
        if let Bounded(why) = entry {
            assert!(!why.is_empty(), "{name}");
        }
    }
}

#[test]
fn stages_stay_within_the_memory_limit() {
    let _alone = ALONE.lock();
    let documents = documents();
    for (name, entry) in entries() {
        let (Grows(stages) | Works(stages)) = entry else {
            continue;
        };
        let rows = open(&stages, &documents).unwrap();
        let mut host = Memory { disk: false };
        // The result is a number of rows, or an error.
        drop(limited(name, || drain(rows, &mut host)));
    }
}

#[test]
fn stages_end_when_interrupted() {
    let _alone = ALONE.lock();
    let documents = documents();
    for (name, entry) in entries() {
        let (Grows(stages) | Works(stages)) = entry else {
            continue;
        };
        let rows = open(&stages, &documents).unwrap();
        let mut host = Memory { disk: true };
        stopped(name, || drain(rows, &mut host));
    }
}
