//! Faults set by failpoints.

use bson::{Document, doc};

use crate::client::{Client, Site};

fn order(client: &mut Client, mode: impl Into<bson::Bson>, data: Document) -> Document {
    client.ok(
        "admin",
        doc! {"configureFailPoint": "failCommand", "mode": mode, "data": data},
    )
}

#[test]
fn a_command_fails_as_often_as_ordered() {
    let site = Site::new();
    let mut client = site.client();
    let data = doc! {"failCommands": ["ping"], "errorCode": 91, "errorLabels": ["Made"]};
    order(&mut client, doc! {"times": 2}, data);
    client.ok("admin", doc! {"hello": 1});
    for _ in 0..2 {
        let reply = client.run("admin", doc! {"ping": 1});
        assert_eq!(reply.get_i32("code").unwrap(), 91);
        assert_eq!(reply.get_array("errorLabels").unwrap(), &["Made".into()]);
        // `topologyVersion` would make drivers believe that they already know of the change.
        assert!(!reply.contains_key("topologyVersion"));
    }
    client.ok("admin", doc! {"ping": 1});
}

#[test]
fn a_fault_hits_a_command_by_each_of_its_names_and_can_close_the_connection() {
    let site = Site::new();
    let mut client = site.client();
    let data = doc! {"failCommands": ["ismaster"], "closeConnection": true};
    order(&mut client, doc! {"times": 2}, data);
    client.ok("admin", doc! {"hello": 1});
    for name in ["ismaster", "isMaster"] {
        let mut other = site.client();
        other.send("admin", doc! {name: 1}, 0);
        assert!(other.receive().is_none(), "{name}");
    }
    for (ordered, sent) in [
        ("findAndModify", "findandmodify"),
        ("findandmodify", "findAndModify"),
        ("dbstats", "dbStats"),
    ] {
        let data = doc! {"failCommands": [ordered], "errorCode": 91};
        order(&mut client, doc! {"times": 1}, data);
        assert_eq!(client.fails("test", doc! {sent: "c"}).0, 91, "{ordered}");
    }
    let data = doc! {"failCommands": ["isMaster"], "closeConnection": true};
    order(&mut client, "alwaysOn", data);
    let mut other = site.client();
    other.send("admin", doc! {"ismaster": 1}, 0);
    assert!(other.receive().is_none());
    let off = client.ok(
        "admin",
        doc! {"configureFailPoint": "failCommand", "mode": "off"},
    );
    assert_eq!(off.get_i64("count").unwrap(), 1);
    client.ok("admin", doc! {"ismaster": 1});
}

#[test]
fn a_fault_can_be_for_one_application() {
    let site = Site::new();
    let mut client = site.client();
    let data = doc! {"failCommands": ["ping"], "errorCode": 6, "appName": "other"};
    order(&mut client, "alwaysOn", data);
    client.ok("admin", doc! {"ping": 1});
    let mut other = site.client();
    other.ok(
        "admin",
        doc! {"hello": 1, "client": {"application": {"name": "other"}}},
    );
    assert_eq!(other.fails("admin", doc! {"ping": 1}).0, 6);
}

#[test]
fn a_fault_for_one_application_hits_the_greeting_that_names_it() {
    let site = Site::new();
    let mut client = site.client();
    let data = doc! {"failCommands": ["hello"], "closeConnection": true, "appName": "other"};
    order(&mut client, "alwaysOn", data);
    client.ok("admin", doc! {"hello": 1});
    let mut other = site.client();
    let greeting = doc! {"hello": 1, "client": {"application": {"name": "other"}}};
    other.send("admin", greeting, 0);
    assert!(other.receive().is_none());
}

#[test]
fn faults_are_for_tests_only() {
    let site = Site::with(|config| config.parameters.clear());
    let command = doc! {"configureFailPoint": "failCommand", "mode": "off"};
    assert_eq!(site.client().fails("admin", command).0, 59);
}

fn write(id: i32, number: i64) -> Document {
    let uuid = bson::Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    doc! {
        "insert": "c", "documents": [{"_id": id}], "lsid": {"id": uuid},
        "txnNumber": number,
    }
}

#[test]
fn the_answer_to_a_retryable_write_can_be_lost() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "admin",
        doc! {"configureFailPoint": "onPrimaryTransactionalWrite", "mode": {"times": 2}},
    );
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 0}]});
    let mut other = site.client();
    other.send("test", write(1, 1), 0);
    assert!(other.receive().is_none());
    let again = client.ok("test", write(1, 1));
    assert_eq!(again.get_array("retriedStmtIds").unwrap(), &[0.into()]);
    let count = client.ok("test", doc! {"count": "c"});
    assert_eq!(count.get_i32("n").unwrap(), 2);
    let mut other = site.client();
    other.send("test", write(2, 2), 0);
    assert!(
        other.receive().is_none(),
        "what is sent again is not counted"
    );
}

#[test]
fn a_retryable_write_can_fail_before_it_is_done() {
    let site = Site::new();
    let mut client = site.client();
    client.ok(
        "admin",
        doc! {
            "configureFailPoint": "onPrimaryTransactionalWrite", "mode": {"times": 1},
            "data": {"failBeforeCommitExceptionCode": 1},
        },
    );
    let mut other = site.client();
    other.send("test", write(1, 1), 0);
    assert!(other.receive().is_none());
    let again = client.ok("test", write(1, 1));
    assert_eq!(again.get_i32("n").unwrap(), 1);
    assert!(!again.contains_key("retriedStmtIds"));
}
