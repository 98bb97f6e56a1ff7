//! Requests that the connection and the dispatcher refuse; the connection stays open if possible.

use std::io::Write as _;

use bson::{Bson, RawDocumentBuf, doc};
use server::Config;
use wire::Parts;
use wire::message::Flags;

use crate::client::{Client, Site, await_so};

#[test]
fn commands_are_checked_before_they_run() {
    let site = Site::new();
    let mut client = site.client();
    let unknown = client.fails("test", doc! {"atlasVersion": 1});
    assert_eq!(unknown, (59, "no such command: 'atlasVersion'".to_owned()));
    let elsewhere = client.fails("test", doc! {"getCmdLineOpts": 1});
    let message = "getCmdLineOpts may only be run against the admin database.";
    assert_eq!(elsewhere, (13, message.to_owned()));
    let field = client.fails("admin", doc! {"getCmdLineOpts": 1, "nonsense": 1});
    let message = "BSON field 'getCmdLineOpts.nonsense' is an unknown field.";
    assert_eq!(field, (40_415, message.to_owned()));
    assert_eq!(client.fails("a b", doc! {"serverStatus": 1}).0, 73);
    assert_eq!(
        client.fails("admin", doc! {"ping": 1, "maxTimeMS": -1}).0,
        2
    );
    assert_eq!(
        client.fails("admin", doc! {"ping": 1, "apiVersion": "2"}).0,
        322
    );
    let strict = doc! {"serverStatus": 1, "apiVersion": "1", "apiStrict": true};
    assert_eq!(client.fails("admin", strict).0, 323);
    assert_eq!(
        client
            .fails("admin", doc! {"ping": 1, "txnNumber": 1_i64})
            .0,
        72
    );
    client.ok(
        "admin",
        doc! {"ping": 1, "comment": {"any": "thing"}, "maxTimeMS": 1000},
    );
}

#[test]
fn a_standalone_server_refuses_transaction_numbers_in_the_words_drivers_know() {
    let site = Site::with(|config: &mut Config| config.replica_set = None);
    let id = bson::Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![1; 16],
    };
    let command = doc! {"ping": 1, "lsid": {"id": id}, "txnNumber": 1_i64};
    let (code, message) = site.client().fails("test", command);
    let words = "Transaction numbers are only allowed on a replica set member or mongos";
    assert_eq!((code, message.as_str()), (20, words));
}

#[test]
fn a_moment_can_be_read_again() {
    let site = Site::new();
    let mut client = site.client();
    let insert = |id: i32| doc! {"insert": "c", "documents": [{"_id": id}]};
    client.ok("test", insert(1));
    let first = doc! {"find": "c", "readConcern": {"level": "snapshot"}};
    let reply = client.ok("test", first);
    let cursor = reply.get_document("cursor").unwrap();
    let time = cursor.get_timestamp("atClusterTime").unwrap();
    client.ok("test", insert(2));
    let concern = doc! {"level": "snapshot", "atClusterTime": time};
    let again = doc! {"find": "c", "readConcern": concern.clone(), "batchSize": 0};
    let reply = client.ok("test", again);
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let rest = client.ok("test", doc! {"getMore": id, "collection": "c"});
    let rest = rest.get_document("cursor").unwrap();
    assert_eq!(
        rest.get_array("nextBatch").unwrap(),
        &[doc! {"_id": 1}.into()]
    );
    let distinct = doc! {"distinct": "c", "key": "_id", "readConcern": concern.clone()};
    let reply = client.ok("test", distinct);
    assert_eq!(reply.get_array("values").unwrap(), &[1.into()]);
    assert_eq!(reply.get_timestamp("atClusterTime").unwrap(), time);
    let count = doc! {"count": "c", "readConcern": concern};
    assert_eq!(client.fails("test", count).0, 72);
    let past = bson::Timestamp {
        time: 1,
        increment: 1,
    };
    let concern = doc! {"level": "snapshot", "atClusterTime": past};
    let past = doc! {"find": "c", "readConcern": concern};
    assert_eq!(client.fails("test", past).0, 239);
}

#[test]
fn what_needs_no_answer_gets_none() {
    let site = Site::new();
    let mut client = site.client();
    client.send("admin", doc! {"ping": 1}, Flags::MORE_TO_COME);
    client.send("admin", doc! {"nonsense": 1}, Flags::MORE_TO_COME);
    // The next reply answers the next message, and none of those before.
    client.ok("admin", doc! {"ping": 1});
}

#[test]
fn a_bad_document_is_refused_and_the_connection_stays() {
    let site = Site::new();
    let mut client = site.client();
    let body = RawDocumentBuf::try_from(&doc! {"ping": "text", "$db": "admin"}).unwrap();
    let mut bytes = wire::encode(Parts::default(), &body, &[]);
    bytes[36] = 0xFF;
    client.stream.write_all(&bytes).unwrap();
    let (_, reply) = client.receive().unwrap();
    assert_eq!(reply.get_i32("code").unwrap(), 22, "{reply}");
    assert_eq!(reply.get_str("codeName").unwrap(), "InvalidBSON");
    client.ok("admin", doc! {"ping": 1});
}

