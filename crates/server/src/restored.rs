//! A store that is being restored, before a server opens it: it is brought to a time by an archive
//! of the oplog, and collections that are not wanted are dropped.
//!
//! The data directory has the mark of a restore, so the server that opens it first removes its
//! oplog and gives it an identifier of its own (`store_id`): what is written into the oplog here is
//! never seen by clients.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use backup::{ArchivedEntry, OperationTime, OplogArchive, Position};
use bson::{DateTime, Timestamp};
use docdb::oplog::entry::OpTime;
use docdb::replica::{Replay, Replica, StoredEntry};
use docdb::{Op, Options, Store};
use kv::{Durability, Engine, Flow};
use query::{Code, Error, Namespace, Result};

/// Databases of the server, whose collections are always kept.
const OWN: [&str; 3] = ["admin", "config", "local"];

/// The time to restore to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end of the archive.
    End,
    /// The end of a second since 1970-01-01 UTC: every entry whose time has this second or an
    /// earlier one.
    Second(u32),
    /// Every entry up to a time of the oplog.
    Time(OperationTime),
}

impl Until {
    /// The latest time of an entry that is wanted.
    fn last(self) -> Timestamp {
        let (time, increment) = match self {
            Until::End => (u32::MAX, u32::MAX),
            Until::Second(second) => (second, u32::MAX),
            Until::Time(time) => (time.seconds, time.increment),
        };
        Timestamp { time, increment }
    }

    /// What is wrong with restoring a backup to this time by an archive, as far as that is known
    /// without opening either.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn check(
        self,
        backup: Option<OperationTime>,
        archive: &OplogArchive,
    ) -> std::result::Result<(), String> {
        let end = archive.last().map_err(|error| error.to_string())?.last;
        let last = self.last();
        let complete = match self {
            Until::End => true,
            Until::Second(second) => second < end.seconds,
            Until::Time(_) => (last.time, last.increment) <= end.time(),
        };
        if !complete {
            return Err(format!(
                "the archive ends at {end}, before {self}; archive more of the oplog, or name an \
                 earlier time"
            ));
        }
        if let Some(backup) = backup
            && (last.time, last.increment) < (backup.seconds, backup.increment)
        {
            let (seconds, increment) = (backup.seconds, backup.increment);
            return Err(format!(
                "the backup has all writes up to {seconds}:{increment}, which is later than \
                 {self}; use an earlier backup"
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::End => write!(f, "the end of the archive"),
            Until::Second(second) => {
                let date = DateTime::from_millis(i64::from(*second) * 1_000);
                write!(f, "the end of the second {date}")
            }
            Until::Time(time) => write!(f, "{}:{}", time.seconds, time.increment),
        }
    }
}

impl FromStr for Until {
    type Err = String;

    /// `2026-11-23T14:03:00Z` or `SECONDS:INCREMENT`.
    fn from_str(text: &str) -> std::result::Result<Until, String> {
        let numbers = text.split_once(':').and_then(|(seconds, increment)| {
            Some(Until::Time(OperationTime {
                seconds: seconds.parse().ok()?,
                increment: increment.parse().ok()?,
            }))
        });
        if let Some(until) = numbers {
            return Ok(until);
        }
        let wrong = || {
            format!(
                "{text:?} is no time; use one such as 2026-11-23T14:03:00Z, or SECONDS:INCREMENT \
                 of the oplog"
            )
        };
        let millis = DateTime::parse_rfc3339_str(text)
            .map_err(|_| wrong())?
            .timestamp_millis();
        if millis % 1_000 != 0 {
            return Err(format!(
                "{text:?} has a fraction of a second, and times of the oplog have none; name a \
                 second, or SECONDS:INCREMENT"
            ));
        }
        let second = u32::try_from(millis / 1_000).map_err(|_| wrong())?;
        Ok(Until::Second(second))
    }
}

/// Collections by name: `db.collection` or `db.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    db: String,
    /// `None` for all.
    coll: Option<String>,
}

