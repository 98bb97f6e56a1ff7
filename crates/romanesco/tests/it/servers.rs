//! Tests of servers as targets, both started for the run and already running: they also check what
//! happens when the server or the lab ends.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use rustix::process::Signal;

use crate::interrupt::groups_of;
use crate::program::{Place, children, lives, power_can_be_cut, send, wait_for};

/// Ten short steps on a server that is started for the run.
const STEPS: &str = "run iibench-steps -t serve --rows 2000 --time 0.35 --settle 0.2 --out run";

/// A server that is already running; killed when dropped.
pub(crate) struct Foreign {
    pub(crate) child: Child,
    pub(crate) port: u64,
}

impl Foreign {
    pub(crate) fn start(place: &Place, more: &str) -> Foreign {
        fs::create_dir_all(place.path("db")).unwrap();
        let mut command = place.outside(env!("CARGO_BIN_EXE_romanesco"));
        command
            .args("serve --dbpath db --port 0 --logpath server.log".split(' '))
            .args(more.split_whitespace());
        Foreign::listening(place, command)
    }

    /// Run `command`, a server that logs to `server.log`, and wait until it listens.
    pub(crate) fn listening(place: &Place, mut command: Command) -> Foreign {
        let mut child = command.spawn().unwrap();
        let mut port = None;
        wait_for("the server to listen", || {
            let ended = child.try_wait().unwrap();
            let log = fs::read_to_string(place.path("server.log")).unwrap_or_default();
            port = log.lines().find_map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).ok()?;
                (line["id"] == 23_016).then(|| line["attr"]["port"].as_u64())?
            });
            assert!(
                port.is_some() || ended.is_none(),
                "the server ended ({ended:?}): {log}"
            );
            port.is_some()
        });
        Foreign {
            child,
            port: port.unwrap(),
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // A test may have killed the server before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_of_the_run_goes_through_every_step() {
    let place = Place::new();
    place.lab(STEPS).exits(0);
    place.whole("run");
    assert_eq!(place.count("run", "done"), 10);
    let target = &place.json("run/env/targets.json")[0];
    assert_eq!(target["engine"], "betree behind `romanesco serve`");
    assert!(
        target["version"].as_str().unwrap().contains("Romanesco"),
        "{target:#}"
    );
    let options = target["options"].to_string();
    assert!(
        options.contains("storage.dbPath") && options.contains("j: false"),
        "{options}"
    );
    let load = place.json("run/steps/001_serve_r1_l.i0/summary.json");
    assert!(load["cpu_seconds"].as_f64().is_some() && load["file_bytes"].as_u64() > Some(0));
    // The number of rows that the time limit allowed.
    assert!(
        load["integrity"]["checked"] == true && load["rows"].as_u64() > Some(0),
        "{load:#}"
    );
    assert_eq!(load["integrity"]["rows_found"], load["rows"], "{load:#}");
    place.lab("report run -o again.html").exits(0);
    place.lab("export run --format csv").exits(0);
}

#[test]
fn data_that_a_killed_server_had_journaled_is_present() {
    let place = Place::new();
    let run = "run redo-log -t serve --rows 2000 --time 0.5 --settle 0.5 --mem 0 --out run";
    place.lab(run).exits(0);
    place.whole("run");
    for (name, ..) in place.statuses("run") {
        let step = place.json(format!("run/steps/{name}/summary.json"));
        let lost = &step["extra"]["lost_after_kill"];
        if name.contains("group") || name.contains("none") {
            assert!(
                step["unsupported"].as_str().unwrap().contains("see"),
                "{step:#}"
            );
        } else if name.contains("kill-") || name.contains("power-") {
            if step["unsupported"].is_string() {
                assert!(name.contains("power-") && !power_can_be_cut(), "{step:#}");
                continue;
            }
            assert!(
                step["extra"]["acknowledged"].as_f64() > Some(0.0),
                "{step:#}"
            );
            assert!(name.contains("interval") || *lost == 0.0, "{step:#}");
        }
    }
}

