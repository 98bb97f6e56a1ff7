//! Elections, roles, and what clients see of them.

use bson::doc;

use super::{Set, insert, read};
use crate::client::await_so;

#[test]
fn three_servers_elect_one_and_copy_its_writes() {
    let set = Set::started(3);
    let primary = set.primary();
    let mut client = set.client(primary);
    client.ok("test", insert(1));
    client.ok(
        "test",
        doc! {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]},
    );
    client.ok(
        "test",
        doc! {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 5}}}]},
    );
    client.ok("test", insert(2));
    for i in 0..3 {
        set.await_documents(i, "c", &[1, 2]);
        await_so("the primary", || {
            let hello = set.hello(i);
            hello.get_str("primary").ok() == Some(&set.host(primary))
        });
        let hello = set.hello(i);
        assert_eq!(hello.get_str("setName").unwrap(), "rs0");
        assert_eq!(hello.get_array("hosts").unwrap().len(), 3);
        assert_eq!(hello.get_str("me").unwrap(), set.host(i));
        assert_eq!(hello.get_bool("secondary").unwrap(), i != primary);
        assert_eq!(hello.contains_key("electionId"), i == primary, "{hello}");
    }
    let hash = |i| {
        let ask = doc! {"dbHash": 1, "$readPreference": {"mode": "nearest"}};
        let reply = set.client(i).ok("test", ask);
        reply.get_str("md5").unwrap().to_owned()
    };
    assert!((1..3).all(|i| hash(i) == hash(0)));
    // The others' states are those of their last heartbeats.
    await_so("a status with a primary and two secondaries", || {
        let status = client.ok("admin", doc! {"replSetGetStatus": 1});
        let members = status.get_array("members").unwrap();
        let state = |i: usize| members[i].as_document().unwrap().get_i32("state").unwrap();
        (0..3).all(|i| state(i) == if i == primary { 1 } else { 2 })
    });
}

#[test]
fn a_secondary_refuses_writes_and_reads_without_a_preference() {
    let set = Set::started(3);
    let primary = set.primary();
    set.client(primary).ok("test", insert(1));
    let other = (0..3).find(|i| *i != primary).unwrap();
    set.await_documents(other, "c", &[1]);
    let mut client = set.client(other);
    let reply = client.run("test", insert(2));
    assert_eq!(
        reply.get_i32("code").unwrap(),
        10_107,
        "member: M1: {reply}"
    );
    assert!(reply.contains_key("topologyVersion"));
    // The statement is of a transaction that ends; the commit may have happened elsewhere.
    let id = bson::Uuid::from_bytes([1; 16]);
    let labels = |mut command: bson::Document, database: &str| {
        command.insert("lsid", doc! {"id": id});
        command.insert("txnNumber", 1_i64);
        command.insert("autocommit", false);
        let reply = set.client(other).run(database, command);
        assert_eq!(reply.get_i32("code").unwrap(), 10_107, "{reply}");
        let labels = reply.get_array("errorLabels").unwrap().clone();
        labels.contains(&"TransientTransactionError".into())
    };
    let mut statement = insert(2);
    statement.insert("startTransaction", true);
    assert!(labels(statement, "test"));
    assert!(!labels(doc! {"commitTransaction": 1}, "admin"));
    assert_eq!(client.fails("test", doc! {"find": "c"}).0, 13_435);
    client.ok("test", read("c"));
    let local = doc! {"find": "oplog.rs", "limit": 1};
    client.ok("local", local);
    client.ok("admin", doc! {"replSetMaintenance": 1});
    await_so("maintenance", || {
        let reply = client.run("test", read("c"));
        reply.get_i32("code").ok() == Some(13_436)
    });
    let hello = set.hello(other);
    assert!(!hello.get_bool("secondary").unwrap(), "{hello}");
    client.ok("admin", doc! {"replSetMaintenance": 0});
    set.await_documents(other, "c", &[1]);
}

#[test]
fn a_server_that_waits_for_a_set_says_so() {
    let set = Set::waiting(1);
    let mut client = set.client(0);
    let hello = client.ok("admin", doc! {"hello": 1});
    assert!(hello.get_bool("isreplicaset").unwrap());
    assert!(!hello.contains_key("setName"), "{hello}");
    assert_eq!(client.fails("test", insert(1)).0, 10_107);
    assert_eq!(client.fails("test", read("c")).0, 13_436);
    assert_eq!(client.fails("admin", doc! {"replSetGetStatus": 1}).0, 94);
    assert_eq!(client.fails("admin", doc! {"replSetGetConfig": 1}).0, 94);
    // A set of one member, without a configuration.
    client.ok("admin", doc! {"replSetInitiate": {}});
    set.primary();
    client.ok("test", insert(1));
    let again = client.fails("admin", doc! {"replSetInitiate": {}});
    assert_eq!(again.0, 23);
    let config = client.ok("admin", doc! {"replSetGetConfig": 1});
    let config = config.get_document("config").unwrap();
    assert_eq!(config.get_array("members").unwrap().len(), 1);
}

