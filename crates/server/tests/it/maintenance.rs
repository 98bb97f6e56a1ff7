//! Commands of operators: locks, digests, statistics, default concerns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{TryRecvError, channel};

use bson::{Bson, Document, doc};

use crate::client::{Client, Site, all, batch};

fn set_up(client: &mut Client) {
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 1, "a": "x"}, {"_id": 2, "a": "yy"}]},
    );
}

#[test]
fn a_lock_holds_writes_up_and_nothing_else() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let lock = doc! {"fsync": 1, "lock": true};
    let reply = client.ok("admin", lock.clone());
    assert_eq!(reply.get_i64("lockCount").unwrap(), 1);
    assert_eq!(client.ok("admin", lock).get_i64("lockCount").unwrap(), 2);
    let shown = client.ok("admin", doc! {"currentOp": 1});
    assert!(shown.get_bool("fsyncLock").unwrap());
    let address = site.address();
    let (send, received) = channel();
    let writer = stdx::sync::spawn("writer", move || {
        let mut client = Client::to(address);
        let late = doc! {"insert": "c", "documents": [{"_id": 3}], "maxTimeMS": 50};
        let refused = client.fails("test", late);
        send.send(refused.0).unwrap();
        client.ok("test", doc! {"insert": "c", "documents": [{"_id": 4}]});
        send.send(0).unwrap();
    })
    .unwrap();
    // A write whose time limit has expired is never executed.
    assert_eq!(received.recv().unwrap(), 50);
    assert_eq!(all(&mut client, "c", doc! {}).len(), 2);
    let unlock = || doc! {"fsyncUnlock": 1};
    let left = client.ok("admin", unlock());
    assert_eq!(left.get_i64("lockCount").unwrap(), 1);
    assert_eq!(all(&mut client, "c", doc! {}).len(), 2);
    assert_eq!(received.try_recv(), Err(TryRecvError::Empty));
    client.ok("admin", unlock());
    // The blocked write is executed now.
    assert_eq!(received.recv().unwrap(), 0);
    writer.join().unwrap();
    assert_eq!(all(&mut client, "c", doc! {}).len(), 3);
    assert_eq!(client.fails("admin", unlock()).0, 20);
    client.ok("admin", doc! {"fsync": 1});
}

#[test]
fn sizes_and_digests_are_those_of_the_documents() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let whole = client.ok("test", doc! {"dataSize": "test.c"});
    assert_eq!(whole.get_i32("numObjects").unwrap(), 2);
    let size = whole.get_i32("size").unwrap();
    let part = client.ok(
        "test",
        doc! {"dataSize": "test.c", "keyPattern": {"_id": 1}, "min": {"_id": 2}, "max": {"_id": 9}},
    );
    assert_eq!(part.get_i32("numObjects").unwrap(), 1);
    assert!(part.get_i32("size").unwrap() < size);

    // The same documents, inserted in another order.
    client.ok(
        "other",
        doc! {"insert": "c", "documents": [{"_id": 2, "a": "yy"}, {"_id": 1, "a": "x"}]},
    );
    let digest = |client: &mut Client, database: &str| {
        let reply = client.ok(database, doc! {"dbHash": 1});
        let of = reply.get_document("collections").unwrap().clone();
        (of, reply.get_str("md5").unwrap().to_owned())
    };
    let first = digest(&mut client, "test");
    assert_eq!(first.0.get_str("c").unwrap().len(), 32);
    assert_eq!(digest(&mut client, "other"), first);
    let change = doc! {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": "z"}}}]};
    client.ok("other", change);
    assert_ne!(digest(&mut client, "other"), first);
}

#[test]
fn the_use_of_collections_is_counted() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    all(&mut client, "c", doc! {});
    let top = client.ok("admin", doc! {"top": 1});
    let of = |top: &Document, kind: &str| {
        let totals = top.get_document("totals").unwrap();
        let kind = totals.get_document("test.c").unwrap().get_document(kind);
        kind.unwrap().get_i64("count").unwrap()
    };
    assert_eq!((of(&top, "insert"), of(&top, "queries")), (1, 1));
    assert_eq!((of(&top, "writeLock"), of(&top, "readLock")), (1, 1));
    let pipeline = vec![doc! {"$collStats": {"latencyStats": {}, "storageStats": {}}}];
    let stats = client.ok(
        "test",
        doc! {"aggregate": "c", "pipeline": pipeline, "cursor": {}},
    );
    let stats = batch(&stats).remove(0);
    let writes = stats
        .get_document("latencyStats")
        .unwrap()
        .get_document("writes");
    assert_eq!(writes.unwrap().get_i64("ops").unwrap(), 1);
    let storage = stats.get_document("storageStats").unwrap();
    let tree = storage
        .get_document("indexDetails")
        .unwrap()
        .get_document("_id_")
        .unwrap();
    assert_eq!(tree.get_i64("splits").unwrap(), 0);
    assert!(
        storage
            .get_document("betree")
            .unwrap()
            .get_i64("merges")
            .is_ok()
    );
    client.ok("test", doc! {"drop": "c"});
    let top = client.ok("admin", doc! {"top": 1});
    assert!(!top.get_document("totals").unwrap().contains_key("test.c"));
}

