//! `backup`, `verify-backup` and `restore`, with a server at work, and with processes that are
//! killed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;
use mongodb::sync::{Client, Collection};
use rustix::process::{Pid, Signal, kill_process};
use stdx::rng::Rng;

use crate::program::{Place, finish, wait_for};
use crate::servers::Foreign;

/// Documents before the first backup: some megabytes.
pub(crate) const DOCUMENTS: i64 = 4_000;

pub(crate) fn client(port: u64) -> Client {
    let uri = format!("mongodb://127.0.0.1:{port}/?directConnection=true");
    let options = ClientOptions::parse(uri).run().unwrap();
    Client::with_options(options).unwrap()
}

fn connect(port: u64) -> Collection<Document> {
    client(port).database("test").collection("c")
}

fn document(id: i64) -> Document {
    // Does not compress well.
    let padding: String = (0..64)
        .map(|n| format!("{:016x}", stdx::rng::mix64((id * 64 + n).cast_unsigned())))
        .collect();
    doc! {"_id": id, "padding": padding}
}

pub(crate) fn fill(port: u64) {
    let documents: Vec<Document> = (0..DOCUMENTS).map(document).collect();
    connect(port).insert_many(documents).run().unwrap();
}

/// The numbers of the documents on a server, in order.
pub(crate) fn ids(port: u64) -> Vec<i64> {
    let cursor = connect(port)
        .find(doc! {})
        .sort(doc! {"_id": 1})
        .run()
        .unwrap();
    let found = cursor.map(|document| {
        let document = document.unwrap();
        let id = document.get_i64("_id").unwrap();
        assert_eq!(document, self::document(id));
        id
    });
    found.collect()
}

pub(crate) fn serve(place: &Place, engine: &str, dbpath: &str) -> Foreign {
    serve_with(place, engine, dbpath, "")
}

pub(crate) fn serve_with(place: &Place, engine: &str, dbpath: &str, more: &str) -> Foreign {
    // A log of a server before has its port.
    let _ = fs::remove_file(place.path("server.log"));
    fs::create_dir_all(place.path(dbpath)).unwrap();
    let mut command = place.outside(env!("CARGO_BIN_EXE_romanesco"));
    let line = format!(
        "serve --storageEngine {engine} --dbpath {dbpath} --port 0 --logpath server.log \
         --cacheSizeGB 0.0625 {more}"
    );
    command.args(line.split_whitespace());
    Foreign::listening(place, command)
}

pub(crate) fn uri(server: &Foreign) -> String {
    format!("mongodb://127.0.0.1:{}", server.port)
}

#[test]
fn a_backup_of_a_server_is_verified_restored_and_served() {
    for engine in lab::targets::defaults() {
        let place = Place::new();
        let server = serve(&place, engine, "db");
        fill(server.port);
        for (name, codec) in [("copy", "none"), ("copy.tar", "zstd")] {
            let line = [
                "backup",
                "--uri",
                &uri(&server),
                "--compression",
                codec,
                name,
            ];
            let ran = place.run(&line).exits(0);
            assert!(ran.out.contains("files"), "{}", ran.out);
            let ran = place.run(&["verify-backup", name]).exits(0);
            assert!(ran.out.contains("complete and unchanged"), "{}", ran.out);
            assert!(ran.out.contains(engine), "{}", ran.out);
            let target = format!("{name} restored");
            let ran = place.run(&["restore", name, "--dbpath", &target]).exits(0);
            assert!(ran.out.contains("romanesco serve"), "{}", ran.out);
            assert!(!place.path(&format!("{target}.restoring")).exists());
        }
        drop(server);
        for target in ["copy restored", "copy.tar restored"] {
            fs::rename(place.path(target), place.path("again")).unwrap();
            let server = serve(&place, engine, "again");
            assert_eq!(ids(server.port), (0..DOCUMENTS).collect::<Vec<_>>());
            let log = place.text("server.log");
            assert!(log.contains("restored from a backup"), "{log}");
            drop(server);
            fs::remove_dir_all(place.path("again")).unwrap();
        }
    }
}

