//! Answers that tools and driver tests compare with MongoDB's exactly.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawDocumentBuf, doc};

use crate::client::{Client, Site, all, batch};

const IN_TRANSACTION: i32 = 263;
const INVALID_NAMESPACE: i32 = 73;

fn insert(client: &mut Client, collection: &str, documents: Vec<Document>) {
    let documents: Vec<Bson> = documents.into_iter().map(Bson::Document).collect();
    let reply = client.ok("test", doc! {"insert": collection, "documents": documents});
    assert!(!reply.contains_key("writeErrors"), "{reply}");
}

fn keys(document: &Document) -> Vec<&str> {
    document.keys().map(String::as_str).collect()
}

#[test]
fn a_missing_collection_has_the_statistics_of_an_empty_one() {
    let site = Site::new();
    let mut client = site.client();
    let mut stats = client.ok("test", doc! {"collStats": "none", "scale": 1024});
    for name in ["ok", "$clusterTime", "operationTime"] {
        stats.remove(name);
    }
    let expected = doc! {
        "ns": "test.none", "size": 0, "count": 0, "numOrphanDocs": 0, "storageSize": 0,
        "totalSize": 0, "nindexes": 0, "totalIndexSize": 0, "indexDetails": {}, "indexSizes": {},
        "scaleFactor": 1024,
    };
    assert_eq!(stats, expected);
    let rows = doc! {"aggregate": "none", "pipeline": [{"$indexStats": {}}], "cursor": {}};
    assert!(batch(&client.ok("test", rows)).is_empty());
    let (code, message) = client.fails("test", doc! {"validate": "none"});
    let expected = "Collection 'test.none' does not exist to validate.";
    assert_eq!((code, message.as_str()), (26, expected));
    client.ok(
        "test",
        doc! {"create": "view", "viewOn": "none", "pipeline": []},
    );
    let (code, message) = client.fails("test", doc! {"validate": "view"});
    assert_eq!((code, message.as_str()), (166, "Cannot validate a view"));
    assert_eq!(client.fails("test", doc! {"collStats": "view"}).0, 166);
}

#[test]
fn sizes_of_databases_are_doubles_and_their_counts_longs() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", vec![doc! {"_id": 1}]);
    let stats = client.ok("test", doc! {"dbStats": 1});
    for name in [
        "dataSize",
        "storageSize",
        "indexSize",
        "totalSize",
        "fsUsedSize",
    ] {
        assert!(0.0 < stats.get_f64(name).unwrap(), "{name}: {stats}");
    }
    for name in ["collections", "objects", "indexes", "scaleFactor"] {
        assert_eq!(stats.get_i64(name).unwrap(), 1, "{name}: {stats}");
    }
    let stats = client.ok("test", doc! {"collStats": "c", "scale": 2});
    assert_eq!(stats.get_i32("count").unwrap(), 1);
    assert_eq!(stats.get_i32("scaleFactor").unwrap(), 2);
    assert!(0 < stats.get_i32("storageSize").unwrap(), "{stats}");
}

/// Run a command as the first, or as a later, statement of a transaction.
fn in_transaction(mut command: Document, number: i64, first: bool) -> Document {
    let session = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    command.insert("lsid", doc! {"id": session});
    command.insert("txnNumber", number);
    command.insert("autocommit", false);
    if first {
        command.insert("startTransaction", true);
    }
    command
}

