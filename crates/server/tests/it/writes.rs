//! Updates, deletes, indexes, sessions and transactions over the wire.

use bson::{Binary, Bson, Document, doc};

use crate::client::{Site, all, await_so, batch};

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
    // Since MongoDB 7.0, dropping a missing collection is not an error.
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
fn writes_that_wait_for_a_transaction_do_not_hold_it_up() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 0, "n": 0}]},
    );
    let inc = || doc! {"update": "c", "updates": [{"q": {"_id": 0}, "u": {"$inc": {"n": 1}}}]};
    let part = |mut command: Document, first: bool| {
        command.extend(doc! {"lsid": lsid(3), "txnNumber": 1_i64, "autocommit": false});
        if first {
            command.insert("startTransaction", true);
        }
        command
    };
    client.ok("test", part(inc(), true));
    // More than the number of commands that may run at once.
    let waiting: Vec<_> = (0..250)
        .map(|_| {
            let mut writer = site.client();
            writer.send("test", inc(), 0);
            writer
        })
        .collect();
    let mut other = site.client();
    await_so("192 writes to wait", || {
        let status = other.ok("admin", doc! {"serverStatus": 1});
        let metrics = status.get_document("metrics").unwrap();
        let operation = metrics.get_document("operation").unwrap();
        192 <= operation.get_i64("writeConflicts").unwrap()
    });
    client.ok("test", part(inc(), false));
    let own = client.ok("test", part(doc! {"find": "c"}, false));
    assert_eq!(batch(&own)[0].get_i32("n").unwrap(), 2);
    client.ok("admin", part(doc! {"commitTransaction": 1}, false));
    for mut writer in waiting {
        let (_, reply) = writer.receive().unwrap();
        assert_eq!(reply.get_i32("nModified").ok(), Some(1), "{reply}");
    }
    let found = all(&mut other, "c", doc! {});
    assert_eq!(found[0].get_i32("n").unwrap(), 252);
}

#[test]
fn the_profile_of_a_database_is_kept() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"profile": 2});
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    // The entry is written after the reply.
    let seen = |client: &mut crate::client::Client| {
        let found = all(
            client,
            "system.profile",
            doc! {"op": "insert", "ns": "test.c"},
        );
        !found.is_empty()
    };
    await_so("an entry of the profile", || seen(&mut client));
    let was = client.ok("test", doc! {"profile": 0, "slowms": 50});
    assert_eq!(was.get_i32("was").unwrap(), 2);
}

/// The matching entries of the profile of `test`, once there are any: they are written after the
/// reply.
fn profiled(client: &mut crate::client::Client, filter: Document) -> Document {
    let mut entry = None;
    await_so("an entry of the profile", || {
        entry = all(client, "system.profile", filter.clone()).pop();
        entry.is_some()
    });
    entry.unwrap()
}

#[test]
fn the_profile_says_what_commands_did_and_for_whom() {
    let site = crate::auth::guarded();
    let mut client = crate::auth::as_user(&site, "admin", "root");
    client.ok("test", doc! {"profile": 2});
    client.ok(
        "test",
        doc! {"insert": "p", "documents": [{"a": 1}, {"a": 1}, {"a": 2}]},
    );
    let insert = profiled(&mut client, doc! {"op": "insert", "ns": "test.p"});
    assert_eq!(insert.get_i64("ninserted").unwrap(), 3);
    assert_eq!(insert.get_str("user").unwrap(), "root@admin");
    let update = doc! {"q": {"a": 1}, "u": {"$set": {"b": 1}}, "multi": true};
    let upsert = doc! {"q": {"a": 9}, "u": {"$set": {"b": 1}}, "upsert": true};
    client.ok("test", doc! {"update": "p", "updates": [update, upsert]});
    let update = profiled(&mut client, doc! {"op": "update", "ns": "test.p"});
    let figure = |name: &str| update.get_i64(name).unwrap();
    assert_eq!(
        (figure("nMatched"), figure("nModified"), figure("nUpserted")),
        (2, 2, 1)
    );
    client.ok(
        "test",
        doc! {"delete": "p", "deletes": [{"q": {"a": 2}, "limit": 0}]},
    );
    let delete = profiled(&mut client, doc! {"op": "remove", "ns": "test.p"});
    assert_eq!(delete.get_i64("ndeleted").unwrap(), 1);
    let reply = client.ok("test", doc! {"find": "p", "batchSize": 1});
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    client.ok("test", doc! {"getMore": id, "collection": "p"});
    let more = profiled(&mut client, doc! {"op": "getmore", "ns": "test.p"});
    let command = more.get_document("originatingCommand").unwrap();
    assert_eq!(command.get_i32("batchSize").unwrap(), 1);
    let reply = client.ok("test", doc! {"find": "p", "batchSize": 1});
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let find = profiled(&mut client, doc! {"op": "query", "ns": "test.p"});
    assert_eq!(find.get_i64("nreturned").unwrap(), 1);
    assert_eq!(find.get_i64("cursorid").unwrap(), id);
    client.ok("test", doc! {"getMore": id, "collection": "p"});
    let more = profiled(&mut client, doc! {"op": "getmore", "ns": "test.p"});
    assert_eq!(more.get_i64("nreturned").unwrap(), 2);
    assert!(more.get_bool("cursorExhausted").unwrap());
    let read = |entry: &Document| {
        let figure = |name: &str| entry.get_i64(name).unwrap();
        let plan = entry.get_str("planSummary").unwrap().to_owned();
        (plan, figure("keysExamined"), figure("docsExamined"))
    };
    // An upsert that inserts also searches for its document first.
    let scan = || "COLLSCAN".to_owned();
    assert_eq!(read(&update), (scan(), 0, 6));
    assert_eq!(read(&delete), (scan(), 0, 4));
    assert_eq!(read(&find), (scan(), 0, 1));
    assert_eq!(read(&more), (scan(), 0, 2));
    assert!(!insert.contains_key("planSummary"), "{insert}");
    assert!(!find.contains_key("hasSortStage"), "{find}");
}

