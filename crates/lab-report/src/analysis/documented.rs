//! `docs/results.md` is normative: it must list every field and metric.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::METRICS;
use crate::fixture::{engine, manifest, run, step, target_record};
use crate::record::{
    Busiest, EngineCounter, EnvelopeLine, EnvelopeRecord, Estimate, IntervalRow, Others,
    QuerySummary, SeriesRow, Stall, StepState, StepStatus,
};

const PAGE: &str = include_str!("../../../../docs/results.md");

#[test]
fn the_metrics_stand_in_the_page_as_in_the_table() {
    for metric in METRICS {
        let better = format!("{:?}", metric.better).to_lowercase();
        let (name, unit, doc) = (metric.name, metric.unit, metric.doc);
        let line = format!("| `{name}` | {unit} | {better} | {doc} |");
        assert!(
            PAGE.lines().any(|l| l == line),
            "not in docs/results.md: {line}"
        );
    }
}

#[test]
fn every_field_of_every_record_is_explained() {
    let mut fields = BTreeSet::new();
    let mut add = |record: Value| keys(&record, &mut fields);
    let mut summary = step("lmdb", 1, 1.0);
    summary.intervals.push(IntervalRow::default());
    summary.queries = Some(QuerySummary::default());
    summary.others = Some(Others {
        busiest: Some(Busiest {
            name: String::new(),
            cpu: 0.0,
        }),
        ..Others::default()
    });
    add(value(&manifest(&["lmdb"], 1)));
    add(value(
        &run("r", &["lmdb"], 2, vec![summary.clone()]).summary,
    ));
    add(value(&summary));
    add(value(&SeriesRow::default()));
    add(value(&EngineCounter {
        t: 0.0,
        counter: String::new(),
        value: 0,
    }));
    add(value(&Estimate {
        median: 0.0,
        low: 0.0,
        high: 0.0,
        repeats: 1,
    }));
    add(value(&Stall {
        start: 0.0,
        seconds: 0.0,
        rate_min: 0.0,
        causes: Vec::new(),
    }));
    let line = EnvelopeLine {
        limit: String::new(),
        requested: None,
        effective: None,
        note: String::new(),
    };
    add(value(&EnvelopeRecord {
        lines: vec![line],
        ..EnvelopeRecord::default()
    }));
    add(value(&StepStatus {
        schema: 1,
        state: StepState::Done,
        at: String::new(),
        message: None,
    }));
    add(value(&target_record("", false)));
    add(value(&engine("lmdb", kv::Writes::Pages)));
    assert!(100 < fields.len(), "{}", fields.len());
    for field in fields {
        assert!(
            PAGE.contains(&format!("`{field}`")),
            "not in docs/results.md: {field}"
        );
    }
}

fn value(record: &impl Serialize) -> Value {
    serde_json::to_value(record).unwrap()
}

/// The names of all fields, but those of the experiment's own descriptions.
fn keys(record: &Value, into: &mut BTreeSet<String>) {
    match record {
        Value::Object(fields) => {
            for (name, value) in fields {
                into.insert(name.clone());
                if !["work", "params", "host", "options"].contains(&name.as_str()) {
                    keys(value, into);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
        _ => {}
    }
}
