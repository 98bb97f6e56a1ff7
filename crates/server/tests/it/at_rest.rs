//! Encryption at rest: what clients write is readable in no file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bson::{Document, doc};

use crate::auth::{as_user, guarded};
use crate::client::{Client, Site};

const MARK: &str = "planted-secret-3f8e";

/// A key file, and options of an engine that uses it.
fn keyed(home: &Path) -> (PathBuf, kv::EngineOptions) {
    let key = home.join("master.key");
    fs::write(&key, "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let mut options = kv::EngineOptions::default();
    let path = key.to_str().unwrap().to_owned();
    options.own.insert(kv::Encryption::OPTION.to_owned(), path);
    // Nothing is hidden by compression.
    options.codec = kv::Codec::None;
    (key, options)
}

fn marked(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(marked(&path));
        } else if fs::read(&path)
            .unwrap()
            .windows(MARK.len())
            .any(|at| at == MARK.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

/// Write marked documents, index them and sort them on disk; returns the files that show a mark
/// while the server works and after its end, and what serverStatus says.
fn work(options: &kv::EngineOptions) -> (Vec<PathBuf>, Document) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let opened = kv_betree::factory().open(&path, options).unwrap();
    let site = Site::over(Arc::from(opened), folder, |_| {}).unwrap();
    let mut client = site.client();
    // Every command is slow: the log and the profile have all of them.
    client.ok("test", doc! {"profile": 0, "slowms": -1});
    for from in (0..2000).step_by(500) {
        let documents: Vec<Document> = (from..from + 500)
            .map(|id| doc! {"_id": id, "name": format!("{MARK}-{id}"), "fill": "x".repeat(200)})
            .collect();
        client.ok("test", doc! {"insert": MARK, "documents": documents});
    }
    let document = doc! {"_id": "bulk", "name": format!("{MARK}-1")};
    let ops = [doc! {"insert": 0, "document": document}];
    let spaces = [doc! {"ns": format!("test.{MARK}")}];
    client.ok("admin", doc! {"bulkWrite": 1, "ops": ops, "nsInfo": spaces});
    let index = doc! {"key": {"name": 1}, "name": "name"};
    client.ok("test", doc! {"createIndexes": MARK, "indexes": [index]});
    client.ok("admin", doc! {"fsync": 1});
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let log = client.ok("admin", doc! {"getLog": "global"});
    let lines = log.get_array("log").unwrap();
    let inserts = lines.iter().map(ToString::to_string);
    let written = |line: &String| line.contains("insert") || line.contains("bulkWrite");
    let inserts: Vec<String> = inserts.filter(written).collect();
    for name in ["insert", "bulkWrite"] {
        assert!(
            inserts.iter().any(|line| line.contains(name)),
            "{name} is logged"
        );
    }
    let value = format!("{MARK}-1");
    assert!(
        !inserts.iter().any(|line| line.contains(&value)),
        "{inserts:?}"
    );
    let mut found = marked(&path);
    let folder = site.stop();
    found.extend(marked(folder.path()));
    (found, status)
}

#[test]
fn nothing_that_clients_write_is_readable_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    let (_, options) = keyed(home.path());
    let (found, status) = work(&options);
    assert!(found.is_empty(), "{found:?}");
    let shown = status.get_document("encryptionAtRest").unwrap();
    assert!(shown.get_bool("encryptionEnabled").unwrap());
    assert_eq!(shown.get_str("encryptionCipherMode").unwrap(), "AES256-GCM");
    assert_eq!(shown.get_str("encryptionKeyId").unwrap().len(), 16);

    let plain = kv::EngineOptions {
        codec: kv::Codec::None,
        ..kv::EngineOptions::default()
    };
    let (found, status) = work(&plain);
    assert!(!found.is_empty(), "the check can fail");
    assert!(status.get("encryptionAtRest").is_none());
}

#[test]
fn a_key_file_is_checked_before_the_store_is_touched() {
    let home = tempfile::tempdir().unwrap();
    let (key, options) = keyed(home.path());
    let store = home.path().join("store");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = kv_betree::factory().open(&store, &options).err().unwrap();
    assert_eq!(error.kind(), kv::ErrorKind::Invalid);
    assert!(error.to_string().contains("0600 or 0400"), "{error}");
    assert!(!store.exists(), "nothing is written");
    fs::remove_file(&key).unwrap();
    let error = kv_betree::factory().open(&store, &options).err().unwrap();
    assert!(error.to_string().contains("master.key"), "{error}");
    assert!(!store.exists(), "nothing is written");
}

