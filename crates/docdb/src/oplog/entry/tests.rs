//! Tests of oplog entries: the shape of MongoDB, chains, limits, damaged bytes.

use bson::{Bson, Document, doc};
use stdx::Tape;

use super::*;

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

fn at(increment: u32) -> OpTime {
    OpTime {
        ts: Timestamp {
            time: 1_700_000_000,
            increment,
        },
        term: 3,
    }
}

fn uuid_of(byte: u8) -> Uuid {
    Uuid::from_bytes([byte; 16])
}

const WALL: DateTime = DateTime::from_millis(1_700_000_000_123);

fn place() -> Place<'static> {
    Place {
        ns: "db.c",
        uuid: uuid_of(7),
    }
}

/// E1.
fn round(entry: &Entry<'_>) -> RawDocumentBuf {
    let bytes = entry.to_raw().unwrap();
    assert_eq!(&Entry::parse(&bytes).unwrap(), entry, "E1: {bytes:?}");
    bytes
}

#[test]
fn an_insert_has_mongodbs_shape() {
    let (document, key, lsid) = (
        raw(&doc! {"_id": 1, "a": 2}),
        raw(&doc! {"_id": 1}),
        raw(&doc! {"id": uuid_of(1), "uid": "x"}),
    );
    let mut entry = Entry::new(
        at(1),
        WALL,
        Operation::Insert {
            place: place(),
            document: &document,
            key: Some(&key),
        },
    );
    let plain = doc! {
        "op": "i", "ns": "db.c", "ui": uuid_of(7), "o": {"_id": 1, "a": 2}, "o2": {"_id": 1},
        "ts": at(1).ts, "t": 3_i64, "v": 2_i64, "wall": WALL,
    };
    assert_eq!(round(&entry), raw(&plain));
    entry.session = Some(Session {
        id: &lsid,
        number: 5,
    });
    entry.statements = vec![0];
    entry.previous = Some(OpTime::NONE);
    entry.image = Some(Image::After);
    let whole = doc! {
        "lsid": {"id": uuid_of(1), "uid": "x"}, "txnNumber": 5_i64,
        "op": "i", "ns": "db.c", "ui": uuid_of(7), "o": {"_id": 1, "a": 2}, "o2": {"_id": 1},
        "needsRetryImage": "postImage", "stmtId": 0, "ts": at(1).ts, "t": 3_i64, "v": 2_i64,
        "wall": WALL,
        "prevOpTime": {"ts": Timestamp { time: 0, increment: 0 }, "t": -1_i64},
    };
    assert_eq!(round(&entry), raw(&whole));
}

#[test]
fn operations_without_a_collection_have_mongodbs_shape() {
    let note = raw(&doc! {"msg": "periodic noop"});
    let entry = Entry::new(
        at(1),
        WALL,
        Operation::Nothing {
            ns: "",
            note: &note,
        },
    );
    let expected = doc! {
        "op": "n", "ns": "", "o": {"msg": "periodic noop"},
        "ts": at(1).ts, "t": 3_i64, "v": 2_i64, "wall": WALL,
    };
    assert_eq!(round(&entry), raw(&expected));
    let (command, replaced) = (
        Command::Drop { collection: "c" }.to_raw().unwrap(),
        raw(&doc! {"numRecords": 4}),
    );
    let entry = Entry::new(
        at(1),
        WALL,
        Operation::Command {
            database: "db",
            uuid: Some(uuid_of(7)),
            command: &command,
            replaced: Some(&replaced),
        },
    );
    let expected = doc! {
        "op": "c", "ns": "db.$cmd", "ui": uuid_of(7), "o": {"drop": "c"}, "o2": {"numRecords": 4},
        "ts": at(1).ts, "t": 3_i64, "v": 2_i64, "wall": WALL,
    };
    assert_eq!(round(&entry), raw(&expected));
}

