//! Tests of the server process: in the background, and with invalid settings.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Place, wait_for};
use crate::servers::Foreign;

/// A YAML file with these settings and a free port.
fn configured(place: &Place, settings: &str) {
    let folder = place.path("data");
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "net: {{port: 0}}\nstorage: {{dbPath: {}, cacheSizeGB: 0.0625}}\n{settings}",
        folder.display()
    );
    fs::write(place.path("conf"), text).unwrap();
}

/// Wait until a process has ended. Its parent does not wait for it.
fn ended(pid: i32) {
    let process = Path::new("/proc").join(pid.to_string()).join("stat");
    let gone = || match fs::read_to_string(&process) {
        // A zombie has ended; its new parent has not reaped it yet.
        Ok(text) => text.contains(") Z "),
        Err(_) => true,
    };
    let begun = stdx::time::now();
    while !gone() {
        assert!(begun.elapsed().as_secs() < 600, "the server does not end");
        std::thread::yield_now();
    }
}

#[test]
fn in_the_background_it_listens_before_the_program_returns() {
    let place = Place::new();
    configured(
        &place,
        "systemLog: {destination: file, path: log}\n\
         processManagement: {fork: true, pidFilePath: pid}\n",
    );
    let ran = place.run(&["serve", "--config", "conf"]).exits(0);
    assert!(
        ran.out.contains("child process started successfully"),
        "{}",
        ran.out
    );
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("Waiting for connections"), "{log}");
    let pid: i32 = fs::read_to_string(place.path("pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    ended(pid);
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("Now exiting"), "{log}");
}

#[test]
fn told_to_end_while_it_starts_it_ends_in_order() {
    let place = Place::new();
    configured(
        &place,
        "systemLog: {destination: file, path: log}\n\
         processManagement: {pidFilePath: pid}\n",
    );
    let mut server = place.serve("--config conf");
    wait_for("the file of its number", || place.path("pid").exists());
    server.signal(Signal::TERM);
    assert_eq!(server.end(), 0);
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("Now exiting"), "{log}");
    assert!(!place.path("pid").exists());
}

/// A message that inserts an empty document into `test.c`.
fn insert() -> Vec<u8> {
    let sized = |inner: &[u8]| {
        let length = i32::try_from(inner.len() + 5).unwrap();
        [&length.to_le_bytes(), inner, &[0]].concat()
    };
    let text = |name: &str, value: &str| {
        let length = i32::try_from(value.len() + 1).unwrap();
        let ends = format!("{value}\0");
        [
            &[2],
            name.as_bytes(),
            &[0],
            &length.to_le_bytes(),
            ends.as_bytes(),
        ]
        .concat()
    };
    let documents = sized(&[b"\x030\0", &sized(&[])[..]].concat());
    let fields = [
        text("insert", "c"),
        [b"\x04documents\0", &documents[..]].concat(),
        text("$db", "test"),
    ];
    let body = sized(&fields.concat());
    let length = i32::try_from(16 + 5 + body.len()).unwrap();
    let op_msg = 2_013_i32;
    let head = [length, 1, 0, op_msg, 0].map(i32::to_le_bytes).concat();
    [&head[..], &[0], &body].concat()
}

fn connect(port: u64) -> TcpStream {
    TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap()
}

/// Send a message and read the reply.
fn exchange(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    stream.write_all(message)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(i32::from_le_bytes(length)).unwrap();
    stream.read_exact(&mut vec![0; length - 4])
}

