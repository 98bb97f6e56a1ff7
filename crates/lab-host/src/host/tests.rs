//! Tests of the facts of a host.

use super::*;

#[test]
fn the_facts_of_this_machine_are_collected_and_survive_json() {
    let dir = tempfile::tempdir().unwrap();
    let facts = HostFacts::collect(dir.path());
    assert_eq!(facts.fingerprint.len(), 16);
    assert!(facts.cpu.cores >= 1 && facts.memory_bytes.unwrap() > 1 << 20);
    assert!(facts.storage.filesystem.is_some() && facts.storage.free_bytes.is_some());
    assert!(facts.vm.contains_key("dirty_ratio") && facts.vm.contains_key("swappiness"));
    assert!(!facts.vm.contains_key("panic_on_oom"));
    let json = serde_json::to_string(&facts).unwrap();
    let back: HostFacts = serde_json::from_str(&json).unwrap();
    assert_eq!(back.storage, facts.storage);
    println!("{}\n{:#?}", facts.summary(), facts.warnings());
}

#[test]
fn the_fingerprint_is_stable_and_hides_the_id() {
    let id = "0123456789abcdef0123456789abcdef";
    assert_eq!(fingerprint_of(id), fingerprint_of(id));
    assert_ne!(fingerprint_of(id), fingerprint_of("other"));
    assert!(!fingerprint_of(id).contains("0123456789"));
}

#[test]
fn kernel_texts_parse() {
    let meminfo = "MemTotal:       24684096 kB\nMemFree: 1 kB\nSwapTotal: 0 kB\n";
    assert_eq!(meminfo_bytes(meminfo, "MemTotal:"), Some(24_684_096 * 1024));
    assert_eq!(meminfo_bytes(meminfo, "SwapTotal:"), Some(0));
    assert_eq!(meminfo_bytes(meminfo, "MemAvailable:"), None);
    assert_eq!(
        parse_load("0.52 0.40 0.30 1/200 4242"),
        Some([0.52, 0.40, 0.30])
    );
    assert_eq!(parse_load("0.5"), None);
    assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
    assert_eq!(chosen("none"), "none");
    assert_eq!(virtualisation("flags\t\t: fpu sse2\n"), None);
    assert!(virtualisation("flags\t\t: fpu hypervisor\n").is_some());
}

#[test]
fn conditions_that_spoil_measurements_are_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let mut facts = HostFacts::collect(dir.path());
    facts.load = Some([0.1, 0.1, 0.1]);
    facts.busy.clear();
    facts.cpu.cores = 8;
    facts.virtualisation = None;
    facts.cgroups = Mode::V2;
    facts.swap_bytes = Some(0);
    facts.storage = Storage {
        filesystem: Some("ext4".to_owned()),
        device: Some("8:0".to_owned()),
        rotational: Some(false),
        ..Storage::default()
    };
    assert_eq!(facts.warnings(), Vec::<String>::new());
    facts.load = Some([0.9, 0.1, 0.1]);
    facts.cpu.cores = 2;
    facts.storage.filesystem = Some("tmpfs".to_owned());
    facts.storage.rotational = Some(true);
    facts.cgroups = Mode::None;
    let warnings = facts.warnings().join("\n");
    for part in [
        "0.90",
        "2 cores",
        "tmpfs",
        "rotational",
        "nothing can be capped",
    ] {
        assert!(warnings.contains(part), "{part} in {warnings}");
    }
}

#[test]
fn a_missing_data_directory_stands_for_the_one_above() {
    let dir = tempfile::tempdir().unwrap();
    let above = Storage::collect(dir.path());
    let below = Storage::collect(&dir.path().join("not/yet/there"));
    assert_eq!(below.filesystem, above.filesystem);
    assert_eq!(below.device, above.device);
}

#[test]
fn the_environment_is_captured_without_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("env");
    let names = capture_env(&target, dir.path()).unwrap();
    for name in [
        "cpuinfo.txt",
        "meminfo.txt",
        "mount.txt",
        "sysctl-vm.txt",
        "cgroup.txt",
    ] {
        assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), names.len());
    let path = std::env::var("PATH").unwrap_or_else(|_| "unset".to_owned());
    for name in names {
        let text = fs::read_to_string(target.join(&name)).unwrap();
        assert!(
            !text.contains(&path),
            "{name} holds an environment variable"
        );
    }
}
