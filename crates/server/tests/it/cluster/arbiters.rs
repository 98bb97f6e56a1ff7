//! Members that only vote, and configurations that are installed by force.

use bson::{Document, doc};

use super::{Set, insert, read};
use crate::client::{await_so, batch};

/// An insert with a write concern; the code of its error.
fn concern(id: i32, wanted: Document) -> Document {
    let mut insert = insert(id);
    insert.insert("writeConcern", wanted);
    insert
}

fn code(reply: &Document) -> Option<i32> {
    let error = reply.get_document("writeConcernError").ok()?;
    error.get_i32("code").ok()
}

/// Two members with data and an arbiter, the last one.
fn set_with_arbiter() -> Set {
    let set = Set::waiting(3);
    let config = set.config(1, |i, member| {
        if i == 2 {
            member.insert("arbiterOnly", true);
        }
    });
    set.client(0).ok("admin", doc! {"replSetInitiate": config});
    set.primary();
    set
}

#[test]
fn an_arbiter_holds_nothing_and_says_what_it_is() {
    let set = set_with_arbiter();
    let primary = set.primary();
    let mut client = set.client(primary);
    client.ok("test", concern(1, doc! {"w": 2}));
    await_so("the primary at the arbiter", || {
        set.hello(2).get_str("primary").ok() == Some(&set.host(primary))
    });
    let hello = set.hello(2);
    assert!(hello.get_bool("arbiterOnly").unwrap(), "{hello}");
    assert!(!hello.get_bool("secondary").unwrap(), "{hello}");
    assert!(!hello.get_bool("isWritablePrimary").unwrap(), "{hello}");
    assert!(!hello.contains_key("lastWrite"), "{hello}");
    assert_eq!(hello.get_array("hosts").unwrap().len(), 2, "{hello}");
    let arbiters = hello.get_array("arbiters").unwrap();
    assert_eq!(arbiters.len(), 1, "{hello}");
    assert_eq!(arbiters[0].as_str().unwrap(), set.host(2));
    let mut arbiter = set.client(2);
    assert_eq!(arbiter.fails("test", read("c")).0, 13_435);
    assert_eq!(arbiter.fails("test", insert(2)).0, 10_107);
    let oplog = arbiter.ok("local", doc! {"find": "oplog.rs"});
    assert!(batch(&oplog).is_empty(), "{oplog}");
    for i in [primary, 2] {
        let status = set.client(i).ok("admin", doc! {"replSetGetStatus": 1});
        let count = |name: &str| status.get_i32(name).unwrap();
        assert_eq!(count("votingMembersCount"), 3);
        assert_eq!(count("writableVotingMembersCount"), 2);
        assert_eq!(count("writeMajorityCount"), 2);
        // What the primary shows of the arbiter is from its last heartbeat.
        await_so("the arbiter's state", || {
            let status = set.client(i).ok("admin", doc! {"replSetGetStatus": 1});
            let members = status.get_array("members").unwrap();
            let shown = members[2].as_document().unwrap();
            assert!(!shown.contains_key("optime"), "{status}");
            shown.get_str("stateStr").unwrap() == "ARBITER"
        });
    }
}

#[test]
fn an_arbiter_votes_and_acknowledges_nothing() {
    let mut set = set_with_arbiter();
    let first = set.primary();
    let second = 1 - first;
    let mut client = set.client(first);
    assert_eq!(code(&client.ok("test", concern(1, doc! {"w": 2}))), None);
    let more = client.ok("test", concern(2, doc! {"w": 3}));
    assert_eq!(code(&more), Some(100), "{more}");
    let folder = set.stop(second);
    // The primary and the arbiter are a majority of votes, not of data.
    assert_eq!(code(&client.ok("test", concern(3, doc! {"w": 1}))), None);
    assert_eq!(code(&client.ok("test", insert(4))), None, "the default");
    let majority = doc! {"w": "majority", "wtimeout": 100};
    let late = client.ok("test", concern(5, majority.clone()));
    assert_eq!(code(&late), Some(64), "{late}");
    let two = client.ok("test", concern(6, doc! {"w": 2, "wtimeout": 100}));
    assert_eq!(code(&two), Some(64), "{two}");
    assert!(set.hello(first).get_bool("isWritablePrimary").unwrap());
    set.resume(second, folder);
    let whole = client.ok("test", concern(7, doc! {"w": "majority"}));
    assert_eq!(code(&whole), None, "{whole}");
    // With the vote of the arbiter the other one becomes primary.
    drop(set.stop(first));
    assert_eq!(set.primary(), second);
    set.await_documents(second, "c", &[1, 2, 3, 4, 5, 6, 7]);
    let mut client = set.client(second);
    assert_eq!(code(&client.ok("test", concern(8, doc! {"w": 1}))), None);
}

#[test]
fn a_forced_configuration_lets_a_survivor_continue() {
    let mut set = Set::started(3);
    set.client(set.primary()).ok("test", insert(1));
    (0..3).for_each(|i| set.await_documents(i, "c", &[1]));
    let survivor = (set.primary() + 1) % 3;
    let lost: Vec<usize> = (0..3).filter(|i| *i != survivor).collect();
    let folders: Vec<_> = lost.iter().map(|i| set.stop(*i)).collect();
    let mut client = set.client(survivor);
    let only = |version: i64, kept: &[usize]| {
        let mut config = set.config(version, |_, _| {});
        let members = config.get_array_mut("members").unwrap();
        let mut i = 0;
        members.retain(|_| {
            i += 1;
            kept.contains(&(i - 1))
        });
        config
    };
    let alone = only(2, &[survivor]);
    let refused = client.run("admin", doc! {"replSetReconfig": alone.clone()});
    assert_eq!(refused.get_f64("ok").unwrap(), 0.0, "without a majority");
    let other = only(2, &lost);
    let forced = |config: Document| doc! {"replSetReconfig": config, "force": true};
    assert_eq!(client.fails("admin", forced(other)).0, 93);
    client.ok("admin", forced(alone));
    await_so("the survivor", || {
        set.hello(survivor).get_bool("isWritablePrimary").unwrap()
    });
    client.ok("test", insert(2));
    let config = client.ok("admin", doc! {"replSetGetConfig": 1});
    let version = config.get_document("config").unwrap();
    let version = version.get_i64("version").unwrap();
    assert!(10_000 < version, "{config}");
    // A lost member returns, and takes the configuration that has it.
    let more = only(version + 1, &[survivor, lost[0]]);
    set.resume(lost[0], folders.into_iter().next().unwrap());
    client.ok("admin", doc! {"replSetReconfig": more});
    set.await_documents(lost[0], "c", &[1, 2]);
    await_so("its vote", || {
        let status = client.ok("admin", doc! {"replSetGetStatus": 1});
        status.get_i32("votingMembersCount").unwrap() == 2
    });
    client.ok("test", insert(3));
}
