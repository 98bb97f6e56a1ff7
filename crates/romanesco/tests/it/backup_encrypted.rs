//! Backups of an encrypted store: they, and what is restored from them, show nothing of the data,
//! and are of no use without the master key.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use memchr::memmem::Finder;
use mongodb::bson::{Document, doc};
use rustix::process::{Pid, Signal, kill_process};

use crate::backup::{client, serve_with, uri, write_keys};
use crate::program::Place;
use crate::servers::Foreign;

const DATABASE: &str = "planted-database-7c1f";
const COLLECTION: &str = "planted-collection-9e2a";
const INDEX: &str = "planted-index-41d8";
const FIELD: &str = "planted_field_5b7d";
const VALUE: &str = "planted-value-3f8e";
const MARKS: [&str; 5] = [DATABASE, COLLECTION, INDEX, FIELD, VALUE];

/// Nothing is hidden by compression.
const PLAIN: &str = "--engineOption codec=none --engineOption delta_codec=none";
const KEY: &str = "--enableEncryption --encryptionKeyFile key";

const COUNT: i32 = 2_000;

fn document(id: i32) -> Document {
    doc! {"_id": id, FIELD: format!("{VALUE}-{id}"), "fill": "x".repeat(200)}
}

fn plant(port: u64) {
    let database = client(port).database(DATABASE);
    let collection = database.collection::<Document>(COLLECTION);
    let documents: Vec<Document> = (0..COUNT).map(document).collect();
    collection.insert_many(documents).run().unwrap();
    let index = doc! {"key": {FIELD: 1}, "name": INDEX};
    let command = doc! {"createIndexes": COLLECTION, "indexes": [index]};
    database.run_command(command).run().unwrap();
}

/// The documents on a server are those that were planted.
fn check(port: u64) {
    let database = client(port).database(DATABASE);
    let collection = database.collection::<Document>(COLLECTION);
    let find = collection.find(doc! {}).sort(doc! {"_id": 1});
    let found: Vec<Document> = find.run().unwrap().map(Result::unwrap).collect();
    assert!(found == (0..COUNT).map(document).collect::<Vec<_>>());
    let names = collection.list_index_names().run().unwrap();
    assert_eq!(names, ["_id_", INDEX]);
}

/// The files below a directory, or one file, by path.
fn files(path: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    if !path.is_dir() {
        found.insert(path.display().to_string(), fs::read(path).unwrap());
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        files(&entry.unwrap().path(), found);
    }
}

fn content(place: &Place, name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(&place.path(name), &mut found);
    assert!(!found.is_empty(), "{name} has files");
    found
}

/// What is planted and appears in the files of a store or a backup, in names and bytes.
fn shown(place: &Place, name: &str) -> Vec<&'static str> {
    let files = content(place, name);
    let appears = |mark: &&str| {
        let finder = Finder::new(mark.as_bytes());
        let mut all = files.iter();
        all.any(|(path, bytes)| path.contains(*mark) || finder.find(bytes).is_some())
    };
    MARKS.into_iter().filter(appears).collect()
}

fn end(mut server: Foreign) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert!(server.child.wait().unwrap().success());
}

/// Make a store in `db` and restore its backups, a directory and an archive, of the running server
/// and of the directory; returns the places of the backups and of the restored stores.
fn restored(place: &Place, flags: &str, key: &[&str]) -> Vec<(String, String)> {
    let server = serve_with(place, "betree", "db", flags);
    plant(server.port);
    let uri = uri(&server);
    for name in ["hot", "hot.tar"] {
        place.run(&["backup", "--uri", &uri, name]).exits(0);
    }
    end(server);
    for name in ["cold", "cold.tar"] {
        let line = [&["backup", "--dbpath", "db"], key, &[name]].concat();
        place.run(&line).exits(0);
    }
    let restore = |name: &str| {
        let target = format!("from {name}");
        // Neither check needs the key.
        place.run(&["verify-backup", name]).exits(0);
        place.run(&["restore", name, "--dbpath", &target]).exits(0);
        (name.to_owned(), target)
    };
    ["hot", "hot.tar", "cold", "cold.tar"].map(restore).into()
}

/// Start a server that must be refused, and write nothing.
#[track_caller]
fn refused(place: &Place, dbpath: &str, flags: &[&str], code: i32, needles: &[&str]) {
    let before = content(place, dbpath);
    let line = ["serve", "--dbpath", dbpath, "--port", "0"];
    let ran = place.run(&[&line, flags].concat());
    ran.refuses(code, needles);
    let mut after = content(place, dbpath);
    // The lock of the directory, which is empty, keeps another process out meanwhile.
    let lock = place.path(dbpath).join("LOCK").display().to_string();
    if !before.contains_key(&lock) {
        assert!(after.remove(&lock).is_none_or(|bytes| bytes.is_empty()));
    }
    assert!(before == after, "something was written: {needles:?}");
}

#[test]
fn a_restored_store_needs_its_master_key_and_shows_nothing_without() {
    let place = Place::new();
    write_keys(&place);
    let flags = format!("{KEY} {PLAIN}");
    let key = ["--encryptionKeyFile", "key"];
    for (backup, store) in restored(&place, &flags, &key) {
        assert_eq!(shown(&place, &backup), [""; 0], "{backup}");
        let missing = ["encrypted", "security.encryptionKeyFile"];
        refused(&place, &store, &[], 100, &missing);
        let enable = ["--enableEncryption"];
        refused(&place, &store, &enable, 2, &["security.encryptionKeyFile"]);
        refused(&place, &store, &key, 2, &["security.enableEncryption"]);
        let other = ["--enableEncryption", "--encryptionKeyFile", "other"];
        let wrong = ["keys.betree", "master key"];
        refused(&place, &store, &other, 100, &wrong);
        assert_eq!(shown(&place, &store), [""; 0], "{store}");
        // Arguments of a server are separated by blanks.
        fs::rename(place.path(&store), place.path("again")).unwrap();
        let server = serve_with(&place, "betree", "again", &flags);
        check(server.port);
        end(server);
        assert_eq!(shown(&place, "again"), [""; 0], "{store}");
        fs::remove_dir_all(place.path("again")).unwrap();
    }
    assert_eq!(shown(&place, "db"), [""; 0]);
}

/// The search finds all that is planted, in each place, if the store is not encrypted.
#[test]
fn a_backup_of_a_plain_store_shows_everything() {
    let place = Place::new();
    for (backup, store) in restored(&place, PLAIN, &[]) {
        assert_eq!(shown(&place, &backup), MARKS, "{backup}");
        assert_eq!(shown(&place, &store), MARKS, "{store}");
    }
    assert_eq!(shown(&place, "db"), MARKS);
}