#[test]
fn the_map_of_a_collection_has_its_trees() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    client.ok(
        "test",
        doc! {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]},
    );
    client.ok("admin", doc! {"fsync": 1});
    let map = client.ok("test", doc! {"storageMap": "c"});
    let trees = map.get_array("trees").unwrap();
    let names: Vec<&str> = trees
        .iter()
        .map(|tree| tree.as_document().unwrap().get_str("name").unwrap())
        .collect();
    assert_eq!(names, ["c", "_id_", "a_1"]);
    for tree in trees {
        let tree = tree.as_document().unwrap();
        let sums = tree.get_document("bytesByKindAndLevel").unwrap();
        let total: i64 = sums.values().map(|n| n.as_i64().unwrap()).sum();
        assert_eq!(total, tree.get_i64("bytes").unwrap());
    }
    assert_eq!(client.fails("test", doc! {"storageMap": "none"}).0, 26);
}

#[test]
fn default_concerns_are_kept() {
    let site = Site::new();
    let mut client = site.client();
    let get = doc! {"getDefaultRWConcern": 1};
    let before = client.ok("admin", get.clone());
    assert_eq!(
        before.get_str("defaultWriteConcernSource").unwrap(),
        "implicit"
    );
    let set = |concern: Document| doc! {"setDefaultRWConcern": 1, "defaultWriteConcern": concern};
    client.ok("admin", set(doc! {"w": 1}));
    let after = client.ok("admin", get);
    assert_eq!(
        after.get_str("defaultWriteConcernSource").unwrap(),
        "global"
    );
    let concern = after.get_document("defaultWriteConcern").unwrap();
    assert_eq!(concern, &doc! {"w": 1, "wtimeout": 0});
    assert_eq!(client.fails("admin", set(doc! {"w": 0})).0, 2);
    assert_eq!(client.fails("admin", set(doc! {})).0, 20);
    assert_eq!(client.fails("admin", doc! {"setDefaultRWConcern": 1}).0, 2);
    let kept = client.ok("config", doc! {"find": "settings"});
    assert_eq!(
        batch(&kept)[0].get_document("defaultWriteConcern").unwrap(),
        &doc! {"w": 1}
    );
}

#[test]
fn statistics_have_the_types_that_monitors_want() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let status = client.ok("admin", doc! {"serverStatus": 1});
    for path in [
        "metrics.cursor.open.total",
        "metrics.cursor.timedOut",
        "metrics.ttl.deletedDocuments",
        "metrics.document.inserted",
        "opcounters.insert",
        "transactions.currentOpen",
        "transactions.totalStarted",
        "network.bytesIn",
        "betree.written.log.bytes",
        "betree.cache.usedBytes",
        "betree.counters.splits",
    ] {
        let mut at = Bson::Document(status.clone());
        for part in path.split('.') {
            at = at.as_document().unwrap().get(part).expect(path).clone();
        }
        assert!(matches!(at, Bson::Int64(_)), "{path} is {at}");
    }
    let sessions = status.get_document("logicalSessionRecordCache").unwrap();
    assert!(sessions.get_i32("activeSessionsCount").is_ok());
    let data = client.ok("admin", doc! {"getDiagnosticData": 1});
    let data = data.get_document("data").unwrap();
    let system = data.get_document("systemMetrics").unwrap();
    assert!(
        system
            .get_document("cpu")
            .unwrap()
            .get_i64("user_ms")
            .is_ok()
    );
    assert!(
        system
            .get_document("memory")
            .unwrap()
            .get_i64("MemTotal_kb")
            .is_ok()
    );
}

