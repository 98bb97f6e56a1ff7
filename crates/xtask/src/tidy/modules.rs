//! Module edges of the laboratory: no circle of top-level modules, and no engine known by its name.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::repository::{File, Repository};
use super::scan::Source;

/// The crates whose top-level modules form no circle.
const WITHOUT_CIRCLES: &[&str] = &["lab", "lab-host", "lab-map", "lab-report"];

/// The crates that ask a factory what an engine does, instead of its name.
const WITHOUT_NAMES: &[&str] = &["lab", "lab-host", "lab-report"];

/// The engines' names as literals.
const NAMES: &[&str] = &["\"betree\"", "\"lmdb\"", "\"rocksdb\"", "\"wiredtiger\""];

/// The file that says which engines are ours.
const OURS: &str = "crates/lab/src/run/target_record.rs";

/// The first line on which one module uses another, by both names.
type Edges<'a> = BTreeMap<(&'a str, &'a str), (&'a str, usize)>;

/// No two top-level modules of these crates depend on each other, directly or through others.
pub(super) fn circles(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in WITHOUT_CIRCLES {
        let edges = edges(repository, name);
        for ((from, to), (path, line)) in &edges {
            if reaches(&edges, to, from) {
                let message = format!(
                    "modules {from} and {to} of {name} depend on each other; move what {from} \
                     needs below both"
                );
                findings.push(Finding::new(path, *line, message));
            }
        }
    }
    findings
}

/// Nothing of these crates but their tests decides by the name of an engine.
pub(super) fn names_of_engines(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in product(repository, WITHOUT_NAMES).filter(|(f, _)| f.path != OURS) {
        for (line, text) in (1..).zip(source.bare.lines()) {
            let named = NAMES.iter().find(|name| text.contains(**name));
            if let Some(name) = named.filter(|_| !source.is_test_line(line)) {
                let message = format!("{name} is known by its name; ask the engine's factory");
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

/// The sources of crates that are not tests.
fn product<'a>(
    repository: &'a Repository,
    crates: &'static [&str],
) -> impl Iterator<Item = (&'a File, &'a Source)> {
    let test = |path: &str| path.contains("/tests") || path.contains("/fixture");
    repository.sources().filter(move |(file, _)| {
        let of = file.crate_name().is_some_and(|name| crates.contains(&name));
        of && file.path.contains("/src/") && !test(&file.path)
    })
}

fn edges<'a>(repository: &'a Repository, name: &'static str) -> Edges<'a> {
    let mut edges = Edges::new();
    let own = product(repository, WITHOUT_CIRCLES).filter(|(f, _)| f.crate_name() == Some(name));
    let all: Vec<(&str, &File, &Source)> = own
        .filter_map(|(file, source)| Some((top(&file.path)?, file, source)))
        .collect();
    let modules: BTreeSet<&str> = all.iter().map(|(module, ..)| *module).collect();
    for (from, file, source) in all {
        for (line, text) in (1..).zip(source.code.lines()) {
            if source.is_test_line(line) {
                continue;
            }
            for path in text.split("crate::").skip(1) {
                let word = |c: char| c.is_alphanumeric() || c == '_';
                let to = path.split(|c| !word(c)).next().unwrap_or_default();
                if let Some(to) = modules.get(to).filter(|to| **to != from) {
                    edges.entry((from, *to)).or_insert((&file.path, line));
                }
            }
        }
    }
    edges
}

/// The top-level module a file belongs to; `None` for the root.
fn top(path: &str) -> Option<&str> {
    let inside = path.split("/src/").nth(1)?;
    let name = inside.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (!["lib", "main"].contains(&name)).then_some(name)
}

/// Whether `to` can be reached from `from`.
fn reaches(edges: &Edges<'_>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        if module == to {
            return true;
        }
        let onward = edges.keys().filter(|(from, _)| *from == module);
        next.extend(onward.map(|(_, to)| *to).filter(|to| seen.insert(to)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_depend_on_each_other_are_found() {
        let of = |a: &str, b: &str, c: &str| {
            circles(&Repository::of(&[
                ("crates/lab/src/a.rs", a),
                ("crates/lab/src/b/mod.rs", b),
                ("crates/lab/src/b/inner.rs", c),
            ]))
            .len()
        };
        let (to_a, to_b) = ("use crate::a::X;\n", "use crate::b::Y;\n");
        assert_eq!(of(to_b, "", ""), 0);
        assert_eq!(of(to_b, "", to_a), 2);
        assert_eq!(of(to_b, "// use crate::a::X;\n", ""), 0);
        assert_eq!(
            of(
                to_b,
                "#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\n",
                ""
            ),
            0
        );
    }

    #[test]
    fn engines_known_by_name_are_found_outside_of_tests() {
        let of = |path: &str, text: &str| names_of_engines(&Repository::of(&[(path, text)])).len();
        let decides = "fn f(n: &str) -> bool {\n    n == \"lmdb\"\n}\n";
        assert_eq!(of("crates/lab-report/src/a.rs", decides), 1);
        assert_eq!(of("crates/lab-map/src/a.rs", decides), 0);
        assert_eq!(of("crates/lab/src/a/tests.rs", decides), 0);
        assert_eq!(of(OURS, decides), 0);
        assert_eq!(of("crates/lab/src/a.rs", "// \"lmdb\"\n"), 0);
    }
}
