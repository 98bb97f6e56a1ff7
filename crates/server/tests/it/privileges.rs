//! Changes of privileges over time, and commands whose check could differ from their execution.

use std::sync::atomic::{AtomicBool, Ordering};

use bson::{Bson, bson, doc};

use crate::auth::{as_user, guarded, log_in};
use crate::client::{Client, await_so, batch};

const UNAUTHORIZED: i32 = 13;

/// A cursor continues only while its user has the privileges that opened it.
#[test]
fn a_cursor_asks_for_its_privileges_again() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let documents = [doc! {"_id": 2}, doc! {"_id": 3}];
    root.ok("test", doc! {"insert": "c", "documents": &documents});
    root.ok("test", doc! {"insert": "d", "documents": &documents});
    let index = doc! {"key": {"a": 1}, "name": "a"};
    root.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    let small = doc! {"batchSize": 1};
    let union = [doc! {"$unionWith": "d"}];
    let mut user = as_user(&site, "test", "reader");
    for command in [
        doc! {"find": "c", "batchSize": 1},
        doc! {"find": "c", "batchSize": 0},
        doc! {"aggregate": "c", "pipeline": &union, "cursor": &small},
        doc! {"listCollections": 1, "cursor": &small},
        doc! {"listIndexes": "c", "cursor": &small},
    ] {
        let reply = user.ok("test", command.clone());
        let cursor = reply.get_document("cursor").unwrap();
        let id = cursor.get_i64("id").unwrap();
        assert_ne!(id, 0, "{command}");
        let collection = cursor.get_str("ns").unwrap().split_once('.').unwrap().1;
        let more = doc! {"getMore": id, "collection": collection, "batchSize": 1};
        let roles = |change: &str| doc! {change: "reader", "roles": ["read"]};
        root.ok("test", roles("revokeRolesFromUser"));
        let (code, message) = user.fails("test", more.clone());
        assert_eq!(code, UNAUTHORIZED, "{command}: {message}");
        assert_eq!(
            message,
            format!("not authorized for getMore with cursor id {id}")
        );
        // Fewer privileges suffice if they include those that the cursor requires.
        root.ok("test", roles("grantRolesToUser"));
        user.ok("test", more);
    }
    // A union needs both collections.
    let on = |collection: &str| {
        let resource = doc! {"db": "test", "collection": collection};
        doc! {"resource": resource, "actions": ["find"]}
    };
    let both = [on("c"), on("d")];
    root.ok(
        "test",
        doc! {"createRole": "both", "privileges": &both, "roles": []},
    );
    root.ok("test", doc! {"updateUser": "reader", "roles": ["both"]});
    let aggregate = doc! {"aggregate": "c", "pipeline": &union, "cursor": &small};
    let reply = user.ok("test", aggregate);
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! {"getMore": id, "collection": "c", "batchSize": 1};
    user.ok("test", more.clone());
    root.ok(
        "test",
        doc! {"revokePrivilegesFromRole": "both", "privileges": [on("d")]},
    );
    assert_eq!(user.fails("test", more).0, UNAUTHORIZED);
}

