//! Framing, `OP_MSG` and `OP_QUERY`.

use bson::doc;
use wire::message::Flags;
use wire::{Builder, Decoder, Error, Header, Message, OpCode, Parts, Query, encode};

use crate::{frame, raw};

fn parts(flags: u32) -> Parts {
    Parts {
        request_id: 7,
        response_to: 3,
        flags,
    }
}

/// An insert with two documents in a sequence.
fn insert(flags: u32) -> Vec<u8> {
    let body = raw(&doc! {"insert": "c", "$db": "test"});
    let (one, two) = (
        raw(&doc! {"_id": 1}),
        raw(&doc! {"_id": 2, "a": [1, {"b": 2}]}),
    );
    encode(parts(flags), &body, &[("documents", &[&one, &two])])
}

fn decode_error(bytes: &[u8]) -> Error {
    Message::decode(frame(bytes)).unwrap_err()
}

#[test]
fn a_message_with_a_sequence_round_trips() {
    for flags in [
        0,
        Flags::CHECKSUM,
        Flags::MORE_TO_COME,
        Flags::EXHAUST_ALLOWED,
    ] {
        let message = Message::decode(frame(&insert(flags))).unwrap();
        assert_eq!(
            (message.header.request_id, message.header.response_to),
            (7, 3)
        );
        assert_eq!(message.flags, Flags(flags));
        assert_eq!(message.body().get_str("insert").unwrap(), "c");
        let documents = message.sequence("documents").unwrap();
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[1].get_i32("_id").unwrap(), 2);
        assert_eq!(message.sequence_names().collect::<Vec<_>>(), ["documents"]);
        assert_eq!(message.sequence("updates"), None);
    }
}

#[test]
fn a_flipped_bit_fails_the_checksum() {
    let mut bytes = insert(Flags::CHECKSUM);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    assert_eq!(decode_error(&bytes), Error::Checksum);
}

#[test]
fn flags_that_must_be_understood_are_refused_and_others_ignored() {
    let error = decode_error(&insert(1 << 5));
    assert_eq!(
        (error.code(), error.closes(), error.answers()),
        (223, true, true)
    );
    assert!(Message::decode(frame(&insert(1 << 20))).is_ok());
}

#[test]
fn sections_must_fit() {
    let body = raw(&doc! {"ping": 1});
    let one = raw(&doc! {});
    let twice = encode(parts(0), &body, &[("a", &[&one]), ("a", &[&one])]);
    assert_eq!(decode_error(&twice), Error::Duplicate("a".to_owned()));

    let names: Vec<String> = (0..17).map(|i| format!("s{i}")).collect();
    let sequences: Vec<(&str, &[&bson::RawDocument])> =
        names.iter().map(|name| (name.as_str(), &[][..])).collect();
    assert_eq!(
        decode_error(&encode(parts(0), &body, &sequences)),
        Error::Sequences
    );
    assert!(Message::decode(frame(&encode(parts(0), &body, &sequences[..16]))).is_ok());

    let mut no_body = encode(parts(0), &body, &[]);
    no_body.truncate(20);
    no_body[0] = 20;
    assert_eq!(decode_error(&no_body), Error::Malformed("no body"));

    let mut long = insert(0);
    let at = 21 + raw(&doc! {"insert": "c", "$db": "test"}).as_bytes().len() + 1;
    long[at] += 1;
    assert_eq!(
        decode_error(&long),
        Error::Malformed("a sequence longer than its message")
    );
    long[at] -= 2;
    assert!(matches!(
        decode_error(&long),
        Error::Bson { .. } | Error::Malformed(_)
    ));
}

#[test]
fn lengths_at_the_limits() {
    let header = |length: i32| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[12..].copy_from_slice(&2013_i32.to_le_bytes());
        Header::decode(&bytes)
    };
    assert_eq!(header(15), Err(Error::Length(15)));
    assert_eq!(header(-1), Err(Error::Length(-1)));
    assert_eq!(header(48_000_001), Err(Error::Length(48_000_001)));
    assert_eq!(header(48_000_000).unwrap().length, 48_000_000);
    assert_eq!(header(16).unwrap().op_code, OpCode::Message);
    assert_eq!(OpCode::of(2002), Err(Error::OpCode(2002)));
}

#[test]
fn an_announced_length_takes_little_memory() {
    // W2.
    let mut decoder = Decoder::new();
    let header = Header {
        length: 48_000_000,
        request_id: 1,
        response_to: 0,
        op_code: OpCode::Message,
    };
    decoder.push(&header.encode());
    assert!(decoder.room().capacity() < 2 << 20);
    assert_eq!(decoder.frame(), Ok(None));
}

