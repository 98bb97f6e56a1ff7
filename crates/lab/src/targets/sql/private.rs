//! Servers the laboratory starts: `mariadb[:engine=NAME,OPTION=VALUE..]` and
//! `postgres[:OPTION=VALUE..]`. Locates their programs, creates their directories, and chooses the
//! settings that make them comparable with the other targets.
//!
//! Memory: the cache of the measured storage engine gets the size given by `--cache`, every other
//! cache of the server the smallest size that works. I/O: data bypasses the page cache where the
//! engine supports it and the run has any cap. A setting not listed here has the server's own
//! default; the user's options come last, and so take precedence.
//!
//! `encrypt=1` encrypts the data at rest, where the storage engine supports it, with a key made for
//! the run. `tls=1` encrypts the connections, with a certificate made for the run. With `tls=1`
//! connections use TCP. With `tls=0` they use TCP too, unencrypted, so that the two are comparable.
//! Without `tls` they use the server's socket, which is not encrypted.

mod mariadb;
mod postgres;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use kv::{Durability, EngineOptions};
use lab_report::record::{Limits, TargetSpec, switch};
use rustix::process::{Signal, geteuid};

use super::address::plain;
use super::engine::Engine;
use crate::programs::found;
use crate::targets::TLS;
use crate::targets::secret::Secret;

/// Option of [`Place`] for the requested fill factor of pages, in percent.
pub(crate) const FILL: &str = "fill_factor";

/// Option of [`Place`] for the requested codec of pages, by name.
pub(crate) const CODEC: &str = "codec_name";

/// The option that names the storage engine.
const ENGINE: &str = "engine";

/// The option that encrypts data.
const ENCRYPT: &str = "encrypt";

/// Program that runs another program as a different user and kills it when its parent ends. Part of
/// util-linux, which every distribution has.
const SETPRIV: &str = "setpriv";

/// The id of the user without rights.
const UNPRIVILEGED: u32 = 65_534;

/// A server that the lab starts.
#[derive(Debug)]
pub struct Private {
    engine: Engine,
    /// Whether data is encrypted at rest.
    encrypt: bool,
    /// Whether connections are encrypted; `None` if they use the socket.
    tls: Option<bool>,
    /// Settings for the server that the user gave.
    own: BTreeMap<String, String>,
}

/// The location of a server's files, and the settings that a run requests.
pub struct Place<'a> {
    /// Directory of the server, which contains data and temporary files.
    pub directory: &'a Path,
    /// The requested cache, threads, codec and kind of I/O.
    pub options: &'a EngineOptions,
    /// Durability of each commit.
    pub durability: Durability,
    /// Maximum number of concurrent connections of the load.
    pub clients: u32,
    /// The limits of the envelope.
    pub limits: &'a Limits,
}

/// A command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line(pub Vec<OsString>);

impl Place<'_> {
    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn temporary(&self) -> PathBuf {
        self.directory.join("tmp")
    }

    /// Whether data bypasses the page cache where the engine supports it: if this was requested, or
    /// if a cap would otherwise affect only some of the targets.
    fn direct(&self) -> bool {
        self.options.direct_io || !self.limits.is_unlimited()
    }
}

impl Private {
    /// The names of targets of this kind.
    pub const NAMES: [&'static str; 2] = ["mariadb", "postgres"];

    /// Parse a target specification; `None` if the target is not of this kind.
    pub(in crate::targets) fn of(spec: &TargetSpec) -> Option<Result<Private, String>> {
        let mut own = spec.options.clone();
        let engine = match spec.engine.as_str() {
            "mariadb" => own.remove(ENGINE).unwrap_or("innodb".to_owned()).parse(),
            "postgres" => Ok(Engine::Heap),
            _ => return None,
        };
        Some(engine.and_then(|engine| {
            let mut on = |option: &str| {
                let value = own.remove(option);
                value.map(|value| switch(option, &value)).transpose()
            };
            let (encrypt, tls) = (on(ENCRYPT)?, on(TLS)?);
            let private = Private {
                engine,
                encrypt: encrypt.unwrap_or(false),
                tls,
                own,
            };
            private.check()?;
            Ok(private)
        }))
    }

    fn check(&self) -> Result<(), String> {
        let server = self.server();
        for (name, value) in &self.own {
            let bare = name.replace('-', "_");
            if bare.is_empty() || !plain(&bare.replace('.', "_")) {
                return Err(format!("{server}: {name:?} is no name of a setting"));
            }
            if self.reserved().contains(&bare.as_str()) {
                return Err(format!("{server}: the laboratory sets {name} itself"));
            }
            if value.contains(['\n', '\0']) {
                return Err(format!("{server}: {name} has a value of several lines"));
            }
        }
        Ok(())
    }

    fn reserved(&self) -> &'static [&'static str] {
        match self.engine {
            Engine::Heap => postgres::RESERVED,
            _ => mariadb::RESERVED,
        }
    }

