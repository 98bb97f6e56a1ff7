//! When writes are acknowledged, and what reads see.

use bson::{Document, doc};

use super::{Set, insert};
use crate::client::{await_so, batch};

fn concern(id: i32, concern: Document) -> Document {
    let mut insert = insert(id);
    insert.insert("writeConcern", concern);
    insert
}

fn code(reply: &Document) -> Option<i32> {
    let error = reply.get_document("writeConcernError").ok()?;
    error.get_i32("code").ok()
}

#[test]
fn a_write_waits_for_the_members_that_its_concern_names() {
    let mut set = Set::waiting(3);
    let mut config = set.config(1, |i, member| {
        member.insert("tags", doc! {"dc": if i == 2 { "b" } else { "a" }});
    });
    let settings = config.get_document_mut("settings").unwrap();
    settings.insert("getLastErrorModes", doc! {"both": {"dc": 2}});
    set.client(0).ok("admin", doc! {"replSetInitiate": config});
    let primary = set.primary();
    let mut client = set.client(primary);
    let mut write = |id, wanted: Document| code(&client.ok("test", concern(id, wanted)));
    assert_eq!(write(1, doc! {"w": 1}), None);
    assert_eq!(write(2, doc! {"w": "majority"}), None);
    assert_eq!(write(3, doc! {"w": 3, "j": true}), None);
    assert_eq!(write(4, doc! {"w": "both"}), None);
    assert_eq!(write(5, doc! {"w": 4}), Some(100));
    assert_eq!(write(6, doc! {"w": "none"}), Some(79));
    let down = (0..3).find(|i| *i != primary).unwrap();
    let folder = set.stop(down);
    assert_eq!(write(7, doc! {"w": 3, "wtimeout": 1}), Some(64));
    assert_eq!(write(8, doc! {"w": "majority"}), None);
    assert_eq!(write(9, doc! {"w": 2}), None);
    set.resume(down, folder);
    assert_eq!(write(10, doc! {"w": 3}), None);
}

#[test]
fn without_a_majority_nothing_is_acknowledged_and_the_primary_ends() {
    let mut set = Set::started(3);
    let primary = set.primary();
    let mut client = set.client(primary);
    client.ok("test", insert(1));
    let others: Vec<usize> = (0..3).filter(|i| *i != primary).collect();
    let folders: Vec<_> = others.iter().map(|i| set.stop(*i)).collect();
    let reply = client.run("test", insert(2));
    // The write is on this member only: it steps down, and says so.
    let refused = code(&reply).or(reply.get_i32("code").ok());
    assert!(matches!(refused, Some(189 | 10_107 | 11_602)), "{reply}");
    await_so("the end of the primary", || {
        !set.hello(primary).get_bool("isWritablePrimary").unwrap()
    });
    for (i, folder) in others.iter().zip(folders) {
        set.resume(*i, folder);
    }
    let next = set.primary();
    set.client(next).ok("test", insert(3));
}

#[test]
fn a_read_of_the_majority_sees_what_was_acknowledged() {
    let set = Set::started(3);
    let primary = set.primary();
    let mut client = set.client(primary);
    let reply = client.ok("test", insert(1));
    let time = reply.get_timestamp("operationTime").unwrap();
    let majority = doc! {"find": "c", "readConcern": {"level": "majority"}};
    assert_eq!(batch(&client.ok("test", majority)).len(), 1);
    for i in 0..3 {
        // A causally consistent read on any member.
        let read = doc! {
            "find": "c", "readConcern": {"afterClusterTime": time},
            "$readPreference": {"mode": "nearest"},
            "$clusterTime": reply.get_document("$clusterTime").unwrap().clone(),
        };
        assert_eq!(batch(&set.client(i).ok("test", read)).len(), 1, "{i}");
    }
}

/// A read of a secondary, with a concern and a limit of time.
fn limited(level: &str) -> Document {
    doc! {
        "find": "c", "readConcern": {"level": level}, "maxTimeMS": 300,
        "$readPreference": {"mode": "secondaryPreferred"},
    }
}

