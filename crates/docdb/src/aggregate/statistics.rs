//! What stages report of a collection.

use bson::{Bson, Document, doc};
use query::stage::Statistics;
use query::{Code, Error, Namespace, Result};

use super::host::Report;
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
                report.insert("latencyStats", latencies(asked, options)?);
            }
            "storageStats" => {
                report.insert("storageStats", storage(store, ns, value)?);
            }
            "count" => {
                let collection = store.existing(ns)?;
                report.insert("count", collection.count());
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

/// How long commands took, which who runs them knows.
fn latencies(asked: Option<Report<'_>>, options: &Document) -> Result<Document> {
    let told = match asked {
        Some(report) => report(&Statistics::CollStats(options.clone()))?,
        None => Vec::new(),
    };
    let zero = || doc! { "latency": 0_i64, "ops": 0_i64 };
    let none = || doc! { "reads": zero(), "writes": zero(), "commands": zero() };
    Ok(told.into_iter().next().unwrap_or_else(none))
}

/// The sizes, divided by the scale.
fn storage(store: &Store, ns: &Namespace, options: &Bson) -> Result<Document> {
    const SIZES: [&str; 6] = [
        "size",
        "storageSize",
        "freeStorageSize",
        "totalIndexSize",
        "totalSize",
        "maxSize",
    ];
    let scale = match options {
        Bson::Document(options) => options.get("scale").and_then(Bson::as_i32).unwrap_or(1),
        _ => 1,
    };
    let mut stats = store.coll_stats(ns)?;
    stats.remove("ns");
    let scale = i64::from(scale.max(1));
    for name in SIZES {
        if let Some(Bson::Int64(size)) = stats.get_mut(name) {
            *size /= scale;
        }
    }
    stats.insert("scaleFactor", i32::try_from(scale).unwrap_or(1));
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
    /// Forget the plans chosen for queries of a collection; says how many there were.
    pub fn clear_plans(&self, ns: &Namespace) -> usize {
        self.collection(ns)
            .map_or(0, |collection| collection.plans().clear())
    }
}
