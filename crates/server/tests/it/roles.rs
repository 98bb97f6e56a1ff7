//! Custom roles.

use bson::{Bson, Document, doc};

use crate::auth::{as_user, guarded};
use crate::client::{Client, batch};

const UNAUTHORIZED: i32 = 13;
const BUILTIN: i32 = 128;

fn on(database: &str, collection: &str, actions: &[&str]) -> Document {
    let actions: Vec<Bson> = actions.iter().map(|action| (*action).into()).collect();
    doc! {"resource": {"db": database, "collection": collection}, "actions": actions}
}

fn create(name: &str, privileges: Vec<Document>, roles: Vec<Bson>) -> Document {
    doc! {"createRole": name, "privileges": privileges, "roles": roles}
}

fn role(root: &mut Client, database: &str, name: &str) -> Document {
    let shown = root.ok(database, doc! {"rolesInfo": name, "showPrivileges": true});
    let roles = shown.get_array("roles").unwrap();
    assert_eq!(roles.len(), 1, "{shown}");
    roles[0].as_document().unwrap().clone()
}

#[test]
fn a_role_allows_what_it_says_and_what_it_inherits() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    root.ok(
        "test",
        create("one", vec![on("test", "c", &["find"])], vec![]),
    );
    root.ok(
        "test",
        create("two", vec![on("test", "", &["insert"])], vec!["one".into()]),
    );
    root.ok(
        "test",
        doc! {"createUser": "u", "pwd": "secret", "roles": ["two"]},
    );
    let mut user = as_user(&site, "test", "u");
    let insert = |c: &str| doc! {"insert": c, "documents": [{}]};
    user.ok("test", doc! {"find": "c"});
    user.ok("test", insert("d"));
    user.ok("test", insert("c"));
    let shown = user.ok(
        "test",
        doc! {"find": "c", "limit": 1, "projection": {"_id": 0, "roles": "$$USER_ROLES"}},
    );
    let roles = bson::bson!([
        {"_id": "test.two", "role": "two", "db": "test"},
        {"_id": "test.one", "role": "one", "db": "test"},
    ]);
    assert_eq!(batch(&shown), [doc! {"roles": roles}]);
    assert_eq!(user.fails("test", doc! {"find": "d"}).0, UNAUTHORIZED);
    assert_eq!(
        user.fails("test", doc! {"delete": "c", "deletes": []}).0,
        UNAUTHORIZED
    );
    assert_eq!(user.fails("other", doc! {"find": "c"}).0, UNAUTHORIZED);

    // Changes take effect at once, at any depth of inheritance.
    let wider = doc! {"grantPrivilegesToRole": "one", "privileges": [on("test", "d", &["find"])]};
    root.ok("test", wider);
    user.ok("test", doc! {"find": "d"});
    let less = doc! {"revokePrivilegesFromRole": "one", "privileges": [on("test", "c", &["find"])]};
    root.ok("test", less);
    assert_eq!(user.fails("test", doc! {"find": "c"}).0, UNAUTHORIZED);
    root.ok(
        "test",
        doc! {"revokeRolesFromRole": "two", "roles": ["one"]},
    );
    assert_eq!(user.fails("test", doc! {"find": "d"}).0, UNAUTHORIZED);
    root.ok("test", doc! {"grantRolesToRole": "two", "roles": ["read"]});
    user.ok("test", doc! {"find": "c"});
    root.ok(
        "test",
        doc! {"updateRole": "two", "privileges": [], "roles": []},
    );
    assert_eq!(user.fails("test", insert("d")).0, UNAUTHORIZED);
    root.ok("test", doc! {"updateRole": "two", "roles": ["readWrite"]});
    user.ok("test", insert("d"));

    // No user has a role that was dropped.
    root.ok("test", doc! {"dropRole": "two"});
    assert_eq!(user.fails("test", insert("d")).0, UNAUTHORIZED);
    let info = root.ok("test", doc! {"usersInfo": "u"});
    let shown = info.get_array("users").unwrap()[0].as_document().unwrap();
    assert!(shown.get_array("roles").unwrap().is_empty(), "{shown}");
    let n = root.ok("test", doc! {"dropAllRolesFromDatabase": 1});
    assert_eq!(n.get_i32("n").unwrap(), 1);
}

