//! A server that the lab starts for a cell, inside the cell's limits: this program's own server, or
//! that of another program.
//!
//! - V1. The server is in its control groups before it opens anything: `serve` waits for a line on
//!   its standard input, and so does the shell that becomes another server.
//! - V2. The server does not outlive the lab, however the lab dies: `serve --supervised` ensures it
//!   itself, the kernel kills the others with their parent (`setpriv --pdeathsig`).

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use lab_host::envelope::Envelope;
use lab_report::error::{Error, Result};
use rustix::process::{Pid, Signal, kill_process};
use stdx::time;

use super::halt::state;
use super::interrupt::Interrupt;
use crate::targets::Line;

/// Interval at which a wait polls.
const LOOK: Duration = Duration::from_millis(20);

/// Maximum time for a server to open its store and listen: recovery reads its whole log.
const START_MAX: Duration = Duration::from_secs(180);

/// Maximum time for a server to close its store.
const STOP_MAX: Duration = Duration::from_secs(300);

/// Maximum time between the closing of a process's sockets and the end of the process; meanwhile
/// its memory is freed.
const DYING_MAX: Duration = Duration::from_secs(3);

/// Maximum time for killed processes to end. A process that waits for a disk ends when the disk
/// answers.
const KILLED_MAX: Duration = Duration::from_secs(60);

/// Maximum number of lines of a server's log that are shown when the server fails.
const LAST_LINES: usize = 3;

/// Shell script that waits for a line, then becomes the program that its arguments name.
const WAIT: &str = "read -r begin && exec \"$@\"";

/// Returns the address at which a server listens, from its log and its process id; `None` while it
/// does not listen.
pub(super) type Listens<'a> = &'a dyn Fn(&str, u32) -> Option<String>;

/// Parameters for starting a server.
pub(super) struct Wanted<'a> {
    pub command: Command,
    /// Log file of the server.
    pub log: &'a Path,
    pub listens: Listens<'a>,
    /// The signal that shuts the server down cleanly.
    pub stop: Signal,
}

/// A running server. Dropping it kills it.
pub(super) struct Server {
    child: Child,
    log: PathBuf,
    /// Offset in the log at which the messages of this server process begin.
    log_start: u64,
    uri: String,
    stop: Signal,
}

/// A command that waits for a line, then becomes the program of `line`, and appends the program's
/// messages to `log`.
pub(super) fn waiting(line: &Line, directory: &Path, log: &Path) -> Result<Command> {
    let messages = fs::OpenOptions::new().create(true).append(true).open(log);
    let messages = messages.map_err(|e| Error::io("create", log, &e))?;
    let again = messages.try_clone();
    let again = again.map_err(|e| Error::io("open", log, &e))?;
    let mut command = Command::new("/bin/sh");
    let words: &[OsString] = &line.0;
    command
        .args(["-c", WAIT, "sh"])
        .args(words)
        .current_dir(directory)
        .stdout(messages)
        .stderr(again);
    Ok(command)
}

/// Run a program until it ends, outside the limits.
pub(super) fn run(mut command: Command, log: &Path, interrupt: &Interrupt) -> Result<()> {
    let log_start = log_length(log);
    let child = command.stdin(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| Error::io("start", log, &e))?;
    // Writing fails if the program has already ended, which is reported below.
    let _ = child
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(b"begin\n"));
    let mut running = Server {
        child,
        log: log.to_owned(),
        log_start,
        uri: String::new(),
        stop: Signal::TERM,
    };
    let end = time::now() + START_MAX;
    loop {
        match running.child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(Error::target(format!(
                    "its directory could not be prepared ({status}){}; see {}",
                    log_tail(log, log_start),
                    log.display()
                )));
            }
            Ok(None) => {}
            Err(e) => return Err(Error::io("wait for", log, &e)),
        }
        if interrupt.is_set() {
            return Err(Error::interrupted("interrupted"));
        }
        if end <= time::now() {
            return Err(Error::target(format!(
                "its directory was not prepared in {} s; see {}",
                START_MAX.as_secs(),
                log.display()
            )));
        }
        time::sleep(LOOK);
    }
}

