//! Tests of the doctor: findings on simulated machines.

use kv::{Capabilities, Engine, EngineOptions, OptionDoc};

use super::*;

/// A fake engine, compiled in or not.
struct Fake(bool);

impl Factory for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
    fn about(&self) -> &'static str {
        "an engine for tests"
    }
    fn license(&self) -> &'static str {
        "MIT"
    }
    fn feature(&self) -> Option<&'static str> {
        Some("fake-engine")
    }
    fn available(&self) -> bool {
        self.0
    }
    fn version(&self) -> Option<String> {
        self.0.then(|| "1.2.3".to_owned())
    }
    fn capabilities(&self) -> Capabilities {
        panic!("the doctor does not ask for capabilities")
    }
    fn options(&self) -> &'static [OptionDoc] {
        &[]
    }
    fn open(&self, _: &Path, _: &EngineOptions) -> kv::Result<Box<dyn Engine>> {
        Err(self.missing())
    }
}

fn find<'a>(findings: &'a [Finding], area: &str) -> &'a Finding {
    let found = findings.iter().find(|f| f.area == area);
    found.unwrap_or_else(|| panic!("no finding about {area}: {findings:#?}"))
}

#[test]
fn this_machine_is_examined_whole() {
    let dir = tempfile::tempdir().unwrap();
    let findings = Doctor::default().examine(&dir.path().join("new"), &[&Fake(true)]);
    for area in [
        "rights",
        "memory cap",
        "I/O cap",
        "device",
        "free space",
        "direct I/O",
        "pressure",
        "swap",
        "open files",
        "engine fake",
    ] {
        let finding = find(&findings, area);
        assert!(!finding.what.is_empty());
        let bad = finding.status != Status::Ok;
        assert_eq!(bad, !finding.consequence.is_empty(), "{finding:?}");
        assert_eq!(bad, !finding.remedy.is_empty(), "{finding:?}");
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing is left"
    );
    println!("{}", render(&findings, Some(120)));
}

#[test]
fn a_machine_without_anything_gets_reasons_and_remedies() {
    let empty = tempfile::tempdir().unwrap();
    let doctor = Doctor::at(empty.path(), empty.path());
    let findings = doctor.examine(empty.path(), &[&Fake(false)]);
    for area in ["memory cap", "I/O cap", "device", "pressure", "engine fake"] {
        assert_eq!(find(&findings, area).status, Status::Warn, "{area}");
    }
    assert!(find(&findings, "memory cap").what.contains("mountinfo"));
    assert!(
        find(&findings, "engine fake")
            .remedy
            .contains("fake-engine")
    );
    assert_eq!(worst(&findings), Status::Warn);
    assert_eq!(worst(&[]), Status::Ok);
}

#[test]
fn swap_matters_only_to_workers_that_cannot_be_kept_from_it() {
    let proc = tempfile::tempdir().unwrap();
    let heading = "Filename Type Size Used Priority\n";
    let doctor = Doctor::at(proc.path(), proc.path());
    fs::write(proc.path().join("swaps"), heading).unwrap();
    assert_eq!(doctor.swap().status, Status::Ok);
    fs::write(
        proc.path().join("swaps"),
        format!("{heading}/dev/sdb2 partition 1 0 -2\n"),
    )
    .unwrap();
    assert_eq!(doctor.swap().status, Status::Warn);
}

#[test]
fn the_table_is_plain_and_json_keeps_everything() {
    let finding = Finding::bad(Status::Fail, "free space", "none").so("it stops", "make room");
    let findings = vec![Finding::ok("rights", "running as root"), finding];
    let table = render(&findings, Some(100));
    assert!(
        table.is_ascii() && table.contains("FAIL") && table.contains("make room"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 100));
    let real = Doctor::default().examine(Path::new("."), &[]);
    for width in [Some(80), None] {
        let table = render(&real, width);
        // The terminal that runs the test may be wider.
        let most = width.or(comfy_table::Table::new().width()).unwrap_or(80);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(usize::from(most)), "{table}");
    }
    let json = serde_json::to_string(&findings).unwrap();
    assert!(json.contains(r#""status":"fail""#), "{json}");
    assert_eq!(
        serde_json::from_str::<Vec<Finding>>(&json).unwrap(),
        findings
    );
}