#[test]
fn a_transaction_keeps_out_of_the_databases_of_the_server() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", vec![doc! {"_id": 1}]);
    let commands = [
        doc! {"find": "c"},
        doc! {"aggregate": "c", "pipeline": [], "cursor": {}},
        doc! {"distinct": "c", "key": "a"},
        doc! {"insert": "c", "documents": [{}]},
        doc! {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]},
        doc! {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
        doc! {"findAndModify": "c", "remove": true},
        doc! {"create": "d"},
    ];
    let mut number = 0;
    for database in ["admin", "config", "local"] {
        let expected =
            format!("Cannot run command against the '{database}' database in a transaction.");
        for command in &commands {
            number += 1;
            let first = in_transaction(command.clone(), number, true);
            let (code, message) = client.fails(database, first);
            assert_eq!((code, &message), (IN_TRANSACTION, &expected), "{command}");
            // No transaction was begun.
            let abort = in_transaction(doc! {"abortTransaction": 1}, number, false);
            assert_eq!(client.fails("admin", abort).0, 251, "{command}");
        }
        number += 1;
        let ns = format!("{database}.c");
        let bulk = doc! {
            "bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": ns}],
        };
        let bulk = in_transaction(bulk, number, true);
        assert_eq!(client.fails("admin", bulk).0, IN_TRANSACTION);
    }
    // A transaction that was open before the refusal continues.
    number += 1;
    let insert = doc! {"insert": "c", "documents": [{"_id": 2}]};
    client.ok("test", in_transaction(insert, number, true));
    let (code, message) = client.fails("test", in_transaction(doc! {"count": "c"}, number, false));
    assert_eq!(code, IN_TRANSACTION);
    assert!(message.starts_with("Cannot run 'count' in a multi-document transaction. Please"));
    for command in [
        doc! {"find": "system.profile"},
        doc! {"find": "system.views"},
    ] {
        let (code, message) = client.fails("test", in_transaction(command, number, false));
        assert_eq!(code, IN_TRANSACTION);
        assert!(message.contains("namespace in a transaction"), "{message}");
    }
    let find = in_transaction(doc! {"find": "system.users"}, number, false);
    assert_eq!(client.fails("admin", find).0, IN_TRANSACTION);
    let commit = in_transaction(doc! {"commitTransaction": 1}, number, false);
    client.ok("admin", commit);
    assert_eq!(all(&mut client, "c", doc! {}).len(), 2);
}

#[test]
fn collections_of_the_system_are_not_written_by_clients() {
    let site = Site::new();
    let mut client = site.client();
    let mut refused = |database: &str, collection: &str, text: &str| {
        for command in [
            doc! {"insert": collection, "documents": [{}]},
            doc! {"update": collection, "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]},
            doc! {"delete": collection, "deletes": [{"q": {}, "limit": 0}]},
            doc! {"findAndModify": collection, "remove": true},
        ] {
            let (code, message) = client.fails(database, command);
            assert_eq!(code, INVALID_NAMESPACE, "{collection}");
            assert_eq!(message, format!("{text}{database}.{collection}"));
        }
        let ns = format!("{database}.{collection}");
        let ops = doc! {"delete": 0, "filter": {}, "multi": true};
        let bulk = doc! {"bulkWrite": 1, "ops": [ops], "nsInfo": [{"ns": ns}]};
        let reply = client.ok("admin", bulk);
        assert_eq!(batch(&reply)[0].get_i32("code").unwrap(), INVALID_NAMESPACE);
    };
    refused("test", "system.profile", "cannot write to ");
    refused("test", "system.views", "cannot write to ");
    refused("test", "system.anything", "Invalid system namespace: ");
    refused("test", "system.roles", "Invalid system namespace: ");
    refused("test", "system.usersx", "Invalid system namespace: ");
    insert(&mut client, "system.js", vec![doc! {"_id": "f"}]);
    client.ok(
        "admin",
        doc! {"insert": "system.version", "documents": [{"_id": "x"}]},
    );
    for (database, collection) in [("admin", "system.version"), ("test", "system.js")] {
        let (code, message) = client.fails(database, doc! {"drop": collection});
        let expected = format!("can't drop system collection {database}.{collection}");
        assert_eq!((code, message), (20, expected));
    }
    // Dropping a missing collection succeeds.
    client.ok("test", doc! {"drop": "system.users"});
}

#[test]
fn errors_name_the_command_they_ended() {
    let site = Site::new();
    let mut client = site.client();
    insert(
        &mut client,
        "c",
        vec![doc! {"_id": 1, "a": "x"}, doc! {"_id": 2, "a": "y"}],
    );
    let fails = doc! {"$expr": {"$eq": [{"$toInt": "$a"}, 1]}};
    let mut begins = |command: Document, context: &str| {
        let (_, message) = client.fails("test", command);
        assert!(
            message.starts_with(&format!("{context} :: caused by :: ")),
            "{message}"
        );
    };
    begins(
        doc! {"find": "c", "filter": fails.clone()},
        "Executor error during find command: test.c",
    );
    begins(
        doc! {"count": "c", "query": fails.clone()},
        "Executor error during count command",
    );
    begins(
        doc! {"distinct": "c", "key": "a", "query": fails.clone()},
        "Executor error during distinct command",
    );
    begins(
        doc! {"aggregate": "c", "pipeline": [{"$match": fails.clone()}], "cursor": {}},
        "Executor error during aggregate command on namespace: test.c",
    );
    begins(
        doc! {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"a": 1}}},
        "Plan executor error during findAndModify",
    );
    let constant = doc! {"$project": {"b": {"$divide": [1, 0]}}};
    for collection in ["c", "none"] {
        begins(
            doc! {"aggregate": collection, "pipeline": [constant.clone()], "cursor": {}},
            "Failed to optimize pipeline",
        );
    }
    let open = |client: &mut Client| {
        let pipeline =
            [doc! {"$project": {"b": {"$cond": [{"$eq": ["$_id", 2]}, {"$toInt": "$a"}, 1]}}}];
        let pipeline: Vec<Bson> = pipeline.into_iter().map(Bson::Document).collect();
        let cursor = doc! {"batchSize": 1};
        let reply = client.ok(
            "test",
            doc! {"aggregate": "c", "pipeline": pipeline, "cursor": cursor},
        );
        reply.get_document("cursor").unwrap().get_i64("id").unwrap()
    };
    let id = open(&mut client);
    let (_, message) = client.fails("test", doc! {"getMore": id, "collection": "c"});
    assert!(
        message.starts_with("Executor error during getMore :: caused by :: "),
        "{message}"
    );
}