#[test]
fn commands_have_mongodbs_shape() {
    let index = doc! {"v": 2, "key": {"a": 1}, "name": "a_1"};
    let raw_index = raw(&index);
    let cause = raw(&doc! {"ok": false, "code": 11_000});
    let build = || IndexBuild {
        collection: "c",
        id: uuid_of(9),
        indexes: vec![&raw_index],
    };
    let built = |name: &str| {
        doc! {name: "c", "indexBuildUUID": uuid_of(9), "indexes": [index.clone()]}
    };
    let mut aborted = built("abortIndexBuild");
    aborted.insert("cause", doc! {"ok": false, "code": 11_000});
    let mut created = doc! {"createIndexes": "c"};
    created.extend(index.clone());
    let rename = |dropped: Option<Uuid>| Command::RenameCollection {
        from: "db.c",
        to: "db.d",
        dropped,
    };
    let renamed = doc! {"renameCollection": "db.c", "to": "db.d", "stayTemp": false};
    let mut replaced = renamed.clone();
    replaced.insert("dropTarget", uuid_of(8));
    for (command, expected) in [
        (
            Command::Create {
                collection: "c",
                options: raw(&doc! {"capped": true, "size": 4096, "idIndex": {"v": 2}}),
            },
            doc! {"create": "c", "capped": true, "size": 4096, "idIndex": {"v": 2}},
        ),
        (
            Command::CreateIndexes {
                collection: "c",
                index: raw(&index),
            },
            created,
        ),
        (Command::StartIndexBuild(build()), built("startIndexBuild")),
        (
            Command::CommitIndexBuild(build()),
            built("commitIndexBuild"),
        ),
        (
            Command::AbortIndexBuild {
                build: build(),
                cause: &cause,
            },
            aborted,
        ),
        (
            Command::DropIndexes {
                collection: "c",
                index: "a_1",
            },
            doc! {"dropIndexes": "c", "index": "a_1"},
        ),
        (
            Command::ConvertToCapped {
                collection: "c",
                size: 4096,
            },
            doc! {"convertToCapped": "c", "size": 4096_i64},
        ),
        (
            Command::CollMod {
                collection: "c",
                changes: raw(&doc! {"validationLevel": "off"}),
            },
            doc! {"collMod": "c", "validationLevel": "off"},
        ),
        (rename(None), renamed),
        (rename(Some(uuid_of(8))), replaced),
        (Command::DropDatabase, doc! {"dropDatabase": 1}),
    ] {
        let bytes = command.to_raw().unwrap();
        assert_eq!(bytes, raw(&expected));
        assert_eq!(Command::parse(&bytes).unwrap(), command, "E1: {expected}");
    }
}

/// A string without its end.
fn damaged() -> RawDocumentBuf {
    let mut bytes = raw(&doc! {"a": 1, "b": "x", "c": 2}).into_bytes();
    let text = bytes.iter().position(|byte| *byte == b'x').unwrap();
    bytes[text + 1] = b'x';
    RawDocumentBuf::from_bytes(bytes).unwrap()
}

#[test]
fn a_command_with_damaged_options_is_refused() {
    let collection = "c";
    for command in [
        Command::Create {
            collection,
            options: damaged(),
        },
        Command::CreateIndexes {
            collection,
            index: damaged(),
        },
        Command::CollMod {
            collection,
            changes: damaged(),
        },
    ] {
        assert_eq!(command.to_raw().unwrap_err().code, Code::INVALID_BSON);
    }
}

#[test]
fn a_wrong_uuid_is_reported_by_its_name() {
    for (name, mut command) in [
        (
            "dropTarget",
            doc! {"renameCollection": "db.c", "to": "db.d"},
        ),
        (
            "indexBuildUUID",
            doc! {"startIndexBuild": "c", "indexes": []},
        ),
    ] {
        command.insert(name, 1);
        let error = Command::parse(&raw(&command)).unwrap_err();
        let message = format!("an oplog entry needs a UUID in '{name}'");
        assert_eq!((error.code, error.message), (Code::TYPE_MISMATCH, message));
    }
}

fn inserts(sizes: &[usize]) -> Operations {
    let mut operations = Operations::default();
    for (id, size) in sizes.iter().enumerate() {
        let id = i32::try_from(id).unwrap();
        let document = raw(&doc! {"_id": id, "x": "x".repeat(*size)});
        let key = raw(&doc! {"_id": id});
        operations.push(&Operation::Insert {
            place: place(),
            document: &document,
            key: Some(&key),
        });
    }
    operations
}

