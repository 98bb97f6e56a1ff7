//! The terms on which targets were compared: what is unequal between them, in one line below the
//! headline.
//!
//! - V1. A term is unequal when two targets have recorded different values of it. Targets without a
//!   record, and the generator, which stores nothing, have no terms.

use crate::record::{Runs, TargetRecord, TargetSpec};
use crate::report::model::View;

use super::headline::listed;

/// What is compared, and its value for a target.
type Term = (&'static str, fn(&TargetSpec, &TargetRecord) -> String);

const TERMS: [Term; 6] = [
    ("the engine runs", |spec, _| runs(spec).to_owned()),
    // A sentence, with marks of its own.
    ("a commit is", |_, record| {
        format!("\u{201c}{}\u{201d}", record.durability)
    }),
    ("cache", |_, record| match record.cache_bytes {
        0 => "unknown".to_owned(),
        bytes => stdx::ByteSize(bytes).to_string(),
    }),
    ("the page cache is", |_, record| {
        if record.direct_io { "bypassed" } else { "used" }.to_owned()
    }),
    ("compression", |_, record| record.compression.clone()),
    ("protection from torn pages", |_, record| {
        record.torn_pages().0.to_owned()
    }),
];

fn runs(spec: &TargetSpec) -> &'static str {
    match spec.facts.map(|facts| facts.runs) {
        Some(Runs::InWorker) => "in the client's process",
        Some(Runs::Started) => "in a server",
        Some(Runs::Foreign) => "in a server outside of the limits",
        None => "in an unknown place",
    }
}

/// The unequal terms, such as `compression none (lmdb), fast (betree and rocksdb)`, or that they
/// are equal; empty for fewer than two targets.
pub(crate) fn terms(view: &View<'_>) -> String {
    let plan = &view.run.manifest.plan;
    let with_record = view.targets.iter().filter_map(|target| {
        let spec = plan.targets.iter().find(|spec| spec.name == target.name)?;
        Some((spec, target.record?))
    });
    let all: Vec<_> = with_record
        .filter(|(spec, _)| !spec.is_generator())
        .collect();
    if all.len() < 2 {
        return String::new();
    }
    let unequal = |(what, of): &Term| {
        let mut values: Vec<(String, Vec<&str>)> = Vec::new();
        for (spec, record) in &all {
            let value = of(spec, record);
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, names)) => names.push(&spec.name),
                None => values.push((value, vec![&spec.name])),
            }
        }
        let named = |(value, names): &(String, Vec<&str>)| format!("{value} ({})", listed(names));
        let values: Vec<String> = values.iter().map(named).collect();
        (1 < values.len()).then(|| format!("{what} {}", values.join(", ")))
    };
    let unequal: Vec<String> = TERMS.iter().filter_map(unequal).collect();
    match unequal.is_empty() {
        true => {
            "Equal terms: place, commits, cache, page cache, compression and protection from torn \
                 pages"
                .to_owned()
        }
        false => format!("Unequal terms: {}", unequal.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{self, Shape};

    #[test]
    fn unequal_terms_name_the_targets_of_each_value() {
        let mut run = fixture::run(&Shape::default());
        let line = terms(&View::new(&run));
        assert!(line.starts_with("Unequal terms: "), "{line}");
        assert!(
            line.contains("compression none (lmdb), fast ("),
            "V1: {line}"
        );
        assert!(
            line.contains("the page cache is used (lmdb), bypassed ("),
            "V1: {line}"
        );
        assert!(!line.contains("cache 128"), "V1: all have the same: {line}");
        for target in &mut run.targets {
            target.compression = "none".to_owned();
            target.direct_io = false;
        }
        let line = terms(&View::new(&run));
        assert!(line.starts_with("Equal terms"), "{line}");
        // The kinds are compared, and not the clauses.
        "not needed: copied on write".clone_into(&mut run.targets[0].torn_pages);
        assert!(terms(&View::new(&run)).starts_with("Equal terms"), "V1");
        "switched off: innodb_doublewrite=OFF".clone_into(&mut run.targets[0].torn_pages);
        let line = terms(&View::new(&run));
        let torn = "protection from torn pages switched off (lmdb), not needed (";
        assert!(line.contains(torn), "{line}");
        run.targets[0].torn_pages.clear();
        let line = terms(&View::new(&run));
        assert!(line.contains("torn pages not recorded (lmdb)"), "{line}");
        run.targets[0].cache_bytes *= 2;
        let line = terms(&View::new(&run));
        assert!(line.contains("cache 256M (lmdb), 128M ("), "{line}");
    }

    #[test]
    fn a_target_alone_has_no_terms() {
        let mut run = fixture::run(&Shape::default());
        run.targets.truncate(1);
        assert_eq!(terms(&View::new(&run)), "");
    }
}
