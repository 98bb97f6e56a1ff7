//! The lock on a run: one process works on it at a time.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use stdx::time;
use vfs::DirLock;

use crate::error::{Error, Result};

/// The file with the id of the process that works on the run, or was the last to do so.
const PID: &str = "pid";

/// Maximum time that a process that only checks may hold the lock.
const LOOKED_AT_MAX: Duration = Duration::from_millis(500);

/// Maximum time between taking the lock and writing the process id.
const UNNAMED_MAX: Duration = Duration::from_secs(5);

/// Interval between two checks of a wait.
const LOOK: Duration = Duration::from_millis(10);

/// The directory of a run, locked by this process.
#[derive(Debug)]
pub(super) struct Hold {
    _lock: DirLock,
}

impl Hold {
    /// Take the lock, and write this process's id.
    pub(super) fn take(path: &Path) -> Result<Hold> {
        let end = time::now() + LOOKED_AT_MAX;
        Hold::take_while(path, &mut || {
            time::sleep(LOOK);
            time::now() < end
        })
    }

    /// Take the lock. While another process has it, call `wait`, which returns whether to try
    /// again: [`in_use`] takes the lock for a moment as well.
    fn take_while(path: &Path, wait: &mut dyn FnMut() -> bool) -> Result<Hold> {
        let lock = loop {
            match DirLock::acquire(path) {
                Err(e) if is_taken(&e) && wait() => {}
                taken => break taken.map_err(|e| refused(path, &e))?,
            }
        };
        let pid = path.join(PID);
        vfs::write_atomic(&pid, std::process::id().to_string().as_bytes())
            .map_err(|e| Error::io("write", &pid, &e))?;
        Ok(Hold { _lock: lock })
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn refused(path: &Path, error: &io::Error) -> Error {
    if !is_taken(error) {
        return Error::io("lock", path, error);
    }
    Error::environment(format!(
        "{} is in use by another romanesco; watch it with `romanesco lab watch`, stop it with \
         `romanesco lab stop`",
        path.display()
    ))
}

/// Whether a process works on the run in `path` right now.
#[must_use]
pub fn in_use(path: &Path) -> bool {
    DirLock::acquire(path).is_err_and(|e| is_taken(&e))
}

/// The process that works on the run in `path`; `None` if there is none.
///
/// # Errors
/// When there is one, and which cannot be found out: it is another user's, or another machine's.
pub fn holder(path: &Path) -> Result<Option<u32>> {
    let file = path.join(PID);
    let end = time::now() + UNNAMED_MAX;
    while in_use(path) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let pid: Option<u32> = text.trim().parse().ok();
        // The id may be that of an earlier process, which another process may have been given
        // since.
        if let Some(pid) = pid.filter(|pid| has_open(*pid, path)) {
            return Ok(Some(pid));
        }
        if end <= time::now() {
            return Err(Error::environment(format!(
                "a process works on {}, and which is not known: {} names none of yours on this \
                 machine",
                path.display(),
                file.display()
            )));
        }
        time::sleep(LOOK);
    }
    Ok(None)
}

/// Whether a process has the lock's file in `path` open.
fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(lock) = path.join(DirLock::FILE).canonicalize() else {
        return false;
    };
    let open = fs::read_dir(format!("/proc/{pid}/fd"));
    open.into_iter()
        .flatten()
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|file| file == lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_on_a_run_is_known_by_the_file_it_has_open() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()).unwrap(), None);
        let hold = Hold::take(dir.path()).unwrap();
        assert!(in_use(dir.path()));
        assert_eq!(holder(dir.path()).unwrap(), Some(std::process::id()));
        // The first process of the system does not have this file open.
        assert!(!has_open(1, dir.path()));
        drop(hold);
        assert_eq!(holder(dir.path()).unwrap(), None);
    }

    #[test]
    fn who_only_looks_is_waited_for_and_who_works_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut looking = Some(DirLock::acquire(dir.path()).unwrap());
        let mut looks = 0;
        let hold = Hold::take_while(dir.path(), &mut || {
            looks += 1;
            if looks == 3 {
                looking = None;
            }
            true
        });
        let hold = hold.unwrap();
        assert_eq!(looks, 3);
        let error = Hold::take(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("in use") && error.contains("lab stop"),
            "{error}"
        );
        drop(hold);
    }
}
