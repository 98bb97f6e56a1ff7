//! Authentication and privileges: a SCRAM client, and every command of the table for each kind of
//! user.

use std::io::{Read, Write};
use std::sync::Barrier;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawDocumentBuf, doc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use wire::Parts;

use crate::client::{Client, Site};

const UNAUTHORIZED: i32 = 13;
pub(crate) const FAILED: i32 = 18;

fn binary(text: &str) -> Bson {
    Bson::Binary(Binary {
        subtype: BinarySubtype::Generic,
        bytes: text.as_bytes().to_vec(),
    })
}

pub(crate) fn text(reply: &Document) -> String {
    String::from_utf8(reply.get_binary_generic("payload").unwrap().clone()).unwrap()
}

fn mac(key: &[u8], data: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(data.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// The final client message of SCRAM-SHA-256 for a challenge.
fn proof(challenge: &str, user: &str, password: &str) -> String {
    let mut parts = challenge.split(',').map(|part| part.get(2..).unwrap());
    let nonce = parts.next().unwrap();
    let salt = BASE64.decode(parts.next().unwrap()).unwrap();
    let rounds = parts.next().unwrap().parse().unwrap();
    let salted = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password.as_bytes(), &salt, rounds);
    let key = mac(&salted, "Client Key");
    let without = format!("c=biws,r={nonce}");
    let signed = format!("n={user},r=nonce,{challenge},{without}");
    let signature = mac(&Sha256::digest(&key), &signed);
    let proof: Vec<u8> = key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
    format!("{without},p={}", BASE64.encode(proof))
}

pub(crate) fn start(user: &str) -> Document {
    let payload = binary(&format!("n,,n={user},r=nonce"));
    let options = doc! {"skipEmptyExchange": true};
    doc! {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload, "options": options}
}

pub(crate) fn log_in<S: Read + Write>(
    client: &mut Client<S>,
    database: &str,
    user: &str,
    password: &str,
) -> Document {
    let challenge = text(&client.ok(database, start(user)));
    let payload = binary(&proof(&challenge, user, password));
    let last = doc! {"saslContinue": 1, "conversationId": 1, "payload": payload};
    client.run(database, last)
}

pub(crate) fn guarded() -> Site {
    guarded_with(|_| {})
}

/// As [`guarded`], with changed settings.
pub(crate) fn guarded_with(change: impl FnOnce(&mut server::Config)) -> Site {
    let site = Site::with(|config| {
        config.authorization = true;
        change(config);
    });
    let mut first = site.client();
    let user = |name: &str, roles: Bson| doc! {"createUser": name, "pwd": "secret", "roles": roles};
    first.ok("admin", user("root", vec!["root"].into()));
    // The exception for the first user ends once that user exists.
    let second = first.fails("admin", user("second", vec!["root"].into()));
    assert_eq!(second.0, UNAUTHORIZED);
    let mut root = as_user(&site, "admin", "root");
    root.ok("test", user("reader", vec!["read"].into()));
    root.ok("test", user("writer", vec!["readWrite"].into()));
    root.ok("other", user("stranger", vec!["readWrite"].into()));
    root.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    root.ok("other", doc! {"insert": "c", "documents": [{"_id": 1}]});
    site
}

pub(crate) fn as_user(site: &Site, database: &str, user: &str) -> Client {
    let mut client = site.client();
    let reply = log_in(&mut client, database, user, "secret");
    assert!(reply.get_bool("done").unwrap(), "{reply}");
    client
}

/// Of clients that use the exception for the first user at the same time, one creates a user.
#[test]
fn there_is_one_first_user() {
    const CLIENTS: usize = 8;
    for _ in 0..5 {
        let site = Site::with(|config| config.authorization = true);
        let ready = Barrier::new(CLIENTS);
        let create = |number: usize| {
            let mut client = site.client();
            let name = format!("u{number}");
            ready.wait();
            let create = doc! {"createUser": name, "pwd": "secret", "roles": ["root"]};
            client.run("admin", create)
        };
        let replies: Vec<Document> = std::thread::scope(|scope| {
            let create = &create;
            let clients = (0..CLIENTS).map(|number| scope.spawn(move || create(number)));
            let clients: Vec<_> = clients.collect();
            clients.into_iter().map(|c| c.join().unwrap()).collect()
        });
        let created = replies
            .iter()
            .filter(|r| r.get_f64("ok").is_ok_and(|ok| ok == 1.0));
        assert_eq!(created.count(), 1, "{replies:?}");
        let refused = |r: &&Document| r.get_i32("code").is_ok_and(|code| code == UNAUTHORIZED);
        assert_eq!(replies.iter().filter(refused).count(), CLIENTS - 1);
    }
}

/// A1: only a proof of the password is accepted, and only once.
#[test]
fn no_client_authenticates_without_the_password() {
    let site = guarded();
    let mut client = site.client();
    let find = doc! {"find": "c"};
    assert_eq!(client.fails("test", find.clone()).0, UNAUTHORIZED);
    // A wrong password, an unknown user and a user of another database get the same answers.
    for (database, user, password) in [
        ("test", "reader", "wrong"),
        ("test", "unknown", "secret"),
        ("other", "reader", "secret"),
    ] {
        let reply = log_in(&mut client, database, user, password);
        assert_eq!(reply.get_i32("code").unwrap(), FAILED, "{reply}");
        assert_eq!(reply.get_str("errmsg").unwrap(), "Authentication failed.");
        assert_eq!(client.fails("test", find.clone()).0, UNAUTHORIZED);
    }
    // A proof cannot be tried twice, and is not valid for another challenge.
    let challenge = text(&client.ok("test", start("reader")));
    let payload = binary(&proof(&challenge, "reader", "secret"));
    let last = doc! {"saslContinue": 1, "conversationId": 1, "payload": payload};
    let cut = doc! {"saslContinue": 1, "conversationId": 1, "payload": binary("c=biws")};
    assert_eq!(client.fails("test", cut).0, FAILED);
    assert_eq!(client.fails("test", last.clone()).0, 17);
    client.ok("test", start("reader"));
    assert_eq!(client.fails("test", last).0, FAILED);
    assert!(
        log_in(&mut client, "test", "reader", "secret")
            .get_bool("done")
            .unwrap()
    );
    client.ok("test", find.clone());
    client.ok("test", doc! {"logout": 1});
    assert_eq!(client.fails("test", find).0, UNAUTHORIZED);
}

#[test]
fn a_greeting_begins_to_authenticate() {
    let site = guarded();
    let mut client = site.client();
    let mut first = start("reader");
    first.insert("db", "test");
    let greeting = doc! {"hello": 1, "speculativeAuthenticate": first.clone(),
    "saslSupportedMechs": "test.reader"};
    let reply = client.ok("admin", greeting);
    let known = reply.get_array("saslSupportedMechs").unwrap();
    assert_eq!(
        known,
        &[Bson::from("SCRAM-SHA-256"), Bson::from("SCRAM-SHA-1")]
    );
    let challenge = text(reply.get_document("speculativeAuthenticate").unwrap());
    let payload = binary(&proof(&challenge, "reader", "secret"));
    client.ok(
        "test",
        doc! {"saslContinue": 1, "conversationId": 1, "payload": payload},
    );
    let reply = client.ok(
        "admin",
        doc! {"connectionStatus": 1, "showPrivileges": true},
    );
    let status = reply.get_document("authInfo").unwrap();
    let users = status.get_array("authenticatedUsers").unwrap();
    assert_eq!(users, &[Bson::from(doc! {"user": "reader", "db": "test"})]);
    assert!(
        !status
            .get_array("authenticatedUserPrivileges")
            .unwrap()
            .is_empty()
    );
    first.insert("mechanism", "PLAIN");
    let reply = site
        .client()
        .ok("admin", doc! {"hello": 1, "speculativeAuthenticate": first});
    assert!(!reply.contains_key("speculativeAuthenticate"));
}

/// A2: users are looked up at each command.
#[test]
fn roles_are_given_taken_and_hold_at_once() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut reader = as_user(&site, "test", "reader");
    let insert = doc! {"insert": "c", "documents": [{}]};
    assert_eq!(reader.fails("test", insert.clone()).0, UNAUTHORIZED);
    root.ok(
        "test",
        doc! {"grantRolesToUser": "reader", "roles": ["readWrite"]},
    );
    reader.ok("test", insert.clone());
    root.ok(
        "test",
        doc! {"revokeRolesFromUser": "reader", "roles": ["readWrite"]},
    );
    assert_eq!(reader.fails("test", insert).0, UNAUTHORIZED);
    let unknown = doc! {"grantRolesToUser": "reader", "roles": ["no such role"]};
    assert_eq!(root.fails("test", unknown).0, 31);
    root.ok("test", doc! {"updateUser": "reader", "pwd": "other"});
    let failed = log_in(&mut site.client(), "test", "reader", "secret");
    assert_eq!(failed.get_i32("code").unwrap(), FAILED);
    let info = reader.ok("test", doc! {"usersInfo": "reader"});
    let shown = info.get_array("users").unwrap()[0].as_document().unwrap();
    assert_eq!(shown.get_str("_id").unwrap(), "test.reader");
    assert!(!shown.contains_key("credentials"));
    assert_eq!(reader.fails("test", doc! {"usersInfo": 1}).0, UNAUTHORIZED);
    root.ok("test", doc! {"dropUser": "reader"});
    assert_eq!(reader.fails("test", doc! {"find": "c"}).0, UNAUTHORIZED);
    // A later user of the same name is a different user.
    let again = doc! {"createUser": "reader", "pwd": "secret", "roles": ["read"]};
    root.ok("test", again);
    assert_eq!(reader.fails("test", doc! {"find": "c"}).0, UNAUTHORIZED);
    assert_eq!(root.fails("test", doc! {"dropUser": "nobody"}).0, 11);
    let all = root.ok("test", doc! {"dropAllUsersFromDatabase": 1});
    assert_eq!(all.get_i32("n").unwrap(), 2);
}

