//! `oplog-archive` and `restore --oplog --to`: a backup and the archive lead to any later time.

use std::fs;
use std::process::{Child, Stdio};

use mongodb::bson::{Document, Timestamp, doc};
use mongodb::sync::Collection;
use rustix::process::{Pid, Signal, kill_process};

use crate::backup::{client, serve_with, uri, write_keys};
use crate::program::{Place, wait_for};
use crate::servers::Foreign;

const SET: &str = "--replSet rs0";
const KEY: &str = "--enableEncryption --encryptionKeyFile key";

fn numbers(port: u64) -> Collection<Document> {
    client(port).database("test").collection("numbers")
}

/// Insert documents; returns the time of the last write.
pub(crate) fn insert(port: u64, ids: std::ops::Range<i32>) -> Timestamp {
    let documents = ids.map(|id| doc! {"_id": id});
    numbers(port).insert_many(documents).run().unwrap();
    written(port)
}

pub(crate) fn written(port: u64) -> Timestamp {
    let admin = client(port).database("admin");
    let hello = admin.run_command(doc! {"hello": 1}).run().unwrap();
    let last = hello.get_document("lastWrite").unwrap();
    last.get_document("opTime")
        .unwrap()
        .get_timestamp("ts")
        .unwrap()
}

fn count(port: u64) -> u64 {
    numbers(port).count_documents(doc! {}).run().unwrap()
}

/// A time as `--to` takes it.
pub(crate) fn to(time: Timestamp) -> String {
    format!("{}:{}", time.time, time.increment)
}

fn archive(place: &Place, server: &Foreign) {
    let line = ["oplog-archive", "--from", &uri(server), "--once", "archive"];
    let ran = place.run(&line).exits(0);
    assert!(ran.out.contains("archived up to"), "{}", ran.out);
}

fn end(mut server: Foreign) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert!(server.child.wait().unwrap().success());
}

/// A server, its backup `base`, and its archive, of three slices, in a place. Returns the times
/// after 10 and 20 documents; in the end there are none.
fn history(place: &Place, flags: &str) -> [Timestamp; 2] {
    let server = serve_with(place, "betree", "db", &format!("{SET} {flags}"));
    let port = server.port;
    insert(port, 0..5);
    archive(place, &server);
    place
        .run(&["backup", "--uri", &uri(&server), "base"])
        .exits(0);
    let ten = insert(port, 5..10);
    archive(place, &server);
    let twenty = insert(port, 10..20);
    numbers(port).drop().run().unwrap();
    archive(place, &server);
    end(server);
    [ten, twenty]
}

#[test]
fn a_backup_is_restored_to_a_later_time() {
    for (flags, key) in [("", &[][..]), (KEY, &["--encryptionKeyFile", "key"][..])] {
        let place = Place::new();
        write_keys(&place);
        let [ten, twenty] = history(&place, flags);
        let restore = |more: &[&str]| {
            let line = [
                &["restore", "base", "--dbpath", "new", "--oplog", "archive"],
                key,
                more,
            ];
            place.run(&line.concat())
        };
        for (time, documents) in [(Some(ten), 10), (Some(twenty), 20), (None, 0)] {
            let time = time.map(to);
            let more = time.as_ref().map(|time| ["--to", time.as_str()]);
            let ran = restore(more.as_ref().map_or(&[][..], |more| &more[..])).exits(0);
            assert!(
                ran.out.contains("entries of the oplog lead to"),
                "{}",
                ran.out
            );
            assert!(!place.path("new.restoring").exists());
            let server = serve_with(&place, "betree", "new", &format!("{SET} {flags}"));
            assert_eq!(count(server.port), documents, "{time:?}");
            // It is a store of its own.
            insert(server.port, 100..110);
            end(server);
            fs::remove_dir_all(place.path("new")).unwrap();
        }
        if !key.is_empty() {
            let line = ["restore", "base", "--dbpath", "new", "--oplog", "archive"];
            place.run(&line).refuses(1, &["--encryptionKeyFile"]);
        }
    }
}

