//! Commands on single documents run on the threads of the sockets. Those that wait delay no other
//! connection, and limits of time and kills end them.

use std::sync::Arc;
use std::time::Duration;

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, bson, doc};

use crate::client::{Client, Site, all, await_so};

const MAX_TIME_MS_EXPIRED: i32 = 50;
const INTERRUPTED: i32 = 11_601;

/// More clients that wait than there are threads for sockets.
const WAITING: usize = 64;

fn in_transaction(mut command: Document) -> Document {
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    command.extend(doc! {"lsid": {"id": id}, "txnNumber": 1_i64, "autocommit": false});
    command
}

fn increment(id: i32) -> Document {
    doc! {"update": "c", "updates": [{"q": {"_id": id}, "u": {"$inc": {"n": 1}}}]}
}

/// A server with two documents, and a client whose transaction has written the first.
fn held() -> (Site, Client) {
    let site = Site::new();
    let mut owner = site.client();
    owner.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]},
    );
    let mut begin = in_transaction(increment(1));
    begin.insert("startTransaction", true);
    owner.ok("test", begin);
    (site, owner)
}

fn commit(owner: &mut Client) {
    owner.ok("admin", in_transaction(doc! {"commitTransaction": 1}));
}

/// The numbers of the plain updates in work.
fn updates(client: &mut Client) -> Vec<i32> {
    let asked = doc! {"currentOp": 1, "command.update": {"$exists": true}};
    let shown = client.ok("admin", asked);
    let list = shown.get_array("inprog").unwrap();
    let number = |one: &Bson| one.as_document().unwrap().get_i32("opid");
    list.iter().filter_map(|one| number(one).ok()).collect()
}

/// How many commands ran inline, and how many of them waited.
fn counts(client: &mut Client) -> (i64, i64) {
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let metrics = status.get_document("metrics").unwrap();
    let query = metrics.get_document("query").unwrap();
    let inline = query.get_document("inline").unwrap();
    let count = |name| inline.get_i64(name).unwrap();
    (count("commands"), count("waited"))
}

/// How many writes met an open transaction that has written the same document.
fn conflicts(client: &mut Client) -> i64 {
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let metrics = status.get_document("metrics").unwrap();
    let operation = metrics.get_document("operation").unwrap();
    operation.get_i64("writeConflicts").unwrap()
}

/// J2, V3: the waits are announced.
#[test]
fn writes_that_wait_delay_no_other_connection() {
    let (site, mut owner) = held();
    let mut other = site.client();
    let before = counts(&mut other);
    let before_conflicts = conflicts(&mut other);
    let mut waiting: Vec<Client> = (0..WAITING).map(|_| site.client()).collect();
    for client in &mut waiting {
        client.send("test", increment(1), 0);
    }
    // A write counts as soon as it has met the transaction; a listed one may not have begun.
    let all_wait = before_conflicts + i64::try_from(WAITING).unwrap();
    await_so("all of them to wait", || all_wait <= conflicts(&mut other));
    assert_eq!(updates(&mut other).len(), WAITING);
    // Without a wait, and with one: all threads answer.
    for _ in 0..WAITING {
        let mut new = site.client();
        new.ok("admin", doc! {"ping": 1});
        assert_eq!(all(&mut new, "c", doc! {"_id": 2}).len(), 1);
        new.ok("test", increment(2));
    }
    commit(&mut owner);
    for client in &mut waiting {
        let (_, reply) = client.receive().unwrap();
        assert_eq!(reply.get_i32("nModified").unwrap(), 1, "{reply}");
    }
    let first = all(&mut other, "c", doc! {"_id": 1});
    let sum = i32::try_from(WAITING + 1).unwrap();
    assert_eq!(first, [doc! {"_id": 1, "n": sum}]);
    let after = counts(&mut other);
    assert!(
        before.1 + i64::try_from(WAITING).unwrap() <= after.1,
        "{before:?} {after:?}"
    );
}

#[test]
fn a_time_limit_and_a_kill_end_a_write_that_waits() {
    let (site, mut owner) = held();
    let mut limited = increment(1);
    limited.insert("maxTimeMS", 50);
    let reply = site.client().run("test", limited);
    let code = |reply: &Document| {
        let errors = reply.get_array("writeErrors").ok();
        let first = errors.and_then(|errors| errors.first()?.as_document()?.get_i32("code").ok());
        reply.get_i32("code").ok().or(first)
    };
    assert_eq!(code(&reply), Some(MAX_TIME_MS_EXPIRED), "{reply}");
    let (mut busy, mut other) = (site.client(), site.client());
    busy.send("test", increment(1), 0);
    let mut numbers = Vec::new();
    await_so("the update to be in work", || {
        numbers = updates(&mut other);
        !numbers.is_empty()
    });
    other.ok("admin", doc! {"killOp": 1, "op": numbers[0]});
    let (_, reply) = busy.receive().unwrap();
    assert_eq!(code(&reply), Some(INTERRUPTED), "{reply}");
    commit(&mut owner);
    busy.ok("test", increment(1));
}

