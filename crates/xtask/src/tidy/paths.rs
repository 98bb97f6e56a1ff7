//! Checks that no file contains a path of one machine: the repository must work in any directory.

use super::Finding;
use super::repository::Repository;

/// Beginnings of paths that exist on one machine only, concatenated here, so that this file does
/// not report itself.
const MACHINE: &[&str] = &[
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "work/"),
    concat!("/", "Users/"),
];
/// The path that documents may use as an example.
const EXAMPLE: &str = concat!("/", "home/you/");

/// Checks that no file contains a path of one machine.
pub(super) fn machine_paths(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files() {
        for (number, line) in file.lines() {
            for beginning in MACHINE.iter().filter(|b| names_path(line, b)) {
                let message = format!("{beginning} exists on one machine only");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

/// Whether `line` has an absolute path with this beginning; `a/home/` is not absolute.
fn names_path(line: &str, beginning: &str) -> bool {
    line.match_indices(beginning).any(|(offset, _)| {
        let (before, path) = line.split_at(offset);
        let inside = before.ends_with(|c: char| c.is_alphanumeric() || "._-}*/".contains(c));
        !inside && !path.starts_with(EXAMPLE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found() {
        let check = |line: String| machine_paths(&Repository::of(&[("docs/a.md", &line)])).len();
        let [home, root, work, _] = MACHINE else {
            panic!("four beginnings");
        };
        assert_eq!(check(format!("see {home}me/x")), 1);
        assert_eq!(check(format!("\"{root}x\" {work}y")), 2);
        assert_eq!(check(format!("see {EXAMPLE}data")), 0);
        assert_eq!(
            check(format!("$prefix{work}y and https://example.org{home}x")),
            0
        );
        assert_eq!(check("/var/lib/romanesco".to_owned()), 0);
    }
}
