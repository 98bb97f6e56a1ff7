//! Isolation between users: whatever a user sends, valid or not, no reply contains data of a
//! namespace that the user may not read, and no data change that the user may not write.
//!
//! A user keeps to the database `own`. Beside it are `foreign`, and the users and roles in `admin`.
//! What may not be read holds canaries; what may not be written is compared.

mod cases;
mod illegal;
mod streams;
mod tree;
mod twice;

use std::io::Write as _;

use bson::{Bson, Document, RawDocument, doc};
use wire::Parts;

use self::cases::Entry;
use self::tree::{Fields, Way};
use crate::auth::{as_user, guarded};
use crate::client::{Client, Site, batch};

/// A user of the tests.
pub(crate) struct Role {
    /// Its name.
    name: &'static str,
    /// Its roles, each with its database.
    roles: &'static [(&'static str, &'static str)],
    /// The canaries that the user may read.
    sees: &'static [&'static str],
    /// Whether it may write to `own.secret`.
    writes: bool,
}

const SAME: &str = "canary of the same database";
const OTHER: &str = "canary of another database";
const USER: &str = "canary of a user";
const CANARIES: [&str; 3] = [SAME, OTHER, USER];

const ROLES: &[Role] = &[
    Role {
        name: "none",
        roles: &[],
        sees: &[],
        writes: false,
    },
    Role {
        name: "one collection",
        roles: &[("one", "admin")],
        sees: &[],
        writes: false,
    },
    Role {
        name: "clusterMonitor",
        roles: &[("clusterMonitor", "admin")],
        sees: &[],
        writes: false,
    },
    Role {
        name: "userAdmin",
        roles: &[("userAdmin", "own")],
        sees: &[],
        writes: false,
    },
    Role {
        name: "read",
        roles: &[("read", "own")],
        sees: &[SAME],
        writes: false,
    },
    Role {
        name: "readAnyDatabase",
        roles: &[("readAnyDatabase", "admin")],
        sees: &[SAME, OTHER],
        writes: false,
    },
    Role {
        name: "dbAdmin",
        roles: &[("dbAdmin", "own")],
        sees: &[],
        writes: true,
    },
    Role {
        name: "dbAdmin who reads one collection",
        roles: &[("dbAdmin", "own"), ("reads one", "admin")],
        sees: &[],
        writes: true,
    },
    Role {
        name: "readWrite",
        roles: &[("readWrite", "own")],
        sees: &[SAME],
        writes: true,
    },
    Role {
        name: "dbOwner",
        roles: &[("dbOwner", "own")],
        sees: &[SAME],
        writes: true,
    },
];

/// A server with the users of the tests.
pub(crate) struct World {
    pub(crate) site: Site,
    root: Client,
    untouched: Document,
}

impl World {
    fn new() -> World {
        World::of(guarded())
    }

    fn of(site: Site) -> World {
        let mut root = as_user(&site, "admin", "root");
        let resource = doc! {"db": "own", "collection": "c"};
        let actions = [
            "find",
            "insert",
            "update",
            "remove",
            "createCollection",
            "dropCollection",
            "collMod",
            "collStats",
            "indexStats",
            "listIndexes",
            "createIndex",
            "dropIndex",
            "renameCollectionSameDB",
        ];
        for (name, actions) in [("one", &actions[..]), ("reads one", &["find"])] {
            let privilege = doc! {"resource": resource.clone(), "actions": actions};
            let role = doc! {"createRole": name, "privileges": [privilege], "roles": []};
            root.ok("admin", role);
        }
        for role in ROLES {
            let roles = role.roles.iter();
            let roles: Vec<Document> = roles
                .map(|(role, db)| doc! {"role": *role, "db": *db})
                .collect();
            root.ok(
                "people",
                doc! {"createUser": role.name, "pwd": "secret", "roles": roles},
            );
        }
        let data = doc! {"canary": USER};
        let victim = doc! {"createUser": "victim", "pwd": "x", "roles": [], "customData": &data};
        root.ok("foreign", victim);
        root.ok("admin", doc! {"updateUser": "root", "customData": data});
        let mut fill = |database: &str, collection: &str, canary: &str| {
            let documents = [doc! {"_id": 1, "k": 1, "v": canary}];
            root.ok(
                database,
                doc! {"insert": collection, "documents": documents},
            );
        };
        for collection in ["c", "d", "o", "secret"] {
            fill("foreign", collection, OTHER);
        }
        let mut world = World {
            untouched: Document::new(),
            site,
            root,
        };
        world.reset();
        world.untouched = world.state();
        world
    }

