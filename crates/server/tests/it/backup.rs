//! `createBackup`: what it copies, where to, for whom, and how the copy starts.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use backup::{Source, verify};
use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use kv::{EngineOptions, Factory, Flow};

use crate::auth::{as_user, guarded};
use crate::client::{Client, Site, all, await_so, batch};
use crate::oplog::SIZE;

const BAD_VALUE: i32 = 2;
const UNAUTHORIZED: i32 = 13;
const NON_EXISTENT_PATH: i32 = 29;
const COMMAND_NOT_SUPPORTED: i32 = 115;
const CONFLICTING_OPERATION: i32 = 117;
const CHANGE_STREAM_HISTORY_LOST: i32 = 286;
const INTERRUPTED: i32 = 11_601;

/// betree, and LMDB where it is compiled in.
fn engines() -> impl Iterator<Item = &'static dyn Factory> {
    let all = [kv_betree::factory(), kv_lmdb::factory()];
    all.into_iter().filter(|factory| factory.available())
}

/// A server over a new store of an engine.
fn site_of(factory: &dyn Factory) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let engine = factory.open(folder.path(), &EngineOptions::default());
    Site::over(Arc::from(engine.unwrap()), folder, |_| {}).unwrap()
}

fn to_directory(path: &Path) -> Document {
    doc! {"createBackup": 1, "backupDir": path.to_str().unwrap()}
}

fn to_archive(path: &Path) -> Document {
    doc! {"createBackup": 1, "archive": path.to_str().unwrap()}
}

/// Verify a backup and restore it to a new directory, whose folder is returned.
fn restored(backup: &Path) -> tempfile::TempDir {
    let source = Source::open(backup).unwrap();
    let report = verify(&source, &mut |_| Flow::Continue).unwrap().unwrap();
    assert_eq!(report.findings, []);
    let folder = tempfile::tempdir().unwrap();
    // An empty directory is taken as the target.
    let done = backup::restore(&source, folder.path(), &|_| Ok(()), &mut |_| Flow::Continue);
    done.unwrap().expect("nothing cancelled it");
    folder
}

fn ids(client: &mut Client, collection: &str) -> Vec<i64> {
    let find = doc! {"find": collection, "sort": {"_id": 1}, "batchSize": 1_000_000};
    let found = batch(&client.ok("test", find));
    found
        .iter()
        .map(|one| one.get_i64("_id").unwrap())
        .collect()
}

/// Insert numbered documents into `c`, and after each the same into `d`, until `stop`.
fn write(site: &Site, done: &Arc<AtomicI64>, stop: &Arc<AtomicBool>) -> stdx::sync::JoinHandle<()> {
    let (mut client, done, stop) = (site.client(), Arc::clone(done), Arc::clone(stop));
    let body = move || {
        let padding = "x".repeat(500);
        for id in 0_i64.. {
            for collection in ["c", "d"] {
                let document = doc! {"_id": id, "padding": &padding};
                client.ok("test", doc! {"insert": collection, "documents": [document]});
            }
            done.store(id + 1, Ordering::Release);
            if stop.load(Ordering::Acquire) {
                return;
            }
        }
    };
    stdx::sync::spawn("writer", body).unwrap()
}