#[test]
fn a_message_over_the_limit_of_its_connection_is_refused_by_its_header() {
    let mut decoder = Decoder::new();
    let header = Header {
        length: 101,
        request_id: 1,
        response_to: 0,
        op_code: OpCode::Message,
    };
    decoder.push(&header.encode());
    assert_eq!(decoder.frame_within(101), Ok(None));
    assert!(decoder.room_ahead(1_024).capacity() < 4_096);
    let error = Error::Limit {
        length: 101,
        limit: 100,
    };
    assert!(error.closes() && !error.answers());
    assert_eq!(decoder.frame_within(100), Err(error));
}

#[test]
fn sequences_hold_a_limited_number_of_documents_together() {
    let body = raw(&doc! {"insert": "c", "$db": "test"});
    let one = raw(&doc! {});
    let two: &[&bson::RawDocument] = &[&one, &one];
    let bytes = encode(parts(0), &body, &[("a", two), ("b", two)]);
    let decoded = Message::decode_within(frame(&bytes), 4).unwrap();
    assert_eq!(decoded.sequence("b").unwrap().len(), 2);
    let error = Message::decode_within(frame(&bytes), 3).unwrap_err();
    assert_eq!(error, Error::Documents(3));
    assert!(error.answers() && !error.closes());
}

#[test]
fn any_cut_of_the_stream_gives_the_same_frames() {
    let stream = [
        insert(0),
        insert(Flags::CHECKSUM),
        insert(Flags::MORE_TO_COME),
    ]
    .concat();
    for cut in 1..stream.len() {
        let mut decoder = Decoder::new();
        let mut frames = Vec::new();
        for chunk in stream.chunks(cut) {
            decoder.room().extend_from_slice(chunk);
            while let Some(frame) = decoder.frame().unwrap() {
                frames.push(frame.bytes);
            }
        }
        assert_eq!(frames.concat(), stream, "cut at {cut}");
        assert_eq!(frames.len(), 3);
    }
}

#[test]
fn a_legacy_greeting_and_its_answer() {
    let body = raw(&doc! {"isMaster": 1, "helloOk": true});
    let mut bytes = vec![0; 16];
    bytes.extend_from_slice(&4_i32.to_le_bytes());
    bytes.extend_from_slice(b"admin.$cmd\0");
    bytes.extend_from_slice(&0_i32.to_le_bytes());
    bytes.extend_from_slice(&(-1_i32).to_le_bytes());
    bytes.extend_from_slice(body.as_bytes());
    let header = Header {
        length: bytes.len(),
        request_id: 9,
        response_to: 0,
        op_code: OpCode::Query,
    };
    bytes[..16].copy_from_slice(&header.encode());
    let query = Query::decode(frame(&bytes)).unwrap();
    assert_eq!(query.database(), Some("admin"));
    assert!(query.message.body().get_bool("helloOk").unwrap());

    let reply = wire::query::reply(1, 9, &raw(&doc! {"ok": 1.0}));
    let answer = frame(&reply);
    assert_eq!(answer.header.op_code, OpCode::Reply);
    assert_eq!(answer.header.response_to, 9);
    assert_eq!(answer.bytes[16], 8, "await capable");
    assert_eq!(answer.bytes[32], 1, "one document");
    assert_eq!(&answer.bytes[36..], raw(&doc! {"ok": 1.0}).as_bytes());
}

#[test]
fn what_is_built_is_what_was_said() {
    let now = bson::DateTime::from_millis(1_234);
    let id = bson::oid::ObjectId::from_bytes([7; 12]);
    let stamp = bson::Timestamp {
        time: 5,
        increment: 6,
    };
    let nested = raw(&doc! {"x": 1});
    let mut builder = Builder::new();
    builder.open_document("cursor");
    builder.documents("firstBatch", [&*nested, &*nested]);
    builder.long("id", 5).string("ns", "a.b").close();
    builder
        .boolean("yes", true)
        .date("now", now)
        .object_id("oid", id);
    builder
        .timestamp("ts", stamp)
        .int("n", 3)
        .strings("names", ["a", "b"]);
    builder
        .value("null", &bson::Bson::Null)
        .value("list", &bson::bson!([1, "a"]));
    builder
        .raw("raw", bson::RawBsonRef::Int64(9))
        .document("d", &nested);
    builder.fields(&nested).double("ok", 1.0);
    let expected = doc! {
        "cursor": {"firstBatch": [{"x": 1}, {"x": 1}], "id": 5_i64, "ns": "a.b"},
        "yes": true, "now": now, "oid": id, "ts": stamp, "n": 3, "names": ["a", "b"],
        "null": null, "list": [1, "a"], "raw": 9_i64, "d": {"x": 1}, "x": 1, "ok": 1.0,
    };
    let message = Message::decode(frame(&builder.finish(parts(2)))).unwrap();
    assert_eq!(bson::Document::try_from(message.body()).unwrap(), expected);
    assert!(message.flags.has(Flags::MORE_TO_COME));
    let alone = Builder::new().into_document();
    assert_eq!(alone.as_bytes(), [5, 0, 0, 0, 0]);
}
