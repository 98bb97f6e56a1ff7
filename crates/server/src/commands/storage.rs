//! Sizes of collections and databases, and integrity checks: `collStats`, `dbStats`, `validate`,
//! `compact`.

use query::{Code, Error, Namespace, Result};
use wire::Builder;

use super::update::integer;
use crate::access::Privilege;
use crate::arguments::Arguments;
use crate::command::{Lane, READS, WRITES};
use crate::request::{Call, failure};
use crate::row::Row;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "collStats",
        coll_stats,
        "Return storage statistics of a collection",
    )
    .aliases(&["collstats"])
    .lane(Lane::Storage)
    .flags(READS)
    .fields(&["scale", "verbose", "numericOnly"])
    .privilege(Privilege::Collection("collStats")),
    Row::new(
        "dbStats",
        db_stats,
        "Return storage statistics of a database",
    )
    .aliases(&["dbstats"])
    .lane(Lane::Storage)
    .flags(READS)
    .fields(&["scale", "freeStorage"])
    .privilege(Privilege::Database("dbStats")),
    Row::new(
        "storageMap",
        storage_map,
        "Return where a collection and its indexes lie in the data file",
    )
    .lane(Lane::Storage)
    .privilege(Privilege::Collection("collStats")),
    Row::new("validate", validate, "Check a collection and its indexes")
        .lane(Lane::Storage)
        .fields(&[
            "full",
            "metadata",
            "background",
            "checkBSONConformance",
            "scandata",
        ])
        .privilege(Privilege::Collection("validate")),
    Row::new("compact", compact, "Return unused space to the file system")
        .lane(Lane::Storage)
        .flags(WRITES)
        .fields(&["force", "freeSpaceTargetMB", "dryRun"])
        .privilege(Privilege::Collection("compact")),
];

fn scale(arguments: &Arguments<'_>) -> Result<i64> {
    match arguments.long("scale")?.unwrap_or(1) {
        scale @ 1.. => Ok(scale),
        _ => Err(Error::bad_value("scale has to be >= 1")),
    }
}

/// Append statistics, with sizes in units of `scale` bytes.
fn answer(reply: &mut Builder, mut stats: bson::Document, scale: i64) {
    docdb::scale_sizes(&mut stats, scale);
    stats.remove("ok");
    stats.remove("scaleFactor");
    failure::append(reply, &stats);
}

fn coll_stats(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let scale = scale(request.arguments())?;
    let mut stats = match request.with_store(|store, _| store.coll_stats(&ns)) {
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND => docdb::missing_coll_stats(),
        stats => stats?,
    };
    stats.remove("ns");
    reply.string("ns", &ns.to_string());
    answer(reply, stats, scale);
    integer(reply, "scaleFactor", scale);
    Ok(())
}

fn storage_map(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let map = request.with_store(|store, _| store.collection_map(&ns))?;
    failure::append(reply, &map);
    Ok(())
}

fn db_stats(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let arguments = request.arguments();
    let scale = scale(arguments)?;
    let free = arguments.is_on("freeStorage")?;
    let mut stats = request.server.store.db_stats(request.database(), free);
    // An in-memory engine has no files, and its path may not exist.
    if let Ok(whole) = vfs::file_system(&request.server.config.db_path) {
        #[expect(clippy::cast_precision_loss, reason = "an approximate statistic")]
        let size = |bytes: u64| bytes as f64;
        stats.insert("fsUsedSize", size(whole.used_bytes));
        stats.insert("fsTotalSize", size(whole.total_bytes));
    }
    answer(reply, stats, scale);
    reply.long("scaleFactor", scale);
    Ok(())
}

fn validate(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let arguments = request.arguments();
    if arguments.is_on("background")? && arguments.is_on("full")? {
        return Err(Error::new(
            Code::INVALID_OPTIONS,
            "Running the validate command with both { background: true } and { full: true } is not \
             supported.",
        ));
    }
    let report = request.with_store(|store, op| store.validate(op, &ns))?;
    failure::append(reply, &report);
    Ok(())
}

/// Bytes that compaction of a collection may free: allocated to its trees but not used.
///
/// # Errors
/// `CommandNotSupported` when the engine cannot say.
fn spare(request: &Call<'_>, ns: &Namespace) -> Result<i64> {
    let stats = request.with_store(|store, _| store.coll_stats(ns))?;
    let engine = request.server.store.engine().name();
    let indexes = stats.get_document("indexDetails").ok();
    let indexes = indexes.into_iter().flat_map(|indexes| indexes.values());
    let trees = indexes.filter_map(bson::Bson::as_document);
    let mut spare = 0_i64;
    for tree in trees.chain(stats.get_document(engine).ok()) {
        let (Ok(allocated), Ok(live)) = (tree.get_i64("allocatedBytes"), tree.get_i64("liveBytes"))
        else {
            let message = format!("the engine {engine} cannot say how much compact would free");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
        };
        spare = spare.saturating_add(allocated.saturating_sub(live).max(0));
    }
    Ok(spare)
}

fn compact(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    let ns = request.namespace()?;
    let arguments = request.arguments();
    let target = arguments.long("freeSpaceTargetMB")?;
    if target.is_some_and(|target| target < 1) {
        let message = "BSON field 'freeSpaceTargetMB' value must be >= 1";
        return Err(Error::bad_value(message));
    }
    if arguments.is_on("dryRun")? {
        reply.long("estimatedBytesFreed", spare(request, &ns)?);
        return Ok(());
    }
    if let Some(target) = target
        && spare(request, &ns)? < target.saturating_mul(1 << 20)
    {
        reply.long("bytesFreed", 0);
        return Ok(());
    }
    let freed = request.with_store(|store, op| store.compact(op, &ns))?;
    reply.long("bytesFreed", freed);
    Ok(())
}
