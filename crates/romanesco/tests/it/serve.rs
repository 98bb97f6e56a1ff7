//! The server as a process: in the background, and told what cannot be.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::program::Place;

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

/// Wait until a process is gone. What it was started by does not wait for it.
fn ended(pid: i32) {
    let process = Path::new("/proc").join(pid.to_string()).join("stat");
    let gone = || match fs::read_to_string(&process) {
        // A zombie has ended; who adopted it has not looked yet.
        Ok(text) => text.contains(") Z "),
        Err(_) => true,
    };
    let begun = stdx::time::now();
    while !gone() {
        assert!(begun.elapsed().as_secs() < 120, "the server does not end");
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
fn what_cannot_start_in_the_background_is_told_in_the_foreground() {
    let place = Place::new();
    let serve = |settings: &str| {
        configured(&place, settings);
        place.run(&["serve", "--config", "conf"])
    };
    let fork = "processManagement: {fork: true}\n";
    serve(fork).refuses(48, &["systemLog.path"]);
    let ran = serve(&format!(
        "{fork}systemLog: {{path: log}}\nsetParameter: {{speed: 9}}\n"
    ));
    let ran = ran.exits(48);
    assert!(ran.err.contains("[speed]"), "{}", ran.err);
}

#[test]
fn settings_that_cannot_be_refuse_the_start_by_name() {
    let place = Place::new();
    let serve = |settings: &str| {
        configured(&place, settings);
        place.run(&["serve", "--config", "conf"])
    };
    serve("nett: {}\nspeed: {limit: 1}\n").refuses(48, &["conf", "speed.limit"]);
    let mode = ["net.tls.mode", "certificateKeyFile"];
    place
        .run(&["serve", "--tlsMode", "requireTLS"])
        .refuses(48, &mode);
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
    place.run(&file).refuses(48, &["none.pem"]);
}