/// The context of a command is in front of errors that know nothing of commands, and there once.
#[test]
fn the_context_of_an_error_is_named_once() {
    let site = Site::new();
    let mut client = site.client();
    let documents = vec![doc! {"_id": 1, "a": [1, 2], "b": "x"}];
    insert(&mut client, "c", documents);
    let find = "Executor error during find command: test.c";
    let aggregate = "Executor error during aggregate command on namespace: test.c";
    let modify = "Plan executor error during findAndModify";
    let unmatched = "positional operator '.$' couldn't find a matching element in the array";
    let mismatch = "positional operator '.$' element mismatch";
    let densify = |field: &str, unit: Option<&str>| {
        let mut range = doc! {"step": 1, "bounds": "full"};
        range.extend(unit.map(|unit| ("unit".to_owned(), Bson::from(unit))));
        let stage = doc! {"$densify": {"field": field, "range": range}};
        doc! {"aggregate": "c", "pipeline": [stage], "cursor": {}}
    };
    let lack = doc! {"_id": 1};
    let differ = doc! {"d": 3};
    insert(
        &mut client,
        "c",
        vec![doc! {"_id": 2, "a": [1], "d": [1, 2, 3]}],
    );
    for (command, code, context, message) in [
        (
            doc! {"find": "c", "filter": &lack, "projection": {"a.$": 1}},
            51_246,
            find,
            unmatched,
        ),
        (
            doc! {"find": "c", "filter": &differ, "projection": {"a.$": 1}},
            51_247,
            find,
            mismatch,
        ),
        (
            doc! {"findAndModify": "c", "query": &lack, "remove": true, "fields": {"a.$": 1}},
            51_246,
            modify,
            unmatched,
        ),
        (
            densify("b", None),
            5_733_201,
            aggregate,
            "Densify field type must be numeric or a date",
        ),
        (
            densify("_id", Some("day")),
            6_053_600,
            aggregate,
            "Encountered numeric densify value in collection when step has a date unit.",
        ),
    ] {
        let failed = client.fails("test", command.clone());
        let expected = format!("{context} :: caused by :: {message}");
        assert_eq!(failed, (code, expected), "{command}");
    }
}

#[test]
fn expressions_that_are_not_evaluated_do_not_fail() {
    let site = Site::new();
    let mut client = site.client();
    // An expression that is never evaluated is not an error, in the places where MongoDB does not
    // evaluate it either.
    let lazy = doc! {"$project": {"b": {"$ifNull": [1, {"$divide": [1, 0]}]}}};
    client.ok(
        "test",
        doc! {"aggregate": "c", "pipeline": [lazy], "cursor": {}},
    );
}

