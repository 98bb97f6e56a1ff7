//! Backups of a server, brought to a time by an archive of its oplog; and backups that a client
//! receives.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backup::{Codec, OplogArchive, OplogWriter, Position, Received, Source, verify};
use bson::{Bson, Document, RawDocument, doc};
use kv::{Engine, EngineOptions, Flow};
use server::{Restored, Until};

use crate::client::{Client, Site, await_so, batch};
use crate::oplog::{SIZE, with_oplog};

const CURSOR_NOT_FOUND: i32 = 43;
const CONFLICTING_OPERATION: i32 = 117;

fn position(at: &Document) -> Position {
    let ts = at.get_timestamp("ts").unwrap();
    Position {
        seconds: ts.time,
        increment: ts.increment,
        term: at.get_i64("t").unwrap(),
    }
}

/// Archive the whole oplog of a server.
fn archive(client: &mut Client, directory: &Path) {
    let mut writer = OplogWriter::open(directory, ("0", "rs0"), Codec::Lz4).unwrap();
    let mut after = None;
    loop {
        let mut command = doc! {"readOplog": 1, "maxBytes": 100_000_i64};
        command.extend(
            after
                .map(|after: Document| doc! {"after": after})
                .unwrap_or_default(),
        );
        let reply = client.ok("admin", command);
        if writer.last().is_none() {
            let digest = reply.get_str("digest").unwrap();
            writer.begin(position(reply.get_document("after").unwrap()), digest);
        }
        let digest = reply.get_str("digest").unwrap().to_owned();
        assert_eq!(writer.last_digest(), Some(digest));
        let entries = reply.get_array("entries").unwrap();
        for value in entries {
            let Bson::Binary(value) = value else {
                panic!("{value}")
            };
            let length = i32::from_le_bytes(*value.bytes.first_chunk().unwrap());
            let entry = &value.bytes[..usize::try_from(length).unwrap()];
            let entry = Document::try_from(RawDocument::from_bytes(entry).unwrap()).unwrap();
            writer.add(position(&entry), &value.bytes).unwrap();
        }
        let last = writer.last().unwrap();
        let ts = bson::Timestamp {
            time: last.seconds,
            increment: last.increment,
        };
        after = Some(doc! {"ts": ts, "t": last.term});
        if entries.is_empty() {
            writer.cut().unwrap();
            return;
        }
    }
}

fn open(directory: &Path) -> Arc<dyn Engine> {
    let engine = kv_betree::factory().open(directory, &EngineOptions::default());
    Arc::from(engine.unwrap())
}

fn content(client: &mut Client, collection: &str) -> Vec<Document> {
    let find = doc! {"find": collection, "sort": {"_id": 1}, "batchSize": 1_000_000};
    batch(&client.ok("test", find))
}