/// The entries of a transaction: the operations in order, each entry with the time of the one
/// before.
#[test]
fn a_transaction_is_a_chain_of_entries() {
    let mib = 1 << 20;
    for (sizes, lengths) in [
        (vec![10], vec![1]),
        (vec![10; 1_200], vec![500, 500, 200]),
        (vec![5 * mib; 7], vec![3, 3, 1]),
        (vec![1, 16 * mib - 30, 1], vec![1, 1, 1]),
        (vec![16 * mib - 30, 16 * mib - 30], vec![1, 1]),
    ] {
        let operations = inserts(&sizes);
        let links = chain(&operations, GROUP_MAX).unwrap();
        let commands: Vec<_> = links.into_iter().map(|link| link.command).collect();
        let mut previous = OpTime::NONE;
        let mut found = Vec::new();
        let mut seen = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            let mut entry = Entry::new(
                at(u32::try_from(index).unwrap() + 1),
                WALL,
                Operation::Command {
                    database: "admin",
                    uuid: None,
                    command,
                    replaced: None,
                },
            );
            entry.previous = Some(previous);
            previous = entry.at;
            // E2.
            assert!(round(&entry).as_bytes().len() <= ENTRY_MAX, "E2");
            let Command::ApplyOps(group) = Command::parse(command).unwrap() else {
                panic!("{command:?}");
            };
            let last = index + 1 == commands.len();
            assert_eq!(group.partial, !last);
            let count = i64::try_from(sizes.len()).unwrap();
            let expected = (last && commands.len() > 1).then_some(count);
            assert_eq!(group.count, expected);
            let again = Command::ApplyOps(group.clone()).to_raw();
            assert_eq!(again.unwrap(), *command, "E1");
            found.push(group.operations.len());
            seen.extend(group.operations.iter().map(Operation::to_document));
        }
        assert_eq!(found, lengths);
        let all = (0..operations.len()).map(|index| operations.get(index).unwrap().to_owned());
        assert!(seen.into_iter().eq(all), "the operations are in order");
    }
    let error = chain(&inserts(&[1, 17 * mib]), GROUP_MAX).unwrap_err();
    assert_eq!(error.code, Code::TRANSACTION_TOO_LARGE);
}

/// Each operation of a retryable write has the number of its statement.
#[test]
fn the_operations_of_a_group_have_the_numbers_of_their_statements() {
    let mut operations = inserts(&[1; 12]);
    for number in (0..8).chain([100]) {
        operations.statement(number);
    }
    let links = chain(&operations, 5).unwrap();
    let commands: Vec<_> = links.into_iter().map(|link| link.command).collect();
    let numbers = commands.iter().flat_map(|command| {
        let command = Document::try_from(command).unwrap();
        let list = command.get_array("applyOps").unwrap().clone();
        list.into_iter()
            .map(|operation| operation.as_document().unwrap().get_i32("stmtId").ok())
    });
    let expected: Vec<_> = (0..8).chain([100]).map(Some).chain([None; 3]).collect();
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
    let mut none = Operations::default();
    none.statement(1);
    assert_eq!(none.statement_of(0), None);
}

/// E2.
#[test]
fn an_entry_that_is_too_large_is_refused() {
    let document = raw(&doc! {"_id": 1, "x": "x".repeat(ENTRY_MAX)});
    let operation = Operation::Insert {
        place: place(),
        document: &document,
        key: None,
    };
    let error = Entry::new(at(1), WALL, operation).to_raw().unwrap_err();
    assert_eq!(error.code, Code::BSON_OBJECT_TOO_LARGE);
    let error = Entry::parse(&document).unwrap_err();
    assert_eq!(error.code, Code::BSON_OBJECT_TOO_LARGE);
}

