//! Tests of wrong use: one line that names the problem and the next step, exit code 3 (64 if the
//! command line cannot be parsed), and no files written.

use std::fs;

use crate::program::{Place, finish};

#[track_caller]
fn refused(line: &str, needles: &[&str]) {
    let place = Place::new();
    place.lab(line).refuses(3, needles);
    assert_eq!(place.names("."), [""; 0], "something was written");
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    let near = "did you mean";
    refused(
        "run iibench-clasic -t null --out o",
        &[near, "iibench-classic"],
    );
    refused("run iibench-classic -t lmbd --out o", &[near, "\"lmdb\""]);
    refused(
        "run iibench-classic -t lmdb:tress=1 --out o",
        &["tress", "trees"],
    );
    refused("run --out o", &["lab run iibench-classic"]);
}

#[test]
fn an_engine_that_is_not_compiled_in_names_its_feature() {
    if lab::targets::factory("rocksdb").unwrap().available() {
        stdx::skip::test("every engine is compiled in");
        return;
    }
    refused(
        "run iibench-classic -t rocksdb --out o",
        &["--features rocksdb"],
    );
}

#[test]
fn numbers_that_make_no_sense_are_named() {
    let run = |options: &str| format!("run iibench-classic -t null --out o {options}");
    refused(&run("--mem 1M"), &["1M", "64M"]);
    refused(
        &run("--mem 128M --cache 127M"),
        &["--cache 127M", "three quarters"],
    );
    refused(&run("--cache 1M"), &["--cache 1M", "8M"]);
    refused(&run("--rows 10"), &["10 rows", "1000"]);
    refused(&run("--clients 0"), &["--clients 0"]);
    refused(&run("--repeats 0"), &["--repeats 0"]);
    refused(&run("--scale 0"), &["--scale 0"]);
    refused(&run("--time 0"), &["--time 0"]);
}

#[test]
fn the_grammar_refuses_with_a_code_of_its_own() {
    for (option, needle) in [
        ("--mem lots", "lots"),
        ("--preset fast", "smoke"),
        ("--rate nan", "nan"),
        ("--settle inf", "inf"),
        ("--durability maybe", "maybe"),
        ("--nonsense", "--nonsense"),
    ] {
        let place = Place::new();
        let ran = place.lab(&format!("run iibench-classic -t null --out o {option}"));
        let ran = ran.exits(64);
        assert!(ran.err.contains(needle), "{option}: {}", ran.err);
        assert_eq!(place.names("."), [""; 0]);
    }
}

#[test]
fn no_command_takes_wrong_use_for_an_invalid_run() {
    let place = Place::new();
    for (line, needle) in [
        ("check", "<RUN>"),
        ("check run", "--base"),
        ("check run --base base --fail-if ips<", "--fail-if"),
        ("check run --base base --fial-if ips<-5%", "--fial-if"),
        ("calibrate --aa lots", "lots"),
        ("doctor here", "here"),
        ("watch", "<RUN>"),
        ("resume", "<RUN>"),
        ("export run --format best", "best"),
        ("nonsense", "nonsense"),
    ] {
        let ran = place.lab(line).exits(64);
        assert!(ran.err.contains(needle), "{line}: {}", ran.err);
    }
    // Output that the user requested is not an error.
    let help = place.lab("check --help").exits(0).out;
    let words: Vec<&str> = help.split_whitespace().collect();
    let help = words.join(" ");
    for code in ["4 inconclusive", "64 invalid command line"] {
        assert!(help.contains(code), "{help}");
    }
}

#[test]
fn places_that_cannot_be_used_are_named() {
    let place = Place::new();
    fs::write(place.path("file"), "mine").unwrap();
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("full/mine"), "mine").unwrap();
    let run = |rest: &str| place.lab(&format!("run iibench-classic -t null --rows 2000 {rest}"));
    run("--out file/x").refuses(3, &["file/x", "name another"]);
    run("--out file").refuses(3, &["file", "name another --out"]);
    run("--out /proc/x/y").refuses(3, &["/proc/x", "name another"]);
    run("--out full").refuses(3, &["full", "not empty", "name another --out"]);
    run("--out out --data-dir file/x").refuses(3, &["file/x", "name another"]);
    run("--out out --data-dir /proc/x/y").refuses(3, &["/proc/x", "name another"]);
    // Data kept by an earlier run is not removed.
    fs::create_dir_all(place.path("data/null-r1")).unwrap();
    run("--out out --data-dir data").refuses(3, &["data/null-r1", "another --data-dir"]);
    assert_eq!(place.names("."), ["data", "file", "full"]);
    assert_eq!(place.text("file"), "mine");
    assert_eq!(place.names("full"), ["mine"]);
}

#[test]
fn what_is_no_run_is_called_so() {
    let place = Place::new();
    fs::create_dir(place.path("dir")).unwrap();
    for command in ["resume", "watch", "stop", "report", "export", "compare"] {
        for dir in ["dir", "nowhere"] {
            let ran = place.lab(&format!("{command} {dir}"));
            ran.refuses(3, &[dir, "holds no run", "lab run"]);
        }
    }
    place
        .lab("check dir --base dir")
        .refuses(3, &["holds no run"]);
    assert_eq!(place.names("dir"), [""; 0]);
}

#[test]
fn a_value_an_engine_refuses_is_reported_before_anything_is_written() {
    refused(
        "run iibench-classic -t lmdb:trees=0 --rows 2000 --out o",
        &["trees", "65535"],
    );
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let place = Place::new();
    let mut shell = place.outside("sh");
    let program = env!("CARGO_BIN_EXE_romanesco");
    let run = "lab run iibench-classic -t null --rows 2000 --settle 0 --json --out run";
    shell.args([
        "-c",
        &format!("{program} {run} 2>err | true; {program} lab list 2>>err | true"),
    ]);
    finish(shell).exits(0);
    assert_eq!(place.text("err"), "");
}
