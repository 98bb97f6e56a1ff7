//! The oplog of a member of a replica set, and the times of replies.

use bson::{Bson, Document, Timestamp, doc};

use crate::client::{Client, Site, await_so, batch};

pub(crate) const SIZE: u64 = 64 << 20;

/// A server with an oplog.
pub(crate) fn with_oplog() -> Site {
    Site::with(|config| config.oplog_bytes = Some(SIZE))
}

fn entries(client: &mut Client, filter: Document) -> Vec<Document> {
    let find = doc! {"find": "oplog.rs", "filter": filter, "batchSize": 10_000};
    batch(&client.ok("local", find))
}

fn time(reply: &Document, name: &str) -> Timestamp {
    reply.get_timestamp(name).unwrap()
}

fn cluster(reply: &Document) -> Timestamp {
    let cluster = reply.get_document("$clusterTime").unwrap();
    cluster.get_timestamp("clusterTime").unwrap()
}

#[test]
fn the_time_of_a_write_is_that_of_its_entry() {
    let site = with_oplog();
    let mut client = site.client();
    let mut last = Timestamp {
        time: 0,
        increment: 0,
    };
    let writes = [
        doc! {"insert": "c", "documents": [{"_id": 1}]},
        doc! {"insert": "c", "documents": [{"_id": 2}, {"_id": 3}]},
        doc! {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}]},
        doc! {"findAndModify": "c", "query": {"_id": 1}, "remove": true},
        doc! {"create": "d"},
        doc! {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]},
        doc! {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
        doc! {"drop": "d"},
    ];
    for write in writes {
        let reply = client.ok("test", write.clone());
        let at = time(&reply, "operationTime");
        assert!(last < at, "{write}");
        assert!(at <= cluster(&reply));
        last = at;
        let newest = entries(&mut client, doc! {}).pop().unwrap();
        assert_eq!(time(&newest, "ts"), at, "{write}: {newest}");
    }
    let reply = client.ok("test", doc! {"find": "c"});
    assert!(last <= time(&reply, "operationTime"));
    let hello = client.ok("admin", doc! {"hello": 1});
    let written = hello.get_document("lastWrite").unwrap();
    assert_eq!(time(written.get_document("opTime").unwrap(), "ts"), last);
    let status = client.ok("admin", doc! {"replSetGetStatus": 1});
    let optimes = status.get_document("optimes").unwrap();
    assert_eq!(
        time(optimes.get_document("appliedOpTime").unwrap(), "ts"),
        last
    );
}

#[test]
fn a_transaction_has_the_time_of_its_last_entry() {
    let site = with_oplog();
    let mut client = site.client();
    client.ok("test", doc! {"create": "c"});
    let id = bson::Uuid::new();
    let within = |mut command: Document, start: bool| {
        command.extend(doc! {"lsid": {"id": id}, "txnNumber": 1_i64, "autocommit": false});
        if start {
            command.insert("startTransaction", true);
        }
        command
    };
    let insert = doc! {"insert": "c", "documents": [{"_id": 1}]};
    client.ok("test", within(insert, true));
    let commit = within(doc! {"commitTransaction": 1}, false);
    let reply = client.ok("admin", commit);
    let newest = entries(&mut client, doc! {}).pop().unwrap();
    assert_eq!(time(&newest, "ts"), time(&reply, "operationTime"));
    assert_eq!(newest.get_i64("txnNumber").unwrap(), 1);
}

