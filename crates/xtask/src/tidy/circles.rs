//! Checks that the top-level modules of a crate do not import one another in a circle.
//!
//! The nodes of the graph are the top-level modules of a crate. An edge is a path in one module
//! that names an item of another: `crate::b::X`, a `super::` path that leaves the module, or a name
//! that the crate root exports from a module. Test code is ignored. A circle that must stay,
//! because its types are recursive, is listed in the crate's `tidy.toml` with the reason.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Finding;
use super::allowances::{Allowances, Circle, Place, area};
use super::repository::{File, Repository};
use super::uses::{module_of, named, root_names, test_files};

/// For each module, the other modules that it names, with the first place.
type Edges = BTreeMap<String, BTreeMap<String, Place>>;

/// Checks that every circle is allowed, or is a part of an allowed one.
pub(super) fn unlisted(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (area, edges) in graphs(repository) {
        let allowed = Allowances::of(repository, &area).circles;
        for circle in circles(&edges) {
            if allowed.iter().any(|a| circle.is_subset(&a.modules)) {
                continue;
            }
            let way = way_round(&edges, &circle);
            let Some(first) = way.first().map(|(_, place)| place.clone()) else {
                continue;
            };
            let names: Vec<&str> = circle.iter().map(String::as_str).collect();
            let steps: Vec<String> = way.iter().map(|(s, p)| format!("{s} ({p})")).collect();
            let message = format!(
                "the modules {} import one another: {}; move what they share below them",
                names.join(", "),
                steps.join(", ")
            );
            findings.push(Finding::new(&first.path, first.line, message));
        }
    }
    findings
}

/// The circles of `area` that exist and are allowed, with their reasons.
pub(super) fn still_there(repository: &Repository, area: &str, allowed: &[Circle]) -> Vec<Circle> {
    let graphs = graphs(repository);
    let found = graphs.get(area).map(circles).unwrap_or_default();
    let keep = |modules: BTreeSet<String>| {
        let circle = allowed.iter().find(|a| modules.is_subset(&a.modules))?;
        Some(Circle {
            modules,
            reason: circle.reason.clone(),
        })
    };
    found.into_iter().filter_map(keep).collect()
}

/// The graph of each crate, by area.
fn graphs(repository: &Repository) -> BTreeMap<String, Edges> {
    let tests = test_files(repository);
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, _) in repository.sources() {
        if let Some(first) = module_of(file).and_then(|m| m.first().cloned()) {
            modules.entry(area(file)).or_default().insert(first);
        }
    }
    let mut graphs: BTreeMap<String, Edges> = BTreeMap::new();
    for (area, modules) in modules {
        let root = |end| repository.file(&format!("{area}/src/{end}"));
        let root = root("lib.rs").or_else(|| root("main.rs"));
        let root = root.and_then(|f| f.source.as_ref());
        let names = root.map(|s| root_names(s, &modules)).unwrap_or_default();
        let mut edges = Edges::new();
        for file in repository.files() {
            let inside = file.path.starts_with(&format!("{area}/src/"));
            if inside && !tests.contains(file.path.as_str()) {
                add_edges(file, &modules, &names, &mut edges);
            }
        }
        graphs.insert(area, edges);
    }
    graphs
}

fn add_edges(
    file: &File,
    modules: &BTreeSet<String>,
    names: &BTreeMap<String, String>,
    edges: &mut Edges,
) {
    let (Some(source), Some(module)) = (&file.source, module_of(file)) else {
        return;
    };
    let Some(from) = module.first() else {
        return;
    };
    for found in named(source, &module) {
        let Some(first) = found.path.first() else {
            continue;
        };
        let to = modules.get(first).or_else(|| names.get(first));
        if let Some(to) = to.filter(|to| *to != from) {
            let place = Place {
                path: file.path.clone(),
                line: found.line,
            };
            let targets = edges.entry(from.clone()).or_default();
            targets.entry(to.clone()).or_insert(place);
        }
    }
}