/// Insert documents until the server has ended.
fn busy(port: u64, done: &AtomicU64) {
    let mut stream = connect(port);
    let insert = insert();
    while exchange(&mut stream, &insert).is_ok() {
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Send SIGTERM to a server; returns its exit code.
fn terminated(server: &mut Foreign) -> Option<i32> {
    let pid = Pid::from_child(&server.child);
    kill_process(pid, Signal::TERM).unwrap();
    let mut status = None;
    wait_for("the server to end", || {
        status = server.child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

#[test]
fn with_busy_clients_it_ends_in_order() {
    let place = Place::new();
    let mut server = Foreign::start(&place, "");
    let done = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (port, done) = (server.port, Arc::clone(&done));
            stdx::sync::spawn("busy", move || busy(port, &done)).unwrap()
        })
        .collect();
    wait_for("the clients to be busy", || {
        100 <= done.load(Ordering::Relaxed)
    });
    assert_eq!(terminated(&mut server), Some(0));
    for worker in workers {
        worker.join().unwrap();
    }
    let log = fs::read_to_string(place.path("server.log")).unwrap();
    assert!(log.contains("Now exiting"), "{log}");
    assert!(!log.contains("did not close in order"), "{log}");
    fs::remove_file(place.path("server.log")).unwrap();
    let mut again = Foreign::start(&place, "");
    assert_eq!(terminated(&mut again), Some(0));
}

/// The permission bits of a path.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The files and directories in and below a directory, itself included.
fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_a_server_creates_is_its_owners_alone() {
    // Engines that are compiled in and store files.
    for engine in lab::targets::defaults() {
        let place = Place::new();
        let line = format!(
            "umask 000 && exec \"$0\" serve --storageEngine {engine} --dbpath db --createDbPath \
             --port 0 --logpath server.log --pidfilepath server.pid"
        );
        let mut command = place.outside("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_romanesco")]);
        let mut server = Foreign::listening(&place, command);
        exchange(&mut connect(server.port), &insert()).unwrap();
        let logs = || {
            let names = place.names(".").into_iter();
            names.filter(|n| n.starts_with("server.log")).count()
        };
        kill_process(Pid::from_child(&server.child), Signal::USR1).unwrap();
        wait_for("the log to be rotated", || logs() == 2);
        let mut files = 0;
        for path in below(&place.path("")) {
            if path == place.path("") || path.starts_with(place.path("state")) {
                continue;
            }
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            files += usize::from(path.is_file());
            assert_eq!(mode(&path), expected, "{engine}: {}", path.display());
        }
        // Two logs, the pid file, and the engine's files.
        assert!(5 < files, "{engine}: only {files} files");
        assert_eq!(terminated(&mut server), Some(0));
    }
}

#[test]
fn a_data_folder_that_is_open_to_others_is_named_and_left_alone() {
    let place = Place::new();
    let folder = place.path("db");
    fs::create_dir(&folder).unwrap();
    let left = folder.join("_tmp");
    for (permissions, warned) in [(0o755, true), (0o700, false)] {
        fs::set_permissions(&folder, fs::Permissions::from_mode(permissions)).unwrap();
        let mut server = Foreign::start(&place, "");
        assert_eq!(terminated(&mut server), Some(0));
        let log = fs::read_to_string(place.path("server.log")).unwrap();
        let message = "The data folder is open to other users of this machine";
        assert_eq!(log.contains(message), warned, "{log}");
        assert_eq!(mode(&folder), permissions);
        // The second start removes the files that the first one left.
        let kept = fs::read_dir(&left).map_or(0, Iterator::count);
        assert_eq!(kept, 0);
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("spill-1-0"), b"of a process that ended").unwrap();
        fs::remove_file(place.path("server.log")).unwrap();
    }
}

#[test]
fn what_cannot_start_in_the_background_is_told_in_the_foreground() {
    let place = Place::new();
    let serve = |settings: &str| {
        configured(&place, settings);
        place.run(&["serve", "--config", "conf"])
    };
    let fork = "processManagement: {fork: true}\n";
    serve(fork).refuses(2, &["systemLog.path"]);
    let ran = serve(&format!(
        "{fork}systemLog: {{path: log}}\nsetParameter: {{speed: 9}}\n"
    ));
    let ran = ran.exits(2);
    assert!(ran.err.contains("[speed]"), "{}", ran.err);
    // The reason stays in the log: the terminal may be gone.
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("[speed]"), "{log}");
    fs::remove_dir(place.path("data")).unwrap();
    let missing = place.run(&["serve", "--fork", "--logpath", "log", "--dbpath", "data"]);
    let missing = missing.exits(100);
    assert!(missing.err.contains("--createDbPath"), "{}", missing.err);
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("--createDbPath"), "{log}");
}