#[test]
fn the_connections_of_a_server_are_encrypted_where_that_is_asked_for() {
    let place = Place::new();
    let run = "run oltp-read-only -t serve:tls=0,serve:tls=1 --preset smoke --rows 1000 \
               --time 0.4 --settle 0.2 --out run";
    place.lab(run).exits(0);
    place.whole("run");
    let encrypted = &place.json("run/env/targets.json")[1];
    let told = encrypted.to_string();
    assert!(
        told.contains("requireTLS") && told.contains("encrypted (TLS)"),
        "{encrypted:#}"
    );
}

#[test]
fn a_server_that_runs_already_is_measured_and_left_alone() {
    let place = Place::new();
    let foreign = Foreign::start(&place, "");
    let target = format!("mongodb://127.0.0.1:{}", foreign.port);
    let line = format!(
        "run iibench-reads -t {target},memory --rows 2000 --time 0.3 --settle 0.2 --out run"
    );
    let plan = place.lab(&format!("{line} --dry-run")).exits(0).out;
    assert!(plan.contains("not managed"), "{plan}");
    place.lab(&line).exits(0);
    place.whole("run");
    assert_eq!(place.count("run", "done"), 8);
    let (name, ..) = &place.statuses("run")[0];
    let load = place.json(format!("run/steps/{name}/summary.json"));
    assert!(
        load["cpu_seconds"].as_f64().is_some(),
        "its process is here: {load:#}"
    );
    assert!(
        load["warnings"].to_string().contains("not capped"),
        "{load:#}"
    );
    // Data that is only in memory and in the log occupies no space in the collection yet.
    assert!(load["file_bytes"].is_u64(), "{load:#}");
    assert!(lives(foreign.child.id()));
    let report = place.text("run/report.html");
    assert!(report.contains("its limits are its own"));
    let map = place.lab(&format!("map {target}")).exits(0).out;
    assert!(
        map.starts_with("betree") && map.contains(&format!("process {}", foreign.child.id())),
        "{map}"
    );
    place
        .lab("map mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300")
        .refuses(3, &["no server answers"]);
}

#[test]
fn problems_of_a_server_are_reported_before_anything_is_written() {
    let place = Place::new();
    place
        .lab("run iibench-classic -t mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300 --out run")
        .refuses(3, &["no server answers", "127.0.0.1:1"]);
    place
        .lab("run iibench-classic -t mongodb://ann:secret@h --out run")
        .refuses(3, &["LAB_MONGODB_PASSWORD"]);
    let foreign = Foreign::start(&place, "--auth");
    let line = format!(
        "run iibench-classic -t mongodb://127.0.0.1:{} --out run",
        foreign.port
    );
    place
        .lab(&line)
        .refuses(3, &["only users", "LAB_MONGODB_PASSWORD"]);
    assert!(!place.path("run").exists());
}

#[test]
fn a_server_that_is_killed_fails_its_target_only() {
    let place = Place::new();
    let line = "run iibench-classic -t serve,memory --rows 20000 --rate 2000 --batch 20 --time 2 \
                --settle 0.2 --out run";
    let mut running = place.start(line);
    place.await_step("run", "_serve_r1_load");
    send(children(&running)[0], Signal::KILL);
    assert_eq!(running.end(), 2, "{}", place.text("background.txt"));
    let statuses = place.statuses("run");
    assert_eq!(statuses[0].1, "failed");
    for needle in ["serve", "the server ended", "signal: 9", "lab resume"] {
        assert!(statuses[0].2.contains(needle), "{statuses:?}");
    }
    assert_eq!(statuses[1].1, "done", "{statuses:?}");
}

#[test]
fn a_lab_that_ends_takes_its_server_along() {
    for signal in [Signal::INT, Signal::KILL] {
        let place = Place::new();
        let mut running = place.start(STEPS);
        place.await_step("run", "_qr100");
        let (lab, both) = (running.pid(), children(&running));
        // With a halted worker the run does not end, even if the signal arrives late.
        send(both[1], Signal::STOP);
        running.signal(signal);
        running.end();
        for pid in both {
            wait_for("server and worker to end", || !lives(pid));
        }
        place.lab("resume run").exits(0);
        place.whole("run");
        let left = groups_of(lab, Path::new("/sys/fs/cgroup"), 0);
        assert!(left.is_empty(), "{left:?}");
    }
}
