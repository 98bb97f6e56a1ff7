//! Stages that report statistics of a collection.

use bson::{Bson, Document, doc};
use query::number::Number;
use query::stage::Statistics;
use query::{Code, Error, Namespace, Result};

use super::host::Report;
use crate::stats::{fitting, scale_sizes};
use crate::store::Store;

/// `$collStats`.
pub(super) fn coll_stats(
    store: &Store,
    ns: &Namespace,
    options: &Document,
    asked: Option<Report<'_>>,
) -> Result<Vec<Document>> {
    let mut report = doc! {
        "ns": ns.to_string(),
        "localTime": bson::DateTime::from_millis(
            i64::try_from(stdx::time::wall().as_millis()).unwrap_or(i64::MAX),
        ),
    };
    for (name, value) in options {
        match name.as_str() {
            "latencyStats" => {
                report.insert("latencyStats", latencies(asked, ns, options)?);
            }
            "storageStats" => {
                report.insert("storageStats", storage(store, ns, value)?);
            }
            "count" => {
                let collection = store.existing(ns).map_err(|e| unable(e, "count", ns))?;
                report.insert("count", fitting(collection.count()));
            }
            "queryExecStats" => {
                report.insert(
                    "queryExecStats",
                    doc! { "collectionScans": { "total": 0_i64, "nonTailable": 0_i64 } },
                );
            }
            other => {
                return Err(Error::new(
                    Code::IDL_UNKNOWN_FIELD,
                    format!("BSON field '$collStats.{other}' is an unknown field."),
                ));
            }
        }
    }
    Ok(vec![report])
}

/// The error for a missing collection, with the requested statistic.
fn unable(error: Error, what: &str, ns: &Namespace) -> Error {
    if error.code != Code::NAMESPACE_NOT_FOUND {
        return error;
    }
    Error::new(error.code, format!("Collection [{ns}] not found.")).within(format_args!(
        "Unable to retrieve {what} in $collStats stage"
    ))
}

/// `$indexStats`: statistics of the store, and the host name, which the server provides.
pub(super) fn index_stats(
    store: &Store,
    ns: &Namespace,
    asked: Option<Report<'_>>,
) -> Result<Vec<Document>> {
    let mut rows = match store.index_stats(ns) {
        // A collection that is missing has no indexes.
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND => return Ok(Vec::new()),
        rows => rows?,
    };
    let reported = match asked {
        Some(report) => report(ns, &Statistics::IndexStats)?,
        None => Vec::new(),
    };
    for row in &mut rows {
        row.extend(
            reported
                .iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone())),
        );
    }
    Ok(rows)
}

/// Latencies of commands, as reported by the server.
fn latencies(asked: Option<Report<'_>>, ns: &Namespace, options: &Document) -> Result<Document> {
    let reported = match asked {
        Some(report) => report(ns, &Statistics::CollStats(options.clone()))?,
        None => Vec::new(),
    };
    let zero = || doc! { "latency": 0_i64, "ops": 0_i64 };
    let none = || doc! { "reads": zero(), "writes": zero(), "commands": zero() };
    Ok(reported.into_iter().next().unwrap_or_else(none))
}

/// The sizes, divided by the scale.
fn storage(store: &Store, ns: &Namespace, options: &Bson) -> Result<Document> {
    let scale = match options
        .as_document()
        .and_then(|options| options.get("scale"))
    {
        None | Some(Bson::Null) => 1,
        Some(scale) => match Number::from_bson(scale) {
            Some(scale) => scale.to_i64_clamped(),
            None => return Err(Error::type_mismatch("'scale' must be a number")),
        },
    };
    if scale < 1 {
        return Err(Error::bad_value("scale has to be >= 1"));
    }
    let stats = store
        .coll_stats(ns)
        .map_err(|e| unable(e, "storageStats", ns))?;
    let mut stats = stats;
    stats.remove("ns");
    scale_sizes(&mut stats, scale);
    stats.insert("scaleFactor", i32::try_from(scale).unwrap_or(i32::MAX));
    Ok(stats)
}

/// `$planCacheStats`.
pub(super) fn plan_cache(store: &Store, ns: &Namespace) -> Result<Vec<Document>> {
    let collection = store.existing(ns)?;
    let mut report = Vec::new();
    for (shape, choice) in collection.plans().list() {
        report.push(doc! {
            "planCacheKey": shape,
            "isActive": true,
            "works": i64::try_from(choice.works).unwrap_or(i64::MAX),
            "cachedPlan": { "stage": choice.plan },
        });
    }
    Ok(report)
}

impl Store {
    /// Clear the cached plans of a collection; returns their number.
    pub fn clear_plans(&self, ns: &Namespace) -> usize {
        self.collection(ns)
            .map_or(0, |collection| collection.plans().clear())
    }
}
