//! Sessions, and which users may end them.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use sha2::{Digest as _, Sha256};

use crate::auth::{as_user, guarded};
use crate::client::{Client, Site, batch};

const UNAUTHORIZED: i32 = 13;
const CURSOR_NOT_FOUND: i32 = 43;
const UNKNOWN_FIELD: i32 = 40_415;

fn lsid(number: u8) -> Document {
    let bytes = vec![number; 16];
    let subtype = BinarySubtype::Uuid;
    doc! {"id": Binary { subtype, bytes }}
}

/// The digest of a user in session ids.
fn uid(user: &str) -> Bson {
    Bson::Binary(Binary {
        subtype: BinarySubtype::Generic,
        bytes: Sha256::digest(user.as_bytes()).to_vec(),
    })
}

/// A client with a cursor in a session.
struct Reader {
    client: Client,
    session: Document,
    cursor: i64,
}

impl Reader {
    fn new(client: Client, number: u8) -> Reader {
        let mut reader = Reader {
            client,
            session: lsid(number),
            cursor: 0,
        };
        reader.open();
        reader
    }

    fn open(&mut self) {
        let find = doc! {"find": "c", "batchSize": 1, "lsid": self.session.clone()};
        let reply = self.client.ok("test", find);
        let cursor = reply.get_document("cursor").unwrap();
        self.cursor = cursor.get_i64("id").unwrap();
        assert_ne!(self.cursor, 0);
    }

    /// Whether the session was ended; if so, start a new one.
    fn ended(&mut self) -> bool {
        let more = doc! {
            "getMore": self.cursor, "collection": "c", "batchSize": 1,
            "lsid": self.session.clone(),
        };
        let reply = self.client.run("test", more);
        let code = reply.get_i32("code").ok();
        assert!(matches!(code, None | Some(CURSOR_NOT_FOUND)), "{reply}");
        if code.is_some() {
            self.open();
        }
        code.is_some()
    }
}

/// Insert documents for the cursors.
fn set_up(client: &mut Client) {
    let documents: Vec<Document> = (10..100).map(|n| doc! {"_id": n}).collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
}

#[test]
fn sessions_of_some_users_end_and_those_of_others_continue() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    set_up(&mut root);
    let mut reader = Reader::new(as_user(&site, "test", "reader"), 1);
    let mut writer = Reader::new(as_user(&site, "test", "writer"), 2);
    let mut ended = |root: &mut Client, command: Document| {
        root.ok("admin", command);
        (reader.ended(), writer.ended())
    };
    let of = |user: &str| doc! {"killAllSessions": [{"user": user, "db": "test"}]};
    assert_eq!(ended(&mut root, of("reader")), (true, false));
    assert_eq!(ended(&mut root, of("writer")), (false, true));
    assert_eq!(ended(&mut root, of("nobody")), (false, false));
    let all = doc! {"killAllSessions": []};
    assert_eq!(ended(&mut root, all), (true, true));
    let by = |pattern: Document| doc! {"killAllSessionsByPattern": [pattern]};
    assert_eq!(
        ended(&mut root, by(doc! {"uid": uid("writer@test")})),
        (false, true)
    );
    assert_eq!(ended(&mut root, by(doc! {"lsid": lsid(1)})), (true, false));
    let of_other = doc! {"lsid": lsid(1), "uid": uid("writer@test")};
    assert_eq!(ended(&mut root, by(of_other)), (false, false));
    let all = doc! {"killAllSessionsByPattern": []};
    assert_eq!(ended(&mut root, all), (true, true));

    // Naming users and roles requires a privilege that root does not have.
    let users = by(doc! {"users": [{"user": "reader", "db": "test"}]});
    let roles = by(doc! {"roles": [{"role": "readWrite", "db": "test"}]});
    assert_eq!(root.fails("admin", users.clone()).0, UNAUTHORIZED);
    assert_eq!(root.fails("admin", roles.clone()).0, UNAUTHORIZED);
    let actions = ["killAnySession", "impersonate"];
    let privilege = doc! {"resource": {"cluster": true}, "actions": actions};
    root.ok(
        "admin",
        doc! {"createRole": "killer", "privileges": [privilege], "roles": []},
    );
    let killer = doc! {"createUser": "killer", "pwd": "secret", "roles": ["killer"]};
    root.ok("admin", killer);
    let mut killer = as_user(&site, "admin", "killer");
    assert_eq!(ended(&mut killer, users), (true, false));
    assert_eq!(ended(&mut killer, roles), (false, true));
}

