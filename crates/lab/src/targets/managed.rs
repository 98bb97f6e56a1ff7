//! The target `serve`: this program's own document server, started for the run in a private
//! directory and inside the run's limits, and measured through the driver. The difference between
//! its results and those of the embedded engine of the same name is the cost of the server.
//! `serve:tls=1` encrypts the connections, with a certificate made for the run; with
//! `serve:oplog=0` the server keeps no oplog.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use kv::{EngineOptions, Factory};
use lab_report::error::{Error, Result};
use lab_report::record::{TargetSpec, switch};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use super::secret::Secret;
use super::{TLS, factory, own_engine};

/// The target's name: `serve`, or `serve:engine=rocksdb,option=value`.
pub(super) const NAME: &str = "serve";

/// The option that names the engine.
const ENGINE: &str = "engine";

/// The option that says whether the server keeps an oplog.
const OPLOG: &str = "oplog";

/// Maximum interval between log syncs that the server accepts, in milliseconds.
const INTERVAL_MAX_MS: u128 = 500;

/// A document server that the lab starts.
pub struct Managed {
    /// The server's engine.
    pub factory: &'static dyn Factory,
    /// Options of the engine.
    pub own: BTreeMap<String, String>,
    /// Whether connections are encrypted.
    tls: bool,
    /// Whether the server keeps an oplog, as it does by default.
    oplog: bool,
}

impl Managed {
    /// Parse a target specification.
    ///
    /// # Errors
    /// A message for the user: the engine is unknown or not compiled in.
    pub(super) fn of(spec: &TargetSpec) -> Result<Managed> {
        let mut own = spec.options.clone();
        let engine = own.remove(ENGINE);
        let factory = engine.map_or(Ok(own_engine()), |name| factory(&name))?;
        if factory.name() == "null" {
            return Err(Error::usage(
                "null keeps nothing, so a server cannot stand on it",
            ));
        }
        let mut on = |option, default| match own.remove(option) {
            Some(value) => switch(option, &value).map_err(Error::usage),
            None => Ok(default),
        };
        let (tls, oplog) = (on(TLS, false)?, on(OPLOG, true)?);
        Ok(Managed {
            factory,
            own,
            tls,
            oplog,
        })
    }

    /// Directory of the server's data: a subdirectory, because a store requires a directory of its
    /// own.
    fn data(&self, directory: &Path) -> PathBuf {
        if self.tls {
            directory.join("data")
        } else {
            directory.to_owned()
        }
    }

    /// Create the files that the server needs in `directory`, which exists.
    ///
    /// # Errors
    /// A message for the user.
    pub fn prepare(&self, directory: &Path) -> Result<()> {
        let data = self.data(directory);
        let made = fs::create_dir_all(&data);
        made.map_err(|e| Error::io("create", &data, &e))?;
        if self.tls && !Secret::Certificate.path(directory).exists() {
            let made = Secret::Certificate.make(directory);
            made.map_err(Error::environment)?;
        }
        Ok(())
    }

    /// Address of the server, once it listens at `port`; `directory` is absolute.
    #[must_use]
    pub fn uri(&self, port: u16, directory: &Path) -> String {
        let place = format!("mongodb://127.0.0.1:{port}");
        if !self.tls {
            return place;
        }
        let trusted = Secret::Certificate.path(directory);
        let trusted = percent_encode(trusted.as_os_str().as_bytes(), NON_ALPHANUMERIC);
        format!("{place}/?tls=true&tlsCAFile={trusted}")
    }

