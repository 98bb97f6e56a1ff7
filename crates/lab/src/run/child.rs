//! The worker process as the lab uses it.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use lab_host::envelope::Envelope;
use lab_report::error::{Error, Result};
use stdx::{sync, time};

use super::interrupt::Interrupt;
use crate::protocol::{Event, Request};

/// Interval at which a wait checks for interrupts.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum time without a report from a worker that reports every second. After it, the worker is
/// considered stuck.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// Maximum time for a worker to close its store.
const CLOSE_MAX: Duration = Duration::from_secs(120);

/// A running worker. Dropping it kills it.
pub(super) struct Worker {
    child: Child,
    requests: ChildStdin,
    events: Receiver<Event>,
    log: PathBuf,
    /// Whether the worker is running a request during which it reports every second.
    reports: bool,
}

impl Worker {
    /// Start the worker and, if it has an envelope, admit it there before it opens anything.
    pub(super) fn start(
        program: &Path,
        environment: &[(&str, &str)],
        log: &Path,
        envelope: Option<&Envelope>,
    ) -> Result<Worker> {
        let stderr = OpenOptions::new().create(true).append(true).open(log);
        let stderr = stderr.map_err(|e| Error::io("create", log, &e))?;
        let mut child = Command::new(program)
            .args(["lab", "worker"])
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(|e| Error::io("start", program, &e))?;
        let (requests, output) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(output)) = (requests, output) else {
            return Err(Error::environment("the worker has no pipes"));
        };
        let (send, events) = channel();
        let reader = sync::spawn("worker-events", move || {
            for line in BufReader::new(output)
                .lines()
                .map_while(std::result::Result::ok)
            {
                // Lines that are not events come from libraries; ignore them.
                let Ok(event) = serde_json::from_str(&line) else {
                    continue;
                };
                if send.send(event).is_err() {
                    return;
                }
            }
        });
        reader.map_err(|e| Error::environment(format!("cannot start a thread: {e}")))?;
        let worker = Worker {
            child,
            requests,
            events,
            log: log.to_owned(),
            reports: false,
        };
        if let Some(envelope) = envelope {
            envelope.admit(worker.pid())?;
        }
        Ok(worker)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn ask(&mut self, request: &Request, envelope: &Envelope) -> Result<()> {
        self.reports = matches!(request, Request::Step(_) | Request::Settle { .. });
        let line = serde_json::to_string(request).expect("requests are plain data");
        let sent = writeln!(self.requests, "{line}").and_then(|()| self.requests.flush());
        // Writing fails because the worker has ended.
        sent.map_err(|_| self.death(envelope))
    }

    /// Wait for the next event. A `Failed` event and the end of the worker are returned as errors.
    pub(super) fn event(&mut self, interrupt: &Interrupt, envelope: &Envelope) -> Result<Event> {
        let end = time::now() + SILENCE_MAX;
        loop {
            if interrupt.is_set() {
                return Err(Error::interrupted("interrupted"));
            }
            if self.reports && time::now() > end {
                let seconds = SILENCE_MAX.as_secs();
                return Err(Error::target(format!(
                    "the worker sent nothing for {seconds} s: it is stuck, and was ended"
                )));
            }
            match self.events.recv_timeout(LOOK) {
                Ok(Event::Failed { kind, message }) => return Err(Error::new(kind, message)),
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.death(envelope)),
            }
        }
    }

    /// The reason why the worker ended, as an error.
    fn death(&mut self, envelope: &Envelope) -> Error {
        let status = self.wait(Duration::from_secs(5));
        let killed = envelope
            .memory_events()
            .and_then(|e| e.oom_kills)
            .unwrap_or(0);
        if killed > 0 {
            return Error::target(
                "the kernel killed the worker because it needed more memory than --mem allows: \
                 raise --mem or lower --cache",
            );
        }
        let status = status.map_or("it did not end".to_owned(), |s| s.to_string());
        Error::target(format!(
            "the worker ended unexpectedly ({status}); see {}, then continue with `romanesco \
             lab resume`",
            self.log.display()
        ))
    }

    fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let end = time::now() + limit;
        while time::now() < end {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => time::sleep(Duration::from_millis(10)),
                Err(_) => return None,
            }
        }
        None
    }

    /// Kill the worker, as in a crash.
    pub(super) fn kill(&mut self) {
        // The worker may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Close the store and end the worker.
    pub(super) fn close(mut self, interrupt: &Interrupt, envelope: &Envelope) -> Result<()> {
        self.ask(&Request::Close, envelope)?;
        let end = time::now() + CLOSE_MAX;
        while time::now() < end {
            if matches!(self.event(interrupt, envelope)?, Event::Closed) {
                self.wait(Duration::from_secs(10));
                return Ok(());
            }
        }
        Err(Error::target("the worker did not close its store in time"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}
