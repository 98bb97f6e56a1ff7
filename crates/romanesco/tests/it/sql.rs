//! Tests of SQL servers as targets: servers started for the run with every storage engine, and
//! servers already running; and what happens when the server or the lab ends. A machine without the
//! servers skips these tests, except in CI.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::interrupt::groups_of;
use crate::program::{Place, children, lives, send, wait_for};

/// Options that make the steps short.
const SHORT: &str = "--preset smoke --rows 2000 --time 0.35 --settle 5 --out run";

/// Whether a server is installed. Where it is required, a missing server fails the test.
fn there(files: &[&str]) -> bool {
    let missing: Vec<_> = files
        .iter()
        .filter(|file| !Path::new(file).exists())
        .collect();
    if missing.is_empty() {
        return true;
    }
    let must = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!must, "{missing:?}: scripts/packages test installs them");
    stdx::skip::test(&format!(
        "{missing:?} is not on this machine; see scripts/packages"
    ));
    false
}

pub(crate) fn mariadb() -> bool {
    there(&["/usr/sbin/mariadbd", "/usr/lib/mysql/plugin/ha_rocksdb.so"])
}

fn postgres() -> bool {
    there(&["/usr/lib/postgresql"])
}

/// Whether a program can get a private shared memory namespace here.
fn may_unshare() -> bool {
    let trial = Command::new("unshare").args(["--ipc", "true"]).status();
    trial.is_ok_and(|status| status.success())
}

/// A directory that other users may enter: PostgreSQL runs as another user if this process is root.
fn open_place() -> Place {
    let place = Place::new();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn steps(place: &Place, target: &str) {
    place
        .lab(&format!("run iibench-reads -t {target} {SHORT}"))
        .exits(0);
    place.whole("run");
    assert_eq!(place.count("run", "done"), 4);
    let record = &place.json("run/env/targets.json")[0];
    assert_ne!(record["version"], "unknown", "{record:#}");
    let torn_pages = record["torn_pages"].as_str().unwrap();
    let kind = torn_pages.split_once(':').map(|(kind, _)| kind);
    let on = [
        "doublewrite buffer",
        "page images in the log",
        "not needed",
        "none",
    ];
    assert!(kind.is_some_and(|kind| on.contains(&kind)), "{record:#}");
    for (name, ..) in place.statuses("run") {
        let step = place.json(format!("run/steps/{name}/summary.json"));
        assert_eq!(step["integrity"]["checked"], true, "{step:#}");
    }
    let (first, ..) = &place.statuses("run")[0];
    let load = place.json(format!("run/steps/{first}/summary.json"));
    assert!(load["cpu_seconds"].as_f64().is_some(), "{load:#}");
    assert!(load["file_bytes"].as_u64() > Some(0), "{load:#}");
    let names = place.names("run/env");
    let settings = names
        .iter()
        .find(|name| name.starts_with("settings_"))
        .unwrap();
    let settings = place.text(&format!("run/env/{settings}"));
    assert!(
        settings
            .lines()
            .filter(|line| line.ends_with(",yes"))
            .count()
            > 3
    );
    assert!(settings.lines().count() > 200);
}

#[test]
fn mariadb_is_measured_with_innodb() {
    if mariadb() {
        let place = Place::new();
        steps(&place, "mariadb");
        let load = place.json("run/steps/001_mariadb_r1_load/summary.json");
        let written = &load["written_by_reason"];
        assert!(written["log"].as_u64() > Some(0), "{written:#}");
        let report = place.text("run/report.html");
        assert!(report.contains("innodb_buffer_pool_size") && report.contains("doublewrite"));
    }
}

#[test]
fn mariadb_is_measured_with_myrocks() {
    if mariadb() {
        // The server needs memory for threads and buffers in addition to its caches.
        steps(&Place::new(), "mariadb:engine=myrocks --mem 256M");
    }
}

#[test]
fn mariadb_reads_with_the_engines_without_transactions() {
    if mariadb() {
        let place = Place::new();
        let targets = "mariadb:engine=myisam,mariadb:engine=aria";
        place
            .lab(&format!("run iibench-reads -t {targets} {SHORT}"))
            .exits(0);
        place.whole("run");
        assert_eq!(place.count("run", "done"), 8);
    }
}

#[test]
fn postgres_is_measured() {
    if postgres() {
        steps(&open_place(), "postgres");
    }
}

/// The results of a smoke run of a workload with several tables on a server.
fn program(place: &Place, line: &str) -> Value {
    let line = format!("run {line} --preset smoke --settle 5 --out run");
    place.lab(&line).exits(0);
    let summary = place.whole("run");
    for step in summary["steps"].as_array().unwrap() {
        if step["unsupported"].is_null() {
            let integrity = &step["integrity"];
            assert_eq!(integrity["checked"], true, "{step:#}");
            assert_eq!(
                integrity["rows_found"], integrity["rows_expected"],
                "{step:#}"
            );
            assert!(integrity["rows_found"].as_u64() > Some(0), "{step:#}");
            assert!(step["file_bytes"].as_u64() > Some(0), "{step:#}");
        }
    }
    summary
}

fn find<'a>(summary: &'a Value, target: &str, name: &str) -> &'a Value {
    let mut steps = summary["steps"].as_array().unwrap().iter();
    let found = steps.find(|s| s["target"] == target && s["step"] == name);
    found.unwrap_or_else(|| panic!("no {target} {name} in {summary:#}"))
}

