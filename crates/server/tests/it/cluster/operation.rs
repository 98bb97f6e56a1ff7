//! What operators and tools see of a set.

use bson::{Document, doc};

use super::{Set, insert, waiting};
use crate::client::{Site, await_so, batch};

fn status(set: &Set, i: usize) -> Document {
    set.client(i).ok("admin", doc! {"replSetGetStatus": 1})
}

fn member(status: &Document, i: usize) -> Document {
    let members = status.get_array("members").unwrap();
    members[i].as_document().unwrap().clone()
}

#[test]
fn the_status_has_what_tools_read() {
    let set = Set::started(3);
    let primary = set.primary();
    let mut all = insert(1);
    all.insert("writeConcern", doc! {"w": 3});
    set.client(primary).ok("test", all);
    let election = status(&set, primary);
    let election = election.get_document("electionCandidateMetrics").unwrap();
    assert_eq!(election.get_i32("numVotesNeeded").unwrap(), 2);
    assert!(election.get_datetime("lastElectionDate").is_ok());
    assert!(election.get_datetime("newTermStartDate").is_ok());
    assert!(
        election
            .get_datetime("wMajorityWriteAvailabilityDate")
            .is_ok()
    );
    assert!(!election.get_str("lastElectionReason").unwrap().is_empty());
    await_so("each member to know the others", || {
        (0..3).all(|i| {
            let status = status(&set, i);
            (0..3).all(|j| {
                let shown = member(&status, j);
                let heard = shown.get_datetime("lastHeartbeat").is_ok()
                    && shown.get_datetime("lastHeartbeatRecv").is_ok()
                    && shown.get_i64("pingMs").is_ok();
                let leads = shown.get_datetime("electionDate").is_ok();
                let source = shown.get_str("syncSourceHost").unwrap();
                (i == j || heard)
                    && leads == (j == primary)
                    && source.is_empty() == (j == primary)
                    && shown.get_i64("configVersion").unwrap() == 1
                    && shown.get_document("optime").is_ok()
                    && shown.get_i64("lagMillis").is_ok()
                    && shown.get_str("storageEngine").ok() == Some("betree")
            })
        })
    });
    // A majority has voted, and one of those is another member.
    let voted = (0..3).filter(|i| status(&set, *i).contains_key("electionParticipantMetrics"));
    assert!(0 < voted.count());
    let status = status(&set, primary);
    let optimes = status.get_document("optimes").unwrap();
    for name in [
        "lastCommittedOpTime",
        "readConcernMajorityOpTime",
        "appliedOpTime",
        "writtenOpTime",
        "durableOpTime",
    ] {
        assert!(optimes.get_document(name).is_ok(), "{name}: {optimes}");
    }
    assert!(status.get_document("uncommitted").is_ok());
}

#[test]
fn the_configuration_is_readable_as_a_collection() {
    let set = Set::started(3);
    let primary = set.primary();
    let read = doc! {"find": "system.replset"};
    for i in 0..3 {
        await_so("the configuration of the primary's term", || {
            let config = set.client(i).ok("admin", doc! {"replSetGetConfig": 1});
            let config = config.get_document("config").unwrap().clone();
            let stored = batch(&set.client(i).ok("local", read.clone()));
            stored == [config]
        });
    }
    let mut client = set.client(primary);
    let code = client.fails("admin", doc! {"replSetAbortPrimaryCatchUp": 1});
    assert_eq!(code.0, 20, "{}", code.1);
    // The only member of its own set has one, too.
    let alone = crate::client::Site::new();
    let stored = batch(&alone.client().ok("local", read));
    assert_eq!(stored[0].get_str("_id").unwrap(), "rs0");
}

#[test]
fn the_member_that_the_commit_point_waits_for_is_named() {
    let mut set = Set::started(3);
    let primary = set.primary();
    set.client(primary).ok("test", insert(1));
    let others: Vec<usize> = (0..3).filter(|i| *i != primary).collect();
    let folders: Vec<_> = others.iter().map(|i| set.stop(*i)).collect();
    let mut one = insert(2);
    one.insert("writeConcern", doc! {"w": 1});
    let written = set.client(primary).run("test", one);
    if written.get_i32("n").ok() == Some(1) {
        await_so("the name of the member", || {
            let shown = status(&set, primary);
            let uncommitted = shown.get_document("uncommitted").unwrap();
            let held_by = uncommitted.get_str("heldBy").unwrap();
            let leads = shown.get_i32("myState").unwrap() == 1;
            let named = others.iter().any(|i| set.host(*i) == held_by);
            // It steps down after the election timeout.
            named || !leads
        });
    }
    for (i, folder) in others.iter().zip(folders) {
        set.resume(*i, folder);
    }
}

#[test]
fn replication_is_counted_and_flow_control_is_shown() {
    let set = Set::started(3);
    let primary = set.primary();
    let mut client = set.client(primary);
    let mut all = insert(1);
    all.insert("writeConcern", doc! {"w": 3});
    client.ok("test", all);
    let other = (0..3).find(|i| *i != primary).unwrap();
    set.await_documents(other, "c", &[1]);
    let of = |i: usize| set.client(i).ok("admin", doc! {"serverStatus": 1});
    let reply = of(other);
    let repl = reply.get_document("metrics").unwrap();
    let repl = repl.get_document("repl").unwrap();
    let count = |part: &str, name: &str| {
        let part = repl.get_document(part).unwrap();
        part.get_i64(name).unwrap()
    };
    assert!(0 < count("network", "bytes"), "{repl}");
    assert!(0 < count("network", "ops"), "{repl}");
    assert!(0 < count("apply", "ops"), "{repl}");
    assert_eq!(count("buffer", "count"), 0, "{repl}");
    let reply = of(primary);
    let flow = reply.get_document("flowControl").unwrap();
    assert!(flow.get_bool("enabled").unwrap());
    assert!(!flow.get_bool("isLagged").unwrap(), "{flow}");
    assert!(flow.get_f64("load").unwrap() < 0.5, "{flow}");
    client.ok(
        "admin",
        doc! {"setParameter": 1, "enableFlowControl": false},
    );
    let reply = of(primary);
    let flow = reply.get_document("flowControl").unwrap();
    assert!(!flow.get_bool("enabled").unwrap());
}