/// The owner of a cursor is a user name and a database, not their concatenation.
#[test]
fn users_that_are_displayed_alike_own_different_cursors() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let users = [("c", "a@b"), ("b@c", "a")];
    for (database, name) in users {
        let roles = [doc! {"role": "read", "db": "test"}];
        root.ok(
            database,
            doc! {"createUser": name, "pwd": "secret", "roles": &roles},
        );
    }
    let documents = [doc! {"_id": 2}, doc! {"_id": 3}];
    root.ok("test", doc! {"insert": "c", "documents": &documents});
    let [mut first, mut second] = users.map(|(database, name)| as_user(&site, database, name));
    let reply = first.ok("test", doc! {"find": "c", "batchSize": 1});
    let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! {"getMore": id, "collection": "c", "batchSize": 1};
    assert_eq!(second.fails("test", more.clone()).0, UNAUTHORIZED);
    let kill = doc! {"killCursors": "c", "cursors": [id]};
    assert_eq!(second.fails("test", kill).0, UNAUTHORIZED);
    // `$currentOp` shows the owner as a name and a database.
    let stages = [doc! {"$currentOp": {"allUsers": true, "idleCursors": true}}];
    let list = doc! {"aggregate": 1, "pipeline": &stages, "cursor": {}};
    let listed = batch(&root.ok("admin", list));
    let cursor = listed.iter().find(|entry| entry.contains_key("cursor"));
    let owner = cursor.unwrap().get_array("effectiveUsers").unwrap();
    assert_eq!(owner, &[Bson::from(doc! {"user": "a@b", "db": "c"})]);
    first.ok("test", more);
}

/// A4: the authorized request is the one that runs, and its other checks are made as well.
#[test]
fn an_aggregate_that_is_authorized_still_needs_a_cursor() {
    let site = guarded();
    let mut reader = as_user(&site, "test", "reader");
    let bare = doc! {"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}]};
    let (code, message) = reader.fails("test", bare.clone());
    assert_eq!(code, 9, "{message}");
    let mut explained = bare.clone();
    explained.insert("explain", true);
    reader.ok("test", explained);
    let mut whole = bare;
    whole.insert("cursor", doc! {});
    assert_eq!(batch(&reader.ok("test", whole)), [doc! {"_id": 1}]);
}

/// A cursor can be closed by its owner, or by a user with the privilege to close any, whatever
/// namespace the command names.
#[test]
fn cursors_are_ended_by_their_users_whatever_the_namespace() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let documents = [doc! {"_id": 2}, doc! {"_id": 3}];
    root.ok("test", doc! {"insert": "c", "documents": &documents});
    let opened = |client: &mut Client| {
        let reply = client.ok("test", doc! {"find": "c", "batchSize": 1});
        reply.get_document("cursor").unwrap().get_i64("id").unwrap()
    };
    let kill = |id: i64| doc! {"killCursors": "elsewhere", "cursors": [id, 7_i64]};
    let mut reader = as_user(&site, "test", "reader");
    let mut writer = as_user(&site, "test", "writer");
    let id = opened(&mut reader);
    assert_eq!(writer.fails("test", kill(id)).0, UNAUTHORIZED);
    let gone = |client: &mut Client, id: i64, database: &str| {
        let reply = client.ok(database, kill(id));
        let killed = reply.get_array("cursorsKilled").unwrap();
        assert_eq!(killed, &[Bson::from(id)], "{reply}");
        let unknown = reply.get_array("cursorsNotFound").unwrap();
        assert_eq!(unknown, &[Bson::from(7_i64)], "{reply}");
        assert!(reply.get_array("cursorsAlive").unwrap().is_empty());
    };
    gone(&mut reader, id, "other");
    let more = doc! {"getMore": id, "collection": "c"};
    assert_eq!(reader.fails("test", more).0, 43);
    let id = opened(&mut reader);
    gone(&mut root, id, "other");
    // The privilege on the collection is enough.
    let resource = doc! {"db": "test", "collection": "c"};
    let privilege = doc! {"resource": resource, "actions": ["killAnyCursor"]};
    root.ok(
        "test",
        doc! {"createRole": "ends", "privileges": [privilege], "roles": []},
    );
    root.ok(
        "test",
        doc! {"grantRolesToUser": "writer", "roles": ["ends"]},
    );
    let id = opened(&mut reader);
    gone(&mut writer, id, "test");
}

