//! `hello` in all its forms.

use std::io::Write as _;

use bson::{Bson, Document, RawDocumentBuf, doc};
use wire::message::Flags;
use wire::{Header, OpCode};

use crate::client::{Client, Site, await_so};

#[test]
fn a_member_of_a_replica_set_says_so() {
    let site = Site::new();
    let reply = site
        .client()
        .ok("admin", doc! {"hello": 1, "helloOk": true});
    assert!(reply.get_bool("helloOk").unwrap());
    assert!(reply.get_bool("isWritablePrimary").unwrap());
    assert_eq!(reply.get_str("setName").unwrap(), "rs0");
    assert_eq!(reply.get_str("me").unwrap(), site.address().to_string());
    assert_eq!(reply.get_i32("maxWireVersion").unwrap(), 25);
    assert_eq!(reply.get_i32("logicalSessionTimeoutMinutes").unwrap(), 30);
    let version = reply.get_document("topologyVersion").unwrap();
    assert!(
        matches!(version.get("counter"), Some(Bson::Int64(_))),
        "{version}"
    );
    assert!(matches!(reply.get("connectionId"), Some(Bson::Int64(_))));
    assert!(reply.contains_key("$clusterTime") && reply.contains_key("operationTime"));
    assert!(!reply.contains_key("compression"));
}

#[test]
fn a_standalone_server_tells_of_no_set() {
    let site = Site::with(|config| config.replica_set = None);
    let reply = site.client().ok("admin", doc! {"isMaster": 1});
    assert!(reply.get_bool("ismaster").unwrap());
    for absent in [
        "setName",
        "hosts",
        "$clusterTime",
        "operationTime",
        "helloOk",
    ] {
        assert!(!reply.contains_key(absent), "{absent}: {reply}");
    }
}

/// A greeting as a legacy query.
fn legacy(namespace: &str, body: &Document) -> Vec<u8> {
    let body = RawDocumentBuf::try_from(body).unwrap();
    let mut bytes = vec![0; 20];
    bytes.extend_from_slice(namespace.as_bytes());
    bytes.extend_from_slice(&[0; 5]);
    bytes.extend_from_slice(&(-1_i32).to_le_bytes());
    bytes.extend_from_slice(body.as_bytes());
    let header = Header {
        length: bytes.len(),
        request_id: 77,
        response_to: 0,
        op_code: OpCode::Query,
    };
    bytes[..16].copy_from_slice(&header.encode());
    bytes
}

#[test]
fn a_legacy_greeting_is_answered_and_nothing_else_is() {
    let site = Site::new();
    let mut client = site.client();
    let greetings = [
        doc! {"isMaster": 1, "helloOk": true},
        doc! {"ismaster": 1},
        doc! {"hello": 1},
    ];
    for greeting in greetings {
        client
            .stream
            .write_all(&legacy("admin.$cmd", &greeting))
            .unwrap();
        let frame = client.frame().unwrap();
        assert_eq!(
            (frame.header.op_code, frame.header.response_to),
            (OpCode::Reply, 77)
        );
        let body = bson::RawDocument::from_bytes(&frame.bytes[36..]).unwrap();
        assert_eq!(body.get_f64("ok").unwrap(), 1.0);
    }
    for (namespace, body) in [
        ("test.$cmd", doc! {"ping": 1}),
        ("test.c", doc! {"isMaster": 1}),
    ] {
        client.stream.write_all(&legacy(namespace, &body)).unwrap();
        let frame = client.frame().unwrap();
        let body = bson::RawDocument::from_bytes(&frame.bytes[36..]).unwrap();
        assert_eq!(body.get_i32("code").unwrap(), 352, "{body:?}");
    }
}

#[test]
fn a_stream_of_greetings_chains() {
    let site = Site::new();
    let mut client = site.client();
    let first = client.ok("admin", doc! {"hello": 1});
    let version = first.get_document("topologyVersion").unwrap().clone();
    let greeting = doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 30_i64};
    let id = client.send("admin", greeting, Flags::EXHAUST_ALLOWED);
    let mut answers = id;
    for _ in 0..3 {
        let (message, _) = client.receive().unwrap();
        assert_eq!(message.header.response_to, answers);
        assert!(message.flags.has(Flags::MORE_TO_COME));
        answers = message.header.request_id;
    }
}

