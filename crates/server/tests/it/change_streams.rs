//! Change streams over the wire, on a server with an oplog.

use bson::{Bson, Document, Timestamp, doc};

use crate::auth::as_user;
use crate::client::{Client, Site, await_so, batch};
use crate::oplog::{SIZE, with_oplog};

const CHANGE_STREAM_HISTORY_LOST: i32 = 286;
const UNAUTHORIZED: i32 = 13;

/// A server with an oplog and authorization, and a client with all privileges.
fn with_users() -> (Site, Client) {
    let site = Site::with(|config| {
        config.oplog_bytes = Some(SIZE);
        config.authorization = true;
    });
    let root = doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]};
    site.client().ok("admin", root);
    let admin = as_user(&site, "admin", "root");
    (site, admin)
}

fn watch(options: Document) -> Document {
    doc! {"aggregate": "c", "pipeline": [{"$changeStream": options}], "cursor": {}}
}

fn insert(client: &mut Client, id: i32) {
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": id}]});
}

fn cursor(reply: &Document) -> &Document {
    reply.get_document("cursor").unwrap()
}

fn id(reply: &Document) -> i64 {
    cursor(reply).get_i64("id").unwrap()
}

fn token(reply: &Document) -> Document {
    let token = cursor(reply).get_document("postBatchResumeToken");
    token.unwrap().clone()
}

fn more(id: i64) -> Document {
    doc! {"getMore": id, "collection": "c", "maxTimeMS": 600_000}
}

fn inserted(reply: &Document) -> Vec<i32> {
    let of = |event: &Document| event.get_document("documentKey").unwrap().get_i32("_id");
    batch(reply)
        .iter()
        .map(|event| of(event).unwrap())
        .collect()
}

#[test]
fn a_stream_waits_and_is_resumed_after_a_restart() {
    let site = with_oplog();
    let mut client = site.client();
    insert(&mut client, 0);
    let mut reader = site.client();
    let opened = reader.ok("test", watch(doc! {}));
    assert!(batch(&opened).is_empty());
    let first = token(&opened);
    reader.send("test", more(id(&opened)), 0);
    let waits = doc! {"currentOp": 1, "op": "getmore"};
    await_so("it waits", || {
        let reply = client.ok("admin", waits.clone());
        reply.get_array("inprog").unwrap().len() == 1
    });
    insert(&mut client, 1);
    let (_, reply) = reader.receive().unwrap();
    assert_eq!(inserted(&reply), [1]);
    let event = &batch(&reply)[0];
    assert_eq!(event.get_str("operationType").unwrap(), "insert");
    assert_eq!(event.get_document("_id").unwrap(), &token(&reply));
    insert(&mut client, 2);
    drop((client, reader));
    let folder = site.stop();
    let site = Site::try_in(folder, |config| config.oplog_bytes = Some(SIZE)).unwrap();
    let mut client = site.client();
    insert(&mut client, 3);
    let resumed = client.ok("test", watch(doc! {"resumeAfter": token(&reply)}));
    assert_eq!(inserted(&resumed), [2, 3]);
    let whole = client.ok("test", watch(doc! {"startAfter": first}));
    assert_eq!(inserted(&whole), [1, 2, 3]);
    drop(client);
    // Without its oplog the store forgets it: the stream must not continue behind a gap.
    let folder = site.stop();
    let site = Site::try_in(folder, |config| config.oplog_bytes = Some(0)).unwrap();
    insert(&mut site.client(), 4);
    let folder = site.stop();
    let site = Site::try_in(folder, |config| config.oplog_bytes = Some(SIZE)).unwrap();
    let resume = watch(doc! {"resumeAfter": token(&whole)});
    let (code, _) = site.client().fails("test", resume);
    assert_eq!(code, CHANGE_STREAM_HISTORY_LOST);
}

#[test]
fn streams_that_wait_hold_no_thread() {
    let site = with_oplog();
    let mut client = site.client();
    insert(&mut client, 0);
    let mut readers: Vec<Client> = (0..300).map(|_| site.client()).collect();
    for reader in &mut readers {
        let opened = reader.ok("test", watch(doc! {}));
        reader.send("test", more(id(&opened)), 0);
    }
    // Changes of another collection wake them and have no event for them.
    client.ok("test", doc! {"insert": "other", "documents": [{"_id": 1}]});
    insert(&mut client, 1);
    for reader in &mut readers {
        let (_, reply) = reader.receive().unwrap();
        assert_eq!(inserted(&reply), [1]);
    }
}

