//! `applyOps` with entries of an oplog.

use bson::{Bson, Document, doc};

use crate::auth::{as_user, guarded};
use crate::client::{Client, Site, all, batch};

fn apply(client: &mut Client, ops: Vec<Document>) -> Document {
    client.run("admin", doc! {"applyOps": ops})
}

fn results(reply: &Document) -> (f64, i32, Vec<bool>) {
    let results = reply.get_array("results").unwrap().iter();
    (
        reply.get_f64("ok").unwrap(),
        reply.get_i32("applied").unwrap(),
        results.map(|result| result.as_bool().unwrap()).collect(),
    )
}

fn entry(op: &str, o: Document) -> Document {
    doc! {"op": op, "ns": "test.c", "o": o, "t": 1_i64, "v": 2_i64}
}

fn update(id: i32, o: Document) -> Document {
    doc! {"op": "u", "ns": "test.c", "o2": {"_id": id}, "o": o}
}

/// E1: all or none.
#[test]
fn changes_of_documents_are_applied_all_or_none() {
    let site = Site::new();
    let mut client = site.client();
    // The collection does not exist, and entries do not create it.
    let missing = apply(&mut client, vec![entry("i", doc! {"_id": 1})]);
    assert_eq!(results(&missing), (0.0, 1, vec![false]));
    assert_eq!(missing.get_i32("code").unwrap(), 26);
    client.ok("test", doc! {"create": "c"});
    let reply = apply(
        &mut client,
        vec![
            entry("i", doc! {"_id": 1, "a": {"x": 1}, "l": [1, 2, 3]}),
            entry("i", doc! {"_id": 2, "gone": true}),
            entry("n", doc! {"msg": "nothing"}),
            update(
                1,
                doc! {"$v": 2, "diff": {"sa": {"u": {"x": 5}}, "sl": {"a": true, "l": 1}}},
            ),
            update(3, doc! {"$v": 1, "$set": {"made": true}}),
            entry("d", doc! {"_id": 2}),
            // The second time the insert replaces the document.
            entry("i", doc! {"_id": 3, "whole": 1}),
        ],
    );
    assert_eq!(results(&reply), (1.0, 7, vec![true; 7]));
    let now = vec![
        doc! {"_id": 1, "a": {"x": 5}, "l": [1]},
        doc! {"_id": 3, "whole": 1},
    ];
    assert_eq!(all(&mut client, "c", doc! {}), now);
    for (bad, code) in [
        (entry("i", doc! {"a": 1}), 4),
        (entry("d", doc! {"a": 1}), 4),
        (update(9, doc! {"$v": 2, "diff": {"u": {"a": 1}}}), 218),
        (
            update(1, doc! {"$v": 3, "diff": {"u": {"a": 1}}}),
            4_772_600,
        ),
        (update(1, doc! {"$v": 2, "diff": {"u": {"_id": 7}}}), 66),
    ] {
        let reply = apply(&mut client, vec![entry("i", doc! {"_id": 8}), bad]);
        assert_eq!(results(&reply), (0.0, 2, vec![false; 2]), "{reply}");
        assert_eq!(reply.get_i32("code").unwrap(), code, "{reply}");
        assert_eq!(all(&mut client, "c", doc! {}), now, "none of it is there");
    }
    let never = doc! {"applyOps": [update(9, doc! {"$set": {"a": 1}})], "alwaysUpsert": false};
    assert_eq!(client.fails("admin", never).0, 218);
}

