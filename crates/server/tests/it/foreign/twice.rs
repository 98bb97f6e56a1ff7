//! Fields that a command gives twice: each is refused, named by its place, unless the user chooses
//! the names and both fields count.

use bson::{Document, doc};

use super::tree::{self, Way};
use super::{World, send};

/// The bytes of a command, with the first field `name`, at any depth, a second time.
fn twice(legal: &Document, name: &str) -> bson::RawDocumentBuf {
    let mut fields = tree::fields(legal);
    let ways = tree::ways(&fields);
    let named = |way: &&Way| {
        let mut fields = fields.clone();
        let (place, at) = tree::at(&mut fields, way);
        place[at].0 == name
    };
    let found = ways.iter().find(named);
    let way = found.unwrap_or_else(|| panic!("{legal} has no {name}"));
    let (place, at) = tree::at(&mut fields, way);
    let field = place[at].clone();
    place.push(field);
    tree::raw(&fields)
}

/// Check that a command succeeds, and that it is refused with `code` and `message` when it has the
/// field `name` twice.
#[track_caller]
fn refused(world: &mut World, command: &Document, name: &str, (code, message): (i32, &str)) {
    let reply = send(&mut world.root, &twice(command, name), &[]).unwrap();
    let found = match reply.get_array("writeErrors") {
        Ok(errors) => errors[0].as_document().unwrap(),
        Err(_) => &reply,
    };
    let shown = format!("{name} of {command}: {reply}");
    assert_eq!(found.get_i32("code").unwrap(), code, "{shown}");
    assert_eq!(found.get_str("errmsg").unwrap(), message);
}

fn own(mut command: Document) -> Document {
    command.insert("$db", "own");
    command
}

fn admin(mut command: Document) -> Document {
    command.insert("$db", "admin");
    command
}

/// Commands with a field, and the place in the error when it is given twice.
fn writes() -> Vec<(Document, &'static str, &'static str)> {
    let statement = doc! {
        "q": {}, "u": [{"$set": {"k": "$$x"}}], "upsert": true, "c": {"x": 1},
        "collation": {"locale": "en"}, "hint": {"_id": 1},
    };
    let update = own(doc! {"update": "c", "updates": [statement], "let": {"y": 2}});
    let delete = doc! {"q": {}, "limit": 1, "hint": {"_id": 1}, "collation": {"locale": "en"}};
    let delete = own(doc! {"delete": "c", "deletes": [delete], "let": {"y": 2}});
    let modify = own(doc! {
        "findAndModify": "c", "query": {}, "update": {"$set": {"k": 3}}, "let": {"y": 2},
        "hint": {"_id": 1},
    });
    let bulk = |op: Document| {
        let spaces = [doc! {"ns": "own.c"}];
        admin(doc! {"bulkWrite": 1, "ops": [op], "nsInfo": spaces, "let": {"y": 2}})
    };
    let insert = bulk(doc! {"insert": 0, "document": {"x": 1}});
    let change = bulk(doc! {
        "update": 0, "filter": {"k": 1}, "updateMods": [{"$set": {"k": "$$x"}}],
        "collation": {"locale": "en"}, "hint": {"_id": 1}, "constants": {"x": 1},
    });
    let remove = bulk(doc! {"delete": 0, "filter": {"k": 1}});
    vec![
        (update.clone(), "upsert", "update.updates"),
        (update.clone(), "x", "update.updates.c"),
        (update.clone(), "locale", "update.updates.collation"),
        (update.clone(), "_id", "update.updates.hint"),
        (update, "y", "update.let"),
        (delete.clone(), "limit", "delete.deletes"),
        (delete.clone(), "_id", "delete.deletes.hint"),
        (delete.clone(), "locale", "delete.deletes.collation"),
        (delete, "y", "delete.let"),
        (modify.clone(), "y", "findAndModify.let"),
        (modify, "_id", "findAndModify.hint"),
        (insert.clone(), "insert", "BulkWriteInsertOp"),
        (insert.clone(), "document", "BulkWriteInsertOp"),
        (insert.clone(), "y", "bulkWrite.let"),
        (insert, "ns", "NamespaceInfoEntry"),
        (change.clone(), "update", "BulkWriteUpdateOp"),
        (change.clone(), "filter", "BulkWriteUpdateOp"),
        (change.clone(), "updateMods", "BulkWriteUpdateOp"),
        (change.clone(), "locale", "BulkWriteUpdateOp.collation"),
        (change.clone(), "x", "BulkWriteUpdateOp.constants"),
        (change, "_id", "BulkWriteUpdateOp.hint"),
        (remove.clone(), "delete", "BulkWriteDeleteOp"),
        (remove, "filter", "BulkWriteDeleteOp"),
    ]
}