    /// Why the server does not support the requested settings; `None` if it does.
    #[must_use]
    pub fn unsupported(&self) -> Option<&'static str> {
        match self.engine {
            _ if !self.encrypt => None,
            Engine::InnoDb | Engine::Aria => None,
            Engine::MyRocks => Some("MyRocks has no encryption at rest"),
            Engine::MyIsam => Some("MyISAM has no encryption at rest"),
            Engine::Heap => Some("PostgreSQL has no encryption at rest of its own"),
        }
    }

    /// Whether the server encrypts its data.
    fn encrypts(&self) -> bool {
        self.encrypt && self.unsupported().is_none()
    }

    /// Whether the fill factor of pages can be set.
    #[must_use]
    pub fn fills(&self) -> bool {
        matches!(self.engine, Engine::InnoDb | Engine::Heap)
    }

    /// The storage engine.
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    /// Name of the product.
    #[must_use]
    pub fn server(&self) -> &'static str {
        match self.engine {
            Engine::Heap => "PostgreSQL",
            _ => "MariaDB",
        }
    }

    /// Display name of the storage engine.
    #[must_use]
    pub fn engine_name(&self) -> String {
        match self.engine {
            Engine::Heap => "PostgreSQL's heap and B-trees".to_owned(),
            engine => format!("{engine} in MariaDB"),
        }
    }

    /// Licence of the product.
    #[must_use]
    pub fn license(&self) -> &'static str {
        match self.engine {
            Engine::Heap => "PostgreSQL",
            _ => "GPL-2.0",
        }
    }

    /// The commit behavior at a durability level, in terms of the server's own settings.
    #[must_use]
    pub fn durability(&self, place: &Place<'_>) -> String {
        let ms = place.options.interval.as_millis();
        self.engine.durability(place.durability, ms)
    }

    /// The codec of the server's pages.
    #[must_use]
    pub fn compression(&self, place: &Place<'_>) -> &'static str {
        match (self.engine, place.options.codec) {
            (Engine::MyRocks, kv::Codec::Fast) => "fast",
            _ => "none",
        }
    }

    /// The server's name for a codec of pages; `None` if it does not support the codec.
    #[must_use]
    pub fn codec(&self, name: &str) -> Option<&'static str> {
        match self.engine {
            Engine::MyRocks => mariadb::codec(name),
            _ => None,
        }
    }

    /// Whether the server's data bypasses the page cache.
    #[must_use]
    pub fn direct_io(&self, place: &Place<'_>) -> bool {
        matches!(self.engine, Engine::InnoDb | Engine::MyRocks) && place.direct()
    }

    /// Notes for the reader of a report.
    #[must_use]
    pub fn notes(&self, place: &Place<'_>) -> Vec<String> {
        let mut notes = vec![
            format!(
                "the load reaches it through its driver and {}; the driver's process is not within \
                 the limits, and its CPU is counted apart",
                self.way()
            ),
            "its size is that of its whole directory: system tables and the redo log included"
                .to_owned(),
        ];
        if let Some(why) = self.engine.lacks(place.durability) {
            notes.push(why.to_owned());
        }
        if place.direct() && !self.direct_io(place) {
            notes.push("cannot bypass the page cache".to_owned());
        }
        if self.compression(place) == "none" && place.options.codec != kv::Codec::None {
            notes.push("does not compress".to_owned());
        }
        if self.encrypt {
            let note = match self.engine {
                Engine::Aria => "tables and temporary files are encrypted (AES); the log is not",
                _ => "tables, redo log and temporary files are encrypted (AES)",
            };
            notes.push(note.to_owned());
        }
        notes
    }

    /// The transport of the server's connections.
    fn way(&self) -> &'static str {
        match self.tls {
            None => "a socket",
            Some(false) => "TCP on this machine, open to its users while it runs, not encrypted",
            Some(true) => {
                "TCP on this machine, open to its users while it runs, encrypted (TLS) with a \
                 certificate made for the run"
            }
        }
    }

    /// Why the server does not support a level of durability; `None` if it does.
    #[must_use]
    pub fn lacks(&self, level: Durability) -> Option<&'static str> {
        self.engine.lacks(level)
    }

    /// Whether a store at durability `none` is still consistent after a kill.
    #[must_use]
    pub fn none_is_consistent(&self) -> bool {
        self.engine.none_is_consistent()
    }

    /// Check that the server can be started on this machine.
    ///
    /// # Errors
    /// A message that names the missing Debian package.
    pub fn installed(&self) -> Result<(), String> {
        found(SETPRIV, &[]).ok_or("setpriv is missing: install the package util-linux")?;
        match self.engine {
            Engine::Heap => postgres::programs().map(|_| ()),
            _ => mariadb::installed(self.engine, &self.own),
        }
    }

    /// Create the directories, owned by the user that the server runs as.
    ///
    /// # Errors
    /// A message that states what to do next.
    pub fn directories(&self, place: &Place<'_>) -> Result<(), String> {
        let mut made = vec![place.directory.to_owned(), place.temporary()];
        for directory in &made {
            let failed = |e: std::io::Error| format!("cannot make {}: {e}", directory.display());
            fs::create_dir_all(directory).map_err(failed)?;
        }
        if self.encrypts() {
            made.push(Secret::DataKey.make(place.directory)?);
        }
        if self.tls == Some(true) {
            made.push(Secret::Certificate.make(place.directory)?);
        }
        let Some(user) = self.user()? else {
            return Ok(());
        };
        for path in &made {
            let given = std::os::unix::fs::chown(path, Some(user.id), Some(user.group));
            given.map_err(|e| format!("cannot give {} away: {e}", path.display()))?;
        }
        enters(&user, place.directory)
    }

    /// The commands that create an empty database, in order.
    ///
    /// # Errors
    /// A message that states what to do next.
    pub fn preparations(&self, place: &Place<'_>) -> Result<Vec<Line>, String> {
        let make = match self.engine {
            Engine::Heap => postgres::make(place)?,
            _ => mariadb::make(place)?,
        };
        Ok(vec![self.guarded(make)?])
    }

    /// A free port for the server's connections; `None` if they do not use TCP.
    ///
    /// # Errors
    /// A message: no port is free.
    pub fn port(&self) -> Result<Option<u16>, String> {
        let free = || TcpListener::bind("127.0.0.1:0")?.local_addr();
        let address = self.tls.map(|_| free()).transpose();
        let address = address.map_err(|e| format!("no free port at 127.0.0.1: {e}"))?;
        Ok(address.map(|address| address.port()))
    }

    /// The command that starts the server, with the port if there is one.
    ///
    /// # Errors
    /// A message that states what to do next.
    pub fn line(&self, place: &Place<'_>, port: Option<u16>) -> Result<Line, String> {
        let mut line = match self.engine {
            Engine::Heap => postgres::serve(place)?,
            engine => mariadb::serve(place, engine)?,
        };
        if self.encrypts() {
            line.extend(mariadb::encryption(
                &Secret::DataKey.path(place.directory),
                self.engine,
            ));
        }
        if let Some(port) = port {
            let certificate = Secret::Certificate.path(place.directory);
            let certificate = Some(certificate).filter(|_| self.tls == Some(true));
            line.extend(match self.engine {
                Engine::Heap => postgres::over_tcp(port, certificate.as_deref()),
                _ => mariadb::over_tcp(port, certificate.as_deref()),
            });
        }
        for (name, value) in &self.own {
            if self.engine == Engine::Heap {
                line.push("-c".into());
                line.push(format!("{name}={value}").into());
            } else {
                line.push(format!("--{name}={value}").into());
            }
        }
        self.guarded(line)
    }

    /// The command `line` of a server program, extended so that no process and no shared memory is
    /// left behind, however the server or the laboratory ends.
    fn guarded(&self, line: Vec<OsString>) -> Result<Line, String> {
        let Line(guarded) = guarded(line, self.user()?.as_ref())?;
        let mut all = match self.engine {
            Engine::Heap => postgres::apart().unwrap_or_default(),
            _ => Vec::new(),
        };
        all.extend(guarded);
        Ok(Line(all))
    }

    /// Address of the server, once it runs as process `pid`. The path of its socket leads through
    /// the working directory of that process, so that it is short however long the path of the data
    /// is. The same applies to the certificate in that directory's parent.
    #[must_use]
    pub fn uri(&self, pid: u32, port: Option<u16>) -> String {
        let place = port.map_or("localhost".to_owned(), |port| format!("127.0.0.1:{port}"));
        let tls = match self.tls {
            None => String::new(),
            Some(false) => format!("&{TLS}=0"),
            Some(true) => format!("&{TLS}=/proc/{pid}/cwd/../{}", Secret::Certificate.file()),
        };
        match self.engine {
            Engine::Heap => {
                format!("postgres://postgres@{place}/postgres?socket=/proc/{pid}/cwd{tls}")
            }
            engine => format!(
                "mysql://root@{place}?engine={}&socket=/proc/{pid}/cwd/{}{tls}",
                engine.name(),
                mariadb::SOCKET
            ),
        }
    }

    /// The signal that shuts the server down cleanly.
    #[must_use]
    pub fn stop(&self) -> Signal {
        match self.engine {
            // Fast shutdown: the server terminates its sessions, then closes.
            Engine::Heap => Signal::INT,
            _ => Signal::TERM,
        }
    }

    /// The user that the server runs as; `None` for the user of the laboratory. PostgreSQL refuses
    /// to run as root.
    fn user(&self) -> Result<Option<User>, String> {
        if self.engine != Engine::Heap || !geteuid().is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = User::named(&passwd, "postgres").or_else(|| User::unprivileged(&passwd));
        let none = "PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`";
        user.map(Some).ok_or_else(|| none.to_owned())
    }
}

