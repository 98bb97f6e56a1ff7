//! The statistics of `serverStatus` under the names that mongodb_exporter gives them, for
//! dashboards that were made for it.
//!
//! A number at `serverStatus.network.bytesIn` is `mongodb_ss_network_bytesIn`. Below some sections
//! the last name is the value of a label instead ([`LABELS`]): `opcounters.insert` is
//! `mongodb_ss_opcounters{legacy_op_type="insert"}`. The section of the engine is left out, because
//! its metrics exist under names of this server.
//!
//! - M3. Names and values of labels come from tables of the server, never from clients, so that the
//!   number of samples is bounded.

use std::collections::BTreeMap;

use bson::{Bson, Document};

use super::float::float;
use super::text::{Kind, Text};
use crate::commands::{status_document, system_document};
use crate::server::Server;
use crate::version::MONGODB;

/// Sections whose fields are values of a label, with the name of the label.
const LABELS: &[(&str, &str)] = &[
    ("ss.asserts", "assert_type"),
    ("ss.connections", "conn_type"),
    ("ss.globalLock.currentQueue", "count_type"),
    ("ss.globalLock.activeClients", "count_type"),
    ("ss.metrics.cursor.open", "csr_type"),
    ("ss.metrics.document", "doc_op_type"),
    ("ss.opcounters", "legacy_op_type"),
    ("ss.opcountersRepl", "legacy_op_type"),
];

/// Sections of which each field is a section with the same fields: earlier versions of the exporter
/// had its name in the metric's, later ones have it in a label.
const GROUPS: &[(&str, &str)] = &[
    ("ss.opLatencies", "op_type"),
    ("ss.metrics.commands", "cmd_name"),
];

/// A sample: a label, where there is one, and the value.
type Sample = (Option<(&'static str, String)>, f64);

/// Samples by the name of their metric.
#[derive(Default)]
struct Found(BTreeMap<String, Vec<Sample>>);

pub(super) fn append(server: &Server, text: &mut Text) {
    let help = "Whether the server answers, always 1.";
    text.foreign("mongodb_up", Kind::Gauge, help)
        .sample(&[], 1.0);
    let help = "The version whose protocol the server speaks, always 1.";
    text.foreign("mongodb_version_info", Kind::Gauge, help)
        .sample(&[("mongodb", MONGODB)], 1.0);
    let mut found = Found::default();
    found.section("ss", &status_document(server));
    found.section("sys", &system_document());
    for (name, samples) in found.0 {
        text.foreign(name, Kind::Untyped, "As in mongodb_exporter.");
        for (label, value) in samples {
            let label = label.as_ref().map(|(name, value)| (*name, value.as_str()));
            text.sample(label.as_slice(), value);
        }
    }
}

impl Found {
    fn section(&mut self, path: &str, section: &Document) {
        let label = LABELS.iter().find(|(of, _)| *of == path);
        let group = GROUPS.iter().find(|(of, _)| *of == path);
        for (name, value) in section {
            if let Some(value) = number(value) {
                match label {
                    Some((_, label)) => self.add(path, Some((label, name.clone())), value),
                    None => self.add(&format!("{path}.{name}"), None, value),
                }
            }
            let Bson::Document(below) = value else {
                continue;
            };
            let Some((_, group)) = group else {
                self.section(&format!("{path}.{name}"), below);
                continue;
            };
            for (field, value) in below {
                if let Some(value) = number(value) {
                    self.add(&format!("{path}.{name}.{field}"), None, value);
                    let label = Some((*group, name.clone()));
                    self.add(&format!("{path}.{field}"), label, value);
                }
            }
        }
    }

    fn add(&mut self, path: &str, label: Option<(&'static str, String)>, value: f64) {
        self.0.entry(metric(path)).or_default().push((label, value));
    }
}

/// The name of a metric: letters, digits and single underscores.
fn metric(path: &str) -> String {
    let mut name = "mongodb".to_owned();
    for part in path.split(|c: char| !c.is_ascii_alphanumeric()) {
        if !part.is_empty() {
            name.push('_');
            name.push_str(part);
        }
    }
    name
}

/// A value as a number; dates are milliseconds since 1970.
fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Boolean(is) => Some(f64::from(u8::from(*is))),
        Bson::Int32(n) => Some(f64::from(*n)),
        Bson::Int64(n) => Some(float(*n)),
        Bson::Double(n) => Some(*n),
        Bson::DateTime(date) => Some(float(date.timestamp_millis())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    /// M3: names come from the sections, and a section of the table gives its metric a label.
    #[test]
    fn names_are_those_of_the_exporter() {
        let mut found = Found::default();
        let status = doc! {
            "opcounters": {"insert": 2_i64},
            "network": {"bytesIn": 3_i32, "note": "a text"},
            "opLatencies": {"reads": {"latency": 5_i64}},
            "repl": {"ismaster": true, "hosts": ["a"]},
            "odd  name-(x)": 1.5,
        };
        found.section("ss", &status);
        let shown: Vec<String> = found.0.iter().map(|of| format!("{of:?}")).collect();
        assert_eq!(
            shown,
            [
                r#"("mongodb_ss_network_bytesIn", [(None, 3.0)])"#,
                r#"("mongodb_ss_odd_name_x", [(None, 1.5)])"#,
                r#"("mongodb_ss_opLatencies_latency", [(Some(("op_type", "reads")), 5.0)])"#,
                r#"("mongodb_ss_opLatencies_reads_latency", [(None, 5.0)])"#,
                r#"("mongodb_ss_opcounters", [(Some(("legacy_op_type", "insert")), 2.0)])"#,
                r#"("mongodb_ss_repl_ismaster", [(None, 1.0)])"#,
            ]
        );
    }
}
