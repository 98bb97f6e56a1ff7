//! Tests of messages between members.

use bson::{RawDocumentBuf, doc};

use super::*;

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn at(term: u64, ts: u64) -> Position {
    Position {
        term: Term(term),
        ts,
    }
}

fn config() -> Arc<SetConfig> {
    let config = doc! {"_id": "rs0", "version": 2, "term": 3_i64, "members": [
        {"_id": 0, "host": "a:1"}, {"_id": 1, "host": "b:1"},
    ]};
    Arc::new(SetConfig::parse(&raw(&config)).unwrap())
}

fn envelope(message: Message) -> Envelope {
    Envelope {
        to: MemberId(1),
        from: MemberId(0),
        term: Term(7),
        message,
    }
}

fn letters() -> Vec<Letter> {
    let config = config();
    let beat = Heartbeat {
        last: at(3, 9 << 32 | 4),
        durable: at(3, 8 << 32),
        commit: Position::ZERO,
        config: config.id(),
        body: Some(Arc::new(config.core())),
        primary: true,
    };
    let request = VoteRequest {
        dry_run: true,
        takeover: true,
        election: Term(8),
        last: at(3, 5),
        config: config.id(),
    };
    let row = Row {
        member: MemberId(1),
        term: Term(7),
        durable: at(6, 2),
        hops: 3,
    };
    let heartbeat = Letter {
        envelope: envelope(Message::Heartbeat(beat)),
        config: Some(config),
        note: Note {
            standing: Standing::Secondary,
            source: Some(2),
            applied: at(3, 8 << 32),
            elected: Some(bson::DateTime::from_millis(1_700_000_000_123)),
            engine: Some(EngineNote {
                name: "lmdb".into(),
                key_max: 1_982,
            }),
        },
    };
    let reply = Message::VoteReply {
        dry_run: false,
        election: Term(8),
        granted: true,
    };
    let others = [
        Message::VoteRequest(request),
        reply,
        Message::Positions(row),
        Message::TakeOver,
    ];
    let others = others.map(|message| Letter::plain(envelope(message)));
    [heartbeat].into_iter().chain(others).collect()
}

#[test]
fn every_message_survives_its_command() {
    for letter in letters() {
        let command = raw(&letter.to_command("rs0").unwrap());
        let (set, parsed) = Letter::parse(&command).unwrap();
        assert_eq!((set.as_str(), &parsed), ("rs0", &letter), "L1");
    }
    let fetch = envelope(Message::Fetch { after: at(3, 5) });
    let command = raw(&fetch_command("rs0", &fetch, at(3, 5)));
    let fields = Arguments::of("replSetFetch", &command).unwrap();
    assert_eq!(parse_fetch(&fields).unwrap(), ("rs0".to_owned(), fetch));
    let runs = vec![
        Run {
            term: Term(3),
            last: 6,
        },
        Run {
            term: Term(4),
            last: 9,
        },
    ];
    for message in [
        Message::Batch {
            after: at(3, 5),
            runs: runs.clone(),
            commit: at(3, 4),
        },
        Message::Diverged { runs: runs.clone() },
    ] {
        let sent = envelope(message);
        let reply = raw(&fetched_reply(&sent));
        assert_eq!(parse_fetched(&reply, runs.clone()).unwrap(), Some(sent));
    }
    let late = raw(&doc! {"tooOld": true});
    assert_eq!(parse_fetched(&late, Vec::new()).unwrap(), None);
}

/// L1: every field of every message is removed, and replaced by values of other types and out of
/// range. What is still accepted must be whole.
#[test]
fn what_is_not_whole_is_refused() {
    let values = [
        Bson::Int64(-1),
        Bson::Int64(i64::MAX),
        Bson::Double(f64::NAN),
        Bson::String("x".repeat(2_000)),
        Bson::Document(doc! {}),
        Bson::Array(vec![Bson::Null; 1_000]),
        Bson::Document(doc! {"ts": Timestamp { time: 1, increment: 1 }, "t": -1_i64}),
        Bson::Document(doc! {"ts": Timestamp { time: 1, increment: 1 }, "t": 0_i64}),
    ];
    let mut refused = 0;
    let mut check = |command: &Document| {
        if Letter::parse(&raw(command)).is_err() {
            refused += 1;
        }
    };
    for letter in letters() {
        let command = letter.to_command("rs0").unwrap();
        for name in command.keys() {
            let mut without = command.clone();
            without.remove(name);
            check(&without);
            for value in &values {
                let mut other = command.clone();
                other.insert(name, value.clone());
                check(&other);
            }
            let Some(Bson::Document(inner)) = command.get(name) else {
                continue;
            };
            for field in inner.keys() {
                for value in &values {
                    let mut changed = inner.clone();
                    changed.insert(field, value.clone());
                    let mut other = command.clone();
                    other.insert(name, changed);
                    check(&other);
                }
            }
        }
    }
    assert!(300 < refused, "L1: {refused}");
    let parse = |command: Document| Letter::parse(&raw(&command)).unwrap_err().message;
    let base = doc! {"replSetMessage": 1, "set": "rs0", "from": 0, "to": 1, "term": 1};
    assert!(parse(base.clone()).contains("exactly one"));
    let mut two = base.clone();
    two.extend(doc! {"takeOver": {}, "voteReply": {}});
    assert!(parse(two).contains("exactly one"));
    let mut far = base;
    far.extend(doc! {"takeOver": {}, "to": 256});
    assert!(parse(far).contains("to"), "L1: members have numbers to 255");
}

#[test]
fn entries_out_of_order_are_refused() {
    let entry = |t: i64, time: u32| raw(&doc! {"ts": Timestamp { time, increment: 1 }, "t": t});
    let runs = |entries: &[RawDocumentBuf]| {
        let entries = entries.iter().map(|entry| entry.as_bytes());
        runs_of(at(2, 1 << 32 | 1), entries)
    };
    let good = runs(&[entry(2, 2), entry(2, 3), entry(4, 4)]).unwrap();
    let lasts: Vec<u64> = good.iter().map(|run| run.last >> 32).collect();
    assert_eq!(lasts, [3, 4]);
    for bad in [
        vec![entry(2, 1)],
        vec![entry(1, 2)],
        vec![entry(3, 2), entry(2, 3)],
        vec![entry(2, 3), entry(2, 3)],
        vec![entry(-1, 3)],
        vec![raw(&doc! {"ts": 1})],
    ] {
        runs(&bad).unwrap_err();
    }
    for cut in 0..20 {
        let whole = entry(2, 2);
        let cut = whole.as_bytes().get(..cut).unwrap();
        runs_of(Position::ZERO, [cut].into_iter()).unwrap_err();
    }
    // What follows the document is not looked at.
    let mut stored = entry(2, 2).as_bytes().to_vec();
    stored.extend_from_slice(b"hidden");
    assert_eq!(position_of(&stored).unwrap(), at(2, 2 << 32 | 1));
}
