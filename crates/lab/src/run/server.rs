//! A server that is started for a cell: inside the envelope, in a directory of its own, on a port
//! of its own; ended with the cell.
//!
//! It is admitted to the envelope before it opens anything, and it ends when the lab does, however
//! that ends: it is started to be *supervised* (see `romanesco serve`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use kv::EngineOptions;
use rustix::process::{Pid, Signal, kill_process};
use stdx::time;

use super::interrupt::Interrupt;
use crate::envelope::Envelope;
use crate::error::{Error, Failure, Result};
use crate::target::Managed;

/// How often a wait looks.
const LOOK: Duration = Duration::from_millis(20);

/// How long a server may take to open an empty store and listen.
const START_MAX: Duration = Duration::from_secs(60);

/// How long it may take to close its store.
const STOP_MAX: Duration = Duration::from_secs(120);

/// How long a process whose sockets are closed may take to be gone: its memory is freed between.
const DYING_MAX: Duration = Duration::from_secs(3);

/// The number of its message that it listens, which names the port.
const LISTENS: i64 = 23_016;

/// What a server is started with.
pub(super) struct Wanted<'a> {
    pub program: &'a Path,
    pub managed: &'a Managed,
    pub options: &'a EngineOptions,
    /// Its data.
    pub directory: &'a Path,
    /// Its messages.
    pub log: &'a Path,
}

/// A running server. Dropping it kills it.
pub(super) struct Server {
    child: Child,
    log: PathBuf,
    port: u16,
}

impl Server {
    /// Start a server and wait until it listens.
    pub(super) fn start(
        wanted: &Wanted<'_>,
        envelope: &Envelope,
        interrupt: &Interrupt,
    ) -> Result<Server> {
        let Wanted { program, log, .. } = wanted;
        // That of an earlier try would tell another port.
        if log.exists() {
            fs::remove_file(log).map_err(|e| Error::io("remove", log, &e))?;
        }
        let managed = wanted.managed;
        let errors = fs::File::create(log.with_extension("err"));
        let errors = errors.map_err(|e| Error::io("create", log, &e))?;
        let mut child = Command::new(program)
            .args(managed.arguments(wanted.options, wanted.directory, log))
            .envs(managed.factory.environment().iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|e| Error::io("start", program, &e))?;
        let begin = child.stdin.take();
        let mut server = Server {
            child,
            log: wanted.log.to_owned(),
            port: 0,
        };
        envelope
            .admit(server.pid())
            .map_err(|e| Error::new(e.to_string()))?;
        // It has waited for this line; if it is gone already, that shows below.
        let _ = begin.map(|mut pipe| pipe.write_all(b"begin\n"));
        server.port = server.listens(envelope, interrupt)?;
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where the driver finds it.
    pub(super) fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}", self.port)
    }

    /// Wait for the message that names its port.
    fn listens(&mut self, envelope: &Envelope, interrupt: &Interrupt) -> Result<u16> {
        let end = time::now() + START_MAX;
        loop {
            if let Some(port) = port_of(&fs::read_to_string(&self.log).unwrap_or_default()) {
                return Ok(port);
            }
            if let Some(error) = self.death(envelope) {
                return Err(error);
            }
            if interrupt.is_set() {
                return Err(Error::new("interrupted").meaning(Failure::Interrupted));
            }
            if end <= time::now() {
                let (log, seconds) = (self.log.display(), START_MAX.as_secs());
                return Err(Error::new(format!(
                    "the server does not listen after {seconds} s; see {log}"
                )));
            }
            time::sleep(LOOK);
        }
    }

    /// Why it is gone, if it is.
    pub(super) fn death(&mut self, envelope: &Envelope) -> Option<Error> {
        let status = self.child.try_wait().ok().flatten()?;
        let killed = envelope
            .memory_events()
            .and_then(|e| e.oom_kills)
            .unwrap_or(0);
        if killed > 0 {
            return Some(Error::new(
                "the kernel killed the server because it needed more memory than --mem allows: \
                 raise --mem or lower --cache",
            ));
        }
        let errors = self.log.with_extension("err");
        let said = fs::read_to_string(&errors).unwrap_or_default();
        let said = match said.trim() {
            "" => String::new(),
            text => format!(": {text}"),
        };
        Some(Error::new(format!(
            "the server ended ({status}){said}; see {}, then begin again with `romanesco lab \
             resume`",
            self.log.display()
        )))
    }

    /// Why it is gone, if it is, after its client met an error.
    ///
    /// A client sees the connection end before the process can be waited for, so this waits a
    /// while; a server that met the error alive costs that while, once, at the end of its cell.
    pub(super) fn death_soon(&mut self, envelope: &Envelope) -> Option<Error> {
        self.wait(DYING_MAX);
        self.death(envelope)
    }

    /// End it in order.
    pub(super) fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself; it is not reaped yet, so the number is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
        let status = self.wait(STOP_MAX);
        let log = self.log.display();
        match status {
            Some(status) if status.success() => {
                // Nothing was said: the file would only puzzle.
                let _ = fs::remove_file(self.log.with_extension("err"));
                Ok(())
            }
            Some(status) => Err(Error::new(format!(
                "the server did not close its store ({status}); see {log}"
            ))),
            None => Err(Error::new(format!(
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
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port in the server's messages, once it said one.
fn port_of(log: &str) -> Option<u16> {
    let mut whole = log.split_inclusive('\n').filter(|l| l.ends_with('\n'));
    whole.find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let listens = message.get("id")?.as_i64()? == LISTENS;
        let port = message.get("attr")?.get("port")?.as_u64()?;
        u16::try_from(port).ok().filter(|_| listens)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_in_the_message_that_it_listens() {
        let line = r#"{"t":{"$date":"x"},"id":23016,"msg":"Waiting","attr":{"port":4711}}"#;
        let other = r#"{"id":23015,"attr":{"port":1}}"#;
        assert_eq!(port_of(&format!("{other}\nnoise\n{line}\n")), Some(4711));
        assert_eq!(port_of(line), None, "the line is not whole");
        assert_eq!(port_of(&format!("{other}\n")), None);
    }
}
