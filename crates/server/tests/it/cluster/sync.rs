//! Initial sync: members without data of sets whose oplog does not begin with the set.

use std::sync::Arc;

use bson::{Document, doc};
use kv::Factory;

use super::{Set, insert, read, waiting};
use crate::client::{Client, Site, await_so, batch};

/// A data directory with data of a standalone server: collections, indexes, a view and a user.
fn with_data() -> tempfile::TempDir {
    let site = Site::with(|config| config.replica_set = None);
    let mut client = site.client();
    for part in 0..20 {
        let documents: Vec<Document> = (0..100)
            .map(|i| doc! {"_id": part * 100 + i, "a": i, "text": "x".repeat(500)})
            .collect();
        client.ok("test", doc! {"insert": "c", "documents": documents});
    }
    let index = doc! {"key": {"a": 1}, "name": "a"};
    client.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    let unique = doc! {"key": {"u": 1}, "name": "u", "unique": true, "sparse": true};
    client.ok("test", doc! {"createIndexes": "d", "indexes": [unique]});
    client.ok(
        "test",
        doc! {"insert": "d", "documents": [{"_id": 1, "u": 1}]},
    );
    client.ok(
        "test",
        doc! {"create": "log", "capped": true, "size": 10_000},
    );
    for id in 0..50 {
        let document = doc! {"_id": id, "text": "x".repeat(400)};
        client.ok("test", doc! {"insert": "log", "documents": [document]});
    }
    client.ok("test", doc! {"create": "v", "viewOn": "c", "pipeline": []});
    client.ok(
        "admin",
        doc! {"createUser": "app", "pwd": "secret", "roles": ["readWriteAnyDatabase"]},
    );
    site.stop()
}

/// A server that waits for a set, on an engine.
fn on(factory: &dyn Factory) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let engine = factory.open(folder.path(), &kv::EngineOptions::default());
    Site::over(Arc::from(engine.unwrap()), folder, waiting(None, 0)).unwrap()
}

/// An engine other than that of the set, where it is compiled in.
fn other() -> &'static dyn Factory {
    let all: [&dyn Factory; 2] = [kv_lmdb::factory(), kv_betree::factory()];
    all.into_iter().find(|factory| factory.available()).unwrap()
}

/// A set of one member, which has data from before.
fn begun() -> Set {
    let site = Site::try_in(with_data(), waiting(None, 0)).unwrap();
    let set = Set::from(vec![site]);
    set.client(0)
        .ok("admin", doc! {"replSetInitiate": set.config(1, |_, _| {})});
    set.primary();
    set
}

fn join(set: &mut Set, site: Site) -> usize {
    set.ports.push(site.address().port());
    set.sites.push(Some(site));
    set.sites.len() - 1
}

fn reconfig(set: &Set) {
    let primary = set.primary();
    let mut client = set.client(primary);
    // The last change may not be on a majority yet.
    await_so("the configuration", || {
        let version = 2 + i64::try_from(set.sites.len()).unwrap();
        let command = doc! {"replSetReconfig": set.config(version, |_, _| {})};
        client.run("admin", command).get_f64("ok").unwrap() == 1.0
    });
}

fn state(set: &Set, i: usize) -> i32 {
    let status = set.client(i).run("admin", doc! {"replSetGetStatus": 1});
    status.get_i32("myState").unwrap_or(0)
}

fn await_secondary(set: &Set, i: usize) {
    await_so("a secondary", || state(set, i) == 2);
}

/// The hash of a member, when it has all that the primary has.
fn hash(client: &mut Client) -> Document {
    let reply = client.ok(
        "test",
        doc! {"dbHash": 1, "$readPreference": {"mode": "secondaryPreferred"}},
    );
    reply.get_document("collections").unwrap().clone()
}

/// Wait until all members have the same documents.
fn await_equal(set: &Set) {
    let primary = set.primary();
    let expected = hash(&mut set.client(primary));
    assert!(3 <= expected.len(), "{expected}");
    for i in set.running() {
        await_so("the same documents", || {
            hash(&mut set.client(i)) == expected
        });
        let mut client = set.client(i);
        for name in ["c", "d", "log"] {
            let report = client.ok("test", doc! {"validate": name, "full": true});
            assert!(report.get_bool("valid").unwrap(), "{report}");
        }
        let indexes = client.ok(
            "test",
            doc! {
                "listIndexes": "c",
                "$readPreference": {"mode": "secondaryPreferred"},
            },
        );
        assert_eq!(batch(&indexes).len(), 2, "{indexes}");
    }
}

/// Writes of all kinds, for as long as it exists.
struct Writing {
    stop: Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<i32>>,
}

