//! Updates, deletes, indexes, sessions and transactions over the wire.

use bson::{Binary, Bson, Document, doc};

use crate::client::{Site, all, batch};

pub(crate) fn lsid(byte: u8) -> Document {
    let id = Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![byte; 16],
    };
    doc! {"id": id}
}

#[test]
fn documents_are_updated_and_deleted() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}]},
    );
    let reply = client.ok(
        "test",
        doc! {"update": "c", "updates": [
            {"q": {"a": 1}, "u": {"$inc": {"a": 1}}, "multi": true},
            {"q": {"_id": 3}, "u": {"$set": {"b": 1}}, "upsert": true},
        ]},
    );
    let names: Vec<&str> = reply.keys().map(String::as_str).take(3).collect();
    assert_eq!(names, ["n", "upserted", "nModified"]);
    assert_eq!(
        (
            reply.get_i32("n").unwrap(),
            reply.get_i32("nModified").unwrap()
        ),
        (3, 2)
    );
    assert_eq!(
        reply.get_array("upserted").unwrap(),
        &[doc! {"index": 1, "_id": 3}.into()]
    );
    let reply = client.ok(
        "test",
        doc! {"delete": "c", "deletes": [{"q": {"a": 2}, "limit": 1}]},
    );
    assert_eq!(reply.get_i32("n").unwrap(), 1);
    let changed = client.ok(
        "test",
        doc! {
            "findAndModify": "c", "query": {"_id": 3}, "update": {"$set": {"b": 2}}, "new": true,
        },
    );
    assert_eq!(
        changed.get_document("value").unwrap(),
        &doc! {"_id": 3, "b": 2}
    );
    assert_eq!(all(&mut client, "c", doc! {}).len(), 2);
    let bad = doc! {"update": "c", "updates": [{"q": {}, "u": {"$nonsense": 1}}]};
    let reply = client.ok("test", bad);
    let errors = reply.get_array("writeErrors").unwrap();
    assert_eq!(errors[0].as_document().unwrap().get_i32("code").unwrap(), 9);
}

#[test]
fn collections_and_indexes_come_and_go() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"create": "c"});
    let made = client.ok(
        "test",
        doc! {"createIndexes": "c", "indexes": [
            {"key": {"a": 1}, "name": "a_1"},
        ]},
    );
    assert_eq!(made.get_i32("numIndexesBefore").unwrap(), 1);
    assert_eq!(made.get_i32("numIndexesAfter").unwrap(), 2);
    assert_eq!(
        batch(&client.ok("test", doc! {"listIndexes": "c"})).len(),
        2
    );
    let dropped = client.ok("test", doc! {"dropIndexes": "c", "index": "a_1"});
    assert_eq!(dropped.get_i32("nIndexesWas").unwrap(), 2);
    client.ok("admin", doc! {"renameCollection": "test.c", "to": "test.d"});
    client.ok("test", doc! {"drop": "d"});
    // Dropping what is not there is no error since MongoDB 7.0.
    client.ok("test", doc! {"drop": "d"});
    client.ok("test", doc! {"dropDatabase": 1});
    assert_eq!(
        client.fails("test", doc! {"create": "c", "nonsense": 1}).0,
        40_415
    );
}

#[test]
fn a_retried_write_is_done_once() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 1, "n": 0}]},
    );
    let update = doc! {
        "update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}],
        "lsid": lsid(1), "txnNumber": 1_i64,
    };
    let first = client.ok("test", update.clone());
    assert!(!first.contains_key("retriedStmtIds"));
    let second = client.ok("test", update);
    assert_eq!(second.get_i32("n").unwrap(), 1);
    assert_eq!(
        second.get_array("retriedStmtIds").unwrap(),
        &[Bson::Int32(0)]
    );
    assert_eq!(all(&mut client, "c", doc! {}), [doc! {"_id": 1, "n": 1}]);
}