/// The lines of the log about rotations.
fn rotations(client: &mut Client) -> Vec<String> {
    let log = client.ok("admin", doc! {"getLog": "global"});
    let lines = log.get_array("log").unwrap().iter();
    let lines = lines.map(|line| line.as_str().unwrap().to_owned());
    lines
        .filter(|line| line.contains("of the data files"))
        .collect()
}

#[test]
fn the_master_key_is_rotated_by_a_command() {
    let home = tempfile::tempdir().unwrap();
    let (key, options) = keyed(home.path());
    let next = home.path().join("next.key");
    fs::write(&next, "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=").unwrap();
    fs::set_permissions(&next, fs::Permissions::from_mode(0o600)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let opened = kv_betree::factory().open(folder.path(), &options).unwrap();
    let site = Site::over(Arc::from(opened), folder, |_| {}).unwrap();
    let mut client = site.client();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    let rotate = |file: &Path| doc! {"rotateMasterKey": 1, "encryptionKeyFile": file.to_str()};
    for (command, word) in [
        (doc! {"rotateMasterKey": 1}, "needs encryptionKeyFile"),
        (rotate(Path::new("next.key")), "absolute"),
        (rotate(&home.path().join("none")), "cannot be read"),
    ] {
        let (_, message) = client.fails("admin", command);
        assert!(message.contains(word), "{message}");
    }
    let (_, message) = client.fails("admin", rotate(&home.path().join("none")));
    for word in ["not rotated", "none", "stays in use", "repeat"] {
        assert!(message.contains(word), "{message}");
    }
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let shown = status.get_document("encryptionAtRest").unwrap();
    assert!(!shown.contains_key("lastRotation"), "{shown}");
    let before = shown.get_str("encryptionKeyId").unwrap().to_owned();
    let reply = client.ok("admin", rotate(&next));
    let lines = rotations(&mut client);
    let ids = |id: &str| lines.iter().filter(|line| line.contains(id)).count();
    // The one that failed twice, and the one that did not.
    assert_eq!(
        [9_000_009, 9_000_010, 9_000_011].map(|id| ids(&id.to_string())),
        [3, 1, 2]
    );
    let log = lines.concat();
    let after = reply.get_str("encryptionKeyId").unwrap();
    assert!(log.contains(&before) && log.contains(after), "{log}");
    assert!(
        !log.contains("AgICAgIC") && !log.contains("AQEBAQEB"),
        "a key is in the log"
    );
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let shown = status.get_document("encryptionAtRest").unwrap();
    assert_eq!(shown.get("encryptionKeyId"), reply.get("encryptionKeyId"));
    assert!(shown.get_datetime("lastRotation").is_ok(), "{shown}");
    assert_eq!(reply.get_i64("dataKey").unwrap(), 1);
    let reply = client.ok("admin", doc! {"rotateMasterKey": 1, "dataKey": true});
    assert_eq!(reply.get_i64("dataKey").unwrap(), 2);
    let folder = site.stop();
    let error = kv_betree::factory()
        .open(folder.path(), &options)
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("not the one of this store"),
        "{error}"
    );
    fs::copy(&next, &key).unwrap();
    kv_betree::factory().open(folder.path(), &options).unwrap();

    let plain = Site::new();
    let (code, message) = plain.client().fails("admin", rotate(&next));
    assert_eq!(code, 115, "{message}");
    assert!(message.contains("security.enableEncryption"), "{message}");
}

#[test]
fn keys_are_rotated_by_users_with_an_action_of_its_own() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    for (role, action) in [("keys", "rotateMasterKey"), ("tls", "rotateCertificates")] {
        let privilege = doc! {"resource": {"cluster": true}, "actions": [action]};
        let made = doc! {"createRole": role, "privileges": [privilege], "roles": []};
        root.ok("admin", made);
    }
    let rotate = doc! {"rotateMasterKey": 1, "dataKey": true};
    // The store of this server is not encrypted: 115 is what a user with the right sees.
    for (role, code) in [
        ("keys", 115),
        ("tls", 13),
        ("hostManager", 115),
        ("backup", 13),
    ] {
        root.ok(
            "admin",
            doc! {"createUser": role, "pwd": "secret", "roles": [role]},
        );
        let refused = as_user(&site, "admin", role).fails("admin", rotate.clone());
        assert_eq!(refused.0, code, "{role}: {refused:?}");
    }
}
