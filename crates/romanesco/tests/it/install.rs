//! What an installation takes from the program: completions, manual pages, help, engines.

use std::fs;

use crate::program::Place;

#[test]
fn completions_know_commands_and_flags_of_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["completions", shell]).exits(0).out;
        for word in ["serve", "dbpath", "unixSocketPrefix", "doctor"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let unknown = place.run(&["completions", "csh"]).exits(64);
    assert!(unknown.err.contains("fish"), "{}", unknown.err);
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Place::new();
    fs::create_dir(place.path("man")).unwrap();
    place.run(&["manual", "man"]).exits(0);
    let names = place.names("man");
    for name in ["romanesco.1", "romanesco-serve.1", "romanesco-lab-run.1"] {
        assert!(
            names.iter().any(|found| found == name),
            "no {name} in {names:?}"
        );
    }
    let page = place.text("man/romanesco-serve.1");
    assert!(
        page.contains("storageEngine") && page.contains("Exit codes"),
        "{page}"
    );
    place.run(&["manual", "nowhere"]).refuses(1, &["nowhere"]);
}

#[test]
fn help_shows_defaults_and_hides_what_does_nothing() {
    let place = Place::new();
    let help = place.run(&["serve", "--help"]).exits(0).out;
    for part in [
        "--dbpath <DIR>",
        "/data/db",
        "--nounixsocket",
        "--shutdown",
        "--oplogSize",
        "48",
    ] {
        assert!(help.contains(part), "no {part} in {help}");
    }
    for hidden in ["--traceExceptions", "--tlsCertificateKeyFilePassword"] {
        assert!(!help.contains(hidden), "{hidden} in {help}");
    }
}

#[test]
fn an_engine_that_is_not_compiled_in_says_what_to_set_instead() {
    if lab::targets::factory("wiredtiger").unwrap().available() {
        stdx::skip::test("every engine is compiled in");
        return;
    }
    let place = Place::new();
    let line = ["serve", "--dbpath", "db", "--storageEngine", "wiredTiger"];
    let needles = ["storage.engine: set it to betree", "--features wiredtiger"];
    place.run(&line).refuses(2, &needles);
}
