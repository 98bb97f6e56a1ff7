//! Inserting and reading documents.

use bson::raw::cstr;
use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use wire::message::Flags;

use crate::client::{Client, Site, all, batch};

#[test]
fn documents_are_inserted_and_listed() {
    let site = Site::new();
    let mut client = site.client();
    let insert = doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]};
    let reply = client.ok("test", insert);
    assert_eq!(reply.get("n"), Some(&Bson::Int32(2)));
    let names: Vec<String> = reply.keys().cloned().collect();
    assert_eq!(names, ["n", "ok", "$clusterTime", "operationTime"]);

    let databases = client.ok("admin", doc! {"listDatabases": 1, "nameOnly": true});
    let names = ["admin", "local", "test"].map(|name| Bson::from(doc! {"name": name}));
    assert_eq!(databases.get_array("databases").unwrap(), &names);
    let listed = batch(&client.ok("test", doc! {"listCollections": 1}));
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].get_str("name").unwrap(), "c");
    assert_eq!(listed[0].get_str("type").unwrap(), "collection");
    let info = listed[0].get_document("info").unwrap();
    assert!(matches!(info.get("uuid"), Some(Bson::Binary(_))), "{info}");
    let filter = doc! {"listCollections": 1, "filter": {"name": "other"}};
    assert!(batch(&client.ok("test", filter)).is_empty());
    let indexes = batch(&client.ok("test", doc! {"listIndexes": "c"}));
    let id = doc! {"v": 2, "key": {"_id": 1}, "name": "_id_"};
    assert_eq!(indexes, [id]);
    assert_eq!(client.fails("test", doc! {"listIndexes": "missing"}).0, 26);
}

#[test]
fn refused_documents_are_told_by_their_place() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 2}]});
    let documents = vec![doc! {"_id": 1}, doc! {"_id": 2}, doc! {"_id": 3}];
    let insert = |ordered: bool, documents: &[Document]| {
        let documents: Vec<Bson> = documents.iter().cloned().map(Bson::from).collect();
        doc! {"insert": "c", "documents": documents, "ordered": ordered}
    };
    let reply = client.ok("test", insert(true, &documents));
    assert_eq!(reply.get_i32("n").unwrap(), 1);
    let errors = reply.get_array("writeErrors").unwrap();
    let error = errors[0].as_document().unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (
            error.get_i32("index").unwrap(),
            error.get_i32("code").unwrap()
        ),
        (1, 11_000)
    );
    assert_eq!(error.get_document("keyValue").unwrap(), &doc! {"_id": 2});
    let message = error.get_str("errmsg").unwrap();
    let expected = "E11000 duplicate key error collection: test.c index: _id_ dup key: { _id: 2 }";
    assert_eq!(message, expected);
    let reply = client.ok("test", insert(false, &documents));
    assert_eq!(reply.get_i32("n").unwrap(), 1);
    assert_eq!(reply.get_array("writeErrors").unwrap().len(), 2);
    assert_eq!(client.fails("test", insert(true, &[])).0, 16);
}

#[test]
fn a_write_concern_that_one_member_cannot_satisfy_is_told_and_the_write_done() {
    let site = Site::new();
    let mut client = site.client();
    let insert = |w: Bson| {
        doc! {"insert": "c", "documents": [{}], "writeConcern": {"w": w, "wtimeout": 100}}
    };
    let many = client.ok("test", insert(Bson::Int32(3)));
    assert_eq!(many.get_i32("n").unwrap(), 1);
    let error = many.get_document("writeConcernError").unwrap();
    assert_eq!(error.get_i32("code").unwrap(), 100);
    let mode = client.ok("test", insert("west".into()));
    let error = mode.get_document("writeConcernError").unwrap();
    assert_eq!(error.get_i32("code").unwrap(), 79);
    let again = doc! {
        "create": "c", "capped": true, "size": 4096, "writeConcern": {"w": 3, "wtimeout": 100},
    };
    let failed = client.run("test", again);
    assert_eq!(failed.get_i32("code").unwrap(), 48);
    assert!(failed.contains_key("writeConcernError"), "{failed}");
    let fine = client.ok("test", insert("majority".into()));
    assert!(!fine.contains_key("writeConcernError"));
    let standalone = Site::with(|config| config.replica_set = None);
    let refused = standalone.client().fails("test", insert(Bson::Int32(3)));
    assert_eq!(refused.0, 2);
}

