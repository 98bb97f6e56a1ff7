//! A member as a process: start, kill, stop, pause, empty.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::server::process::Process;

/// The name of the set.
pub(super) const SET: &str = "torture";

/// A member.
pub(super) struct Member {
    pub(super) engine: String,
    directory: PathBuf,
    process: Option<Process>,
    pub(super) paused: bool,
    starts: u32,
}

impl Member {
    pub(super) fn new(engine: &str, directory: &Path) -> Member {
        Member {
            engine: engine.to_owned(),
            directory: directory.to_owned(),
            process: None,
            paused: false,
            starts: 0,
        }
    }

    /// Start the server; returns its process and its port.
    pub(super) fn start(&mut self, program: &Path) -> Result<(u32, u16), String> {
        let log = self.directory.join("server.log");
        if log.exists() {
            let kept = self.directory.join(format!("server.{}.log", self.starts));
            fs::rename(&log, &kept).map_err(|e| format!("{}: {e}", log.display()))?;
        }
        self.starts += 1;
        let line = [
            "--replSet",
            SET,
            "--initiate",
            "command",
            "--cacheSizeGB",
            "0.25",
        ];
        let mut process = Process::start(program, &self.engine, &self.directory, &line)?;
        let port = process.port()?;
        let id = process.id();
        self.process = Some(process);
        Ok((id, port))
    }

    pub(super) fn is_up(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn kill(&mut self) {
        self.paused = false;
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// End the server in order.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        self.process.take().map_or(Ok(()), Process::stop)
    }

    /// SIGSTOP or SIGCONT.
    pub(super) fn pause(&mut self, on: bool) {
        let process = self.process.as_ref().map(Process::id);
        let pid = process.and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let signal = if on { Signal::STOP } else { Signal::CONT };
            // The process is not reaped yet, so its id is not reused.
            let _ = kill_process(pid, signal);
            self.paused = on;
        }
    }

    /// Remove the data of a member that does not run.
    pub(super) fn empty(&self) -> Result<(), String> {
        let store = self.directory.join("store");
        fs::remove_dir_all(&store).map_err(|e| format!("{}: {e}", store.display()))
    }

    /// How the server ended, if it ended by itself.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.process.as_mut()?.ended()?;
        let errors = fs::read_to_string(self.directory.join("server.err")).unwrap_or_default();
        let last: Vec<&str> = errors.lines().rev().take(6).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Some(format!("{status}\n    {}", last.join("\n    ")))
    }
}
