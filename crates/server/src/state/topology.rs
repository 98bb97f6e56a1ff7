//! The deployment as clients see it: a replica set of one member, or a standalone server.

use bson::oid::ObjectId;
use bson::{Document, doc};
use tokio::sync::watch;

/// The deployment as this server sees it.
pub(crate) struct Topology {
    /// The name of the replica set, or `None` for a standalone server.
    pub(crate) set_name: Option<String>,
    /// `host:port` under which the members of the set know this server.
    pub(crate) me: String,
    /// Different for every start of the process: clients recognize a restart by it.
    pub(crate) process: ObjectId,
    /// Identifies the election that made this member primary; grows with the term.
    pub(crate) election: ObjectId,
    /// The term of the replica set.
    pub(crate) term: i64,
    counter: watch::Sender<i64>,
}

impl Topology {
    /// A server just started.
    pub(crate) fn new(set_name: Option<String>, me: String) -> Topology {
        // "7fffffff", then the term, as in MongoDB: later elections compare higher.
        let mut election = [0; 12];
        let term: i64 = 1;
        let (high, low) = election.split_at_mut(4);
        high.copy_from_slice(&[0x7F, 0xFF, 0xFF, 0xFF]);
        low.copy_from_slice(&term.to_be_bytes());
        Topology {
            set_name,
            me,
            process: ObjectId::new(),
            election: ObjectId::from_bytes(election),
            term,
            counter: watch::Sender::new(0),
        }
    }

    /// Whether this is a member of a replica set.
    pub(crate) fn is_replica_set(&self) -> bool {
        self.set_name.is_some()
    }

    /// The configuration of a set whose only member is this server since its start; `None` on a
    /// standalone server.
    pub(crate) fn configuration(&self) -> Option<Document> {
        let set = self.set_name.as_deref()?;
        Some(doc! {
            "_id": set, "version": 1, "term": self.term,
            "members": [{
                "_id": 0, "host": self.me.as_str(), "arbiterOnly": false, "buildIndexes": true,
                "hidden": false, "priority": 1.0, "tags": {}, "secondaryDelaySecs": 0_i64,
                "votes": 1,
            }],
            "protocolVersion": 1_i64, "writeConcernMajorityJournalDefault": true,
            "settings": {
                "chainingAllowed": true, "heartbeatIntervalMillis": 2_000,
                "heartbeatTimeoutSecs": 10, "electionTimeoutMillis": 10_000,
                "catchUpTimeoutMillis": -1, "catchUpTakeoverDelayMillis": 30_000,
                "getLastErrorModes": {}, "getLastErrorDefaults": {"w": 1, "wtimeout": 0},
                "replicaSetId": self.election,
            },
        })
    }

    /// A counter that grows with every change of the reply to `hello`.
    pub(crate) fn counter(&self) -> i64 {
        *self.counter.borrow()
    }

    /// Record a change: waiting greetings are answered.
    pub(crate) fn changed(&self) {
        self.counter.send_modify(|counter| *counter += 1);
    }

    /// A receiver of the next changes.
    pub(crate) fn watch(&self) -> watch::Receiver<i64> {
        self.counter.subscribe()
    }
}
