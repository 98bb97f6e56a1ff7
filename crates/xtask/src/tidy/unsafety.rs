//! Checks that `unsafe` is used only where the product calls the system or another language, and
//! always with a reason.

use std::collections::BTreeMap;

use super::Finding;
use super::repository::{File, Repository};
use super::scan::words;

/// Where `unsafe` is allowed, by the beginning of the path.
const PLACES: &[&str] = &[
    "benches/peers/src/engines/lmdb",
    "crates/betree/src/arena",
    "crates/betree/src/page/view",
    "crates/kv-betree/",
    "crates/kv-lmdb/",
    "crates/kv-rocksdb/",
    "crates/kv-wiredtiger/",
    "crates/pcre/",
    "crates/stdx/",
    "crates/vfs/",
];

/// Maximum number of lines of code between the reason and the `unsafe`.
const REASON_DISTANCE: usize = 5;

/// Checks that `unsafe` is used only in [`PLACES`].
pub(super) fn places(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources() {
        if PLACES.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        for line in source.lines_with_word("unsafe") {
            let message =
                "unsafe belongs into stdx, vfs, betree's arena and page view, or an adapter";
            findings.push(Finding::new(&file.path, line, message));
        }
    }
    findings
}

/// Checks that every unsafe block and implementation has a reason why it is sound.
pub(super) fn explained(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources() {
        for (offset, _) in words(&source.code).filter(|(_, word)| *word == "unsafe") {
            let (before, after) = source.code.split_at(offset);
            let next = after.trim_start_matches("unsafe").trim_start();
            let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
            let needs_reason = next.starts_with('{') || next.starts_with("impl");
            if needs_reason && !has_reason(file, line) {
                let message = "say above why this is sound: // SAFETY: ...";
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

/// Whether `line`, or a line shortly before it, has a `SAFETY:` comment. Lines of comments are not
/// counted, so that a reason may be long.
fn has_reason(file: &File, line: usize) -> bool {
    let above: Vec<&str> = file.text.lines().take(line).collect();
    let mut distance = 0;
    for text in above.iter().rev() {
        if text.contains("SAFETY:") {
            return true;
        }
        if !text.trim_start().starts_with("//") {
            distance += 1;
        }
        if REASON_DISTANCE < distance {
            return false;
        }
    }
    false
}

/// The number of uses of `unsafe` in each crate: `kv-lmdb 3, vfs 1`.
pub(super) fn summary(repository: &Repository) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, source) in repository.sources() {
        let count = source.lines_with_word("unsafe").len();
        if 0 < count {
            *counts.entry(file.crate_name().unwrap_or("?")).or_default() += count;
        }
    }
    if counts.is_empty() {
        return "none".to_owned();
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &str = "fn f() {\n    unsafe { g() }\n}\n";

    #[test]
    fn unsafe_outside_its_places_is_found() {
        let check = |path: &str| places(&Repository::of(&[(path, BARE)])).len();
        assert_eq!(check("crates/vfs/src/a.rs"), 0);
        assert_eq!(check("crates/betree/src/arena/chunk.rs"), 0);
        assert_eq!(check("crates/betree/src/wal.rs"), 1);
        assert_eq!(check("crates/lab/src/a.rs"), 1);
    }

    #[test]
    fn a_block_without_its_reason_is_found() {
        let check = |text: &str| explained(&Repository::of(&[("crates/vfs/src/a.rs", text)]));
        assert_eq!(
            check(BARE),
            [Finding::new(
                "crates/vfs/src/a.rs",
                2,
                "say above why this is sound: // SAFETY: ..."
            )]
        );
        assert_eq!(check("// SAFETY: g is fine.\nunsafe { g() }\n"), []);
        assert_eq!(
            check("// SAFETY: long\n// 1\n// 2\n// 3\n// 4\n// 5\n// 6\nunsafe { g() }\n"),
            []
        );
        assert_eq!(
            check("// SAFETY: far\na\nb\nc\nd\ne\nunsafe { g() }\n").len(),
            1
        );
        assert_eq!(check("unsafe impl Send for A {}\n").len(), 1);
        assert_eq!(
            check("unsafe fn f() {}\ntype F = unsafe extern \"C\" fn();\n"),
            []
        );
        assert_eq!(check("let a = \"unsafe {\"; // unsafe {\n"), []);
    }

    #[test]
    fn counts_are_by_crate() {
        let repository = Repository::of(&[
            ("crates/vfs/src/a.rs", BARE),
            ("crates/vfs/src/b.rs", BARE),
            ("crates/kv/src/a.rs", "// unsafe\n"),
        ]);
        assert_eq!(summary(&repository), "vfs 2");
        assert_eq!(summary(&Repository::of(&[])), "none");
    }
}
