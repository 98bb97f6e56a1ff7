//! Checks that storage engines in other languages are used only in their adapters, and are not in
//! the default build.

use toml::Value;

use super::Finding;
use super::manifest::Manifest;
use super::repository::Repository;

/// The feature of each engine, with the only crate that may test for it by `cfg`.
const FEATURES: &[(&str, &str)] = &[
    ("lmdb", "kv-lmdb"),
    ("rocksdb", "kv-rocksdb"),
    ("wiredtiger", "kv-wiredtiger"),
];

/// Features that need C++ or have a licence that is not allowed in the default build.
const NEVER_DEFAULT: &[&str] = &["all-engines", "rocksdb", "wiredtiger"];

/// The third-party crates of the engines, each with the only crate that may depend on it.
const BINDINGS: &[(&str, &str)] = &[
    ("bindgen", "kv-wiredtiger"),
    ("heed", "kv-lmdb"),
    ("pkg-config", "kv-wiredtiger"),
    ("rocksdb", "kv-rocksdb"),
];

/// Checks that only the adapter of an engine depends on the engine's bindings.
pub(super) fn confined(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in repository.crates() {
        for dependency in manifest.dependencies() {
            let home = BINDINGS.iter().find(|(name, _)| *name == dependency.name);
            if let Some((name, home)) = home.filter(|(_, home)| *home != manifest.folder) {
                let message = format!("only {home} may depend on {name}");
                findings.push(Finding::new(&manifest.path, dependency.line, message));
            }
        }
    }
    findings
}

/// Checks that no crate enables a feature of [`NEVER_DEFAULT`] by default.
pub(super) fn default_features(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in repository.crates() {
        for feature in reached_by_default(manifest) {
            if NEVER_DEFAULT.contains(&last_part(&feature)) {
                let line = manifest.line_of("features", "default");
                let message = format!("the default features must not reach {feature}");
                findings.push(Finding::new(&manifest.path, line, message));
            }
        }
    }
    findings
}

/// The last part of `lab/rocksdb`, `kv-rocksdb?/rocksdb` or `dep:rocksdb`: the feature or
/// dependency that is enabled.
fn last_part(feature: &str) -> &str {
    feature.rsplit(['/', ':']).next().unwrap_or(feature)
}

/// The features that `default` enables in this crate and in others, directly or indirectly.
fn reached_by_default(manifest: &Manifest) -> Vec<String> {
    let mut reached = vec!["default".to_owned()];
    let mut next = 0;
    while let Some(name) = reached.get(next).cloned() {
        next += 1;
        let entries = manifest.table_at(&["features"]).and_then(|t| t.get(&name));
        let entries = entries.and_then(Value::as_array).into_iter().flatten();
        for entry in entries.filter_map(Value::as_str) {
            if !reached.iter().any(|r| r == entry) {
                reached.push(entry.to_owned());
            }
        }
    }
    reached
}

/// Checks that code outside an adapter asks the factory, not `cfg`, whether an engine is compiled
/// in.
pub(super) fn no_feature_tests_elsewhere(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.sources() {
        for (number, line) in (1..).zip(source.bare.lines()) {
            let Some(rest) = line.split("feature = \"").nth(1) else {
                continue;
            };
            let engine = rest.split('"').next().unwrap_or_default();
            let home = FEATURES.iter().find(|(feature, _)| *feature == engine);
            if home.is_some_and(|(_, home)| file.crate_name() != Some(home)) && line.contains("cfg")
            {
                let message = format!(
                    "cfg(feature = {engine:?}) outside its adapter; ask the engine's `available()`"
                );
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(folder: &str, text: &str) -> Repository {
        Repository::of(&[(&format!("crates/{folder}/Cargo.toml"), text)])
    }

    #[test]
    fn bindings_stay_with_their_adapter() {
        let text = "[dependencies]\nrocksdb.workspace = true\n";
        assert_eq!(confined(&with("kv-rocksdb", text)), []);
        assert_eq!(confined(&with("lab", text)).len(), 1);
    }

    #[test]
    fn an_engine_reached_by_default_is_found_through_other_features() {
        let fine = "[features]\ndefault = [\"lmdb\"]\nlmdb = [\"lab/lmdb\"]\nrocksdb = []\n";
        assert_eq!(default_features(&with("romanesco", fine)), []);
        let hidden = "[features]\ndefault = [\"fast\"]\nfast = [\"lab/rocksdb\"]\n";
        assert_eq!(default_features(&with("romanesco", hidden)).len(), 1);
        let all = "[features]\ndefault = [\"all-engines\"]\n";
        assert_eq!(default_features(&with("romanesco", all)).len(), 1);
    }

    #[test]
    fn feature_tests_stay_in_the_adapter_and_comments_do_not_count() {
        let check = |folder: &str, code: &str| {
            let path = format!("crates/{folder}/src/lib.rs");
            no_feature_tests_elsewhere(&Repository::of(&[(&path, code)])).len()
        };
        let code = "#[cfg(feature = \"lmdb\")]\nmod open;\n";
        assert_eq!(check("kv-lmdb", code), 0);
        assert_eq!(check("lab", code), 1);
        assert_eq!(check("lab", "if cfg!(not(feature = \"rocksdb\")) {}\n"), 1);
        assert_eq!(check("lab", "// cfg(feature = \"rocksdb\")\n"), 0);
        assert_eq!(check("lab", "#[cfg(feature = \"colour\")]\nmod a;\n"), 0);
    }
}
