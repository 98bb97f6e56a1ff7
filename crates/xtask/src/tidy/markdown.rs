//! Checks of documents: one title each, valid links, unique numbers of decisions.

use std::collections::BTreeMap;

use super::Finding;
use super::repository::{File, Repository};

/// The folder of decisions, which are named `NNNN-name.md`.
const DECISIONS: &str = "docs/decisions/";

fn documents(repository: &Repository) -> impl Iterator<Item = &File> {
    repository
        .files()
        .iter()
        .filter(|f| f.has_extension("md") && !f.is_asset())
}

/// The lines outside of code fences.
fn prose(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    file.lines().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    })
}

/// Checks that the first line is a title, and that there is no other title.
pub(super) fn titles(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in documents(repository) {
        if !file.text.starts_with("# ") {
            findings.push(Finding::new(
                &file.path,
                1,
                "the first line must be the title: `# ...`",
            ));
        }
        for (line, _) in prose(file).filter(|(line, text)| 1 < *line && text.starts_with("# ")) {
            findings.push(Finding::new(&file.path, line, "a second title; use `##`"));
        }
    }
    findings
}

/// Checks that every relative link leads to a file or directory of the repository.
pub(super) fn links(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in documents(repository) {
        for (line, text) in prose(file) {
            for target in targets(text) {
                let path = resolve(&file.path, target);
                if !path.is_some_and(|p| repository.exists(&p)) {
                    let message = format!("the link to {target} leads nowhere");
                    findings.push(Finding::new(&file.path, line, message));
                }
            }
        }
    }
    findings
}

/// The relative targets of the links `[text](target#place)` in a line, without `#place`.
fn targets(line: &str) -> Vec<&str> {
    // Text at even positions is outside of backticks, text at odd positions is code.
    let outside = line.split('`').step_by(2);
    outside
        .flat_map(|part| part.split("](").skip(1))
        .filter_map(|rest| rest.split([')', ' ']).next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty())
        .collect()
}

/// The path in the repository for `target` in the document `from`; `None` when it is outside of the
/// repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Checks that decisions are named `NNNN-name.md`, and that no two have the same number.
pub(super) fn decision_numbers(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for file in documents(repository) {
        let Some(name) = file.path.strip_prefix(DECISIONS) else {
            continue;
        };
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
            findings.push(Finding::new(&file.path, 1, "name decisions NNNN-name.md"));
        } else if let Some(other) = seen.insert(number, name) {
            let message = format!("number {number} is taken by {other}");
            findings.push(Finding::new(&file.path, 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_one_title_at_the_top() {
        let check = |text| titles(&Repository::of(&[("docs/a.md", text)])).len();
        assert_eq!(check("# A\n\n## B\n\n```sh\n# a comment\n```\n"), 0);
        assert_eq!(check("# A\n\n# B\n"), 1);
        assert_eq!(check("\n# A\n"), 2);
        assert_eq!(check(""), 1);
    }

    #[test]
    fn links_lead_to_files_and_directories() {
        let check = |text| {
            let found = links(&Repository::of(&[
                ("docs/a.md", text),
                ("docs/decisions/0001-x.md", ""),
                ("LICENSE", ""),
            ]));
            found.len()
        };
        assert_eq!(
            check("[x](decisions/0001-x.md#part), [y](../LICENSE), [z](decisions/)\n"),
            0
        );
        assert_eq!(check("[x](https://example.org/none), [y](#part)\n"), 0);
        assert_eq!(check("`[x](none.md)`\n```\n[x](none.md)\n```\n"), 0);
        assert_eq!(check("[x](none.md) and [y](../../LICENSE)\n"), 2);
    }

    #[test]
    fn numbers_of_decisions_are_unique() {
        let check = |paths: &[&str]| {
            let files: Vec<_> = paths.iter().map(|p| (*p, "# A\n")).collect();
            decision_numbers(&Repository::of(&files)).len()
        };
        assert_eq!(
            check(&["docs/decisions/0001-a.md", "docs/decisions/0003-b.md"]),
            0
        );
        assert_eq!(
            check(&["docs/decisions/0001-a.md", "docs/decisions/0001-b.md"]),
            1
        );
        assert_eq!(check(&["docs/decisions/notes.md"]), 1);
    }
}