#[test]
fn a_failed_index_build_names_itself_and_its_collection() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", vec![doc! {"a": 1}, doc! {"a": 1}]);
    let index = doc! {"key": {"a": 1}, "name": "a_1", "unique": true};
    let create = doc! {"createIndexes": "c", "indexes": [index]};
    let (code, message) = client.fails("test", create);
    assert_eq!(code, 11_000);
    let rest = message.strip_prefix("Index build failed: ").unwrap();
    let (build, rest) = rest.split_once(": Collection test.c ( ").unwrap();
    let (collection, rest) = rest.split_once(" ) :: caused by :: ").unwrap();
    assert!(bson::Uuid::parse_str(build).is_ok(), "{message}");
    let listed = batch(&client.ok("test", doc! {"listCollections": 1}));
    let info = listed[0].get_document("info").unwrap();
    let Some(Bson::Binary(uuid)) = info.get("uuid") else {
        panic!("{info}");
    };
    assert_eq!(uuid.to_uuid().unwrap().to_string(), collection);
    assert_eq!(
        rest,
        "E11000 duplicate key error collection: test.c index: a_1 dup key: { a: 1 }"
    );
}

#[test]
fn duplicate_binary_keys_are_shown_as_shells_write_them() {
    let site = Site::new();
    let mut client = site.client();
    let binary = |subtype, bytes: &[u8]| {
        Bson::Binary(Binary {
            subtype,
            bytes: bytes.to_vec(),
        })
    };
    for (id, shown) in [
        (
            binary(BinarySubtype::Uuid, &[0xAB; 16]),
            "UUID(\"abababab-abab-abab-abab-abababababab\")",
        ),
        (
            binary(BinarySubtype::Generic, &[0, 0x1F, 0xFF]),
            "BinData(0, 001FFF)",
        ),
        (
            binary(BinarySubtype::Md5, &[1; 16]),
            "BinData(5, 01010101010101010101010101010101)",
        ),
        (binary(BinarySubtype::Uuid, &[2]), "BinData(4, 02)"),
    ] {
        let document = doc! {"_id": id};
        insert(&mut client, "c", vec![document.clone()]);
        let again = doc! {"insert": "c", "documents": [document]};
        let reply = client.ok("test", again);
        let errors = reply.get_array("writeErrors").unwrap();
        let message = errors[0].as_document().unwrap().get_str("errmsg").unwrap();
        assert!(
            message.ends_with(&format!("dup key: {{ _id: {shown} }}")),
            "{message}"
        );
    }
}

#[test]
fn logged_commands_keep_the_order_of_their_fields() {
    let site = Site::with(|config| config.slow_ms = 0);
    let mut client = site.client();
    client.ok("admin", doc! {"setParameter": 1, "logLevel": 1});
    let time = doc! {"clusterTime": bson::Timestamp { time: 1, increment: 0 }};
    let zebra = doc! {"z": 1, "a": {"y": 1, "b": 2}};
    let find = doc! {"find": "c", "$clusterTime": time, "filter": zebra, "comment": "ordered"};
    client.run("test", find);
    let log = client.ok("admin", doc! {"getLog": "global"});
    let lines = log
        .get_array("log")
        .unwrap()
        .iter()
        .filter_map(Bson::as_str);
    let line = lines
        .filter(|line| line.contains("\"ordered\""))
        .find(|l| l.contains("Slow query"));
    let line = line.expect("the command is logged");
    let command = line.split_once("\"command\":").unwrap().1;
    let whole = concat!(
        r#"{"find":"c","filter":{"z":1,"a":{"y":1,"b":2}},"comment":"ordered","#,
        r#""$clusterTime":{"clusterTime":{"$timestamp":{"t":1,"i":0}}},"$db":"test"}"#,
    );
    assert!(command.starts_with(whole), "{line}");
    let attributes = line.split_once("\"attr\":").unwrap().1;
    assert!(
        attributes.starts_with("{\"type\":\"command\",\"ns\":\"test.c\""),
        "{line}"
    );
    // Every line is JSON.
    let parsed: Document = serde_json::from_str(line).unwrap();
    assert_eq!(keys(&parsed)[..4], ["t", "s", "c", "id"]);
}