#[test]
fn users_end_their_own_sessions_and_no_others() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    set_up(&mut root);
    let mut one = Reader::new(as_user(&site, "test", "reader"), 1);
    // Another user's session with the same UUID is a different session.
    let mut other = Reader::new(as_user(&site, "test", "writer"), 1);
    let mut reader = as_user(&site, "test", "reader");
    reader.ok("test", doc! {"killSessions": [lsid(1)]});
    assert_eq!((one.ended(), other.ended()), (true, false));
    let with = |user: &str| {
        let mut session = lsid(1);
        session.insert("uid", uid(user));
        doc! {"killSessions": [session]}
    };
    assert_eq!(reader.fails("test", with("writer@test")).0, UNAUTHORIZED);
    assert_eq!((one.ended(), other.ended()), (false, false));
    reader.ok("test", with("reader@test"));
    assert_eq!((one.ended(), other.ended()), (true, false));
    root.ok("test", with("writer@test"));
    assert_eq!((one.ended(), other.ended()), (false, true));
    let all = doc! {"killAllSessions": []};
    assert_eq!(reader.fails("test", all).0, UNAUTHORIZED);
}

/// `a@b` on `c` and `a` on `b@c` are displayed alike.
#[test]
fn users_that_are_displayed_alike_share_no_session() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    set_up(&mut root);
    let reads = vec![doc! {"role": "read", "db": "test"}];
    for (user, database) in [("a@b", "c"), ("a", "b@c")] {
        let create = doc! {"createUser": user, "pwd": "secret", "roles": &reads};
        root.ok(database, create);
    }
    let mut one = Reader::new(as_user(&site, "c", "a@b"), 1);
    let mut other = Reader::new(as_user(&site, "b@c", "a"), 1);
    let mut user = as_user(&site, "c", "a@b");
    user.ok("test", doc! {"killSessions": [lsid(1)]});
    assert_eq!((one.ended(), other.ended()), (true, false));
    root.ok(
        "admin",
        doc! {"killAllSessions": [{"user": "a", "db": "b@c"}]},
    );
    assert_eq!((one.ended(), other.ended()), (false, true));
    // The digest is that of MongoDB where it is unambiguous.
    root.ok(
        "admin",
        doc! {"killAllSessionsByPattern": [{"uid": uid("a@b@c")}]},
    );
    assert_eq!((one.ended(), other.ended()), (true, false));
}

#[test]
fn patterns_that_are_none_end_nothing() {
    let site = Site::new();
    let mut client = site.client();
    set_up(&mut client);
    let mut one = Reader::new(site.client(), 1);
    let users = |user: Document| doc! {"killAllSessions": [user]};
    let by = |pattern: Document| doc! {"killAllSessionsByPattern": [pattern]};
    for (command, code) in [
        (users(doc! {"user": "u", "db": "d", "x": 1}), UNKNOWN_FIELD),
        (users(doc! {"user": "u"}), 40_414),
        (users(doc! {"user": 1, "db": "d"}), 14),
        (doc! {"killAllSessions": {}}, 14),
        (by(doc! {"user": "u"}), UNKNOWN_FIELD),
        (by(doc! {"uid": "u"}), 14),
        (
            by(doc! {"users": [{"name": "u", "db": "d"}]}),
            UNKNOWN_FIELD,
        ),
        (by(doc! {"lsid": {"id": 1}}), 207),
        (doc! {"killSessions": [{"name": 1}]}, UNKNOWN_FIELD),
    ] {
        let found = client.fails("admin", command.clone());
        assert_eq!(found.0, code, "{command}: {}", found.1);
    }
    assert!(!one.ended());
    // Without authentication sessions have no owner, whichever digest is given.
    client.ok("admin", by(doc! {"uid": uid("")}));
    assert!(one.ended());
}

