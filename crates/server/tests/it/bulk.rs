//! `bulkWrite`: statements on several collections.

use bson::{Bson, Document, doc};

use crate::client::{Client, Site, all, batch};
use crate::writes::lsid;

fn infos() -> Vec<Document> {
    vec![doc! {"ns": "test.a"}, doc! {"ns": "test.b"}]
}

fn bulk(ops: Vec<Document>) -> Document {
    doc! {"bulkWrite": 1, "ops": ops, "nsInfo": infos()}
}

/// The totals of a reply, in their order.
fn sums(reply: &Document) -> [i32; 6] {
    [
        "nErrors",
        "nInserted",
        "nMatched",
        "nModified",
        "nUpserted",
        "nDeleted",
    ]
    .map(|name| reply.get_i32(name).unwrap())
}

fn set_up(client: &mut Client) {
    client.ok(
        "test",
        doc! {"insert": "a", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 1}]},
    );
}

/// B1: statements take effect in their order.
#[test]
fn statements_on_many_collections_are_answered_one_by_one() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let reply = client.ok(
        "admin",
        bulk(vec![
            doc! {"insert": 1, "document": {"_id": 7}},
            doc! {"insert": 1, "document": {"_id": 8}},
            doc! {"update": 0, "filter": {"x": 1}, "updateMods": {"$inc": {"x": 1}}, "multi": true},
            doc! {"update": 1, "filter": {"_id": 9}, "updateMods": {"_id": 9}, "upsert": true},
            doc! {"delete": 1, "filter": {"_id": 7}},
        ]),
    );
    assert_eq!(sums(&reply), [0, 2, 2, 2, 1, 1]);
    let cursor = reply.get_document("cursor").unwrap();
    assert_eq!(cursor.get_str("ns").unwrap(), "admin.$cmd.bulkWrite");
    let items = batch(&reply);
    assert_eq!(
        items,
        [
            doc! {"ok": 1.0, "idx": 0, "n": 1},
            doc! {"ok": 1.0, "idx": 1, "n": 1},
            doc! {"ok": 1.0, "idx": 2, "n": 2, "nModified": 2},
            doc! {"ok": 1.0, "idx": 3, "n": 1, "nModified": 0, "upserted": {"_id": 9}},
            doc! {"ok": 1.0, "idx": 4, "n": 1},
        ]
    );
    assert_eq!(
        all(&mut client, "b", doc! {}),
        [doc! {"_id": 8}, doc! {"_id": 9}]
    );
}

/// B2: the error of a statement is reported at its index.
#[test]
fn an_error_ends_ordered_statements_only() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let ops = vec![
        doc! {"insert": 0, "document": {"_id": 3}},
        doc! {"insert": 0, "document": {"_id": 1}},
        doc! {"insert": 0, "document": {"_id": 4}},
    ];
    let reply = client.ok("admin", bulk(ops.clone()));
    assert_eq!(sums(&reply), [1, 1, 0, 0, 0, 0]);
    let items = batch(&reply);
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].get_f64("ok").unwrap(), 0.0);
    assert_eq!(items[1].get_i32("idx").unwrap(), 1);
    assert_eq!(items[1].get_i32("code").unwrap(), 11_000);
    assert_eq!(items[1].get_i32("n").unwrap(), 0);
    let mut unordered = bulk(ops);
    unordered.extend(doc! {"ordered": false, "errorsOnly": true});
    let reply = client.ok("admin", unordered);
    assert_eq!(sums(&reply), [2, 1, 0, 0, 0, 0]);
    let reported: Vec<i32> = batch(&reply)
        .iter()
        .map(|item| item.get_i32("idx").unwrap())
        .collect();
    assert_eq!(reported, [0, 1]);
    assert_eq!(all(&mut client, "a", doc! {}).len(), 4);
}

#[test]
fn outcomes_come_in_batches() {
    let site = Site::new();
    let mut client = site.client();
    let ops = (0..5).map(|i| doc! {"insert": 0, "document": {"_id": i}});
    let mut command = bulk(ops.collect());
    command.insert("cursor", doc! {"batchSize": 2});
    let reply = client.ok("admin", command);
    assert_eq!(batch(&reply).len(), 2);
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    assert_ne!(id, 0);
    let more = client.ok(
        "admin",
        doc! {"getMore": id, "collection": "$cmd.bulkWrite"},
    );
    let cursor = more.get_document("cursor").unwrap();
    assert_eq!(cursor.get_array("nextBatch").unwrap().len(), 3);
    assert_eq!(cursor.get_i64("id").unwrap(), 0);
}

#[test]
fn what_is_no_bulk_is_refused_as_a_whole() {
    let site = Site::new();
    let mut client = site.client();
    let insert = doc! {"insert": 0, "document": {"_id": 1}};
    assert_eq!(client.fails("test", bulk(vec![insert.clone()])).0, 13);
    assert_eq!(client.fails("admin", bulk(Vec::new())).0, 16);
    let beyond = doc! {"insert": 2, "document": {"_id": 1}};
    assert_eq!(client.fails("admin", bulk(vec![insert, beyond])).0, 2);
    let unknown = doc! {"replace": 0, "filter": {}};
    assert_eq!(client.fails("admin", bulk(vec![unknown])).0, 40_415);
    let name = doc! {
        "bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "nodot"}],
    };
    assert_eq!(client.fails("admin", name).0, 73);
    assert!(all(&mut client, "a", doc! {}).is_empty());
}

