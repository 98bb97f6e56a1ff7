//! `cargo xtask tidy`: the rules of the repository as a program.
//!
//! [`repository`] loads every text file once. Each check is a pure function from the loaded files
//! to findings; it has a file of its own, with tests on small inputs in memory.

mod allowances;
mod attributes;
mod circles;
mod dependencies;
mod engines;
mod invariants;
mod layers;
mod lines;
mod manifest;
mod markdown;
mod names;
mod paths;
mod prose;
mod repository;
mod scan;
mod sizes;
mod unsafety;
mod uses;
mod variables;
mod words;

use std::fmt;
use std::path::Path;

use repository::Repository;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// The file, relative to the root of the repository.
    path: String,
    /// The line, from 1.
    line: usize,
    /// What is wrong, and how to correct it.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

type Check = fn(&Repository) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    allowances::readable,
    attributes::exceptions,
    attributes::leftovers,
    attributes::module_docs,
    circles::unlisted,
    dependencies::decisions,
    dependencies::inherited,
    dependencies::lints,
    dependencies::published,
    dependencies::unused,
    engines::confined,
    engines::default_features,
    engines::no_feature_tests_elsewhere,
    invariants::cited,
    layers::edges,
    layers::known,
    layers::named_in_architecture,
    lines::ascii,
    lines::width,
    markdown::decision_numbers,
    markdown::links,
    markdown::titles,
    names::of_engines,
    paths::machine_paths,
    sizes::architecture,
    sizes::files,
    sizes::functions,
    unsafety::explained,
    unsafety::places,
    variables::documented_variables,
    words::dialect,
];

/// Check the repository at `root` and print the findings. Returns true when there are none.
///
/// # Errors
/// A file or directory that cannot be read.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let repository = Repository::load(root)?;
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&repository)).collect();
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    println!("unsafe: {}", unsafety::summary(&repository));
    let loose = allowances::tighter(&repository);
    if !loose.is_empty() {
        let paths: Vec<&str> = loose.iter().map(|(path, _)| path.as_str()).collect();
        println!("cargo xtask tighten changes: {}", paths.join(" "));
    }
    let files = repository.files().len();
    let checks = CHECKS.len();
    if findings.is_empty() {
        println!("tidy: {files} files, {checks} checks, no findings");
    } else {
        println!(
            "tidy: {files} files, {checks} checks, {} findings",
            findings.len()
        );
    }
    Ok(findings.is_empty())
}

/// Lower the allowances of the repository at `root` to the numbers found, and print the changed
/// files.
///
/// # Errors
/// A file or directory that cannot be read or written.
pub(crate) fn tighten(root: &Path) -> Result<(), String> {
    let repository = Repository::load(root)?;
    let paths = allowances::tighten(root, &repository)?;
    for path in &paths {
        println!("{path}");
    }
    println!("tighten: {} files changed", paths.len());
    Ok(())
}
