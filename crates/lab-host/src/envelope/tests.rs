//! Tests of the envelope: fake cgroup trees, and real ones if the process has the permissions.

use std::fs;
use std::io::{ErrorKind, Write};
use std::process::{Child, Command, Stdio};

use lab_report::record::MEMORY_MIN;
use stdx::ByteSize;

use super::fake::{Fake, scaffold, scaffold_incomplete, scaffold_tight};
use super::*;

const SDA1: DeviceId = DeviceId { major: 8, minor: 1 };
const MEMORY_FILES: &[&str] = &["memory.limit_in_bytes", "cgroup.procs"];
const BLKIO_FILES: &[&str] = &["blkio.throttle.read_iops_device", "cgroup.procs"];

fn limits() -> Limits {
    Limits {
        memory: Some(ByteSize::mib(128)),
        read_iops: Some(1000),
        write_iops: Some(500),
        read_bps: None,
        write_bps: Some(10_000_000),
    }
}

fn v1() -> Fake {
    Fake::new()
        .v1("memory", "rw", MEMORY_FILES)
        .v1("blkio", "rw", BLKIO_FILES)
}

fn effective(envelope: &Envelope, kind: LimitKind) -> Option<u64> {
    match envelope.status().limit(kind)?.outcome {
        Outcome::Verified { effective } => Some(effective),
        _ => None,
    }
}

#[test]
fn v1_limits_are_written_on_the_whole_disk_and_read_back() {
    let fake = v1();
    let cgroups = fake.detect(scaffold);
    assert_eq!(cgroups.mode(), Mode::V1);
    let envelope = Envelope::create(&cgroups, &limits(), Some(SDA1)).unwrap();
    let status = envelope.status();
    assert!(status.fully_enforced(), "{status}");
    assert_eq!(status.device.as_deref(), Some("8:0"));
    assert_eq!(status.limits.len(), 5);
    assert_eq!(effective(&envelope, LimitKind::Memory), Some(128 << 20));
    assert_eq!(effective(&envelope, LimitKind::WriteIops), Some(500));
    assert!(
        status
            .warnings
            .iter()
            .any(|w| w.contains("buffered writes"))
    );
    let (_, group) = envelope.memory_group().unwrap();
    assert!(group.starts_with(fake.path("cg/memory/own")), "I3: below");
    let read = |file: &str| fs::read_to_string(group.join(file)).unwrap();
    assert_eq!(read("memory.memsw.limit_in_bytes"), (129 << 20).to_string());
    assert_eq!(read("memory.swappiness"), "0");
    let groups = status.groups.clone();
    assert_eq!(groups.len(), 2);
    drop(envelope);
    assert!(groups.iter().all(|g| !g.exists()), "I4: groups are removed");
}

#[test]
fn v2_limits_go_to_one_group_below_the_ancestor_that_can_hold_it() {
    let fake = Fake::new().v2("cpu io memory", "cpu memory");
    let cgroups = fake.detect(scaffold);
    assert_eq!(cgroups.mode(), Mode::V2);
    let envelope = Envelope::create(&cgroups, &limits(), Some(SDA1)).unwrap();
    let status = envelope.status();
    assert!(status.fully_enforced(), "{status}");
    assert_eq!(status.groups.len(), 1);
    let group = status.groups[0].clone();
    // This process's group holds processes, so the slice above it must enable `io` for its
    // children.
    let parent = group.parent().unwrap();
    assert_eq!(parent, fake.path("cg2/slice"), "I3: the ancestor");
    assert_eq!(envelope.memory_group(), envelope.io_group());
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    assert_eq!(read(fake.path("cg2/slice/cgroup.subtree_control")), "+io");
    assert_eq!(read(group.join("memory.max")), (128 << 20).to_string());
    assert_eq!(read(group.join("memory.swap.max")), "0");
    assert_eq!(
        read(group.join("io.max")),
        "8:0 riops=1000 wiops=500 wbps=10000000"
    );
    drop(envelope);
    assert!(!group.exists());
}

