//! `backup` and `restore` that signals end: what they leave, and what the next one says.

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::backup::{fill, serve, uri};
use crate::program::{Place, Ran, lives, wait_for};

/// Bytes of the file that a restore copies: it takes longer than sending a signal.
const BIG: u64 = 512 << 20;

fn begin(place: &Place, line: &[&str]) -> Child {
    let mut command = place.outside(env!("CARGO_BIN_EXE_romanesco"));
    command.args(line);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Send a signal and wait for the end.
pub(crate) fn end(child: Child, signal: Signal) -> Ran {
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What a backup to `name` has made, or left.
fn left(place: &Place, name: &str) -> Vec<String> {
    let mut names = place.names(".");
    names.retain(|found| found.starts_with(name));
    names
}

/// Begin a backup that takes hours, and wait until it copies.
pub(crate) fn slow(place: &Place, from: &[&str], name: &str) -> Child {
    let child = begin(
        place,
        &[&["backup", "--throttle", "1K"], from, &[name]].concat(),
    );
    wait_for("the copy to begin", || {
        let archive = place.path(&format!("{name}.incomplete"));
        let copies = fs::metadata(archive).is_ok_and(|file| 512 < file.len());
        copies || !place.names(&format!("{name}/files")).is_empty()
    });
    child
}

#[test]
fn a_backup_of_a_directory_that_a_signal_ends_leaves_nothing() {
    for engine in lab::targets::defaults() {
        let place = Place::new();
        let mut server = serve(&place, engine, "db");
        fill(server.port);
        kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
        server.child.wait().unwrap();
        let from = ["--dbpath", "db"];
        for (name, signal) in [("copy", Signal::TERM), ("copy.tar", Signal::INT)] {
            let ran = end(slow(&place, &from, name), signal);
            ran.refuses(1, &["ended by a signal", "is removed", name]);
            assert_eq!(left(&place, name), [""; 0], "{engine}");
        }
        // After a kill the next one names what is left, and what to do.
        for name in ["copy", "copy.tar"] {
            assert_eq!(end(slow(&place, &from, name), Signal::KILL).code, -1);
            let remnants = left(&place, name);
            assert!(!remnants.is_empty(), "{engine}");
            let again = place.run(&["backup", "--dbpath", "db", name]);
            again.refuses(1, &["was killed", "remove what it left", name]);
            assert_eq!(left(&place, name), remnants);
            for remnant in remnants {
                let path = place.path(&remnant);
                if path.is_dir() {
                    fs::remove_dir_all(path).unwrap();
                } else {
                    fs::remove_file(path).unwrap();
                }
            }
            place.run(&["backup", "--dbpath", "db", name]).exits(0);
            place.run(&["verify-backup", name]).exits(0);
            fs::rename(place.path(name), place.path(&format!("done {name}"))).unwrap();
        }
    }
}

#[test]
fn a_backup_of_a_server_that_a_signal_ends_leaves_nothing() {
    let place = Place::new();
    let mut server = serve(&place, "betree", "db");
    fill(server.port);
    let uri = uri(&server);
    let from = ["--uri", &uri];
    for (name, signal) in [("copy", Signal::TERM), ("copy.tar", Signal::INT)] {
        let ran = end(slow(&place, &from, name), signal);
        ran.refuses(
            1,
            &["ended by a signal", "the server ends the backup", name],
        );
        wait_for("the end of the backup", || left(&place, name).is_empty());
    }
    // The server itself.
    let child = slow(&place, &from, "copy");
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert!(server.child.wait().unwrap().success());
    assert_eq!(left(&place, "copy"), [""; 0]);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
}

/// A backup with one file of zeros beside the identity file.
fn big_backup(place: &Place) {
    let identity = "{\"engine\": \"betree\", \"format\": 1, \"created\": 1, \"options\": \"\"}";
    fs::create_dir_all(place.path("copy/files")).unwrap();
    let big = fs::File::create(place.path("copy/files/big")).unwrap();
    big.set_len(BIG).unwrap();
    fs::write(place.path("copy/files/romanesco-engine.json"), identity).unwrap();
    let zeros = vec![0; 1 << 20];
    let mut digest = blake3::Hasher::new();
    for _ in 0..BIG >> 20 {
        digest.update(&zeros);
    }
    let entry = |path: &str, size: u64, digest: blake3::Hash| {
        format!(
            "{{\"path\": \"{path}\", \"size\": {size}, \"digest\": \"{0}\", \"storedSize\": \
             {size}, \"storedDigest\": \"{0}\"}}",
            digest.to_hex()
        )
    };
    let body = format!(
        "{{\"product\": \"1\", \"engine\": \"betree\", \"identity\": {identity}, \"store\": null, \
         \"started\": 1, \"ended\": 1, \"operationTime\": null, \"codec\": \"none\", \
         \"encryption\": null, \"files\": [{}, {}]}}",
        entry("big", BIG, digest.finalize()),
        entry(
            "romanesco-engine.json",
            identity.len() as u64,
            blake3::hash(identity.as_bytes())
        ),
    );
    let head = blake3::hash(body.as_bytes()).to_hex();
    let manifest = format!("romanesco-backup 1 {head}\n{body}");
    fs::write(place.path("copy/backup.manifest"), manifest).unwrap();
}

#[test]
fn a_restore_that_a_signal_ends_leaves_nothing() {
    let place = Place::new();
    big_backup(&place);
    let line = ["restore", "copy", "--dbpath", "new"];
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let mut seen = false;
        wait_for("a signal that comes before the end", || {
            let child = begin(&place, &line);
            let store = place.path("new.restoring/store/big");
            wait_for("the copy to begin", || store.exists() || !lives(child.id()));
            let ran = end(child, signal);
            seen = ran.code != 0;
            if !seen {
                // It was faster.
                fs::remove_dir_all(place.path("new")).unwrap();
            } else if signal != Signal::KILL {
                ran.refuses(1, &["ended by a signal", "is removed", "new"]);
            }
            seen
        });
        assert!(!place.path("new").exists());
        let remains = place.path("new.restoring").exists();
        assert_eq!(remains, signal == Signal::KILL);
    }
    // The next one removes what the killed one left.
    place.run(&line).exits(0);
    assert!(!place.path("new.restoring").exists());
}
