//! Faults that tests order.

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
        assert!(reply.contains_key("topologyVersion"));
    }
    client.ok("admin", doc! {"ping": 1});
}

#[test]
fn aliases_are_told_apart_and_a_connection_can_be_closed() {
    let site = Site::new();
    let mut client = site.client();
    let data = doc! {"failCommands": ["ismaster"], "closeConnection": true};
    order(&mut client, "alwaysOn", data);
    client.ok("admin", doc! {"hello": 1});
    client.ok("admin", doc! {"isMaster": 1});
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
fn faults_are_for_tests_only() {
    let site = Site::with(|config| config.parameters.clear());
    let command = doc! {"configureFailPoint": "failCommand", "mode": "off"};
    assert_eq!(site.client().fails("admin", command).0, 59);
}