impl Server {
    /// Start a server and wait until it listens.
    pub(super) fn start(
        mut wanted: Wanted<'_>,
        envelope: &Envelope,
        interrupt: &Interrupt,
    ) -> Result<Server> {
        let log_start = log_length(wanted.log);
        let child = wanted.command.stdin(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| {
            let program = Path::new(wanted.command.get_program());
            Error::io("start", program, &e)
        })?;
        let begin = child.stdin.take();
        let mut server = Server {
            child,
            log: wanted.log.to_owned(),
            log_start,
            uri: String::new(),
            stop: wanted.stop,
        };
        envelope.admit(server.pid())?;
        // The server waits for this line. Writing fails if it has already ended, which is reported
        // below.
        let _ = begin.map(|mut pipe| pipe.write_all(b"begin\n"));
        server.uri = server.listens(wanted.listens, envelope, interrupt)?;
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The server process, and the processes that it started.
    pub(super) fn processes(&self) -> Vec<u32> {
        let began = children(self.pid()).into_iter();
        let began = began.filter_map(|pid| u32::try_from(pid).ok());
        std::iter::once(self.pid()).chain(began).collect()
    }

    /// Log file of the server.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Address of the server, for the driver.
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Wait until the server listens; returns its address.
    fn listens(
        &mut self,
        place: Listens<'_>,
        envelope: &Envelope,
        interrupt: &Interrupt,
    ) -> Result<String> {
        let end = time::now() + START_MAX;
        loop {
            if let Some(uri) = place(&messages(&self.log, self.log_start), self.pid()) {
                return Ok(uri);
            }
            if let Some(error) = self.death(envelope) {
                return Err(error);
            }
            if interrupt.is_set() {
                return Err(Error::interrupted("interrupted"));
            }
            if end <= time::now() {
                let (log, seconds) = (self.log.display(), START_MAX.as_secs());
                return Err(Error::target(format!(
                    "the server does not listen after {seconds} s; see {log}"
                )));
            }
            time::sleep(LOOK);
        }
    }

    /// The reason why the server ended; `None` if it has not.
    pub(super) fn death(&mut self, envelope: &Envelope) -> Option<Error> {
        let status = self.child.try_wait().ok().flatten()?;
        let killed = envelope
            .memory_events()
            .and_then(|e| e.oom_kills)
            .unwrap_or(0);
        if killed > 0 {
            return Some(Error::target(
                "the kernel killed the server because it needed more memory than --mem allows: \
                 raise --mem or lower --cache",
            ));
        }
        let errors = self.log.with_extension("err");
        let messages = fs::read_to_string(&errors).unwrap_or_default();
        let messages = match messages.trim() {
            "" => log_tail(&self.log, self.log_start),
            text => format!(": {text}"),
        };
        Some(Error::target(format!(
            "the server ended ({status}){messages}; see {}, then continue with `romanesco lab \
             resume`",
            self.log.display()
        )))
    }

    /// The reason why the server ended, for a caller whose client received an error; `None` if it
    /// has not ended.
    ///
    /// A client sees the connection close before the end of the process can be detected, so this
    /// waits for up to [`DYING_MAX`]. If the server survived the error, the wait is a single delay
    /// at the end of its cell.
    pub(super) fn death_soon(&mut self, envelope: &Envelope) -> Option<Error> {
        self.wait(DYING_MAX);
        self.death(envelope)
    }

    /// Kill the server, as in a crash.
    pub(super) fn kill(self) {
        drop(self);
    }

    /// Shut the server down cleanly.
    pub(super) fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The server may have ended by itself. It has not been reaped, so its process id is
            // still valid.
            let _ = kill_process(pid, self.stop);
        }
        let status = self.wait(STOP_MAX);
        let log = self.log.display();
        match status {
            Some(status) if status.success() => {
                // The server printed nothing, so remove the empty file, which would only confuse.
                let _ = fs::remove_file(self.log.with_extension("err"));
                Ok(())
            }
            Some(status) => Err(Error::target(format!(
                "the server did not close its store ({status}); see {log}"
            ))),
            None => Err(Error::target(format!(
                "the server did not close its store in {} s, and was ended; see {log}",
                STOP_MAX.as_secs()
            ))),
        }
    }

    fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = time::now() + limit;
        while time::now() < end {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => time::sleep(LOOK),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Server {
    /// Also kills the processes that the server started: they notice its end, but not immediately,
    /// and until then they keep its files open.
    fn drop(&mut self) {
        let gone = self.child.try_wait().is_ok_and(|status| status.is_some());
        let mut began = if gone {
            Vec::new()
        } else {
            children(self.pid())
        };
        // The server may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in began.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let end = time::now() + KILLED_MAX;
        began.retain(|pid| lives(*pid));
        while !began.is_empty() && time::now() < end {
            time::sleep(LOOK);
            began.retain(|pid| lives(*pid));
        }
    }
}

/// Whether a process is alive; a zombie counts as dead.
fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state(&stat).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The child processes of a live process.
fn children(pid: u32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The contents of a log from `begin` on, where the messages of the server begin. If the log is
/// shorter than that, the server truncated it, and the result is all of it.
fn messages(log: &Path, begin: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    let begin = usize::try_from(begin).unwrap_or(usize::MAX);
    String::from_utf8_lossy(text.get(begin..).unwrap_or(&text)).into_owned()
}

/// The messages from `begin` on with which a server failed: its errors or, if it logged none, its
/// last lines.
fn log_tail(log: &Path, begin: u64) -> String {
    let text = messages(log, begin);
    let grave = |line: &&str| {
        ["ERROR", "FATAL", "PANIC", "error:"]
            .iter()
            .any(|w| line.contains(w))
    };
    let mut lines: Vec<&str> = text.lines().filter(grave).collect();
    if lines.is_empty() {
        lines = text.lines().collect();
    }
    let from = lines.len().saturating_sub(LAST_LINES);
    match lines.get(from..) {
        Some(last) if !last.is_empty() => format!(": {}", last.join(" / ")),
        _ => String::new(),
    }
}

/// Messages that servers print if their disk is full.
const FULL: [&str; 2] = ["No space left on device", "failed with error 28"];

/// Offset at which the messages of this try of a cell will begin: some servers append to the log of
/// earlier tries.
pub(super) fn log_length(log: &Path) -> u64 {
    fs::metadata(log).map_or(0, |file| file.len())
}

/// Text to add to an error if the server's messages from `begin` on report a full disk, since the
/// error that the client received may not mention it.
pub(super) fn room(log: &Path, begin: u64, directory: &Path) -> String {
    let text = messages(log, begin);
    // Messages about shared memory do not concern the directory.
    let mut lines = text.lines().filter(|l| !l.contains("shared memory"));
    match lines.any(|l| FULL.iter().any(|words| l.contains(words))) {
        true => format!(
            "; no room left on the disk of {}: make room, or name another with --data-dir",
            directory.display()
        ),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_by_the_messages_of_servers() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let at = Path::new("/small/data");
        assert_eq!(room(&log, 0, at), "");
        for (message, full) in [
            (
                "[ERROR] InnoDB: preallocating 9 bytes for file ./a failed with error 28",
                true,
            ),
            (
                "PANIC:  could not write to file \"pg_wal/x\": No space left on device",
                true,
            ),
            (
                "Disk is full writing 'a' (Errcode: 28 \"No space left on device\").",
                true,
            ),
            ("[Note] InnoDB: writing the file full; please wait", false),
            ("[ERROR] InnoDB: reading failed with error 2", false),
            (
                "ERROR:  could not resize shared memory segment \"/PostgreSQL.7\" to 9 bytes: No \
                 space left on device",
                false,
            ),
        ] {
            fs::write(&log, message).unwrap();
            assert_eq!(
                room(&log, 0, at).contains("no room left on the disk of /small"),
                full
            );
        }
    }

    #[test]
    fn a_disk_that_was_full_in_an_earlier_try_is_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let full = "PANIC:  could not write: No space left on device\n";
        let full_at = |begin| room(&log, begin, Path::new("/small")).contains("no room left");
        assert_eq!(log_length(&log), 0);
        fs::write(&log, full).unwrap();
        let begin = log_length(&log);
        fs::write(&log, format!("{full}FATAL:  killed\n")).unwrap();
        assert!(full_at(0) && !full_at(begin));
        fs::write(&log, format!("{full}{full}")).unwrap();
        assert!(full_at(begin));
        // The server truncated its log.
        fs::write(&log, full.trim_end()).unwrap();
        assert!(full_at(begin));
    }

    #[test]
    fn the_tail_of_a_log_is_its_errors() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let log_tail = |log| log_tail(log, 0);
        assert_eq!(log_tail(&log), "");
        fs::write(&log, "a\nb\nc\nd\n").unwrap();
        assert_eq!(log_tail(&log), ": b / c / d");
        fs::write(&log, "Note\n[ERROR] unknown variable\nshutdown\n").unwrap();
        assert_eq!(log_tail(&log), ": [ERROR] unknown variable");
    }

    #[test]
    fn messages_of_an_earlier_server_are_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        fs::write(&log, "[ERROR] of the one before\n").unwrap();
        let begin = log_length(&log);
        assert_eq!(log_tail(&log, begin), "");
        let line = Line(vec![
            "/bin/sh".into(),
            "-c".into(),
            "echo one; echo two; exit 3".into(),
        ]);
        let command = waiting(&line, dir.path(), &log).unwrap();
        let error = run(command, &log, &Interrupt::default()).unwrap_err();
        assert!(error.message.contains(": one / two; see"), "{error}");
        assert!(!error.message.contains("one before"), "{error}");
        // The server truncated its log.
        fs::write(&log, "[ERROR] new\n").unwrap();
        assert_eq!(log_tail(&log, begin), ": [ERROR] new");
    }

    #[test]
    fn a_program_starts_only_after_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let line = Line(vec!["/bin/echo".into(), "started".into()]);
        let mut command = waiting(&line, dir.path(), &log).unwrap();
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "V1: it waits");
        assert_eq!(messages(&log, 0), "", "V1: it did nothing yet");
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(b"begin\n").unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(messages(&log, 0), "started\n");
    }

    #[test]
    fn the_children_of_a_process_are_found() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        // The child belongs to the thread that started it, which is not the first thread of a test.
        let found = fs::read_dir("/proc/self/task")
            .unwrap()
            .flatten()
            .any(|task| {
                let path = task.path().join("children");
                let text = fs::read_to_string(path).unwrap_or_default();
                text.split_ascii_whitespace()
                    .any(|pid| pid.parse() == Ok(id))
            });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
        assert_eq!(children(child.id()), Vec::<i32>::new());
    }
}