#[test]
fn a_greeting_that_waits_is_answered_at_the_end() {
    let site = Site::new();
    let mut waiting = site.client();
    let first = waiting.ok("admin", doc! {"hello": 1});
    let version = first.get_document("topologyVersion").unwrap().clone();
    let counter = version.get_i64("counter").unwrap();
    let greeting = doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 50_000};
    waiting.send("admin", greeting, 0);
    let mut client = site.client();
    let waits = |client: &mut Client| {
        let status = client.ok("admin", doc! {"serverStatus": 1});
        let connections = status.get_document("connections").unwrap();
        connections.get_i32("awaitingTopologyChanges").unwrap() == 1
    };
    await_so("the greeting to wait", || waits(&mut client));
    client.ok("admin", doc! {"shutdown": 1});
    let (_, reply) = waiting.receive().unwrap();
    let now = reply
        .get_document("topologyVersion")
        .unwrap()
        .get_i64("counter")
        .unwrap();
    assert_eq!(now, counter + 1);
    assert!(waiting.receive().is_none(), "the connection is closed");
}

#[test]
fn waiting_needs_both_arguments_and_a_known_state() {
    let site = Site::new();
    let mut client = site.client();
    assert_eq!(
        client
            .fails("admin", doc! {"hello": 1, "maxAwaitTimeMS": 5})
            .0,
        31_368
    );
    let first = client.ok("admin", doc! {"hello": 1});
    let mut version = first.get_document("topologyVersion").unwrap().clone();
    let alone = doc! {"hello": 1, "topologyVersion": version.clone()};
    assert_eq!(client.fails("admin", alone).0, 31_368);
    version.insert("counter", 1_000_i64);
    let ahead = doc! {"hello": 1, "topologyVersion": version.clone(), "maxAwaitTimeMS": 5};
    assert_eq!(client.fails("admin", ahead).0, 31_382);
    version.insert("processId", bson::oid::ObjectId::from_bytes([1; 12]));
    let restarted = doc! {"hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 50_000};
    client.ok("admin", restarted);
}

#[test]
fn compression_is_agreed_on_in_the_order_of_the_client() {
    let site = Site::new();
    let mut client = site.client();
    let greeting = doc! {"hello": 1, "compression": ["zlib", "lz4", "snappy", "zlib"]};
    let reply = client.ok("admin", greeting);
    let agreed = reply.get_array("compression").unwrap();
    assert_eq!(agreed, &[Bson::from("zlib"), Bson::from("snappy")]);

    let command = RawDocumentBuf::try_from(&doc! {"buildInfo": 1, "$db": "admin"}).unwrap();
    let plain = wire::encode(wire::Parts::default(), &command, &[]);
    let bytes = wire::compress::compress(&plain, wire::Compressor::Zlib).unwrap();
    client.stream.write_all(&bytes).unwrap();
    let frame = client.frame().unwrap();
    assert_eq!(frame.header.op_code, OpCode::Compressed);
    let (_, used) = wire::compress::expand(frame).unwrap();
    assert_eq!(used, Some(wire::Compressor::Zlib));

    let status = client.ok("admin", doc! {"serverStatus": 1});
    let network = status.get_document("network").unwrap();
    let work = network.get_document("compression").unwrap();
    let figure = |name: &str, way: &str, bytes: &str| {
        let way = work.get_document(name).unwrap().get_document(way).unwrap();
        way.get_i64(bytes).unwrap()
    };
    let sent = i64::try_from(bytes.len()).unwrap();
    assert_eq!(figure("zlib", "decompressor", "bytesIn"), sent);
    let before = i64::try_from(plain.len()).unwrap();
    assert_eq!(figure("zlib", "decompressor", "bytesOut"), before);
    let (full, less) = (
        figure("zlib", "compressor", "bytesIn"),
        figure("zlib", "compressor", "bytesOut"),
    );
    assert!(0 < less && less < full, "{work}");
    assert_eq!(figure("snappy", "compressor", "bytesIn"), 0);
}
