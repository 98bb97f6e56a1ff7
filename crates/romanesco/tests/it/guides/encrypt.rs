//! `docs/guides/encrypt.md`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use mongodb::bson::doc;

use super::{Guide, documents};
use crate::backup::{DOCUMENTS, fill, ids};

const PAGE: &str = include_str!("../../../../../docs/guides/encrypt.md");

/// The settings of the page, with the paths of the test.
fn configure(guide: &Guide, settings: &str) {
    fs::create_dir_all(guide.path("/var/lib/romanesco")).unwrap();
    fs::write(guide.place.path("romanesco.yaml"), settings).unwrap();
}

/// What the page shows of `serverStatus` is what a server replies.
fn status(guide: &mut Guide) -> String {
    let block = guide.next("js");
    let shown = documents(&block).remove(0);
    let status = guide.command(doc! {"serverStatus": 1}).unwrap();
    let found = status.get_document("encryptionAtRest").unwrap();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        shown.keys().collect::<Vec<_>>()
    );
    for field in ["encryptionEnabled", "encryptionCipherMode", "dataKey"] {
        assert_eq!(
            found.get(field).unwrap().to_string(),
            shown.get(field).unwrap().to_string()
        );
    }
    found.get_str("encryptionKeyId").unwrap().to_owned()
}

/// The server does not start, and says why in one line with these words.
fn refused(guide: &Guide, start: &str, words: &[&str]) {
    guide
        .shell(&format!("{start} --port 0"))
        .refuses(100, words);
}

/// Both keys are rotated, and the old one opens nothing any more.
fn rotate(guide: &mut Guide, start: &str, settings: &str, before: &str) {
    let block = guide.next("sh");
    guide.shell(&block).exits(0);
    for (block, data_key) in [(guide.next("js"), 1), (guide.next("js"), 2)] {
        let reply = guide.command(documents(&block).remove(0)).unwrap();
        let id = reply.get_str("encryptionKeyId").unwrap();
        assert_ne!(id, before, "{reply}");
        assert_eq!(reply.get_i64("dataKey").unwrap(), data_key);
    }
    guide.stop();
    refused(guide, start, &["master key", "keys.betree"]);
    configure(guide, &settings.replace("master.key", "master-2.key"));
    guide.serve(start);
    assert_eq!(ids(guide.port()), (0..DOCUMENTS).collect::<Vec<_>>());
}

/// Each of the two files is needed.
fn lose(guide: &mut Guide, start: &str) {
    guide.stop();
    let away = guide.place.path("away");
    for (path, words) in [
        ("/etc/romanesco/master-2.key", "master-2.key"),
        ("/var/lib/romanesco/keys.betree", "keys.betree"),
    ] {
        fs::rename(guide.path(path), &away).unwrap();
        refused(guide, start, &[words]);
        fs::rename(&away, guide.path(path)).unwrap();
    }
    // A server that runs has the keys, and writes the file again.
    guide.serve(start);
    let keys = guide.path("/var/lib/romanesco/keys.betree");
    fs::remove_file(&keys).unwrap();
    let rotate = doc! {"rotateMasterKey": 1, "dataKey": true};
    guide.command(rotate).unwrap();
    assert!(keys.exists());
    guide.serve(start);
}

#[test]
fn the_guide_to_encryption_is_followed() {
    if Command::new("openssl").arg("version").output().is_err() {
        stdx::skip::test("openssl makes the keys of the guide");
        return;
    }
    let mut guide = Guide::new(PAGE);
    let block = guide.next("sh");
    guide.shell(&block).exits(0);
    let key = fs::metadata(guide.path("/etc/romanesco/master.key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    let settings = guide.next("yaml");
    configure(&guide, &settings);
    let block = guide.next("sh");
    let start = block.trim_end().to_owned();
    guide.serve(&start);
    assert!(guide.place.text("server.log").contains("\"id\":9000007"));
    let before = status(&mut guide);
    fill(guide.port());
    rotate(&mut guide, &start, &settings, &before);
    lose(&mut guide, &start);
    let block = guide.next("sh");
    let map = guide
        .shell(&block.replace("master.key", "master-2.key"))
        .exits(0);
    assert!(map.out.contains("free"), "{}", map.out);
    guide.ends();
}
