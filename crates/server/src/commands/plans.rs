//! The plan cache: `planCacheClear`, and index filters, which are not supported.

use query::Result;
use wire::Builder;

use crate::access::Privilege;
use crate::command::Lane;
use crate::request::Call;
use crate::row::Row;

const SHAPE: &[&str] = &["query", "sort", "projection", "collation"];

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "planCacheClear",
        clear,
        "Clear the plan cache of a collection",
    )
    .lane(Lane::Reserved)
    .fields(SHAPE)
    .privilege(Privilege::Collection("planCacheWrite")),
    Row::new(
        "planCacheListFilters",
        list_filters,
        "List index filters (index filters are not supported)",
    )
    .privilege(Privilege::Collection("planCacheIndexFilter")),
    Row::new(
        "planCacheClearFilters",
        |call, _| call.namespace().map(|_| ()),
        "Drop index filters (index filters are not supported)",
    )
    .fields(SHAPE)
    .privilege(Privilege::Collection("planCacheIndexFilter")),
];

/// The whole cache is cleared, whichever shape the command names: later queries fill it again.
fn clear(call: &Call<'_>, _: &mut Builder) -> Result<()> {
    let ns = call.namespace()?;
    call.server.store.clear_plans(&ns);
    Ok(())
}

fn list_filters(call: &Call<'_>, reply: &mut Builder) -> Result<()> {
    call.namespace()?;
    reply.open_array("filters").close();
    Ok(())
}
