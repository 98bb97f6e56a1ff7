//! Configurations: those that are refused, and changes of members.

use bson::{Document, doc};

use super::{Set, insert};
use crate::auth::log_in;
use crate::client::{Site, await_so};

#[test]
fn a_set_does_not_begin_with_a_wrong_configuration() {
    let set = Set::waiting(2);
    let mut client = set.client(0);
    let mut fails = |config: Document| client.fails("admin", doc! {"replSetInitiate": config});
    let whole = || set.config(1, |_, _| {});
    let mut named = whole();
    named.insert("_id", "other");
    assert_eq!(fails(named).0, 93);
    let priority = set.config(1, |i, m| {
        m.insert("hidden", i == 1);
    });
    assert_eq!(fails(priority).0, 93);
    let mut unknown = whole();
    unknown.insert("unknown", 1);
    assert_eq!(fails(unknown).0, 40_415);
    assert_eq!(fails(doc! {"_id": "rs0", "members": []}).0, 93);
    // A member that does not answer.
    let mut absent = whole();
    let members = absent.get_array_mut("members").unwrap();
    members.push(doc! {"_id": 9, "host": "127.0.0.1:1"}.into());
    let (code, message) = fails(absent);
    assert_eq!(code, 74);
    assert!(message.contains("127.0.0.1:1"), "{message}");
    // This server is no member.
    let other = doc! {"_id": "rs0", "members": [{"_id": 1, "host": set.host(1)}]};
    assert_eq!(fails(other).0, 93);
    // A server with another way to begin.
    let alone = Site::new();
    let host = format!("127.0.0.1:{}", alone.address().port());
    let mut mixed = whole();
    let members = mixed.get_array_mut("members").unwrap();
    members.push(doc! {"_id": 9, "host": host}.into());
    assert_eq!(fails(mixed).0, 74);
    let reply = alone
        .client()
        .fails("admin", doc! {"replSetInitiate": whole()});
    assert_eq!(reply.0, 23);
    // After all that, the set begins.
    client.ok("admin", doc! {"replSetInitiate": whole()});
    set.primary();
}

#[test]
fn members_and_settings_are_changed_one_by_one() {
    let mut set = Set::started(1);
    let mut client = set.client(0);
    client.ok("test", insert(1));
    let one = set.add();
    let two = set.add();
    let config = |set: &Set, version, count: usize| {
        let mut config = set.config(version, |_, _| {});
        config.get_array_mut("members").unwrap().truncate(count);
        doc! {"replSetReconfig": config}
    };
    // Two voters at once.
    assert_eq!(client.fails("admin", config(&set, 2, 3)).0, 103);
    assert_eq!(client.fails("admin", config(&set, 1, 2)).0, 103);
    client.ok("admin", config(&set, 2, 2));
    set.await_documents(one, "c", &[1]);
    let votes = |client: &mut crate::client::Client| {
        let status = client.ok("admin", doc! {"replSetGetStatus": 1});
        status.get_i32("votingMembersCount").unwrap()
    };
    await_so("the vote of the second member", || votes(&mut client) == 2);
    client.ok("admin", config(&set, 9, 3));
    await_so("the vote of the third member", || votes(&mut client) == 3);
    set.await_documents(two, "c", &[1]);
    client.ok("test", insert(2));
    set.await_documents(two, "c", &[1, 2]);
    // A secondary changes nothing.
    let reply = set.client(one).fails("admin", config(&set, 20, 3));
    assert_eq!(reply.0, 10_107);
    // The settings and a hidden member.
    let mut hidden = set.config(20, |i, member| {
        if i == two {
            member.extend(doc! {"hidden": true, "priority": 0, "tags": {"dc": "b"}});
        }
    });
    let settings = hidden.get_document_mut("settings").unwrap();
    settings.insert("chainingAllowed", false);
    client.ok("admin", doc! {"replSetReconfig": hidden});
    await_so("the hidden member", || {
        let hello = set.hello(two);
        hello.get_bool("hidden").is_ok_and(|hidden| hidden)
            && hello.get_bool("passive").is_ok_and(|passive| passive)
            && hello.get_document("tags").is_ok()
            && hello.get_array("hosts").is_ok_and(|hosts| hosts.len() == 2)
    });
}

#[test]
fn members_recognize_each_other_by_the_key() {
    let set = Set::guarded(3);
    // By the exception for clients on the same machine.
    set.client(0)
        .ok("admin", doc! {"replSetInitiate": set.config(1, |_, _| {})});
    let primary = set.primary();
    let mut first = set.client(primary);
    first.ok(
        "admin",
        doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]},
    );
    for i in 0..3 {
        await_so("the user", || {
            let mut client = set.client(i);
            let reply = log_in(&mut client, "admin", "root", "secret");
            reply.get_bool("done").unwrap_or(false)
        });
    }
    let mut system = set.system(primary);
    system.ok("admin", doc! {"replSetProbe": 1, "set": "rs0"});
    let mut root = set.client(primary);
    log_in(&mut root, "admin", "root", "secret");
    let probe = doc! {"replSetProbe": 1, "set": "rs0"};
    assert_eq!(root.fails("admin", probe.clone()).0, 13);
    assert_eq!(set.client(primary).fails("admin", probe).0, 13);
    let mut wrong = set.client(primary);
    let reply = log_in(&mut wrong, "local", "__system", "secret");
    assert_eq!(reply.get_i32("code").unwrap(), 18, "{reply}");
}