#[test]
fn an_error_after_which_a_stream_can_be_resumed_has_the_label() {
    let site = with_oplog();
    let mut client = site.client();
    insert(&mut client, 0);
    let opened = client.ok("test", watch(doc! {}));
    for (point, labels) in [
        (
            "failGetMoreAfterCursorCheckout",
            Some("ResumableChangeStreamError"),
        ),
        // It fails before anything is known of the cursor.
        ("failCommand", None),
    ] {
        client.ok(
            "admin",
            doc! {
                "configureFailPoint": point, "mode": {"times": 1},
                "data": {"failCommands": ["getMore"], "closeConnection": false, "errorCode": 43},
            },
        );
        client.send("test", more(id(&opened)), 0);
        let (_, reply) = client.receive().unwrap();
        assert_eq!(reply.get_i32("code").unwrap(), 43);
        let expected = labels.map(|label| vec![Bson::from(label)]);
        assert_eq!(reply.get_array("errorLabels").ok(), expected.as_ref());
    }
}

/// A stream shows the documents of all that it follows: each kind needs the privileges on it.
#[test]
fn who_may_not_read_may_not_follow() {
    let (site, mut admin) = with_users();
    let stream = |options: Document, of: Bson| {
        doc! {"aggregate": of, "pipeline": [{"$changeStream": options}], "cursor": {}}
    };
    let follow = ["find", "changeStream"];
    let grants: [(&str, Document, &[&str]); 6] = [
        ("one", doc! {"db": "test", "collection": "c"}, &follow),
        ("database", doc! {"db": "test", "collection": ""}, &follow),
        ("all", doc! {"db": "", "collection": ""}, &follow),
        ("reader", doc! {"db": "", "collection": ""}, &["find"]),
        (
            "blind",
            doc! {"db": "", "collection": ""},
            &["changeStream"],
        ),
        (
            "administers",
            doc! {"db": "admin", "collection": ""},
            &follow,
        ),
    ];
    for (name, resource, actions) in grants {
        let privilege = doc! {"resource": resource, "actions": actions};
        let role = doc! {"createRole": name, "privileges": [privilege], "roles": []};
        admin.ok("admin", role);
        let user = doc! {"createUser": name, "pwd": "secret", "roles": [name]};
        admin.ok("admin", user);
    }
    let cases: [(&str, Document, Bson, &[&str]); 5] = [
        ("test", doc! {}, "c".into(), &["one", "database", "all"]),
        ("test", doc! {}, "d".into(), &["database", "all"]),
        ("test", doc! {}, 1.into(), &["database", "all"]),
        (
            "admin",
            doc! {"allChangesForCluster": true},
            1.into(),
            &["all"],
        ),
        (
            "admin",
            doc! {"allChangesForCluster": true, "showSystemEvents": true},
            1.into(),
            &[],
        ),
    ];
    admin.ok("test", doc! {"create": "c"});
    admin.ok("test", doc! {"create": "d"});
    for (database, options, of, may) in cases {
        for name in ["one", "database", "all", "reader", "blind", "administers"] {
            let mut client = as_user(&site, "admin", name);
            let reply = client.run(database, stream(options.clone(), of.clone()));
            let code = reply.get_i32("code").ok();
            match may.contains(&name) {
                true => assert_eq!(code, None, "{name} on {database} {of} {options}: {reply}"),
                false => assert_eq!(code, Some(UNAUTHORIZED), "{name} {database} {of} {options}"),
            }
        }
    }
}

/// The time of a `getMore` limits its wait, not the reading of what is there.
#[test]
fn a_stream_advances_over_a_backlog_in_batches_of_little_time() {
    let site = with_oplog();
    let mut client = site.client();
    insert(&mut client, 0);
    let opened = client.ok("test", watch(doc! {}));
    let backlog: Vec<Document> = (1..5_000).map(|id| doc! {"_id": id}).collect();
    client.ok("test", doc! {"insert": "c", "documents": backlog});
    let chosen = doc! {"$match": {"$expr": {"$eq": [{"$mod": ["$documentKey._id", 1_000]}, 999]}}};
    let mut resume = watch(doc! {"resumeAfter": token(&opened)});
    resume.insert("cursor", doc! {"batchSize": 0});
    let stages = resume.get_array_mut("pipeline").unwrap();
    stages.push(chosen.into());
    let resumed = client.ok("test", resume);
    let mut next = more(id(&resumed));
    next.insert("maxTimeMS", 1);
    let reply = client.ok("test", next);
    assert_eq!(inserted(&reply), [999, 1_999, 2_999, 3_999, 4_999]);
}

