//! Writes that escape the caps. Control groups of version 1 cap the I/O that a process submits
//! itself. The kernel writes most pages that the process leaves in the page cache later, and counts
//! them for no group. The effect of a cap on such a target is unknown, so results that depend on
//! caps have no verdict for it.

use crate::record::{BUFFERED_WRITES, EnvelopeRecord, RunRecord, Runs, TargetRecord};

/// Whether a target's writes may bypass a cap on writes that is in force; `direct` states whether
/// its data files bypass the page cache.
#[must_use]
pub fn writes_escape(envelope: &EnvelopeRecord, direct: bool) -> bool {
    let capped = |line: &crate::record::EnvelopeLine| {
        line.limit.starts_with("write") && line.effective.is_some()
    };
    !direct && by_version_1(envelope) && envelope.lines.iter().any(capped)
}

/// Whether control groups v1 cap I/O here. If controllers have different versions, the warning
/// names the version of the I/O controller.
fn by_version_1(envelope: &EnvelopeRecord) -> bool {
    let warned = |warning: &String| warning == BUFFERED_WRITES;
    envelope.mode == "cgroup v1" || envelope.warnings.iter().any(warned)
}

/// Whether writes of a target bypassed the caps of a step, or may have. False for targets without a
/// record.
#[must_use]
pub fn escaped(run: &RunRecord, name: &str) -> bool {
    let Some(target) = run.targets.iter().find(|t| t.name == name) else {
        return false;
    };
    let own = |summary: &crate::record::StepSummary| summary.target == name;
    let mut steps = run.steps.iter();
    steps.any(|step| {
        step.summary.as_ref().is_some_and(own) && writes_escape(&step.envelope, target.direct_io)
    })
}

/// The report's note about the limits of caps with control groups v1; `None` with v2, and if no
/// target writes through the page cache.
#[must_use]
pub fn limits_of_caps(run: &RunRecord) -> Option<String> {
    if !run.steps.iter().any(|s| by_version_1(&s.envelope)) {
        return None;
    }
    let keeps = |target: &&TargetRecord| {
        let mut planned = run.manifest.plan.targets.iter();
        let facts = planned
            .find(|t| t.name == target.name)
            .and_then(|t| t.facts);
        match facts.map(|facts| (facts.runs, facts.persistent)) {
            Some((Runs::InWorker, persistent)) => persistent,
            Some((Runs::Foreign, _)) => false,
            _ => true,
        }
    };
    let all = run.targets.iter().filter(|t| !t.direct_io).filter(keeps);
    let names: Vec<&str> = all.map(|t| t.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let met = match names.iter().any(|name| escaped(run, name)) {
        true => {
            "Caps on writes were in force here and hold for these only in part: rates under them \
             flatter them, and published shapes that depend on caps are not judged of them."
        }
        false => {
            "No cap on writes was in force on them here, so nothing of this run depends on it."
        }
    };
    Some(format!(
        "Control groups v1 do not cap what the kernel writes out of the page cache later, and {} \
         wrote {} data files through it. {met}",
        names.join(", "),
        if names.len() == 1 { "its" } else { "their" },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn buffered_writes_escape_caps_on_writes_of_version_1() {
        let (one, two) = ("cgroup v1", "cgroup v2");
        let both = "cgroup v1 and v2";
        for (mode, limit, effective, direct, escape) in [
            (one, "write IOPS", Some(500), false, true),
            (one, "write B/s", Some(500), false, true),
            (one, "write IOPS", Some(500), true, false),
            // Reads are capped in both versions.
            (one, "read IOPS", Some(500), false, false),
            // Requested, but not in force.
            (one, "write IOPS", None, false, false),
            (two, "write IOPS", Some(500), false, false),
            (two, "write B/s", Some(500), true, false),
            (both, "write IOPS", Some(500), false, false),
        ] {
            let mut envelope = fixture::envelope(mode, limit);
            envelope.lines[0].effective = effective;
            assert_eq!(
                writes_escape(&envelope, direct),
                escape,
                "{mode} {limit} {direct}"
            );
        }
        // With controllers of both versions, that of I/O has version 1.
        let mut mixed = fixture::envelope(both, "write IOPS");
        mixed.warnings.push(BUFFERED_WRITES.to_owned());
        assert!(writes_escape(&mixed, false));
    }

    #[test]
    fn the_report_names_who_writes_through_the_page_cache_on_version_1() {
        let steps = vec![
            fixture::step("lmdb", 1, 9.0),
            fixture::step("betree", 1, 9.0),
        ];
        let mut run = fixture::run("run", &["lmdb", "betree"], 1, steps);
        run.targets = vec![
            fixture::target_record("lmdb", false),
            fixture::target_record("betree", true),
        ];
        let mut note_of = |mode: &str, limit: &str| {
            for step in &mut run.steps {
                step.envelope = fixture::envelope(mode, limit);
            }
            limits_of_caps(&run)
        };
        let writes = note_of("cgroup v1", "write IOPS").unwrap();
        assert!(writes.contains("lmdb wrote its data files"), "{writes}");
        assert!(!writes.contains("betree") && writes.contains("only in part"));
        let reads = note_of("cgroup v1", "read IOPS").unwrap();
        assert!(reads.contains("No cap on writes was in force"), "{reads}");
        assert_eq!(note_of("cgroup v2", "write IOPS"), None);
    }
}
