//! Starts the server of a cell: the program's own server, or another server in a private directory.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kv::{Durability, EngineOptions};
use lab_host::envelope::Envelope;
use lab_report::error::{Error, Result};
use rustix::process::Signal;

use super::interrupt::Interrupt;
use super::server::{self, Server, Wanted};
use crate::targets::{self, Managed, Place, Private};

/// Id of the log message with which `serve` reports the port on which it listens.
const LISTENS: i64 = 23_016;

/// What is needed to start a server, besides the target.
pub(super) struct Host<'a> {
    /// Path of this program.
    pub program: &'a Path,
    /// Data directory of the server.
    pub directory: &'a Path,
    /// Log file of the server.
    pub log: &'a Path,
    pub envelope: &'a Envelope,
    pub interrupt: &'a Interrupt,
}

impl Host<'_> {
    /// Start this program's own server, `serve`.
    pub(super) fn serve(&self, managed: &Managed, options: &EngineOptions) -> Result<Server> {
        let log = self.log;
        // Remove the log of an earlier try, which contains another port.
        if log.exists() {
            fs::remove_file(log).map_err(|e| Error::io("remove", log, &e))?;
        }
        let directory = self.directory.canonicalize();
        let directory = directory.map_err(|e| Error::io("examine", self.directory, &e))?;
        managed.prepare(&directory)?;
        let errors = fs::File::create(log.with_extension("err"));
        let errors = errors.map_err(|e| Error::io("create", log, &e))?;
        let mut command = Command::new(self.program);
        command
            .args(managed.arguments(options, &directory, log))
            .envs(managed.factory.environment().iter().copied())
            .stdout(Stdio::null())
            .stderr(errors);
        let listens =
            |messages: &str, _: u32| port_of(messages).map(|port| managed.uri(port, &directory));
        let wanted = Wanted {
            command,
            log,
            listens: &listens,
            stop: Signal::TERM,
        };
        Server::start(wanted, self.envelope, self.interrupt)
    }

    /// Start a server of another program on the data directory, which is initialized first if it is
    /// empty.
    pub(super) fn start(&self, private: &Private, asked: &Asked<'_>) -> Result<Server> {
        // Make the path absolute, since the server's working directory differs from that of the
        // lab.
        let directory = self.directory.canonicalize();
        let directory = directory.map_err(|e| Error::io("examine", self.directory, &e))?;
        let place = asked.place(&directory);
        let empty = fs::read_dir(&directory).is_ok_and(|mut all| all.next().is_none());
        if empty {
            private.directories(&place).map_err(Error::environment)?;
            let lines = private.preparations(&place);
            for line in lines.map_err(Error::environment)? {
                let command = server::waiting(&line, &directory, self.log)?;
                server::run(command, self.log, self.interrupt)?;
            }
        }
        let port = private.port().map_err(Error::environment)?;
        let line = private.line(&place, port);
        let line = line.map_err(Error::environment)?;
        let listens = |_: &str, pid: u32| {
            let uri = private.uri(pid, port);
            targets::answers(&uri).is_ok().then_some(uri)
        };
        let wanted = Wanted {
            command: server::waiting(&line, &directory, self.log)?,
            log: self.log,
            listens: &listens,
            stop: private.stop(),
        };
        Server::start(wanted, self.envelope, self.interrupt)
    }
}

/// The settings that a run requests for a server started for it.
pub(super) struct Asked<'a> {
    pub options: &'a EngineOptions,
    pub durability: Durability,
    pub clients: u32,
    pub limits: &'a lab_report::record::Limits,
}

impl Asked<'_> {
    pub(super) fn place<'p>(&'p self, directory: &'p Path) -> Place<'p> {
        Place {
            directory,
            options: self.options,
            durability: self.durability,
            clients: self.clients,
            limits: self.limits,
        }
    }
}

/// The port that the server's log reports; `None` until then.
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
