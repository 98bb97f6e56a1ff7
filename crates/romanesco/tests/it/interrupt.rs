//! Tests of runs that are interrupted by a request or by a kill: completed cells are kept, the
//! others are repeated.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::program::{Place, Running, lives, power_can_be_cut, send, wait_for};

/// Four short steps, then six of a third of a second, in which the run can be stopped.
const STEPS: &str = "run iibench-steps -t lmdb --rows 2000 --time 0.35 --settle 0.2 --out run";

/// One slow step per target.
const SLOW: &str = "run iibench-classic -t lmdb,memory --rows 20000 --rate 2000 --batch 20 \
                    --time 2 --settle 0.2 --out run";

/// A run of [`STEPS`] in its fifth step. Its worker is halted, so that the run stays in that step.
fn stopped_half_way(place: &Place) -> Running {
    let running = place.start(STEPS);
    place.await_step("run", "_qr100");
    send(running.worker(), Signal::STOP);
    running
}

/// Resume the run, and assert that all steps exist and that discarded ones are reported.
fn resumes(place: &Place) {
    let watched = place.lab("watch run --once").exits(2).out;
    assert!(watched.contains("lab resume"), "{watched}");
    place.lab("resume run").exits(0);
    place.whole("run");
    assert_eq!(place.count("run", "done"), 10);
    let statuses = place.statuses("run");
    let discarded: Vec<_> = statuses.iter().filter(|s| s.1 == "discarded").collect();
    assert!(discarded.len() >= 5, "{statuses:?}");
    assert!(
        discarded.iter().all(|s| s.2.contains("was restarted")),
        "{statuses:?}"
    );
    let report = place.text("run/report.html");
    assert!(
        report.contains("was restarted"),
        "the report does not tell of discarded steps"
    );
}

#[test]
fn an_interrupted_run_is_resumed() {
    let place = Place::new();
    let mut running = stopped_half_way(&place);
    running.signal(Signal::INT);
    assert_eq!(running.end(), 130);
    let told = place.text("background.txt");
    assert!(
        told.contains("interrupted") && told.contains("lab resume run"),
        "{told}"
    );
    assert!(!place.path("run/data").exists());
    resumes(&place);
}

#[test]
fn stop_ends_a_run_in_order() {
    let place = Place::new();
    let mut running = stopped_half_way(&place);
    // No other process may work on the run meanwhile.
    place
        .lab("resume run")
        .refuses(3, &["in use", "lab watch", "lab stop"]);
    place.lab(STEPS).refuses(3, &["holds a run"]);
    let watched = place.lab("watch run --once").exits(0).out;
    assert!(
        watched.contains("steps ") && !watched.contains("not running"),
        "{watched}"
    );
    let told = place.lab("stop run").exits(0).out;
    assert!(told.contains("lab resume run"), "{told}");
    assert_eq!(running.end(), 130);
    assert_eq!(place.count("run", "failed"), 0);
}

#[test]
fn a_killed_lab_takes_its_worker_along_and_is_resumed() {
    let place = Place::new();
    let mut running = stopped_half_way(&place);
    let (lab, worker) = (running.pid(), running.worker());
    assert!(lives(worker));
    running.signal(Signal::KILL);
    assert_eq!(running.end(), 128 + 9);
    wait_for("the worker to die", || !lives(worker));
    resumes(&place);
    let left = groups_of(lab, Path::new("/sys/fs/cgroup"), 0);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_killed_lab_leaves_no_mount_behind() {
    if !power_can_be_cut() {
        stdx::skip::test("this machine lets us mount nothing");
        return;
    }
    let place = Place::new();
    let line = "run redo-log -t betree --rows 1000 --time 1.5 --settle 0.2 --mem 0 --out run";
    let mut running = place.start(line);
    place.await_step("run", "_power-sync");
    let path = place.path("run").display().to_string();
    // Number of loop devices backed by a file of the run, as the kernel reports them.
    let behind = || {
        let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let files =
            devices.filter_map(|d| fs::read_to_string(d.path().join("loop/backing_file")).ok());
        files.filter(|file| file.contains(&path)).count()
    };
    wait_for("the file system to be mounted", || behind() == 1);
    let own = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!own.contains(&path), "others see the mount");
    running.signal(Signal::KILL);
    assert_eq!(running.end(), 128 + 9);
    wait_for("the file behind it to be gone", || behind() == 0);
    place.lab("resume run").exits(0);
    assert_eq!(place.count("run", "done"), 14);
    // The kernel frees a loop device when its last user has ended.
    wait_for("no file to be behind a device", || behind() == 0);
}

#[test]
fn a_killed_worker_fails_its_target_only() {
    let place = Place::new();
    let mut running = place.start(SLOW);
    place.await_step("run", "_lmdb_r1_load");
    send(running.worker(), Signal::KILL);
    assert_eq!(running.end(), 2, "{}", place.text("background.txt"));
    let statuses = place.statuses("run");
    assert_eq!(statuses[0].1, "failed");
    for needle in [
        "lmdb",
        "ended unexpectedly",
        "signal: 9",
        "worker.log",
        "lab resume",
    ] {
        assert!(
            statuses[0].2.contains(needle),
            "no {needle:?} in {:?}",
            statuses[0]
        );
    }
    assert_eq!(statuses[1].1, "done", "{statuses:?}");
    assert_eq!(place.json("run/summary.json")["complete"], false);
    assert!(place.path("run/report.html").exists());
    let told = place.lab("resume run").exits(0).err;
    assert!(told.contains("memory: done before"), "{told}");
    place.whole("run");
}

#[test]
fn the_only_target_may_fail() {
    let place = Place::new();
    let mut running = place.start(&SLOW.replace("lmdb,memory", "memory"));
    place.await_step("run", "_memory_r1_load");
    send(running.worker(), Signal::KILL);
    assert_eq!(running.end(), 2, "{}", place.text("background.txt"));
    assert!(place.path("run/report.html").exists());
}

#[test]
fn a_run_is_resumed_from_anywhere() {
    let place = Place::new();
    let mut running = stopped_half_way(&place);
    running.signal(Signal::TERM);
    assert_eq!(running.end(), 130);
    let mut command = place.command("resume --quiet");
    command.arg(place.path("run")).current_dir("/");
    crate::program::finish(command).exits(0);
    place.whole("run");
    assert!(!Path::new("/run/data").exists());
}

/// The control groups of a laboratory, by the pid in their names.
pub(crate) fn groups_of(pid: u32, dir: &Path, depth: u32) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return found;
    };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|t| t.is_dir()) {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("romanesco-{pid}-")) {
            found.push(name);
        } else if depth < 8 {
            found.extend(groups_of(pid, &entry.path(), depth + 1));
        }
    }
    found
}