#[test]
fn entries_of_an_oplog_need_what_they_do() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut writer = as_user(&site, "test", "writer");
    let entry = |op: &str, ns: &str, o: Document| doc! {"op": op, "ns": ns, "o": o};
    let apply = |entry: Document| doc! {"applyOps": [entry]};
    let own = entry("i", "test.c", doc! {"_id": 7});
    writer.ok("admin", apply(own.clone()));
    let nested = |inner: Document| entry("c", "test.$cmd", doc! {"applyOps": [inner]});
    writer.ok("admin", apply(nested(own.clone())));
    writer.ok(
        "admin",
        apply(entry("c", "test.$cmd", doc! {"create": "made"})),
    );
    let mut by_uuid = own;
    by_uuid.insert("ui", bson::Uuid::new());
    for refused in [
        entry("i", "other.c", doc! {"_id": 7}),
        nested(entry("d", "other.c", doc! {"_id": 1})),
        entry("i", "test.system.users", doc! {"_id": 7}),
        entry("i", "admin.system.users", doc! {"_id": "test.x"}),
        entry("c", "other.$cmd", doc! {"drop": "c"}),
        entry("c", "test.$cmd", doc! {"dropDatabase": 1}),
        entry("c", "test.$cmd", doc! {"collMod": "c", "hidden": true}),
        entry("n", "", doc! {}),
        by_uuid.clone(),
    ] {
        let reply = writer.fails("admin", apply(refused.clone()));
        assert_eq!(reply.0, UNAUTHORIZED, "{refused}: {}", reply.1);
    }
    // Not even `root` has all privileges; a custom role can have them.
    assert_eq!(root.fails("admin", apply(by_uuid.clone())).0, UNAUTHORIZED);
    let everything = doc! {"resource": {"anyResource": true}, "actions": ["anyAction"]};
    let role = doc! {"createRole": "all", "privileges": [everything], "roles": []};
    root.ok("admin", role);
    root.ok(
        "admin",
        doc! {"createUser": "restorer", "pwd": "secret", "roles": ["all"]},
    );
    let mut restorer = as_user(&site, "admin", "restorer");
    assert_eq!(restorer.fails("admin", apply(by_uuid)).0, 26);
    restorer.ok("admin", apply(entry("n", "", doc! {"msg": "x"})));
}