#[test]
fn a_parameter_of_the_set_reaches_all_members() {
    let set = Set::started(2);
    let primary = set.primary();
    let options = doc! {"preAndPostImages": {"expireAfterSeconds": 77_i64}};
    set.client(primary).ok(
        "admin",
        doc! {"setClusterParameter": {"changeStreamOptions": options}},
    );
    await_so("the parameter at the other member", || {
        let ask = doc! {"getClusterParameter": "changeStreamOptions"};
        let reply = set.client(1 - primary).ok("admin", ask);
        reply.to_string().contains("77")
    });
}

#[test]
fn no_key_is_accepted_that_a_member_could_not_store() {
    let set = Set::mixed(3);
    set.client(set.primary()).ok("test", insert(0));
    if set.primary() == 2 {
        set.client(2).ok("admin", doc! {"replSetStepDown": 60});
    }
    let primary = set.primary_but(Some(2));
    let mut client = set.client(primary);
    let clustered = doc! {"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true}};
    client.ok("test", clustered);
    await_so("the limits of all members", || {
        let status = status(&set, primary);
        let known = member(&status, 2).get_str("storageEngine").ok() == Some("lmdb");
        let least = member(&status, 2).get_i64("keyMaxBytes").ok();
        known && least < member(&status, primary).get_i64("keyMaxBytes").ok()
    });
    let one = |collection: &str, id: String| {
        let document = doc! {"_id": id, "a": "y".repeat(3_000), "b": [1, 2]};
        doc! {"insert": collection, "documents": [document], "writeConcern": {"w": 3}}
    };
    let long = |n: usize| "x".repeat(n);
    let reply = client.run("test", one("k", long(1_500)));
    let errors = reply.get_array("writeErrors").unwrap();
    let message = errors[0].as_document().unwrap();
    let message = message.get_str("errmsg").unwrap();
    assert!(message.contains("member of the replica set"), "{message}");
    client.ok("test", one("k", long(900)));
    // Keys of indexes are shortened by each member for itself.
    for unique in [false, true] {
        let name = if unique { "u" } else { "a" };
        let index = doc! {"key": {name: 1}, "name": name, "unique": unique};
        client.ok("test", doc! {"createIndexes": "c", "indexes": [index]});
    }
    client.ok(
        "test",
        doc! {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
    );
    for n in [1_000, 1_950, 1_970, 2_500, 20_000] {
        let mut reply = client.ok("test", one("c", long(n)));
        assert!(reply.remove("writeConcernError").is_none(), "{n}: {reply}");
        let update = doc! {"q": {"_id": long(n)}, "u": {"$set": {"u": long(n + 1)}}};
        let change = doc! {"update": "c", "updates": [update], "writeConcern": {"w": 3}};
        client.ok("test", change);
    }
    let hash = |i: usize| {
        let ask = doc! {"dbHash": 1, "$readPreference": {"mode": "nearest"}};
        let reply = set.client(i).ok("test", ask);
        reply.get_str("md5").unwrap().to_owned()
    };
    await_so("equal data", || (0..3).all(|i| hash(i) == hash(0)));
}

/// The data directory of a primary that was killed during an `$out`.
fn killed_primary() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let engine = kv_betree::factory().open(folder.path(), &kv::EngineOptions::default());
    let options = docdb::Options {
        oplog: true,
        oplog_period: None,
        ttl_period: None,
        ..docdb::Options::default()
    };
    let store = docdb::Store::open(engine.unwrap().into(), options).unwrap();
    let replica = store.replica().unwrap();
    let op = docdb::Op::new(kv::Durability::Group);
    replica.follow(&op).unwrap();
    let begin = bson::Timestamp {
        time: 1,
        increment: 1,
    };
    let entry = doc! {
        "op": "c", "ns": "test.$cmd", "ui": bson::Uuid::from_bytes([7; 16]),
        "o": {"create": "left", "temp": true},
        "ts": begin, "t": 1_i64, "v": 2_i64, "wall": bson::DateTime::now(),
    };
    let entry = bson::RawDocumentBuf::try_from(&entry).unwrap();
    let none = docdb::oplog::entry::OpTime::NONE;
    let last = replica.append(&op, none, &[entry.as_bytes()]).unwrap();
    replica.apply_to(&op, last).unwrap();
    replica.lead(&op, 1).unwrap();
    store.close().unwrap();
    folder
}

/// A store that was killed as a primary is opened as a follower, whatever the kill has left in it:
/// an entry that it wrote then would be of a term that has ended.
#[test]
fn a_member_writes_no_entry_before_it_is_elected() {
    let site = Site::try_in(killed_primary(), waiting(None, 0)).unwrap();
    let mut client = site.client();
    let mut entries = |filter: Document| {
        let find = doc! {"find": "oplog.rs", "filter": filter};
        batch(&client.ok("local", find)).len()
    };
    assert_eq!(entries(doc! {"o.create": "left"}), 1);
    assert_eq!(entries(doc! {"o.drop": "left"}), 0);
}