#[test]
fn a_store_that_is_not_open_is_backed_up_from_its_directory() {
    let place = Place::new();
    let mut server = serve(&place, "betree", "db");
    fill(server.port);
    let taken = place.run(&["backup", "--dbpath", "db", "copy"]);
    taken.refuses(1, &["--uri"]);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.child.wait().unwrap();
    place.run(&["backup", "--dbpath", "db", "copy"]).exits(0);
    place.run(&["verify-backup", "copy"]).exits(0);
    fs::create_dir(place.path("real")).unwrap();
    symlink(place.path("real"), place.path("link")).unwrap();
    for name in ["link/copy", "link/copy.tar"] {
        place.run(&["backup", "--dbpath", "db", name]).exits(0);
        place.run(&["verify-backup", name]).exits(0);
    }
    place.run(&["restore", "copy", "--dbpath", "new"]).exits(0);
    let server = serve(&place, "betree", "new");
    assert_eq!(ids(server.port).len(), usize::try_from(DOCUMENTS).unwrap());
    place
        .run(&["backup", "--dbpath", "none", "other"])
        .refuses(1, &["none", "no store"]);
    let both = [
        "backup",
        "--dbpath",
        "db",
        "--uri",
        "mongodb://localhost",
        "x",
    ];
    assert_eq!(place.run(&both).code, 64);
    assert_eq!(place.run(&["backup", "x"]).code, 64);
}

/// Write two master keys into the files `key` and `other`.
pub(crate) fn write_keys(place: &Place) {
    for (name, key) in [("key", "QUFB"), ("other", "QkJC")] {
        let last = if name == "key" { "QUE=" } else { "QkI=" };
        fs::write(place.path(name), key.repeat(10) + last).unwrap();
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(place.path(name), private).unwrap();
    }
}

#[test]
fn an_encrypted_store_that_is_not_open_is_backed_up_with_its_key() {
    let place = Place::new();
    write_keys(&place);
    let flags = "--enableEncryption --encryptionKeyFile key";
    let mut server = serve_with(&place, "betree", "db", flags);
    fill(server.port);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.child.wait().unwrap();
    let take = |more: &[&str]| {
        let line = ["backup", "--dbpath", "db", "copy"];
        place.run(&[&line, more].concat())
    };
    for (more, needle) in [
        (&[][..], "by --encryptionKeyFile"),
        (&["--encryptionKeyFile", "other"], "key"),
        (&["--encryptionKeyFile", "none"], "none"),
    ] {
        let ran = take(more);
        assert!(!ran.err.contains("--uri"), "{}", ran.err);
        ran.refuses(1, &[needle]);
        assert!(!place.path("copy").exists());
    }
    take(&["--encryptionKeyFile", "key"]).exits(0);
    let ran = place.run(&["restore", "copy", "--dbpath", "new"]).exits(0);
    assert!(ran.out.contains("--enableEncryption"), "{}", ran.out);
    assert!(ran.out.contains("--encryptionKeyFile"), "{}", ran.out);
    let server = serve_with(&place, "betree", "new", flags);
    assert_eq!(ids(server.port).len(), usize::try_from(DOCUMENTS).unwrap());
    let log = place.text("server.log");
    for id in ["\"id\":9000007", "\"id\":9000008"] {
        assert_eq!(log.matches(id).count(), 1, "{id}: {log}");
    }
    let by_uri = ["backup", "--uri", "x", "--encryptionKeyFile", "key", "y"];
    assert_eq!(place.run(&by_uri).code, 64);
}

