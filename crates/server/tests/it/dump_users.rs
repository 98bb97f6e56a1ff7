//! The command sequences by which mongodump and mongorestore copy users and roles.

use bson::{Bson, Document, doc};

use crate::auth::{as_user, guarded};
use crate::client::{Client, Site, batch};

const UNAUTHORIZED: i32 = 13;

/// A server with one user for the dump and one for the restore, and a custom role in `test`.
fn source() -> Site {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let user = |name: &str| doc! {"createUser": name, "pwd": "secret", "roles": [name]};
    root.ok("admin", user("backup"));
    root.ok("admin", user("restore"));
    let resource = doc! {"db": "test", "collection": "c"};
    root.ok(
        "test",
        doc! {
            "createRole": "own", "roles": [],
            "privileges": [{"resource": resource, "actions": ["find", "insert"]}],
        },
    );
    root.ok(
        "test",
        doc! {"createUser": "keeper", "pwd": "secret", "roles": ["own"]},
    );
    site
}

/// The query of both tools before they access users: the version, as an int32.
fn schema(client: &mut Client) -> i32 {
    let reply = client.ok("admin", doc! {"getParameter": 1, "authSchemaVersion": 1});
    reply.get_i32("authSchemaVersion").unwrap()
}

/// Read a collection of `admin` as mongodump does: indexes, number of documents, documents.
fn dumped(client: &mut Client, collection: &str, filter: Document) -> Vec<Document> {
    let listed = client.ok(
        "admin",
        doc! {"listCollections": 1, "filter": {"name": collection}, "cursor": {}},
    );
    assert_eq!(batch(&listed).len(), 1, "{listed}");
    client.ok("admin", doc! {"listIndexes": collection, "cursor": {}});
    client.ok("admin", doc! {"count": collection, "query": filter.clone()});
    batch(&client.ok("admin", doc! {"find": collection, "filter": filter}))
}

/// `mongodump --db test --dumpDbUsersAndRoles`: the users, the roles and the versions.
fn dump(site: &Site) -> (Vec<Document>, Vec<Document>, Vec<Document>) {
    let mut client = as_user(site, "admin", "backup");
    assert_eq!(schema(&mut client), 5);
    let count = doc! {
        "aggregate": "system.version", "cursor": {},
        "pipeline": [{"$match": {"_id": "authSchema"}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}],
    };
    assert_eq!(batch(&client.ok("admin", count)), [doc! {"_id": 1, "n": 1}]);
    let of_test = doc! {"db": "test"};
    (
        dumped(&mut client, "system.users", of_test.clone()),
        dumped(&mut client, "system.roles", of_test),
        dumped(&mut client, "system.version", doc! {}),
    )
}

/// Fill a temporary collection as mongorestore does, which first drops one left by an earlier run.
fn fill(client: &mut Client, collection: &str, documents: &[Document]) {
    let left = client.ok(
        "admin",
        doc! {"listCollections": 1, "filter": {"name": collection}, "cursor": {}},
    );
    if !batch(&left).is_empty() {
        client.ok("admin", doc! {"drop": collection});
    }
    let documents: Vec<Bson> = documents.iter().cloned().map(Bson::Document).collect();
    let insert = doc! {
        "insert": collection, "documents": documents, "ordered": false,
        "bypassDocumentValidation": true, "writeConcern": {"w": "majority"},
    };
    client.ok("admin", insert);
}

fn merge(drop: bool) -> Document {
    doc! {
        "_mergeAuthzCollections": 1,
        "tempUsersCollection": "admin.tempusers", "tempRolesCollection": "admin.temproles",
        "drop": drop, "db": "test", "writeConcern": {"w": "majority"},
    }
}

#[test]
fn the_version_collection_names_features_and_the_form_of_users() {
    let site = Site::new();
    let expected = [
        doc! {"_id": "featureCompatibilityVersion", "version": "8.0"},
        doc! {"_id": "authSchema", "currentVersion": 5},
    ];
    let versions =
        |client: &mut Client| batch(&client.ok("admin", doc! {"find": "system.version"}));
    assert_eq!(versions(&mut site.client()), expected);
    // A start that finds another version in the store corrects it and leaves other documents
    // unchanged.
    let change = doc! {
        "update": "system.version",
        "updates": [
            {"q": {"_id": "authSchema"}, "u": {"$set": {"currentVersion": 3}}},
            {"q": {"_id": "x"}, "u": {"_id": "x"}, "upsert": true},
        ],
    };
    site.client().ok("admin", change);
    let site = Site::try_in(site.stop(), |_| {}).unwrap();
    let after = versions(&mut site.client());
    assert_eq!(after[..2], expected);
    assert_eq!(after[2..], [doc! {"_id": "x"}]);
}

#[test]
fn users_and_roles_of_a_database_survive_dump_and_restore() {
    let from = source();
    let (users, roles, versions) = dump(&from);
    let names: Vec<&str> = users.iter().map(|u| u.get_str("_id").unwrap()).collect();
    assert_eq!(names, ["test.reader", "test.writer", "test.keeper"]);
    assert_eq!(roles.len(), 1);
    let schema_of_dump = versions
        .iter()
        .find(|v| v.get_str("_id").unwrap() == "authSchema");
    assert_eq!(
        schema_of_dump.unwrap().get_i32("currentVersion").unwrap(),
        5
    );

    // Restore into another server, whose user for restores has no other privileges.
    let to = guarded();
    let mut root = as_user(&to, "admin", "root");
    root.ok("test", doc! {"dropUser": "writer"});
    root.ok(
        "admin",
        doc! {"createUser": "restore", "pwd": "secret", "roles": ["restore"]},
    );
    root.ok(
        "test",
        doc! {"createUser": "later", "pwd": "secret", "roles": ["read"]},
    );
    let mut client = as_user(&to, "admin", "restore");
    assert_eq!(schema(&mut client), 5);
    for drop in [false, true] {
        fill(&mut client, "tempusers", &users);
        fill(&mut client, "temproles", &roles);
        client.ok("admin", merge(drop));
        client.ok("admin", doc! {"drop": "tempusers"});
        client.ok("admin", doc! {"drop": "temproles"});
        let shown = root.ok("test", doc! {"usersInfo": 1});
        // Without `drop`, users that are not in the dump remain.
        let expected = if drop { 3 } else { 4 };
        let shown = shown.get_array("users").unwrap();
        assert_eq!(shown.len(), expected, "{shown:?}");
    }
    // Passwords and the role were restored, and the role grants its privileges.
    let mut keeper = as_user(&to, "test", "keeper");
    keeper.ok("test", doc! {"insert": "c", "documents": [{"_id": 9}]});
    let update = doc! {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]};
    assert_eq!(keeper.fails("test", update).0, UNAUTHORIZED);
    as_user(&to, "test", "writer");
    // Users of other databases are unchanged.
    as_user(&to, "other", "stranger");
}

#[test]
fn who_may_only_read_a_database_dumps_no_users() {
    let site = source();
    let mut reader = as_user(&site, "test", "reader");
    for collection in ["system.users", "system.roles", "system.version"] {
        let find = doc! {"find": collection};
        assert_eq!(reader.fails("admin", find).0, UNAUTHORIZED, "{collection}");
    }
    assert_eq!(reader.fails("admin", merge(true)).0, UNAUTHORIZED);
}
