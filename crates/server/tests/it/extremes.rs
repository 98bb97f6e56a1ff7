//! Extreme numbers in every numeric argument of a command: the server replies with an error or a
//! result, and none of its threads panics.

use std::collections::BTreeSet;
use std::panic;

use bson::{Bson, DateTime, Document, Timestamp, bson, doc};
use stdx::sync::Mutex;

use crate::client::{Client, Site};

/// Locations and messages of panics in server threads.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Record the panics of all threads except test threads, whose names contain a path.
fn watch() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        if !thread.name().unwrap_or_default().contains("::") {
            PANICS.lock().push(info.to_string());
        }
        before(info);
    }));
}

fn extremes() -> Vec<Bson> {
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    vec![
        Bson::Int32(0),
        Bson::Int32(-1),
        Bson::Int32(i32::MIN),
        Bson::Int32(i32::MAX),
        Bson::Int64(i64::MIN),
        Bson::Int64(i64::MAX),
        Bson::Int64(i64::from(i32::MAX) + 1),
        Bson::Int64(1 << 53),
        Bson::Double(f64::NAN),
        Bson::Double(f64::INFINITY),
        Bson::Double(f64::NEG_INFINITY),
        Bson::Double(1e308),
        Bson::Double(-9_223_372_036_854_775_808.0),
        Bson::Double(9_223_372_036_854_775_808.0),
        Bson::Double(0.5),
        decimal("9.999999999999999999999999999999999E+6144"),
        decimal("-9223372036854775809"),
        decimal("NaN"),
        Bson::DateTime(DateTime::MIN),
        Bson::DateTime(DateTime::MAX),
        Bson::Timestamp(Timestamp {
            time: u32::MAX,
            increment: u32::MAX,
        }),
    ]
}

/// Commands with all their numeric arguments. Commands that are missing here have only the common
/// ones, which [`common`] adds to each.
fn samples() -> Vec<Document> {
    let mut all = reads();
    all.extend(writes());
    all.extend(upkeep());
    all
}

fn reads() -> Vec<Document> {
    vec![
        doc! {"find": "c", "filter": {"a": {"$mod": [2, 1]}}, "skip": 1, "limit": 1,
        "batchSize": 1, "singleBatch": 0},
        doc! {"find": "c", "projection": {"l": {"$slice": [1, 1]}}, "sort": {"a": 1},
        "collation": {"locale": "en", "strength": 1}},
        doc! {"find": "c", "min": {"_id": 1}, "max": {"_id": 2}, "hint": {"_id": 1}},
        doc! {"aggregate": "c", "pipeline": [{"$skip": 1}, {"$limit": 1}, {"$sample": {"size": 1}}],
        "cursor": {"batchSize": 1}},
        doc! {"aggregate": "c", "cursor": {},
        "pipeline": [{"$collStats": {"storageStats": {"scale": 1}}}]},
        doc! {"aggregate": 1, "cursor": {},
        "pipeline": [{"$documents": [{"a": {"$range": [0, 5]}}]}]},
        doc! {"count": "c", "skip": 1, "limit": 1},
        doc! {"distinct": "c", "key": "a", "query": {"a": 1}},
        doc! {"getMore": 1_i64, "collection": "c", "batchSize": 1},
        doc! {"killCursors": "c", "cursors": [1_i64]},
        doc! {"listCollections": 1, "cursor": {"batchSize": 1}},
        doc! {"listIndexes": "c", "cursor": {"batchSize": 1}},
        doc! {"listDatabases": 1},
        doc! {"dbStats": 1, "scale": 1},
        doc! {"collStats": "c", "scale": 1},
        doc! {"dataSize": "test.c", "keyPattern": {"_id": 1}, "min": {"_id": 1}, "max": {"_id": 2},
        "maxSize": 1, "maxObjects": 1},
        doc! {"explain": {"find": "c", "skip": 1, "limit": 1}},
        doc! {"currentOp": 1, "secs_running": {"$gt": 1}},
        doc! {"killOp": 1, "op": 1},
        doc! {"serverStatus": 1, "metrics": 1},
        doc! {"dbHash": 1},
        doc! {"validate": "c", "full": 1},
        doc! {"hello": 1, "maxAwaitTimeMS": 1_i64},
        doc! {"find": "c", "readConcern": {"afterClusterTime": Timestamp {time: 1, increment: 1}}},
        doc! {"find": "c", "$clusterTime": {"clusterTime": Timestamp {time: 1, increment: 1}}},
        doc! {"find": "c", "$readPreference": {"mode": "secondaryPreferred",
        "maxStalenessSeconds": 90}},
    ]
}