#[test]
fn a_retried_bulk_does_nothing_twice() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let mut command = bulk(vec![
        doc! {"insert": 1, "document": {"_id": 7}},
        doc! {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"x": 1}}},
        doc! {"delete": 0, "filter": {"_id": 2}},
    ]);
    command.extend(doc! {"lsid": lsid(1), "txnNumber": 1_i64});
    let first = client.ok("admin", command.clone());
    let again = client.ok("admin", command);
    assert_eq!(sums(&first), [0, 1, 1, 1, 0, 1]);
    assert_eq!(sums(&again), sums(&first));
    assert_eq!(batch(&again), batch(&first));
    let retried: Vec<Bson> = vec![0.into(), 1.into(), 2.into()];
    assert_eq!(again.get_array("retriedStmtIds").unwrap(), &retried);
    assert_eq!(all(&mut client, "a", doc! {}), [doc! {"_id": 1, "x": 2}]);
}

/// B2: an error of the transaction is the error of the command.
#[test]
fn a_failed_statement_ends_its_transaction() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    client.ok("test", doc! {"create": "b"});
    let part = |number: i64, ops: Vec<Document>, first: bool| {
        let mut command = bulk(ops);
        command.extend(doc! {"lsid": lsid(1), "txnNumber": number, "autocommit": false});
        if first {
            command.insert("startTransaction", true);
        }
        command
    };
    let end = |number: i64, name: &str| {
        doc! {name: 1, "lsid": lsid(1), "txnNumber": number, "autocommit": false}
    };
    let good = vec![
        doc! {"insert": 1, "document": {"_id": 7}},
        doc! {"delete": 0, "filter": {"_id": 2}},
    ];
    client.ok("admin", part(1, good, true));
    assert!(all(&mut client, "b", doc! {}).is_empty());
    client.ok("admin", end(1, "commitTransaction"));
    assert_eq!(all(&mut client, "b", doc! {}).len(), 1);
    let bad = vec![
        doc! {"insert": 1, "document": {"_id": 8}},
        doc! {"insert": 1, "document": {"_id": 7}},
        doc! {"insert": 1, "document": {"_id": 9}},
    ];
    let reply = client.ok("admin", part(2, bad, true));
    assert_eq!(sums(&reply), [1, 1, 0, 0, 0, 0]);
    assert_eq!(batch(&reply)[1].get_i32("idx").unwrap(), 1);
    assert_eq!(client.fails("admin", end(2, "commitTransaction")).0, 251);
    assert_eq!(all(&mut client, "b", doc! {}).len(), 1);
}

/// A statement on a collection whose UUID is not that of `nsInfo` fails and writes nothing.
#[test]
fn a_collection_must_have_the_uuid_of_its_namespace() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let list = doc! {"listCollections": 1, "filter": {"name": "a"}};
    let info = batch(&client.ok("test", list));
    let info = info[0].get_document("info").unwrap();
    let own = info.get("uuid").unwrap().clone();
    let other = Bson::from(bson::Uuid::from_bytes([7; 16]));
    let insert = doc! {"insert": 0, "document": {"_id": 3}};
    let ops = [
        insert.clone(),
        doc! {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"x": 7}}},
        doc! {"update": 0, "filter": {}, "updateMods": {"$set": {"x": 7}}, "multi": true},
        doc! {"update": 0, "filter": {"_id": 9}, "updateMods": {"_id": 9}, "upsert": true},
        doc! {"delete": 0, "filter": {"_id": 1}},
        doc! {"delete": 0, "filter": {}, "multi": true},
    ];
    let mut run = |ns: &str, uuid: &Bson, ops: &[Document]| {
        let infos = [doc! {"ns": ns, "collectionUUID": uuid}];
        let bulk = doc! {"bulkWrite": 1, "ops": ops, "nsInfo": &infos[..], "ordered": false};
        client.ok("admin", bulk)
    };
    for (ns, uuid, actual) in [
        ("test.a", &other, Bson::Null),
        // Refused instead of created.
        ("test.b", &own, "a".into()),
    ] {
        let reply = run(ns, uuid, &ops);
        assert_eq!(sums(&reply), [6, 0, 0, 0, 0, 0], "{reply}");
        for item in batch(&reply) {
            assert_eq!(item.get_i32("code").unwrap(), 361, "{item}");
            assert_eq!(item.get("actualCollection"), Some(&actual), "{item}");
        }
    }
    let reply = run("test.a", &own, &[insert]);
    assert_eq!(sums(&reply), [0, 1, 0, 0, 0, 0], "{reply}");
    let found = all(&mut client, "a", doc! {});
    assert_eq!(found.len(), 3, "{found:?}");
    let listed = batch(&client.ok("test", doc! {"listCollections": 1}));
    assert_eq!(listed.len(), 1, "{listed:?}");
    let info = doc! {"ns": "test.a", "collectionUUID": 1};
    let bulk = doc! {"bulkWrite": 1, "ops": [], "nsInfo": [info]};
    assert_eq!(client.fails("admin", bulk).0, 14);
}