impl Pattern {
    fn matches(&self, ns: &Namespace) -> bool {
        self.db == ns.db && self.coll.as_ref().is_none_or(|coll| *coll == ns.coll)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.db, self.coll.as_deref().unwrap_or("*"))
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Pattern, String> {
        let wrong = || format!("{text:?} names no collections; use DB.COLLECTION or DB.*");
        let (db, coll) = text.split_once('.').ok_or_else(wrong)?;
        if db.contains('*') {
            return Err(wrong());
        }
        let coll = (coll != "*").then(|| coll.to_owned());
        // The name of the database is checked in both cases.
        Namespace::new(db, coll.as_deref().unwrap_or("all")).map_err(|_| wrong())?;
        let db = db.to_owned();
        Ok(Pattern { db, coll })
    }
}

/// A restored store that no server has opened.
pub struct Restored {
    store: Arc<Store>,
    op: Op<'static>,
}

impl Restored {
    /// Open the restored store in an engine, in `directory`. For a `replay` it is opened as a
    /// follower of the store that it is a copy of.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(engine: Arc<dyn Engine>, directory: &Path, replay: bool) -> Result<Restored> {
        let options = Options {
            temp_dir: directory.join("_tmp"),
            oplog: replay,
            follower: replay,
            ttl_period: None,
            oplog_period: None,
            ..Options::default()
        };
        Ok(Restored {
            store: Store::open(engine, options)?,
            op: Op::new(Durability::Interval),
        })
    }

    /// Bring the store to a time by an archive; `floor` is the time in the backup's manifest. All
    /// entries of the archive up to `until` are applied. `watch` is called with the position after
    /// each batch. Returns what was done; `None` if `watch` cancelled.
    ///
    /// # Errors
    /// A backup without an oplog; an archive that does not continue it, has a gap, or ends before
    /// the time; those of the store. The store must not be used then.
    pub fn replay(
        &self,
        (archive, until): (&OplogArchive, Until),
        floor: Option<OperationTime>,
        watch: &mut dyn FnMut(Timestamp) -> Flow,
    ) -> Result<Option<Replay>> {
        let no_oplog = || {
            let message = "the backup has no oplog: it is of a server without --replSet, and \
                           cannot be brought to another time";
            Error::new(Code::ILLEGAL_OPERATION, message)
        };
        let replica = self.store.replica().ok_or_else(no_oplog)?;
        let floor = floor.map_or(replica.applied().ts, |floor| Timestamp {
            time: floor.seconds,
            increment: floor.increment,
        });
        let known = replica.last_at(floor.min(replica.applied().ts))?;
        let known = known.ok_or_else(no_oplog)?;
        let begins = optime(archive.first().map_err(unreadable)?.previous);
        if replica.written().ts < begins.ts {
            let OpTime { ts, .. } = begins;
            let message = format!(
                "the archive begins after {}:{}, and the backup has no writes from {}:{} on: those \
                 between are missing; use a later backup, or an archive that begins earlier",
                ts.time,
                ts.increment,
                replica.written().ts.time,
                replica.written().ts.increment
            );
            return Err(Error::new(Code::CAPPED_POSITION_LOST, message));
        }
        let from = match known.ts < begins.ts {
            true => begins,
            false => known,
        };
        let entries = archive.after(position(from)).map_err(unreadable)?;
        same_entry(&replica, from, entries.digest_before())?;
        let mut entries = entries.map(|entry| entry.map(stored).map_err(unreadable));
        let mut cancelled = false;
        let mut proceed = |at: OpTime| match watch(at.ts) {
            Flow::Continue => Ok(()),
            Flow::Cancel => {
                cancelled = true;
                Err(Error::new(Code::INTERRUPTED, "cancelled"))
            }
        };
        let of = (from, until.last());
        let done = replica.replay(&self.op, of, &mut entries, &mut proceed);
        if cancelled {
            return Ok(None);
        }
        let done = done?;
        // It may write from now on.
        replica.lead(&self.op, done.end.term.max(1))?;
        Ok(Some(done))
    }

    /// Drop all collections and views that no pattern names; those of the server's own databases
    /// stay. Returns the number that is left of the others.
    ///
    /// # Errors
    /// `NamespaceNotFound` for a pattern that names nothing; those of the store.
    pub fn keep_only(&self, patterns: &[Pattern]) -> Result<usize> {
        let catalog = self.store.catalog();
        let own = |ns: &Namespace| OWN.contains(&ns.db.as_str());
        let others = catalog.iter().map(|(ns, _)| ns).filter(|ns| !own(ns));
        let (kept, dropped): (Vec<&Namespace>, Vec<&Namespace>) =
            others.partition(|ns| patterns.iter().any(|pattern| pattern.matches(ns)));
        for pattern in patterns {
            if !kept.iter().any(|ns| pattern.matches(ns)) {
                let message = format!("the backup has no collection {pattern}");
                return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
            }
        }
        for ns in dropped {
            self.store.drop_collection(&self.op, ns)?;
        }
        Ok(kept.len())
    }

    /// Make all of it durable, and close the store. Its engine is closed with the last reference to
    /// it.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn close(self) -> Result<()> {
        self.store.close()?;
        self.store.checkpoint()
    }
}