/// The command `line`, extended so that the kernel kills its process when the laboratory ends,
/// however it ends.
fn guarded(line: Vec<OsString>, user: Option<&User>) -> Result<Line, String> {
    let setpriv = found(SETPRIV, &[]).ok_or("setpriv is missing: install util-linux")?;
    let mut all: Vec<OsString> = vec![setpriv.into(), "--pdeathsig".into(), "KILL".into()];
    if let Some(user) = user {
        all.push(format!("--reuid={}", user.id).into());
        all.push(format!("--regid={}", user.group).into());
        all.push("--clear-groups".into());
    }
    all.push("--".into());
    all.extend(line);
    Ok(Line(all))
}

/// Check that a user may enter a directory. The check is made here because the server's own message
/// would be unclear.
fn enters(user: &User, directory: &Path) -> Result<(), String> {
    let test = vec![OsString::from("test"), "-x".into(), directory.into()];
    let Line(words) = guarded(test, Some(user))?;
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or(OsStr::new(SETPRIV), |w| w));
    let entered = command.args(words).current_dir("/").status();
    if entered.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(format!(
        "PostgreSQL refuses to run as root, and the user {} may not enter {}: name another \
         --data-dir, below /var/tmp for example, or run as another user",
        user.name,
        directory.display()
    ))
}

