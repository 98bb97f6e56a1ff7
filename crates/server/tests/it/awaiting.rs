//! Cursors that wait for data.

use bson::{Document, doc};

use crate::client::{Client, Site, await_so, batch};
use crate::oplog::with_oplog;

/// More cursors than the server has threads for commands.
const MANY: usize = 300;
const CURSOR_NOT_FOUND: i32 = 43;
const CURSOR_KILLED: i32 = 237;
const INTERRUPTED: i32 = 11_601;
const QUERY_PLAN_KILLED: i32 = 175;
const IN_USE: i32 = 12_051;

/// A capped collection with one document.
fn capped(client: &mut Client, name: &str) {
    client.ok("test", doc! {"create": name, "capped": true, "size": 4096});
    client.ok("test", doc! {"insert": name, "documents": [{"_id": 1}]});
}

/// A cursor that has read what is there.
fn tail(client: &mut Client, name: &str) -> i64 {
    let find = doc! {"find": name, "tailable": true, "awaitData": true};
    let reply = client.ok("test", find);
    reply.get_document("cursor").unwrap().get_i64("id").unwrap()
}

fn more(id: i64, name: &str) -> Document {
    doc! {"getMore": id, "collection": name, "maxTimeMS": 3_600_000}
}

/// The numbers of the operations that wait.
fn waiting(client: &mut Client) -> Vec<i32> {
    let reply = client.ok("admin", doc! {"currentOp": 1, "op": "getmore"});
    let listed = reply.get_array("inprog").unwrap().iter();
    let number = |one: &bson::Bson| one.as_document().unwrap().get_i32("opid").unwrap();
    listed.map(number).collect()
}

/// Wait until that many operations use a cursor: an operation that is listed may not have reached
/// its cursor yet.
fn await_use(client: &mut Client, count: usize) {
    await_so("all use their cursors", || {
        waiting(client).len() == count && pinned(client) == i64::try_from(count).unwrap()
    });
}

/// The number of cursors in use.
fn pinned(client: &mut Client) -> i64 {
    let counts = client.ok("admin", doc! {"serverStatus": 1});
    let metrics = counts.get_document("metrics").unwrap();
    let open = metrics.get_document("cursor").unwrap();
    open.get_document("open")
        .unwrap()
        .get_i64("pinned")
        .unwrap()
}

#[test]
fn cursors_that_wait_for_data_hold_no_thread() {
    let site = Site::new();
    let mut client = site.client();
    capped(&mut client, "busy");
    capped(&mut client, "other");
    let mut readers: Vec<Client> = (0..MANY).map(|_| site.client()).collect();
    for reader in &mut readers {
        let id = tail(reader, "busy");
        reader.send("test", more(id, "busy"), 0);
    }
    await_use(&mut client, MANY);
    // A write of another collection ends no wait, and there are threads for it.
    client.ok("test", doc! {"insert": "other", "documents": [{"_id": 2}]});
    assert_eq!(waiting(&mut client).len(), MANY);
    assert_eq!(pinned(&mut client), i64::try_from(MANY).unwrap());
    client.ok("test", doc! {"insert": "busy", "documents": [{"_id": 2}]});
    for reader in &mut readers {
        let (_, reply) = reader.receive().unwrap();
        assert_eq!(batch(&reply), [doc! {"_id": 2}]);
    }
    assert!(waiting(&mut client).is_empty());
}

