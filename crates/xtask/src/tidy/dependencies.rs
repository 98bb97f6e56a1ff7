//! Checks that third-party crates are pinned in the workspace, used, and have a documented
//! decision.

use super::Finding;
use super::manifest::Kind;
use super::repository::Repository;

/// The document with the reason for each third-party crate.
const DECISION: &str = "docs/decisions/0002-dependencies.md";

/// Crates with procedural macros that take long to build.
const HEAVY: &[&str] = &["bson", "clap", "serde", "serde_json", "thiserror"];

/// Every dependency comes from the table of the workspace.
pub(super) fn inherited(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in repository.crates() {
        for dependency in manifest.dependencies().iter().filter(|d| !d.inherited) {
            let name = dependency.name;
            let message = format!(
                "pin {name} in [workspace.dependencies] and write `{name}.workspace = true` here"
            );
            findings.push(Finding::new(&manifest.path, dependency.line, message));
        }
    }
    findings
}

/// Checks that a crate uses every entry of the workspace's table.
pub(super) fn unused(repository: &Repository) -> Vec<Finding> {
    let used: Vec<&str> = repository
        .crates()
        .flat_map(|m| m.dependencies())
        .map(|d| d.name)
        .collect();
    entries(repository, |name, _| !used.contains(&name))
        .into_iter()
        .map(|(line, name)| Finding::new("Cargo.toml", line, format!("no crate uses {name}")))
        .collect()
}

/// Checks that every third-party crate has a row in the decision on dependencies.
pub(super) fn decisions(repository: &Repository) -> Vec<Finding> {
    let text = repository.file(DECISION).map_or("", |f| f.text.as_str());
    let missing = |name: &str, local: bool| !local && !text.contains(&format!("| `{name}` |"));
    entries(repository, missing)
        .into_iter()
        .map(|(line, name)| {
            let message = format!("add a row for {name} to {DECISION}");
            Finding::new("Cargo.toml", line, message)
        })
        .collect()
}

/// A published crate is light for those that depend on it, and complete without this repository.
pub(super) fn published(repository: &Repository) -> Vec<Finding> {
    let own = |name: &str| repository.crates().find(|m| m.folder == name);
    let mut findings = Vec::new();
    for manifest in repository.crates().filter(|m| m.is_published()) {
        let needed = manifest.dependencies().into_iter();
        for dependency in needed.filter(|d| d.kind == Kind::Normal && !d.optional) {
            let name = dependency.name;
            let message = if HEAVY.contains(&name) {
                format!("a published crate does without {name}: make it optional")
            } else if own(name).is_some_and(|m| !m.is_published()) {
                format!("a published crate needs {name}, which is not published")
            } else {
                continue;
            };
            findings.push(Finding::new(&manifest.path, dependency.line, message));
        }
    }
    findings
}

/// Every crate takes the lints of the workspace.
pub(super) fn lints(repository: &Repository) -> Vec<Finding> {
    repository
        .crates()
        .filter(|manifest| {
            let lints = manifest
                .table_at(&["lints"])
                .and_then(|t| t.get("workspace"));
            lints.and_then(toml::Value::as_bool) != Some(true)
        })
        .map(|m| {
            Finding::new(
                &m.path,
                1,
                "take the common lints: [lints] workspace = true",
            )
        })
        .collect()
}

/// The entries of `[workspace.dependencies]` for which `wanted(name, is_ours)` is true, with their
/// lines.
fn entries(repository: &Repository, wanted: impl Fn(&str, bool) -> bool) -> Vec<(usize, &str)> {
    let Some(workspace) = repository.workspace() else {
        return Vec::new();
    };
    let table = workspace.table_at(&["workspace", "dependencies"]);
    table
        .into_iter()
        .flatten()
        .filter(|(name, value)| wanted(name, value.get("path").is_some()))
        .map(|(name, _)| {
            (
                workspace.line_of("workspace.dependencies", name),
                name.as_str(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str =
        "[workspace.dependencies]\na = \"1\"\nb = \"2\"\nkv = { path = \"crates/kv\" }\n";

    #[test]
    fn a_version_in_a_crate_is_found() {
        let text = "[package]\nname = \"kv\"\n[dependencies]\na = \"1\"\nb.workspace = true\n";
        let found = inherited(&Repository::of(&[("crates/kv/Cargo.toml", text)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 4);
    }

    #[test]
    fn an_entry_nobody_uses_is_found() {
        let text = "[dependencies]\na.workspace = true\nkv.workspace = true\n";
        let found = unused(&Repository::of(&[
            ("Cargo.toml", ROOT),
            ("crates/x/Cargo.toml", text),
        ]));
        assert_eq!(found, [Finding::new("Cargo.toml", 3, "no crate uses b")]);
    }

    #[test]
    fn a_crate_without_a_decision_is_found_and_our_own_are_not() {
        let table = "# D\n\n| `a` | x |\n";
        let found = decisions(&Repository::of(&[("Cargo.toml", ROOT), (DECISION, table)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
    }

    #[test]
    fn what_a_published_crate_needs_is_light_and_published() {
        let check = |publish: &str, dependency: &str| {
            let text = format!("[package]\npublish = {publish}\n[dependencies]\n{dependency}\n");
            published(&Repository::of(&[
                ("crates/a/Cargo.toml", &text),
                ("crates/kv/Cargo.toml", "[package]\nname = \"kv\"\n"),
            ]))
            .len()
        };
        assert_eq!(check("true", "serde.workspace = true"), 1);
        assert_eq!(check("false", "serde.workspace = true"), 0);
        assert_eq!(
            check("true", "serde = { workspace = true, optional = true }"),
            0
        );
        assert_eq!(check("true", "kv.workspace = true"), 1);
        assert_eq!(check("true", "snap.workspace = true"), 0);
    }

    #[test]
    fn the_common_lints_are_asked_for() {
        let check = |text| lints(&Repository::of(&[("crates/x/Cargo.toml", text)])).len();
        assert_eq!(check("[lints]\nworkspace = true\n"), 0);
        assert_eq!(check("[lints.rust]\nmissing_docs = \"allow\"\n"), 1);
        assert_eq!(check(""), 1);
    }
}