#[test]
fn users_authenticate_from_where_they_may() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let from = |address: &str| doc! {"clientSource": [address], "serverAddress": ["127.0.0.0/8"]};
    let create = |name: &str, restriction: Document| {
        doc! {"createUser": name, "pwd": "secret", "roles": ["read"],
        "authenticationRestrictions": [restriction]}
    };
    root.ok("test", create("near", from("127.0.0.1")));
    root.ok("test", create("far", from("10.0.0.0/8")));
    let bad = create("bad", doc! {"clientSource": ["nowhere"]});
    assert_eq!(root.fails("test", bad).0, 2);
    let mut near = as_user(&site, "test", "near");
    near.ok("test", doc! {"find": "c"});
    let refused = |user: &str| {
        let reply = log_in(&mut site.client(), "test", user, "secret");
        assert_eq!(reply.get_i32("code").unwrap(), FAILED, "{reply}");
    };
    refused("far");
    let update = |user: &str, list: Vec<Document>| {
        doc! {"updateUser": user, "authenticationRestrictions": list}
    };
    root.ok(
        "test",
        update("far", vec![from("10.0.0.1"), from("127.0.0.1")]),
    );
    as_user(&site, "test", "far");
    // The restrictions of each role apply as well, including those of inherited roles.
    let role = |name: &str, roles: Bson, list: Vec<Document>| {
        doc! {"createRole": name, "privileges": [], "roles": roles,
        "authenticationRestrictions": list}
    };
    root.ok(
        "test",
        role("away", Bson::Array(vec![]), vec![from("10.0.0.1")]),
    );
    let inherits = role("inherits", vec!["away"].into(), vec![]);
    root.ok("test", inherits);
    root.ok(
        "test",
        doc! {"grantRolesToUser": "near", "roles": ["inherits"]},
    );
    refused("near");
    let shown = root.ok(
        "test",
        doc! {"usersInfo": "near", "showAuthenticationRestrictions": true},
    );
    let user = shown.get_array("users").unwrap()[0].as_document().unwrap();
    let own = user.get_array("authenticationRestrictions").unwrap();
    assert_eq!(own, &[Bson::from(from("127.0.0.1"))]);
    let inherited = user.get_array("inheritedAuthenticationRestrictions");
    assert_eq!(inherited.unwrap().len(), 2);
    let plain = root.ok("test", doc! {"usersInfo": "near"});
    let user = plain.get_array("users").unwrap()[0].as_document().unwrap();
    assert!(!user.contains_key("authenticationRestrictions"));
    root.ok(
        "test",
        doc! {"updateRole": "away", "authenticationRestrictions": []},
    );
    as_user(&site, "test", "near");
    // A user that may create users need not be allowed to set restrictions.
    let makes = doc! {"resource": {"db": "test", "collection": ""},
    "actions": ["createUser", "grantRole"]};
    root.ok(
        "test",
        doc! {"createRole": "maker", "privileges": [makes], "roles": []},
    );
    root.ok(
        "test",
        doc! {"createUser": "m", "pwd": "secret", "roles": ["maker"]},
    );
    let mut maker = as_user(&site, "test", "m");
    let refused = maker.fails("test", create("x", from("127.0.0.1")));
    assert_eq!(refused.0, UNAUTHORIZED);
}