fn sound() -> Document {
    doc! {
        "lsid": {"id": uuid_of(1)}, "txnNumber": 5_i64,
        "op": "u", "ns": "db.c", "ui": uuid_of(7), "o": {"a": 2}, "o2": {"_id": 1},
        "needsRetryImage": "preImage", "stmtId": [0, 1], "ts": at(1).ts, "t": 3_i64, "v": 2_i64,
        "wall": WALL, "prevOpTime": {"ts": at(0).ts, "t": 3_i64},
    }
}

#[test]
fn what_is_no_entry_is_refused() {
    Entry::parse(&raw(&sound())).unwrap();
    let mut with_more = sound();
    with_more.insert("fromMigrate", true);
    Entry::parse(&raw(&with_more)).unwrap();
    for missing in [
        "lsid",
        "txnNumber",
        "op",
        "ns",
        "ui",
        "o",
        "o2",
        "ts",
        "wall",
    ] {
        let mut entry = sound();
        entry.remove(missing);
        assert!(Entry::parse(&raw(&entry)).is_err(), "without {missing}");
    }
    for (name, value) in [
        ("lsid", Bson::from(1)),
        ("txnNumber", 1.5.into()),
        ("op", "x".into()),
        ("op", "c".into()),
        ("ns", "db".into()),
        ("ns", ".c".into()),
        ("ui", "x".into()),
        ("o", 1.into()),
        ("o2", 1.into()),
        ("needsRetryImage", "no".into()),
        ("stmtId", "0".into()),
        ("stmtId", vec![0_i64].into()),
        ("ts", 1.into()),
        ("t", "1".into()),
        ("v", 1.into()),
        ("wall", 1.into()),
        ("prevOpTime", 1.into()),
        ("prevOpTime", doc! {"t": 1}.into()),
    ] {
        let mut entry = sound();
        entry.insert(name, value.clone());
        assert!(Entry::parse(&raw(&entry)).is_err(), "{name}: {value}");
    }
    let mut twice = raw(&sound());
    twice.append(cstr!("op"), "i");
    assert!(Entry::parse(&twice).is_err());
    for bad in [
        doc! {},
        doc! {"noSuch": 1},
        doc! {"create": 1},
        doc! {"dropIndexes": "c"},
        doc! {"renameCollection": "db.c"},
        doc! {"renameCollection": "db.c", "to": "db.d", "dropTarget": true},
        doc! {"startIndexBuild": "c", "indexes": []},
        doc! {"startIndexBuild": "c", "indexBuildUUID": uuid_of(1), "indexes": [1]},
        doc! {"applyOps": 1},
        doc! {"applyOps": [1]},
        doc! {"applyOps": [{"op": "i"}]},
        doc! {"applyOps": [], "partialTxn": 1},
    ] {
        assert!(Command::parse(&raw(&bad)).is_err(), "{bad}");
    }
}

/// E3, E1: entries with damaged bytes.
#[test]
fn damaged_entries_are_decoded_or_refused() {
    let build = doc! {
        "op": "c", "ns": "db.$cmd", "o": {"applyOps": [{
            "op": "c", "ns": "db.$cmd", "ui": uuid_of(7), "o": {
                "startIndexBuild": "c", "indexBuildUUID": uuid_of(9), "indexes": [{"v": 2}],
            },
        }]},
        "ts": at(1).ts, "t": 3_i64, "v": 2_i64, "wall": WALL,
    };
    let mut valid = 0;
    for seed in 0..20_000 {
        let mut tape = Tape::from_seed(seed, 24);
        let entry = if tape.chance(128) { &build } else { &sound() };
        let mut bytes = raw(entry).into_bytes();
        for _ in 0..1 + tape.byte() % 3 {
            let at = 4 + tape.index(bytes.len() - 5);
            bytes[at] = tape.byte();
        }
        let Ok(bytes) = RawDocumentBuf::from_bytes(bytes) else {
            continue;
        };
        let Ok(entry) = Entry::parse(&bytes) else {
            continue;
        };
        valid += 1;
        if let Operation::Command { command, .. } = entry.operation {
            drop(Command::parse(command));
        }
        // The rest of the entry, such as the content of a document, may be damaged.
        if Document::try_from(&*bytes).is_ok() {
            round(&entry);
        }
    }
    assert!(valid > 1_000, "{valid}");
}