#[test]
fn a_transaction_is_seen_when_it_commits() {
    let site = Site::new();
    let (mut client, mut other) = (site.client(), site.client());
    client.ok("test", doc! {"create": "c"});
    let part = |mut command: Document, number: i64, first: bool| {
        command.extend(doc! {"lsid": lsid(2), "txnNumber": number, "autocommit": false});
        if first {
            command.insert("startTransaction", true);
        }
        command
    };
    let insert = |id: i32| doc! {"insert": "c", "documents": [{"_id": id}]};
    client.ok("test", part(insert(1), 1, true));
    client.ok("test", part(insert(2), 1, false));
    assert!(all(&mut other, "c", doc! {}).is_empty());
    let own = client.ok("test", part(doc! {"find": "c"}, 1, false));
    assert_eq!(batch(&own).len(), 2);
    let commit = part(doc! {"commitTransaction": 1}, 1, false);
    client.ok("admin", commit.clone());
    client.ok("admin", commit);
    assert_eq!(all(&mut other, "c", doc! {}).len(), 2);

    client.ok("test", part(insert(3), 2, true));
    client.ok("admin", part(doc! {"abortTransaction": 1}, 2, false));
    assert_eq!(all(&mut other, "c", doc! {}).len(), 2);
    let late = client.run("test", part(insert(4), 2, false));
    assert_eq!(late.get_i32("code").unwrap(), 251, "{late}");
    assert_eq!(
        late.get_array("errorLabels").unwrap(),
        &["TransientTransactionError".into()]
    );
    let refused = client.fails("test", part(doc! {"count": "c"}, 3, true));
    assert_eq!(refused.0, 263);
}

#[test]
fn the_profile_of_a_database_is_kept() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"profile": 2});
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    // The entry is written behind the reply.
    let seen = |client: &mut crate::client::Client| {
        let found = all(
            client,
            "system.profile",
            doc! {"op": "insert", "ns": "test.c"},
        );
        !found.is_empty()
    };
    assert!(
        (0..10_000).any(|_| seen(&mut client)),
        "an entry of the profile"
    );
    let was = client.ok("test", doc! {"profile": 0, "slowms": 50});
    assert_eq!(was.get_i32("was").unwrap(), 2);
}

#[test]
fn documents_run_through_a_pipeline() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"a": 1}, {"a": 1}, {"a": 2}]},
    );
    let counted = client.ok(
        "test",
        doc! {"aggregate": "c", "cursor": {}, "pipeline": [
            {"$match": {"a": 1}}, {"$group": {"_id": 1, "n": {"$sum": 1}}},
        ]},
    );
    assert_eq!(batch(&counted), [doc! {"_id": 1, "n": 2}]);
    let running = client.ok(
        "admin",
        doc! {
            "aggregate": 1, "cursor": {}, "pipeline": [{"$currentOp": {}}],
        },
    );
    assert_eq!(batch(&running).len(), 1);
    let unknown = doc! {"aggregate": "c", "cursor": {}, "pipeline": [{"$nonsense": 1}]};
    assert_eq!(client.fails("test", unknown).0, 40_324);
    assert_eq!(
        client
            .fails("test", doc! {"aggregate": "c", "pipeline": []})
            .0,
        9
    );
}

#[test]
fn figures_are_told_and_collections_checked() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"a": 1}, {"a": 2}]},
    );
    let figures = client.ok("test", doc! {"collStats": "c", "scale": 1024});
    assert_eq!(figures.get_str("ns").unwrap(), "test.c");
    assert_eq!(figures.get_i32("scaleFactor").unwrap(), 1024);
    let sizes = figures.get_document("indexSizes").unwrap();
    let whole = client.ok("test", doc! {"collStats": "c"});
    let of_id = |sizes: &Document| sizes.get_i64("_id_").unwrap();
    assert_eq!(
        of_id(sizes),
        of_id(whole.get_document("indexSizes").unwrap()) / 1024
    );
    let figures = client.ok("test", doc! {"dbStats": 1, "freeStorage": 1});
    for name in ["fsUsedSize", "fsTotalSize", "totalFreeStorageSize"] {
        assert!(figures.get_i64(name).is_ok(), "{name}: {figures}");
    }
    assert!(figures.get_f64("avgObjSize").is_ok(), "{figures}");
    let used = client.ok(
        "test",
        doc! {"aggregate": "c", "cursor": {}, "pipeline": [{"$indexStats": {}}]},
    );
    assert!(batch(&used)[0].get_str("host").is_ok(), "{used}");
    let time = client.ok(
        "test",
        doc! {"aggregate": "c", "cursor": {}, "pipeline": [
            {"$project": {"t": "$$CLUSTER_TIME", "r": "$$USER_ROLES"}},
        ]},
    );
    assert!(batch(&time)[0].get_timestamp("t").is_ok(), "{time}");
    assert_eq!(batch(&time)[0].get_array("r").unwrap().len(), 0);
    let report = client.ok("test", doc! {"validate": "c", "full": true});
    assert!(report.get_bool("valid").unwrap());
    assert_eq!(client.fails("test", doc! {"dbStats": 1, "scale": 0}).0, 2);
}
