//! Checks that documents name only environment variables that the code reads.

use std::collections::BTreeSet;

use super::Finding;
use super::repository::Repository;
use super::scan::words;

/// The prefix of this project's variables, concatenated here, so that this file does not count as
/// code that reads one.
const PREFIX: &str = concat!("ROMANESCO", "_");

/// Checks that the code contains every variable with this prefix that a document names.
pub(super) fn documented_variables(repository: &Repository) -> Vec<Finding> {
    let code = repository.sources().map(|(_, source)| source.bare.as_str());
    let read: BTreeSet<&str> = code.flat_map(variables).collect();
    let mut findings = Vec::new();
    for file in repository.files().iter().filter(|f| f.has_extension("md")) {
        for (number, line) in file.lines() {
            for name in variables(line).filter(|name| !read.contains(name)) {
                let message = format!("no code reads {name}");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

fn variables(text: &str) -> impl Iterator<Item = &str> {
    let ours = |word: &&str| {
        word.strip_prefix(PREFIX)
            .is_some_and(|rest| !rest.is_empty())
    };
    words(text).map(|(_, word)| word).filter(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_nobody_reads_is_found() {
        let code = format!("//! Doc.\nfn f() {{ env(\"{PREFIX}TAPE\"); }} // {PREFIX}OTHER\n");
        let text = format!("# A\n\n`{PREFIX}TAPE=00` and `{PREFIX}OTHER=1`; {PREFIX}* are ours.\n");
        let found = documented_variables(&Repository::of(&[
            ("crates/kv-conformance/src/lib.rs", &code),
            ("docs/a.md", &text),
        ]));
        let message = format!("no code reads {PREFIX}OTHER");
        assert_eq!(found, [Finding::new("docs/a.md", 3, message)]);
    }
}