fn writes() -> Vec<Document> {
    vec![
        doc! {"insert": "d", "documents": [{"_id": 1, "a": 1}],
        "writeConcern": {"w": 1, "wtimeout": 1}},
        doc! {"update": "c",
        "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}, "multi": false}]},
        doc! {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$push": {"l": {"$each": [1],
        "$position": 1, "$slice": 1}}}}]},
        doc! {"update": "c",
        "updates": [{"q": {"_id": 1}, "u": [{"$set": {"a": {"$add": ["$a", 1]}}}]}]},
        doc! {"delete": "d", "deletes": [{"q": {"a": 1}, "limit": 1}]},
        doc! {"findAndModify": "c", "query": {"_id": 1}, "update": {"$mul": {"a": 2}}},
        doc! {"bulkWrite": 1, "ops": [{"insert": 0, "document": {"a": 1}}],
        "nsInfo": [{"ns": "test.d"}], "cursor": {"batchSize": 1}},
        doc! {"create": "e", "capped": true, "size": 4096, "max": 10},
        doc! {"create": "f", "clusteredIndex": {"key": {"_id": 1}, "unique": true},
        "expireAfterSeconds": 1},
        doc! {"create": "g", "validator": {"a": {"$mod": [2, 1]}}},
        doc! {"create": "h", "timeseries": {"timeField": "t", "bucketMaxSpanSeconds": 1,
        "bucketRoundingSeconds": 1}},
        doc! {"collMod": "c", "index": {"keyPattern": {"t": 1}, "expireAfterSeconds": 100}},
        doc! {"collMod": "k", "cappedSize": 4096, "cappedMax": 10},
        doc! {"convertToCapped": "v", "size": 4096},
        doc! {"cloneCollectionAsCapped": "c", "toCollection": "w", "size": 4096},
        doc! {"createIndexes": "c", "indexes": [{"key": {"t": 1}, "name": "t_1", "v": 2,
        "expireAfterSeconds": 100}]},
        doc! {"createIndexes": "c", "indexes": [{"key": {"x": -1}, "name": "x"}],
        "commitQuorum": 1},
        doc! {"applyOps": [{"op": "i", "ns": "test.d", "o": {"_id": 5}, "t": 1_i64, "v": 2_i64,
        "ts": Timestamp {time: 1, increment: 1}}]},
        doc! {"commitTransaction": 1, "txnNumber": 1_i64, "autocommit": false},
        doc! {"insert": "d", "documents": [{"a": 1}], "txnNumber": 1_i64, "stmtIds": [1]},
        doc! {"insert": "d", "documents": [{"a": 1}], "txnNumber": 1_i64, "stmtId": 1},
    ]
}

fn upkeep() -> Vec<Document> {
    vec![
        doc! {"profile": 0, "slowms": 100, "sampleRate": 1.0},
        doc! {"configureFailPoint": "failCommand", "mode": {"times": 1},
        "data": {"failCommands": ["none"], "errorCode": 8, "blockTimeMS": 1}},
        doc! {"configureFailPoint": "failCommand", "mode": {"skip": 1},
        "data": {"failCommands": ["none"]}},
        doc! {"configureFailPoint": "failCommand", "mode": {"activationProbability": 0.5},
        "data": {"failCommands": ["none"]}},
        doc! {"configureFailPoint": "failCommand", "mode": "off"},
        doc! {"compact": "c", "freeSpaceTargetMB": 1},
        doc! {"saslContinue": 1, "conversationId": 1, "payload": ""},
        doc! {"startSession": 1},
        doc! {"planCacheClear": "c"},
        doc! {"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1, "wtimeout": 1}},
        doc! {"setFeatureCompatibilityVersion": "8.0", "confirm": true},
        doc! {"createUser": "u", "pwd": "p", "roles": [], "mechanisms": ["SCRAM-SHA-256"]},
        doc! {"usersInfo": 1},
        doc! {"getLog": "global"},
    ]
}

/// The number of values nested in `value`.
fn leaves(value: &Bson) -> usize {
    match value {
        Bson::Document(inner) => inner.values().map(leaves).sum(),
        Bson::Array(inner) => inner.iter().map(leaves).sum(),
        _ => 1,
    }
}

/// `value` with its leaf number `at` replaced.
fn replace(value: &Bson, at: &mut usize, with: &Bson) -> Bson {
    match value {
        Bson::Document(inner) => {
            let each = inner.iter();
            Bson::Document(
                each.map(|(k, v)| (k.clone(), replace(v, at, with)))
                    .collect(),
            )
        }
        Bson::Array(inner) => Bson::Array(inner.iter().map(|v| replace(v, at, with)).collect()),
        leaf => {
            let here = *at == 0;
            *at = at.wrapping_sub(1);
            if here { with.clone() } else { leaf.clone() }
        }
    }
}

fn database(command: &Document) -> &'static str {
    let name = command.keys().next().map_or("", String::as_str);
    let admin = [
        "currentOp",
        "killOp",
        "listDatabases",
        "bulkWrite",
        "configureFailPoint",
        "setDefaultRWConcern",
        "setFeatureCompatibilityVersion",
        "setParameter",
        "commitTransaction",
        "getLog",
        "replSetStepDown",
        "replSetFreeze",
    ];
    if admin.contains(&name) {
        "admin"
    } else {
        "test"
    }
}

