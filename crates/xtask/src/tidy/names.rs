//! Checks that the laboratory does not decide by the names of engines: it asks an engine's factory.

use super::Finding;
use super::repository::Repository;

/// The crates that must not name an engine. `lab-map` is not among them, because it knows file
/// formats.
const CRATES: &[&str] = &["lab", "lab-host", "lab-report"];

/// The engines' names as string literals.
const NAMES: &[&str] = &["\"betree\"", "\"lmdb\"", "\"rocksdb\"", "\"wiredtiger\""];

/// The file that lists the engines of this project.
const OURS: &str = "crates/lab/src/run/target_record.rs";

/// Checks that these crates, except in tests, do not decide by the name of an engine.
pub(super) fn of_engines(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources() {
        let of = file.crate_name().is_some_and(|name| CRATES.contains(&name));
        let test = file.path.contains("/tests") || file.path.contains("/fixture");
        if !of || test || file.path == OURS {
            continue;
        }
        for (line, text) in (1..).zip(source.bare.lines()) {
            let named = NAMES.iter().find(|name| text.contains(**name));
            if let Some(name) = named.filter(|_| !source.is_test_line(line)) {
                let message = format!("{name} is matched by its name; ask the engine's factory");
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_known_by_name_are_found_outside_of_tests() {
        let of = |path: &str, text: &str| of_engines(&Repository::of(&[(path, text)])).len();
        let decides = "fn f(n: &str) -> bool {\n    n == \"lmdb\"\n}\n";
        assert_eq!(of("crates/lab-report/src/a.rs", decides), 1);
        assert_eq!(of("crates/lab-map/src/a.rs", decides), 0);
        assert_eq!(of("crates/lab/src/a/tests.rs", decides), 0);
        assert_eq!(of(OURS, decides), 0);
        assert_eq!(of("crates/lab/src/a.rs", "// \"lmdb\"\n"), 0);
    }
}
