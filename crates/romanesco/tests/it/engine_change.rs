//! The storage engine of a replica set is changed while clients write, as
//! `docs/guides/change-engine.md` describes: a member on the new engine is added without a vote,
//! copies the data, is compared, gets a vote and a priority, and one of the old ones leaves.
//! `ROMANESCO_DRILLS=all` does it for every ordered pair of the engines that are compiled in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mongodb::IndexModel;
use mongodb::bson::{Bson, Document, doc};
use mongodb::sync::Client;
use rustix::process::Signal;

use crate::cluster::{direct, documents, is_writable};
use crate::program::{Place, send, wait_for};
use crate::servers::Foreign;

/// The `_id` of the last document.
const END: i64 = -1;

/// A set whose members are replaced.
struct Drill {
    members: Vec<(Place, Foreign)>,
    next: i32,
}

fn started(engine: &str) -> (Place, Foreign) {
    let place = Place::new();
    let line = format!("--initiate command --bind_ip 127.0.0.1 --storageEngine {engine}");
    let server = Foreign::start(&place, &line);
    (place, server)
}

fn host(server: &Foreign) -> String {
    format!("127.0.0.1:{}", server.port)
}

fn is_secondary(port: u64) -> bool {
    let admin = direct(port).database("admin");
    let hello = admin.run_command(doc! {"hello": 1}).run();
    hello.is_ok_and(|hello| hello.get_bool("secondary").unwrap_or(false))
}

impl Drill {
    fn new(engine: &str) -> Drill {
        let members: Vec<_> = (0..3).map(|_| started(engine)).collect();
        let listed = members.iter().zip(0..);
        let listed = listed.map(|((_, server), id)| doc! {"_id": id, "host": host(server)});
        let config = doc! {"_id": "rs0", "version": 1, "members": listed.collect::<Vec<_>>()};
        let admin = direct(members[0].1.port).database("admin");
        admin
            .run_command(doc! {"replSetInitiate": config})
            .run()
            .unwrap();
        let drill = Drill { members, next: 3 };
        drill.primary();
        drill
    }

    fn primary(&self) -> u64 {
        let mut found = None;
        wait_for("a primary", || {
            let mut ports = self.members.iter().map(|(_, server)| server.port);
            found = ports.find(|port| is_writable(*port));
            found.is_some()
        });
        found.unwrap()
    }

    fn uri(&self) -> String {
        let hosts: Vec<String> = self
            .members
            .iter()
            .map(|(_, server)| host(server))
            .collect();
        format!(
            "mongodb://{}/?replicaSet=rs0&w=majority&heartbeatFrequencyMS=1000",
            hosts.join(",")
        )
    }

    /// Change the configuration.
    fn reconfigure(&self, change: impl Fn(&mut Vec<Bson>)) {
        let mut last = String::new();
        wait_for("the configuration", || {
            let admin = direct(self.primary()).database("admin");
            let reply = admin
                .run_command(doc! {"replSetGetConfig": 1})
                .run()
                .unwrap();
            let mut config = reply.get_document("config").unwrap().clone();
            let version = config.get_i64("version").unwrap();
            config.insert("version", version + 1);
            change(config.get_array_mut("members").unwrap());
            match admin.run_command(doc! {"replSetReconfig": config}).run() {
                Ok(_) => true,
                // The one before is not on a majority yet, or the primary has changed.
                Err(error) => {
                    last = error.to_string();
                    stdx::time::sleep(Duration::from_millis(20));
                    false
                }
            }
        });
        assert!(last.len() < 10_000);
    }

    /// Change the fields of one member.
    fn adjust(&self, id: i32, fields: &Document) {
        self.reconfigure(|members| {
            for member in members.iter_mut().filter_map(Bson::as_document_mut) {
                if member.get_i32("_id").unwrap() == id {
                    member.extend(fields.clone());
                }
            }
        });
    }

    /// Check that all members have the same documents, while clients write.
    fn compare(&self) {
        let (place, _) = &self.members[0];
        let ran = place.run(&["compare-members", "--longest", "60", &self.uri()]);
        let out = ran.exits(0).out;
        assert!(
            out.contains("collections are equal on all members"),
            "{out}"
        );
    }

    /// Replace the first member by one on another engine.
    fn replace(&mut self, engine: &str) {
        let id = self.next;
        self.next += 1;
        self.members.push(started(engine));
        let added = self.members.last().unwrap().1.port;
        let member = doc! {
            "_id": id, "host": format!("127.0.0.1:{added}"),
            "hidden": true, "priority": 0, "votes": 0,
        };
        self.reconfigure(|members| members.push(Bson::Document(member.clone())));
        wait_for("the copy", || is_secondary(added));
        self.compare();
        self.adjust(id, &doc! {"votes": 1});
        self.adjust(id, &doc! {"hidden": false, "priority": 1});
        let leaves = self.members[0].1.port;
        if is_writable(leaves) {
            let admin = direct(leaves).database("admin");
            let asked = doc! {"replSetStepDown": 120, "secondaryCatchUpPeriodSecs": 10};
            admin.run_command(asked).run().unwrap();
        }
        wait_for("another primary", || self.primary() != leaves);
        let gone = format!("127.0.0.1:{leaves}");
        self.reconfigure(|members| {
            let host =
                |member: &Bson| member.as_document().unwrap().get_str("host").unwrap() == gone;
            members.retain(|member| !host(member));
        });
        let (_place, mut server) = self.members.remove(0);
        send(server.child.id(), Signal::TERM);
        assert!(server.child.wait().unwrap().success());
    }
}