#[test]
fn tpcc_keeps_its_conditions_on_sql_servers() {
    let (maria, post) = (mariadb(), postgres());
    for (target, here) in [
        ("mariadb", maria),
        ("mariadb:engine=myrocks", maria),
        ("postgres", post),
    ] {
        if !here {
            continue;
        }
        let place = open_place();
        let line = format!("tpcc -t {target} --rows 1000 --time 1 --mem 256M");
        let summary = program(&place, &line);
        let load = find(&summary, target, "load");
        assert!(load["rows"].as_u64() > Some(15_000), "{load:#}");
        for name in ["no-cap", "iops-5000"] {
            let mix = find(&summary, target, name);
            assert!(mix["queries"]["queries"].as_u64() > Some(0), "{mix:#}");
            assert!(mix["extra"]["conflicts"].is_number(), "{mix:#}");
        }
    }
}

#[test]
fn links_are_counted_on_sql_servers() {
    for (target, here) in [("mariadb", mariadb()), ("postgres", postgres())] {
        if here {
            let place = open_place();
            let line = format!("linkbench -t {target} --rows 1000 --time 1");
            let summary = program(&place, &line);
            let asked = find(&summary, target, "requests");
            let count = &asked["extra"]["getnode_count"];
            assert!(count.as_f64() > Some(0.0), "{asked:#}");
        }
    }
}

#[test]
fn records_of_ycsb_are_set_field_by_field_on_sql_servers() {
    for (target, here) in [("mariadb", mariadb()), ("postgres", postgres())] {
        if here {
            let place = open_place();
            let line = format!("ycsb -t {target} --rows 1000 --time 1 --variant 100-kb");
            let summary = program(&place, &line);
            for (step, kind) in [("workload-a", "update"), ("workload-e", "scan")] {
                let done = find(&summary, target, step);
                let count = done["extra"][format!("{kind}_count")].as_f64();
                assert!(count > Some(0.0), "{done:#}");
            }
        }
    }
}

#[test]
fn tables_without_transactions_are_filled_and_scanned_but_have_no_transactions() {
    if mariadb() {
        let place = Place::new();
        let target = "mariadb:engine=myisam";
        let line = format!("many-tables -t {target} --rows 1000 --time 600");
        let summary = program(&place, &line);
        for tables in [1, 10, 100] {
            let insert = find(&summary, target, &format!("insert-{tables}"));
            assert_eq!(insert["rows"], 1000);
            let scan = find(&summary, target, &format!("scan-{tables}"));
            assert_eq!(scan["queries"]["entries"], 1000);
        }
        let line = format!("run tpcc -t {target},mariadb --dry-run --preset smoke");
        let plan = place.lab(&line).exits(0).out;
        assert_eq!(plan.matches("n/a").count(), 1, "{plan}");
        assert!(plan.contains("has no transactions"), "{plan}");
    }
}