#[test]
fn a_backup_under_writes_is_one_moment_without_holes() {
    for factory in engines() {
        let site = site_of(factory);
        let place = tempfile::tempdir().unwrap();
        let (done, stop) = (
            Arc::new(AtomicI64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let writer = write(&site, &done, &stop);
        let mut client = site.client();
        let written = || done.load(Ordering::Acquire);
        await_so("documents", || 200 <= written());
        for (round, codec) in ["none", "lz4", "zstd"].into_iter().enumerate() {
            let before = written();
            let path = place.path().join(format!("copy {codec}"));
            let archive = path.with_extension("tar");
            let (mut command, path) = match round % 2 {
                0 => (to_directory(&path), path),
                _ => (to_archive(&archive), archive),
            };
            command.insert("compression", codec);
            let reply = client.ok("admin", command);
            let shown = reply.get_document("backup").unwrap();
            assert_eq!(shown.get_str("engine").unwrap(), factory.name());
            assert!(0 < shown.get_i64("storedBytes").unwrap(), "{shown}");
            let after = written() + 1;
            // The writes continue.
            await_so("more documents", || after + 20 <= written());
            let folder = restored(&path);
            let engine = factory.open(folder.path(), &EngineOptions::default());
            let copy = Site::over(Arc::from(engine.unwrap()), folder, |_| {}).unwrap();
            let mut client = copy.client();
            let (c, d) = (ids(&mut client, "c"), ids(&mut client, "d"));
            let range = |ids: &[i64]| (0..i64::try_from(ids.len()).unwrap()).collect::<Vec<_>>();
            assert_eq!(c, range(&c), "{codec}: a hole");
            assert_eq!(d, range(&d), "{codec}: a hole");
            assert!(
                d.len() == c.len() || d.len() + 1 == c.len(),
                "{codec}: two moments"
            );
            let count = i64::try_from(c.len()).unwrap();
            assert!(
                (before..=after).contains(&count),
                "{before} {count} {after}"
            );
            for collection in ["c", "d"] {
                let report = client.ok("test", doc! {"validate": collection});
                assert!(report.get_bool("valid").unwrap(), "{report}");
            }
        }
        stop.store(true, Ordering::Release);
        writer.join().unwrap();
    }
}

#[test]
fn places_that_are_not_allowed_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let site = Site::new();
    let mut client = site.client();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("taken")).unwrap();
    fs::write(at("taken/mine"), b"precious").unwrap();
    fs::write(at("taken.tar"), b"precious").unwrap();
    let mut fails = |command: Document| client.fails("admin", command);
    let relative = fails(doc! {"createBackup": 1, "backupDir": ""});
    assert_eq!(
        relative,
        (BAD_VALUE, "Destination path must be absolute".to_owned())
    );
    for command in [
        to_directory(&at("taken")),
        to_archive(&at("taken.tar")),
        to_archive(&at("new.zip")),
        to_directory(&at("taken/../new")),
        doc! {"createBackup": 1},
        doc! {"createBackup": 1, "backupDir": "/a", "archive": "/a.tar"},
        doc! {"createBackup": 1, "backupDir": "/a", "compression": "best"},
        doc! {"createBackup": 1, "backupDir": "/a", "throttle": 0},
    ] {
        assert_eq!(fails(command.clone()).0, BAD_VALUE, "{command}");
    }
    assert_eq!(fails(to_directory(&at("missing/new"))).0, NON_EXISTENT_PATH);
    let unknown = doc! {"createBackup": 1, "backupDir": "/a", "increment": true};
    assert_eq!(fails(unknown).0, 40_415);
    assert_eq!(
        client.fails("test", to_directory(&at("new"))).0,
        UNAUTHORIZED
    );
    let mine = [at("taken/mine"), at("taken.tar")].map(|path| fs::read(path).unwrap());
    assert!(
        mine == [b"precious", b"precious"],
        "place: L3: nothing is overwritten"
    );
    drop(client);
    let folder = site.stop();
    let inside = folder.path().join("copy");
    let site = Site::try_in(folder, |config| config.backup_root = Some(at(""))).unwrap();
    let mut client = site.client();
    let refused = client.fails("admin", to_directory(&inside));
    assert!(refused.1.contains("backup.rootDir"), "{refused:?}");
    let other = tempfile::tempdir().unwrap();
    let refused = client.fails("admin", to_directory(&other.path().join("new")));
    assert!(refused.1.contains("backup.rootDir"), "{refused:?}");
    client.ok("admin", to_directory(&at("new")));
    assert!(!inside.exists());
}

#[test]
fn an_increment_has_what_changed_and_is_restored() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let site = site_of(kv_betree::factory());
    let mut client = site.client();
    let insert = |client: &mut Client, ids: std::ops::Range<i64>| {
        let fill = "x".repeat(500);
        let documents: Vec<Document> = ids.map(|id| doc! {"_id": id, "fill": &fill}).collect();
        client.ok("test", doc! {"insert": "c", "documents": documents});
    };
    insert(&mut client, 0..5_000);
    let stored = |reply: &Document| {
        let shown = reply.get_document("backup").unwrap();
        shown.get_i64("storedBytes").unwrap()
    };
    let full = client.ok("admin", to_directory(&at("full")));
    insert(&mut client, 5_000..5_010);
    let on = |mut command: Document, base: &str| {
        command.insert("incremental", base);
        command
    };
    let base = at("full").to_str().unwrap().to_owned();
    let reply = client.ok("admin", on(to_archive(&at("one.tar")), &base));
    let shown = reply.get_document("backup").unwrap();
    assert_eq!(shown.get_str("base").unwrap(), "full");
    assert!(stored(&reply) < stored(&full) / 2, "{reply}");
    let copy = Site::try_in(restored(&at("one.tar")), |_| {}).unwrap();
    assert_eq!(ids(&mut copy.client(), "c"), (0..5_010).collect::<Vec<_>>());
    fs::create_dir(at("below")).unwrap();
    for (wrong, code) in [
        ("full", BAD_VALUE),
        (&*format!("{base}/../full"), BAD_VALUE),
        ("/etc/passwd", BAD_VALUE),
        (at("below/full").to_str().unwrap(), BAD_VALUE),
        (at("none").to_str().unwrap(), NON_EXISTENT_PATH),
    ] {
        let refused = client.fails("admin", on(to_directory(&at("two")), wrong));
        assert_eq!(refused.0, code, "{wrong}: {refused:?}");
        assert!(!at("two").exists());
    }
    let others = engines().filter(|factory| !factory.capabilities().increments);
    for factory in others {
        let command = on(to_directory(&at("two")), &base);
        let refused = site_of(factory).client().fails("admin", command);
        assert_eq!(refused.0, COMMAND_NOT_SUPPORTED, "{refused:?}");
        assert!(refused.1.contains(factory.name()), "{refused:?}");
        assert!(!at("two").exists());
    }
}

