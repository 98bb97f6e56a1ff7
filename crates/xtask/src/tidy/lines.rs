//! Checks that lines are not too wide and are in ASCII.
//!
//! Vendored assets are excluded, because they keep their own style; so is the lock file, which
//! cargo writes.

use super::Finding;
use super::repository::{File, Repository};

/// Maximum number of columns of a line, as in `rustfmt.toml`.
const WIDTH_MAX: usize = 100;

fn is_checked(file: &File) -> bool {
    let known = ["rs", "toml", "md"].iter().any(|e| file.has_extension(e));
    let scripts = file.path == "Makefile"
        || file.path.starts_with("scripts/")
        || file.path.starts_with(".ci/");
    (known || scripts) && !file.is_asset()
}

/// Whether a line may be too wide: a long address cannot be broken, nor can a row of a Markdown
/// table.
fn may_be_wide(file: &File, line: &str) -> bool {
    line.contains("://") || (file.has_extension("md") && line.trim_start().starts_with('|'))
}

/// Checks that no line is too wide.
pub(super) fn width(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files().iter().filter(|f| is_checked(f)) {
        for (number, line) in file.lines() {
            let columns = line.chars().count();
            if WIDTH_MAX < columns && !may_be_wide(file, line) {
                let message = format!("{columns} columns, at most {WIDTH_MAX}");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

/// Checks that every character is ASCII.
pub(super) fn ascii(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files().iter().filter(|f| is_checked(f)) {
        for (number, line) in file.lines() {
            if let Some(c) = line.chars().find(|c| !c.is_ascii()) {
                let message = format!("{c:?} (U+{:04X}) is not ASCII; escape it", u32::from(c));
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_lines_are_found_unless_they_cannot_be_broken() {
        let check = |path: &str, line: &str| width(&Repository::of(&[(path, line)])).len();
        let wide = "a".repeat(101);
        assert_eq!(check("crates/kv/src/a.rs", &wide), 1);
        assert_eq!(check("crates/kv/src/a.rs", &"a".repeat(100)), 0);
        assert_eq!(check("docs/a.md", &format!("| {wide} |")), 0);
        assert_eq!(
            check("docs/a.md", &format!("https://example.org/{wide}")),
            0
        );
        assert_eq!(check("scripts/packages", &wide), 1);
        assert_eq!(check("Cargo.lock", &wide), 0);
        assert_eq!(check("crates/lab/assets/a.md", &wide), 0);
    }

    #[test]
    fn other_alphabets_are_found_with_their_line() {
        let found = ascii(&Repository::of(&[("docs/a.md", "# A\n\ncaf\u{e9}\n")]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
        assert!(found[0].message.contains("U+00E9"), "{found:?}");
    }
}