#[test]
fn a_data_directory_that_is_missing_is_created_only_on_request() {
    let place = Place::new();
    let line = ["serve", "--dbpath", "db", "--port", "0"];
    place
        .run(&line)
        .refuses(100, &["db", "missing", "--createDbPath"]);
    assert!(!place.path("db").exists());
    fs::write(place.path("db"), "a file").unwrap();
    place.run(&line).refuses(100, &["db", "no directory"]);
    fs::remove_file(place.path("db")).unwrap();
    let mut server = Foreign::listening(&place, {
        let mut command = place.outside(env!("CARGO_BIN_EXE_romanesco"));
        command
            .args(line)
            .args(["--createDbPath", "--logpath", "server.log"]);
        command
    });
    let second = place.run(&["serve", "--dbpath", "db", "--port", "0"]);
    second.refuses(100, &["db"]);
    let port = server.port.to_string();
    fs::create_dir(place.path("other")).unwrap();
    let taken = place.run(&["serve", "--dbpath", "other", "--port", &port]);
    taken.refuses(48, &["cannot listen on", &port]);
    let ended = place
        .run(&["serve", "--shutdown", "--dbpath", "db"])
        .exits(0);
    assert!(ended.out.contains("process ID"), "{}", ended.out);
    wait_for("the server to end", || {
        server.child.try_wait().unwrap().is_some()
    });
    let none = place.run(&["serve", "--shutdown", "--dbpath", "db"]);
    none.refuses(1, &["no server"]);
}

/// The messages of a log, in order.
fn messages(log: &str) -> Vec<String> {
    let lines = log.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["msg"].as_str().unwrap().to_owned()
    });
    lines.collect()
}

#[test]
fn the_log_begins_with_what_starts_and_an_old_one_is_kept() {
    let place = Place::new();
    let mut logs = Vec::new();
    for start in 1..=2 {
        // A log of the process before would have its port.
        let before = place.path("server.log");
        if before.exists() {
            fs::rename(&before, place.path("before")).unwrap();
        }
        let mut server = Foreign::start(&place, "--cacheSizeGB 0.0625");
        assert_eq!(terminated(&mut server), Some(0));
        logs.push(place.text("server.log"));
        let found = messages(&place.text("server.log"));
        let expected = [
            "Romanesco starting",
            "Build Info",
            "Operating System",
            "Options set by command line and configuration file",
            "Limits",
            "Opening the storage engine",
            "Storage engine opened",
        ];
        assert_eq!(found[..expected.len()], expected, "start {start}");
    }
    let first: serde_json::Value = serde_json::from_str(logs[0].lines().next().unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(first["attr"]["version"], version, "{first}");
    assert_eq!(first["attr"]["dbPath"], "db", "{first}");
    assert!(first["attr"]["commit"].is_string(), "{first}");
    // A start that fails keeps the log of the server before it, too.
    fs::remove_dir_all(place.path("db")).unwrap();
    let failed = place.run(&["serve", "--dbpath", "db", "--logpath", "server.log"]);
    failed.exits(100);
    let kept = place.names(".").into_iter();
    let kept: Vec<String> = kept.filter(|n| n.starts_with("server.log.")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(place.text(&kept[0]), logs[1]);
    let last = place.text("server.log");
    assert!(last.contains("\"exitCode\":100"), "{last}");
}

#[test]
fn all_errors_of_a_configuration_are_named_at_once() {
    let place = Place::new();
    configured(
        &place,
        "speed: {limit: 1}\nauditLog: {destination: file}\n\
         setParameter: {pace: 1, haste: 2}\nsystemLog: {logRotate: reopen}\n",
    );
    let line = ["serve", "--config", "conf", "--slowms", "often"];
    let ran = place.run(&line).exits(2);
    for needle in [
        "6 errors",
        "speed.limit",
        "auditLog.destination",
        "[pace]",
        "[haste]",
        "systemLog.logAppend",
        "often",
    ] {
        assert!(ran.err.contains(needle), "no {needle} in {}", ran.err);
    }
    let version = place.run(&["serve", "--version"]).exits(0);
    assert!(
        version.out.contains(env!("CARGO_PKG_VERSION")),
        "{}",
        version.out
    );
}

#[test]
fn settings_that_cannot_be_refuse_the_start_by_name() {
    let place = Place::new();
    let serve = |settings: &str| {
        configured(&place, settings);
        place.run(&["serve", "--config", "conf"])
    };
    serve("nett: {}\nspeed: {limit: 1}\n").refuses(2, &["conf", "speed.limit"]);
    let mode = ["net.tls.mode", "certificateKeyFile"];
    let here = ["--dbpath", "data", "--port", "0"];
    place
        .run(&[&["serve", "--tlsMode", "requireTLS"][..], &here[..]].concat())
        .refuses(2, &mode);
    let file = [
        "serve",
        "--tlsMode",
        "requireTLS",
        "--tlsCertificateKeyFile",
        "none.pem",
    ];
    let dbpath = place.path("data");
    let file = [
        &file[..],
        &["--dbpath", dbpath.to_str().unwrap(), "--port", "0"],
    ]
    .concat();
    place.run(&file).refuses(2, &["none.pem"]);
}