#[test]
fn postgres_fills_its_pages_as_requested() {
    if postgres() {
        let place = open_place();
        let line = "run fill-factor -t postgres --preset smoke --rows 2000 --settle 2 --out run";
        place.lab(line).exits(0);
        let summary = place.whole("run");
        for name in ["load", "rebuild-75", "round3-75", "rebuild-100"] {
            let step = find(&summary, "postgres", name);
            assert!(step["unsupported"].is_null(), "{step:#}");
            assert_eq!(step["integrity"]["rows_found"], 2000, "{step:#}");
        }
        let size = |name| {
            let step = find(&summary, "postgres", name);
            step["file_bytes"].as_u64().unwrap()
        };
        // With fill factor 75 a quarter of about fifty pages stays empty; the rest of the database
        // is the same.
        let (roomy, full) = (size("rebuild-75"), size("rebuild-100"));
        assert!(full + 10 * 8192 <= roomy, "{full} {roomy}");
    }
}

#[test]
fn data_are_encrypted_where_that_is_asked_for() {
    // Texts of this workload are groups of eleven digits separated by dashes.
    let group = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let legible = |file: &[u8]| {
        let pair = |w: &[u8]| group(&w[..11]) && w[11] == b'-' && group(&w[12..]);
        file.windows(23).any(pair)
    };
    if !mariadb() {
        return;
    }
    for (target, plain) in [("mariadb", true), ("mariadb:encrypt=1", false)] {
        let place = Place::new();
        let line = "--preset smoke --rows 1000 --time 0.5 --settle 5 --keep-data --out run";
        let line = format!("run oltp-read-only -t {target} {line}");
        place.lab(&line).exits(0);
        assert_eq!(place.count("run", "done"), 3);
        let cell = place.path("run/data").join(&place.names("run/data")[0]);
        let file = "data/romanesco_lab/romanesco_lab_sbtest1.ibd";
        let rows = fs::read(cell.join(file)).unwrap();
        assert!(65_536 <= rows.len());
        assert_eq!(legible(&rows), plain, "{target}");
    }
}

#[test]
fn connections_are_encrypted_where_that_is_asked_for() {
    for (server, here) in [("mariadb", mariadb()), ("postgres", postgres())] {
        if !here {
            continue;
        }
        let place = open_place();
        let targets = format!("{server}:tls=0,{server}:tls=1");
        let line = "--preset smoke --rows 1000 --time 0.5 --settle 5 --out run";
        let line = format!("run oltp-read-only -t {targets} {line}");
        place.lab(&line).exits(0);
        assert_eq!(place.count("run", "done"), 6);
        let records = place.json("run/env/targets.json");
        assert!(records[0]["options"].to_string().contains("none"));
        assert!(records[1]["options"].to_string().contains("TLSv1.3"));
        let report = place.text("run/report.html");
        assert!(report.contains("at one client encryption of connections costs"));
    }
}

#[test]
fn encryption_at_rest_that_a_server_has_not_reads_na() {
    if postgres() {
        let place = open_place();
        let line = "run oltp-read-only -t postgres:encrypt=1,memory --preset smoke --time 0.3 \
                    --settle 0.2 --out run";
        place.lab(line).exits(0);
        let summary = place.whole("run");
        let read = find(&summary, "postgres:encrypt=1", "clients-1");
        let why = read["unsupported"].as_str().unwrap();
        assert!(why.contains("encryption"), "{read:#}");
        assert!(find(&summary, "memory", "clients-1")["unsupported"].is_null());
    }
}

