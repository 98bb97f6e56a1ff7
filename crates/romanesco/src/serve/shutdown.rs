//! `romanesco serve --shutdown`: ends the server that uses a data directory, and waits until it
//! has ended.
//!
//! The process is the one that has the lock file of the directory open: no file can name a process
//! that has ended.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use server::failure::{DATA, OTHER};
use server::{Config, Failure};
use vfs::DirLock;

/// How often it is checked whether the process has ended.
const LOOK: Duration = Duration::from_millis(20);

/// End the server of the data directory.
///
/// # Errors
/// No server that uses it; one of another user.
pub(super) fn run(config: &Config) -> Result<(), Failure> {
    let place = config.db_path.display();
    let file = config.db_path.join(DirLock::FILE);
    let owner = match fs::metadata(&file) {
        Ok(found) => owner(&found).map_err(|error| Failure::new(OTHER, error.to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::new(DATA, format!("{}: {error}", file.display()))),
    };
    let Some(pid) = owner else {
        let message = format!(
            "no server of this user uses the data directory {place}; name another by --dbpath"
        );
        return Err(Failure::new(OTHER, message));
    };
    say!("ending the server with process ID {}", pid.as_raw_nonzero());
    kill_process(pid, Signal::TERM)
        .map_err(|error| Failure::new(OTHER, format!("cannot end the server: {error}")))?;
    while lives(pid) {
        stdx::time::sleep(LOOK);
    }
    Ok(())
}

/// Whether a process lives; one that has ended and that its parent has not reaped does not.
fn lives(pid: Pid) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let zombie = state.is_ok_and(|state| state.contains(") Z "));
    !zombie && test_kill_process(pid).is_ok()
}

/// The process that has a file open. Those of other users cannot be examined and are passed over.
fn owner(file: &fs::Metadata) -> io::Result<Option<Pid>> {
    for process in fs::read_dir("/proc")? {
        let process = process?;
        let pid = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        let Ok(open) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let same = |found: fs::Metadata| found.dev() == file.dev() && found.ino() == file.ino();
        let opened = open.filter_map(Result::ok);
        if opened
            .filter_map(|fd| fs::metadata(fd.path()).ok())
            .any(same)
        {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}
