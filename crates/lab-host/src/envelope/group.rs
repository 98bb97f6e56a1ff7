//! One control group: a directory whose files are its controls.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::cgroups::{Cgroups, Controller, Version};
use super::error::{EnvelopeError, Result};
use super::mounts;

/// Prefix of the names of all groups of the laboratory.
pub(super) const PREFIX: &str = "romanesco-";

/// Number of attempts to remove a group, and the pause between them: a killed process leaves its
/// group only after the kernel has torn it down, which includes freeing its memory and waiting for
/// its pending disk I/O.
const REMOVE_TRIES: u32 = 1000;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// A group created by this process, removed when dropped.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
}

impl Group {
    pub(super) fn create(cgroups: &Cgroups, parent: &Path, name: &str) -> Result<Group> {
        let path = parent.join(name);
        fs::create_dir(&path).map_err(|e| EnvelopeError::io("create control group", &path, e))?;
        #[cfg(test)]
        if let Some(scaffold) = cgroups.scaffold {
            scaffold(&path);
        }
        #[cfg(not(test))]
        let _ = cgroups; // Only tests need it here.
        Ok(Group { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Move a process into the group.
    pub(super) fn admit(&self, pid: u32) -> Result<()> {
        if pid == 0 {
            // The kernel would interpret 0 as the process that writes, which is this process.
            return Err(EnvelopeError::Gone {
                pid,
                group: self.path.clone(),
            });
        }
        let file = self.path.join("cgroup.procs");
        match write_control(&file, &pid.to_string()) {
            Err(EnvelopeError::Io { source, .. })
                if source.raw_os_error() == Some(Errno::SRCH.raw_os_error()) =>
            {
                Err(EnvelopeError::Gone {
                    pid,
                    group: self.path.clone(),
                })
            }
            other => other,
        }
    }

    /// Check that `/proc/PID/cgroup` lists the process in this group.
    pub(super) fn confirm(
        &self,
        pid: u32,
        version: Version,
        controller: Controller,
        proc_root: &Path,
    ) -> Result<()> {
        let file = proc_root.join(format!("{pid}/cgroup"));
        let text = fs::read_to_string(&file).map_err(|_| EnvelopeError::Gone {
            pid,
            group: self.path.clone(),
        })?;
        let name = (version == Version::V1).then(|| controller.name(version));
        let found = mounts::group_of(&text, name);
        if found.is_some_and(|group| group.file_name() == self.path.file_name()) {
            return Ok(());
        }
        Err(EnvelopeError::NotAdmitted {
            pid,
            group: self.path.clone(),
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that cannot be removed is removed by `remove_stale` in the next run.
        let _ = remove(&self.path);
    }
}

/// Kill the processes in a group and remove the group. If this process is in it, it is moved to the
/// parent instead of being killed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let mut result = Ok(());
    for _ in 0..REMOVE_TRIES {
        result = remove_directory(path);
        match &result {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {}
            Err(_) => return result,
        }
        empty(path);
        stdx::time::sleep(REMOVE_PAUSE);
    }
    result
}

#[cfg(not(test))]
fn remove_directory(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

/// In tests a group may be an ordinary directory, whose control files are real files.
#[cfg(test)]
fn remove_directory(path: &Path) -> io::Result<()> {
    if path.starts_with("/sys") {
        return fs::remove_dir(path);
    }
    fs::remove_dir_all(path)
}

fn empty(path: &Path) {
    for pid in processes(path) {
        if pid == std::process::id() {
            let parent = path.with_file_name("cgroup.procs");
            // If moving fails, the group remains, and its name identifies it.
            let _ = write_control(&parent, &pid.to_string());
            continue;
        }
        // Pid 0 is a process of another pid namespace, which this process must not kill.
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The process may have ended by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The processes in a group.
pub(super) fn processes(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// Write a control file that must exist.
pub(super) fn write_control(file: &Path, value: &str) -> Result<()> {
    let write = || {
        let mut control = OpenOptions::new().write(true).truncate(true).open(file)?;
        // One write call, because the kernel takes each write as a whole value.
        control.write_all(value.as_bytes())
    };
    write().map_err(|e| EnvelopeError::io(format!("write {value:?} to"), file, e))
}

/// Read a control file.
pub(super) fn read_control(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|e| EnvelopeError::io("read", file, e))
}

/// Read a control file that holds one number. `max`, version 2's "unlimited", is `u64::MAX`.
pub(super) fn read_number(file: &Path) -> Result<u64> {
    let text = read_control(file)?;
    match text.trim() {
        "max" => Ok(u64::MAX),
        number => number.parse().map_err(|_| {
            let source = io::Error::new(io::ErrorKind::InvalidData, format!("{number:?}"));
            EnvelopeError::io("understand", file, source)
        }),
    }
}