    pub(crate) fn user(&self, role: &Role) -> Client {
        as_user(&self.site, "people", role.name)
    }

    /// Restore the initial content of `own`.
    fn reset(&mut self) {
        let root = &mut self.root;
        for collection in ["c", "d", "o", "v", "w", "secret"] {
            root.run("own", doc! {"drop": collection});
        }
        let documents = [doc! {"_id": 1, "k": 1, "v": "own"}, doc! {"_id": 2, "k": 1}];
        root.ok("own", doc! {"insert": "c", "documents": &documents});
        root.ok("own", doc! {"insert": "d", "documents": &documents});
        root.ok("own", doc! {"create": "v", "viewOn": "c", "pipeline": []});
        let secret = doc! {"_id": 1, "k": 1, "v": SAME};
        root.ok("own", doc! {"insert": "secret", "documents": [secret]});
        root.run("own", doc! {"createUser": "spare", "pwd": "x", "roles": []});
        root.run(
            "own",
            doc! {"createRole": "spare", "privileges": [], "roles": []},
        );
    }

    /// The data that no test user may change.
    fn state(&mut self) -> Document {
        let root = &mut self.root;
        let hash = root.ok("foreign", doc! {"dbHash": 1});
        let names = |reply: Document| -> Vec<Bson> {
            let mut names: Vec<String> = batch(&reply)
                .iter()
                .map(|listed| listed.get_str("name").unwrap().to_owned())
                .collect();
            names.sort();
            names.into_iter().map(Bson::from).collect()
        };
        let list = doc! {"listCollections": 1, "nameOnly": true};
        let foreign = names(root.ok("foreign", list.clone()));
        let admin = names(root.ok("admin", list));
        let others = doc! {"db": {"$ne": "own"}};
        let of = |collection: &str| doc! {"find": collection, "filter": &others};
        let users = batch(&root.ok("admin", of("system.users")));
        let roles = batch(&root.ok("admin", of("system.roles")));
        doc! {
            "foreign": hash.get_document("collections").unwrap(),
            "uuids": hash.get_document("uuids").unwrap(),
            "names": foreign,
            "admin": admin,
            "users": users,
            "roles": roles,
        }
    }

    /// Check that nothing has changed that `role` may not write.
    #[track_caller]
    fn check(&mut self, role: &Role, what: &dyn std::fmt::Debug) {
        let now = self.state();
        for (part, before) in &self.untouched {
            // The content is long: report only the name of the part that changed.
            let same = now.get(part) == Some(before);
            assert!(same, "{part} changed by {}: {what:?}", role.name);
        }
        if !role.writes {
            let found = batch(&self.root.ok("own", doc! {"find": "secret"}));
            let expected = [doc! {"_id": 1, "k": 1, "v": SAME}];
            assert_eq!(found, expected, "{}: {what:?}", role.name);
        }
        // A user that may create users and roles in one database grants nothing in others.
        for collection in ["system.users", "system.roles"] {
            let find = doc! {"find": collection, "filter": {"db": "own"}};
            for found in batch(&self.root.ok("admin", find)) {
                let away = |named: &Bson| {
                    let db = named.as_document().unwrap().get_str("db").unwrap();
                    db != "own"
                };
                let roles = found.get_array("roles").unwrap();
                assert!(!roles.iter().any(away), "{}: {what:?}: {found}", role.name);
                for privilege in found.get_array("privileges").into_iter().flatten() {
                    let privilege = privilege.as_document().unwrap();
                    let resource = Bson::from(privilege.get_document("resource").unwrap());
                    assert!(!away(&resource), "{}: {what:?}: {found}", role.name);
                }
            }
        }
    }
}