#[test]
fn what_an_archive_cannot_do_is_named() {
    let place = Place::new();
    // Another deployment, which has written nothing since the archive's begin.
    let idle = serve_with(&place, "betree", "idle", SET);
    insert(idle.port, 0..5);
    let [ten, _] = history(&place, "");
    let line = ["oplog-archive", "--from", &uri(&idle), "--once", "archive"];
    place.run(&line).refuses(1, &["of another deployment"]);
    end(idle);
    let refuses = |archive: &str, to: &str, needles: &[&str]| {
        let line = ["restore", "base", "--dbpath", "new", "--oplog", archive];
        let line = [&line[..], &["--to", to]].concat();
        place.run(&line).refuses(1, needles);
        assert!(!place.path("new").exists());
        assert!(!place.path("new.restoring").exists());
    };
    refuses("archive", "2106-02-07T06:28:14Z", &["the archive ends at"]);
    refuses(
        "archive",
        "1970-01-02T00:00:00Z",
        &["use an earlier backup"],
    );
    refuses("none", "7:1", &["no oplog archive has this path"]);
    let wrong = ["restore", "base", "--dbpath", "new", "--to", "7:1"];
    place.run(&wrong).exits(64);
    // An archive that begins after the backup.
    let slices = place.names("archive");
    let [first, second, third] = &slices[..slices.len() - 1] else {
        panic!("{slices:?}");
    };
    fs::create_dir(place.path("late")).unwrap();
    let slice = |folder: &str, name: &str| place.path(folder).join(name);
    fs::copy(slice("archive", third), slice("late", third)).unwrap();
    let last = ["restore", "base", "--dbpath", "new", "--oplog", "late"];
    place.run(&last).refuses(1, &["the archive begins after"]);
    // One with a gap, and one with a damaged slice.
    fs::create_dir(place.path("gap")).unwrap();
    for name in [first, third] {
        fs::copy(slice("archive", name), slice("gap", name)).unwrap();
    }
    let gap = ["restore", "base", "--dbpath", "new", "--oplog", "gap"];
    place.run(&gap).refuses(1, &["a gap", third]);
    let mut bytes = fs::read(slice("archive", second)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::copy(slice("archive", second), slice("gap", second)).unwrap();
    fs::write(slice("gap", second), bytes).unwrap();
    place.run(&gap).refuses(1, &["damaged", second]);
    // That of another deployment.
    let server = serve_with(&place, "betree", "other", SET);
    insert(server.port, 0..5);
    let line = [
        "oplog-archive",
        "--from",
        &uri(&server),
        "--once",
        "foreign",
    ];
    place.run(&line).exits(0);
    let continued = [
        "oplog-archive",
        "--from",
        &uri(&server),
        "--once",
        "archive",
    ];
    place.run(&continued).refuses(1, &["of another deployment"]);
    end(server);
    let foreign = ["restore", "base", "--dbpath", "new", "--oplog", "foreign"];
    let ran = place.run(&foreign).exits(1);
    let named = ["another deployment", "begins after"];
    assert!(
        named.iter().any(|name| ran.err.contains(name)),
        "{}",
        ran.err
    );
    assert!(!place.path("new").exists());
    // The archive as it was still leads there.
    let line = ["restore", "base", "--dbpath", "new", "--oplog", "archive"];
    place
        .run(&[&line[..], &["--to", to(ten).as_str()]].concat())
        .exits(0);
}

#[test]
fn collections_are_restored_by_name() {
    let place = Place::new();
    let server = serve_with(&place, "betree", "db", SET);
    let names = [
        ("shop", "a"),
        ("shop", "b"),
        ("test", "numbers"),
        ("test", "c"),
    ];
    for (db, coll) in names {
        let collection = client(server.port).database(db).collection(coll);
        collection.insert_one(doc! {"_id": 1}).run().unwrap();
    }
    let user = doc! {"createUser": "u", "pwd": "p", "roles": ["root"]};
    let admin = client(server.port).database("admin");
    admin.run_command(user).run().unwrap();
    place
        .run(&["backup", "--uri", &uri(&server), "base"])
        .exits(0);
    insert(server.port, 2..5);
    archive(&place, &server);
    end(server);
    let restore = |more: &str| {
        let line: Vec<&str> = ["restore", "base", "--dbpath", "new"]
            .into_iter()
            .chain(more.split_whitespace())
            .collect();
        place.run(&line)
    };
    restore("--nsInclude test.none").refuses(1, &["no collection test.none"]);
    restore("--nsInclude test").exits(64);
    assert!(!place.path("new").exists());
    for (more, documents) in [("", 1), ("--oplog archive", 4)] {
        let ran = restore(&format!(
            "--nsInclude shop.* --nsInclude test.numbers {more}"
        ));
        let ran = ran.exits(0);
        assert!(
            ran.out.contains("3 collections and views are kept"),
            "{}",
            ran.out
        );
        let server = serve_with(&place, "betree", "new", SET);
        assert_eq!(count(server.port), documents);
        let mut kept = Vec::new();
        for db in ["shop", "test"] {
            let database = client(server.port).database(db);
            let names = database.list_collection_names().run().unwrap();
            kept.extend(names.into_iter().map(|name| format!("{db}.{name}")));
        }
        kept.sort();
        assert_eq!(kept, ["shop.a", "shop.b", "test.numbers"]);
        let admin = client(server.port).database("admin");
        let users = admin.run_command(doc! {"usersInfo": 1}).run().unwrap();
        assert_eq!(users.get_array("users").unwrap().len(), 1);
        end(server);
        fs::remove_dir_all(place.path("new")).unwrap();
    }
}

/// A program that follows a server.
fn follow(place: &Place, port: u64) -> Child {
    let mut command = place.outside(env!("CARGO_BIN_EXE_romanesco"));
    let uri = format!("mongodb://127.0.0.1:{port}");
    command.args(["oplog-archive", "--from", &uri, "--every", "1", "archive"]);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn an_archive_is_continued_after_kills_and_restarts_of_the_server() {
    let place = Place::new();
    let mut server = serve_with(&place, "betree", "db", SET);
    insert(server.port, 0..5);
    place
        .run(&["backup", "--uri", &uri(&server), "base"])
        .exits(0);
    let slices = || {
        let names = place.names("archive");
        names.iter().filter(|name| name.ends_with(".oplog")).count()
    };
    for round in 1..4 {
        let before = slices();
        let mut archiver = follow(&place, server.port);
        insert(server.port, round * 10..round * 10 + 5);
        wait_for("a slice", || before < slices());
        archiver.kill().unwrap();
        archiver.wait().unwrap();
        insert(server.port, round * 10 + 5..round * 10 + 10);
        end(server);
        server = serve_with(&place, "betree", "db", SET);
    }
    // It writes what it has when it ends.
    let mut archiver = follow(&place, server.port);
    let last = insert(server.port, 100..110);
    wait_for("the archive to be read", || {
        kill_process(Pid::from_child(&archiver), Signal::TERM).unwrap();
        archiver.wait().unwrap();
        archiver = follow(&place, server.port);
        let line = [
            "restore", "base", "--dbpath", "new", "--oplog", "archive", "--to",
        ];
        let ran = place.run(&[&line[..], &[to(last).as_str()]].concat());
        assert!(ran.code == 0 || ran.err.contains("ends at"), "{}", ran.err);
        ran.code == 0
    });
    archiver.kill().unwrap();
    archiver.wait().unwrap();
    end(server);
    let server = serve_with(&place, "betree", "new", SET);
    assert_eq!(count(server.port), 45);
    end(server);
}