#[test]
fn no_way_leads_around_the_rules() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut writer = as_user(&site, "test", "writer");
    let pipeline = |stage: Document| doc! {"aggregate": "c", "pipeline": [stage], "cursor": {}};
    for stage in [
        doc! {"$unionWith": {"coll": "system.users"}},
        doc! {"$lookup": {"from": {"db": "other", "coll": "c"}, "pipeline": [], "as": "x"}},
        doc! {"$facet": {"a": [{"$unionWith": "system.profile"}]}},
        doc! {"$lookup": {"from": "c", "as": "x", "pipeline": [{"$unionWith": "system.profile"}]}},
        doc! {"$out": {"db": "other", "coll": "x"}},
        doc! {"$merge": {"into": {"db": "other", "coll": "x"}}},
        doc! {"$merge": "system.users"},
    ] {
        assert_eq!(
            writer.fails("test", pipeline(stage.clone())).0,
            UNAUTHORIZED,
            "{stage}"
        );
        let explain = doc! {"explain": pipeline(stage.clone())};
        assert_eq!(writer.fails("test", explain).0, UNAUTHORIZED, "{stage}");
        let view = doc! {"create": "v", "viewOn": "c", "pipeline": [stage.clone()]};
        assert_eq!(writer.fails("test", view).0, UNAUTHORIZED, "{stage}");
    }
    let view = doc! {"create": "v", "viewOn": "system.profile", "pipeline": []};
    assert_eq!(writer.fails("test", view).0, UNAUTHORIZED);
    root.ok(
        "test",
        doc! {"grantRolesToUser": "writer", "roles": ["dbAdmin"]},
    );
    root.ok("test", doc! {"create": "v", "viewOn": "c", "pipeline": []});
    let half = doc! {"collMod": "v", "pipeline": [{"$unionWith": "system.users"}]};
    assert_eq!(writer.fails("test", half.clone()).0, 72);
    let mut whole = half;
    whole.insert("viewOn", "c");
    assert_eq!(writer.fails("test", whole).0, UNAUTHORIZED);
    root.ok("test", doc! {"drop": "v"});
    let away = doc! {"renameCollection": "other.c", "to": "test.d"};
    assert_eq!(writer.fails("admin", away).0, UNAUTHORIZED);
    let users = doc! {"insert": "system.users", "documents": [{"_id": "x"}]};
    assert_eq!(root.fails("admin", users).0, UNAUTHORIZED);
    // `explain` requires the privileges of the explained command.
    let write = doc! {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]};
    let explain = doc! {"explain": write};
    let mut reader = as_user(&site, "test", "reader");
    assert_eq!(reader.fails("test", explain.clone()).0, UNAUTHORIZED);
    writer.ok("test", explain);
    let two = doc! {"explain": {"delete": "c", "deletes": []}};
    assert_eq!(writer.fails("test", two).0, 16);
    // Only the user that opened a cursor or a session may use it.
    root.ok("test", doc! {"insert": "c", "documents": [{}, {}, {}]});
    let reply = root.ok("test", doc! {"find": "c", "batchSize": 1});
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! {"getMore": id, "collection": "c"};
    assert_eq!(writer.fails("test", more.clone()).0, UNAUTHORIZED);
    root.ok("test", more);
    // `listDatabases` does not list databases that the user may not see.
    let list = writer.ok("admin", doc! {"listDatabases": 1, "nameOnly": true});
    assert_eq!(
        list.get_array("databases").unwrap(),
        &[Bson::from(doc! {"name": "test"})]
    );
}

