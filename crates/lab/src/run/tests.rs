//! Tests of whole runs with a fake worker that answers as the test requires.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab_report::record::{Ended, Integrity, Others, RunSummary, StepSummary, encode_histogram};

use super::{Begin, Interrupt, Silent, resume, run};
use crate::experiment::{self, Settings};
use crate::protocol::{Event, Finished};
use crate::targets;

fn finished(wrong: &[&str]) -> Event {
    let histogram = hdrhistogram::Histogram::new(3).unwrap();
    Event::Finished(Box::new(Finished {
        ended: Ended::Operations,
        rows: 2000,
        rows_deleted: 0,
        queries: 0,
        query_entries: 0,
        seconds: 1.0,
        rate_first_tenth: 2000.0,
        rate_last_tenth: 2000.0,
        histogram: encode_histogram(&histogram),
        query_histogram: None,
        client_cpu_seconds: 0.0,
        logical_bytes: 2000 * 236,
        live_bytes: 2000 * 236,
        live_rows: 2000,
        wrong: wrong.iter().map(|&w| w.to_owned()).collect(),
        behind: 0,
        extra: std::collections::BTreeMap::new(),
    }))
}

fn verified(faults: &[&str]) -> Event {
    Event::Verified(Integrity {
        checked: true,
        rows_expected: 2000,
        rows_found: 2000,
        faults: faults.iter().map(|&f| f.to_owned()).collect(),
        seconds: 0.0,
    })
}

/// A worker that answers every request with one line.
fn worker(dir: &Path, step: &str, verify: &str) -> PathBuf {
    let script = format!(
        "#!/bin/sh\nwhile read -r line; do case \"$line\" in\n\
         *'\"request\":\"open\"'*) echo '{{\"event\":\"opened\"}}' ;;\n\
         *'\"request\":\"step\"'*) {step} ;;\n\
         *'\"request\":\"verify\"'*) {verify} ;;\n\
         *'\"request\":\"close\"'*) echo '{{\"event\":\"closed\"}}'; exit 0 ;;\n\
         esac; done\n"
    );
    let path = dir.join("worker.sh");
    // The file is written by another process. Otherwise, if a concurrent test started a program
    // meanwhile, that program would inherit a handle to the file, and a file open for writing
    // cannot be executed.
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    assert!(writer.wait().unwrap().success());
    path
}

fn say(event: &Event) -> String {
    format!("echo '{}'", serde_json::to_string(event).unwrap())
}

/// A run of one target with that worker.
fn run_with(step: &str, verify: &str) -> (tempfile::TempDir, RunSummary) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let settings = Settings {
        rows: Some(2000),
        settle: Some(0.0),
        mem: Some(stdx::ByteSize(0)),
        targets: Some(targets::parse_targets("memory").unwrap()),
        ..Settings::default()
    };
    let experiment = experiment::experiment("iibench-classic").unwrap();
    let begin = Begin {
        out: &out,
        command: Vec::new(),
        commit: String::new(),
        program: worker(dir.path(), step, verify),
        force: true,
        prices: None,
    };
    let plan = experiment::plan(experiment, &settings, &out).unwrap();
    let summary = run(plan, begin, &mut Silent, &Interrupt::default()).unwrap();
    (dir, summary)
}

#[test]
fn a_sound_answer_is_valid() {
    let (_dir, summary) = run_with(&say(&finished(&[])), &say(&verified(&[])));
    assert!(summary.complete && summary.valid);
    assert_eq!(summary.steps[0].invalid_reason, None);
}

#[test]
fn a_wrong_answer_makes_the_run_invalid() {
    let (dir, summary) = run_with(
        &say(&finished(&["query 7 gave 3 rows"])),
        &say(&verified(&[])),
    );
    assert!(summary.complete && !summary.valid);
    let reason = summary.steps[0].invalid_reason.as_deref().unwrap();
    assert_eq!(reason, "wrong answer: query 7 gave 3 rows");
    assert!(!summary.results[0].valid && summary.results[0].repeats_valid == 0);
    let text = fs::read_to_string(dir.path().join("run/summary.json")).unwrap();
    assert!(text.contains("wrong answer: query 7 gave 3 rows"));
}

#[test]
fn a_lost_row_makes_the_run_invalid() {
    let (dir, summary) = run_with(&say(&finished(&[])), &say(&verified(&["row 5 is missing"])));
    assert!(summary.complete && !summary.valid);
    let reason = summary.steps[0].invalid_reason.as_deref().unwrap();
    assert_eq!(reason, "integrity: row 5 is missing");
    let record = lab_report::store::load(&dir.path().join("run")).unwrap();
    let html = lab_report::report::render(&record).unwrap();
    assert!(html.contains("row 5 is missing"));
}