/// What the client that writes has seen.
#[derive(Default)]
struct Written {
    acknowledged: Vec<i64>,
    failed: Vec<String>,
    longest: Duration,
}

fn write(uri: &str, stop: &AtomicBool, count: &AtomicU64) -> Written {
    let client = Client::with_uri_str(uri).unwrap();
    let documents = documents(&client);
    let mut written = Written::default();
    let mut last = stdx::time::now();
    for id in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match documents.insert_one(doc! {"_id": id, "a": id % 17}).run() {
            Ok(_) => written.acknowledged.push(id),
            Err(error) => written.failed.push(error.to_string()),
        }
        written.longest = written.longest.max(last.elapsed());
        last = stdx::time::now();
        count.store(u64::try_from(id).unwrap(), Ordering::Relaxed);
    }
    documents.insert_one(doc! {"_id": END}).run().unwrap();
    written
}

/// The `_id`s of the inserts that a change stream shows.
fn follow(uri: &str, ready: &AtomicBool) -> Vec<i64> {
    let client = Client::with_uri_str(uri).unwrap();
    let mut stream = documents(&client).watch().run().unwrap();
    ready.store(true, Ordering::Relaxed);
    let mut shown = Vec::new();
    loop {
        let event = stream.next().unwrap().unwrap();
        let id = event.document_key.unwrap().get_i64("_id").unwrap();
        if id == END {
            return shown;
        }
        shown.push(id);
    }
}

fn change(from: &str, to: &str) {
    let mut drill = Drill::new(from);
    let uri = drill.uri();
    let client = Client::with_uri_str(&uri).unwrap();
    let index = IndexModel::builder().keys(doc! {"a": 1}).build();
    documents(&client).create_index(index).run().unwrap();
    let (stop, ready) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let count = Arc::new(AtomicU64::new(0));
    let (watched, begun) = (uri.clone(), Arc::clone(&ready));
    let stream = stdx::sync::spawn("stream", move || follow(&watched, &begun)).unwrap();
    wait_for("the change stream", || ready.load(Ordering::Relaxed));
    let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&count));
    let writer = stdx::sync::spawn("writer", move || write(&uri, &stopped, &counted)).unwrap();
    let more = || {
        let before = count.load(Ordering::Relaxed);
        wait_for("writes", || before + 20 < count.load(Ordering::Relaxed));
    };
    more();
    for _ in 0..3 {
        drill.replace(to);
        more();
    }
    stop.store(true, Ordering::Relaxed);
    let written = writer.join().unwrap();
    let shown = stream.join().unwrap();
    drill.compare();
    println!(
        "{from} to {to}: {} writes acknowledged, {} failed, longest pause {} ms",
        written.acknowledged.len(),
        written.failed.len(),
        written.longest.as_millis()
    );
    let client = Client::with_uri_str(drill.uri()).unwrap();
    let documents = documents(&client);
    let found = documents
        .find(doc! {"_id": {"$ne": END}})
        .sort(doc! {"_id": 1});
    let found = found.run().unwrap();
    let found: Vec<i64> = found.map(|d| d.unwrap().get_i64("_id").unwrap()).collect();
    assert_eq!(shown, found, "the stream shows each insert once, in order");
    let lost = written
        .acknowledged
        .iter()
        .filter(|id| found.binary_search(id).is_err());
    assert_eq!(lost.count(), 0, "no acknowledged write is lost");
    assert!(written.failed.is_empty(), "{:?}", written.failed);
    for (_, server) in &drill.members {
        let admin = direct(server.port).database("admin");
        let status = admin.run_command(doc! {"serverStatus": 1}).run().unwrap();
        let engine = status.get_document("storageEngine").unwrap();
        assert_eq!(engine.get_str("name").unwrap(), to);
    }
}

#[test]
fn the_engine_of_a_set_is_changed_while_clients_write() {
    let all = std::env::var("ROMANESCO_DRILLS").is_ok_and(|wanted| wanted == "all");
    let engines = match all {
        true => lab::targets::defaults(),
        false => vec!["betree", "lmdb"],
    };
    for from in &engines {
        for to in engines.iter().filter(|to| *to != from) {
            if all || *from == "betree" {
                change(from, to);
            }
        }
    }
}

/// What cannot be compared is named.
#[test]
fn members_that_cannot_be_compared_are_named() {
    let place = Place::new();
    let refuses = |uri: &str, needles: &[&str]| {
        place.run(&["compare-members", uri]).refuses(1, needles);
    };
    refuses(
        "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50",
        &["127.0.0.1:1"],
    );
    refuses("db1", &["connection string"]);
    let drill = Drill::new("betree");
    let (_, server) = &drill.members[2];
    send(server.child.id(), Signal::STOP);
    let uri = format!("{}&serverSelectionTimeoutMS=2000", drill.uri());
    refuses(&uri, &[&host(server)]);
    send(server.child.id(), Signal::CONT);
    // Writes are not locked any more.
    let client = Client::with_uri_str(drill.uri()).unwrap();
    documents(&client)
        .insert_one(doc! {"_id": 1})
        .run()
        .unwrap();
}