#[test]
fn a_message_that_cannot_be_followed_ends_the_connection() {
    let site = Site::new();
    let mut client = site.client();
    client.send("admin", doc! {"ping": 1}, 1 << 5);
    let (_, reply) = client.receive().unwrap();
    assert_eq!(reply.get_i32("code").unwrap(), 223);
    assert!(client.receive().is_none());

    for header in [[3, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0x7F]] {
        let mut client = site.client();
        client.stream.write_all(&header).unwrap();
        client.stream.write_all(&[0; 12]).unwrap();
        assert!(client.receive().is_none());
    }
    site.client().ok("admin", doc! {"ping": 1});
}

#[test]
fn a_checksum_is_verified() {
    let site = Site::new();
    let mut client = site.client();
    client.send("admin", doc! {"ping": 1}, Flags::CHECKSUM);
    assert_eq!(
        client.receive().unwrap().1.get("ok"),
        Some(&Bson::Double(1.0))
    );
}

#[test]
fn connections_over_the_limit_are_closed_and_places_come_back() {
    let site = Site::with(|config| config.max_connections = 2);
    let (mut one, mut two) = (site.client(), site.client());
    one.ok("admin", doc! {"ping": 1});
    two.ok("admin", doc! {"ping": 1});
    let mut three = site.client();
    assert!(three.receive().is_none());
    drop(two);
    // The server notices the end of a connection some time later.
    let again = || {
        let mut client = Client::to(site.address());
        client.send("admin", doc! {"ping": 1}, 0);
        client.receive().is_some()
    };
    await_so("the place to come back", again);
}

#[test]
fn numbers_have_the_types_of_mongodb() {
    let site = Site::new();
    let reply = site.client().ok("admin", doc! {"serverStatus": 1});
    let at = |path: &str| {
        let mut value = Bson::Document(reply.clone());
        for part in path.split('.') {
            value = value.as_document().unwrap().get(part).cloned().expect(path);
        }
        value
    };
    for long in [
        "pid",
        "uptimeMillis",
        "network.bytesIn",
        "opcounters.insert",
        "opLatencies.reads.ops",
        "metrics.document.inserted",
        "globalLock.totalTime",
    ] {
        assert!(matches!(at(long), Bson::Int64(_)), "{long}: {}", at(long));
    }
    for int in [
        "connections.current",
        "connections.available",
        "mem.resident",
        "asserts.user",
    ] {
        assert!(matches!(at(int), Bson::Int32(_)), "{int}: {}", at(int));
    }
    assert!(matches!(at("uptime"), Bson::Double(_)));
}

#[test]
fn parameters_are_shown_and_set() {
    let site = Site::new();
    let mut client = site.client();
    let all = client.ok("admin", doc! {"getParameter": "*"});
    assert!(all.get_bool("enableTestCommands").unwrap());
    let version = doc! {"getParameter": 1, "featureCompatibilityVersion": 1};
    let version = client.ok("admin", version);
    assert_eq!(
        version.get_document("featureCompatibilityVersion").unwrap(),
        &doc! {"version": "8.0"}
    );
    assert_eq!(
        client
            .fails("admin", doc! {"getParameter": 1, "nonsense": 1})
            .0,
        72
    );
    let was = client.ok(
        "admin",
        doc! {"setParameter": 1, "ttlMonitorSleepSecs": 1.0},
    );
    assert_eq!(was.get_i32("was").unwrap(), 60);
    let now = client.ok("admin", doc! {"getParameter": 1, "ttlMonitorSleepSecs": 1});
    assert_eq!(now.get_i32("ttlMonitorSleepSecs").unwrap(), 1);
    assert_eq!(
        client
            .fails("admin", doc! {"setParameter": 1, "enableTestCommands": 0})
            .0,
        20
    );
    let mut fails = |name: &str, value: i32| {
        client
            .fails("admin", doc! {"setParameter": 1, name: value})
            .0
    };
    assert_eq!(fails("ttlMonitorSleepSecs", 0), 2);
    assert_eq!(fails("scramSHA256IterationCount", 4_999), 2);
    assert_eq!(fails("logLevel", 6), 2);
    // A parameter that would have no effect is unknown.
    assert_eq!(fails("journalCommitInterval", 1), 72);
}

#[test]
fn parameters_do_what_they_say() {
    let site = Site::new();
    let mut client = site.client();
    let mut set = |name: &str, value: i32| {
        client.ok("admin", doc! {"setParameter": 1, name: value});
    };
    set("scramSHA256IterationCount", 6_000);
    set("ttlMonitorSleepSecs", 1);
    set("logLevel", 1);
    let user = doc! {"createUser": "u", "pwd": "x", "roles": []};
    client.ok("test", user);
    let shown = doc! {"usersInfo": "u", "showCredentials": true};
    let shown = client.ok("test", shown).to_string();
    assert!(shown.contains("\"iterationCount\": 6000"), "{shown}");
    // Every command is logged.
    client.ok("test", doc! {"ping": 1, "comment": "seen at level one"});
    let log = client.ok("admin", doc! {"getLog": "global"}).to_string();
    assert!(log.contains("seen at level one"), "{log}");
    // Documents expire within seconds instead of a minute.
    let index = doc! {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 0};
    client.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    let old = doc! {"at": bson::DateTime::from_millis(0)};
    client.ok("test", doc! {"insert": "c", "documents": [old]});
    let count = doc! {"count": "c"};
    await_so("the document to expire", || {
        client.ok("test", count.clone()).get_i32("n").unwrap() == 0
    });
}
