//! `clone`: a data directory from a server at work, over the network.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mongodb::bson::{Document, doc};
use rustix::process::{Pid, Signal, kill_process};

use crate::backup::{DOCUMENTS, client, fill, ids, serve, serve_with, uri, write_keys};
use crate::program::{Place, wait_for};

#[test]
fn a_server_under_writes_is_cloned() {
    for engine in lab::targets::defaults() {
        let place = Place::new();
        let server = serve(&place, engine, "db");
        fill(server.port);
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let (stop, port) = (Arc::clone(&stop), server.port);
            let body = move || {
                let collection = client(port).database("other").collection::<Document>("d");
                for id in 0_i64.. {
                    collection.insert_one(doc! {"_id": id}).run().unwrap();
                    if stop.load(Ordering::Acquire) {
                        return;
                    }
                }
            };
            stdx::sync::spawn("writer", body).unwrap()
        };
        for (codec, target) in [("none", "first"), ("zstd", "second")] {
            let line = ["clone", "--from", &uri(&server), "--codec", codec, target];
            let ran = place.run(&line).exits(0);
            assert!(ran.out.contains("romanesco serve"), "{}", ran.out);
            assert_eq!(place.names(&format!("{target}.cloning")), [""; 0]);
        }
        stop.store(true, Ordering::Release);
        writer.join().unwrap();
        let again = ["clone", "--from", &uri(&server), "second"];
        place.run(&again).refuses(1, &["not an empty directory"]);
        drop(server);
        for target in ["first", "second"] {
            let server = serve(&place, engine, target);
            assert_eq!(ids(server.port), (0..DOCUMENTS).collect::<Vec<_>>());
            let other = client(server.port).database("other");
            let other = other.collection::<Document>("d");
            let count = other.count_documents(doc! {}).run().unwrap();
            let last = other
                .find_one(doc! {})
                .sort(doc! {"_id": -1})
                .run()
                .unwrap();
            let last = last.map_or(0, |last| last.get_i64("_id").unwrap() + 1);
            assert_eq!(i64::try_from(count).unwrap(), last, "one moment");
        }
    }
}

#[test]
fn an_encrypted_server_is_cloned_with_its_keys() {
    let place = Place::new();
    write_keys(&place);
    let key = "--enableEncryption --encryptionKeyFile key";
    let server = serve_with(&place, "betree", "db", key);
    fill(server.port);
    let ran = place
        .run(&["clone", "--from", &uri(&server), "copy"])
        .exits(0);
    assert!(ran.out.contains("--encryptionKeyFile"), "{}", ran.out);
    drop(server);
    let server = serve_with(&place, "betree", "copy", key);
    assert_eq!(ids(server.port), (0..DOCUMENTS).collect::<Vec<_>>());
}

#[test]
fn what_ends_early_leaves_nothing() {
    let place = Place::new();
    let server = serve(&place, "betree", "db");
    fill(server.port);
    let start = |target: &str| {
        let mut command = place.outside(env!("CARGO_BIN_EXE_romanesco"));
        let uri = uri(&server);
        command.args(["clone", "--from", &uri, "--throttle", "100K", target]);
        command.stderr(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        wait_for("the first file", || {
            !place.names(&format!("{target}.cloning/files")).is_empty()
        });
        child
    };
    let mut running = start("slow");
    // There is one at a time.
    let second = ["clone", "--from", &uri(&server), "other"];
    place
        .run(&second)
        .refuses(1, &["another backup is being taken"]);
    assert!(!place.path("other.cloning").exists());
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(1));
    assert!(!place.path("slow.cloning").exists());
    assert!(!place.path("slow").exists());
    // The server has ended it, and takes the next one.
    wait_for("the next stream", || place.run(&second).code == 0);
    fs::remove_dir_all(place.path("other")).unwrap();
    // What a kill leaves is refused, and is no data directory.
    let mut running = start("killed");
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(!place.path("killed").exists());
    let again = ["clone", "--from", &uri(&server), "killed"];
    place
        .run(&again)
        .refuses(1, &["killed.cloning", "remove what it left"]);
    let wrong = ["serve", "--dbpath", "killed.cloning", "--port", "0"];
    place.run(&wrong).exits(100);
}