/// A large command is authorized outside of the network threads, by the same rules.
#[test]
fn a_large_pipeline_is_authorized_as_a_small_one() {
    let site = guarded();
    let mut reader = as_user(&site, "test", "reader");
    let values: Vec<i32> = (0..20_000).collect();
    let mut pipeline = vec![doc! {"$match": {"_id": {"$in": values}}}];
    let aggregate = |stages: &[bson::Document]| {
        doc! {"aggregate": "c", "pipeline": stages, "cursor": {}}
    };
    let found = crate::client::batch(&reader.ok("test", aggregate(&pipeline)));
    assert_eq!(found, [doc! {"_id": 1}]);
    pipeline.push(doc! {"$out": {"db": "other", "coll": "c"}});
    assert_eq!(reader.fails("test", aggregate(&pipeline)).0, UNAUTHORIZED);
}

/// Names that differed between check and execution.
/// A4: one parse is authorized and run.
#[test]
fn what_is_checked_is_what_is_written() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    // Documents that a validator rejects can be written only by a user with the privilege on the
    // collection that is written.
    let on = |collection: &str, actions: &[&str]| {
        let resource = doc! {"db": "test", "collection": collection};
        doc! {"resource": resource, "actions": actions}
    };
    let privileges = [
        on("c", &["find", "bypassDocumentValidation"]),
        on("d", &["insert", "update"]),
        on("e", &["insert", "update", "bypassDocumentValidation"]),
    ];
    let role = doc! {"createRole": "partial", "privileges": &privileges, "roles": []};
    root.ok("test", role);
    let user = doc! {"createUser": "p", "pwd": "secret", "roles": ["partial"]};
    root.ok("test", user);
    let mut user = as_user(&site, "test", "p");
    let merge = |to: &str| {
        doc! {"aggregate": "c", "pipeline": [{"$merge": to}], "cursor": {},
        "bypassDocumentValidation": true}
    };
    assert_eq!(user.fails("test", merge("d")).0, UNAUTHORIZED);
    user.ok("test", merge("e"));
    let bulk = |ns: &str| {
        doc! {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": ns}],
        "bypassDocumentValidation": true}
    };
    assert_eq!(user.fails("admin", bulk("test.d")).0, UNAUTHORIZED);
    user.ok("admin", bulk("test.e"));
    let apply = |ns: &str, id: i32| {
        doc! {"applyOps": [{"op": "i", "ns": ns, "o": {"_id": id}}],
        "bypassDocumentValidation": true}
    };
    assert_eq!(user.fails("admin", apply("test.d", 7)).0, UNAUTHORIZED);
    user.ok("admin", apply("test.e", 7));
    // Viewing one's own credentials requires the privilege to view users.
    let info = |secret: bool| {
        let named = doc! {"user": "p", "db": "test"};
        doc! {"usersInfo": named, "showCredentials": secret}
    };
    user.ok("test", info(false));
    assert_eq!(user.fails("test", info(true)).0, UNAUTHORIZED);
    root.ok("test", info(true));
}

/// While it lives the other threads of a test continue; they also end when the test fails.
struct Running<'e>(&'e AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Grant and revoke roles and privileges of a user and of a role until the end.
fn change_on(mut root: Client, number: i32, end: &AtomicBool) {
    let name = format!("other{number}");
    let resource = doc! {"db": "test", "collection": &name};
    let privileges = [doc! {"resource": resource, "actions": ["insert"]}];
    let role = doc! {"createRole": &name, "privileges": [], "roles": []};
    root.ok("test", role);
    let roles = [&name];
    while !end.load(Ordering::Relaxed) {
        for change in [
            doc! {"grantRolesToUser": "reader", "roles": &roles},
            doc! {"revokeRolesFromUser": "reader", "roles": &roles},
            doc! {"grantRolesToRole": "whole", "roles": &roles},
            doc! {"revokeRolesFromRole": "whole", "roles": &roles},
            doc! {"grantPrivilegesToRole": "whole", "privileges": &privileges},
            doc! {"revokePrivilegesFromRole": "whole", "privileges": &privileges},
        ] {
            root.ok("test", change);
        }
    }
}

