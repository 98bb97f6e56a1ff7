//! Replica sets of processes: `romanesco cluster`, and the kill of a primary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, ServerAddress, WriteConcern};
use mongodb::sync::{Client, Collection};
use rustix::process::Signal;

use crate::program::{Place, lives, wait_for};
use crate::servers::Foreign;

/// A client of one server.
pub(crate) fn direct(port: u64) -> Client {
    let mut options = ClientOptions::default();
    options.hosts = vec![ServerAddress::Tcp {
        host: "127.0.0.1".to_owned(),
        port: u16::try_from(port).ok(),
    }];
    options.direct_connection = Some(true);
    Client::with_options(options).unwrap()
}

pub(crate) fn documents(client: &Client) -> Collection<Document> {
    client.database("test").collection("c")
}

pub(crate) fn is_writable(port: u64) -> bool {
    let admin = direct(port).database("admin");
    let hello = admin.run_command(doc! {"hello": 1}).run();
    hello.is_ok_and(|hello| hello.get_bool("isWritablePrimary").unwrap_or(false))
}

#[test]
fn one_command_starts_a_set_and_ends_it() {
    let place = Place::new();
    let mut running = place.cluster("--members betree,lmdb,betree");
    let mut uri = String::new();
    wait_for("the address of the set", || {
        uri = place.text("background.txt");
        uri.ends_with('\n')
    });
    let pid = running.pid();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let members = std::fs::read_to_string(path).unwrap_or_default();
    let members: Vec<u32> = members
        .split_whitespace()
        .map(|c| c.parse().unwrap())
        .collect();
    assert_eq!(members.len(), 3);
    let client = Client::with_uri_str(uri.trim()).unwrap();
    let documents = documents(&client);
    let done = documents.insert_one(doc! {"_id": 1});
    done.write_concern(WriteConcern::majority()).run().unwrap();
    // The set outlives one of its members.
    let killed = i32::try_from(members[2]).unwrap();
    let killed = rustix::process::Pid::from_raw(killed).unwrap();
    rustix::process::kill_process(killed, Signal::KILL).unwrap();
    wait_for("the report of a member that ended", || {
        place.text("background.txt").contains("SIGKILL")
    });
    wait_for("a write without it", || {
        let written = doc! {"$set": {"later": true}};
        let done = documents.update_one(doc! {"_id": 1}, written);
        done.write_concern(WriteConcern::majority()).run().is_ok()
    });
    running.signal(Signal::INT);
    assert_eq!(running.end(), 0, "{}", place.text("background.txt"));
    assert!(members.iter().all(|member| !lives(*member)));
}

#[test]
fn after_the_kill_of_the_primary_no_acknowledged_write_is_lost() {
    let places: Vec<Place> = (0..3).map(|_| Place::new()).collect();
    let start = |place: &Place| Foreign::start(place, "--initiate command --bind_ip 127.0.0.1");
    let mut servers: Vec<Foreign> = places.iter().map(start).collect();
    let members = servers.iter().zip(0..);
    let members = members.map(|(server, id)| {
        doc! {"_id": id, "host": format!("127.0.0.1:{}", server.port)}
    });
    // No timeout ends the wait for the primary: only that its connections are closed.
    let config = doc! {
        "_id": "rs0", "version": 1, "members": members.collect::<Vec<_>>(),
        "settings": {"electionTimeoutMillis": 86_400_000},
    };
    let first = direct(servers[0].port).database("admin");
    first
        .run_command(doc! {"replSetInitiate": config})
        .run()
        .unwrap();
    let hosts: Vec<String> = servers
        .iter()
        .map(|s| format!("127.0.0.1:{}", s.port))
        .collect();
    let uri = format!("mongodb://{}/?replicaSet=rs0&w=majority", hosts.join(","));
    let stop = Arc::new(AtomicBool::new(false));
    let (writes, stopped) = (uri.clone(), Arc::clone(&stop));
    let writer = stdx::sync::spawn("writer", move || {
        let client = Client::with_uri_str(writes).unwrap();
        let mut acknowledged = Vec::new();
        for id in 0.. {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            if documents(&client)
                .insert_one(doc! {"_id": id})
                .run()
                .is_ok()
            {
                acknowledged.push(id);
            }
        }
        acknowledged
    });
    let writer = writer.unwrap();
    let client = Client::with_uri_str(&uri).unwrap();
    let count = || {
        let counted = documents(&client).count_documents(doc! {}).run();
        counted.unwrap_or(0)
    };
    wait_for("some writes", || 50 < count());
    let primary = servers
        .iter()
        .position(|server| is_writable(server.port))
        .unwrap();
    let mut killed = servers.remove(primary);
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    wait_for("another primary", || {
        servers.iter().any(|server| is_writable(server.port))
    });
    let before = count();
    wait_for("more writes", || before + 50 < count());
    stop.store(true, Ordering::Relaxed);
    let acknowledged: Vec<i32> = writer.join().unwrap();
    let found = documents(&client).find(doc! {}).run().unwrap();
    let found: Vec<i32> = found.map(|d| d.unwrap().get_i32("_id").unwrap()).collect();
    for id in acknowledged {
        assert!(found.contains(&id), "{id} was acknowledged and is lost");
    }
    // Both others have the same.
    let hash = |server: &Foreign| {
        let test = direct(server.port).database("test");
        let reply = test.run_command(doc! {"dbHash": 1});
        reply
            .run()
            .map(|reply| reply.get_str("md5").unwrap().to_owned())
            .unwrap_or_default()
    };
    wait_for("equal data", || {
        stdx::time::sleep(Duration::from_millis(20));
        hash(&servers[0]) == hash(&servers[1])
    });
}
