//! The directory of a test, and how the program runs in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stdx::time;

/// Timeout of every wait. A passing test does not reach it, even on a slow and busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

/// The directory of a test, which is the current directory of all its commands.
pub(crate) struct Place(tempfile::TempDir);

/// Whether this machine allows mounts. If so, a step that cuts the power must be supported.
pub(crate) fn power_can_be_cut() -> bool {
    let tried = Command::new("unshare").args(["--mount", "true"]).output();
    let loops = Path::new("/dev/loop-control").exists();
    loops && tried.is_ok_and(|output| output.status.success())
}

/// The result of a command.
pub(crate) struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Assert the exit code; on failure print the output.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ran {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }

    /// Assert that the command failed with `code` and one line that contains all of `needles`.
    #[track_caller]
    pub(crate) fn refuses(self, code: i32, needles: &[&str]) {
        let ran = self.exits(code);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        assert_eq!(ran.err.trim_end().lines().count(), 1, "{}", ran.err);
        for needle in needles {
            assert!(ran.err.contains(needle), "no {needle:?} in: {}", ran.err);
        }
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `command` in this directory, without settings and calibrations from the environment.
    pub(crate) fn outside(&self, command: &str) -> Command {
        let mut command = Command::new(command);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LAB_")) {
            command.env_remove(name);
        }
        command
            .current_dir(self.0.path())
            .env("XDG_STATE_HOME", self.path("state"))
            // Other programs run beside the tests.
            .env("LAB_REDO", "0")
            .stdin(Stdio::null());
        command
    }

    /// Run `romanesco` with arguments until it ends.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.outside(env!("CARGO_BIN_EXE_romanesco"));
        command.args(arguments);
        finish(command)
    }

    /// The command `romanesco lab` with arguments separated by blanks.
    pub(crate) fn command(&self, line: &str) -> Command {
        self.romanesco("lab", line)
    }

    /// The command `romanesco NAME` with arguments separated by blanks.
    fn romanesco(&self, name: &str, line: &str) -> Command {
        let mut command = self.outside(env!("CARGO_BIN_EXE_romanesco"));
        command.arg(name).args(line.split_whitespace());
        command
    }

    pub(crate) fn lab(&self, line: &str) -> Ran {
        finish(self.command(line))
    }

    /// Start `romanesco lab` and do not wait for its end.
    pub(crate) fn start(&self, line: &str) -> Running {
        self.background(self.command(line))
    }

    /// Start `romanesco serve` and do not wait for its end.
    pub(crate) fn serve(&self, line: &str) -> Running {
        self.background(self.romanesco("serve", line))
    }

    /// Start `romanesco cluster` and do not wait for its end.
    pub(crate) fn cluster(&self, line: &str) -> Running {
        self.background(self.romanesco("cluster", line))
    }

    fn background(&self, mut command: Command) -> Running {
        let log = fs::File::create(self.path("background.txt")).unwrap();
        let errors = log.try_clone().unwrap();
        let child = command.stdout(log).stderr(errors).spawn();
        Running(child.unwrap())
    }

    /// The names in a directory, sorted; empty when it does not exist.
    pub(crate) fn names(&self, dir: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(dir)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn json(&self, path: impl AsRef<Path>) -> Value {
        let path = self.0.path().join(path);
        let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&text).unwrap()
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// The steps of a run: directory, state, message.
    pub(crate) fn statuses(&self, run: &str) -> Vec<(String, String, String)> {
        let steps = format!("{run}/steps");
        let names = self.names(&steps).into_iter();
        let read = |name: String| {
            let status = self.json(format!("{steps}/{name}/status.json"));
            let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
            (name, text("state"), text("message"))
        };
        names.map(read).collect()
    }

    /// The number of steps of a run in the given state.
    pub(crate) fn count(&self, run: &str, state: &str) -> usize {
        let all = self.statuses(run);
        all.iter().filter(|(_, s, _)| s == state).count()
    }

    /// Wait until a step directory whose name ends with `end` is running.
    pub(crate) fn await_step(&self, run: &str, end: &str) {
        let steps = format!("{run}/steps");
        wait_for(&format!("step {end}"), || {
            let names = self.names(&steps);
            let found = names.iter().find(|name| name.ends_with(end));
            found.is_some_and(|name| self.path(&format!("{steps}/{name}/envelope.json")).exists())
        });
    }

    /// Assert that a run's summary is complete and valid and that no data is left; returns the
    /// summary.
    #[track_caller]
    pub(crate) fn whole(&self, run: &str) -> Value {
        let summary = self.json(format!("{run}/summary.json"));
        assert_eq!(summary["complete"], true, "{summary:#}");
        assert_eq!(summary["valid"], true, "{summary:#}");
        assert!(self.path(&format!("{run}/report.html")).exists());
        assert!(!self.path(&format!("{run}/data")).exists());
        summary
    }
}

/// A program in the background; killed when dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// The process id of its worker.
    pub(crate) fn worker(&self) -> u32 {
        let pid = self.pid();
        let path = format!("/proc/{pid}/task/{pid}/children");
        let mut found = None;
        wait_for("a worker", || {
            let children = fs::read_to_string(&path).unwrap_or_default();
            found = children
                .split_whitespace()
                .next()
                .map(|c| c.parse().unwrap());
            found.is_some()
        });
        found.unwrap()
    }

    /// Wait for the end of the process; returns the exit code, or 128 plus the signal.
    pub(crate) fn end(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let mut code = None;
        wait_for("the program to end", || {
            let status = self.0.try_wait().unwrap();
            code = status.and_then(|s| s.code().or(s.signal().map(|n| 128 + n)));
            code.is_some()
        });
        code.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process has usually ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Whether a process lives (a zombie does not).
pub(crate) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|s| s.trim().chars().next());
    state.is_some_and(|s| s != 'Z' && s != 'X')
}

pub(crate) fn finish(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The child processes of a lab, once both exist: the server first, then the worker.
pub(crate) fn children(running: &Running) -> Vec<u32> {
    let pid = running.pid();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut found = Vec::new();
    wait_for("a server and a worker", || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        found = text
            .split_whitespace()
            .map(|c| c.parse().unwrap())
            .collect();
        found.len() == 2
    });
    found
}

/// Wait until the condition holds.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let start = time::now();
    while !so() {
        assert!(start.elapsed() < DEADLINE, "waited too long for {what}");
        time::sleep(Duration::from_millis(5));
    }
}

/// Whether this process may mount.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