/// Commands that change users or roles take turns: none restores what another has revoked.
#[test]
fn what_is_revoked_stays_revoked_beside_other_changes() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let names: Vec<String> = (0..40).map(|n| format!("r{n}")).collect();
    let on = |collection: &str| {
        let resource = doc! {"db": "test", "collection": collection};
        doc! {"resource": resource, "actions": ["find"]}
    };
    for name in &names {
        root.ok(
            "test",
            doc! {"createRole": name, "privileges": [on(name)], "roles": []},
        );
    }
    let whole: Vec<_> = names.iter().map(|name| on(name)).collect();
    root.ok(
        "test",
        doc! {"createRole": "whole", "privileges": whole, "roles": &names},
    );
    root.ok("test", doc! {"grantRolesToUser": "reader", "roles": &names});
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = Running(&end);
        for number in 0..3 {
            let (site, end) = (&site, &end);
            scope.spawn(move || change_on(as_user(site, "admin", "root"), number, end));
        }
        for name in &names {
            for change in [
                doc! {"revokeRolesFromUser": "reader", "roles": [name]},
                doc! {"revokeRolesFromRole": "whole", "roles": [name]},
                doc! {"revokePrivilegesFromRole": "whole", "privileges": [on(name)]},
            ] {
                root.ok("test", change);
            }
        }
        drop(running);
    });
    let shown = [
        root.ok("test", doc! {"usersInfo": "reader"}),
        root.ok("test", doc! {"rolesInfo": "whole", "showPrivileges": true}),
    ];
    let shown = shown.map(|reply| reply.to_string());
    for name in &names {
        let left = shown
            .iter()
            .find(|shown| shown.contains(&format!("\"{name}\"")));
        assert_eq!(left, None, "{name} is back");
    }
}

/// Without roles a grant requires no privilege, so it must neither write nor show who exists.
#[test]
fn a_grant_of_nothing_is_refused_and_says_nothing() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    root.ok(
        "test",
        doc! {"createRole": "one", "privileges": [], "roles": []},
    );
    let mut stranger = as_user(&site, "other", "stranger");
    for (command, names) in [
        ("grantRolesToUser", ["reader", "missing"]),
        ("revokeRolesFromUser", ["reader", "missing"]),
    ] {
        let answers = names
            .map(|name| stranger.fails("test", doc! {command: name, "roles": Bson::Array(vec![])}));
        assert_eq!(answers[0], answers[1]);
        let message = format!("{command} command requires a non-empty \"roles\" array");
        assert_eq!(answers[0], (2, message));
    }
    for (command, list) in [
        ("grantRolesToRole", "roles"),
        ("revokeRolesFromRole", "roles"),
        ("grantPrivilegesToRole", "privileges"),
        ("revokePrivilegesFromRole", "privileges"),
    ] {
        let nothing = doc! {command: "one", list: Bson::Array(vec![])};
        assert_eq!(stranger.fails("test", nothing.clone()).0, UNAUTHORIZED);
        assert_eq!(root.fails("test", nothing).0, 2, "{command}");
    }
}