#[test]
fn roles_are_shown_with_what_they_inherit() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    root.ok(
        "test",
        create("one", vec![on("test", "c", &["find"])], vec![]),
    );
    root.ok(
        "test",
        create(
            "two",
            vec![on("test", "c", &["insert"])],
            vec!["one".into()],
        ),
    );
    let two = role(&mut root, "test", "two");
    assert_eq!(two.get_str("_id").unwrap(), "test.two");
    assert!(!two.get_bool("isBuiltin").unwrap());
    let one: Bson = doc! {"role": "one", "db": "test"}.into();
    assert_eq!(two.get_array("roles").unwrap(), std::slice::from_ref(&one));
    assert_eq!(two.get_array("inheritedRoles").unwrap(), &[one]);
    let own: Bson = on("test", "c", &["insert"]).into();
    assert_eq!(two.get_array("privileges").unwrap(), &[own]);
    let all: Bson = on("test", "c", &["find", "insert"]).into();
    assert_eq!(
        two.get_array("inheritedPrivileges").unwrap(),
        std::slice::from_ref(&all)
    );
    let count = |reply: Document| reply.get_array("roles").unwrap().len();
    assert_eq!(count(root.ok("test", doc! {"rolesInfo": 1})), 2);
    assert_eq!(
        count(root.ok("test", doc! {"rolesInfo": 1, "showBuiltinRoles": true})),
        7
    );
    assert_eq!(
        count(root.ok("test", doc! {"rolesInfo": ["two", "read", "none"]})),
        2
    );
    assert!(
        role(&mut root, "test", "read")
            .get_bool("isBuiltin")
            .unwrap()
    );

    root.ok(
        "test",
        doc! {"createUser": "u", "pwd": "secret", "roles": ["two"]},
    );
    let info = doc! {"usersInfo": "u", "showPrivileges": true};
    let info = root.ok("test", info);
    let user = info.get_array("users").unwrap()[0].as_document().unwrap();
    assert_eq!(user.get_array("inheritedRoles").unwrap().len(), 2);
    assert_eq!(user.get_array("inheritedPrivileges").unwrap(), &[all]);
    let filter = doc! {"usersInfo": {"forAllDBs": true}, "filter": {"roles.role": "two"}};
    let filtered = root.ok("admin", filter);
    assert_eq!(filtered.get_array("users").unwrap().len(), 1, "{filtered}");
    let all = doc! {"usersInfo": 1, "showPrivileges": true};
    assert_eq!(root.fails("test", all).0, 20);
    // Users may view the roles that they have, and no others.
    let mut user = as_user(&site, "test", "u");
    user.ok("test", doc! {"rolesInfo": "one"});
    assert_eq!(
        user.fails("test", doc! {"rolesInfo": "readWrite"}).0,
        UNAUTHORIZED
    );
    assert_eq!(user.fails("test", doc! {"rolesInfo": 1}).0, UNAUTHORIZED);
}

#[test]
fn roles_that_cannot_be_are_refused() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut code = |database: &str, command: Document| root.fails(database, command).0;
    let other = create("r", vec![on("other", "", &["find"])], vec![]);
    assert_eq!(code("test", other), BUILTIN);
    let cluster = doc! {"resource": {"cluster": true}, "actions": ["shutdown"]};
    assert_eq!(
        code("test", create("r", vec![cluster.clone()], vec![])),
        BUILTIN
    );
    let away = vec![doc! {"role": "read", "db": "other"}.into()];
    assert_eq!(code("test", create("r", vec![], away)), BUILTIN);
    assert_eq!(code("test", create("read", vec![], vec![])), 2);
    assert_eq!(code("test", create("", vec![], vec![])), 2);
    assert_eq!(
        code("test", create("r", vec![on("test", "", &["fly"])], vec![])),
        2
    );
    assert_eq!(code("test", create("r", vec![], vec!["none".into()])), 31);
    assert_eq!(code("test", doc! {"createRole": "r", "roles": []}), 40_414);
    assert_eq!(code("test", doc! {"dropRole": "read"}), BUILTIN);
    assert_eq!(code("test", doc! {"dropRole": "none"}), 31);
    assert_eq!(code("test", doc! {"updateRole": "none", "roles": []}), 31);
    root.ok("admin", create("all", vec![cluster], vec![]));
    for (name, parts) in [
        ("a", vec![]),
        ("b", vec!["a".into()]),
        ("c", vec!["b".into()]),
    ] {
        root.ok("test", create(name, vec![], parts));
    }
    assert_eq!(root.fails("test", create("a", vec![], vec![])).0, 51_002);
    for command in [
        doc! {"grantRolesToRole": "a", "roles": ["c"]},
        doc! {"grantRolesToRole": "a", "roles": ["a"]},
        doc! {"updateRole": "a", "roles": ["b"]},
    ] {
        let (code, message) = root.fails("test", command);
        assert_eq!(code, BUILTIN);
        assert!(message.contains("cycle"), "{message}");
    }
    assert_eq!(root.fails("test", doc! {"updateRole": "a"}).0, 2);
}