/// `commands::backup`: U1.
#[test]
fn backups_under_writes_are_brought_to_the_end_of_the_archive() {
    let site = with_oplog();
    let stop = Arc::new(AtomicBool::new(false));
    let names = ["a", "b", "c"];
    let writers = names.map(|name| {
        let (mut client, stop) = (site.client(), Arc::clone(&stop));
        let body = move || {
            for number in 0_i32.. {
                let change = doc! {"$inc": {"n": 1}, "$set": {"last": number}};
                let one = doc! {"q": {"_id": number % 50}, "u": change, "upsert": true};
                client.ok("test", doc! {"update": name, "updates": [one]});
                if stop.load(Ordering::Acquire) {
                    return;
                }
            }
        };
        stdx::sync::spawn("writer", body).unwrap()
    });
    let mut client = site.client();
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    await_so("documents", || content(&mut client, "c").len() == 50);
    for name in ["first", "second", "third"] {
        let path = at(name);
        let path = path.to_str().unwrap();
        client.ok("admin", doc! {"createBackup": 1, "backupDir": path});
    }
    stop.store(true, Ordering::Release);
    for writer in writers {
        writer.join().unwrap();
    }
    archive(&mut client, &at("oplog"));
    let expected = names.map(|name| content(&mut client, name));
    for name in ["first", "second", "third"] {
        let archive = OplogArchive::open(&at("oplog")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut change = |directory: &Path, manifest: &backup::Manifest| {
            let restored = Restored::open(open(directory), directory, true).unwrap();
            let floor = manifest.operation_time;
            let mut watch = |_| Flow::Continue;
            let done = restored.replay((&archive, Until::End), floor, &mut watch);
            assert_eq!(done.unwrap().unwrap().next, None);
            restored.close().unwrap();
            Ok(Flow::Continue)
        };
        let source = Source::open(&at(name)).unwrap();
        let mut watch = |_| Flow::Continue;
        let target = folder.path().to_owned();
        let done = backup::restore_and(&source, &target, &|_| Ok(()), &mut watch, &mut change);
        done.unwrap().unwrap();
        let copy = Site::over(open(&target), folder, |config| {
            config.oplog_bytes = Some(SIZE);
        });
        let copy = copy.unwrap();
        let mut client = copy.client();
        for (name, expected) in names.iter().zip(&expected) {
            assert_eq!(content(&mut client, name), *expected, "U1");
            let report = client.ok("test", doc! {"validate": *name});
            assert!(report.get_bool("valid").unwrap(), "{report}");
        }
    }
}

/// Two servers that begin in the same second may have entries at the same positions.
#[test]
fn an_archive_of_other_entries_at_the_same_position_is_refused() {
    let site = with_oplog();
    let mut client = site.client();
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    client.ok("test", doc! {"insert": "a", "documents": [{"_id": 1}]});
    let path = at("base");
    let command = doc! {"createBackup": 1, "backupDir": path.to_str().unwrap()};
    client.ok("admin", command);
    archive(&mut client, &at("own"));
    let last = OplogArchive::open(&at("own")).unwrap();
    let last = last.last().unwrap().last;
    // One that begins behind the backup's last entry.
    for (name, begin) in [("other", b"other".to_vec()), ("same", stored(&mut client))] {
        let mut writer = OplogWriter::open(&at(name), ("0", "rs0"), Codec::Lz4).unwrap();
        writer.begin(last, &backup::entry_digest(&begin));
        let increment = last.increment + 1;
        writer
            .add(Position { increment, ..last }, b"entry")
            .unwrap();
        writer.cut().unwrap();
    }
    for (name, refused) in [("other", true), ("same", false)] {
        let archive = OplogArchive::open(&at(name)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut change = |directory: &Path, manifest: &backup::Manifest| {
            let restored = Restored::open(open(directory), directory, true).unwrap();
            let mut watch = |_| Flow::Continue;
            let until = Until::Time(manifest.operation_time.unwrap());
            let done = restored.replay((&archive, until), manifest.operation_time, &mut watch);
            let error = done.err().map(|error| error.message).unwrap_or_default();
            assert_eq!(error.contains("of another deployment"), refused, "{error}");
            restored.close().unwrap();
            Ok(Flow::Continue)
        };
        let source = Source::open(&at("base")).unwrap();
        let target = folder.path().to_owned();
        let mut watch = |_| Flow::Continue;
        backup::restore_and(&source, &target, &|_| Ok(()), &mut watch, &mut change).unwrap();
    }
}

/// The last entry of a server's oplog, as it is stored.
fn stored(client: &mut Client) -> Vec<u8> {
    let reply = client.ok("admin", doc! {"readOplog": 1});
    match reply.get_array("entries").unwrap().last() {
        Some(Bson::Binary(value)) => value.bytes.clone(),
        other => panic!("{other:?}"),
    }
}

/// `commands::backup::stream`: Q1, Q2.
#[test]
fn a_backup_is_received_in_parts_by_one_client() {
    let site = Site::new();
    let mut client = site.client();
    // More than the server may hold.
    for id in 0..12 {
        let bytes = stdx::rng::Rng::new(id).next_u64().to_string();
        let id = i64::try_from(id).unwrap();
        let document = doc! {"_id": id, "s": bytes.repeat(100_000)};
        client.ok("test", doc! {"insert": "c", "documents": [document]});
    }
    let begin = doc! {"streamBackup": 1, "compression": "none"};
    let number = |reply: Document| reply.get_i64("stream").unwrap();
    let stream = number(client.ok("admin", begin.clone()));
    let other = site.client().fails("admin", begin.clone());
    assert_eq!(other.0, CONFLICTING_OPERATION, "Q2: {other:?}");
    let next = doc! {"streamBackup": 1, "stream": stream};
    let end = doc! {"streamBackup": 1, "stream": stream, "end": true};
    client.ok("admin", next);
    client.ok("admin", end);
    let mut begun = None;
    await_so("the end of the stream", || {
        begun = client.try_stream(&begin);
        begun.is_some()
    });
    let next = doc! {"streamBackup": 1, "stream": begun.unwrap()};
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("copy");
    let mut received = Received::create(&path).unwrap();
    loop {
        let reply = client.ok("admin", next.clone());
        let Some(Bson::Binary(part)) = reply.get("bytes") else {
            panic!("{reply}")
        };
        assert!(part.bytes.len() <= 6 << 20, "Q1: {}", part.bytes.len());
        if received.take(&part.bytes).unwrap() {
            break;
        }
        assert!(!reply.get_bool("complete").unwrap());
    }
    let source = Source::open(&path).unwrap();
    let report = verify(&source, &mut |_| Flow::Continue).unwrap().unwrap();
    assert_eq!(report.findings, []);
    let mut last = doc! {};
    await_so("the end", || match client.run("admin", next.clone()) {
        reply if reply.get_bool("complete").unwrap_or(false) => false,
        reply => {
            last = reply;
            true
        }
    });
    assert_eq!(last.get_i32("code").unwrap(), CURSOR_NOT_FOUND, "{last}");
}

impl Client {
    /// The number of a stream, if it begins.
    fn try_stream(&mut self, begin: &Document) -> Option<i64> {
        self.run("admin", begin.clone()).get_i64("stream").ok()
    }
}