/// Run a command; a panic of the server fails the test and names the command.
fn attempt(client: &mut Client, command: Document) {
    let shown = command.to_string();
    client.send(database(&command), command, 0);
    let Some((_, reply)) = client.receive() else {
        panic!("the connection was closed: {shown}");
    };
    let inside = reply
        .get_str("errmsg")
        .is_ok_and(|message| message.contains("failed inside the server"));
    assert!(!inside, "{shown}: {reply}");
    let panics = std::mem::take(&mut *PANICS.lock());
    assert!(panics.is_empty(), "{shown}: {panics:?}");
}

fn prepared() -> Site {
    let site = Site::new();
    let mut client = site.client();
    for n in 0..5 {
        let date = DateTime::from_millis(i64::MAX / 2);
        let document = doc! {"_id": n, "a": n, "l": [n, n], "t": date};
        client.ok("test", doc! {"insert": "c", "documents": [document]});
        client.ok("test", doc! {"insert": "v", "documents": [{"a": n}]});
    }
    client.ok("test", doc! {"create": "k", "capped": true, "size": 4096});
    let index = bson!({"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 100});
    client.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    site
}

#[test]
fn numbers_of_commands_may_be_extreme() {
    watch();
    let site = prepared();
    let mut client = site.client();
    for sample in samples() {
        let whole = Bson::Document(sample);
        for at in 0..leaves(&whole) {
            for value in extremes() {
                let Bson::Document(command) = replace(&whole, &mut at.clone(), &value) else {
                    unreachable!("a document stays one");
                };
                attempt(&mut client, command);
            }
        }
    }
    client.ok("test", doc! {"ping": 1});
    client.ok("test", doc! {"find": "c"});
}

#[test]
fn numbers_that_every_command_takes_may_be_extreme() {
    watch();
    let site = prepared();
    let mut client = site.client();
    let listed = client.ok("admin", doc! {"listCommands": 1});
    // These commands end or block the server by design.
    let left_out = BTreeSet::from([
        "shutdown",
        "fsync",
        "fsyncUnlock",
        "sleep",
        "waitForFailPoint",
    ]);
    let commands = listed.get_document("commands").unwrap();
    assert!(80 < commands.len(), "{} commands", commands.len());
    let mut names = commands
        .keys()
        .filter(|name| !left_out.contains(name.as_str()));
    let lsid = bson!({"id": bson::Uuid::from_bytes([7; 16])});
    for name in names.by_ref() {
        for value in extremes() {
            attempt(&mut client, doc! {name: value.clone()});
            for field in ["maxTimeMS", "txnNumber", "batchSize", "size", "scale"] {
                attempt(&mut client, doc! {name: "c", field: value.clone()});
            }
            let command = doc! {name: "c", "lsid": lsid.clone(), "txnNumber": value,
            "startTransaction": true, "autocommit": false};
            attempt(&mut client, command);
        }
        // A command may have ended the session of this connection.
        client = site.client();
    }
}

#[test]
fn numbers_of_parameters_may_be_extreme() {
    watch();
    let site = prepared();
    let mut client = site.client();
    let all = client.ok("admin", doc! {"getParameter": "*"});
    let lsid = bson!({"id": bson::Uuid::from_bytes([7; 16])});
    let mut set = 0_i64;
    for (name, old) in all.iter().filter(|(name, _)| *name != "ok") {
        let numeric = matches!(old, Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_));
        if !numeric {
            continue;
        }
        for value in extremes() {
            attempt(&mut client, doc! {"setParameter": 1, name: value});
            attempt(&mut client, doc! {"find": "c", "batchSize": 1});
            attempt(&mut client, doc! {"find": "c"});
            set += 1;
            let command = doc! {"insert": "d", "documents": [{"a": 1}], "lsid": lsid.clone(),
            "txnNumber": set, "startTransaction": true, "autocommit": false};
            attempt(&mut client, command);
        }
        attempt(&mut client, doc! {"setParameter": 1, name: old.clone()});
    }
    assert!(100 < set, "only {set} values were tried");
}
