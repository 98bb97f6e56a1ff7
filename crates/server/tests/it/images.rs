//! Pre-images of change streams over the wire, and the cluster parameter of their age.

use bson::{Bson, Document, Timestamp, doc};

use crate::auth::as_user;
use crate::client::{Client, Site, await_so, batch};
use crate::oplog::{SIZE, with_oplog};

const ILLEGAL_OPERATION: i32 = 20;
const NO_SUCH_KEY: i32 = 4;

fn images(client: &mut Client) -> Vec<Document> {
    batch(&client.ok("config", doc! {"find": "system.preimages"}))
}

fn expiry(seconds: impl Into<Bson>) -> Document {
    let images = doc! {"expireAfterSeconds": seconds.into()};
    doc! {"setClusterParameter": {"changeStreamOptions": {"preAndPostImages": images}}}
}

fn shown(client: &mut Client, asked: impl Into<Bson>) -> Document {
    let reply = client.ok("admin", doc! {"getClusterParameter": asked.into()});
    let all = reply.get_array("clusterParameters").unwrap();
    assert_eq!(all.len(), 1);
    all[0].as_document().unwrap().clone()
}

fn seconds(parameter: &Document) -> &Bson {
    let images = parameter.get_document("preAndPostImages").unwrap();
    images.get("expireAfterSeconds").unwrap()
}

