//! Servers the laboratory starts: `mariadb[:engine=NAME,OPTION=VALUE..]` and
//! `postgres[:OPTION=VALUE..]`. Locates their programs, creates their directories, and chooses the
//! settings that make them comparable with the other targets.
//!
//! Memory: the cache of the measured storage engine gets the size given by `--cache`, every other
//! cache of the server the smallest size it works with. I/O: bypasses the page cache where the
//! engine can and the run caps anything. A setting not listed here has the server's own default;
//! the user's options come last, and so win.
//!
//! `encrypt=1` encrypts the data at rest, where the storage engine can, with a key made for the
//! run. `tls=1` encrypts the connections, with a certificate made for the run. With `tls=1`
//! connections use TCP; with `tls=0` they use TCP too, so that the two compare: a socket is not
//! encrypted.

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

/// What a step asks of the pages of an engine, among the options of [`Place`]: per cent.
pub(crate) const FILL: &str = "fill_factor";

/// What a step asks of the codec of pages, by name.
pub(crate) const CODEC: &str = "codec_name";

/// The option that names the storage engine.
const ENGINE: &str = "engine";

/// The option that has data encrypted.
const ENCRYPT: &str = "encrypt";

/// Gives a program another user and kills it with its parent. Of util-linux, which is everywhere.
const SETPRIV: &str = "setpriv";

/// A server that is to be started.
#[derive(Debug)]
pub struct Private {
    engine: Engine,
    /// Whether data are encrypted at rest.
    encrypt: bool,
    /// Whether connections are encrypted; `None`: they go over the socket.
    tls: Option<bool>,
    /// The server's own settings.
    own: BTreeMap<String, String>,
}

/// Where a server's files go, and what a run asks of it.
pub struct Place<'a> {
    /// Its directory: data and temporary files are below it.
    pub directory: &'a Path,
    /// Cache, threads, codec, kind of I/O.
    pub options: &'a EngineOptions,
    /// What a commit waits for.
    pub durability: Durability,
    /// The most connections of the load at once.
    pub clients: u32,
    /// The limits around it.
    pub limits: &'a Limits,
}

/// A program to run, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Line(pub Vec<OsString>);

impl Place<'_> {
    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn temporary(&self) -> PathBuf {
        self.directory.join("tmp")
    }

    /// Whether data go past the page cache where the engine can: where that is asked for, and where
    /// a cap would otherwise hold for one target and not for another.
    fn direct(&self) -> bool {
        self.options.direct_io || !self.limits.is_unlimited()
    }
}

impl Private {
    /// The names of such targets.
    pub const NAMES: [&'static str; 2] = ["mariadb", "postgres"];

    /// What a target's words ask for; `None` if it is not of this kind.
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

    /// Why it cannot run at all as it is asked to; `None` if it can.
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

    /// Whether its data are encrypted.
    fn encrypts(&self) -> bool {
        self.encrypt && self.unsupported().is_none()
    }

    /// Whether pages can be made more or less full.
    #[must_use]
    pub fn fills(&self) -> bool {
        matches!(self.engine, Engine::InnoDb | Engine::Heap)
    }

    /// The storage engine.
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    /// What it is called.
    #[must_use]
    pub fn server(&self) -> &'static str {
        match self.engine {
            Engine::Heap => "PostgreSQL",
            _ => "MariaDB",
        }
    }

    /// Its storage engine, for people.
    #[must_use]
    pub fn engine_name(&self) -> String {
        match self.engine {
            Engine::Heap => "PostgreSQL's heap and B-trees".to_owned(),
            engine => format!("{engine} in MariaDB"),
        }
    }

