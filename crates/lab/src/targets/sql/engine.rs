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

    /// The setting that decides whether pages are protected from torn writes.
    fn torn_pages_setting(self) -> Option<&'static str> {
        match self {
            Engine::InnoDb => Some("innodb_doublewrite"),
            Engine::Heap => Some("full_page_writes"),
            Engine::MyRocks | Engine::MyIsam | Engine::Aria => None,
        }
    }

    /// How pages are protected from torn writes: the kind, `:`, and a clause. `setting` returns the
    /// value of a setting of the server.
    pub(super) fn torn_pages(self, setting: impl Fn(&str) -> Option<String>) -> String {
        let name = self.torn_pages_setting();
        let value = name.map(|name| (name, setting(name)));
        let off = |value: &str| {
            // DETECT_ONLY of MySQL 8 finds torn pages, and cannot restore them.
            let value = value.to_ascii_lowercase();
            ["off", "0", "false", "detect_only"].contains(&value.as_str())
        };
        match (self, value) {
            (_, Some((name, None))) => format!("unknown: {name} is not reported"),
            (_, Some((name, Some(value)))) if off(&value) => {
                format!("switched off: {name}={value}")
            }
            (Engine::InnoDb, _) => {
                "doublewrite buffer: every page is written twice (innodb_doublewrite)".to_owned()
            }
            (Engine::Heap, _) => "page images in the log: the whole page at its first change \
                                  after each checkpoint (full_page_writes)"
                .to_owned(),
            (Engine::Aria, _) => "page images in the log: whole pages".to_owned(),
            (Engine::MyRocks, _) => "not needed: files are written once".to_owned(),
            (Engine::MyIsam, _) => "none: pages are overwritten in place".to_owned(),
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
    fn protection_from_torn_pages_is_that_of_the_settings_in_force() {
        let kind = |engine: Engine, value: Option<&str>| {
            let text = engine.torn_pages(|name| {
                assert!(["innodb_doublewrite", "full_page_writes"].contains(&name));
                value.map(str::to_owned)
            });
            text.split_once(':').unwrap().0.to_owned()
        };
        assert_eq!(kind(Engine::InnoDb, Some("ON")), "doublewrite buffer");
        assert_eq!(kind(Engine::InnoDb, Some("OFF")), "switched off");
        assert_eq!(kind(Engine::InnoDb, Some("DETECT_ONLY")), "switched off");
        assert_eq!(kind(Engine::InnoDb, None), "unknown");
        assert_eq!(kind(Engine::Heap, Some("on")), "page images in the log");
        assert_eq!(kind(Engine::Heap, Some("off")), "switched off");
        assert_eq!(kind(Engine::MyRocks, None), "not needed");
        assert_eq!(kind(Engine::MyIsam, None), "none");
    }

    #[test]
    fn engines_have_both_names() {
        assert_eq!("rocksdb".parse(), Ok(Engine::MyRocks));
        assert_eq!("InnoDB".parse(), Ok(Engine::InnoDb));
        assert!("heap".parse::<Engine>().is_err());
    }
}