#[test]
fn a_killed_database_is_looked_through() {
    if postgres() {
        let place = open_place();
        let line = "run redo-log -t postgres --preset smoke --rows 1000 --time 0.3 --out run";
        place.lab(line).exits(0);
        place.whole("run");
        assert_eq!(place.count("run", "done"), 14);
        for (name, ..) in place.statuses("run") {
            let step = place.json(format!("run/steps/{name}/summary.json"));
            let ends = name.contains("kill-") || name.contains("power-");
            if ends && step["unsupported"].is_null() {
                let extra = &step["extra"];
                assert_eq!(extra["opens_after_kill"], 1.0, "{step:#}");
                assert!(extra["acknowledged"].as_f64() > Some(0.0), "{step:#}");
                assert!(extra["recovery_seconds"].as_f64() > Some(0.0), "{step:#}");
            }
        }
    }
}

#[test]
fn a_database_that_is_killed_fails_its_target_only() {
    if mariadb() {
        let place = Place::new();
        let line = "run iibench-classic -t mariadb,memory --preset smoke --rows 20000 --rate 2000 \
                    --batch 20 --time 3 --settle 0.2 --out run";
        let mut running = place.start(line);
        place.await_step("run", "_mariadb_r1_load");
        send(children(&running)[0], Signal::KILL);
        assert_eq!(running.end(), 2, "{}", place.text("background.txt"));
        let statuses = place.statuses("run");
        assert_eq!(statuses[0].1, "failed");
        for needle in ["mariadb", "the server ended", "signal: 9", "lab resume"] {
            assert!(statuses[0].2.contains(needle), "{statuses:?}");
        }
        assert_eq!(statuses[1].1, "done", "{statuses:?}");
        assert!(!place.path("run/data").exists());
    }
}

