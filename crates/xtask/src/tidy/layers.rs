//! The layers: which crates each crate may use.
//!
//! A crate may use crates of lower layers. The table lists what each crate may use. A test checks
//! that no entry of the table points to a higher layer, and that only the listed edges exist inside
//! a layer. The table also has planned crates.

use super::Finding;
use super::manifest::Kind;
use super::repository::Repository;

/// The file of this table, which the finding about an unknown crate names.
const THIS_FILE: &str = "crates/xtask/src/tidy/layers.rs";

/// How the package of a published part of betree begins; the rest is the name of its folder.
const PUBLISHED: &str = "betree-";

/// A crate and its place.
struct Place {
    name: &'static str,
    /// The layer; 0 is the lowest. `None` for crates that are not part of the product.
    layer: Option<u8>,
    /// Whether only tests use the crate, as a dev-dependency.
    test_only: bool,
    /// The crates of this workspace that its product code may use.
    may_use: &'static [&'static str],
}

const fn place(name: &'static str, layer: u8, may_use: &'static [&'static str]) -> Place {
    Place {
        name,
        layer: Some(layer),
        test_only: false,
        may_use,
    }
}

const fn test_only(name: &'static str, layer: u8, may_use: &'static [&'static str]) -> Place {
    Place {
        test_only: true,
        ..place(name, layer, may_use)
    }
}

const ADAPTER: &[&str] = &["kv", "stdx", "vfs"];

const PLACES: &[Place] = &[
    place("kv-types", 0, &[]),
    place("crypt", 0, &["stdx"]),
    place("stdx", 0, &[]),
    place("vfs", 0, &["stdx"]),
    test_only("sim", 0, &["stdx", "vfs"]),
    place("betree", 1, &["crypt", "kv-types", "stdx", "vfs"]),
    place("kv", 1, &["kv-types", "stdx", "vfs"]),
    place("kv-betree", 2, &["betree", "kv", "stdx", "vfs"]),
    place("kv-lmdb", 2, ADAPTER),
    place("kv-rocksdb", 2, ADAPTER),
    place("kv-wiredtiger", 2, ADAPTER),
    test_only("kv-conformance", 2, ADAPTER),
    place("pcre", 2, &["stdx"]),
    place("query", 3, &["pcre", "stdx"]),
    place("wire", 3, &["stdx"]),
    place("repl", 3, &[]),
    place("backup", 3, ADAPTER),
    place("docdb", 3, &["crypt", "kv", "query", "stdx"]),
    place(
        "server",
        4,
        &[
            "backup", "docdb", "kv", "query", "repl", "stdx", "vfs", "wire",
        ],
    ),
    place("lab-report", 4, &["kv", "stdx", "vfs"]),
    place("lab-host", 4, &["kv", "lab-report", "stdx", "vfs"]),
    place(
        "lab-map",
        4,
        &["kv", "kv-betree", "lab-report", "stdx", "vfs"],
    ),
    place(
        "lab",
        4,
        &[
            "kv",
            "kv-betree",
            "kv-lmdb",
            "kv-rocksdb",
            "kv-wiredtiger",
            "lab-host",
            "lab-map",
            "lab-report",
            "stdx",
            "vfs",
        ],
    ),
    place(
        "romanesco",
        5,
        &[
            "backup",
            "betree",
            "docdb",
            "kv",
            "kv-betree",
            "kv-lmdb",
            "kv-rocksdb",
            "kv-wiredtiger",
            "lab",
            "lab-host",
            "lab-map",
            "lab-report",
            "server",
            "stdx",
            "vfs",
            "wire",
        ],
    ),
    test_only(
        "torture",
        5,
        &[
            "kv",
            "kv-betree",
            "lab",
            "lab-host",
            "lab-report",
            "server",
            "sim",
            "stdx",
            "vfs",
            "wire",
        ],
    ),
    Place {
        name: "xtask",
        layer: None,
        test_only: false,
        may_use: &[],
    },
];

fn find(name: &str) -> Option<&'static Place> {
    PLACES.iter().find(|p| p.name == name)
}

/// Checks that every crate is in the table, and that its folder has its name.
pub(super) fn known(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in repository.crates() {
        let line = manifest.line_of("package", "name");
        if find(&manifest.folder).is_none() {
            let message = format!(
                "crate {} has no place in the layers; give it one in {THIS_FILE}",
                manifest.folder
            );
            findings.push(Finding::new(&manifest.path, line, message));
        }
        let package = manifest.package().unwrap_or_default();
        let name = package.strip_prefix(PUBLISHED).unwrap_or(package);
        if name != manifest.folder {
            let message = format!(
                "package {package} lives in folder {}; use one name",
                manifest.folder
            );
            findings.push(Finding::new(&manifest.path, line, message));
        }
    }
    findings
}

/// Checks that the table allows every dependency inside the workspace.
pub(super) fn edges(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in repository.crates() {
        let Some(from) = find(&manifest.folder) else {
            continue;
        };
        for dependency in manifest.dependencies() {
            let Some(to) = find(dependency.name) else {
                continue;
            };
            if let Some(message) = objection(from, to, dependency.kind) {
                findings.push(Finding::new(&manifest.path, dependency.line, message));
            }
        }
    }
    findings
}

fn objection(from: &Place, to: &Place, kind: Kind) -> Option<String> {
    // A crate for tests may depend on another such crate if the table allows it.
    let among_tests = from.test_only && from.may_use.contains(&to.name);
    if to.test_only && !among_tests {
        return match kind {
            Kind::Dev => None,
            Kind::Normal => Some(format!(
                "{} is for tests: make it a dev-dependency of {}",
                to.name, from.name
            )),
        };
    }
    // Tests may use all crates of lower layers; product code may use only those in the table.
    let below = to.layer.is_some() && to.layer < from.layer;
    if from.may_use.contains(&to.name) || (kind == Kind::Dev && below) {
        return None;
    }
    Some(format!(
        "{} (layer {}) may not use {} (layer {}); the layers are listed in {THIS_FILE}",
        from.name,
        layer_name(from),
        to.name,
        layer_name(to)
    ))
}

fn layer_name(place: &Place) -> String {
    place
        .layer
        .map_or_else(|| "none".to_owned(), |l| format!("L{l}"))
}

/// Checks that `ARCHITECTURE.md` names every crate.
pub(super) fn named_in_architecture(repository: &Repository) -> Vec<Finding> {
    let text = repository
        .file("ARCHITECTURE.md")
        .map_or("", |f| f.text.as_str());
    repository
        .crates()
        .filter(|manifest| !text.contains(&format!("`{}`", manifest.folder)))
        .map(|manifest| {
            let message = format!("the code map does not name crate `{}`", manifest.folder);
            Finding::new("ARCHITECTURE.md", 1, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allowed edges inside a layer.
    const BESIDE: &[(&str, &str)] = &[
        ("crypt", "stdx"),
        ("vfs", "stdx"),
        ("sim", "stdx"),
        ("sim", "vfs"),
        ("docdb", "query"),
        ("lab", "lab-report"),
        ("lab", "lab-host"),
        ("lab-host", "lab-report"),
        ("lab", "lab-map"),
        ("lab-map", "lab-report"),
    ];

    fn manifest(name: &str, section: &str, uses: &str) -> String {
        format!("[package]\nname = \"{name}\"\n[{section}]\n{uses}.workspace = true\n")
    }

    fn check(folder: &str, section: &str, uses: &str) -> Vec<Finding> {
        let path = format!("crates/{folder}/Cargo.toml");
        edges(&Repository::of(&[(
            &path,
            &manifest(folder, section, uses),
        )]))
    }

    #[test]
    fn the_table_points_down() {
        for from in PLACES {
            for name in from.may_use {
                let to = find(name).unwrap();
                let beside = BESIDE.contains(&(from.name, name));
                assert!(to.layer < from.layer || beside, "{} -> {name}", from.name);
            }
        }
    }

    #[test]
    fn allowed_edges_pass_and_upward_ones_do_not() {
        assert_eq!(check("lab", "dependencies", "kv-lmdb"), []);
        assert_eq!(check("vfs", "dependencies", "stdx"), []);
        assert_eq!(check("docdb", "dependencies", "serde"), []);
        let up = check("kv", "dependencies", "lab");
        assert!(
            up[0]
                .to_string()
                .starts_with("crates/kv/Cargo.toml:4: kv (layer L1)"),
            "{up:?}"
        );
        assert_eq!(check("docdb", "dependencies", "betree").len(), 1);
        assert_eq!(check("xtask", "dependencies", "stdx").len(), 1);
    }

    #[test]
    fn test_crates_are_dev_dependencies_only() {
        assert_eq!(check("kv-lmdb", "dev-dependencies", "kv-conformance"), []);
        assert_eq!(check("kv", "dev-dependencies", "kv-conformance"), []);
        assert_eq!(check("kv-lmdb", "dependencies", "kv-conformance").len(), 1);
        assert_eq!(check("kv-lmdb", "dev-dependencies", "lab").len(), 1);
        assert_eq!(check("kv-lmdb", "build-dependencies", "sim").len(), 1);
    }

    #[test]
    fn an_unknown_crate_is_told_where_to_go() {
        let text = manifest("other", "dependencies", "kv");
        let found = known(&Repository::of(&[("crates/new/Cargo.toml", &text)]));
        assert_eq!(found.len(), 2);
        assert!(found[0].message.contains(THIS_FILE), "{found:?}");
        assert!(
            found[1]
                .message
                .contains("package other lives in folder new"),
            "{found:?}"
        );
    }

    #[test]
    fn a_published_part_of_betree_has_its_folder_in_its_name() {
        let check = |folder: &str, package: &str| {
            let path = format!("crates/{folder}/Cargo.toml");
            let text = manifest(package, "dependencies", "serde");
            known(&Repository::of(&[(&path, &text)])).len()
        };
        assert_eq!(check("stdx", "betree-stdx"), 0);
        assert_eq!(check("stdx", "betree-vfs"), 1);
        assert_eq!(check("stdx", "other-stdx"), 1);
        assert_eq!(check("kv-betree", "kv-betree"), 0);
    }

    #[test]
    fn the_code_map_names_crates_in_code_marks() {
        let text = manifest("kv", "dependencies", "stdx");
        let with = |map| {
            named_in_architecture(&Repository::of(&[
                ("crates/kv/Cargo.toml", &text),
                ("ARCHITECTURE.md", map),
            ]))
        };
        assert_eq!(with("# Map\n\n`kv` is the API.\n"), []);
        assert_eq!(with("# Map\n\nkv\n").len(), 1);
    }
}
