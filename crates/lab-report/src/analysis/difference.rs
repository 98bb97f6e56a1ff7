//! Differences between two plans that prevent a comparison of their numbers.
//!
//! D1. What decides the work must be equal: experiment, steps, seed, clients.
//! D2. What decides the means must be equal: limits, cache, durability.
//! D3. What is usually under test may differ, and is named: codec, direct I/O, threads, host.

use crate::record::{Manifest, Plan, StepPlan};

/// The differences that prevent a comparison, each as `what: base here, other there`.
pub(super) fn forbidding(base: &Plan, other: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    let mut same = |what: &str, a: String, b: String| {
        if a != b {
            found.push(format!("{what}: {a} against {b}"));
        }
    };
    same(
        "experiment",
        base.experiment.clone(),
        other.experiment.clone(),
    );
    same("steps", names(base), names(other));
    for step in &base.steps {
        let Some(twin) = other.steps.iter().find(|s| s.name == step.name) else {
            continue;
        };
        for (what, of) in STEP_FIELDS {
            same(&format!("{what} of step {}", step.name), of(step), of(twin));
        }
    }
    same("seed", base.seed.to_string(), other.seed.to_string());
    same(
        "clients",
        base.clients.to_string(),
        other.clients.to_string(),
    );
    for ((kind, a), (_, b)) in base.limits.each().into_iter().zip(other.limits.each()) {
        same(&format!("{kind} limit"), limit(a), limit(b));
    }
    same("cache", base.cache.to_string(), other.cache.to_string());
    same("durability", durability(base), durability(other));
    found
}

/// The differences to report.
pub(super) fn notable(base: &Manifest, other: &Manifest) -> Vec<String> {
    let mut found = Vec::new();
    let mut same = |what: &str, a: String, b: String| {
        if a != b {
            found.push(format!("{what}: {a} against {b}"));
        }
    };
    let (a, b) = (&base.plan, &other.plan);
    same("compression", plain(&a.codec), plain(&b.codec));
    same(
        "direct I/O",
        a.direct_io.to_string(),
        b.direct_io.to_string(),
    );
    same(
        "background threads",
        a.threads.to_string(),
        b.threads.to_string(),
    );
    let host = |m: &Manifest| m.host.get("fingerprint").map(ToString::to_string);
    if let Some((a, b)) = host(base).zip(host(other)) {
        same("host", a, b);
    }
    found
}

type StepField = (&'static str, fn(&StepPlan) -> String);

const STEP_FIELDS: [StepField; 5] = [
    ("operations", |s| s.operations.to_string()),
    ("work", |s| s.work.to_string()),
    ("load", |s| plain(&s.load)),
    ("time limit", |s| s.seconds_max.to_string()),
    ("settling", |s| s.settle.to_string()),
];

fn names(plan: &Plan) -> String {
    plan.steps
        .iter()
        .map(|s| s.name.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

fn limit(value: Option<u64>) -> String {
    value.map_or("none".to_owned(), |v| v.to_string())
}

fn durability(plan: &Plan) -> String {
    let name = plain(&plan.durability);
    if plan.durability == kv::Durability::Interval {
        return format!("{name} of {} ms", plan.interval_ms);
    }
    name
}

/// A plain value as its record has it.
fn plain(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::manifest;
    use stdx::ByteSize;

    #[test]
    fn equal_plans_have_none() {
        let (a, b) = (manifest(&["lmdb"], 1), manifest(&["rocksdb", "lmdb"], 3));
        assert!(
            forbidding(&a.plan, &b.plan).is_empty(),
            "targets and repeats may differ"
        );
        assert!(notable(&a, &b).is_empty());
    }

    /// D1, D2: each difference in the work or the means forbids a comparison. D3: a difference that
    /// is usually under test is named.
    #[test]
    fn each_is_named_with_both_values() {
        let (a, mut b) = (manifest(&["lmdb"], 1), manifest(&["lmdb"], 1));
        b.plan.seed = 7;
        b.plan.cache = ByteSize::mib(128);
        b.plan.limits.memory = Some(ByteSize::mib(256));
        b.plan.steps[0].operations = 5;
        b.plan.durability = kv::Durability::None;
        b.plan.threads = 9;
        let found = forbidding(&a.plan, &b.plan).join("\n");
        for part in [
            "seed: 42 against 7",
            "cache: 64M against 128M",
            "memory limit: none against 268435456",
            "operations of step load: 1000 against 5",
            "durability: sync against none",
        ] {
            assert!(found.contains(part), "{part} in {found}");
        }
        assert_eq!(notable(&a, &b), ["background threads: 1 against 9"]);
    }
}
