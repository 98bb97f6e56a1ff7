//! What `$currentOp` shows, and to which users.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};

use crate::auth::{as_user, guarded};
use crate::client::{Client, Site, await_so, batch};

const UNAUTHORIZED: i32 = 13;
const FAILED_TO_PARSE: i32 = 9;

fn in_progress(client: &mut Client, more: Document) -> Vec<Document> {
    let mut command = doc! {"currentOp": 1};
    command.extend(more);
    let reply = client.ok("admin", command);
    let listed = reply.get_array("inprog").unwrap().iter();
    listed
        .map(|one| one.as_document().unwrap().clone())
        .collect()
}

fn stage(options: Document) -> Document {
    doc! {"aggregate": 1, "cursor": {}, "pipeline": [{"$currentOp": options}]}
}

/// The types and users of the entries, in order.
fn kinds(client: &mut Client, options: Document) -> Vec<(String, String)> {
    let reply = client.ok("admin", stage(options));
    let shown = batch(&reply);
    let kind = |one: &Document| {
        let kind = one.get_str("type").unwrap();
        let idle = kind == "op" && !one.get_bool("active").unwrap();
        let kind = if idle { "idleConnection" } else { kind };
        let users = one.get_array("effectiveUsers").ok();
        let user = users.and_then(|users| users[0].as_document()?.get_str("user").ok());
        (kind.to_owned(), user.unwrap_or_default().to_owned())
    };
    let mut kinds: Vec<(String, String)> = shown.iter().map(kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(kind, user): &(&str, &str)| ((*kind).to_owned(), (*user).to_owned());
    list.iter().map(owned).collect()
}

#[test]
fn conditions_choose_among_commands_in_work() {
    let site = Site::new();
    let mut client = site.client();
    site.client().ok("admin", doc! {"ping": 1});
    let mut idle = site.client();
    idle.ok("admin", doc! {"ping": 1});
    let mut count = |conditions: Document| in_progress(&mut client, conditions).len();
    assert_eq!(count(doc! {}), 1);
    assert_eq!(count(doc! {"secs_running": {"$gt": 1_000_000}}), 0);
    assert_eq!(
        count(doc! {"secs_running": {"$lt": 1_000_000}, "op": "command"}),
        1
    );
    assert_eq!(
        count(doc! {"$or": [{"op": "insert"}, {"op": "command"}]}),
        1
    );
    assert_eq!(count(doc! {"ns": "test.c", "comment": "no condition"}), 0);
    assert_eq!(count(doc! {"$ownOps": true, "op": "insert"}), 0);
    // `$all` shows everything, whatever the other conditions, including idle connections.
    let all = in_progress(&mut client, doc! {"$all": true, "op": "insert"});
    let idle = all.iter().filter(|one| !one.get_bool("active").unwrap());
    assert_eq!(idle.clone().count(), all.len() - 1);
    assert!(idle.count() > 0, "{all:?}");
    let wrong = doc! {"currentOp": 1, "secs_running": {"$gtt": 5}};
    assert_eq!(client.fails("admin", wrong).0, 2);
}

#[test]
fn users_see_their_own_operations() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut reader = as_user(&site, "test", "reader");
    let mut writer = as_user(&site, "test", "writer");
    root.ok("test", doc! {"insert": "c", "documents": [{}, {}, {}]});
    reader.ok("test", doc! {"find": "c", "batchSize": 1});
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![1; 16],
    };
    let session: Bson = doc! {"id": id}.into();
    let statement = doc! {
        "insert": "c", "documents": [{}], "lsid": session, "txnNumber": 1_i64,
        "startTransaction": true, "autocommit": false,
    };
    writer.ok("test", statement);

    assert_eq!(reader.fails("admin", doc! {"currentOp": 1}).0, UNAUTHORIZED);
    let own = in_progress(&mut reader, doc! {"$ownOps": true});
    assert_eq!(own.len(), 1);
    let all_users = stage(doc! {"allUsers": true});
    assert_eq!(reader.fails("admin", all_users).0, UNAUTHORIZED);
    let options = doc! {"idleConnections": true, "idleCursors": true};
    assert_eq!(
        kinds(&mut reader, options.clone()),
        pairs(&[("idleCursor", "reader"), ("op", "reader")])
    );
    assert_eq!(
        kinds(&mut writer, options.clone()),
        pairs(&[("idleSession", ""), ("op", "writer")])
    );
    let mut options = options;
    options.insert("allUsers", true);
    let idle = ("idleConnection", "reader");
    let all = [idle, ("idleConnection", "writer"), ("idleCursor", "reader")];
    let all = [&all[..], &[("idleSession", ""), ("op", "root")]].concat();
    // Closed connections may be listed for a moment longer, with their user or without one.
    let mut found = kinds(&mut root, options);
    found.retain(|(kind, user)| {
        kind != "idleConnection" || matches!(user.as_str(), "reader" | "writer")
    });
    assert_eq!(found, pairs(&all));
    let without = doc! {"allUsers": true, "idleSessions": false};
    assert_eq!(kinds(&mut root, without), pairs(&[("op", "root")]));
    for wrong in [doc! {"allUsers": 1}, doc! {"idle": true}] {
        assert_eq!(root.fails("admin", stage(wrong)).0, FAILED_TO_PARSE);
    }
}