#[test]
fn the_log_says_by_which_plan_a_command_was_done() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 1, "a": 2}, {"_id": 2, "a": 2}]},
    );
    let index = doc! {"key": {"a": 1}, "name": "a_1"};
    client.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    // Every command counts as slow.
    client.ok("test", doc! {"profile": 0, "slowms": 0});
    let find = doc! {"find": "c", "filter": {"a": 2}, "sort": {"b": 1}, "comment": "looked for"};
    client.ok("test", find);
    let log = client.ok("admin", doc! {"getLog": "global"});
    let lines = log.get_array("log").unwrap().iter();
    let mut lines = lines.filter_map(bson::Bson::as_str);
    let line = lines.find(|line| line.contains("looked for")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let logged = &line["attr"];
    assert_eq!(logged["planSummary"], "IXSCAN { a: 1 }");
    assert_eq!(logged["keysExamined"], 2);
    assert_eq!(logged["docsExamined"], 2);
    assert_eq!(logged["hasSortStage"], true);
}

#[test]
fn what_is_profiled_is_sampled_and_chosen() {
    let site = Site::new();
    let mut client = site.client();
    let insert = |c: &str| doc! {"insert": c, "documents": [{}]};
    let count = |client: &mut crate::client::Client| {
        // Entries are written in order: if a later entry exists, so do those before it.
        client.ok("test", doc! {"profile": 1, "filter": {"ns": "test.last"}});
        client.ok("test", insert("last"));
        profiled(client, doc! {"ns": "test.last"});
        let found = all(client, "system.profile", doc! {"ns": {"$ne": "test.last"}}).len();
        client.ok("test", doc! {"profile": 0, "filter": "unset"});
        client.ok("test", doc! {"drop": "system.profile"});
        found
    };
    // Every command counts as slow, and none is sampled.
    client.ok("test", doc! {"profile": 1, "slowms": 0, "sampleRate": 0});
    client.ok("test", insert("c"));
    assert_eq!(count(&mut client), 0);
    client.ok("test", doc! {"profile": 1, "sampleRate": 1.0});
    client.ok("test", insert("c"));
    assert_eq!(count(&mut client), 1);
    let by_name = doc! {"profile": 1, "slowms": 10_000, "filter": {"ns": "test.d"}};
    client.ok("test", by_name);
    client.ok("test", insert("c"));
    client.ok("test", insert("d"));
    let shown = client.ok("test", doc! {"profile": -1});
    assert_eq!(
        shown.get_document("filter").unwrap(),
        &doc! {"ns": "test.d"}
    );
    assert_eq!(
        (
            shown.get_i32("was").unwrap(),
            shown.get_i32("slowms").unwrap()
        ),
        (1, 10_000)
    );
    assert_eq!(count(&mut client), 1);
    for wrong in [
        doc! {"profile": 1, "sampleRate": 1.5},
        doc! {"profile": 1, "filter": "none"},
        doc! {"profile": 1, "filter": {"$nonsense": 1}},
        doc! {"profile": 3},
    ] {
        assert_eq!(client.fails("test", wrong.clone()).0, 2, "{wrong}");
    }
    let was = client.ok("test", doc! {"profile": -1});
    assert_eq!(
        was.get_i32("was").unwrap(),
        0,
        "what was refused changed nothing"
    );
}

