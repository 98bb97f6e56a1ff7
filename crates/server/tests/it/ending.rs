//! Shutdown of a server while commands are running.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use wire::Message;

use crate::client::{Client, Site, all, await_so};

/// Wait until `count` commands with this name are running.
fn await_running(client: &mut Client, command: &str, count: usize) {
    await_so("commands to begin", || {
        let shown = client.ok("admin", doc! {"currentOp": 1});
        let operations = shown.get_array("inprog").unwrap().iter();
        let running = operations.filter(|operation| {
            let operation = operation.as_document().unwrap();
            let shown = operation.get_document("command").unwrap();
            shown.contains_key(command)
        });
        running.count() == count
    });
}

fn write(number: u8) -> Document {
    let bytes = vec![number; 16];
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes,
    };
    doc! {
        "insert": "c", "documents": [{"_id": i32::from(number)}], "lsid": {"id": id},
        "txnNumber": 1_i64,
    }
}

#[test]
fn after_an_orderly_end_nothing_is_read_from_the_log() {
    let site = Site::new();
    let documents: Vec<Document> = (0..2_000).map(|id| doc! {"_id": id, "a": id}).collect();
    let insert = doc! {"insert": "c", "documents": documents};
    site.client().ok("test", insert);
    let folder = site.stop();
    let buffered = |engine: &dyn kv::Engine| engine.stats().unwrap().counters["buffered_bytes"];
    let factory = kv_betree::factory();
    let engine = factory.open(folder.path(), &kv::EngineOptions::default());
    assert_eq!(buffered(engine.unwrap().as_ref()), 0);
    let site = Site::try_in(folder, |_| {}).unwrap();
    let counted = site.client().ok("test", doc! {"count": "c"});
    assert_eq!(counted.get_i32("n").unwrap(), 2_000);
}

#[test]
fn what_the_end_cuts_off_may_be_sent_again() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 0}]});
    client.ok("admin", doc! {"fsync": 1, "lock": true});
    let mut statement = write(2);
    statement.extend(doc! {"startTransaction": true, "autocommit": false});
    let plain = doc! {"insert": "c", "documents": [{"_id": 3}]};
    let held: Vec<(Client, Option<&str>)> = [
        (write(1), Some("RetryableWriteError")),
        (statement, Some("TransientTransactionError")),
        (plain, None),
    ]
    .into_iter()
    .map(|(command, label)| {
        let mut held = site.client();
        held.send("test", command, 0);
        (held, label)
    })
    .collect();
    await_running(&mut client, "insert", 3);
    let folder = site.stop();
    for (mut held, label) in held {
        let (_, reply) = held.receive().expect("an answer before the end");
        assert_eq!(reply.get_i32("code").unwrap(), 11_600, "{reply}");
        assert_eq!(reply.get_str("codeName").unwrap(), "InterruptedAtShutdown");
        assert!(reply.contains_key("topologyVersion"), "{reply}");
        let labels = reply.get_array("errorLabels").ok();
        let labels = labels.map(|labels| labels.iter().map(|l| l.as_str().unwrap()).collect());
        let expected: Option<Vec<&str>> = label.map(|label| vec![label]);
        assert_eq!(labels, expected, "{reply}");
        assert!(held.receive().is_none());
    }
    // None of them was executed.
    let site = Site::try_in(folder, |_| {}).unwrap();
    assert_eq!(all(&mut site.client(), "c", doc! {}).len(), 1);
}

/// Insert until the server is gone; returns the number of acknowledged inserts.
fn busy(mut client: Client, number: i32, done: &AtomicU64) -> i32 {
    let mut i = 0;
    loop {
        let insert = doc! {
            "insert": "busy", "documents": [{"_id": {"w": number, "i": i}}],
            "writeConcern": {"w": 1, "j": i % 2 == 0},
        };
        let Ok(frame) = client.try_run("test", insert) else {
            return i;
        };
        let message = Message::decode(frame).unwrap();
        if !message.body().get_f64("ok").is_ok_and(|ok| 0.0 < ok) {
            return i;
        }
        i += 1;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_server_with_busy_clients_ends_in_order_and_starts_whole() {
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let site = Site::with(|config| config.log_path = Some(log.clone()));
    site.client().ok(
        "test",
        doc! {"createIndexes": "busy", "indexes": [
            {"key": {"_id.i": 1}, "name": "i"},
        ]},
    );
    let done = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..8)
        .map(|number| {
            let (client, done) = (site.client(), Arc::clone(&done));
            stdx::sync::spawn("busy", move || busy(client, number, &done)).unwrap()
        })
        .collect();
    while done.load(Ordering::Relaxed) < 100 {
        std::thread::yield_now();
    }
    let folder = site.stop();
    let acknowledged: i32 = workers
        .into_iter()
        .map(|worker| worker.join().unwrap())
        .sum();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("Now exiting"), "{text}");
    assert!(!text.contains("did not close in order"), "{text}");

    let site = Site::try_in(folder, |_| {}).unwrap();
    let mut client = site.client();
    let report = client.ok("test", doc! {"validate": "busy"});
    assert!(report.get_bool("valid").unwrap(), "{report}");
    let kept = client
        .ok("test", doc! {"count": "busy"})
        .get_i32("n")
        .unwrap();
    // For each client one insert may be executed but not acknowledged.
    assert!(
        (acknowledged..=acknowledged + 8).contains(&kept),
        "{kept} of {acknowledged}"
    );
}

#[test]
fn an_interruption_by_a_client_is_no_shutdown() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("admin", doc! {"fsync": 1, "lock": true});
    let mut held = site.client();
    held.send("test", write(1), 0);
    await_running(&mut client, "insert", 1);
    let shown = client.ok("admin", doc! {"currentOp": 1});
    let mut operations = shown.get_array("inprog").unwrap().iter();
    let insert = operations.find(|operation| {
        let operation = operation.as_document().unwrap();
        operation.get_str("op").unwrap() == "insert"
    });
    let insert = insert.unwrap().as_document().unwrap();
    let number = insert.get_i32("opid").unwrap();
    client.ok("admin", doc! {"killOp": 1, "op": number});
    let (_, reply) = held.receive().unwrap();
    assert_eq!(reply.get_i32("code").unwrap(), 11_601, "{reply}");
    assert!(!reply.contains_key("errorLabels"), "{reply}");
    client.ok("admin", doc! {"fsyncUnlock": 1});
}