#[test]
fn a_stream_reads_no_snapshot() {
    let site = with_oplog();
    let mut client = site.client();
    insert(&mut client, 0);
    let mut snapshot = watch(doc! {});
    snapshot.insert("readConcern", doc! {"level": "snapshot"});
    assert_eq!(client.fails("test", snapshot).0, 72);
}

/// A cursor whose operation fails after its wait can be used again.
#[test]
fn a_cursor_is_free_after_a_wait_that_ends_in_a_refusal() {
    let (site, mut admin) = with_users();
    let roles = ["readWriteAnyDatabase"];
    let user = doc! {"createUser": "reader", "pwd": "secret", "roles": roles};
    admin.ok("admin", user);
    insert(&mut admin, 0);
    let mut reader = as_user(&site, "admin", "reader");
    let opened = reader.ok("test", watch(doc! {}));
    reader.send("test", more(id(&opened)), 0);
    let waits = doc! {"currentOp": 1, "op": "getmore"};
    await_so("it waits", || {
        let reply = admin.ok("admin", waits.clone());
        reply.get_array("inprog").unwrap().len() == 1
    });
    let change = |verb: &str| doc! {verb: "reader", "roles": roles};
    admin.ok("admin", change("revokeRolesFromUser"));
    insert(&mut admin, 1);
    let (_, refused) = reader.receive().unwrap();
    assert_eq!(refused.get_i32("code").unwrap(), UNAUTHORIZED);
    admin.ok("admin", change("grantRolesToUser"));
    let reply = reader.ok("test", more(id(&opened)));
    assert!(inserted(&reply).contains(&1), "{reply}");
}

/// The time of a read is that of its snapshot: a stream from that time on has all that it lacks.
#[test]
fn a_stream_from_the_time_of_a_read_misses_nothing() {
    const EACH: i32 = 300;
    let site = with_oplog();
    let mut client = site.client();
    insert(&mut client, -1);
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let mut client = site.client();
            let body = move || {
                for id in writer * EACH..(writer + 1) * EACH {
                    insert(&mut client, id);
                }
            };
            stdx::sync::spawn("writer", body).unwrap()
        })
        .collect();
    let reads: Vec<(Vec<i32>, Timestamp)> = (0..40)
        .map(|_| {
            let find = doc! {"find": "c", "batchSize": 10_000};
            let reply = client.ok("test", find);
            let id = |document: &Document| document.get_i32("_id").unwrap();
            let found = batch(&reply).iter().map(id).collect();
            (found, reply.get_timestamp("operationTime").unwrap())
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    for (found, time) in reads {
        let mut from = watch(doc! {"startAtOperationTime": time});
        from.insert("cursor", doc! {"batchSize": 10_000});
        let mut all = inserted(&client.ok("test", from));
        all.extend(found);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3 * 300 + 1, "from {time}");
    }
}

/// Trap 25 of replication: a hash under load is that of one moment of all collections.
#[test]
fn a_hash_under_load_is_that_of_one_moment() {
    let site = with_oplog();
    let mut client = site.client();
    for id in [0, 1] {
        let name = format!("c{id}");
        client.ok(
            "test",
            doc! {"insert": name, "documents": [{"_id": 1, "n": 0}]},
        );
    }
    let hash = |client: &mut Client| {
        let reply = client.ok("test", doc! {"dbHash": 1});
        let hashes = reply.get_document("collections").unwrap();
        ["c0", "c1"].map(|name| hashes.get_str(name).unwrap().to_owned())
    };
    let [first, second] = hash(&mut client);
    assert_eq!(first, second, "equal documents");
    let mut writer = site.client();
    let body = move || {
        let lsid = doc! {"id": bson::Uuid::new()};
        for number in 1..=200_i64 {
            let mut first = true;
            for name in ["c0", "c1"] {
                let change = doc! {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}};
                let mut command = doc! {
                    "update": name, "updates": [change], "lsid": lsid.clone(),
                    "txnNumber": number, "autocommit": false,
                };
                if std::mem::take(&mut first) {
                    command.insert("startTransaction", true);
                }
                writer.ok("test", command);
            }
            writer.ok(
                "admin",
                doc! {
                    "commitTransaction": 1, "lsid": lsid.clone(), "txnNumber": number,
                    "autocommit": false,
                },
            );
        }
    };
    let writer = stdx::sync::spawn("writer", body).unwrap();
    for _ in 0..60 {
        let [first, second] = hash(&mut client);
        assert_eq!(first, second, "both are changed in one transaction");
    }
    writer.join().unwrap();
}