#[test]
fn options_that_are_not_supported_are_not_passed_over() {
    let site = Site::new();
    let mut client = site.client();
    let documents: Vec<Document> = (0..100)
        .map(|n| doc! {"_id": n, "s": "x".repeat(100)})
        .collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let dry = client.ok("test", doc! {"compact": "c", "dryRun": true});
    assert!(dry.get_i64("estimatedBytesFreed").unwrap() >= 0, "{dry}");
    assert!(!dry.contains_key("bytesFreed"));
    let much = doc! {"compact": "c", "freeSpaceTargetMB": 1_000_000};
    assert_eq!(client.ok("test", much).get_i64("bytesFreed").unwrap(), 0);
    let none = doc! {"compact": "c", "freeSpaceTargetMB": 0};
    assert_eq!(client.fails("test", none).0, 2);
    let statement = |on: bool| {
        doc! {"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": true, "upsertSupplied": on}
    };
    let update = |on: bool| doc! {"update": "c", "updates": [statement(on)]};
    client.ok("test", update(false));
    assert_eq!(client.fails("test", update(true)).0, 72);
    let op = doc! {
        "update": 0, "filter": {}, "updateMods": {"$set": {"a": 1}}, "upsert": true,
        "upsertSupplied": true,
    };
    let bulk = doc! {"bulkWrite": 1, "ops": [op], "nsInfo": [{"ns": "test.c"}]};
    assert_eq!(client.fails("admin", bulk).0, 72);
}

#[test]
fn names_of_collections_that_one_may_use_need_no_privilege() {
    let site = crate::auth::guarded();
    let mut root = crate::auth::as_user(&site, "admin", "root");
    root.ok("test", doc! {"create": "d"});
    let privilege = doc! {"resource": {"db": "test", "collection": "c"}, "actions": ["find"]};
    let role = doc! {"createRole": "c", "privileges": [privilege], "roles": []};
    root.ok("test", role);
    root.ok(
        "test",
        doc! {"createUser": "c", "pwd": "secret", "roles": ["c"]},
    );
    let mut user = crate::auth::as_user(&site, "test", "c");
    let list = doc! {"listCollections": 1, "nameOnly": true, "authorizedCollections": true};
    let names = |reply: &Document| {
        let mut names: Vec<String> = batch(reply)
            .iter()
            .map(|one| one.get_str("name").unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&user.ok("test", list.clone())), ["c"]);
    assert!(names(&user.ok("other", list.clone())).is_empty());
    assert_eq!(names(&root.ok("test", list)), ["c", "d"]);
    for less in [
        doc! {"listCollections": 1, "nameOnly": true},
        doc! {"listCollections": 1, "authorizedCollections": true},
    ] {
        assert_eq!(user.fails("test", less).0, 13);
    }
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
fn statistics_are_returned_and_collections_checked() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"a": 1}, {"a": 2}]},
    );
    let stats = client.ok("test", doc! {"collStats": "c", "scale": 1024});
    assert_eq!(stats.get_str("ns").unwrap(), "test.c");
    assert_eq!(stats.get_i32("scaleFactor").unwrap(), 1024);
    let sizes = stats.get_document("indexSizes").unwrap();
    let whole = client.ok("test", doc! {"collStats": "c"});
    let of_id = |sizes: &Document| sizes.get_i32("_id_").unwrap();
    assert_eq!(
        of_id(sizes),
        of_id(whole.get_document("indexSizes").unwrap()) / 1024
    );
    let stats = client.ok("test", doc! {"dbStats": 1, "freeStorage": 1});
    for name in ["fsUsedSize", "fsTotalSize", "totalFreeStorageSize"] {
        assert!(stats.get_f64(name).is_ok(), "{name}: {stats}");
    }
    assert!(stats.get_f64("avgObjSize").is_ok(), "{stats}");
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

#[test]
fn an_index_without_a_name_is_refused() {
    let site = Site::new();
    let mut client = site.client();
    let (code, message) = client.fails(
        "test",
        doc! {"createIndexes": "c", "indexes": [{"key": {"a": 1}}]},
    );
    assert_eq!(code, 9);
    let wanted = "The 'name' field is a required property of an index specification";
    assert!(message.ends_with(wanted), "{message}");
}
