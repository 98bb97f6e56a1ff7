//! Increments by the program: of a server and of a directory, plain and encrypted.

use std::fs;

use mongodb::bson::{Document, doc};
use rustix::process::{Pid, Signal, kill_process};

use crate::backup::{DOCUMENTS, client, fill, ids, serve, serve_with, uri, write_keys};
use crate::program::Place;
use crate::servers::Foreign;

fn end(mut server: Foreign) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert!(server.child.wait().unwrap().success());
}

/// Remove a document from the end.
fn remove(port: u64, id: i64) {
    let collection = client(port).database("test").collection::<Document>("c");
    let removed = collection.delete_one(doc! {"_id": id}).run().unwrap();
    assert_eq!(removed.deleted_count, 1);
}

/// Bytes of the files of a backup.
fn bytes(place: &Place, name: &str) -> u64 {
    let data = place.path(name).join("files/data.betree");
    fs::metadata(data).unwrap().len()
}

/// Full backup, increments of the server and of its directory; the last one has `count` documents.
fn chain(place: &Place, flags: &str, key: &[&str], rotates: bool) -> i64 {
    let server = serve_with(place, "betree", "db", flags);
    fill(server.port);
    let from = uri(&server);
    place.run(&["backup", "--uri", &from, "full"]).exits(0);
    remove(server.port, DOCUMENTS - 1);
    if rotates {
        let rotate = doc! {"rotateMasterKey": 1, "dataKey": true};
        client(server.port)
            .database("admin")
            .run_command(rotate)
            .run()
            .unwrap();
    }
    let line = ["backup", "--uri", &from, "--incremental", "full", "one"];
    let ran = place.run(&line).exits(0);
    assert!(ran.out.contains("files"), "{}", ran.out);
    remove(server.port, DOCUMENTS - 2);
    end(server);
    let line = [
        "backup",
        "--dbpath",
        "db",
        "--incremental",
        "one",
        "two.tar",
    ];
    place.run(&[&line, key].concat()).exits(0);
    assert!(bytes(place, "one") < bytes(place, "full") / 2);
    DOCUMENTS - 2
}

#[test]
fn a_chain_is_verified_restored_and_served() {
    let place = Place::new();
    let count = chain(&place, "", &[], false);
    let ran = place.run(&["verify-backup", "two.tar"]).exits(0);
    assert!(
        ran.out.contains("an increment on one on full"),
        "{}",
        ran.out
    );
    place
        .run(&["restore", "two.tar", "--dbpath", "new"])
        .exits(0);
    let server = serve(&place, "betree", "new");
    assert_eq!(ids(server.port), (0..count).collect::<Vec<_>>());
    // The restored store is another one, and the chain is of the first.
    let from = uri(&server);
    let line = ["backup", "--uri", &from, "--incremental", "two.tar", "next"];
    place
        .run(&line)
        .refuses(1, &["another store", "take a full backup"]);
    end(server);
    for (base, words) in [
        ("none", ["no backup has this path", "none"]),
        ("new/copy", ["no backup has this path", "new/copy"]),
        ("db", ["no complete backup", "is no complete"]),
    ] {
        let line = ["backup", "--dbpath", "new", "--incremental", base, "next"];
        let ran = place.run(&line).exits(1);
        assert!(
            words.iter().any(|word| ran.err.contains(word)),
            "{}",
            ran.err
        );
        assert!(!place.path("next").exists());
    }
    fs::rename(place.path("one"), place.path("aside")).unwrap();
    let missing = ["the base one", "missing; put it"];
    place
        .run(&["verify-backup", "two.tar"])
        .refuses(1, &missing);
    place
        .run(&["restore", "two.tar", "--dbpath", "other"])
        .refuses(1, &missing);
    assert!(!place.path("other").exists());
}

#[test]
fn a_chain_of_an_encrypted_store_needs_its_key_only() {
    let place = Place::new();
    write_keys(&place);
    let flags = "--enableEncryption --encryptionKeyFile key";
    let key = ["--encryptionKeyFile", "key"];
    let count = chain(&place, flags, &key, true);
    place
        .run(&["restore", "two.tar", "--dbpath", "new"])
        .exits(0);
    let wrong = ["serve", "--dbpath", "new", "--port", "0"];
    place
        .run(&wrong)
        .refuses(100, &["security.encryptionKeyFile"]);
    let server = serve_with(&place, "betree", "new", flags);
    assert_eq!(ids(server.port), (0..count).collect::<Vec<_>>());
}

#[test]
fn an_engine_without_increments_names_itself_and_the_next_step() {
    for engine in lab::targets::defaults() {
        if lab::targets::factory(engine)
            .unwrap()
            .capabilities()
            .increments
        {
            continue;
        }
        let place = Place::new();
        let server = serve(&place, engine, "db");
        let from = uri(&server);
        place.run(&["backup", "--uri", &from, "full"]).exits(0);
        let line = ["backup", "--uri", &from, "--incremental", "full", "one"];
        place.run(&line).refuses(1, &[engine, "take a full backup"]);
        assert!(!place.path("one").exists());
    }
}
