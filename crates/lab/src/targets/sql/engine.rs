//! Storage engines of SQL servers, and what each supports.

use std::fmt;
use std::str::FromStr;

use kv::{Durability, Writes};

use lab_report::error::unknown;

/// The storage engine of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// MariaDB's and MySQL's B-tree, clustered by primary key.
    InnoDb,
    /// RocksDB in MariaDB.
    MyRocks,
    /// A heap and B-trees without a log.
    MyIsam,
    /// `MyISAM`'s successor in MariaDB, with a log.
    Aria,
    /// PostgreSQL's heap and B-trees.
    Heap,
}

impl Engine {
    /// The engines of MariaDB.
    pub(super) const MARIADB: [Engine; 4] = [
        Engine::InnoDb,
        Engine::MyRocks,
        Engine::MyIsam,
        Engine::Aria,
    ];

    /// Name of the engine in targets.
    pub(super) fn name(self) -> &'static str {
        match self {
            Engine::InnoDb => "innodb",
            Engine::MyRocks => "myrocks",
            Engine::MyIsam => "myisam",
            Engine::Aria => "aria",
            Engine::Heap => "heap",
        }
    }

    /// Name of the engine in `CREATE TABLE`.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Engine::InnoDb => "InnoDB",
            Engine::MyRocks => "ROCKSDB",
            Engine::MyIsam => "MyISAM",
            Engine::Aria => "Aria",
            Engine::Heap => "heap",
        }
    }

    /// Whether the engine supports transactions of several statements.
    pub(crate) fn transactions(self) -> bool {
        !matches!(self, Engine::MyIsam | Engine::Aria)
    }

    /// How the engine writes changes to disk; `None` for engines that no article compares in this
    /// respect.
    pub(crate) fn writes(self) -> Option<Writes> {
        match self {
            Engine::InnoDb | Engine::Heap => Some(Writes::Pages),
            Engine::MyRocks => Some(Writes::Changes),
            Engine::MyIsam | Engine::Aria => None,
        }
    }

    /// Why the engine does not support a level of durability; `None` if it does.
    pub(super) fn lacks(self, level: Durability) -> Option<&'static str> {
        match (self, level) {
            (Engine::InnoDb, Durability::None) => {
                Some("InnoDB always keeps its redo log: interval is the least it does")
            }
            (Engine::MyIsam, Durability::Sync | Durability::Group | Durability::Interval) => {
                Some("MyISAM has no log: nothing it does is durable")
            }
            (Engine::Aria, Durability::Group) => {
                Some("commits of Aria cannot share a sync; see sync")
            }
            _ => None,
        }
    }

    /// The level at which the engine runs if `level` is requested for the whole run: the weakest
    /// supported level that is at least as strong, or else the strongest one.
    pub(super) fn level(self, level: Durability) -> Durability {
        match self {
            Engine::InnoDb if level == Durability::None => Durability::Interval,
            Engine::MyIsam => Durability::None,
            Engine::Aria if level == Durability::Group => Durability::Sync,
            _ => level,
        }
    }

    /// The engine's behavior at a level, in terms of its own settings.
    pub(super) fn durability(self, level: Durability, interval_ms: u128) -> String {
        let level = self.level(level);
        let waits = matches!(level, Durability::Sync | Durability::Group);
        match self {
            Engine::InnoDb if waits => "innodb_flush_log_at_trx_commit=1: every commit is synced; \
                                        concurrent commits share a sync"
                .to_owned(),
            Engine::InnoDb => "innodb_flush_log_at_trx_commit=2: every commit is written, and \
                               synced once a second"
                .to_owned(),
            Engine::MyRocks if waits => "rocksdb_flush_log_at_trx_commit=1: every commit is \
                                         synced; concurrent commits share a sync"
                .to_owned(),
            Engine::MyRocks if level == Durability::None => {
                "rocksdb_write_disable_wal=ON: no log".to_owned()
            }
            Engine::MyRocks => "rocksdb_flush_log_at_trx_commit=2: every commit is written, and \
                                synced once a second"
                .to_owned(),
            Engine::Aria if waits => "aria_group_commit=none: every statement is synced".to_owned(),
            Engine::Aria if level == Durability::None => "TRANSACTIONAL=0: no log".to_owned(),
            Engine::Aria => {
                format!("aria_group_commit=soft: the log is synced every {interval_ms} ms")
            }
            Engine::MyIsam => "none: MyISAM has no log".to_owned(),
            Engine::Heap if waits => {
                "synchronous_commit=on: every commit is synced; concurrent commits share a sync"
                    .to_owned()
            }
            Engine::Heap if level == Durability::None => "an unlogged table".to_owned(),
            Engine::Heap => format!(
                "synchronous_commit=off: the log is synced within {} ms",
                3 * interval_ms
            ),
        }
    }

    /// How it protects against torn pages.
    pub(super) fn torn_writes(self) -> &'static str {
        match self {
            Engine::InnoDb => "the doublewrite buffer protects pages from torn writes",
            Engine::MyRocks => "files are written once, so no page can be torn",
            Engine::MyIsam => "nothing protects pages from torn writes",
            Engine::Aria => "the log protects pages from torn writes (full page images)",
            Engine::Heap => {
                "full_page_writes protects pages from torn writes: the log holds the whole page \
                 at its first change after each checkpoint"
            }
        }
    }

    /// Whether a store at durability `none` is still consistent after a crash.
    pub(super) fn none_is_consistent(self) -> bool {
        // PostgreSQL empties an unlogged table after a crash, which leaves the store consistent.
        matches!(self, Engine::InnoDb | Engine::MyRocks | Engine::Heap)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Engine::InnoDb => "InnoDB",
            Engine::MyRocks => "MyRocks",
            Engine::MyIsam => "MyISAM",
            Engine::Aria => "Aria",
            Engine::Heap => "PostgreSQL",
        })
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Engine, String> {
        let text = text.to_ascii_lowercase();
        let names = Engine::MARIADB.map(Engine::name);
        let found = Engine::MARIADB
            .into_iter()
            .find(|e| e.name() == text || e.sql().eq_ignore_ascii_case(&text));
        found.ok_or_else(|| unknown("storage engine of MariaDB", &text, &names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_an_engine_lacks_is_mapped_to_one_it_has() {
        let levels = [
            Durability::Sync,
            Durability::Group,
            Durability::Interval,
            Durability::None,
        ];
        for engine in Engine::MARIADB.into_iter().chain([Engine::Heap]) {
            for level in levels {
                let mapped = engine.level(level);
                assert_eq!(engine.lacks(mapped), None, "{engine} {level}");
                assert_eq!(
                    mapped == level,
                    engine.lacks(level).is_none(),
                    "{engine} {level}"
                );
                assert!(!engine.durability(level, 100).is_empty());
            }
        }
    }

    #[test]
    fn engines_have_both_names() {
        assert_eq!("rocksdb".parse(), Ok(Engine::MyRocks));
        assert_eq!("InnoDB".parse(), Ok(Engine::InnoDb));
        assert!("heap".parse::<Engine>().is_err());
    }
}