#[test]
fn commands_in_work_and_done_are_counted_by_what_they_are() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let commands = |client: &mut Client| {
        let status = client.ok("admin", doc! {"serverStatus": 1});
        let counted = status.get_document("opcounters").unwrap();
        counted.get_i64("command").unwrap()
    };
    let before = commands(&mut client);
    all(&mut client, "c", doc! {});
    client.ok("test", doc! {"listCollections": 1});
    client.ok("admin", doc! {"ping": 1});
    client.ok("test", doc! {"count": "c"});
    // This command, and the three that are not `find`.
    assert_eq!(commands(&mut client), before + 4);
    let status = client.ok("admin", doc! {"serverStatus": 1});
    assert!(
        !status.contains_key("locks"),
        "what is not known is not reported"
    );
    let lock = status.get_document("globalLock").unwrap();
    let active = lock.get_document("activeClients").unwrap();
    assert_eq!(active.get_i32("readers").unwrap(), 1);
    assert_eq!(active.get_i32("writers").unwrap(), 0);
}

#[test]
fn lists_come_in_batches() {
    let site = Site::new();
    let mut client = site.client();
    for name in ["a", "b", "c"] {
        client.ok("test", doc! {"create": name});
    }
    let list = doc! {"listCollections": 1, "nameOnly": true, "cursor": {"batchSize": 1}};
    let first = client.ok("test", list);
    assert_eq!(batch(&first), [doc! {"name": "a", "type": "collection"}]);
    let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! {"getMore": id, "collection": "$cmd.listCollections"};
    assert_eq!(batch(&client.ok("test", more)).len(), 2);
    let list = doc! {"listIndexes": "a", "cursor": {"batchSize": 0}};
    let first = client.ok("test", list);
    assert!(batch(&first).is_empty());
    let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
    assert_eq!(
        batch(&client.ok("test", doc! {"getMore": id, "collection": "a"})).len(),
        1
    );
}

#[test]
fn collections_are_cloned_and_plans_forgotten() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    client.ok("test", doc! {"planCacheClear": "c"});
    let filters = client.ok("test", doc! {"planCacheListFilters": "c"});
    assert!(filters.get_array("filters").unwrap().is_empty());
    let clone = doc! {"cloneCollectionAsCapped": "c", "toCollection": "d", "size": 10_000};
    client.ok("test", clone.clone());
    assert_eq!(all(&mut client, "d", doc! {}).len(), 2);
    assert_eq!(client.fails("test", clone).0, 48);
    // A member of a replica set does not rebuild indexes.
    assert_eq!(client.fails("test", doc! {"reIndex": "c"}).0, 20);
    let set = doc! {"setFeatureCompatibilityVersion": "8.0"};
    assert_eq!(client.fails("admin", set.clone()).0, 7_369_100);
    let mut confirmed = set;
    confirmed.insert("confirm", true);
    client.ok("admin", confirmed);
    let metadata = doc! {"validateDBMetadata": 1, "apiParameters": {"version": "1"}};
    client.ok("test", metadata);
}

#[test]
fn a_standalone_server_builds_indexes_anew() {
    let site = Site::with(|config| config.replica_set = None);
    let mut client = site.client();
    set_up(&mut client);
    client.ok(
        "test",
        doc! {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]},
    );
    let reply = client.ok("test", doc! {"reIndex": "c"});
    assert_eq!(reply.get_i32("nIndexes").unwrap(), 2);
    let report = client.ok("test", doc! {"validate": "c"});
    assert!(report.get_bool("valid").unwrap());
    assert_eq!(report.get_i32("nIndexes").unwrap(), 2);
}

/// Collections that are created and dropped meanwhile do not make `dbHash` fail.
#[test]
fn a_database_is_hashed_while_its_collections_change() {
    let site = crate::oplog::with_oplog();
    let mut client = site.client();
    let mut other = site.client();
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    let body = move || {
        let mut rounds = 0;
        while !ended.load(Ordering::Acquire) {
            for i in 0..8 {
                let name = format!("c{i}");
                other.ok("test", doc! {"insert": &name, "documents": [{"_id": 1}]});
            }
            for i in 0..8 {
                other.ok("test", doc! {"drop": format!("c{i}")});
            }
            rounds += 1;
        }
        rounds
    };
    let changing = stdx::sync::spawn("changing", body).unwrap();
    for _ in 0..200 {
        client.ok("test", doc! {"dbHash": 1});
    }
    stop.store(true, Ordering::Release);
    assert!(0 < changing.join().unwrap());
}