#[test]
fn a_wait_ends_for_what_ends_its_operation_or_its_cursor() {
    let site = Site::new();
    let mut client = site.client();
    let ended = |client: &mut Client, end: &dyn Fn(&mut Client, i64, i32)| {
        capped(client, "c");
        let mut reader = site.client();
        let id = tail(&mut reader, "c");
        reader.send("test", more(id, "c"), 0);
        await_use(client, 1);
        let (code, _) = client.fails("test", more(id, "c"));
        assert_eq!(code, IN_USE);
        let operation = waiting(client)[0];
        end(client, id, operation);
        let (_, reply) = reader.receive().unwrap();
        let (gone, _) = client.fails("test", more(id, "c"));
        assert_eq!(gone, CURSOR_NOT_FOUND);
        client.run("test", doc! {"drop": "c"});
        reply.get_i32("code").unwrap()
    };
    let killed = ended(&mut client, &|client, _, operation| {
        client.ok("admin", doc! {"killOp": 1, "op": operation});
    });
    assert_eq!(killed, INTERRUPTED);
    let dropped = ended(&mut client, &|client, _, _| {
        client.ok("test", doc! {"drop": "c"});
    });
    assert_eq!(dropped, QUERY_PLAN_KILLED);
    let killed = ended(&mut client, &|client, id, _| {
        let reply = client.ok("test", doc! {"killCursors": "c", "cursors": [id]});
        assert_eq!(reply.get_array("cursorsKilled").unwrap(), &[id.into()]);
    });
    assert_eq!(killed, CURSOR_KILLED);
}

/// The cursor of a change stream on `c`, opened in a session.
fn stream(client: &mut Client, lsid: &Document) -> i64 {
    let watch = doc! {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {},
    "lsid": lsid.clone()};
    let reply = client.ok("test", watch);
    reply.get_document("cursor").unwrap().get_i64("id").unwrap()
}

#[test]
fn a_wait_ends_with_the_cursors_of_its_session() {
    let site = with_oplog();
    let mut client = site.client();
    client.ok("test", doc! {"create": "c"});
    for command in ["killCursors", "endSessions", "killSessions"] {
        let lsid = doc! {"id": bson::Uuid::new()};
        let mut reader = site.client();
        let id = stream(&mut reader, &lsid);
        let mut next = more(id, "c");
        next.insert("lsid", lsid.clone());
        reader.send("test", next.clone(), 0);
        await_use(&mut client, 1);
        match command {
            "killCursors" => client.ok("test", doc! {command: "c", "cursors": [id]}),
            _ => client.ok("admin", doc! {command: [lsid]}),
        };
        let (_, reply) = reader.receive().unwrap();
        assert_eq!(reply.get_i32("code").unwrap(), CURSOR_KILLED, "{command}");
        let (gone, _) = client.fails("test", next);
        assert_eq!(gone, CURSOR_NOT_FOUND, "{command}");
        assert!(waiting(&mut client).is_empty());
    }
}

#[test]
fn a_wait_without_data_ends_with_its_time() {
    let site = Site::new();
    let mut client = site.client();
    capped(&mut client, "c");
    let id = tail(&mut client, "c");
    for _ in 0..2 {
        let mut more = more(id, "c");
        more.insert("maxTimeMS", 20);
        let reply = client.ok("test", more);
        assert!(batch(&reply).is_empty());
        let cursor = reply.get_document("cursor").unwrap();
        assert_eq!(cursor.get_i64("id").unwrap(), id);
    }
    assert!(waiting(&mut client).is_empty());
    let idle = doc! {"aggregate": 1, "cursor": {}, "pipeline": [
        {"$currentOp": {"idleCursors": true}}, {"$match": {"type": "idleCursor"}},
    ]};
    assert_eq!(batch(&client.ok("admin", idle)).len(), 1);
    let counts = client.ok("admin", doc! {"serverStatus": 1});
    let counts = counts.get_document("opcounters").unwrap();
    assert_eq!(
        counts.get_i64("getmore").unwrap(),
        2,
        "each command counts once"
    );
}

#[test]
fn a_server_that_stops_ends_the_waits() {
    let site = Site::new();
    let mut client = site.client();
    capped(&mut client, "c");
    let mut reader = site.client();
    let id = tail(&mut reader, "c");
    reader.send("test", more(id, "c"), 0);
    await_use(&mut client, 1);
    drop(client);
    let stopped = stdx::sync::spawn("stop", move || site.stop()).unwrap();
    let (_, reply) = reader.receive().unwrap();
    assert!(batch(&reply).is_empty());
    stopped.join().unwrap();
}