#[test]
fn a_backup_of_a_directory_is_outside_of_it_and_its_owners_alone() {
    for engine in lab::targets::defaults() {
        let place = Place::new();
        let mut server = serve(&place, engine, "db");
        kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
        server.child.wait().unwrap();
        symlink(place.path("db"), place.path("link")).unwrap();
        let before = place.names("db");
        for inside in ["db/inside", "db/inside.tar", "link/inside", "db/../db/x"] {
            let ran = place.run(&["backup", "--dbpath", "db", inside]);
            ran.refuses(1, &["outside of the data directory", inside]);
        }
        assert_eq!(place.names("db"), before);
        for line in ["backup --dbpath db copy", "restore copy --dbpath new"] {
            let line = format!("umask 000 && exec \"$0\" {line}");
            let mut command = place.outside("sh");
            command.args(["-c", &line, env!("CARGO_BIN_EXE_romanesco")]);
            finish(command).exits(0);
        }
        for path in ["db", "copy", "copy/files", "new"] {
            for entry in fs::read_dir(place.path(path)).unwrap() {
                let entry = entry.unwrap();
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                let path = entry.path();
                assert_eq!(mode & 0o077, 0, "{engine}: {mode:o} {}", path.display());
            }
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let place = Place::new();
    let server = serve(&place, "betree", "db");
    fill(server.port);
    let uri = uri(&server);
    place.run(&["backup", "--uri", &uri, "copy"]).exits(0);
    place
        .run(&["backup", "--uri", &uri, "copy"])
        .refuses(1, &["copy", "name a new one"]);
    place
        .run(&["backup", "--uri", &uri, "db/copy"])
        .refuses(1, &["outside of the data directory"]);
    place
        .run(&[
            "backup",
            "--uri",
            "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50",
            "x",
        ])
        .exits(1);
    drop(server);
    place
        .run(&["restore", "copy", "--dbpath", "db"])
        .refuses(1, &["not empty", "db"]);
    let missing = ["no backup has this path", "check the name", "[none]"];
    place
        .run(&["restore", "none", "--dbpath", "new"])
        .refuses(1, &missing);
    let ran = place.run(&["verify-backup", "none"]);
    assert!(!ran.err.contains("os error"), "{}", ran.err);
    ran.refuses(1, &missing);
    let wrong = ["serve", "--dbpath", "copy", "--port", "0"];
    place.run(&wrong).exits(100);
    place.run(&["verify-backup", "copy"]).exits(0);
    // Damage.
    let data = place.path("copy/files/data.betree");
    let mut bytes = fs::read(&data).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&data, bytes).unwrap();
    let ran = place.run(&["verify-backup", "copy"]).exits(1);
    assert!(ran.err.contains(": 1 problem;"), "{}", ran.err);
    fs::write(place.path("copy/extra"), b"x").unwrap();
    let ran = place.run(&["verify-backup", "copy"]).exits(1);
    for needle in [
        "files/data.betree: altered",
        "extra: not part",
        "2 problems",
    ] {
        assert!(ran.err.contains(needle), "{}", ran.err);
    }
    let restored = place.run(&["restore", "copy", "--dbpath", "new"]);
    restored.refuses(1, &["files/data.betree: altered", "extra"]);
    assert!(!place.path("new").exists());
    fs::remove_file(place.path("copy/backup.manifest")).unwrap();
    place
        .run(&["verify-backup", "copy"])
        .refuses(1, &["no complete backup", "copy"]);
    // An engine that this program does not have.
    let manifest = |engine: &str| {
        let body = format!(
            "{{\"product\": \"9\", \"engine\": \"{engine}\", \"identity\": {{\"engine\": \
             \"{engine}\", \"format\": 1, \"created\": 1, \"options\": \"\"}}, \"store\": null, \
             \"started\": 1, \"ended\": 1, \"operationTime\": null, \"codec\": \"none\", \
             \"encryption\": null, \"files\": []}}"
        );
        let digest = blake3::hash(body.as_bytes()).to_hex();
        format!("romanesco-backup 1 {digest}\n{body}")
    };
    fs::create_dir(place.path("strange")).unwrap();
    fs::write(place.path("strange/backup.manifest"), manifest("oracle")).unwrap();
    place
        .run(&["restore", "strange", "--dbpath", "new"])
        .refuses(1, &["oracle"]);
    let newer = manifest("betree").replacen(" 1 ", " 9 ", 1);
    fs::write(place.path("strange/backup.manifest"), newer).unwrap();
    place
        .run(&["restore", "strange", "--dbpath", "new"])
        .refuses(1, &["format 9"]);
    assert!(!place.path("new").exists());
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Server,
    Backup,
}

/// Insert documents, one after another, until the server or the test ends.
fn write(
    port: u64,
    from: i64,
    done: &Arc<AtomicI64>,
    stop: &Arc<AtomicBool>,
) -> stdx::sync::JoinHandle<()> {
    let (done, stop) = (Arc::clone(done), Arc::clone(stop));
    let body = move || {
        let collection = connect(port);
        for id in from.. {
            let inserted = collection.insert_one(document(id)).run();
            if inserted.is_err() || stop.load(Ordering::Acquire) {
                return;
            }
            done.store(id + 1, Ordering::Release);
        }
    };
    stdx::sync::spawn("writer", body).unwrap()
}

/// A kill at a random moment of a backup or a restore: what was reported complete is, and what is
/// incomplete is refused.
struct Round {
    place: Place,
    engine: &'static str,
    rng: Rng,
    done: Arc<AtomicI64>,
}

impl Round {
    fn child(&self, line: &[&str]) -> std::process::Child {
        let mut command: Command = self.place.outside(env!("CARGO_BIN_EXE_romanesco"));
        command
            .args(line)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// The time of the kill, within what a backup takes.
    fn moment(&mut self) -> Duration {
        Duration::from_millis(self.rng.below(900))
    }

    /// Restore a backup, start it, and check its documents: a prefix with at least `least`.
    fn check(&self, backup: &str, least: i64) {
        let place = &self.place;
        place.run(&["verify-backup", backup]).exits(0);
        place.run(&["restore", backup, "--dbpath", "new"]).exits(0);
        let server = serve(place, self.engine, "new");
        let found = ids(server.port);
        let count = i64::try_from(found.len()).unwrap();
        assert_eq!(found, (0..count).collect::<Vec<_>>(), "a hole");
        assert!(least <= count, "{count} of {least} documents");
        drop(server);
        fs::remove_dir_all(place.path("new")).unwrap();
    }

    fn kill_backup(&mut self, victim: Victim, name: &str) {
        let mut server = serve(&self.place, self.engine, "db");
        let (port, stop) = (server.port, Arc::new(AtomicBool::new(false)));
        let known = i64::try_from(ids(port).len()).unwrap();
        if known == 0 {
            fill(port);
        }
        let from = known.max(DOCUMENTS);
        self.done.store(from, Ordering::Release);
        let writer = write(port, from, &self.done, &stop);
        let least = self.done.load(Ordering::Acquire);
        let uri = uri(&server);
        let line = [
            "backup",
            "--uri",
            &uri,
            "--throttle",
            "12M",
            "--compression",
            "lz4",
            name,
        ];
        let mut taken = self.child(&line);
        stdx::time::sleep(self.moment());
        match victim {
            Victim::Server => server.child.kill().unwrap(),
            _ => taken.kill().unwrap(),
        }
        let code = taken.wait().unwrap().code();
        stop.store(true, Ordering::Release);
        writer.join().unwrap();
        if victim == Victim::Backup {
            // The server removes what a client left, unless it was complete.
            let path = self.place.path(name);
            let part = self.place.path(&format!("{name}.incomplete"));
            let whole = || path.is_file() || path.join("backup.manifest").exists();
            let settled = || !part.exists() && (!path.exists() || whole());
            wait_for("the server to end the backup", settled);
        }
        drop(server);
        let exists = self.place.path(name).exists();
        let complete = exists && self.place.run(&["verify-backup", name]).code == 0;
        assert!(
            complete || code != Some(0),
            "{victim:?}: reported complete, and is not"
        );
        if complete {
            self.check(name, least);
        } else if exists {
            let refused = self.place.run(&["verify-backup", name]);
            refused.refuses(1, &["complete", name]);
            let restored = self.place.run(&["restore", name, "--dbpath", "new"]);
            restored.refuses(1, &["complete", name]);
            assert!(!self.place.path("new").exists());
        }
        let left = format!("{name}.incomplete");
        if self.place.path(&left).exists() {
            self.place
                .run(&["verify-backup", &left])
                .refuses(1, &["complete", name]);
        }
    }

    fn kill_restore(&mut self, name: &str) {
        let server = serve(&self.place, self.engine, "db");
        let least = i64::try_from(ids(server.port).len()).unwrap();
        self.place
            .run(&["backup", "--uri", &uri(&server), name])
            .exits(0);
        drop(server);
        let mut restored = self.child(&["restore", name, "--dbpath", "new"]);
        let moment = self.moment() / 20;
        stdx::time::sleep(moment);
        restored.kill().unwrap();
        let code = restored.wait().unwrap().code();
        if self.place.path("new").exists() {
            let server = serve(&self.place, self.engine, "new");
            assert!(least <= i64::try_from(ids(server.port).len()).unwrap());
            drop(server);
            fs::remove_dir_all(self.place.path("new")).unwrap();
        } else {
            assert_ne!(code, Some(0), "reported complete, and is not");
            let work = self.place.path("new.restoring");
            if work.exists() {
                let wrong = ["serve", "--dbpath", "new.restoring", "--port", "0"];
                self.place.run(&wrong).exits(100);
            }
        }
        self.check(name, least);
    }
}

/// `ROMANESCO_SEEDS` rounds; each kills another process at another moment.
#[test]
fn after_kills_complete_backups_restore_and_others_are_refused() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("ROMANESCO_SEED").unwrap_or(1);
    let rounds = number("ROMANESCO_SEEDS").unwrap_or(3);
    for engine in lab::targets::defaults() {
        let mut round = Round {
            place: Place::new(),
            engine,
            rng: Rng::new(0),
            done: Arc::default(),
        };
        drop({
            let server = serve(&round.place, engine, "db");
            fill(server.port);
            server
        });
        for seed in first..first + rounds {
            println!("{engine}: ROMANESCO_SEED={seed}");
            round.rng = Rng::new(seed);
            let suffix = if round.rng.chance(0.5) { ".tar" } else { "" };
            let name = format!("copy-{seed}{suffix}");
            match seed % 3 {
                0 => round.kill_restore(&name),
                1 => round.kill_backup(Victim::Server, &name),
                _ => round.kill_backup(Victim::Backup, &name),
            }
            remove(&round.place.path(&name));
            remove(&round.place.path(&format!("{name}.incomplete")));
            remove(&round.place.path(&format!("{name}.staging")));
            remove(&round.place.path("new.restoring"));
        }
    }
}

fn remove(path: &Path) {
    // One of them, or none, exists.
    let _ = fs::remove_dir_all(path);
    let _ = fs::remove_file(path);
}