    /// Its licence.
    #[must_use]
    pub fn license(&self) -> &'static str {
        match self.engine {
            Engine::Heap => "PostgreSQL",
            _ => "GPL-2.0",
        }
    }

    /// What a commit does at a level, and whether it compresses and reads past the page cache, in
    /// the server's own words.
    #[must_use]
    pub fn durability(&self, place: &Place<'_>) -> String {
        let ms = place.options.interval.as_millis();
        self.engine.durability(place.durability, ms)
    }

    /// The codec of its pages.
    #[must_use]
    pub fn compression(&self, place: &Place<'_>) -> &'static str {
        match (self.engine, place.options.codec) {
            (Engine::MyRocks, kv::Codec::Fast) => "fast",
            _ => "none",
        }
    }

    /// The server's own word for a codec of pages; `None` where none can be chosen by that name.
    #[must_use]
    pub fn codec(&self, name: &str) -> Option<&'static str> {
        match self.engine {
            Engine::MyRocks => mariadb::codec(name),
            _ => None,
        }
    }

    /// Whether its data go past the page cache.
    #[must_use]
    pub fn direct_io(&self, place: &Place<'_>) -> bool {
        matches!(self.engine, Engine::InnoDb | Engine::MyRocks) && place.direct()
    }

    /// What a reader must know.
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

    /// How it is reached.
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

    /// Why it has no such level of durability; `None` if it has.
    #[must_use]
    pub fn lacks(&self, level: Durability) -> Option<&'static str> {
        self.engine.lacks(level)
    }

    /// Whether what it promises nothing for is at least consistent after a kill.
    #[must_use]
    pub fn none_is_consistent(&self) -> bool {
        self.engine.none_is_consistent()
    }

    /// Why it cannot be started on this machine: a sentence that names the package of Debian.
    ///
    /// # Errors
    /// That sentence.
    pub fn installed(&self) -> Result<(), String> {
        found(SETPRIV, &[]).ok_or("setpriv is missing: install the package util-linux")?;
        match self.engine {
            Engine::Heap => postgres::programs().map(|_| ()),
            _ => mariadb::installed(self.engine, &self.own),
        }
    }

    /// Make the directories, and give them to whom the server runs as.
    ///
    /// # Errors
    /// A sentence that says what to do next.
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

    /// The programs that make an empty database, in order.
    ///
    /// # Errors
    /// A sentence that says what to do next.
    pub fn preparations(&self, place: &Place<'_>) -> Result<Vec<Line>, String> {
        let make = match self.engine {
            Engine::Heap => postgres::make(place)?,
            _ => mariadb::make(place)?,
        };
        Ok(vec![self.guarded(make)?])
    }

    /// A free port for its connections, if they go over TCP.
    ///
    /// # Errors
    /// A sentence: there is none.
    pub fn port(&self) -> Result<Option<u16>, String> {
        let free = || TcpListener::bind("127.0.0.1:0")?.local_addr();
        let address = self.tls.map(|_| free()).transpose();
        let address = address.map_err(|e| format!("no free port at 127.0.0.1: {e}"))?;
        Ok(address.map(|address| address.port()))
    }

    /// The program that serves, at the port if there is one.
    ///
    /// # Errors
    /// A sentence that says what to do next.
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

    /// A program of the server's that leaves nothing behind, whatever it or the laboratory dies of.
    fn guarded(&self, line: Vec<OsString>) -> Result<Line, String> {
        let Line(guarded) = guarded(line, self.user()?.as_ref())?;
        let mut all = match self.engine {
            Engine::Heap => postgres::apart().unwrap_or_default(),
            _ => Vec::new(),
        };
        all.extend(guarded);
        Ok(Line(all))
    }

    /// Its address, once it runs as process `pid`: its socket is in its working directory, which
    /// has a short name by way of its process, however long the path of the data is. So has the
    /// certificate, which is beside it.
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

    /// The signal that ends it in order.
    #[must_use]
    pub fn stop(&self) -> Signal {
        match self.engine {
            // Its quick way: sessions are ended, and then it closes.
            Engine::Heap => Signal::INT,
            _ => Signal::TERM,
        }
    }

    /// Whom it runs as, where it refuses to run as whom the laboratory does.
    fn user(&self) -> Result<Option<User>, String> {
        if self.engine != Engine::Heap || !geteuid().is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let user = User::of(&passwd, "postgres").or_else(|| User::of(&passwd, "nobody"));
        let none = "PostgreSQL refuses to run as root, and there is no user postgres or nobody";
        user.map(Some).ok_or_else(|| none.to_owned())
    }
}

/// A program that dies with the laboratory, whatever that dies of.
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

/// Whether a user may enter a directory: found out here, with a sentence, and not by the server.
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
         --data-dir, below /var/tmp for example, or run as somebody else",
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
    /// The user of that name in the text of `/etc/passwd`.
    fn of(passwd: &str, name: &str) -> Option<User> {
        let mut fields = passwd.lines().map(|line| line.split(':'));
        fields.find_map(|mut line| {
            (line.next()? == name).then_some(())?;
            let (id, group) = (line.nth(1)?, line.next()?);
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
            assert!(error.contains(needle), "{text}: {error}");
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
    fn a_user_is_found_by_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:,,,:/p:/bin/bash\n";
        let user = User::of(passwd, "postgres").unwrap();
        assert_eq!((user.id, user.group), (101, 104));
        assert_eq!(User::of(passwd, "post"), None);
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
            assert!(uri.contains(needle) && uri.contains("/proc/77/"), "{uri}");
            assert!(super::super::address::check(&uri).is_ok(), "{uri}");
        }
    }
}
