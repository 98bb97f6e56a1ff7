//! The plans that are remembered: `planCacheClear`, and the filters of indexes, of which there are
//! none.

use query::Result;
use wire::Builder;

use crate::dispatch::Call;
use crate::dispatch::row::{Lane, Privilege, Row};

const SHAPE: &[&str] = &["query", "sort", "projection", "collation"];

pub(super) const ROWS: &[Row] = &[
    Row {
        lane: Lane::Reserved,
        fields: SHAPE,
        privilege: Privilege::Collection("planCacheWrite"),
        ..Row::new(
            "planCacheClear",
            clear,
            "Clear the plan cache of a collection",
        )
    },
    Row {
        privilege: Privilege::Collection("planCacheIndexFilter"),
        ..Row::new(
            "planCacheListFilters",
            list_filters,
            "List index filters (index filters are not supported)",
        )
    },
    Row {
        fields: SHAPE,
        privilege: Privilege::Collection("planCacheIndexFilter"),
        ..Row::new(
            "planCacheClearFilters",
            |call, _| call.namespace().map(|_| ()),
            "Drop index filters (index filters are not supported)",
        )
    },
];

/// Plans of one shape are forgotten with all others: they come back with the next queries.
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