/// The privileges of a user to change its password and data reach no other user.
#[test]
fn users_with_the_privilege_change_themselves_and_nobody_else() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let every = doc! {"db": "", "collection": ""};
    let actions = ["changeOwnPassword", "changeOwnCustomData"];
    root.ok(
        "admin",
        doc! {"createRole": "own", "roles": [],
        "privileges": [{"resource": every, "actions": &actions}]},
    );
    let password = |user: &str| doc! {"updateUser": user, "pwd": "other"};
    let data = |user: &str| doc! {"updateUser": user, "customData": {"a": 1}};
    let mut reader = as_user(&site, "test", "reader");
    assert_eq!(reader.fails("test", password("reader")).0, UNAUTHORIZED);
    assert_eq!(reader.fails("test", data("reader")).0, UNAUTHORIZED);
    let own = [doc! {"role": "own", "db": "admin"}];
    root.ok("test", doc! {"grantRolesToUser": "reader", "roles": &own});
    // A user of the same name in another database is another user.
    root.ok(
        "other",
        doc! {"createUser": "reader", "pwd": "secret", "roles": []},
    );
    for (database, user) in [("test", "writer"), ("other", "reader")] {
        assert_eq!(reader.fails(database, password(user)).0, UNAUTHORIZED);
        assert_eq!(reader.fails(database, data(user)).0, UNAUTHORIZED);
    }
    let with_roles = doc! {"updateUser": "reader", "pwd": "other", "roles": ["readWrite"]};
    assert_eq!(reader.fails("test", with_roles).0, UNAUTHORIZED);
    reader.ok("test", data("reader"));
    reader.ok("test", password("reader"));
    let mut again = site.client();
    let done = log_in(&mut again, "test", "reader", "other");
    assert!(done.get_bool("done").unwrap(), "{done}");
}

/// As with MongoDB, a user may end its own operations.
#[test]
fn operations_are_ended_by_their_users_and_by_those_who_may_end_any() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut busy = as_user(&site, "test", "reader");
    root.ok(
        "test",
        doc! {"create": "capped", "capped": true, "size": 4_096},
    );
    root.ok("test", doc! {"insert": "capped", "documents": [{"_id": 1}]});
    let tail = doc! {"find": "capped", "tailable": true, "awaitData": true};
    let started = busy.ok("test", tail);
    let id = started
        .get_document("cursor")
        .unwrap()
        .get_i64("id")
        .unwrap();
    let more = doc! {"getMore": id, "collection": "capped", "maxTimeMS": 3_600_000};
    busy.send("test", more, 0);
    let mut number = None;
    await_so("the command to be in work", || {
        let shown = root.ok("admin", doc! {"currentOp": 1, "op": "getmore"});
        let first = shown.get_array("inprog").unwrap().first().cloned();
        let first = first.as_ref().and_then(Bson::as_document);
        number = first.and_then(|one| one.get_i32("opid").ok());
        number.is_some()
    });
    let number = number.unwrap();
    let mut writer = as_user(&site, "test", "writer");
    let mut reader = as_user(&site, "test", "reader");
    for (client, operation) in [(&mut writer, number), (&mut reader, i32::MAX)] {
        let (code, _) = client.fails("admin", doc! {"killOp": 1, "op": operation});
        assert_eq!(code, UNAUTHORIZED);
    }
    reader.ok("admin", doc! {"killOp": 1, "op": number});
    assert_eq!(busy.receive().unwrap().1.get_i32("code").unwrap(), 11_601);
    root.ok("admin", doc! {"killOp": 1, "op": i32::MAX});
}

/// Authorization parses pipelines on a network thread, with less time and memory than commands may
/// use: constants beyond that are computed elsewhere, and the command runs.
#[test]
fn large_constants_run_with_authorization_as_they_do_without() {
    let site = guarded();
    let mut reader = as_user(&site, "test", "reader");
    let numbers = |count: i32| bson!({"$range": [0, count]});
    let doubled = bson!({"$map": {"input": numbers(100_000), "in": {"$add": ["$$this", 1]}}});
    for (count, constant) in [(100_000, doubled), (500_000, numbers(500_000))] {
        let size = bson!({"$size": constant});
        let stages = bson!([{"$project": {"_id": 0, "n": size.clone()}}]);
        let plain = doc! {"aggregate": "c", "pipeline": &stages, "cursor": {}};
        assert_eq!(
            batch(&reader.ok("test", plain.clone())),
            [doc! {"n": count}]
        );
        reader.ok("test", doc! {"explain": plain});
        let documents = bson!([{"$documents": [{"n": size}]}]);
        let alone = doc! {"aggregate": 1, "pipeline": documents, "cursor": {}};
        assert_eq!(batch(&reader.ok("test", alone)), [doc! {"n": count}]);
    }
}
