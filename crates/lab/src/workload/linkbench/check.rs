//! Checks that every count equals the number of visible links. Nodes are compared in groups, so
//! that the check needs little memory whatever the size of the graph.

use std::collections::BTreeMap;

use super::{COUNT, LINK, NODE, VISIBLE};
use crate::workload::program::Checked;
use crate::workload::table::{Value, at};
use crate::workload::tables::{Answer, By, Range, TableClient};

/// Number of nodes that are compared at once.
const NODES: i64 = 10_000;

pub(super) fn check(client: &mut dyn TableClient) -> Answer<Checked> {
    let mut checked = Checked::default();
    checked.rows += client.range(&Range::by_key(NODE, &[]), &mut |_| true)?;
    let mut high = 0;
    for table in [NODE, LINK, COUNT] {
        client.range(&Range::by_key(table, &[]).backward().limit(1), &mut |row| {
            high = high.max(at(row, 0).int());
            true
        })?;
    }
    let mut low = 0;
    while low <= high {
        some(client, low, low + NODES - 1, &mut checked)?;
        low += NODES;
    }
    Ok(checked)
}

fn some(client: &mut dyn TableClient, low: i64, high: i64, checked: &mut Checked) -> Answer<()> {
    let (low, high) = (Value::Int(low), Value::Int(high));
    let mut links: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    let by_key = Range::by_key(LINK, &[]).between(&low, &high);
    let rows = client.range(&by_key, &mut |row| {
        let visible = i64::from(at(row, 3).int() == VISIBLE);
        *links
            .entry((at(row, 0).int(), at(row, 1).int()))
            .or_default() += visible;
        true
    })?;
    // Reading by the index must give the same sums.
    let mut by_index = links.clone();
    let entries = Range {
        by: By::Index(0),
        ..by_key
    };
    let entries = client.range(&entries.covered(), &mut |row| {
        let visible = i64::from(at(row, 3).int() == VISIBLE);
        *by_index
            .entry((at(row, 0).int(), at(row, 1).int()))
            .or_default() -= visible;
        true
    })?;
    if entries != rows || by_index.values().any(|n| *n != 0) {
        checked.fault(format!(
            "{rows} links of nodes {low:?} to {high:?}, and {entries} entries of their index"
        ));
    }
    let mut counts = 0;
    let all = Range::by_key(COUNT, &[]).between(&low, &high);
    client.range(&all, &mut |row| {
        counts += 1;
        let (id, kind, stored) = (at(row, 0).int(), at(row, 1).int(), at(row, 2).int());
        let there = links.remove(&(id, kind)).unwrap_or(0);
        if there != stored {
            checked.fault(format!(
                "node {id} has {there} visible links of type {kind}, its count is {stored}"
            ));
        }
        true
    })?;
    for ((id, kind), there) in links {
        if there != 0 {
            checked.fault(format!(
                "node {id} has {there} visible links of type {kind} and no count"
            ));
        }
    }
    checked.rows += rows + counts;
    Ok(())
}