/// Commands, and whether each runs on the thread of its connection.
fn kinds() -> Vec<(Document, bool)> {
    let update = |update: Bson| doc! {"update": "c", "updates": [{"q": {"_id": 1}, "u": update}]};
    let many: Vec<Bson> = (100..117).map(|n| bson!({"_id": n})).collect();
    let find = |filter: Document| doc! {"find": "c", "filter": filter};
    let mut projected = find(doc! {"_id": 1});
    projected.insert("projection", doc! {"n": 1});
    let mut computed = find(doc! {"_id": 1});
    computed.insert("projection", doc! {"n": {"$add": [1, 2]}});
    vec![
        (find(doc! {"_id": 1}), true),
        (projected, true),
        (computed, false),
        (find(doc! {"_id": {"$gt": 1}}), false),
        (find(doc! {"_id": 1, "a": {"$regex": "x"}}), false),
        (find(doc! {"a": 1}), false),
        (doc! {"find": "view", "filter": {"_id": 1}}, false),
        (doc! {"find": "none", "filter": {"_id": 1}}, false),
        (update(bson!({"$inc": {"n": 1}})), true),
        (update(bson!({"a": 1})), true),
        (update(bson!([{"$set": {"a": 1}}])), false),
        (update(bson!({"$pull": {"b": {"$regex": "x"}}})), false),
        (
            doc! {"update": "c", "updates": [{"q": {"a": 1}, "u": {"$inc": {"n": 1}}}]},
            false,
        ),
        (
            doc! {"update": "checked", "updates": [{"q": {"_id": 1}, "u": {"a": 1}}]},
            false,
        ),
        (in_transaction(increment(1)), false),
        (doc! {"insert": "c", "documents": [{"_id": 20}]}, true),
        (
            doc! {"insert": "c", "documents": [{"_id": 21}], "writeConcern": {"j": true}},
            true,
        ),
        (doc! {"insert": "c", "documents": many}, false),
        (doc! {"insert": "checked", "documents": [{"_id": 1}]}, false),
        (doc! {"insert": "capped", "documents": [{"_id": 1}]}, false),
        (
            doc! {"delete": "c", "deletes": [{"q": {"_id": 20}, "limit": 1}]},
            true,
        ),
        (
            doc! {"delete": "c", "deletes": [{"q": {"_id": 21}, "limit": 0}]},
            false,
        ),
    ]
}

/// V1, V2, J1.
#[test]
fn only_commands_of_bounded_work_run_inline() {
    let site = Site::new();
    let mut client = site.client();
    let set_up = [
        doc! {"insert": "c", "documents": [{"_id": 1}]},
        doc! {"create": "view", "viewOn": "c", "pipeline": []},
        doc! {"create": "checked", "validator": {"_id": {"$gt": 0}}},
        doc! {"create": "capped", "capped": true, "size": 4096},
    ];
    for command in set_up {
        client.ok("test", command);
    }
    for (mut command, expected) in kinds() {
        if command.contains_key("txnNumber") {
            command.insert("startTransaction", true);
        }
        let mut ran = || {
            let before = counts(&mut client).0;
            client.ok("test", command.clone());
            if command.contains_key("txnNumber") {
                let end = in_transaction(doc! {"abortTransaction": 1});
                client.ok("admin", end);
            }
            counts(&mut client).0 - before
        };
        match expected {
            // Where threads are scheduled late, commands run elsewhere for a while (J3).
            true => await_so(&format!("{command} to run inline"), || ran() == 1),
            false => assert_eq!(ran(), 0, "{command}"),
        }
    }
}

/// J4.
#[test]
fn a_journaled_write_is_acknowledged_after_a_sync() {
    let folder = tempfile::tempdir().unwrap();
    let options = kv::EngineOptions {
        // No sync but those that are asked for.
        interval: Duration::from_secs(3600),
        ..kv::EngineOptions::default()
    };
    let opened = kv_betree::factory().open(folder.path(), &options);
    let engine: Arc<dyn kv::Engine> = Arc::from(opened.unwrap());
    let site = Site::over(Arc::clone(&engine), folder, |_| {}).unwrap();
    let syncs = || engine.stats().unwrap().counters["log_syncs"];
    let mut client = site.client();
    let insert = |id: i32, journal: bool| {
        doc! {"insert": "c", "documents": [{"_id": id}],
        "writeConcern": {"w": 1, "j": journal}}
    };
    client.ok("test", insert(1, true));
    let mut id = 1;
    for journal in [true, false, true, false] {
        // Where threads are scheduled late, commands run elsewhere for a while (J3).
        await_so("an insert to run inline", || {
            id += 1;
            let before = (syncs(), counts(&mut client).0);
            client.ok("test", insert(id, journal));
            let after = (syncs(), counts(&mut client).0);
            assert_eq!(before.0 < after.0, journal, "{before:?} {after:?}");
            after.1 - before.1 == 1
        });
    }
    // What an error reports is durable as well: the first write of a key may not be.
    let before = syncs();
    let again = client.run("test", insert(2, true));
    assert_eq!(again.get_i32("n").unwrap(), 0, "{again}");
    assert!(before < syncs(), "{again}");
}