#[test]
fn other_caps_replace_those_in_force_and_memory_stays() {
    for fake in [v1(), Fake::new().v2("cpu io memory", "cpu memory")] {
        let cgroups = fake.detect(scaffold);
        let mut envelope = Envelope::create(&cgroups, &limits(), Some(SDA1)).unwrap();
        let warnings = envelope.status().warnings.len();
        let other = Limits {
            read_iops: Some(3000),
            write_iops: None,
            write_bps: None,
            ..limits()
        };
        for _ in 0..2 {
            envelope.recap(&cgroups, &other, Some(SDA1)).unwrap();
        }
        assert_eq!(effective(&envelope, LimitKind::Memory), Some(128 << 20));
        assert_eq!(effective(&envelope, LimitKind::ReadIops), Some(3000));
        assert_eq!(effective(&envelope, LimitKind::WriteIops), None);
        assert_eq!(effective(&envelope, LimitKind::WriteBps), None);
        let status = envelope.status();
        assert_eq!(status.limits.len(), 5);
        assert!(status.warnings.len() <= warnings, "a warning appears once");
    }
}

#[test]
fn each_controller_is_taken_where_it_is() {
    let fake = Fake::new()
        .v1("blkio", "rw", BLKIO_FILES)
        .v2("memory", "memory");
    let cgroups = fake.detect(scaffold);
    assert_eq!(cgroups.mode(), Mode::Hybrid);
    let envelope = Envelope::create(&cgroups, &limits(), Some(SDA1)).unwrap();
    assert!(envelope.status().fully_enforced());
    assert_eq!(envelope.memory_group().unwrap().0, Version::V2);
    assert_eq!(envelope.io_group().unwrap().0, Version::V1);
}

#[test]
fn a_tighter_outer_group_is_an_error_that_names_it() {
    for (fake, scaffold) in [
        (v1(), scaffold_tight as fn(&Path)),
        (
            Fake::new().v2("memory io", "memory io"),
            scaffold as fn(&Path),
        ),
    ] {
        let cgroups = fake.detect(scaffold);
        fake.put("cg2/slice/memory.max", "100000000\n");
        let error = Envelope::create(&cgroups, &limits(), Some(SDA1)).unwrap_err();
        assert!(
            matches!(error, EnvelopeError::NotInForce { .. }),
            "I1: outer groups count: {error}"
        );
        let text = error.to_string();
        assert!(
            text.contains("100000000") && text.contains("outer group"),
            "{text}"
        );
    }
}

#[test]
fn a_limit_the_kernel_does_not_take_is_an_error_and_leaves_nothing() {
    let fake = v1();
    let cgroups = fake.detect(scaffold_incomplete);
    let error = Envelope::create(&cgroups, &limits(), Some(SDA1)).unwrap_err();
    assert!(error.to_string().contains("write_iops_device"), "{error}");
    for parent in cgroups.parents() {
        let ours = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with("romanesco");
        assert!(!fs::read_dir(parent).unwrap().flatten().any(|e| ours(&e)));
    }
}

#[test]
fn what_cannot_be_used_has_its_reason() {
    let cases: [(Fake, &str); 6] = [
        (
            Fake::new(),
            "neither the version 1 hierarchy of memory nor cgroup2 is mounted",
        ),
        (
            Fake::new().v1("memory", "ro", MEMORY_FILES),
            "mounted read-only",
        ),
        (
            Fake::new().v1("memory", "rw", &["cgroup.procs"]),
            "without this limit",
        ),
        (Fake::new().v2("cpu", "cpu"), "not in"),
        (Fake::new().v2("io", "io"), "cgroup.controllers"),
        (Fake::new().v2("", ""), "delegated"),
    ];
    for (fake, reason) in cases {
        let cgroups = fake.detect(scaffold);
        let access = cgroups.access(Controller::Memory);
        assert!(!access.is_usable());
        assert!(access.reason().contains(reason), "{:?}", access.reason());
    }
    let nothing = Cgroups::detect_at(Path::new("/nonexistent"), Path::new("/nonexistent"));
    assert_eq!(nothing.mode(), Mode::None);
    assert!(
        nothing
            .access(Controller::Io)
            .reason()
            .contains("mountinfo")
    );
}

#[test]
fn without_cgroups_the_run_continues_and_reports_it() {
    let fake = Fake::new();
    let cgroups = fake.detect(scaffold);
    let none = Envelope::create(&cgroups, &limits(), Some(SDA1)).unwrap();
    let refused = Envelope::uncapped(&limits(), "asked for by --uncapped");
    for envelope in [&none, &refused] {
        let status = envelope.status();
        assert!(!status.fully_enforced());
        assert_eq!(status.mode, Mode::None);
        assert_eq!(status.limits.len(), 5);
        assert!(!status.warnings.is_empty());
        assert!(status.to_string().contains("NOT CAPPED"), "{status}");
        assert_eq!(envelope.memory_events(), None);
        envelope.admit(std::process::id()).unwrap();
    }
    assert!(refused.status().to_string().contains("--uncapped"));
}

