//! Tests on machines without enough disk space, or without control groups.

use std::fs;
use std::process::Command;

use crate::program::{Place, finish, is_root};

/// A file system of 24 MiB, or another size, unmounted when dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// Mount the file system; `None`, reported as skipped, where this process may not mount.
    fn mount(place: &Place) -> Option<SmallDisk> {
        SmallDisk::of(place, 24)
    }

    /// Mount a file system of `mib` MiB.
    fn of(place: &Place, mib: u32) -> Option<SmallDisk> {
        let dir = place.path("small");
        fs::create_dir(&dir).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(&dir);
        let mounted = is_root() && mount.output().is_ok_and(|o| o.status.success());
        if !mounted {
            stdx::skip::test("a small disk cannot be mounted here");
        }
        mounted.then_some(SmallDisk(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let status = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(status.is_ok_and(|s| s.success()), "cannot unmount");
    }
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_anything_is_made() {
    let place = Place::new();
    // No disk has room for the published size; no mount is needed for this.
    let mut line = "run iibench-classic -t null --preset published --rows 900000000000 --out run";
    let disk = SmallDisk::mount(&place);
    if disk.is_some() {
        line = "run iibench-classic -t null --rows 100000 --data-dir small --out run";
    }
    place
        .lab(line)
        .refuses(3, &["free", "may need", "--data-dir", "--force"]);
    assert!(!place.path("run").exists());
    assert_eq!(place.names("small"), [""; 0]);
}

#[test]
fn a_full_disk_fails_its_target_only() {
    let place = Place::new();
    let Some(_disk) = SmallDisk::mount(&place) else {
        return;
    };
    let ran = place
        .lab(
            "run iibench-classic -t lmdb,null --rows 100000 --time 3600 --settle 0 --data-dir \
             small --out run --force",
        )
        .exits(2);
    assert!(ran.err.contains("no room left on the disk"), "{}", ran.err);
    let statuses = place.statuses("run");
    assert_eq!(
        (statuses[0].1.as_str(), statuses[1].1.as_str()),
        ("failed", "done")
    );
    assert!(statuses[0].2.contains("small") && statuses[0].2.contains("no room left"));
    assert_eq!(place.json("run/summary.json")["complete"], false);
    assert_eq!(place.names("small"), [""; 0], "data were left");
    assert!(place.text("run/report.html").contains("no room left"));
    place.lab("export run").exits(0);
    place.lab("watch run --once").exits(2);
}

/// A disk that is too small for an empty database, and one that the database outgrows.
#[test]
fn a_full_disk_fails_a_server_only() {
    if !crate::sql::mariadb() {
        return;
    }
    for (mib, met) in [(60, "could not be prepared"), (180, "is full")] {
        let place = Place::new();
        let Some(_disk) = SmallDisk::of(&place, mib) else {
            return;
        };
        // This disk is in memory, and would be charged to the server's memory limit.
        let ran = place
            .lab(
                "run iibench-classic -t mariadb,null --rows 400000 --time 3600 --settle 0 --mem 0 \
                 --data-dir small --out run --force",
            )
            .exits(2);
        let statuses = place.statuses("run");
        assert_eq!(
            (statuses[0].1.as_str(), statuses[1].1.as_str()),
            ("failed", "done")
        );
        for needle in [met, "no room left on the disk of", "small", "--data-dir"] {
            assert!(statuses[0].2.contains(needle), "{needle}: {statuses:?}");
        }
        assert!(ran.err.contains("no room left"), "{}", ran.err);
        assert_eq!(place.names("small"), [""; 0], "data were left");
        assert!(place.text("run/report.html").contains("no room left"));
    }
}

/// The path of a program in `PATH`; `None` if it is not found.
fn on_path(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|directory| directory.join(name));
    all.find(|file| file.is_file())
}

#[test]
fn a_server_that_is_missing_names_its_package() {
    let place = Place::new();
    let line = |target: &str| format!("run iibench-classic -t {target} --preset smoke --out run");
    let mut bare = place.command(&line("mariadb"));
    bare.env("PATH", "");
    finish(bare).refuses(3, &["setpriv is missing", "the package util-linux"]);
    let Some(setpriv) = on_path("setpriv") else {
        stdx::skip::test("setpriv is not on this machine");
        return;
    };
    // Servers are also searched outside of `PATH`, but the program that creates a database is not.
    fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink(setpriv, place.path("bin/setpriv")).unwrap();
    let mut without = place.command(&line("mariadb"));
    without.env("PATH", place.path("bin"));
    finish(without).refuses(3, &["mariadb", "the package mariadb-server of Debian"]);
    // Hide the other directories, where this process is allowed to.
    for (target, hidden, package) in [
        ("postgres", "/usr/lib/postgresql", "postgresql"),
        (
            "mariadb:engine=myrocks",
            "/usr/lib/mysql/plugin",
            "mariadb-plugin-rocksdb",
        ),
    ] {
        if !std::path::Path::new(hidden).exists() || !is_root() {
            stdx::skip::test(&format!(
                "{hidden} is missing, or cannot be hidden without root"
            ));
            continue;
        }
        let path = std::env::var("PATH").unwrap();
        let own = match target {
            "postgres" => place.path("bin").display().to_string(),
            _ => path,
        };
        let script = format!(
            "mount -t tmpfs none {hidden} || exit 77; PATH={own} exec {} lab {}",
            env!("CARGO_BIN_EXE_romanesco"),
            line(target)
        );
        let mut hiding = place.outside("unshare");
        hiding.args(["-m", "sh", "-c", &script]);
        let ran = finish(hiding);
        if ran.code == 77 || ran.err.contains("unshare") {
            eprintln!("{hidden} cannot be hidden here: {}", ran.err);
            continue;
        }
        let said = format!("the package {package} of Debian");
        ran.refuses(3, &[target, "is missing", &said]);
    }
    assert_eq!(place.names("."), ["bin"], "something was written");
}

#[test]
fn without_control_groups_the_run_reports_that_nothing_was_capped() {
    let place = Place::new();
    let run = "lab run iibench-classic -t memory --rows 2000 --settle 0 --mem 128M --out run";
    let mut hidden = place.outside("unshare");
    let script = format!(
        "mount -t tmpfs none /sys/fs/cgroup || exit 77; exec {} {run}",
        env!("CARGO_BIN_EXE_romanesco")
    );
    hidden.args(["-m", "sh", "-c", &script]);
    if !is_root() {
        stdx::skip::test("only root can hide the control groups");
        return;
    }
    let ran = finish(hidden);
    if ran.code == 77 || ran.err.contains("unshare") {
        stdx::skip::test(&format!("the control groups cannot be hidden: {}", ran.err));
        return;
    }
    let ran = ran.exits(0);
    assert!(ran.err.contains("memory was not capped"), "{}", ran.err);
    let summary = place.whole("run");
    let warning = summary["steps"][0]["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("memory was not capped: no control group"),
        "{warning}"
    );
    assert!(
        place
            .text("run/report.html")
            .contains("memory was not capped")
    );
}

#[test]
fn a_small_memory_cap_is_enforced_or_reported() {
    let place = Place::new();
    place
        .lab("run iibench-classic -t lmdb --rows 2000 --settle 0 --mem 64M --cache 8M --out run")
        .exits(0);
    place.whole("run");
    let envelope = place.json("run/steps/001_lmdb_r1_load/envelope.json");
    let memory = &envelope["lines"][0];
    assert_eq!(memory["requested"], 64 << 20);
    let told = memory["effective"].is_number() || memory["note"] != "";
    assert!(told, "{envelope:#}");
}