fn reads() -> Vec<(Document, &'static str, &'static str)> {
    let find = own(doc! {
        "find": "c", "filter": {"k": 1}, "hint": {"k": 1}, "min": {"a": 1}, "max": {"b": 2},
        "let": {"y": 2}, "collation": {"locale": "en"}, "readConcern": {"level": "local"},
    });
    let merge = doc! {"$merge": {"into": {"db": "own", "coll": "o"}}};
    let aggregate = own(doc! {
        "aggregate": "c", "pipeline": [merge], "cursor": {"batchSize": 1}, "let": {"y": 2},
        "hint": {"_id": 1}, "writeConcern": {"w": {"tag": 1}},
    });
    let count = own(doc! {"count": "c", "query": {}, "hint": {"k": 1}});
    let size = own(doc! {
        "dataSize": "own.c", "keyPattern": {"_id": 1}, "min": {"x": 1}, "max": {"y": 1},
    });
    vec![
        (find.clone(), "filter", "find"),
        (find.clone(), "$db", "find"),
        (find.clone(), "y", "find.let"),
        (find.clone(), "a", "find.min"),
        (find.clone(), "b", "find.max"),
        (find.clone(), "locale", "find.collation"),
        (find, "level", "readConcern"),
        (count, "k", "count.hint"),
        (aggregate.clone(), "into", "$merge"),
        (aggregate.clone(), "db", "$merge.into"),
        (aggregate.clone(), "batchSize", "aggregate.cursor"),
        (aggregate.clone(), "y", "aggregate.let"),
        (aggregate.clone(), "_id", "aggregate.hint"),
        (aggregate.clone(), "w", "writeConcern"),
        (aggregate, "tag", "writeConcern.w"),
        (size.clone(), "_id", "dataSize.keyPattern"),
        (size.clone(), "x", "dataSize.min"),
        (size, "y", "dataSize.max"),
    ]
}