#[test]
fn the_size_of_the_first_documents_says_that_there_are_more() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", (0..10).map(|i| doc! {"_id": i}).collect());
    let each = client
        .ok("test", doc! {"dataSize": "test.c"})
        .get_i32("size")
        .unwrap()
        / 10;
    let mut size = |name: &str, most: i32, estimate: bool| {
        let command = doc! {"dataSize": "test.c", name: most, "estimate": estimate};
        let reply = client.ok("test", command);
        let reached = reply.get_bool("maxReached").unwrap_or(false);
        (
            reply.get_i32("numObjects").unwrap(),
            reply.get_i32("size").unwrap(),
            reached,
        )
    };
    for estimate in [false, true] {
        assert_eq!(size("maxObjects", 3, estimate), (4, 4 * each, true));
        assert_eq!(size("maxObjects", 10, estimate), (10, 10 * each, false));
        assert_eq!(size("maxSize", 2 * each, estimate), (3, 3 * each, true));
    }
}

#[test]
fn without_table_scans_a_filter_needs_an_index() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", vec![doc! {"_id": 1, "a": 1, "b": 1}]);
    let index = doc! {"key": {"a": 1}, "name": "a_1"};
    client.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    let find = |filter: Document| doc! {"find": "c", "filter": filter};
    client.ok("test", find(doc! {"b": 1}));
    let set = |on: bool| doc! {"setParameter": 1, "notablescan": on};
    let was = client.ok("admin", set(true));
    assert!(!was.get_bool("was").unwrap());
    let (code, message) = client.fails("test", find(doc! {"b": 1}));
    assert_eq!(code, 291);
    assert!(message.contains("running with 'notablescan'"), "{message}");
    let natural = doc! {"find": "c", "filter": {"a": 1}, "hint": {"$natural": 1}};
    assert_eq!(client.fails("test", natural).0, 291);
    let update = doc! {"update": "c", "updates": [{"q": {"b": 1}, "u": {"$set": {"x": 1}}}]};
    let reply = client.ok("test", update);
    assert!(reply.contains_key("writeErrors"), "{reply}");
    client.ok("test", find(doc! {"a": 1}));
    client.ok("test", find(doc! {"_id": 1}));
    client.ok("test", find(doc! {}));
    client.ok(
        "admin",
        doc! {"find": "system.version", "filter": {"version": "8.0"}},
    );
    client.ok("admin", set(false));
    client.ok("test", find(doc! {"b": 1}));
}

#[test]
fn options_that_only_old_clients_send_are_kept() {
    let site = Site::new();
    let mut client = site.client();
    let reply = client.ok("test", doc! {"create": "c", "autoIndexId": true});
    assert!(
        reply.get_str("note").unwrap().contains("deprecated"),
        "{reply}"
    );
    let listed = batch(&client.ok("test", doc! {"listCollections": 1}));
    assert_eq!(
        listed[0].get_document("options").unwrap(),
        &doc! {"autoIndexId": true}
    );
    let without = doc! {"create": "d", "autoIndexId": false};
    assert_eq!(client.fails("test", without).0, 50_001);
}

#[test]
fn indexes_in_conflict_are_shown_in_the_order_of_the_catalog() {
    let site = Site::new();
    let mut client = site.client();
    let mut create =
        |index: Document| client.run("test", doc! {"createIndexes": "c", "indexes": [index]});
    create(doc! {"key": {"a": 1}, "name": "n", "sparse": true});
    let reply = create(doc! {"key": {"b": -1}, "name": "n", "unique": true});
    let message = reply.get_str("errmsg").unwrap();
    let shown = "Requested index: { v: 2, unique: true, key: { b: -1 }, name: \"n\" }, existing \
                 index: { v: 2, key: { a: 1 }, name: \"n\", sparse: true }";
    assert!(message.ends_with(shown), "{message}");
    let numeric = doc! {"key": {"x.0": 1}, "name": "x"};
    assert!(create(numeric).get_f64("ok").unwrap() > 0.5);
    let ambiguous = doc! {"insert": "c", "documents": [{"x": [{"0": 1}]}]};
    let reply = client.ok("test", ambiguous);
    let error = reply.get_array("writeErrors").unwrap()[0]
        .as_document()
        .unwrap();
    assert_eq!(error.get_i32("code").unwrap(), 16_746);
    let message = error.get_str("errmsg").unwrap();
    assert!(
        message.ends_with("field: '0' for array: { 0: { 0: 1 } }"),
        "{message}"
    );
    // A number that can only be an element, or only a field name, is unambiguous.
    insert(
        &mut client,
        "c",
        vec![
            doc! {"x": [1]},
            doc! {"x": {"0": 1}},
            doc! {"x": [{"1": 1}]},
        ],
    );
}