#[test]
fn documents_are_found_in_batches() {
    let site = Site::new();
    let mut client = site.client();
    let documents: Vec<Bson> = (0..250)
        .map(|i| doc! {"_id": i, "even": i % 2 == 0}.into())
        .collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let first = client.ok("test", doc! {"find": "c", "filter": {}});
    assert_eq!(batch(&first).len(), 101);
    let cursor = first.get_document("cursor").unwrap();
    let names: Vec<&str> = cursor.keys().map(String::as_str).collect();
    assert_eq!(names, ["firstBatch", "id", "ns"]);
    assert_eq!(cursor.get_str("ns").unwrap(), "test.c");
    let id = cursor.get_i64("id").unwrap();
    assert_ne!(id, 0);
    let more = doc! {"getMore": id, "collection": "c", "batchSize": 100};
    let second = client.ok("test", more.clone());
    assert_eq!(batch(&second)[0].get_i32("_id").unwrap(), 101);
    let third = client.ok("test", more.clone());
    assert_eq!(batch(&third).len(), 49);
    assert_eq!(
        third.get_document("cursor").unwrap().get_i64("id").unwrap(),
        0
    );
    assert_eq!(client.fails("test", more).0, 43);

    let filter = doc! {"even": true, "_id": {"$gte": 240}};
    assert_eq!(all(&mut client, "c", filter.clone()).len(), 5);
    let count = client.ok("test", doc! {"count": "c", "query": filter});
    assert_eq!(count.get("n"), Some(&Bson::Int32(5)));
    let distinct = client.ok("test", doc! {"distinct": "c", "key": "even"});
    assert_eq!(
        distinct.get_array("values").unwrap(),
        &[Bson::Boolean(false), Bson::Boolean(true)]
    );
}

#[test]
fn an_exhausting_client_gets_every_batch_unasked() {
    let site = Site::new();
    let mut client = site.client();
    let documents: Vec<Bson> = (0..25).map(|i| doc! {"_id": i}.into()).collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let first = client.ok("test", doc! {"find": "c", "batchSize": 5});
    let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! {"getMore": id, "collection": "c", "batchSize": 5};
    client.send("test", more, Flags::EXHAUST_ALLOWED);
    let mut seen = 5;
    loop {
        let (message, reply) = client.receive().unwrap();
        seen += batch(&reply).len();
        let ended = reply.get_document("cursor").unwrap().get_i64("id").unwrap() == 0;
        assert_eq!(message.flags.has(Flags::MORE_TO_COME), !ended);
        if ended {
            break;
        }
    }
    assert_eq!(seen, 25);
}

#[test]
fn cursors_are_killed() {
    let site = Site::new();
    let mut client = site.client();
    let documents: Vec<Bson> = (0..25).map(|i| doc! {"_id": i}.into()).collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let first = client.ok("test", doc! {"find": "c", "batchSize": 5});
    let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
    let killed = client.ok("test", doc! {"killCursors": "c", "cursors": [id, 77_i64]});
    assert_eq!(
        killed.get_array("cursorsKilled").unwrap(),
        &[Bson::Int64(id)]
    );
    assert_eq!(
        killed.get_array("cursorsNotFound").unwrap(),
        &[Bson::Int64(77)]
    );
    let more = doc! {"getMore": id, "collection": "c"};
    assert_eq!(client.fails("test", more).0, 43);
}

/// `{a: {$gt: 1}, a: {$lt: 4}}`.
fn between() -> RawDocumentBuf {
    let mut filter = rawdoc! {"a": {"$gt": 1}};
    filter.append(cstr!("a"), rawdoc! {"$lt": 4});
    filter
}

#[test]
fn find_and_match_keep_every_condition_on_a_field() {
    let site = Site::new();
    let mut client = site.client();
    let documents: Vec<Bson> = (0..6).map(|a| doc! {"_id": a, "a": a}.into()).collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let find = rawdoc! {"find": "c", "filter": between()};
    let aggregate = rawdoc! {
        "aggregate": "c", "pipeline": [{"$match": between()}], "cursor": {},
    };
    let expected = [doc! {"_id": 2, "a": 2}, doc! {"_id": 3, "a": 3}];
    assert_eq!(batch(&client.run_bytes("test", find)), expected);
    assert_eq!(batch(&client.run_bytes("test", aggregate)), expected);
    client.ok("test", doc! {"create": "v", "viewOn": "c", "pipeline": []});
    let of_view = rawdoc! {"find": "v", "filter": between()};
    assert_eq!(batch(&client.run_bytes("test", of_view)), expected);
}

/// Runs commands in bytes, and compares their codes; `None` where they succeed.
fn run_all(client: &mut Client, commands: &[(RawDocumentBuf, Option<i32>)]) {
    for (command, code) in commands {
        let reply = client.run_bytes("test", command.clone());
        assert_eq!(reply.get_i32("code").ok(), *code, "{command:?}: {reply}");
    }
}

/// The `_id`s in a batch.
fn ids(reply: &Document) -> Vec<i32> {
    let documents = batch(reply);
    let ids = documents.iter().map(|document| document.get_i32("_id"));
    ids.map(Result::unwrap).collect()
}