#[test]
fn no_user_gives_more_than_it_may() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let owner = doc! {"createUser": "owner", "pwd": "secret", "roles": ["userAdmin"]};
    root.ok("test", owner);
    let mut owner = as_user(&site, "test", "owner");
    owner.ok(
        "test",
        create(
            "fine",
            vec![on("test", "c", &["find"])],
            vec!["read".into()],
        ),
    );
    for (database, command) in [
        (
            "test",
            create("r", vec![on("other", "", &["find"])], vec![]),
        ),
        (
            "test",
            create(
                "r",
                vec![],
                vec![doc! {"role": "root", "db": "admin"}.into()],
            ),
        ),
        ("admin", create("r", vec![], vec![])),
        ("test", doc! {"updateRole": "fine", "roles": []}),
        ("other", doc! {"dropRole": "r"}),
    ] {
        assert_eq!(
            owner.fails(database, command.clone()).0,
            UNAUTHORIZED,
            "{command}"
        );
    }
    let roles = doc! {"insert": "system.roles", "documents": [{"_id": "x"}]};
    assert_eq!(root.fails("admin", roles).0, UNAUTHORIZED);
    assert_eq!(
        owner.fails("admin", doc! {"find": "system.roles"}).0,
        UNAUTHORIZED
    );
    root.ok("admin", doc! {"find": "system.roles"});
}

#[test]
fn users_and_roles_of_a_dump_take_their_places() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    root.ok("test", create("old", vec![], vec![]));
    let users = root.ok(
        "admin",
        doc! {"find": "system.users", "filter": {"user": "reader"}},
    );
    let mut reader = crate::client::batch(&users).remove(0);
    reader.insert(
        "roles",
        vec![Bson::from(doc! {"role": "new", "db": "test"})],
    );
    let new = doc! {
        "_id": "test.new", "role": "new", "db": "test", "roles": [],
        "privileges": [on("test", "c", &["find", "insert"])],
    };
    root.ok("admin", doc! {"insert": "tempusers", "documents": [reader]});
    root.ok("admin", doc! {"insert": "temproles", "documents": [new]});
    let merge = doc! {
        "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers",
        "tempRolesCollection": "admin.temproles", "db": "test", "drop": true,
    };
    root.ok("admin", merge);
    let mut user = as_user(&site, "test", "reader");
    user.ok("test", doc! {"insert": "c", "documents": [{}]});
    let left = root.ok("test", doc! {"rolesInfo": 1});
    assert_eq!(left.get_array("roles").unwrap().len(), 1, "{left}");
    let left = root.ok("test", doc! {"usersInfo": 1});
    assert_eq!(left.get_array("users").unwrap().len(), 1, "{left}");
    // Roles of other databases are unchanged.
    as_user(&site, "other", "stranger");
    let bad =
        doc! {"insert": "temproles", "documents": [{"_id": "test.x", "role": "y", "db": "z"}]};
    root.ok("admin", bad);
    let merge = doc! {"_mergeAuthzCollections": 1, "tempRolesCollection": "admin.temproles"};
    assert_eq!(root.fails("admin", merge).0, 2);
    assert_eq!(root.fails("admin", doc! {"_mergeAuthzCollections": 1}).0, 2);
    root.ok("admin", doc! {"invalidateUserCache": 1});
}
