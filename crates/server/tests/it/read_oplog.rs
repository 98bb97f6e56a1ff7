//! `readOplog`: entries as they are stored, for an archive.

use bson::{Bson, Document, RawDocument, Timestamp, doc};

use crate::client::{Client, Site};
use crate::oplog::with_oplog;

const BAD_VALUE: i32 = 2;
const NO_REPLICATION_ENABLED: i32 = 76;
const CAPPED_POSITION_LOST: i32 = 136;

/// The stored entries in a reply, and the position of the last one.
fn entries(reply: &Document) -> (Vec<Vec<u8>>, Document) {
    let mut last = reply.get_document("after").unwrap().clone();
    let list = reply.get_array("entries").unwrap();
    let values = list.iter().map(|value| match value {
        Bson::Binary(binary) => binary.bytes.clone(),
        other => panic!("{other}"),
    });
    let values: Vec<Vec<u8>> = values.collect();
    if let Some(value) = values.last() {
        let entry = entry(value);
        let ts = entry.get_timestamp("ts").unwrap();
        last = doc! {"ts": ts, "t": entry.get_i64("t").unwrap()};
    }
    (values, last)
}

/// The entry in a stored value.
fn entry(value: &[u8]) -> &RawDocument {
    let length = i32::from_le_bytes(*value.first_chunk().unwrap());
    RawDocument::from_bytes(&value[..usize::try_from(length).unwrap()]).unwrap()
}

fn read(client: &mut Client, after: Option<&Document>) -> Document {
    let mut command = doc! {"readOplog": 1};
    command.extend(after.map(|after| doc! {"after": after}).unwrap_or_default());
    client.ok("admin", command)
}

#[test]
fn entries_follow_a_position_with_their_hidden_part() {
    let site = with_oplog();
    let mut client = site.client();
    let first = read(&mut client, None);
    assert_eq!(first.get_str("set").unwrap(), "rs0");
    assert_eq!(
        first.get_document("after").unwrap(),
        &doc! {"ts": Timestamp {time: 0, increment: 0}, "t": -1_i64}
    );
    let (_, last) = entries(&first);
    let none = read(&mut client, Some(&last));
    assert_eq!(entries(&none), (vec![], last.clone()));
    let insert = doc! {"insert": "c", "documents": [{"_id": 1}]};
    client.ok("test", insert);
    let session = doc! {"id": bson::Uuid::from_bytes([7; 16])};
    client.ok(
        "test",
        doc! {
            "insert": "c", "documents": [{"_id": 2}], "lsid": session, "txnNumber": 1_i64,
        },
    );
    let reply = read(&mut client, Some(&last));
    let (found, newest) = entries(&reply);
    let through = reply.get_timestamp("through").unwrap();
    assert_eq!(
        newest.get_timestamp("ts").unwrap(),
        through,
        "D1: all of it"
    );
    let shown = |value: &Vec<u8>| entry(value).get_str("op").unwrap().to_owned();
    let kinds: Vec<String> = found.iter().map(shown).collect();
    assert_eq!(kinds, ["c", "i", "i"]);
    let hidden = |value: &Vec<u8>| value.len() - entry(value).as_bytes().len();
    assert_eq!(hidden(&found[1]), 0);
    assert!(0 < hidden(&found[2]), "the record of the retryable write");
    // One entry at a time.
    let mut after = last.clone();
    for expected in &found {
        let command = doc! {"readOplog": 1, "after": &after, "maxBytes": 1};
        let (one, next) = entries(&client.ok("admin", command));
        assert_eq!(one, std::slice::from_ref(expected));
        after = next;
    }
    assert_eq!(after, newest);
}

#[test]
fn positions_that_the_oplog_does_not_have_are_refused() {
    let site = with_oplog();
    let mut client = site.client();
    let (_, last) = entries(&read(&mut client, None));
    let mut fails = |after: Document| client.fails("admin", doc! {"readOplog": 1, "after": after});
    let mut other = last.clone();
    other.insert("t", 9_i64);
    let (code, message) = fails(other);
    assert_eq!(code, CAPPED_POSITION_LOST);
    assert!(message.contains("another deployment"), "{message}");
    for bad in [
        doc! {},
        doc! {"ts": 1, "t": 1},
        doc! {"ts": Timestamp {time: 1, increment: 1}},
    ] {
        assert_eq!(fails(bad).0, BAD_VALUE);
    }
    let zero = client.fails("admin", doc! {"readOplog": 1, "maxBytes": 0});
    assert_eq!(zero.0, BAD_VALUE);
    let site = Site::with(|config| config.oplog_bytes = Some(0));
    let mut alone = site.client();
    assert_eq!(
        alone.fails("admin", doc! {"readOplog": 1}).0,
        NO_REPLICATION_ENABLED
    );
}