/// Send bytes and return the reply; `None` if the server closed the connection.
pub(crate) fn send(
    client: &mut Client,
    body: &RawDocument,
    sequences: &[(&str, &[&RawDocument])],
) -> Option<Document> {
    let parts = Parts {
        request_id: 1,
        response_to: 0,
        flags: 0,
    };
    let bytes = wire::encode(parts, body, sequences);
    client.stream.write_all(&bytes).unwrap();
    client.receive().map(|(_, reply)| reply)
}

/// Check that a reply contains no canary that `role` may not read.
#[track_caller]
fn no_canary(role: &Role, reply: &Document, what: &dyn std::fmt::Debug) {
    let shown = reply.to_string();
    for canary in CANARIES {
        if !role.sees.contains(&canary) {
            assert!(!shown.contains(canary), "{}: {what:?}: {reply}", role.name);
        }
    }
}

/// Replaces the names in a command.
type Rename = fn(&str) -> String;

/// The same name in another database.
fn to_foreign(text: &str) -> String {
    match (text, text.strip_prefix("own.")) {
        ("own", _) => "foreign".to_owned(),
        (_, Some(rest)) => format!("foreign.{rest}"),
        _ => text.to_owned(),
    }
}

/// Another collection of the same database.
fn to_secret(text: &str) -> String {
    match text {
        "c" | "d" | "o" | "w" => "secret".to_owned(),
        "own.c" | "own.d" => "own.secret".to_owned(),
        _ => text.to_owned(),
    }
}

/// The collection of users.
fn to_users(text: &str) -> String {
    let renamed = match text {
        "own" => "admin",
        "own.$cmd" => "admin.$cmd",
        "own.c" | "own.d" => "admin.system.users",
        "c" | "d" | "o" | "w" => "system.users",
        "read" | "shown" => "root",
        _ => text,
    };
    renamed.to_owned()
}

const RENAMES: [Rename; 3] = [to_foreign, to_secret, to_users];

/// A command with a field that names something else: instead of the field, before it and after it.
fn variants(legal: &Fields, way: &Way, rename: Rename) -> Vec<Fields> {
    let mut one = legal.clone();
    let (place, at) = tree::at(&mut one, way);
    let (name, value) = place[at].clone();
    let other = value.renamed(&rename);
    if other == value {
        return Vec::new();
    }
    let with = |change: &dyn Fn(&mut Fields, usize)| {
        let mut fields = legal.clone();
        let (place, at) = tree::at(&mut fields, way);
        change(place, at);
        fields
    };
    let field = (name, other);
    vec![
        with(&|place, at| place[at] = field.clone()),
        with(&|place, at| place.insert(at, field.clone())),
        with(&|place, at| place.insert(at + 1, field.clone())),
    ]
}

/// All commands that the tests send: those of the table, and those with stages.
fn all(root: &mut Client) -> Vec<Document> {
    let list = root.ok("admin", doc! {"listCommands": 1});
    let mut all = Vec::new();
    for name in list.get_document("commands").unwrap().keys() {
        match cases::command(name).unwrap_or_else(|| panic!("{name} has no entry")) {
            Entry::Of(listed) => all.extend(listed),
            Entry::Name => {
                for database in ["own", "admin"] {
                    let mut command = Document::new();
                    command.insert(name, 1);
                    command.insert("$db", database);
                    all.push(command);
                }
            }
            Entry::Never(reason) => assert!(!reason.is_empty()),
        }
    }
    for name in query::vocabulary::stages() {
        let specs = cases::stage(name).unwrap_or_else(|| panic!("{name} has no entry"));
        all.extend(specs.iter().flat_map(|spec| cases::of_stage(name, spec)));
    }
    all
}