/// Check that the entry of the backup's oplog at a position, if it has one there, is that of an
/// archive with this digest. That it has one is checked by the replay.
fn same_entry(replica: &Replica<'_>, at: OpTime, digest: &str) -> Result<()> {
    let own = replica.stored_entry(at)?;
    match own.is_some_and(|own| backup::entry_digest(&own.value) != digest) {
        false => Ok(()),
        true => {
            let message = format!(
                "the entry {} of the backup differs from that of the archive: it is the archive of \
                 another deployment",
                position(at)
            );
            Err(Error::new(Code::ILLEGAL_OPERATION, message))
        }
    }
}

fn stored(entry: ArchivedEntry) -> StoredEntry {
    StoredEntry {
        at: optime(entry.at),
        value: entry.value,
    }
}

fn optime(at: Position) -> OpTime {
    let ts = Timestamp {
        time: at.seconds,
        increment: at.increment,
    };
    OpTime { ts, term: at.term }
}

fn position(at: OpTime) -> Position {
    Position {
        seconds: at.ts.time,
        increment: at.ts.increment,
        term: at.term,
    }
}

fn unreadable(error: kv::Error) -> Error {
    Error::new(Code::OPERATION_FAILED, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_those_of_the_oplog() {
        let time = |seconds, increment| Until::Time(OperationTime { seconds, increment });
        for (text, until) in [
            ("1970-01-01T00:01:00Z", Until::Second(60)),
            ("1970-01-01T01:01:00+01:00", Until::Second(60)),
            ("7:9", time(7, 9)),
        ] {
            assert_eq!(text.parse::<Until>(), Ok(until), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "7",
            "7:",
            ":9",
            "7:-1",
            "1969-01-01T00:00:00Z",
            "7:9:1",
        ] {
            let error = text.parse::<Until>().unwrap_err();
            assert!(error.contains("is no time"), "{error}");
        }
        let error = "1970-01-01T00:01:00.5Z".parse::<Until>().unwrap_err();
        assert!(error.contains("a fraction"), "{error}");
    }

    #[test]
    fn patterns_name_a_collection_or_all_of_a_database() {
        let ns = |db: &str, coll: &str| Namespace::new(db, coll).unwrap();
        let one: Pattern = "shop.a.b".parse().unwrap();
        assert!(one.matches(&ns("shop", "a.b")) && !one.matches(&ns("shop", "a")));
        let all: Pattern = "shop.*".parse().unwrap();
        assert!(all.matches(&ns("shop", "a.b")) && !all.matches(&ns("shops", "a")));
        assert_eq!(
            (one.to_string(), all.to_string()),
            ("shop.a.b".into(), "shop.*".into())
        );
        for text in ["", "shop", "shop.", ".a", "sh op.a", "*.a"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