#[test]
fn an_engine_in_memory_has_no_backup() {
    let site = site_of(kv::memory::factory());
    let place = tempfile::tempdir().unwrap();
    let command = to_directory(&place.path().join("copy"));
    assert_eq!(
        site.client().fails("admin", command).0,
        COMMAND_NOT_SUPPORTED
    );
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn backups_are_for_users_that_may_take_them() {
    let place = tempfile::tempdir().unwrap();
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let mut try_as = |role: &str| {
        let user = doc! {"createUser": role, "pwd": "secret", "roles": [role]};
        if role != "root" {
            root.ok("admin", user);
        }
        let path = place.path().join(role);
        let reply = as_user(&site, "admin", role).run("admin", to_directory(&path));
        assert_eq!(path.exists(), reply.get_f64("ok").unwrap() == 1.0);
        reply.get_i32("code").unwrap_or(0)
    };
    for role in ["backup", "hostManager", "clusterAdmin", "root"] {
        assert_eq!(try_as(role), 0, "{role}");
    }
    for role in [
        "restore",
        "readWriteAnyDatabase",
        "dbAdminAnyDatabase",
        "clusterMonitor",
    ] {
        assert_eq!(try_as(role), UNAUTHORIZED, "{role}");
    }
    let mut guest = site.client();
    assert_eq!(
        guest
            .fails("admin", to_directory(&place.path().join("x")))
            .0,
        UNAUTHORIZED
    );
}

/// Start a backup that takes hours; returns its number.
fn slow(client: &mut Client, busy: &mut Client, path: &Path) -> i32 {
    let mut command = to_directory(path);
    command.insert("throttle", 1_000);
    busy.send("admin", command, 0);
    let mut found = None;
    await_so("progress of the backup", || {
        let filter = doc! {"currentOp": 1, "command.createBackup": 1};
        let reply = client.ok("admin", filter);
        let shown = reply.get_array("inprog").unwrap().first().cloned();
        found = shown.and_then(|one| one.as_document().cloned());
        found
            .as_ref()
            .is_some_and(|one| one.contains_key("progress"))
    });
    let shown = found.unwrap();
    let message = shown.get_str("msg").unwrap();
    assert!(message.contains("Backup: copying files"), "{message}");
    let progress = shown.get_document("progress").unwrap();
    assert!(0 < progress.get_i64("total").unwrap(), "{shown}");
    shown.get_i32("opid").unwrap()
}

#[test]
fn a_backup_is_shown_and_ends_when_it_is_killed_or_abandoned() {
    for factory in engines() {
        let site = site_of(factory);
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("copy"), place.path().join("other"));
        let mut client = site.client();
        client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
        let mut busy = site.client();
        let number = slow(&mut client, &mut busy, &path);
        assert!(path.exists());
        let second = client.fails("admin", to_directory(&other));
        assert_eq!(second.0, CONFLICTING_OPERATION, "{second:?}");
        assert!(!other.exists());
        // Writes do not wait for it.
        client.ok("test", doc! {"insert": "c", "documents": [{"_id": 2}]});
        client.ok("admin", doc! {"killOp": 1, "op": number});
        let (_, ended) = busy.receive().unwrap();
        assert_eq!(ended.get_i32("code").unwrap(), INTERRUPTED, "{ended}");
        assert!(!path.exists(), "what was written is removed");
        slow(&mut client, &mut busy, &path);
        drop(busy);
        await_so("the end of the abandoned backup", || !path.exists());
        // The next one is not hindered, also while writes are locked.
        client.ok("admin", doc! {"fsync": 1, "lock": true});
        await_so("the turn", || {
            client
                .run("admin", to_directory(&other))
                .get_f64("ok")
                .is_ok_and(|ok| ok == 1.0)
        });
        client.ok("admin", doc! {"fsyncUnlock": 1});
        assert_eq!(all(&mut client, "c", doc! {}).len(), 2);
        let mut late = site.client();
        slow(&mut client, &mut late, &path);
        drop(client);
        drop(site.stop());
        assert!(!path.exists(), "a shutdown ends it");
    }
}

