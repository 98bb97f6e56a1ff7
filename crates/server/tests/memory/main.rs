//! The memory of a server whose clients all send queries that need more memory than is available.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[expect(dead_code, reason = "shared with the other tests")]
#[path = "../it/client.rs"]
mod client;

use bson::{Bson, Document, bson, doc};
use peak_alloc::PeakAlloc;

use client::Site;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
/// The memory budget of all queries.
const BUDGET: usize = 64 * MIB;
/// The maximum growth of the process: twice the budget, because charges are estimates and vectors
/// grow by doubling, plus memory that is not charged: messages, connections, the cache of the
/// engine, and the clients, which run in this process.
const ALLOWED: usize = 2 * BUDGET + 96 * MIB;
const CLIENTS: usize = 16;

/// Values of expressions that grow without end, or beyond the budget.
fn values() -> Vec<Bson> {
    let range = bson!({"$range": [0, 600_000]});
    let text = bson!({"$reduce": {"input": {"$range": [0, 24]}, "initialValue": "a,",
        "in": {"$concat": ["$$value", "$$value"]}}});
    let documents = bson!({"$map": {"input": range.clone(), "in": {"a": "$$this"}}});
    vec![
        bson!({"$range": [0, 2_000_000_000]}),
        bson!({"$reduce": {"input": range.clone(), "initialValue": [1, 2],
            "in": {"$concatArrays": ["$$value", "$$value"]}}}),
        bson!({"$map": {"input": range.clone(), "in": range.clone()}}),
        bson!({"$zip": {"inputs": [range.clone(), range.clone(), range.clone()]}}),
        bson!({"$split": [text.clone(), ","]}),
        bson!({"$regexFindAll": {"input": {"$substrCP": [text.clone(), 0, 100_000]},
            "regex": "(,)"}}),
        bson!({"$replaceAll": {"input": text.clone(), "find": ",", "replacement": ",,,,"}}),
        bson!({"$trim": {"input": text.clone(), "chars": text}}),
        bson!({"$sortArray": {"input": documents.clone(), "sortBy": {"a": -1}}}),
        bson!({"$setUnion": [documents.clone(), range]}),
        bson!({"$arrayToObject": {"$map": {"input": documents,
            "in": {"k": {"$toString": "$$this.a"}, "v": "$$this"}}}}),
    ]
}

/// Pipelines without a collection, with small results.
fn pipelines() -> Vec<Bson> {
    let size = bson!({"$project": {"_id": {"$type": "$x"}}});
    let mut all: Vec<Bson> = values()
        .into_iter()
        .map(|value| bson!([{"$documents": [{"x": value}]}, size.clone()]))
        .collect();
    let rows = bson!({"$documents": {"$map": {"input": {"$range": [0, 60_000]},
        "in": {"_id": "$$this", "t": "some text that makes the row longer than its numbers"}}}});
    for stage in [
        bson!({"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"x": {"$push": "$$ROOT"}}}}),
        bson!({"$densify": {"field": "_id", "range": {"step": 0.001, "bounds": "full"}}}),
        bson!({"$group": {"_id": null, "x": {"$push": "$$ROOT"}}}),
        bson!({"$group": {"_id": "$_id", "x": {"$addToSet": "$$ROOT"}}}),
        bson!({"$sort": {"t": 1, "_id": -1}}),
        bson!({"$facet": {"x": [{"$match": {}}], "y": [{"$match": {}}]}}),
        bson!({"$bucketAuto": {"groupBy": "$t", "buckets": 2,
            "output": {"x": {"$push": "$$ROOT"}}}}),
    ] {
        all.push(bson!([rows.clone(), stage, {"$count": "n"}]));
    }
    all
}

#[test]
fn clients_that_want_all_memory_are_refused_and_the_server_lives() {
    let site = Site::new();
    let mut client = site.client();
    let budget = i64::try_from(BUDGET / MIB).unwrap();
    client.ok(
        "admin",
        doc! {"setParameter": 1, "queryMemoryLimitMegabytes": budget},
    );
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let pipelines = pipelines();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (mut client, pipelines) = (site.client(), &pipelines);
            scope.spawn(move || {
                // Each client starts with another one, so that all kinds run together.
                let order = pipelines.iter().cycle().skip(number);
                for pipeline in order.take(pipelines.len()) {
                    let command = doc! {"aggregate": 1, "cursor": {}, "pipeline": pipeline.clone()};
                    judge(&command, &client.run("test", command.clone()));
                }
            });
        }
    });
    let took = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(took <= ALLOWED, "the process took {} MiB", took / MIB);
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let metrics = status.get_document("metrics").unwrap();
    let memory = metrics.get_document("query").unwrap();
    let memory = memory.get_document("memory").unwrap();
    assert_eq!(memory.get_i64("usedBytes").unwrap(), 0, "{memory}");
    assert!(memory.get_i64("refused").unwrap() > 0, "{memory}");
}

/// Check a reply: a result, or one of the error codes for memory, long strings, or too many
/// documents.
fn judge(command: &Document, reply: &Document) {
    let code = reply.get_i32("code").unwrap_or(0);
    let allowed = [0, 146, 13_548, 5_897_900, 4_031_700];
    assert!(allowed.contains(&code), "{command}: {reply}");
}