#[test]
fn a_restarted_primary_answers_no_majority_with_what_it_has_alone() {
    let mut set = Set::started(3);
    let primary = set.primary();
    set.client(primary).ok("test", insert(1));
    let others: Vec<usize> = (0..3).filter(|i| *i != primary).collect();
    let folders: Vec<_> = others.iter().map(|i| set.stop(*i)).collect();
    let mut alone = insert(2);
    alone.insert("writeConcern", doc! {"w": 1});
    let reply = set.client(primary).run("test", alone);
    let written = reply.get_i32("n").ok() == Some(1);
    let folder = set.stop(primary);
    set.resume(primary, folder);
    await_so("a secondary", || {
        set.hello(primary).get_bool("secondary").unwrap()
    });
    let mut client = set.client(primary);
    if written {
        // It does not know yet what is committed.
        let seen = batch(&client.ok("test", limited("local"))).len();
        assert_eq!(seen, 2);
        let reply = client.run("test", limited("majority"));
        assert_eq!(reply.get_i32("code").ok(), Some(50), "roles: R1: {reply}");
    }
    for (i, folder) in others.iter().zip(folders) {
        set.resume(*i, folder);
    }
    set.primary();
    await_so("an answer of the majority", || {
        let reply = client.run("test", limited("majority"));
        reply.get_f64("ok").ok() == Some(1.0)
    });
}

#[test]
fn a_linearizable_read_is_answered_by_a_primary_with_its_majority() {
    let mut set = Set::started(3);
    let primary = set.primary();
    let mut client = set.client(primary);
    client.ok("test", insert(1));
    let read = || {
        let mut read = limited("linearizable");
        read.insert("maxTimeMS", 60_000);
        read
    };
    assert_eq!(batch(&client.ok("test", read())).len(), 1);
    let others: Vec<usize> = (0..3).filter(|i| *i != primary).collect();
    let reply = set.client(others[0]).run("test", read());
    assert_eq!(reply.get_i32("code").ok(), Some(10_107), "{reply}");
    let folders: Vec<_> = others.iter().map(|i| set.stop(*i)).collect();
    // Without a majority there is no answer, though the document is there.
    let reply = client.run("test", limited("linearizable"));
    let code = reply.get_i32("code");
    assert!(
        matches!(code, Ok(50 | 189 | 10_107 | 11_602)),
        "roles: R2: {reply}"
    );
    for (i, folder) in others.iter().zip(folders) {
        set.resume(*i, folder);
    }
}

/// What the cursors of a read of the majority show later, and a read without a concern when
/// `majority` is the default, is on a majority, too.
#[test]
fn cursors_and_the_default_concern_show_what_a_majority_has() {
    let mut set = Set::patient(3);
    let primary = set.primary();
    let mut client = set.client(primary);
    for id in 1..=4 {
        client.ok("test", insert(id));
    }
    let open = |level: &str| {
        doc! {
            "find": "c", "readConcern": {"level": level}, "maxTimeMS": 2_000,
            "batchSize": 1,
        }
    };
    let mut cursor = |level| {
        let reply = client.ok("test", open(level));
        reply.get_document("cursor").unwrap().get_i64("id").unwrap()
    };
    let (majority, local) = (cursor("majority"), cursor("local"));
    let others: Vec<usize> = (0..3).filter(|i| *i != primary).collect();
    let folders: Vec<_> = others.iter().map(|i| set.stop(*i)).collect();
    client.ok("test", concern(5, doc! {"w": 1}));
    let more = |id: i64| doc! {"getMore": id, "collection": "c"};
    let reply = client.run("test", more(majority));
    assert_eq!(reply.get_i32("code").ok(), Some(50), "roles: R1: {reply}");
    let shown = client.ok("test", more(local));
    assert_eq!(batch(&shown).len(), 4);
    let find = doc! {"find": "c", "maxTimeMS": 300};
    assert_eq!(batch(&client.ok("test", find.clone())).len(), 5);
    let default = doc! {
        "setDefaultRWConcern": 1, "defaultReadConcern": {"level": "majority"},
        "writeConcern": {"w": 1},
    };
    client.ok("admin", default);
    let reply = client.run("test", find);
    assert_eq!(reply.get_i32("code").ok(), Some(50), "roles: R1: {reply}");
    assert_eq!(batch(&client.ok("test", limited("local"))).len(), 5);
    for (i, folder) in others.iter().zip(folders) {
        set.resume(*i, folder);
    }
    await_so("an answer of the majority", || {
        batch_of(client.run("test", doc! {"find": "c"})) == 5
    });
}

/// The documents of a reply to `find`; none of an error.
fn batch_of(reply: Document) -> usize {
    match reply.get_f64("ok") {
        Ok(ok) if 0.0 < ok => batch(&reply).len(),
        _ => 0,
    }
}