#[test]
fn a_data_directory_without_a_device_caps_memory_only() {
    let fake = v1();
    let envelope = Envelope::create(&fake.detect(scaffold), &limits(), None).unwrap();
    assert_eq!(effective(&envelope, LimitKind::Memory), Some(128 << 20));
    assert_eq!(effective(&envelope, LimitKind::ReadIops), None);
    assert!(envelope.status().to_string().contains("device"));
}

#[test]
fn the_status_survives_json() {
    let fake = v1();
    let envelope = Envelope::create(&fake.detect(scaffold), &limits(), None).unwrap();
    let json = serde_json::to_string(envelope.status()).unwrap();
    let back: EnvelopeStatus = serde_json::from_str(&json).unwrap();
    assert_eq!(&back, envelope.status());
    assert!(json.contains(r#""outcome":"not_capped""#), "{json}");
}

#[test]
fn stale_groups_of_the_dead_go_and_of_the_living_stay() {
    let fake = v1();
    let cgroups = fake.detect(scaffold);
    fake.put("proc/4000000/stat", "");
    for name in [
        "romanesco-4000000-0",
        "romanesco-4000001-0",
        "other-4000001-0",
    ] {
        fake.put(&format!("cg/memory/own/{name}/cgroup.procs"), "");
    }
    fake.put("cg/blkio/own/romanesco-4000001-1/cgroup.procs", "0\n");
    let removed = remove_stale(&cgroups);
    assert_eq!(removed, [fake.path("cg/memory/own/romanesco-4000001-0")]);
    assert!(fake.path("cg/blkio/own/romanesco-4000001-1").exists());
}

/// A process that waits for its standard input to close.
fn waiting_child() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// The control groups for a test on the real kernel; `None` if it cannot run here.
fn real(controller: Controller) -> Option<Cgroups> {
    let cgroups = Cgroups::detect();
    let access = cgroups.access(controller);
    if access.is_usable() {
        return Some(cgroups);
    }
    assert!(!access.reason().is_empty(), "I2: a reason is given");
    let asked = Limits {
        memory: Some(ByteSize::mib(128)),
        read_iops: Some(100),
        ..Limits::default()
    };
    let envelope = Envelope::create(&cgroups, &asked, None).unwrap();
    assert!(envelope.status().to_string().contains(access.reason()));
    assert!(!envelope.status().fully_enforced());
    stdx::skip::test(&format!(
        "no control group for {controller:?}: {}",
        access.reason()
    ));
    None
}

#[test]
fn a_real_group_holds_a_process_and_ends_it_when_dropped() {
    let Some(cgroups) = real(Controller::Memory) else {
        return;
    };
    let asked = Limits {
        memory: Some(ByteSize::mib(96)),
        ..Limits::default()
    };
    let envelope = Envelope::create(&cgroups, &asked, None).unwrap();
    assert!(envelope.status().fully_enforced(), "{}", envelope.status());
    let mut child = waiting_child();
    envelope.admit(child.id()).unwrap();
    let (_, group) = envelope.memory_group().unwrap();
    assert_eq!(group::processes(group), [child.id()]);
    let events = envelope.memory_events().unwrap();
    assert_eq!(events.oom_kills.unwrap_or(0), 0);
    let groups = envelope.status().groups.clone();
    drop(envelope);
    assert!(groups.iter().all(|g| !g.exists()), "I4: groups are removed");
    assert!(
        !child.wait().unwrap().success(),
        "I4: the process was ended"
    );
}

#[test]
fn a_process_that_is_gone_cannot_be_admitted() {
    let Some(cgroups) = real(Controller::Memory) else {
        return;
    };
    let envelope = Envelope::create(&cgroups, &Limits::default(), None).unwrap();
    let mut child = waiting_child();
    drop(child.stdin.take());
    child.wait().unwrap();
    for pid in [child.id(), 0] {
        let error = envelope.admit(pid).unwrap_err();
        assert!(matches!(error, EnvelopeError::Gone { .. }), "{error}");
    }
}

#[test]
fn a_real_group_of_a_killed_laboratory_is_removed_with_its_worker() {
    let Some(cgroups) = real(Controller::Memory) else {
        return;
    };
    let mut laboratory = waiting_child();
    drop(laboratory.stdin.take());
    laboratory.wait().unwrap();
    let Access::Usable { parent, .. } = cgroups.access(Controller::Memory) else {
        panic!("usable as found above");
    };
    let path = parent.join(format!("{}{}-0", group::PREFIX, laboratory.id()));
    let mut worker = waiting_child();
    let moved = || {
        fs::create_dir(&path)?;
        fs::write(path.join("cgroup.procs"), worker.id().to_string())
    };
    // If another test starts a run meanwhile, that run also removes stale groups, and so may remove
    // this one while it is empty.
    while moved().is_err_and(|e| e.kind() == ErrorKind::NotFound) {}
    remove_stale(&cgroups);
    assert!(!path.exists());
    assert!(!worker.wait().unwrap().success(), "the worker was ended");
}

#[test]
fn the_real_memory_limit_kills_what_outgrows_it() {
    let Some(cgroups) = real(Controller::Memory) else {
        return;
    };
    let asked = Limits {
        memory: Some(MEMORY_MIN),
        ..Limits::default()
    };
    let envelope = Envelope::create(&cgroups, &asked, None).unwrap();
    // `tail -c` keeps the last 200 MB of its input in memory.
    let script = "read x; head -c 300000000 /dev/zero | tail -c 200000000 >/dev/null 2>&1";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    envelope.admit(child.id()).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(!child.wait().unwrap().success());
    let events = envelope.memory_events().unwrap();
    assert!(events.oom_kills.unwrap() > 0, "{events:?}");
    assert!(events.limit_hits.unwrap() > 0, "{events:?}");
}

#[test]
fn real_io_limits_are_in_force_on_the_device_of_the_data() {
    let Some(cgroups) = real(Controller::Io) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let Ok(device) = data_device(dir.path()) else {
        let envelope = Envelope::create(&cgroups, &limits(), None).unwrap();
        assert!(!envelope.status().fully_enforced());
        stdx::skip::test("the folder for temporary files is on no device of its own");
        return;
    };
    let asked = Limits {
        memory: None,
        ..limits()
    };
    let envelope = Envelope::create(&cgroups, &asked, Some(device)).unwrap();
    assert!(envelope.status().fully_enforced(), "{}", envelope.status());
    assert_eq!(effective(&envelope, LimitKind::WriteBps), Some(10_000_000));
}

const CHECK_DIR: &str = "LAB_TEST_CHECK_CAPS_IN";

/// Not a test of its own: the worker of the following test, which executes this binary again.
#[test]
fn worker_that_checks_its_caps() {
    let Some(dir) = std::env::var_os(CHECK_DIR) else {
        return;
    };
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let asked = serde_json::from_str(&line).unwrap();
    let second = std::time::Duration::from_secs(1);
    let checks = crate::probe::check_caps(Path::new(&dir), &asked, second).unwrap();
    println!("\nCHECKS {}", serde_json::to_string(&checks).unwrap());
}

/// A cap must hold however fast the device is; a slow or busy device may stay below it.
#[test]
fn a_worker_cannot_exceed_its_real_io_caps() {
    let Some(cgroups) = real(Controller::Io) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let Ok(device) = data_device(dir.path()) else {
        let envelope = Envelope::create(&cgroups, &limits(), None).unwrap();
        assert!(!envelope.status().fully_enforced(), "I2: no device, no cap");
        stdx::skip::test("the folder for temporary files is on no device of its own");
        return;
    };
    let asked = Limits {
        memory: None,
        read_iops: Some(300),
        write_iops: Some(200),
        read_bps: Some(30 << 20),
        write_bps: Some(20 << 20),
    };
    let envelope = Envelope::create(&cgroups, &asked, Some(device)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "envelope::tests::worker_that_checks_its_caps",
            "--nocapture",
        ])
        .env(CHECK_DIR, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    envelope.admit(child.id()).unwrap();
    let line = serde_json::to_string(&asked).unwrap() + "\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text
        .lines()
        .find_map(|l| l.strip_prefix("CHECKS "))
        .expect("the worker answers");
    let checks: Vec<crate::probe::CapCheck> = serde_json::from_str(json).unwrap();
    assert_eq!(checks.len(), 4);
    for check in checks.iter().filter(|c| c.direct) {
        println!(
            "{} cap {}: ratio {:.3}",
            check.limit, check.cap, check.ratio
        );
        assert!(check.ratio < 1.1, "{check:?}");
    }
}