#[test]
fn a_tailing_client_sees_what_is_written_and_the_oplog_is_read_only() {
    let site = with_oplog();
    let mut client = site.client();
    let begin = client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    let find = doc! {
        "find": "oplog.rs", "filter": {"ts": {"$gte": time(&begin, "operationTime")}},
        "tailable": true, "awaitData": true, "oplogReplay": true,
    };
    let reply = client.ok("local", find);
    let first = batch(&reply);
    assert_eq!(first.len(), 1);
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 2}]});
    let more = doc! {"getMore": id, "collection": "oplog.rs", "maxTimeMS": 100_000};
    let next = batch(&client.ok("local", more));
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].get_document("o").unwrap(), &doc! {"_id": 2});
    client.ok("local", doc! {"killCursors": "oplog.rs", "cursors": [id]});
    let insert = doc! {"insert": "oplog.rs", "documents": [{"_id": 1}]};
    assert_eq!(client.fails("local", insert).0, 73);
    assert_eq!(client.fails("local", doc! {"drop": "oplog.rs"}).0, 20);
    let listed = batch(&client.ok("local", doc! {"listCollections": 1}));
    assert_eq!(listed[0].get_str("name").unwrap(), "oplog.rs");
    let stats = client.ok("local", doc! {"collStats": "oplog.rs"});
    assert_eq!(stats.get("capped"), Some(&Bson::Boolean(true)));
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let status = status.get_document("oplog").unwrap().clone();
    assert_eq!(status.get_i64("openSlots").unwrap(), 0);
    let count = client.ok("local", doc! {"count": "oplog.rs"});
    let all = entries(&mut client, doc! {}).len();
    assert_eq!(usize::try_from(count.get_i32("n").unwrap()).unwrap(), all);
    let entries = status.get_i64("entries").unwrap();
    assert!(0 < entries && usize::try_from(entries).unwrap() <= all);
}

#[test]
fn a_standalone_server_has_no_oplog() {
    let site = Site::with(|config| {
        config.replica_set = None;
        config.oplog_bytes = Some(SIZE);
    });
    let mut client = site.client();
    let reply = client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    assert!(!reply.contains_key("operationTime"));
    assert!(entries(&mut client, doc! {}).is_empty());
    assert!(batch(&client.ok("local", doc! {"listCollections": 1})).is_empty());
    let resize = doc! {"replSetResizeOplog": 1, "size": 2_000.0};
    assert_eq!(client.fails("admin", resize).0, 76);
    // An ordinary collection of that name is one.
    let insert = doc! {"insert": "oplog.rs", "documents": [{"_id": 1}]};
    client.ok("local", insert);
}

/// `clock`: K1 and K3, over restarts.
#[test]
fn times_and_the_size_are_kept_over_a_restart() {
    let mut site = with_oplog();
    let mut last = Timestamp {
        time: 0,
        increment: 0,
    };
    for round in 0..4 {
        let mut client = site.client();
        let reply = client.ok("test", doc! {"insert": "c", "documents": [{"_id": round}]});
        let at = time(&reply, "operationTime");
        assert!(last < at, "K1: {last:?}, {at:?}");
        let ours = doc! {"op": "i", "ns": "test.c"};
        let inserts = entries(&mut client, ours);
        assert_eq!(inserts.len(), usize::try_from(round).unwrap() + 1);
        assert_eq!(time(inserts.last().unwrap(), "ts"), at);
        last = cluster(&client.ok("test", doc! {"find": "c"}));
        let size = |client: &mut Client| {
            let stats = client.ok("local", doc! {"collStats": "oplog.rs"});
            stats.get("maxSize").cloned()
        };
        if round == 0 {
            for wrong in [
                doc! {"replSetResizeOplog": 1},
                doc! {"replSetResizeOplog": 1, "size": "1"},
                doc! {"replSetResizeOplog": 1, "size": 10.0},
                doc! {"replSetResizeOplog": 1, "minRetentionHours": -1.0},
            ] {
                client.fails("admin", wrong);
            }
            let resize = doc! {"replSetResizeOplog": 1, "size": 1_000.0, "minRetentionHours": 1.5};
            client.ok("admin", resize);
        }
        assert_eq!(size(&mut client), Some(Bson::Int32(1_000 << 20)));
        drop(client);
        let folder = site.stop();
        site = Site::try_in(folder, |config| config.oplog_bytes = Some(SIZE)).unwrap();
    }
}

/// A client cannot move the times of the oplog far ahead.
#[test]
fn a_time_far_ahead_is_ignored() {
    let site = with_oplog();
    let mut client = site.client();
    let insert = |id: i32| doc! {"insert": "c", "documents": [{"_id": id}]};
    let before = cluster(&client.ok("test", insert(1)));
    let far = Timestamp {
        time: before.time + 3_600,
        increment: 1,
    };
    let mut pushed = insert(2);
    pushed.insert("$clusterTime", doc! {"clusterTime": far});
    let after = cluster(&client.ok("test", pushed));
    assert!(before < after && after.time < far.time);
}