#[test]
fn what_is_no_entry_is_refused() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"create": "c"});
    for (ops, code) in [
        (Bson::Int32(1), 14),
        (Bson::Array(vec![Bson::Int32(1)]), 9),
        (Bson::Array(vec![doc! {"ns": "test.c"}.into()]), 20),
        (
            Bson::Array(vec![doc! {"op": "i", "o": {"_id": 1}}.into()]),
            20,
        ),
        (Bson::Array(vec![entry("x", doc! {}).into()]), 14_825),
        (
            Bson::Array(vec![doc! {"op": "i", "ns": "", "o": {}}.into()]),
            20,
        ),
        (
            Bson::Array(vec![doc! {"op": "i", "ns": "test.c"}.into()]),
            9,
        ),
        (
            Bson::Array(vec![doc! {"op": "u", "ns": "test.c", "o": {}}.into()]),
            9,
        ),
        (
            Bson::Array(vec![doc! {"op": "n", "ns": "", "ui": 1}.into()]),
            207,
        ),
    ] {
        let refused = client.fails("admin", doc! {"applyOps": ops.clone()});
        assert_eq!(refused.0, code, "{ops}: {}", refused.1);
    }
    let condition = doc! {"applyOps": [], "preCondition": []};
    assert_eq!(client.fails("admin", condition).0, 6_711_600);
    let mut deep = doc! {"op": "n", "ns": ""};
    for _ in 0..12 {
        deep = doc! {"op": "c", "ns": "test.$cmd", "o": {"applyOps": [deep]}};
    }
    let reply = apply(&mut client, vec![deep]);
    assert_eq!(reply.get_f64("ok").unwrap(), 0.0);
}

/// E1: with commands among them, one by one.
#[test]
fn commands_are_applied_one_by_one() {
    let site = Site::new();
    let mut client = site.client();
    let command = |o: Document| doc! {"op": "c", "ns": "test.$cmd", "o": o};
    let uuid = bson::Uuid::new();
    let mut made =
        command(doc! {"create": "d", "idIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_"}});
    made.insert("ui", uuid);
    let index = doc! {"createIndexes": "d", "v": 2, "key": {"a": 1}, "name": "a_1"};
    let reply = apply(
        &mut client,
        vec![
            command(doc! {"create": "c"}),
            entry("i", doc! {"_id": 1}),
            made.clone(),
            command(index),
            command(doc! {"applyOps": [entry("i", doc! {"_id": 2})]}),
            // A command whose effect already exists succeeds.
            made,
            command(doc! {"drop": "never"}),
        ],
    );
    assert_eq!(results(&reply), (1.0, 7, vec![true; 7]), "{reply}");
    assert_eq!(all(&mut client, "c", doc! {}).len(), 2);
    let listed = batch(&client.ok("test", doc! {"listCollections": 1, "filter": {"name": "d"}}));
    let info = listed[0].get_document("info").unwrap();
    assert_eq!(info.get("uuid"), Some(&Bson::from(uuid)));
    assert_eq!(
        batch(&client.ok("test", doc! {"listIndexes": "d"})).len(),
        2
    );
    // The collection is identified by its UUID, whatever its name.
    client.ok("admin", doc! {"renameCollection": "test.d", "to": "test.e"});
    let by_uuid = doc! {"op": "i", "ns": "test.d", "ui": uuid, "o": {"_id": 5}};
    let dropped = doc! {"op": "c", "ns": "test.$cmd", "ui": uuid, "o": {"drop": "d"}};
    assert_eq!(results(&apply(&mut client, vec![by_uuid.clone()])).0, 1.0);
    assert_eq!(all(&mut client, "e", doc! {}).len(), 1);
    assert_eq!(results(&apply(&mut client, vec![dropped])).0, 1.0);
    assert_eq!(
        apply(&mut client, vec![by_uuid]).get_i32("code").unwrap(),
        26
    );
    // A failing command does not end the call; a failing change does.
    let reply = apply(
        &mut client,
        vec![
            command(doc! {"collMod": "c", "nonsense": 1}),
            entry("i", doc! {"_id": 3}),
            entry("i", doc! {}),
            entry("i", doc! {"_id": 4}),
        ],
    );
    assert_eq!(results(&reply), (0.0, 3, vec![false, true, false]));
    assert_eq!(all(&mut client, "c", doc! {}).len(), 3);
    for (o, code) in [
        (doc! {"startIndexBuild": "c"}, 115),
        (doc! {"shutdown": 1}, 2),
    ] {
        let reply = apply(&mut client, vec![command(o)]);
        let message = reply.get_str("errmsg").unwrap();
        assert!(message.contains("one or more errors"), "{code}: {message}");
    }
}

/// The UUID of a collection.
fn uuid(client: &mut Client, database: &str, name: &str) -> Bson {
    let list = doc! {"listCollections": 1, "filter": {"name": name}};
    let listed = batch(&client.ok(database, list));
    let info = listed[0].get_document("info").unwrap();
    info.get("uuid").unwrap().clone()
}