#[test]
fn a_lab_that_ends_takes_its_database_along() {
    for (target, here) in [("mariadb", mariadb()), ("postgres", postgres())] {
        for signal in [Signal::INT, Signal::KILL] {
            if !here {
                continue;
            }
            let place = open_place();
            let mut running = place.start(&format!(
                "run iibench-classic -t {target} --preset smoke --rows 20000 --rate 2000 --batch \
                 20 --time 3 --settle 0.2 --out run"
            ));
            place.await_step("run", "_load");
            let (lab, mut all) = (running.pid(), children(&running));
            if target == "postgres" && may_unshare() {
                let memory = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/ipc")).unwrap();
                assert_ne!(memory(&all[0].to_string()), memory("self"));
            }
            // With a halted worker the run does not end, even if the signal arrives late.
            send(all[1], Signal::STOP);
            for pid in all.clone() {
                let path = format!("/proc/{pid}/task/{pid}/children");
                let text = fs::read_to_string(path).unwrap_or_default();
                all.extend(
                    text.split_whitespace()
                        .map(|pid| pid.parse::<u32>().unwrap()),
                );
            }
            running.signal(signal);
            running.end();
            for pid in all {
                wait_for("server and worker to end", || !lives(pid));
            }
            if signal == Signal::INT {
                assert!(!place.path("run/data").exists());
            }
            place.lab("resume run").exits(0);
            place.whole("run");
            let left = groups_of(lab, Path::new("/sys/fs/cgroup"), 0);
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

#[test]
fn settings_a_database_does_not_know_are_reported_in_its_own_words() {
    if mariadb() {
        let place = Place::new();
        let line = "run iibench-classic -t mariadb:nonsense=1 --preset smoke --rows 1000 --out run";
        let ran = place.lab(line).exits(3);
        assert!(
            ran.err.contains("unknown variable 'nonsense=1'"),
            "{}",
            ran.err
        );
        assert!(!place.path("run/data").exists());
    }
    if postgres() {
        let place = open_place();
        let line =
            "run iibench-classic -t postgres:nonsense=1 --preset smoke --rows 1000 --out run";
        let ran = place.lab(line).exits(3);
        assert!(ran.err.contains("nonsense"), "{}", ran.err);
    }
}

#[test]
fn problems_of_a_database_are_reported_before_anything_is_written() {
    let place = Place::new();
    for (target, needles) in [
        ("mysql://127.0.0.1:1", ["no server answers", "127.0.0.1:1"]),
        (
            "postgres://127.0.0.1:1",
            ["no server answers", "127.0.0.1:1"],
        ),
        (
            "mysql://ann:secret@h",
            ["LAB_MYSQL_PASSWORD", "no password"],
        ),
        (
            "postgres://ann:secret@h",
            ["LAB_POSTGRES_PASSWORD", "no password"],
        ),
        ("mariadb:engine=tokudb", ["tokudb", "myrocks"]),
        ("mariadb:datadir=/x", ["datadir", "itself"]),
    ] {
        let line = format!("run iibench-classic -t {target} --out run");
        place.lab(&line).refuses(3, &needles);
        assert!(!place.path("run").exists());
    }
}

/// A server that is already running; killed when dropped.
struct Foreign(Child);

impl Drop for Foreign {
    fn drop(&mut self) {
        // The server has usually not ended yet.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A free port, for a server that cannot choose a port itself.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_database_that_runs_already_is_measured_and_left_alone() {
    if !mariadb() {
        return;
    }
    let place = Place::new();
    let data = place.path("db").display().to_string();
    let user = if crate::program::is_root() {
        "--user=root"
    } else {
        "--skip-test-db"
    };
    let mut make = place.outside("mariadb-install-db");
    make.args(["--no-defaults", "--skip-test-db", user])
        .arg(format!("--datadir={data}"));
    make.arg("--auth-root-authentication-method=normal");
    assert!(make.stdout(Stdio::null()).status().unwrap().success());
    let port = free_port();
    let first = place.path("first.sql");
    fs::write(
        &first,
        // One statement per line.
        "CREATE DATABASE shop;\nCREATE USER ann@'127.0.0.1' IDENTIFIED BY 'secret';\nGRANT ALL ON \
         shop.* TO ann@'127.0.0.1';\nCREATE TABLE shop.precious (a INT);\n",
    )
    .unwrap();
    let mut serve = place.outside("/usr/sbin/mariadbd");
    serve.args([
        "--no-defaults",
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
    ]);
    serve
        .arg(format!("--datadir={data}"))
        .arg(format!("--port={port}"));
    serve.arg(format!("--init-file={}", first.display()));
    serve
        .arg("--socket=x.sock")
        .args(crate::program::is_root().then_some("--user=root"));
    let log = fs::File::create(place.path("server.log")).unwrap();
    let foreign = Foreign(serve.stderr(log).spawn().unwrap());
    wait_for("the server to listen", || {
        place.text("server.log").contains("ready for connections")
    });

    let target = format!("mysql://ann@127.0.0.1:{port}/shop");
    let line = format!("run iibench-reads -t {target} {SHORT}");
    place
        .lab(&line)
        .refuses(3, &["refuses", "LAB_MYSQL_PASSWORD"]);
    let plan = place.lab(&format!("{line} --dry-run")).exits(0).out;
    assert!(plan.contains("not managed"), "{plan}");
    let mut run = place.command(&line);
    run.env("LAB_MYSQL_PASSWORD", "secret");
    crate::program::finish(run).exits(0);
    place.whole("run");
    let (name, ..) = &place.statuses("run")[0];
    let load = place.json(format!("run/steps/{name}/summary.json"));
    assert!(
        load["warnings"].to_string().contains("not capped"),
        "{load:#}"
    );
    assert!(load["file_bytes"].as_u64() > Some(0), "{load:#}");
    assert!(lives(foreign.0.id()));
    let tables = place.names("db/shop");
    assert!(
        tables.iter().any(|name| name.starts_with("precious")),
        "{tables:?}"
    );
    assert!(
        !tables.iter().any(|name| name.contains("romanesco")),
        "{tables:?}"
    );
    let all = place.text("run/manifest.json") + &place.text("run/env/targets.json");
    assert!(!all.contains("secret"));
}