fn store_of(path: &Path) -> String {
    let manifest = Source::open(path).unwrap().manifest().unwrap();
    manifest
        .store
        .expect("a server gives its store an identifier")
}

#[test]
fn a_restored_store_does_not_continue_the_history_of_the_other() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let with = |config: &mut server::Config| config.oplog_bytes = Some(SIZE);
    let site = Site::with(with);
    let mut client = site.client();
    let session = doc! {"id": Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] }};
    let retryable = |id: i32| {
        doc! {
            "insert": "c", "documents": [{"_id": id}], "lsid": session.clone(),
            "txnNumber": i64::from(id),
        }
    };
    client.ok("test", retryable(1));
    let watch = doc! {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}};
    let opened = client.ok("test", watch);
    let cursor = opened.get_document("cursor").unwrap();
    let token = cursor.get_document("postBatchResumeToken").unwrap().clone();
    let inserted = client.ok("test", retryable(2));
    client.ok("admin", to_directory(&at("one")));
    let manifest = Source::open(&at("one")).unwrap().manifest().unwrap();
    let time = manifest.operation_time.expect("it has an oplog");
    let inserted = inserted.get_timestamp("operationTime").unwrap();
    assert!((inserted.time, inserted.increment) <= (time.seconds, time.increment));
    // Later than the backup: these are not in the copy.
    let late = client.ok("test", retryable(3));
    let late = late.get_timestamp("operationTime").unwrap();
    client.ok("admin", to_directory(&at("again")));
    assert_eq!(store_of(&at("one")), store_of(&at("again")));

    let copy = Site::try_in(restored(&at("one")), with).unwrap();
    let mut other = copy.client();
    assert_eq!(all(&mut other, "c", doc! {}).len(), 2);
    // Sessions are those of the backup: what it has is not executed again, what it lacks is.
    for id in [2, 3] {
        let reply = other.ok("test", retryable(id));
        assert!(!reply.contains_key("writeErrors"), "{reply}");
    }
    assert_eq!(all(&mut other, "c", doc! {}).len(), 3);
    let resume = doc! {"$changeStream": {"resumeAfter": token}};
    let resume = doc! {"aggregate": "c", "pipeline": [resume], "cursor": {}};
    assert_eq!(
        other.fails("test", resume.clone()).0,
        CHANGE_STREAM_HISTORY_LOST
    );
    let resumed = client.ok("test", resume.clone());
    assert_eq!(batch(&resumed).len(), 2, "the store itself goes on");
    let own = batch(&other.ok("local", doc! {"find": "oplog.rs", "batchSize": 1_000}));
    let before = |entry: &Document| entry.get_timestamp("ts").unwrap() <= late;
    let shared = own.iter().filter(|entry| before(entry)).count();
    // Both clocks may be within one second; entries with the other's content must be gone.
    let inserts = own
        .iter()
        .filter(|entry| entry.get_str("op").is_ok_and(|op| op == "i"))
        .count();
    assert_eq!(
        (inserts, shared),
        (1, 0),
        "store_id: S1: the oplog is its own"
    );
    other.ok("admin", to_directory(&at("copy")));
    assert_ne!(
        store_of(&at("copy")),
        store_of(&at("one")),
        "store_id: S1: a new identifier"
    );
    drop(other);
    // The second start continues the history of the first one.
    let folder = copy.stop();
    assert!(backup::Mark::read(folder.path()).unwrap().is_none());
    let copy = Site::try_in(folder, with).unwrap();
    let mut other = copy.client();
    let kept = batch(&other.ok("local", doc! {"find": "oplog.rs", "batchSize": 1_000}));
    assert!(own.iter().all(|entry| kept.contains(entry)));
    other.ok("admin", to_directory(&at("later")));
    assert_eq!(store_of(&at("later")), store_of(&at("copy")));
}

#[test]
fn a_mark_that_cannot_be_read_refuses_the_start() {
    let site = Site::new();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("copy");
    site.client().ok("admin", to_directory(&path));
    let folder = restored(&path);
    fs::write(folder.path().join(backup::MARK), b"{").unwrap();
    let refused = Site::try_in(folder, |_| {}).err().unwrap();
    assert!(refused.contains("mark of a restore"), "{refused}");
}
