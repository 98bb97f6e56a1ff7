//! Asserts: the engine says at both ends of its boundaries what must hold there.

use super::Finding;
use super::repository::Repository;

/// The engine.
const SOURCE: &str = "crates/betree/src/";
/// Asserts for each thousand lines of it, comments counted, tests not.
const DENSITY_MIN: usize = 15;

/// The engine asserts enough.
pub(super) fn density(repository: &Repository) -> Vec<Finding> {
    let (mut lines, mut asserts) = (0, 0);
    for (file, source) in repository.sources().filter(|(file, _)| !file.is_test()) {
        let helps_tests = file.path.contains("bench") || file.path.contains("fuzz");
        if !file.path.starts_with(SOURCE) || helps_tests {
            continue;
        }
        for (_, line) in file.lines().filter(|(at, _)| !source.is_test_line(*at)) {
            lines += 1;
            asserts += usize::from(is_assert(line));
        }
    }
    if asserts * 1000 < lines * DENSITY_MIN {
        let message = format!(
            "{asserts} asserts in {lines} lines, at least {DENSITY_MIN} in a thousand: say what \
             holds where data is handed over"
        );
        return vec![Finding::new(SOURCE, 1, message)];
    }
    Vec::new()
}

fn is_assert(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("debug_").unwrap_or(line);
    ["assert!(", "assert_eq!(", "assert_ne!("]
        .iter()
        .any(|macro_| line.starts_with(macro_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_with_few_asserts_is_found() {
        let check = |path: &str, asserts: usize| {
            let text = "x();\n".repeat(1000 - asserts) + &"debug_assert!(x);\n".repeat(asserts);
            density(&Repository::of(&[(path, &text)])).len()
        };
        assert_eq!(check("crates/betree/src/a.rs", 15), 0);
        assert_eq!(check("crates/betree/src/a.rs", 14), 1);
        assert_eq!(check("crates/kv/src/a.rs", 0), 0);
        assert_eq!(check("crates/betree/src/tests.rs", 0), 0);
    }

    #[test]
    fn asserts_are_told_from_other_lines() {
        assert!(is_assert("    assert_eq!(a, b);"));
        assert!(!is_assert("// assert!(a);"));
        assert!(!is_assert("assert_order(a);"));
    }
}
