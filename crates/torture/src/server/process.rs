//! The server as a process: start, find its port in the log, kill.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use stdx::time;

/// Maximum time for a server to open its store and listen.
const START_MAX: Duration = Duration::from_secs(120);

/// Maximum time for a server to stop in order.
const STOP_MAX: Duration = Duration::from_secs(120);

/// Interval of checks while waiting.
const LOOK: Duration = Duration::from_millis(5);

/// The id of the log message that reports the port.
const LISTENS: i64 = 23_016;

/// A running server. It is killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Start `program serve` over the store in `directory`, with its log in `server.log` there;
    /// `more` are further arguments.
    pub(crate) fn start(
        program: &Path,
        engine: &str,
        directory: &Path,
        more: &[&str],
    ) -> Result<Process, String> {
        Process::start_in(program, engine, directory, more, &|_| Ok(()))
    }

    /// As [`Process::start`]. `admit` gets the process id before the program is executed, so that
    /// it can put the process into a control group.
    pub(crate) fn start_in(
        program: &Path,
        engine: &str,
        directory: &Path,
        more: &[&str],
        admit: &dyn Fn(u32) -> Result<(), String>,
    ) -> Result<Process, String> {
        let store = directory.join("store");
        let log = directory.join("server.log");
        let errors = directory.join("server.err");
        fs::create_dir_all(&store).map_err(|e| format!("{}: {e}", store.display()))?;
        // An old log has the port of the previous server.
        if log.exists() {
            fs::remove_file(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        }
        let errors = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&errors);
        let errors = errors.map_err(|e| format!("{}: {e}", directory.display()))?;
        let mut child = Command::new("sh")
            .args(["-c", "read -r go && exec \"$@\"", "sh"])
            .arg(program)
            .args(["serve", "--port", "0", "--storageEngine", engine])
            .arg("--dbpath")
            .arg(&store)
            .arg("--logpath")
            .arg(&log)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        let input = child.stdin.take();
        let process = Process { child, log };
        admit(process.child.id())?;
        let sent = input.map(|mut input| input.write_all(b"go\n"));
        sent.unwrap_or(Ok(()))
            .map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        Ok(process)
    }

    /// Wait until the server listens; returns its port.
    pub(crate) fn port(&mut self) -> Result<u16, String> {
        let end = time::now() + START_MAX;
        loop {
            if let Some(port) = port_of(&fs::read_to_string(&self.log).unwrap_or_default()) {
                return Ok(port);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended while it started: {status}"));
            }
            if end <= time::now() {
                return Err("the server does not listen".to_owned());
            }
            time::sleep(LOOK);
        }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the server ended, if it ended by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(status.to_string())
    }

    /// `kill -9`, and wait until the process has ended.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // The server may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stop the server in order.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The process is not reaped yet, so its id is not reused.
            let _ = kill_process(pid, Signal::TERM);
        }
        let end = time::now() + STOP_MAX;
        while time::now() < end {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the server ended with {status}")),
                Ok(None) => time::sleep(LOOK),
                Err(e) => return Err(e.to_string()),
            }
        }
        Err("the server does not end in order".to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The port in the server's log, once it is logged.
fn port_of(log: &str) -> Option<u16> {
    let mut whole = log.split_inclusive('\n').filter(|l| l.ends_with('\n'));
    whole.find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let listens = message.get("id")?.as_i64()? == LISTENS;
        let port = message.get("attr")?.get("port")?.as_u64()?;
        u16::try_from(port).ok().filter(|_| listens)
    })
}