/// Whether the definitions of [`definitions_that_are_stored_may_name_a_field_twice`] hold.
fn check_definitions(client: &mut Client) {
    for (collection, a, code) in [
        ("d", 1, Some(121)),
        ("d", 3, None),
        ("d", 9, Some(121)),
        ("m", 1, Some(121)),
        ("m", 9, Some(121)),
    ] {
        let reply = client.ok("test", doc! {"insert": collection, "documents": [{"a": a}]});
        let errors = reply.get_array("writeErrors").ok();
        let error = errors.and_then(|errors| errors.first()?.as_document());
        let found = error.map(|error| error.get_i32("code").unwrap());
        assert_eq!(found, code, "{collection} {a} {reply}");
    }
    assert_eq!(ids(&client.ok("test", doc! {"find": "v"})), [2]);
    let joined = batch(&client.ok("test", doc! {"find": "w", "limit": 1}));
    assert_eq!(joined[0].get_array("x").unwrap().len(), 1, "{joined:?}");
    let validated = client.ok("test", doc! {"validate": "c"});
    let keys = validated.get_document("keysPerIndex").unwrap();
    assert_eq!(keys.get("b").unwrap().to_string(), "1");
    let filter = doc! {"b": 1, "a": {"$gt": 1, "$lt": 4}};
    let found = client.ok("test", doc! {"find": "c", "filter": filter, "hint": "b"});
    assert_eq!(ids(&found), [2]);
    // Listings return the filters unchanged.
    for (list, count) in [
        (doc! {"listCollections": 1}, 4),
        (doc! {"listIndexes": "c"}, 1),
    ] {
        client.send("test", list, 0);
        let (message, _) = client.receive().unwrap();
        let given = between();
        let shown = message.body().as_bytes().windows(given.as_bytes().len());
        let shown = shown.filter(|bytes| *bytes == given.as_bytes()).count();
        assert_eq!(shown, count);
    }
}

/// Definitions in the catalog apply all conditions on a field, as `find` does, also after a
/// restart.
#[test]
fn definitions_that_are_stored_may_name_a_field_twice() {
    let site = Site::with(|config| config.replica_set = None);
    let mut client = site.client();
    for (id, a) in [(1, 1), (2, 3), (3, 9)] {
        let document = doc! {"_id": id, "a": a, "b": 1};
        client.ok("test", doc! {"insert": "c", "documents": [document]});
    }
    let within = rawdoc! {"$lookup": {
        "from": "c", "as": "x", "pipeline": [{"$match": {"$or": [between()]}}],
    }};
    client.ok("test", doc! {"create": "v", "viewOn": "c", "pipeline": []});
    client.ok("test", doc! {"create": "m"});
    let schema = rawdoc! {"$jsonSchema": {"properties": {"a": between()}}};
    let partial = rawdoc! {
        "key": {"b": 1}, "name": "b", "partialFilterExpression": between(),
    };
    run_all(
        &mut client,
        &[
            (rawdoc! {"create": "d", "validator": between()}, None),
            (rawdoc! {"collMod": "m", "validator": between()}, None),
            (rawdoc! {"collMod": "m", "validationLevel": "strict"}, None),
            (
                rawdoc! {"collMod": "v", "viewOn": "c", "pipeline": [{"$match": between()}]},
                None,
            ),
            (
                rawdoc! {"create": "w", "viewOn": "c", "pipeline": [within]},
                None,
            ),
            (rawdoc! {"createIndexes": "c", "indexes": [partial]}, None),
            (
                rawdoc! {"collMod": "c", "index": {"name": "b", "hidden": false}},
                None,
            ),
            // A schema is no filter: MongoDB refuses it, too.
            (rawdoc! {"find": "c", "filter": schema}, Some(9)),
        ],
    );
    check_definitions(&mut client);
    let site = Site::try_in(site.stop(), |config| config.replica_set = None).unwrap();
    let mut client = site.client();
    check_definitions(&mut client);
    client.ok("test", doc! {"reIndex": "c"});
    check_definitions(&mut client);
}

/// In expressions names given twice are errors, but for arguments and variables, as in MongoDB.
#[test]
fn an_expression_names_the_field_of_an_object_once() {
    let site = Site::new();
    let mut client = site.client();
    let document = doc! {"_id": 1, "a": 1};
    client.ok("test", doc! {"insert": "c", "documents": [document]});
    let mut twice = rawdoc! {"x": 1};
    twice.append(cstr!("x"), 2);
    let mut variables = rawdoc! {"v": 2};
    variables.append(cstr!("v"), "$a");
    let equal = rawdoc! {"$expr": {"$eq": [twice.clone(), 1]}};
    let bound = rawdoc! {"$expr": {"$eq": [{"$let": {"vars": variables, "in": "$$v"}}, 1]}};
    let run = |stage: RawDocumentBuf| {
        let stages = [stage].into_iter().collect::<RawArrayBuf>();
        rawdoc! {"aggregate": "c", "pipeline": stages, "cursor": {}}
    };
    let set = rawdoc! {"$set": {"x": [twice.clone()]}};
    let refused = Some(16_406);
    run_all(
        &mut client,
        &[
            (rawdoc! {"find": "c", "filter": equal}, refused),
            (rawdoc! {"find": "c", "let": {"v": twice.clone()}}, refused),
            (run(rawdoc! {"$replaceWith": twice.clone()}), refused),
            (run(rawdoc! {"$group": {"_id": twice}}), refused),
            (
                rawdoc! {"findAndModify": "c", "query": {}, "update": [set]},
                refused,
            ),
        ],
    );
    let found = client.run_bytes("test", rawdoc! {"find": "c", "filter": bound});
    assert_eq!(ids(&found), [1]);
}