impl Writing {
    fn begin(mut client: Client) -> Writing {
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let body = move || {
            let mut i = 0;
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                write(&mut client, i);
                i += 1;
            }
            i
        };
        Writing {
            stop,
            thread: Some(stdx::sync::spawn("writes", body).unwrap()),
        }
    }

    fn end(mut self) -> i32 {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn write(client: &mut Client, i: i32) {
    let id = (i * 37) % 2_000;
    let w = doc! {"w": 1};
    let mut run = |mut command: Document| {
        command.insert("writeConcern", w.clone());
        client.ok("test", command);
    };
    run(doc! {"insert": "c", "documents": [{"_id": 10_000 + i, "a": i}]});
    let change = doc! {"q": {"_id": id}, "u": {"$inc": {"n": 1}, "$push": {"l": i}}};
    run(doc! {"update": "c", "updates": [change]});
    run(doc! {"delete": "c", "deletes": [{"q": {"_id": (i * 53) % 2_000}, "limit": 1}]});
    let change = doc! {"q": {"_id": 1}, "u": {"$set": {"u": i}}};
    run(doc! {"update": "d", "updates": [change]});
    run(doc! {"insert": "log", "documents": [{"text": "y".repeat(300)}]});
    if i % 20 == 0 {
        run(doc! {"insert": format!("made{}", i % 3), "documents": [{"a": i}]});
        run(doc! {"drop": format!("made{}", (i + 20) % 3)});
    }
}

/// `sync`: Z1 and Z2.
#[test]
fn a_member_on_another_engine_copies_a_set_that_began_with_data() {
    let mut set = begun();
    let writing = Writing::begin(set.client(0));
    let one = join(&mut set, on(other()));
    reconfig(&set);
    await_secondary(&set, one);
    assert!(0 < writing.end());
    await_equal(&set);
    // It has a vote, and counts for a majority; users came with the data.
    await_so("its vote", || {
        let status = set.client(0).ok("admin", doc! {"replSetGetStatus": 1});
        status.get_i32("votingMembersCount").unwrap() == 2
    });
    let majority = doc! {"w": "majority", "wtimeout": 60_000};
    let mut command = insert(-1);
    command.insert("writeConcern", majority);
    set.client(0).ok("test", command);
    let mut of_one = read("c");
    of_one.insert("filter", doc! {"_id": -1});
    await_so("the new document", || {
        batch(&set.client(one).ok("test", of_one.clone())).len() == 1
    });
    let users = doc! {"usersInfo": 1};
    let users = set.client(one).ok("admin", users);
    assert_eq!(users.get_array("users").unwrap().len(), 1, "{users}");
    // It has no oplog of before, and says so to the next member.
    let two = join(&mut set, on(kv_betree::factory()));
    reconfig(&set);
    await_secondary(&set, two);
    await_equal(&set);
}

#[test]
fn all_members_of_a_set_that_begins_with_data_get_them() {
    let first = Site::try_in(with_data(), waiting(None, 0)).unwrap();
    let mut set = Set::from(vec![first]);
    join(&mut set, on(kv_betree::factory()));
    join(&mut set, on(other()));
    set.client(0)
        .ok("admin", doc! {"replSetInitiate": set.config(1, |_, _| {})});
    set.primary();
    for i in 1..3 {
        await_secondary(&set, i);
    }
    await_equal(&set);
    // Without the first one they elect a primary among them.
    drop(set.stop(0));
    let primary = set.primary_but(Some(0));
    let mut client = set.client(primary);
    client.ok("test", insert(-5));
    await_equal(&set);
}

/// `sync`: Z3.
#[test]
fn a_member_that_is_restarted_during_an_initial_sync_continues() {
    let mut set = begun();
    let one = join(&mut set, on(kv_betree::factory()));
    reconfig(&set);
    let mut copied = 0;
    for _ in 0..3 {
        let mut shown = Document::new();
        await_so("the sync under way", || {
            let status = set.client(one).run("admin", doc! {"replSetGetStatus": 1});
            shown = status
                .get_document("initialSyncStatus")
                .cloned()
                .unwrap_or_default();
            let bytes = shown.get_i64("approxTotalBytesCopied").unwrap_or(0);
            0 < bytes || status.get_i32("myState").unwrap_or(0) == 2
        });
        if shown.get_str("method").is_ok() {
            copied += 1;
            // It shows nothing of what it has.
            let code = set.client(one).fails("test", read("c")).0;
            assert!([13_436, 13_435].contains(&code), "{code}");
        }
        let folder = set.stop(one);
        // The source changes meanwhile, and is restarted, too.
        write(&mut set.client(0), 7 + copied);
        let source = set.stop(0);
        set.resume(0, source);
        set.primary();
        set.resume(one, folder);
    }
    await_secondary(&set, one);
    await_equal(&set);
}

#[test]
fn a_member_too_far_behind_is_not_emptied_and_says_what_to_do() {
    let mut set = Set::from(Vec::new());
    // The smallest oplog: a segment is a quarter of it.
    for _ in 0..2 {
        let site = Site::with(|config| {
            waiting(None, 0)(config);
            config.oplog_bytes = Some(1 << 20);
        });
        join(&mut set, site);
    }
    set.client(0).ok(
        "admin",
        doc! {"replSetInitiate": set.config(1, |i, m| {
            if i == 1 {
                m.extend(doc! {"votes": 0, "priority": 0});
            }
        })},
    );
    set.primary();
    set.client(0).ok("test", insert(1));
    set.await_documents(1, "c", &[1]);
    let folder = set.stop(1);
    let mut client = set.client(0);
    let first = |client: &mut Client| {
        let find = doc! {"find": "oplog.rs", "limit": 1, "projection": {"ts": 1}};
        batch(&client.ok("local", find))[0]
            .get_timestamp("ts")
            .unwrap()
    };
    let before = first(&mut client);
    let mut id = 10;
    await_so("a shorter oplog", || {
        id += 1;
        let document = doc! {"_id": id, "text": "x".repeat(100_000)};
        client.ok("test", doc! {"insert": "d", "documents": [document]});
        before < first(&mut client)
    });
    set.resume(1, folder);
    await_so("a member too far behind", || state(&set, 1) == 3);
    let status = set.client(1).ok("admin", doc! {"replSetGetStatus": 1});
    let members = status.get_array("members").unwrap();
    let own = members[1].as_document().unwrap();
    let info = own.get_str("infoMessage").unwrap();
    assert!(info.contains("empty its data directory"), "{info}");
    // An operator does so.
    drop(set.stop(1));
    set.resume(1, tempfile::tempdir().unwrap());
    await_secondary(&set, 1);
    set.await_documents(1, "c", &[1]);
    let expected = hash(&mut client);
    await_so("the same documents", || {
        hash(&mut set.client(1)) == expected
    });
}
