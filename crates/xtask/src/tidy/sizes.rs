//! Checks the sizes of files and functions.

use super::Finding;
use super::repository::Repository;

/// Maximum number of lines of a file, without test items.
const FILE_LINES_MAX: usize = 800;
/// Maximum number of lines of a function, from `fn` to the closing brace.
const FUNCTION_LINES_MAX: usize = 60;
/// Maximum number of lines of `ARCHITECTURE.md`, so that it can be read at one time.
const ARCHITECTURE_LINES_MAX: usize = 250;

/// Checks that no file of the product is too long.
pub(super) fn files(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources().filter(|(file, _)| !file.is_test()) {
        let count = file
            .lines()
            .filter(|(line, _)| !source.is_test_line(*line))
            .count();
        if FILE_LINES_MAX < count {
            let message =
                format!("{count} lines before tests, at most {FILE_LINES_MAX}: split the file");
            findings.push(Finding::new(&file.path, count, message));
        }
    }
    findings
}

/// Checks that no function of the product is too long.
pub(super) fn functions(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources().filter(|(file, _)| !file.is_test()) {
        for function in source.functions() {
            let count = function.last - function.first + 1;
            if FUNCTION_LINES_MAX < count && !source.is_test_line(function.first) {
                let message = format!(
                    "function {} has {count} lines, at most {FUNCTION_LINES_MAX}: split it",
                    function.name
                );
                findings.push(Finding::new(&file.path, function.first, message));
            }
        }
    }
    findings
}

/// Checks that `ARCHITECTURE.md` is not too long.
pub(super) fn architecture(repository: &Repository) -> Vec<Finding> {
    let path = "ARCHITECTURE.md";
    let count = repository.file(path).map_or(0, |f| f.lines().count());
    if ARCHITECTURE_LINES_MAX < count {
        let message = format!("{count} lines, at most {ARCHITECTURE_LINES_MAX}");
        return vec![Finding::new(path, count, message)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/kv/src/a.rs";

    #[test]
    fn long_files_are_found_and_tests_are_not_counted() {
        let code = "const A: u8 = 1;\n".repeat(800);
        let tests = format!("{code}#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert_eq!(files(&Repository::of(&[(PATH, &tests)])), []);
        let long = format!("{code}const B: u8 = 1;\n");
        assert_eq!(files(&Repository::of(&[(PATH, &long)])).len(), 1);
        assert_eq!(
            files(&Repository::of(&[("crates/kv/src/tests.rs", &long)])),
            []
        );
    }

    #[test]
    fn long_functions_are_found_outside_tests() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        let check = |text: &str| functions(&Repository::of(&[(PATH, text)]));
        assert_eq!(check(&function(60)), []);
        let found = check(&format!("\n{}", function(61)));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert_eq!(
            check(&format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(61))),
            []
        );
    }

    #[test]
    fn a_long_map_is_found() {
        let check = |lines| {
            let text = "x\n".repeat(lines);
            architecture(&Repository::of(&[("ARCHITECTURE.md", &text)])).len()
        };
        assert_eq!((check(250), check(251)), (0, 1));
    }
}