/// A user of this machine.
#[derive(Debug, PartialEq)]
struct User {
    name: String,
    id: u32,
    group: u32,
}

impl User {
    /// The user of that name in `/etc/passwd`.
    fn named(passwd: &str, name: &str) -> Option<User> {
        User::all(passwd).find(|user| user.name == name)
    }

    /// The user without rights, `nobody` on most systems.
    fn unprivileged(passwd: &str) -> Option<User> {
        User::all(passwd).find(|user| user.id == UNPRIVILEGED)
    }

    fn all(passwd: &str) -> impl Iterator<Item = User> {
        let fields = passwd.lines().map(|line| line.split(':'));
        fields.filter_map(|mut line| {
            let (name, id, group) = (line.next()?, line.nth(1)?, line.next()?);
            Some(User {
                name: name.to_owned(),
                id: id.parse().ok()?,
                group: group.parse().ok()?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse_targets;

    fn private(text: &str) -> Private {
        Private::of(&parse_targets(text).unwrap()[0])
            .unwrap()
            .unwrap()
    }

    fn words(line: &[OsString]) -> String {
        let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn settings_follow_the_run_and_the_users_come_last() {
        let options = EngineOptions {
            cache: stdx::ByteSize::mib(256),
            ..EngineOptions::default()
        };
        let limits = Limits::default();
        let place = Place {
            directory: Path::new("/d"),
            options: &options,
            durability: Durability::Sync,
            clients: 4,
            limits: &limits,
        };
        let of = |engine| words(&mariadb::settings(&place, engine));
        let inno = of(Engine::InnoDb);
        assert!(
            inno.contains("--innodb_buffer_pool_size=268435456"),
            "{inno}"
        );
        assert!(inno.contains("--innodb_flush_log_at_trx_commit=1"));
        assert!(inno.contains("--innodb_flush_method=fsync"));
        let rocks = of(Engine::MyRocks);
        assert!(
            rocks.contains("--rocksdb_block_cache_size=201326592"),
            "{rocks}"
        );
        assert!(rocks.contains("--rocksdb_flush_log_at_trx_commit=1"));
        let mut named = options.clone();
        named.codec = kv::Codec::None;
        for (name, word) in [
            ("none", "kNoCompression"),
            ("zlib", "kZlibCompression"),
            ("zstd", "kZSTD"),
        ] {
            named.own.insert(CODEC.to_owned(), name.to_owned());
            let place = Place {
                options: &named,
                ..place
            };
            let rocks = words(&mariadb::settings(&place, Engine::MyRocks));
            assert!(rocks.contains(&format!(";compression={word};")), "{rocks}");
        }
        let mine = private("mariadb:engine=myrocks");
        assert_eq!(
            (mine.codec("lz4"), mine.codec("zlib-6")),
            (Some("kLZ4Compression"), None)
        );
        assert_eq!(private("mariadb").codec("none"), None);
        assert!(of(Engine::MyIsam).contains("--key_buffer_size=268435456"));
        assert!(of(Engine::Aria).contains("--aria_pagecache_buffer_size=268435456"));
        let post = words(&postgres::settings(&place));
        assert!(post.contains("shared_buffers=262144kB"), "{post}");
        let capped = Limits {
            write_iops: Some(500),
            ..Limits::default()
        };
        let place = Place {
            limits: &capped,
            ..place
        };
        let inno = words(&mariadb::settings(&place, Engine::InnoDb));
        assert!(inno.contains("--innodb_flush_method=O_DIRECT"), "{inno}");
        assert!(inno.contains("--innodb_io_capacity=500"), "{inno}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, needle) in [
            ("mariadb:engine=innodbb", "did you mean \"innodb\""),
            ("mariadb:datadir=/x", "sets datadir itself"),
            ("mariadb:in nodb=1", "no name of a setting"),
            ("postgres:data_directory=/x", "sets data_directory itself"),
            ("postgres:engine=innodb", "sets engine itself"),
            ("mariadb:encrypt=maybe", "encrypt=1 or encrypt=0"),
            ("postgres:tls=2", "tls=1 or tls=0"),
            ("mariadb:ssl_cert=/x", "sets ssl_cert itself"),
        ] {
            let error = parse_targets(text).unwrap_err();
            assert!(error.message.contains(needle), "{text}: {error}");
        }
        assert_eq!(private("mariadb:engine=myrocks").engine, Engine::MyRocks);
        assert_eq!(private("mariadb:innodb_doublewrite=OFF").own.len(), 1);
        assert_eq!(private("postgres").engine, Engine::Heap);
        let encrypted = private("mariadb:encrypt=1");
        assert_eq!((encrypted.encrypt, encrypted.own.len()), (true, 0));
        assert_eq!(encrypted.unsupported(), None);
        assert!(private("postgres:encrypt=on").unsupported().is_some());
        let over_tcp = private("postgres:tls=off");
        assert_eq!((over_tcp.tls, over_tcp.own.len()), (Some(false), 0));
        assert!(over_tcp.port().unwrap().is_some());
        assert_eq!(private("postgres").port(), Ok(None));
    }

    #[test]
    fn a_server_dies_with_the_laboratory() {
        let Line(line) = guarded(vec!["mariadbd".into()], None).unwrap();
        let line = words(&line);
        let guard = "setpriv --pdeathsig KILL -- mariadbd";
        assert!(line.ends_with(guard), "V2: {line}");
    }

    #[test]
    fn a_user_is_found_by_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:,,,:/p:/bin/bash\n";
        let user = User::named(passwd, "postgres").unwrap();
        assert_eq!((user.id, user.group), (101, 104));
        assert_eq!(User::named(passwd, "post"), None);
        assert_eq!(User::unprivileged(passwd), None);
        let more = format!("{passwd}nobody:x:65534:65533::/:/sbin/nologin\n");
        assert_eq!(User::unprivileged(&more).unwrap().group, 65_533);
    }

    #[test]
    fn addresses_of_own_servers_make_sense() {
        for (name, port, needle) in [
            ("mariadb:engine=aria", None, "engine=aria"),
            ("postgres", None, "cwd"),
            ("mariadb:tls=1", Some(7), "127.0.0.1:7"),
            ("postgres:tls=0", Some(7), "tls=0"),
        ] {
            let uri = private(name).uri(77, port);
            assert!(uri.contains(needle), "{uri}");
            assert!(uri.contains("/proc/77/"), "Q3: its own socket: {uri}");
            assert!(super::super::address::check(&uri).is_ok(), "{uri}");
        }
    }
}