/// The owners of the sessions that a stage lists, sorted; or the code of its refusal.
fn listed(client: &mut Client, stage: &str, options: &Document) -> Result<Vec<Bson>, i32> {
    let stages = vec![doc! {stage: options.clone()}];
    let (database, target) = match stage {
        "$listSessions" => ("config", Bson::from("system.sessions")),
        _ => ("test", 1.into()),
    };
    let reply = client.run(
        database,
        doc! {"aggregate": target, "pipeline": stages, "cursor": {}},
    );
    if let Ok(code) = reply.get_i32("code") {
        return Err(code);
    }
    let mut owners = Vec::new();
    for row in batch(&reply) {
        assert!(row.get_datetime("lastUse").is_ok(), "{row}");
        owners.push(row.get_document("_id").unwrap().get("uid").unwrap().clone());
    }
    owners.sort_by_key(ToString::to_string);
    Ok(owners)
}

#[test]
fn who_lists_sessions_of_others_needs_the_privilege() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut reader = as_user(&site, "test", "reader");
    let mut writer = as_user(&site, "test", "writer");
    for client in [&mut reader, &mut writer] {
        client.ok("admin", doc! {"startSession": 1});
    }
    let of = |user: &str| doc! {"user": user, "db": "test"};
    let mut both = vec![uid("reader@test"), uid("writer@test")];
    both.sort_by_key(ToString::to_string);
    for stage in ["$listLocalSessions", "$listSessions"] {
        let own = Ok(vec![uid("reader@test")]);
        for options in [
            doc! {},
            doc! {"users": []},
            doc! {"users": [of("reader")]},
            doc! {"allUsers": false},
        ] {
            assert_eq!(listed(&mut reader, stage, &options), own, "{options}");
        }
        let others = doc! {"users": [of("reader"), of("writer")]};
        for options in [&others, &doc! {"allUsers": true}] {
            let refused = listed(&mut reader, stage, options);
            assert_eq!(refused, Err(UNAUTHORIZED), "{options}");
            assert_eq!(listed(&mut root, stage, options), Ok(both.clone()));
        }
        assert_eq!(listed(&mut root, stage, &doc! {}), Ok(vec![]));
        for (options, code) in [
            (doc! {"allUsers": true, "users": [of("reader")]}, 12),
            (doc! {"x": 1}, UNKNOWN_FIELD),
            (doc! {"allUsers": "yes"}, 14),
            (doc! {"users": [{"user": "reader"}]}, 40_414),
        ] {
            assert_eq!(listed(&mut root, stage, &options), Err(code), "{options}");
        }
    }
}

#[test]
fn sessions_are_listed_where_they_are_kept() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("admin", doc! {"startSession": 1});
    let on = |target: Bson, stage: &str| {
        doc! {"aggregate": target, "pipeline": [{stage: {}}], "cursor": {}}
    };
    for (database, command) in [
        ("test", on("c".into(), "$listLocalSessions")),
        ("test", on("c".into(), "$listSessions")),
        ("test", on(1.into(), "$listSessions")),
        ("config", on("other".into(), "$listSessions")),
    ] {
        assert_eq!(client.fails(database, command.clone()).0, 73, "{command}");
    }
    let mut command = on(1.into(), "$listLocalSessions");
    assert_eq!(batch(&client.ok("test", command.clone())).len(), 1);
    command.extend(doc! {
        "lsid": lsid(9), "txnNumber": 1_i64, "startTransaction": true, "autocommit": false,
    });
    assert_eq!(client.fails("test", command).0, 263);
}