#[test]
fn a_step_down_interrupts_no_connection_and_loses_nothing() {
    let set = Set::started(3);
    let first = set.primary();
    let mut client = set.client(first);
    client.ok("test", insert(1));
    let id = bson::Uuid::new();
    let open = doc! {
        "insert": "c", "documents": [{"_id": 9}], "lsid": {"id": id}, "txnNumber": 1_i64,
        "autocommit": false, "startTransaction": true,
    };
    client.ok("test", open);
    let before = set.hello(first);
    client.ok("admin", doc! {"replSetStepDown": 60});
    let second = set.primary_but(Some(first));
    let after = set.hello(first);
    assert!(!after.get_bool("isWritablePrimary").unwrap());
    let counter = |hello: &bson::Document| {
        let version = hello.get_document("topologyVersion").unwrap();
        version.get_i64("counter").unwrap()
    };
    assert!(counter(&before) < counter(&after));
    let refused = client.fails("test", insert(2));
    assert_eq!(refused.0, 10_107);
    let end = doc! {"commitTransaction": 1, "lsid": {"id": id}, "txnNumber": 1_i64,
    "autocommit": false};
    client.fails("admin", end);
    let mut other = set.client(second);
    other.ok("test", insert(2));
    for i in 0..3 {
        set.await_documents(i, "c", &[1, 2]);
    }
    let election = |hello: &bson::Document| hello.get_object_id("electionId").unwrap();
    assert!(election(&before) < election(&set.hello(second)));
}

#[test]
fn what_only_a_former_primary_has_is_taken_back() {
    let mut set = Set::started(3);
    let first = set.primary();
    set.client(first).ok("test", insert(1));
    let others: Vec<usize> = (0..3).filter(|i| *i != first).collect();
    others
        .iter()
        .for_each(|i| set.await_documents(*i, "c", &[1]));
    let folders: Vec<_> = others.iter().map(|i| set.stop(*i)).collect();
    // It is primary until an election timeout is over.
    let mut alone = insert(66);
    alone.insert("writeConcern", doc! {"w": 1});
    set.client(first).ok("test", alone);
    let folder = set.stop(first);
    for (i, folder) in others.iter().zip(folders) {
        set.resume(*i, folder);
    }
    let second = set.primary();
    set.client(second).ok("test", insert(2));
    let saved = folder.path().join("rollback");
    set.resume(first, folder);
    for i in 0..3 {
        set.await_documents(i, "c", &[1, 2]);
    }
    assert!(saved.read_dir().unwrap().next().is_some());
}

#[test]
fn a_member_that_restarts_catches_up() {
    let mut set = Set::started(3);
    let primary = set.primary();
    set.client(primary).ok("test", insert(1));
    let other = (0..3).find(|i| *i != primary).unwrap();
    let folder = set.stop(other);
    let mut client = set.client(primary);
    client.ok("test", insert(2));
    set.resume(other, folder);
    set.await_documents(other, "c", &[1, 2]);
    // A primary that stops hands over, and its writes are kept.
    let folder = set.stop(primary);
    let next = set.primary();
    set.client(next).ok("test", insert(3));
    set.resume(primary, folder);
    for i in 0..3 {
        set.await_documents(i, "c", &[1, 2, 3]);
    }
}

#[test]
fn a_primary_that_stops_hands_over_at_once() {
    let mut set = Set::patient(3);
    let first = set.primary();
    set.client(first).ok("test", insert(1));
    drop(set.stop(first));
    let second = set.primary();
    set.client(second).ok("test", insert(2));
}

#[test]
fn the_end_of_a_primary_that_hands_over_to_none_is_noticed() {
    let mut set = Set::patient(3);
    let first = set.primary();
    set.client(first).ok("test", insert(1));
    // The others cannot take over at once; then the connections to the primary are closed.
    let others: Vec<usize> = (0..3).filter(|i| *i != first).collect();
    for i in &others {
        set.await_documents(*i, "c", &[1]);
        set.client(*i).ok("admin", doc! {"replSetMaintenance": 1});
    }
    drop(set.stop(first));
    for i in &others {
        set.client(*i).ok("admin", doc! {"replSetMaintenance": 0});
    }
    let second = set.primary();
    set.client(second).ok("test", insert(2));
}