#[test]
fn change_streams_are_refused_where_there_is_no_oplog() {
    let site = Site::with(|config| config.oplog_bytes = Some(0));
    let watch = doc! {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}};
    let (code, message) = site.client().fails("test", watch);
    assert_eq!(code, 40_573);
    assert!(message.contains("replication.oplogSizeMB"), "{message}");
}

#[test]
fn an_aggregate_without_a_collection_is_explained() {
    let site = Site::new();
    let mut client = site.client();
    let explain = |target: i32, stage: Document| {
        doc! {"explain": {"aggregate": target, "pipeline": [stage], "cursor": {}}}
    };
    let reply = client.ok("test", explain(1, doc! {"$documents": [{"a": 1}]}));
    assert!(!reply.get_array("stages").unwrap().is_empty(), "{reply}");
    let (code, message) = client.fails("test", explain(1, doc! {"$match": {}}));
    assert_eq!(code, INVALID_NAMESPACE);
    assert!(message.contains("not valid for this pipeline"), "{message}");
    let (code, _) = client.fails("test", explain(2, doc! {"$documents": []}));
    assert_eq!(code, 9);
    let (code, _) = client.fails("test", doc! {"explain": {"find": 1}});
    assert_eq!(code, INVALID_NAMESPACE);
}

/// The command is repeated beside the explanation if both fit a document.
#[test]
fn the_command_of_an_explanation_is_left_out_if_it_is_too_large() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", vec![doc! {"_id": 1}]);
    for (length, fits) in [(1 << 20, true), (9 << 20, false)] {
        let find = doc! {"find": "c", "filter": {"s": "x".repeat(length)}};
        let reply = client.ok("test", doc! {"explain": find, "verbosity": "queryPlanner"});
        assert_eq!(reply.contains_key("command"), fits, "{length}");
        let warned = reply
            .get_str("warning")
            .is_ok_and(|text| text.contains("'command'"));
        assert_eq!(warned, !fits, "{length}");
        assert!(
            RawDocumentBuf::try_from(&reply).unwrap().as_bytes().len() < 16 << 20,
            "{length}"
        );
    }
}

#[test]
fn options_of_the_id_index_are_refused() {
    let site = Site::new();
    let mut client = site.client();
    let create = |option: &str, value: Bson| {
        let mut index = doc! {"key": {"_id": 1}, "name": "_id_"};
        index.insert(option, value);
        doc! {"createIndexes": "c", "indexes": [index]}
    };
    for option in ["unique", "sparse", "background", "prepareUnique"] {
        let (code, message) = client.fails("test", create(option, true.into()));
        assert_eq!(code, 197, "{message}");
        let expected = format!("The field '{option}' is not valid for an _id index specification.");
        assert!(message.starts_with(&expected), "{message}");
    }
    for (option, value) in [("v", Bson::Int32(2)), ("ns", "test.c".into())] {
        client.ok("test", create(option, value));
    }
}

#[test]
fn an_update_only_argument_of_a_removal_is_refused() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", vec![doc! {"_id": 1}]);
    let command = doc! {"findAndModify": "c", "remove": true, "arrayFilters": [{"x": 1}]};
    let (code, message) = client.fails("test", command);
    assert_eq!(
        (code, &*message),
        (9, "Cannot specify arrayFilters and remove=true")
    );
    assert_eq!(all(&mut client, "c", doc! {}).len(), 1);
}