/// Commands that change the catalog, users, and the server.
fn definitions() -> Vec<(Document, &'static str, &'static str)> {
    let index = doc! {
        "key": {"k": 1}, "name": "k_1", "unique": false, "collation": {"locale": "en"},
        "storageEngine": {"engine": {"x": 1}},
    };
    let index = own(doc! {"createIndexes": "c", "indexes": [index]});
    let create = own(doc! {
        "create": "n", "collation": {"locale": "en"}, "storageEngine": {"engine": {"x": 1}},
        "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "validator": {"k": 1},
        "changeStreamPreAndPostImages": {"enabled": false},
    });
    let modify = own(doc! {"collMod": "c", "index": {"keyPattern": {"k": 1}, "hidden": true}});
    let user = own(doc! {
        "createUser": "made", "pwd": "x", "roles": [{"role": "read", "db": "own"}],
        "customData": {"of": {"data": 1}},
        "authenticationRestrictions": [{"clientSource": ["127.0.0.1"]}],
    });
    let resource = doc! {"db": "own", "collection": "c"};
    let privilege = doc! {"resource": resource, "actions": ["find"]};
    let role = own(doc! {"createRole": "made", "privileges": [privilege], "roles": []});
    let defaults = doc! {"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}};
    let verbosity = doc! {"command": {"verbosity": 0}};
    vec![
        (index.clone(), "key", "createIndexes.indexes"),
        (index.clone(), "name", "createIndexes.indexes"),
        (index.clone(), "unique", "createIndexes.indexes"),
        (index.clone(), "locale", "createIndexes.indexes.collation"),
        (index, "x", "createIndexes.indexes.storageEngine.engine"),
        (
            own(doc! {"dropIndexes": "c", "index": {"k": 1}}),
            "k",
            "dropIndexes.index",
        ),
        (create.clone(), "locale", "create.collation"),
        (create.clone(), "x", "create.storageEngine.engine"),
        (create.clone(), "_id", "create.clusteredIndex.key"),
        (create.clone(), "unique", "create.clusteredIndex"),
        (create, "enabled", "create.changeStreamPreAndPostImages"),
        (modify.clone(), "k", "collMod.index.keyPattern"),
        (modify, "hidden", "collMod.index"),
        (user.clone(), "db", "roles"),
        (user.clone(), "data", "createUser.customData.of"),
        (user, "clientSource", "authenticationRestrictions"),
        (role.clone(), "actions", "privileges"),
        (role, "db", "privileges.resource"),
        (admin(defaults), "level", "defaultReadConcern"),
        (
            admin(doc! {"setParameter": 1, "logComponentVerbosity": verbosity}),
            "verbosity",
            "setParameter.logComponentVerbosity.command",
        ),
    ]
}

/// A repeated field is refused with MongoDB's error, which names the field.
#[test]
fn a_field_that_is_given_twice_is_named() {
    let mut world = World::new();
    let listed = writes().into_iter().chain(reads()).chain(definitions());
    for (command, name, place) in listed {
        let message = format!("BSON field '{place}.{name}' is a duplicate field");
        refused(&mut world, &command, name, (40_413, &message));
    }
    // Nothing was made.
    let names = batch_names(&mut world);
    assert!(!names.iter().any(|name| name == "n"), "{names:?}");
}

fn batch_names(world: &mut World) -> Vec<String> {
    let list = world
        .root
        .ok("own", doc! {"listCollections": 1, "nameOnly": true});
    let listed = crate::client::batch(&list);
    let name = |listed: &Document| listed.get_str("name").unwrap().to_owned();
    listed.iter().map(name).collect()
}

/// Keys of indexes, sort orders and clauses of updates have errors of their own.
#[test]
fn keys_and_clauses_that_are_given_twice_are_refused() {
    let mut world = World::new();
    let index = doc! {"key": {"k": 1}, "name": "k_1"};
    let index = own(doc! {"createIndexes": "c", "indexes": [index]});
    let reply = send(&mut world.root, &twice(&index, "k"), &[]).unwrap();
    assert_eq!(reply.get_i32("code").unwrap(), 2, "{reply}");
    let order = (
        7_472_500,
        "$sort key must not contain duplicate keys (duplicate: 'k')",
    );
    let sort = doc! {"$sort": {"k": 1}};
    let window = doc! {"$setWindowFields": {"sortBy": {"k": 1}, "output": {"n": {"$rank": {}}}}};
    let top = doc! {"$top": {"sortBy": {"k": 1}, "output": "$k"}};
    let group = doc! {"$group": {"_id": null, "n": top}};
    for stage in [sort, window, group] {
        let aggregate = own(doc! {"aggregate": "c", "pipeline": [stage], "cursor": {}});
        refused(&mut world, &aggregate, "k", order);
    }
    let find = own(doc! {"find": "c", "sort": {"k": 1}});
    refused(&mut world, &find, "k", order);
    let natural = own(doc! {"find": "c", "sort": {"$natural": 1}});
    let both = (2, "Cannot include '$natural' in compound sort");
    refused(&mut world, &natural, "$natural", both);
    let update = |change: Document| {
        let statement = doc! {"q": {}, "u": change};
        own(doc! {"update": "c", "updates": [statement]})
    };
    let push = doc! {"$each": [{"k": 1}], "$sort": {"k": 1}, "$slice": 1};
    let push = update(doc! {"$push": {"list": push}});
    for clause in ["$each", "$slice", "$sort"] {
        let message = format!("Only one {clause} is supported.");
        refused(&mut world, &push, clause, (2, &message));
    }
    let bits = update(doc! {"$bit": {"k": {"and": 1}}});
    refused(&mut world, &bits, "and", (2, "Only one and is supported."));
}

/// Names that users choose may repeat, where both fields count or are kept.
#[test]
fn conditions_and_stored_documents_may_repeat_a_name() {
    let mut world = World::new();
    for (command, name) in [
        (doc! {"find": "c", "filter": {"k": 1}}, "k"),
        (doc! {"insert": "c", "documents": [{"x": 1}]}, "x"),
        (doc! {"create": "n", "validator": {"k": 1}}, "k"),
    ] {
        let reply = send(&mut world.root, &twice(&own(command), name), &[]).unwrap();
        assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{reply}");
    }
}

/// Constants are values, whatever they look like, and only for pipelines.
#[test]
fn constants_are_values() {
    let mut world = World::new();
    let update = |change: bson::Bson| {
        let statement = doc! {"q": {"_id": 1}, "u": change, "c": {"x": "$k"}};
        doc! {"update": "c", "updates": [statement], "let": {"x": 1}}
    };
    let pipeline = bson::bson!([{"$set": {"k": "$$x"}}]);
    let reply = world.root.ok("own", update(pipeline));
    assert_eq!(reply.get_i32("nModified").unwrap(), 1, "{reply}");
    let found = world
        .root
        .ok("own", doc! {"find": "c", "filter": {"_id": 1}});
    let found = crate::client::batch(&found);
    assert_eq!(found[0].get_str("k").unwrap(), "$k");
    let reply = world
        .root
        .ok("own", update(bson::bson!({"$set": {"k": 1}})));
    let error = reply.get_array("writeErrors").unwrap()[0]
        .as_document()
        .unwrap();
    assert_eq!(error.get_i32("code").unwrap(), 51_198, "{reply}");
}
