//! Command lines: their output, messages and exit codes.

use std::process::{Command, Output};

fn torture(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_torture"));
    command.args(line.split_whitespace()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_run_prints_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("here");
    let output = torture(&format!(
        "--engine lmdb --cycles 6 --seed 3 --copy --dir {}",
        place.display()
    ));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert_eq!((out.lines().count(), err.as_str()), (1, ""));
    for part in [
        "torture lmdb: seed 3",
        "kills survived",
        "durable acknowledged lost: 0",
    ] {
        assert!(out.contains(part), "{out}");
    }
    assert!(place.join("store").exists() && place.join("before").exists());
    let again = torture(&format!("--cycles 1 --dir {}", place.display()));
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("not empty"), "{again:?}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    for (line, part) in [
        ("--engine lmbd --cycles 1", "lmdb"),
        ("--engine memory --cycles 1", "keeps nothing"),
        ("--engine null --cycles 1", "keeps nothing"),
        ("--kept always", "not a durability"),
    ] {
        let output = torture(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(text(&output.stderr).contains(part), "{line}: {output:?}");
    }
}

#[test]
fn the_worker_is_not_advertised() {
    let help = text(&torture("--help").stdout);
    assert!(help.contains("Example: torture --engine lmdb"), "{help}");
    assert!(!help.to_lowercase().contains("worker:"), "{help}");
}
