//! RocksDB's info log: `LOG` in its directory, and `LOG.old`, its predecessor.
//!
//! RocksDB's own logger repeats at the beginning of each file all lines that describe options, and
//! each new tree adds about 20 KB of such lines. With a size limit per file, eventually every line
//! would start a new file; without one, the file grows with every tree. So the adapter writes the
//! lines itself, and bounds the size of both files together.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rocksdb::{InfoLogger, LogLevel};
use stdx::sync::Mutex;
use stdx::time;

/// Maximum length of `LOG` in bytes; a longer one is renamed to `LOG.old`.
const FILE_MAX: u64 = 16 << 20;

/// The log, appended to by any thread.
pub(super) struct InfoLog {
    directory: PathBuf,
    file_max: u64,
    /// `None` while the file cannot be written, which must not stop the database.
    open: Mutex<Option<Open>>,
}

struct Open {
    file: File,
    length: u64,
}

/// A logger that writes the log of the database in `directory`.
pub(super) fn logger(directory: &Path) -> InfoLogger {
    let log = InfoLog::new(directory, FILE_MAX);
    InfoLogger::new_callback_logger(LogLevel::Info, move |level, line| log.tell(level, line))
}

impl InfoLog {
    fn new(directory: &Path, file_max: u64) -> InfoLog {
        InfoLog {
            directory: directory.to_owned(),
            file_max,
            open: Mutex::new(None),
        }
    }

    fn tell(&self, level: LogLevel, line: &str) {
        let mut open = self.open.lock();
        if self.write(&mut open, level, line).is_err() {
            *open = None;
        }
    }

    fn write(&self, open: &mut Option<Open>, level: LogLevel, line: &str) -> io::Result<()> {
        if open
            .as_ref()
            .is_some_and(|open| self.file_max <= open.length)
        {
            *open = None;
            fs::rename(self.path("LOG"), self.path("LOG.old"))?;
        }
        let open = match open {
            Some(open) => open,
            None => open.insert(self.open()?),
        };
        let micros = i64::try_from(time::wall().as_micros()).unwrap_or(i64::MAX);
        let when = Timestamp::from_microsecond(micros).unwrap_or_default();
        let line = format!("{when:.6} {level:?} {}\n", line.trim_end());
        open.file.write_all(line.as_bytes())?;
        open.length += u64::try_from(line.len()).unwrap_or(0);
        Ok(())
    }

    fn open(&self) -> io::Result<Open> {
        let path = self.path("LOG");
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Open { file, length })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_where_they_ended_and_the_size_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let length = |name| fs::metadata(directory.path().join(name)).map_or(0, |m| m.len());
        for round in 0..3 {
            let log = InfoLog::new(directory.path(), 1_000);
            for line in 0..30 {
                log.tell(LogLevel::Info, &format!("round {round} line {line}\n"));
            }
        }
        let last = fs::read_to_string(directory.path().join("LOG")).unwrap();
        assert!(
            last.trim_end().ends_with("Z Info round 2 line 29"),
            "{last}"
        );
        assert!(last.lines().all(|line| line.contains(" round ")), "{last}");
        assert!(length("LOG") < 1_100 && length("LOG.old") < 1_100);
        assert!(1_000 <= length("LOG.old"));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_log_that_cannot_be_written_stops_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let log = InfoLog::new(&directory.path().join("later"), 1_000);
        log.tell(LogLevel::Warn, "lost");
        fs::create_dir(directory.path().join("later")).unwrap();
        log.tell(LogLevel::Warn, "told");
        let told = fs::read_to_string(directory.path().join("later/LOG")).unwrap();
        assert!(told.ends_with(" Warn told\n"), "{told}");
    }
}