const CRUD: [&str; 4] = ["find", "insert", "update", "remove"];

/// Commands that read and write, each with the actions it needs on `test.c`.
fn crud() -> Vec<(&'static str, Document, &'static str)> {
    let plain = || doc! {"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": false};
    let upsert = || doc! {"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": true};
    let update = |updates: Vec<Document>| doc! {"update": "c", "updates": updates};
    let modify = |more: Document| {
        let mut command = doc! {"findAndModify": "c", "query": {"_id": 1}};
        command.extend(more);
        command
    };
    let set = || doc! {"update": {"$set": {"a": 1}}};
    let or_insert = || doc! {"update": {"$set": {"a": 1}}, "upsert": true};
    let deletes = || doc! {"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}]};
    let bulk = |statement: Document| {
        let mut op = doc! {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"a": 1}}};
        op.extend(statement);
        doc! {"bulkWrite": 1, "ops": [op], "nsInfo": [{"ns": "test.c"}]}
    };
    let mut commands: Vec<(&str, Document, &str)> = vec![
        ("test", doc! {"find": "c"}, "find"),
        ("test", deletes(), "remove"),
        ("test", update(vec![plain()]), "update"),
        ("test", update(vec![upsert()]), "update insert"),
        ("test", modify(set()), "find update"),
        ("test", modify(or_insert()), "find update insert"),
        (
            "test",
            modify(doc! {"remove": true, "query": {"_id": 9}}),
            "find remove",
        ),
    ];
    let explained = commands.clone().into_iter();
    commands.extend(explained.map(|(db, command, needs)| (db, doc! {"explain": command}, needs)));
    let both = update(vec![plain(), upsert()]);
    commands.push(("test", both, "update insert"));
    commands.push(("test", doc! {"insert": "c", "documents": [{}]}, "insert"));
    commands.push(("admin", bulk(doc! {}), "update"));
    commands.push(("admin", bulk(doc! {"upsert": true}), "update insert"));
    commands
}