/// Send every command as one user, with each field that names something, at any depth, given twice
/// in both orders, and replaced.
fn as_role(role: &Role) {
    let mut world = World::new();
    let mut user = world.user(role);
    let (mut sent, mut twice) = (0, 0);
    for legal in all(&mut world.root) {
        let legal = tree::fields(&legal);
        let mut done = false;
        for way in tree::ways(&legal) {
            for rename in RENAMES {
                for (number, variant) in variants(&legal, &way, rename).into_iter().enumerate() {
                    let reply = send(&mut user, &tree::raw(&variant), &[]).expect("a reply");
                    no_canary(role, &reply, &variant);
                    sent += 1;
                    let ok = reply.get_f64("ok").unwrap() > 0.0;
                    done |= ok;
                    if number > 0 {
                        twice += 1;
                        assert!(!ok, "{}: {variant:?}: {reply}", role.name);
                    }
                }
            }
        }
        let reply = send(&mut user, &tree::raw(&legal), &[]).expect("a reply");
        no_canary(role, &reply, &legal);
        done |= reply.get_f64("ok").unwrap() > 0.0;
        world.check(role, &legal);
        if done {
            world.reset();
        }
    }
    println!(
        "{}: {sent} commands, {twice} with a field given twice",
        role.name
    );
    assert!(500 < twice, "{twice}");
}

macro_rules! roles {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                let role = ROLES.iter().find(|role| role.name == $name).unwrap();
                as_role(role);
            }
        )*

        #[test]
        fn every_role_is_tested() {
            let tested = [$($name),*];
            let names: Vec<&str> = ROLES.iter().map(|role| role.name).collect();
            assert_eq!(names, tested);
        }
    };
}

roles! {
    nobody_reaches_what_is_foreign: "none",
    one_collection_is_no_other: "one collection",
    a_monitor_sees_no_data: "clusterMonitor",
    who_makes_users_sees_no_data: "userAdmin",
    a_reader_reads_no_other_database: "read",
    a_reader_of_all_reads_no_users: "readAnyDatabase",
    an_administrator_sees_no_data: "dbAdmin",
    an_administrator_does_not_come_to_read: "dbAdmin who reads one collection",
    a_writer_stays_in_their_database: "readWrite",
    an_owner_stays_in_their_database: "dbOwner",
}

/// Names could resolve to another database than the one that was checked: nested pipelines, and
/// pipelines of views, name collections of the database that they run on.
/// A4: what is authorized is what is read.
#[test]
fn nested_pipelines_stay_in_the_database_they_read() {
    let mut world = World::new();
    let role = ROLES.iter().find(|role| role.name == "dbOwner").unwrap();
    let mut user = world.user(role);
    let root = &mut world.root;
    root.ok("own", doc! {"drop": "secret"});
    let view = doc! {"create": "w", "viewOn": "c", "pipeline": [{"$unionWith": "secret"}]};
    user.ok("own", view);
    let documents = doc! {"$documents": [{"k": 1}]};
    for lookup in [
        doc! {"from": {"db": "own", "coll": "c"}, "as": "x", "pipeline": [
            {"$unionWith": "secret"},
        ]},
        doc! {"from": {"db": "own", "coll": "c"}, "as": "x", "pipeline": [
            {"$facet": {"f": [{"$lookup": {"from": "secret", "pipeline": [], "as": "y"}}]}},
        ]},
        doc! {"from": {"db": "own", "coll": "w"}, "as": "x", "pipeline": []},
    ] {
        let pipeline = [documents.clone(), doc! {"$lookup": &lookup}];
        let aggregate = doc! {"aggregate": 1, "pipeline": &pipeline, "cursor": {}};
        let reply = user.ok("foreign", aggregate);
        no_canary(role, &reply, &lookup);
        let found = batch(&reply)[0].get_array("x").unwrap().len();
        assert!(found > 0, "{reply}");
    }
    // A stage that reports statistics also concerns the collection that it reads.
    let stats = doc! {"from": {"db": "own", "coll": "c"}, "as": "x", "pipeline": [
        {"$collStats": {"count": {}}},
    ]};
    let pipeline = [documents, doc! {"$lookup": stats}];
    let aggregate = doc! {"aggregate": 1, "pipeline": &pipeline, "cursor": {}};
    let reply = user.ok("foreign", aggregate);
    let stats = batch(&reply)[0].get_array("x").unwrap()[0].clone();
    let stats = stats.as_document().unwrap();
    assert_eq!(stats.get_str("ns").unwrap(), "own.c", "{reply}");
    assert_eq!(stats.get("count").and_then(number), Some(2), "{reply}");
}

fn number(value: &Bson) -> Option<i64> {
    value.as_i64().or_else(|| value.as_i32().map(i64::from))
}