fn reachable(edges: &Edges, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(module) = left.pop() {
        for to in edges.get(module).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(to.clone()) {
                left.push(to);
            }
        }
    }
    seen
}

/// The sets of two or more modules that all reach one another (strongly connected components).
fn circles(edges: &Edges) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&str, BTreeSet<String>> = edges
        .keys()
        .map(|module| (module.as_str(), reachable(edges, module)))
        .collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, targets) in &reached {
        let back = |to: &&String| {
            reached
                .get(to.as_str())
                .is_some_and(|r| r.contains(*module))
        };
        let circle: BTreeSet<String> = targets.iter().filter(back).cloned().collect();
        if 2 <= circle.len() && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// A shortest path from the first module of a circle back to it: each step with its place.
fn way_round(edges: &Edges, circle: &BTreeSet<String>) -> Vec<(String, Place)> {
    let Some(first) = circle.first() else {
        return Vec::new();
    };
    let mut ways: VecDeque<(&str, Vec<(String, Place)>)> =
        VecDeque::from([(first.as_str(), vec![])]);
    let mut seen = BTreeSet::new();
    while let Some((module, way)) = ways.pop_front() {
        for (to, place) in edges.get(module).into_iter().flatten() {
            let mut way = way.clone();
            way.push((format!("{module} -> {to}"), place.clone()));
            if to == first {
                return way;
            }
            if seen.insert(to) {
                ways.push_back((to, way));
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &str =
        "[[circles]]\nreason = \"types recurse\"\nmodules = [\"a\", \"b\", \"c\"]\n";

    fn repository(allowed: &str, a: &str, b: &str) -> Repository {
        Repository::of(&[
            (
                "crates/kv/src/lib.rs",
                "mod a;\nmod b;\nmod c;\npub use b::Name;\n",
            ),
            ("crates/kv/src/a/mod.rs", "mod deep;\n"),
            ("crates/kv/src/a/deep.rs", a),
            ("crates/kv/src/b.rs", b),
            ("crates/kv/src/c.rs", "use crate::a::X;\n"),
            ("crates/kv/tidy.toml", allowed),
        ])
    }

    #[test]
    fn a_circle_is_found_with_its_way() {
        let found = unlisted(&repository(
            "",
            "\nuse crate::b::Y;\n",
            "use super::a::X;\n",
        ));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].path.as_str(), found[0].line),
            ("crates/kv/src/a/deep.rs", 2)
        );
        let message = &found[0].message;
        assert!(message.contains("a, b import"), "{message}");
        assert!(
            message.contains("b -> a (crates/kv/src/b.rs:1)"),
            "{message}"
        );
        assert_eq!(unlisted(&repository("", "", "use super::a::X;\n")), []);
    }

    #[test]
    fn names_of_the_root_lead_to_their_module() {
        let found = unlisted(&repository("", "use crate::Name;\n", "use super::a::X;\n"));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn tests_close_no_circle() {
        let test = "#[cfg(test)]\nmod tests {\n use crate::b::Y;\n}\n";
        assert_eq!(unlisted(&repository("", test, "use super::a::X;\n")), []);
        let sibling = "use super::other::X;\nuse super::super::a::other;\n";
        assert_eq!(unlisted(&repository("", sibling, "use super::a::X;\n")), []);
    }

    #[test]
    fn a_listed_circle_passes_and_tightens_to_its_members() {
        let repository = repository(ALLOWED, "use crate::b::Y;\n", "use super::a::X;\n");
        assert_eq!(unlisted(&repository), []);
        let allowed = Allowances::of(&repository, "crates/kv").circles;
        let left = still_there(&repository, "crates/kv", &allowed);
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].modules, ["a", "b"].map(str::to_owned).into());
        assert_eq!(left[0].reason, "types recurse");
    }

    #[test]
    fn a_circle_that_grows_beyond_its_list_is_found() {
        let list = ALLOWED.replace(", \"c\"", "");
        let repository = repository(&list, "use crate::{b::Y, c::Z};\n", "use super::a::X;\n");
        assert_eq!(unlisted(&repository).len(), 1);
    }
}