/// Run each command of [`crud`] as users who each lack one action: only commands that do not
/// require the missing action succeed.
#[test]
fn every_read_and_write_needs_what_it_does_and_nothing_more() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    for lacks in CRUD {
        let actions: Vec<&str> = CRUD.into_iter().filter(|action| *action != lacks).collect();
        let on = doc! {"db": "test", "collection": "c"};
        let privileges = vec![doc! {"resource": on, "actions": actions}];
        let role =
            doc! {"createRole": format!("no {lacks}"), "privileges": privileges, "roles": []};
        root.ok("test", role);
        let roles = vec![format!("no {lacks}")];
        root.ok(
            "test",
            doc! {"createUser": lacks, "pwd": "secret", "roles": roles},
        );
        let mut user = as_user(&site, "test", lacks);
        for (database, command, needs) in crud() {
            let reply = user.run(database, command.clone());
            let refused = reply.get_i32("code").ok() == Some(UNAUTHORIZED);
            assert_eq!(
                refused,
                needs.contains(lacks),
                "{command} without {lacks}: {reply}"
            );
            let done = reply.get_f64("ok").unwrap() > 0.0;
            assert_ne!(refused, done, "{command}: {reply}");
        }
        // Statements in a document sequence beside the body.
        let body = doc! {"update": "c", "$db": "test"};
        let body = RawDocumentBuf::try_from(&body).unwrap();
        for upsert in [false, true] {
            let one = doc! {"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": upsert};
            let one = RawDocumentBuf::try_from(&one).unwrap();
            let parts = Parts {
                request_id: 1,
                response_to: 0,
                flags: 0,
            };
            let bytes = wire::encode(parts, &body, &[("updates", &[&one])]);
            user.stream.write_all(&bytes).unwrap();
            let (_, reply) = user.receive().unwrap();
            let refused = reply.get_i32("code").ok() == Some(UNAUTHORIZED);
            let needs = lacks == "update" || upsert && lacks == "insert";
            assert_eq!(refused, needs, "upsert {upsert} without {lacks}: {reply}");
        }
    }
}

/// The shortest valid form of a command that needs more than its name.
fn command(name: &str) -> Document {
    let mut command = doc! {name: "c"};
    let rest = match name {
        "aggregate" => doc! {"pipeline": [], "cursor": {}},
        "applyOps" => doc! {"applyOps": [{"op": "d", "ns": "test.c", "o": {"_id": 9}}]},
        "explain" => doc! {"explain": {"find": "c"}},
        "createUser"
        | "grantRolesToUser"
        | "revokeRolesFromUser"
        | "grantRolesToRole"
        | "revokeRolesFromRole" => doc! {"roles": ["read"]},
        "createRole" => doc! {"roles": ["read"], "privileges": []},
        "updateRole" => doc! {"roles": ["read"]},
        "grantPrivilegesToRole" | "revokePrivilegesFromRole" => doc! {"privileges": []},
        "rolesInfo" => doc! {"rolesInfo": 1},
        "_mergeAuthzCollections" => doc! {"tempUsersCollection": "admin.tempusers"},
        "updateUser" => doc! {"pwd": "x"},
        "usersInfo" => doc! {"usersInfo": 1},
        "renameCollection" => doc! {"renameCollection": "test.c", "to": "test.d"},
        "dataSize" => doc! {"dataSize": "test.c"},
        "cloneCollectionAsCapped" => doc! {"toCollection": "d"},
        _ => doc! {},
    };
    command.extend(rest);
    command
}