#[test]
fn a_member_of_a_replica_set_keeps_an_oplog_unless_its_size_is_0() {
    let section = |site: &Site| {
        let status = site.client().ok("admin", doc! {"serverStatus": 1});
        status.get_document("oplog").cloned()
    };
    let size = section(&Site::new()).unwrap().get_i64("maxBytes").unwrap();
    assert!((1 << 20..=50_000 << 20).contains(&size), "{size}");
    assert!(section(&Site::with(|config| config.oplog_bytes = Some(0))).is_err());
    assert!(section(&Site::with(|config| config.replica_set = None)).is_err());
}

/// A read at or after a time that the server has not reached would miss the writes that get it.
#[test]
fn a_time_that_is_kept_aside_cannot_be_read_yet() {
    for oplog in [0, SIZE] {
        let site = Site::with(|config| config.oplog_bytes = Some(oplog));
        let mut client = site.client();
        let insert = |id: i32| doc! {"insert": "c", "documents": [{"_id": id}]};
        let before = cluster(&client.ok("test", insert(1)));
        let far = Timestamp {
            time: before.time + 50,
            increment: 1,
        };
        let read = |concern: Document| {
            let known = doc! {"clusterTime": far};
            doc! {"find": "c", "readConcern": concern, "$clusterTime": known}
        };
        let at = || read(doc! {"level": "snapshot", "atClusterTime": far});
        let after = || read(doc! {"afterClusterTime": far});
        // While writes are held up no time is reserved.
        client.ok("admin", doc! {"fsync": 1, "lock": true});
        for read in [at(), after()] {
            let (code, message) = client.fails("test", read);
            assert_eq!(code, 72, "{message}");
            assert!(message.contains("ClusterTime"), "{message}");
        }
        client.ok("admin", doc! {"fsyncUnlock": 1});
        await_so("the time to be reserved", || {
            let reply = client.run("test", at());
            reply.get_f64("ok").unwrap() == 1.0
        });
        let reply = client.ok("test", insert(2));
        assert!(far < time(&reply, "operationTime"));
        assert_eq!(batch(&client.ok("test", at())), [doc! {"_id": 1}]);
        assert_eq!(batch(&client.ok("test", after())).len(), 2);
    }
}

#[test]
fn an_idle_server_puts_notes() {
    let notes = |on: &str| {
        let on = on.to_owned();
        Site::with(move |config| {
            config.oplog_bytes = Some(SIZE);
            let parameter = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            config.parameters.extend([
                parameter("periodicNoopIntervalSecs", "1"),
                parameter("writePeriodicNoops", &on),
            ]);
        })
    };
    let site = notes("true");
    let mut client = site.client();
    let note = doc! {"op": "n", "o.msg": "periodic noop"};
    await_so("a note", || !entries(&mut client, note.clone()).is_empty());
    let entry = &entries(&mut client, note)[0];
    assert_eq!(entry.get_str("ns").unwrap(), "");
    let first = &entries(&mut client, doc! {})[0];
    let message = first.get_document("o").unwrap().get_str("msg").unwrap();
    assert_eq!(message, "new primary");
}

#[test]
fn each_start_is_in_the_log_of_starts() {
    let site = with_oplog();
    let folder = site.stop();
    let site = Site::try_in(folder, |config| config.oplog_bytes = Some(SIZE)).unwrap();
    let mut client = site.client();
    let starts = batch(&client.ok("local", doc! {"find": "startup_log"}));
    assert_eq!(starts.len(), 2);
    for start in &starts {
        let names = [
            "_id",
            "hostname",
            "startTime",
            "startTimeLocal",
            "cmdLine",
            "pid",
            "buildinfo",
        ];
        assert!(start.keys().eq(names), "{start}");
        assert!(start.get_i64("pid").is_ok());
        let built = start.get_document("buildinfo").unwrap();
        let shown = client.ok("admin", doc! {"buildInfo": 1});
        assert_eq!(built.get("versionArray"), shown.get("versionArray"));
    }
    let listed = client.ok(
        "local",
        doc! {"listCollections": 1, "filter": {"name": "startup_log"}},
    );
    let options = batch(&listed)[0].get_document("options").unwrap().clone();
    assert_eq!(options, doc! {"capped": true, "size": 10 << 20});
    let about = doc! {"ns": {"$regex": "startup_log"}};
    assert_eq!(entries(&mut client, about), [], "it is not replicated");
    let standalone = Site::with(|config| config.replica_set = None);
    let found = standalone
        .client()
        .ok("local", doc! {"find": "startup_log"});
    assert!(batch(&found).is_empty());
}