#[test]
fn a_stream_shows_the_documents_before_and_after_a_change() {
    let site = with_oplog();
    let mut client = site.client();
    let enabled = doc! {"enabled": true};
    client.ok(
        "test",
        doc! {"create": "c", "changeStreamPreAndPostImages": enabled.clone()},
    );
    let listed = batch(&client.ok("test", doc! {"listCollections": 1}));
    let options = listed[0].get_document("options").unwrap();
    assert_eq!(
        options
            .get_document("changeStreamPreAndPostImages")
            .unwrap(),
        &enabled
    );
    client.ok(
        "test",
        doc! {"insert": "c", "documents": [{"_id": 1, "a": 1}]},
    );
    let stage = doc! {"fullDocument": "required", "fullDocumentBeforeChange": "required"};
    let pipeline = [doc! {"$changeStream": stage}];
    let watch = doc! {"aggregate": "c", "pipeline": pipeline, "cursor": {}};
    let opened = client.ok("test", watch);
    for a in [2, 3] {
        let change = doc! {"q": {}, "u": {"$set": {"a": a}}};
        client.ok("test", doc! {"update": "c", "updates": [change]});
    }
    let cursor = opened.get_document("cursor").unwrap();
    let more = doc! {"getMore": cursor.get_i64("id").unwrap(), "collection": "c"};
    let events = batch(&client.ok("test", more.clone()));
    let field = |name: &str| -> Vec<i32> {
        let of = |event: &Document| event.get_document(name).unwrap().get_i32("a");
        events.iter().map(|event| of(event).unwrap()).collect()
    };
    assert_eq!(field("fullDocumentBeforeChange"), [1, 2]);
    assert_eq!(field("fullDocument"), [2, 3]);
    assert_eq!(images(&mut client).len(), 2);
    let modified = doc! {"collMod": "c", "changeStreamPreAndPostImages": {"enabled": false}};
    client.ok("test", modified);
    client.ok(
        "test",
        doc! {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
    );
    assert_eq!(client.fails("test", more).0, 47);
    let hashed = client.ok("config", doc! {"dbHash": 1});
    let hashed = hashed.get_document("collections").unwrap();
    assert!(
        !hashed.contains_key("system.preimages"),
        "members differ in it"
    );
    for refused in [
        doc! {"drop": "system.preimages"},
        doc! {"insert": "system.preimages", "documents": [{"_id": 1}]},
        doc! {"delete": "system.preimages", "deletes": [{"q": {}, "limit": 0}]},
        doc! {"createIndexes": "system.preimages", "indexes": [{"key": {"a": 1}, "name": "a"}]},
    ] {
        let reply = client.run("config", refused.clone());
        let failed = reply.get_f64("ok").unwrap() == 0.0 || reply.contains_key("writeErrors");
        assert!(failed, "{refused}: {reply}");
    }
    assert_eq!(images(&mut client).len(), 2);
}

#[test]
fn the_age_of_pre_images_is_a_parameter_of_the_cluster() {
    let site = with_oplog();
    let mut client = site.client();
    let zero = Timestamp {
        time: 0,
        increment: 0,
    };
    let unset = shown(&mut client, "changeStreamOptions");
    assert_eq!(seconds(&unset), &Bson::from("off"));
    assert_eq!(unset.get_timestamp("clusterParameterTime").unwrap(), zero);
    client.ok("admin", expiry(100));
    let set = shown(&mut client, "*");
    assert_eq!(seconds(&set), &Bson::Int64(100));
    assert!(zero < set.get_timestamp("clusterParameterTime").unwrap());
    for (wrong, code) in [
        (expiry(0), 2),
        (expiry(-5), 2),
        (expiry("on"), 2),
        (expiry(doc! {}), 14),
        (doc! {"setClusterParameter": {}}, 72),
        (doc! {"setClusterParameter": 1}, 14),
        (doc! {"setClusterParameter": {"other": {}}}, NO_SUCH_KEY),
        (doc! {"setClusterParameter": {"changeStreamOptions": 1}}, 14),
        (
            doc! {"setClusterParameter": {"changeStreamOptions": {"a": 1}}},
            40_415,
        ),
        (
            doc! {"setClusterParameter": {"changeStreamOptions": {"preAndPostImages": {}}}},
            40_414,
        ),
        (doc! {"getClusterParameter": "other"}, NO_SUCH_KEY),
        (
            doc! {"getClusterParameter": ["changeStreamOptions", "other"]},
            NO_SUCH_KEY,
        ),
        (doc! {"getClusterParameter": []}, 2),
        (doc! {"getClusterParameter": 1}, 14),
    ] {
        assert_eq!(client.fails("admin", wrong.clone()).0, code, "{wrong}");
    }
    drop(client);
    let folder = site.stop();
    let site = Site::try_in(folder, |config| config.oplog_bytes = Some(SIZE)).unwrap();
    let mut client = site.client();
    let kept = shown(&mut client, vec![Bson::from("changeStreamOptions")]);
    assert_eq!(kept, set, "over a restart");
    client.ok(
        "test",
        doc! {"create": "c", "changeStreamPreAndPostImages": {"enabled": true}},
    );
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    client.ok(
        "test",
        doc! {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
    );
    assert_eq!(images(&mut client).len(), 1);
    client.ok("admin", expiry(1));
    await_so("the pre-image expires", || images(&mut client).is_empty());
    client.ok("admin", expiry("off"));
    assert_eq!(seconds(&shown(&mut client, "*")), &Bson::from("off"));
}

#[test]
fn a_standalone_server_has_no_cluster_parameters() {
    let site = Site::with(|config| config.replica_set = None);
    let mut client = site.client();
    for refused in [expiry(1), doc! {"getClusterParameter": "*"}] {
        assert_eq!(client.fails("admin", refused).0, ILLEGAL_OPERATION);
    }
}

#[test]
fn only_managers_of_the_cluster_set_its_parameters() {
    let site = Site::with(|config| {
        config.oplog_bytes = Some(SIZE);
        config.authorization = true;
    });
    let root = doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]};
    site.client().ok("admin", root);
    let mut admin = as_user(&site, "admin", "root");
    for (role, reads, sets) in [
        ("clusterManager", true, true),
        ("clusterMonitor", true, false),
        ("readWriteAnyDatabase", false, false),
    ] {
        admin.ok(
            "admin",
            doc! {"createUser": role, "pwd": "secret", "roles": [role]},
        );
        let mut client = as_user(&site, "admin", role);
        let mut may = |command: Document| {
            let reply = client.run("admin", command);
            reply.get_i32("code").ok() != Some(13)
        };
        assert_eq!(may(doc! {"getClusterParameter": "*"}), reads, "{role}");
        assert_eq!(may(expiry(1_000)), sets, "{role}");
    }
}