/// Change the record of the step in this directory as if other programs had disturbed it.
fn disturb(run: &Path, step: &str, valid: bool) {
    let path = run.join("steps").join(step).join("summary.json");
    let mut summary: StepSummary = lab_report::store::read_json(&path).unwrap();
    summary.valid = valid;
    summary.others = Some(Others {
        disturbed: vec!["other programs used 40 % of the CPU time".to_owned()],
        ..Others::default()
    });
    lab_report::store::write_json(&path, &summary).unwrap();
}

#[test]
fn a_disturbed_repeat_is_done_again_a_bounded_number_of_times() {
    let (dir, summary) = run_with(&say(&finished(&[])), &say(&verified(&[])));
    let out = dir.path().join("run");
    assert_eq!(
        summary.steps[0].disturbed(),
        [""; 0],
        "too short to be judged"
    );
    let again = || {
        let program = dir.path().join("worker.sh");
        let summary = resume(&out, program, &mut Silent, &Interrupt::default()).unwrap();
        assert!(summary.complete && summary.steps.len() == 1);
        lab_report::store::load(&out).unwrap()
    };
    // A wrong answer stays, disturbed or not.
    disturb(&out, "001_memory_r1_load", false);
    assert!(again().discarded.is_empty(), "R3");
    disturb(&out, "001_memory_r1_load", true);
    let record = again();
    let [(name, why)] = record.discarded.as_slice() else {
        panic!("R2: {:?}", record.discarded)
    };
    assert_eq!(name, "001_memory_r1_load");
    assert!(why.starts_with("disturbed: load: other programs"), "{why}");
    assert_eq!(record.steps[0].directory, "002_memory_r1_load");
    // The plan permits one more attempt.
    disturb(&out, "002_memory_r1_load", true);
    let record = again();
    assert_eq!(record.discarded.len(), 1, "R2: bounded");
    assert_eq!(record.steps[0].directory, "002_memory_r1_load");
    let left = record.steps[0].summary.as_ref().unwrap();
    assert!(!left.disturbed().is_empty(), "the mark stays");
}

#[test]
fn an_interrupted_cell_is_repeated_from_its_first_step() {
    let (dir, _) = run_with(&say(&finished(&[])), &say(&verified(&[])));
    let out = dir.path().join("run");
    let status = out.join("steps/001_memory_r1_load/status.json");
    let text = fs::read_to_string(&status)
        .unwrap()
        .replace("\"done\"", "\"running\"");
    fs::write(&status, text).unwrap();
    let program = dir.path().join("worker.sh");
    let summary = resume(&out, program, &mut Silent, &Interrupt::default()).unwrap();
    assert!(summary.complete);
    let record = lab_report::store::load(&out).unwrap();
    let [(name, why)] = record.discarded.as_slice() else {
        panic!("R1: {:?}", record.discarded)
    };
    assert_eq!(name, "001_memory_r1_load");
    assert!(why.contains("was interrupted"), "R1: {why}");
}

#[test]
fn a_worker_that_fails_or_talks_nonsense_fails_the_step() {
    let failed = Event::Failed {
        kind: lab_report::ErrorKind::Target,
        message: "the engine is tired".to_owned(),
    };
    for (step, needle) in [
        (say(&failed), "the engine is tired"),
        (say(&Event::Closed), "unexpected event"),
        ("exit 3".to_owned(), "exit status: 3"),
        (
            say(&finished(&[])).replace("\"histogram\":\"", "\"histogram\":\"x"),
            "histogram",
        ),
    ] {
        let (dir, summary) = run_with(&format!("echo noise; {step}"), &say(&verified(&[])));
        assert!(!summary.complete && summary.steps.is_empty());
        let record = lab_report::store::load(&dir.path().join("run")).unwrap();
        let message = record.steps[0].status.message.clone().unwrap();
        assert!(message.contains(needle), "{needle}: {message}");
    }
}

#[test]
fn steps_upon_a_store_that_cannot_be_begun_afresh_are_not_done() {
    let settings = Settings {
        targets: Some(targets::parse_targets("postgres://h/x,mysql://h/x").unwrap()),
        ..Settings::default()
    };
    let unsupported = |name: &str| {
        let experiment = experiment::experiment(name).unwrap();
        let plan = experiment::plan(experiment, &settings, Path::new("run")).unwrap();
        let of = |spec| {
            let all = plan.steps.iter();
            all.filter(|s| super::unsupported(&plan, spec, s).is_some())
                .count()
        };
        let counts: Vec<usize> = plan.targets.iter().map(of).collect();
        (counts, plan.steps.len())
    };
    let (counts, all) = unsupported("fill-factor");
    assert_eq!(counts, [all, all]);
    assert_eq!(unsupported("iibench-classic").0, [0, 0]);
    // The workload recreates its tables.
    let (counts, all) = unsupported("many-tables");
    assert_eq!(counts, [all / 2, all / 2]);
}