/// The users that may run a command: 0 all clients, 1 all users, 2 readers, 3 writers, 4 other
/// roles, 5 no user with a password; `None` if the command is missing here.
fn class(name: &str) -> Option<u8> {
    Some(match name {
        "hello" | "isMaster" | "ping" | "buildInfo" | "endSessions" | "saslStart"
        | "saslContinue" | "authenticate" | "logout" => 0,
        "listCommands"
        | "whatsmyuri"
        | "connectionStatus"
        | "isdbgrid"
        | "listDatabases"
        | "startSession"
        | "refreshSessions"
        | "getMore"
        | "killCursors"
        | "killOp"
        | "commitTransaction"
        | "abortTransaction"
        | "createSearchIndexes"
        | "updateSearchIndex"
        | "dropSearchIndex"
        | "listSearchIndexes"
        | "testVersion2"
        | "bulkWrite"
        | "killSessions"
        | "features" => 1,
        "find" | "count" | "distinct" | "aggregate" | "explain" | "listCollections"
        | "listIndexes" | "collStats" | "dbStats" | "dataSize" | "dbHash" | "storageMap" => 2,
        "insert"
        | "update"
        | "delete"
        | "applyOps"
        | "findAndModify"
        | "create"
        | "drop"
        | "createIndexes"
        | "dropIndexes"
        | "convertToCapped"
        | "renameCollection"
        | "cloneCollectionAsCapped" => 3,
        "dropDatabase"
        | "collMod"
        | "profile"
        | "validate"
        | "compact"
        | "fsync"
        | "createBackup"
        | "readOplog"
        | "streamBackup"
        | "fsyncUnlock"
        | "top"
        | "reIndex"
        | "planCacheClear"
        | "planCacheListFilters"
        | "planCacheClearFilters"
        | "validateDBMetadata"
        | "setDefaultRWConcern"
        | "getClusterParameter"
        | "setClusterParameter"
        | "currentOp"
        | "shutdown"
        | "hostInfo"
        | "getLog"
        | "logRotate"
        | "rotateCertificates"
        | "rotateMasterKey"
        | "getParameter"
        | "setParameter"
        | "configureFailPoint"
        | "setFeatureCompatibilityVersion"
        | "getCmdLineOpts"
        | "replSetGetStatus"
        | "replSetGetConfig"
        | "replSetInitiate"
        | "replSetResizeOplog"
        | "replSetStepDown"
        | "replSetStepUp"
        | "replSetReconfig"
        | "replSetAbortPrimaryCatchUp"
        | "replSetFreeze"
        | "replSetMaintenance"
        | "replSetSyncFrom"
        | "getDefaultRWConcern"
        | "killAllSessions"
        | "killAllSessionsByPattern"
        | "serverStatus"
        | "getDiagnosticData"
        | "connPoolStats"
        | "lockInfo"
        | "createUser"
        | "updateUser"
        | "dropUser"
        | "dropAllUsersFromDatabase"
        | "grantRolesToUser"
        | "revokeRolesFromUser"
        | "usersInfo"
        | "createRole"
        | "updateRole"
        | "dropRole"
        | "dropAllRolesFromDatabase"
        | "grantPrivilegesToRole"
        | "revokePrivilegesFromRole"
        | "grantRolesToRole"
        | "revokeRolesFromRole"
        | "rolesInfo"
        | "invalidateUserCache"
        | "_mergeAuthzCollections" => 4,
        // Only other members may send these.
        "replSetMessage" | "replSetFetch" | "replSetCopy" | "replSetProbe" => 5,
        _ => return None,
    })
}

/// Run every command as each kind of user. A command that is missing above fails the test.
/// A3: every command of the table has a rule.
#[test]
fn every_command_as_each_kind_of_user() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let list = root.ok("admin", doc! {"listCommands": 1});
    let names: Vec<String> = list
        .get_document("commands")
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        let class = class(&name).unwrap_or_else(|| panic!("{name} has no entry"));
        // With an unknown argument, a command that may run is refused because of it or because of a
        // missing argument.
        let mut command = command(&name);
        command.insert("no such argument", 1);
        for (level, who) in [
            (0, None),
            (1, Some(("other", "stranger"))),
            (2, Some(("test", "reader"))),
            (3, Some(("test", "writer"))),
            (4, Some(("admin", "root"))),
        ] {
            if level >= class && matches!(name.as_str(), "shutdown") {
                continue;
            }
            let mut client = match who {
                Some((database, user)) => as_user(&site, database, user),
                None => site.client(),
            };
            let reply = client.run("test", command.clone());
            let message = reply.get_str("errmsg").unwrap_or_default();
            let refused = reply.get_i32("code").ok() == Some(UNAUTHORIZED)
                && (message.starts_with("not authorized") || message.ends_with("authentication"));
            assert_eq!(refused, level < class, "{name} as {who:?}: {reply}");
        }
    }
}