/// The content, indexes and collections of the database `other`.
fn state(root: &mut Client) -> (String, Vec<Document>, Vec<Document>) {
    let hashes = root.ok("other", doc! {"dbHash": 1});
    let indexes = root.ok("other", doc! {"listIndexes": "c"});
    let list = root.ok("other", doc! {"listCollections": 1});
    let md5 = hashes.get_str("md5").unwrap().to_owned();
    (md5, batch(&indexes), batch(&list))
}

/// Create a user that may apply entries to `test.open` and `test.new`.
fn make_applier(root: &mut Client) {
    let actions = [
        "insert",
        "update",
        "remove",
        "dropCollection",
        "collMod",
        "dropIndex",
        "renameCollectionSameDB",
        "createCollection",
        "createIndex",
        "find",
    ];
    let resource = |name: &str| doc! {"db": "test", "collection": name};
    let privileges = [
        doc! {"resource": {"cluster": true}, "actions": ["applyOps", "useUUID", "forceUUID"]},
        doc! {"resource": resource("open"), "actions": &actions},
        doc! {"resource": resource("new"), "actions": &actions},
    ];
    root.ok(
        "admin",
        doc! {"createRole": "applies", "privileges": &privileges, "roles": []},
    );
    let roles = [doc! {"role": "applies", "db": "admin"}];
    root.ok(
        "test",
        doc! {"createUser": "applier", "pwd": "secret", "roles": &roles},
    );
}

/// E2: the privileges are those on the collection that is changed, whatever its entry calls it.
#[test]
fn entries_require_the_privileges_on_the_collection_of_their_uuid() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    root.ok("test", doc! {"create": "open"});
    let index = doc! {"key": {"a": 1}, "name": "a_1"};
    root.ok("other", doc! {"createIndexes": "c", "indexes": [index]});
    make_applier(&mut root);
    let mut user = as_user(&site, "test", "applier");
    let (open, hidden) = (
        uuid(&mut root, "test", "open"),
        uuid(&mut root, "other", "c"),
    );
    let change = |op: &str, o: Document| {
        doc! {"op": op, "ns": "test.open", "o2": {"_id": 1}, "o": o}
    };
    let command = |o: Document| doc! {"op": "c", "ns": "test.$cmd", "o": o};
    let entries = [
        change("i", doc! {"_id": 9}),
        change("u", doc! {"$set": {"x": 1}}),
        change("d", doc! {"_id": 1}),
        command(doc! {"collMod": "open", "validator": {"x": 1}}),
        command(doc! {"dropIndexes": "open", "index": "a_1"}),
        command(doc! {"renameCollection": "test.open", "to": "test.new"}),
        command(doc! {"drop": "open"}),
    ];
    let before = state(&mut root);
    for entry in entries {
        let mut foreign = entry.clone();
        foreign.insert("ui", &hidden);
        let nested = command(doc! {"applyOps": [&foreign]});
        for ops in [vec![foreign], vec![nested]] {
            let refused = apply(&mut user, ops);
            let code = refused.get_i32("code").unwrap_or(0);
            assert_eq!(code, 13, "{entry}: {refused}");
        }
        assert_eq!(state(&mut root), before, "{entry}");
    }
    // A name of another collection does not matter.
    let by_uuid = |op: &str, o: Document| {
        doc! {"op": op, "ns": "other.c", "ui": &open, "o2": {"_id": 1}, "o": o}
    };
    let ops = vec![
        by_uuid("i", doc! {"_id": 1}),
        by_uuid("u", doc! {"$set": {"x": 1}}),
    ];
    let reply = apply(&mut user, ops);
    assert_eq!(results(&reply), (1.0, 2, vec![true; 2]), "{reply}");
    let mut dropped = doc! {"op": "c", "ns": "other.$cmd", "o": {"drop": "c"}};
    dropped.insert("ui", &open);
    let reply = apply(&mut user, vec![dropped]);
    assert_eq!(results(&reply).0, 1.0, "{reply}");
    assert_eq!(state(&mut root), before);
}