/// Wait for a running operation that matches `conditions` and has `field`.
fn once_it_says(client: &mut Client, conditions: &Document, field: &str) -> Document {
    let mut found = None;
    await_so(&format!("{field} of {conditions}"), || {
        found = in_progress(client, conditions.clone()).pop();
        found.as_ref().is_some_and(|one| one.contains_key(field))
    });
    found.unwrap()
}

#[test]
fn a_command_in_work_says_how_it_reads() {
    let site = Site::new();
    let mut client = site.client();
    let documents: Vec<Document> = (0..3000).map(|id| doc! {"_id": id}).collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let mut busy = site.client();
    // Join each document with each, which takes long enough to be observed.
    let lookup = doc! {"$lookup": {
        "from": "c", "as": "x", "let": {"id": "$_id"},
        "pipeline": [{"$match": {"$expr": {"$ne": ["$_id", "$$id"]}}}],
    }};
    let pipeline = [lookup, doc! {"$project": {"x": 0}}, doc! {"$count": "n"}];
    let command = doc! {"aggregate": "c", "cursor": {}, "pipeline": &pipeline[..]};
    busy.send("test", command, 0);
    let conditions = doc! {"command.aggregate": "c"};
    let shown = once_it_says(&mut client, &conditions, "planSummary");
    assert_eq!(shown.get_str("planSummary").unwrap(), "COLLSCAN");
    client.ok(
        "admin",
        doc! {"killOp": 1, "op": shown.get_i32("opid").unwrap()},
    );
    let (_, ended) = busy.receive().unwrap();
    assert_eq!(ended.get_i32("code").unwrap(), 11_601);
}

#[test]
fn what_opened_a_cursor_is_shown() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"create": "t", "capped": true, "size": 4096});
    client.ok("test", doc! {"insert": "t", "documents": [{"_id": 1}]});
    let mut reader = site.client();
    let find = doc! {"find": "t", "tailable": true, "awaitData": true};
    let reply = reader.ok("test", find);
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let opened_by = |of: &Document| {
        let cursor = of.get_document("cursor").unwrap();
        assert_eq!(cursor.get_i64("cursorId").unwrap(), id);
        assert_eq!(cursor.get_str("planSummary").unwrap(), "COLLSCAN");
        let command = cursor.get_document("originatingCommand").unwrap();
        assert_eq!(command.get_str("find").unwrap(), "t");
    };
    let reply = client.ok("admin", stage(doc! {"idleCursors": true}));
    let shown = batch(&reply);
    let idle = shown
        .iter()
        .find(|one| one.get_str("type").unwrap() == "idleCursor");
    opened_by(idle.unwrap());
    let more = doc! {"getMore": id, "collection": "t", "maxTimeMS": 60_000};
    reader.send("test", more, 0);
    let shown = once_it_says(&mut client, &doc! {"op": "getmore"}, "cursor");
    opened_by(&shown);
    client.ok("test", doc! {"insert": "t", "documents": [{"_id": 2}]});
    let (_, reply) = reader.receive().unwrap();
    let cursor = reply.get_document("cursor").unwrap();
    assert_eq!(cursor.get_array("nextBatch").unwrap().len(), 1);
}

#[test]
fn the_stage_of_current_operations_is_for_the_admin_database() {
    let site = Site::new();
    let mut client = site.client();
    let stages = || vec![doc! {"$currentOp": {}}];
    let wanted = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
    for (database, target) in [
        ("test", Bson::from(1)),
        ("test", "c".into()),
        ("admin", "c".into()),
    ] {
        let command = doc! {"aggregate": &target, "pipeline": stages(), "cursor": {}};
        let mut explained = command.clone();
        explained.insert("explain", true);
        for command in [command.clone(), explained, doc! {"explain": command}] {
            let (code, message) = client.fails(database, command);
            assert_eq!((code, &*message), (73, wanted), "{database} {target}");
        }
    }
    let view = doc! {"create": "v", "viewOn": "c", "pipeline": stages()};
    assert_eq!(client.fails("test", view).0, 73);
    let command = doc! {"aggregate": 1, "pipeline": stages(), "cursor": {}};
    client.ok("admin", command.clone());
    client.ok("admin", doc! {"explain": command});
}

/// A filter whose expression takes hours ends soon, and keeps no thread of the network.
#[test]
fn the_filter_has_little_time() {
    let site = Site::new();
    let mut client = site.client();
    let many = bson::bson!({"$range": [0, 300_000]});
    let inner = bson::bson!({"$size": {"$filter": {"input": many.clone(), "cond": false}}});
    let endless = bson::bson!({
        "$reduce": {"input": many, "initialValue": 0, "in": {"$add": ["$$value", inner]}},
    });
    let command = doc! {"currentOp": 1, "$expr": {"$gt": [endless, 1]}};
    // More of them than threads of the network.
    let mut busy: Vec<Client> = (0..8).map(|_| site.client()).collect();
    for other in &mut busy {
        other.send("admin", command.clone(), 0);
    }
    client.ok("admin", doc! {"ping": 1});
    for mut other in busy {
        let (_, reply) = other.receive().unwrap();
        assert_eq!(reply.get_i32("code").unwrap(), 50, "{reply}");
    }
}