    /// Notes for the reader of a report.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let oplog = match self.oplog {
            true => "keeps an oplog, so it writes each change twice",
            false => "keeps no oplog",
        };
        let encrypted = "connections are encrypted (TLS), with a certificate made for the run";
        let encrypted = self.tls.then_some(encrypted);
        let notes = [oplog].into_iter().chain(encrypted);
        notes.map(str::to_owned).collect()
    }

    /// The interval between log syncs that the server uses for the requested one, in milliseconds.
    #[must_use]
    pub fn interval_ms(options: &EngineOptions) -> u128 {
        options.interval.as_millis().clamp(1, INTERVAL_MAX_MS)
    }

    /// Command line of the server: data in `directory`, any free port, messages to `log`.
    #[must_use]
    pub fn arguments(
        &self,
        options: &EngineOptions,
        directory: &Path,
        log: &Path,
    ) -> Vec<OsString> {
        let gigabytes = options.cache.bytes() as f64 / f64::from(1 << 30);
        let mut line: Vec<OsString> = ["serve", "--supervised", "--port", "0"]
            .map(OsString::from)
            .to_vec();
        let mut set = |name: &str, value: OsString| line.extend([name.into(), value]);
        set("--bind_ip", "127.0.0.1".into());
        set("--dbpath", self.data(directory).into());
        set("--logpath", log.into());
        set("--storageEngine", self.factory.name().into());
        set("--cacheSizeGB", gigabytes.to_string().into());
        let interval = Managed::interval_ms(options);
        set("--journalCommitInterval", interval.to_string().into());
        if !self.oplog {
            set("--oplogSize", "0".into());
        }
        if self.tls {
            set("--tlsMode", "requireTLS".into());
            let file = Secret::Certificate.path(directory);
            set("--tlsCertificateKeyFile", file.into());
        }
        for (name, value) in &self.own {
            set("--engineOption", format!("{name}={value}").into());
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse_targets;

    #[test]
    fn the_command_line_has_the_settings() {
        let spec = &parse_targets("serve:engine=memory,limit=1G").unwrap()[0];
        let managed = Managed::of(spec).unwrap();
        let options = EngineOptions {
            cache: stdx::ByteSize::mib(32),
            interval: std::time::Duration::from_secs(9),
            ..EngineOptions::default()
        };
        let line = managed.arguments(&options, Path::new("d"), Path::new("l"));
        let line: Vec<&str> = line.iter().map(|a| a.to_str().unwrap()).collect();
        let line = line.join(" ");
        for part in [
            "serve --supervised --port 0",
            "--dbpath d",
            "--storageEngine memory",
            "--cacheSizeGB 0.03125",
            "--journalCommitInterval 500",
            "--engineOption limit=1G",
        ] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("tls"), "{line}");
        assert!(!line.contains("oplog"), "{line}");
    }

    #[test]
    fn a_server_keeps_an_oplog_unless_it_is_switched_off() {
        let spec = &parse_targets("serve:oplog=0").unwrap()[0];
        let managed = Managed::of(spec).unwrap();
        assert!(managed.own.is_empty());
        let line = managed.arguments(&EngineOptions::default(), Path::new("d"), Path::new("l"));
        let size = line.iter().position(|part| part == "--oplogSize").unwrap();
        assert_eq!(line[size + 1], "0");
        assert_eq!(managed.notes(), ["keeps no oplog"]);
        let kept = Managed::of(&parse_targets("serve").unwrap()[0]).unwrap();
        assert!(kept.notes()[0].starts_with("keeps an oplog"));
    }

    #[test]
    fn encrypted_connections_trust_the_certificate_of_the_run() {
        let spec = &parse_targets("serve:tls=1").unwrap()[0];
        let managed = Managed::of(spec).unwrap();
        assert!(managed.own.is_empty());
        let line = managed.arguments(&EngineOptions::default(), Path::new("/d"), Path::new("l"));
        assert!(line.contains(&OsString::from("/d/certificate.pem")));
        let uri = managed.uri(7, Path::new("/a b"));
        assert!(
            uri.ends_with("/?tls=true&tlsCAFile=%2Fa%20b%2Fcertificate%2Epem"),
            "{uri}"
        );
        assert!(managed.notes()[1].contains("TLS"));
        let error = parse_targets("serve:tls=some").unwrap_err();
        assert!(error.message.contains("tls=1 or tls=0"), "{error}");
    }
}
