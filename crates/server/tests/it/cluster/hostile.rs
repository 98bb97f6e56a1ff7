//! Messages between members from clients that are none, and malformed ones.

use bson::{Bson, Document, Timestamp, doc};

use super::{Set, insert};

fn heartbeat(set: &str, from: i64, term: i64) -> Document {
    let zero = || doc! {"ts": Timestamp { time: 0, increment: 0 }, "t": 0_i64};
    doc! {
        "replSetMessage": 1, "set": set, "from": from, "to": 0_i64, "term": term,
        "heartbeat": {
            "last": zero(), "durable": zero(), "commit": zero(), "applied": zero(),
            "config": {"term": 1_i64, "version": 1_i64}, "primary": true, "state": 1,
        },
    }
}

#[test]
fn malformed_messages_of_members_are_refused_and_change_nothing() {
    let set = Set::started(1);
    let mut client = set.client(0);
    client.ok("test", insert(1));
    let whole = heartbeat("rs0", 1, 1);
    let values = [
        Bson::Null,
        Bson::Int64(-1),
        Bson::Int64(i64::MAX),
        Bson::Double(f64::INFINITY),
        Bson::String("x".repeat(10_000)),
        Bson::Array(vec![Bson::Int32(1); 1_000]),
        Bson::Document(doc! {"heartbeat": {"heartbeat": {}}}),
    ];
    let mut refused = 0;
    for name in whole.keys().skip(1) {
        for value in &values {
            let mut command = whole.clone();
            command.insert(name, value.clone());
            let reply = client.run("admin", command);
            refused += i32::from(reply.get_f64("ok").unwrap() == 0.0);
        }
    }
    assert!(20 < refused, "{refused}");
    for fetch in [
        doc! {"replSetFetch": 1},
        doc! {"replSetFetch": 1, "set": "rs0", "from": 1, "to": 0, "term": 1, "after": 1},
        doc! {"replSetFetch": 1, "set": "rs0", "from": 300, "to": 0, "term": 1,
        "after": {"ts": Timestamp { time: 0, increment: 0 }, "t": 0}},
        // A member that the set does not have.
        doc! {"replSetFetch": 1, "set": "rs0", "from": 7, "to": 0, "term": 1,
        "after": {"ts": Timestamp { time: 0, increment: 0 }, "t": 0}},
    ] {
        client.fails("admin", fetch);
    }
    // A well-formed message of another set has no effect, whatever its term.
    client.ok("admin", heartbeat("other", 1, 1_000));
    client.ok("test", insert(2));
    let status = client.ok("admin", doc! {"replSetGetStatus": 1});
    assert!(status.get_i64("term").unwrap() < 1_000, "{status}");
}

#[test]
fn the_only_member_of_its_own_set_takes_no_messages() {
    let site = crate::client::Site::new();
    let mut client = site.client();
    assert_eq!(client.fails("admin", heartbeat("rs0", 1, 1)).0, 94);
    let probe = doc! {"replSetProbe": 1, "set": "rs0"};
    assert_eq!(client.fails("admin", probe).0, 94);
    for command in ["replSetFreeze", "replSetMaintenance", "replSetStepUp"] {
        assert_eq!(client.fails("admin", doc! {command: 1}).0, 20, "{command}");
    }
}
