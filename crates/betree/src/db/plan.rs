//! Where the operations of a commit go: worked out before the commit lock is taken, checked under
//! it. Operations are grouped by bucket, so that each buffer is locked once for each commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::core::Core;
use crate::error::Result;
use crate::tree::{Bucket, Routing, Tree};
use crate::types::{Change, Op, Ops, Seq, TreeId};

/// Minimum number of operations for which grouping saves more than it costs.
const GROUP_FROM: usize = 32;

struct Target {
    tree: Arc<Tree>,
    routing: Arc<Routing>,
    /// Index of the first slot of its buckets.
    first_slot: u32,
}

#[derive(Clone, Copy)]
struct Step<'b> {
    slot: u32,
    target: u32,
    op: Op,
    key: &'b [u8],
    value: &'b [u8],
}

/// The operations of a batch with their target buckets.
pub(crate) struct Plan<'b> {
    targets: Vec<Target>,
    steps: Vec<Step<'b>>,
    slots: u32,
}

impl<'b> Plan<'b> {
    /// Plan about `count` changes, none of them a range delete.
    ///
    /// # Errors
    /// `Invalid` for a dropped tree.
    pub(crate) fn new(core: &Core, changes: Ops<'b>, count: usize) -> Result<Plan<'b>> {
        let mut plan = Plan {
            targets: Vec::with_capacity(4),
            steps: Vec::with_capacity(count),
            slots: 0,
        };
        let mut last = 0;
        for change in changes {
            let (tree, op, key, value) = match change {
                Change::Put { tree, key, value } => (tree, Op::Put, key, value),
                Change::Delete { tree, key } => (tree, Op::Delete, key, &[][..]),
                Change::DeleteRange { .. } => unreachable!("range deletes are expanded before"),
            };
            last = plan.target(core, tree, last)?;
            let target = plan.targets.get(last).expect("target gives an index");
            let bucket = u32::try_from(target.routing.find(key)).expect("buckets fit in memory");
            plan.steps.push(Step {
                slot: target.first_slot + bucket,
                target: u32::try_from(last).expect("fewer trees than that"),
                op,
                key,
                value,
            });
        }
        plan.group();
        Ok(plan)
    }

    /// Number of buckets that it writes to.
    pub(crate) fn buckets(&self) -> usize {
        let slots: BTreeSet<u32> = self.steps.iter().map(|step| step.slot).collect();
        slots.len()
    }

    /// The index of the target for `tree`; most operations have the same target as the previous
    /// one, or the next.
    fn target(&mut self, core: &Core, tree: TreeId, last: usize) -> Result<usize> {
        if self.targets.get(last).is_some_and(|t| t.tree.id == tree) {
            return Ok(last);
        }
        if let Some(index) = self.targets.iter().position(|t| t.tree.id == tree) {
            return Ok(index);
        }
        let tree = core.catalog.tree(tree)?;
        let routing = tree.routing();
        let buckets = u32::try_from(routing.buckets().len()).expect("buckets fit in memory");
        self.targets.push(Target {
            tree,
            routing,
            first_slot: self.slots,
        });
        self.slots += buckets;
        Ok(self.targets.len() - 1)
    }

    /// Order the steps by bucket, keeping the order within each.
    fn group(&mut self) {
        if self.steps.len() < GROUP_FROM || self.steps.len() < self.slots as usize / 4 {
            return;
        }
        let mut starts = vec![0_u32; self.slots as usize + 1];
        for step in &self.steps {
            if let Some(count) = starts.get_mut(step.slot as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let Some(&any) = self.steps.first() else {
            return;
        };
        let mut grouped = vec![any; self.steps.len()];
        for step in &self.steps {
            let start = starts
                .get_mut(step.slot as usize)
                .expect("a start for each slot");
            *grouped
                .get_mut(*start as usize)
                .expect("starts are below the number of steps") = *step;
            *start += 1;
        }
        assert_eq!(grouped.len(), sum as usize, "every step has a slot");
        debug_assert!(
            grouped.is_sorted_by_key(|step| step.slot),
            "the steps of a bucket stand together"
        );
        self.steps = grouped;
    }

    /// Whether the planned buckets are still current, under the commit lock.
    ///
    /// # Errors
    /// `Invalid` when a tree was dropped meanwhile.
    pub(crate) fn is_current(&self, core: &Core) -> Result<bool> {
        for target in &self.targets {
            let tree = core.catalog.tree(target.tree.id)?;
            if !Arc::ptr_eq(&tree.routing(), &target.routing) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Put the operations into the buffers of their buckets as commit `seq`. Under the commit lock,
    /// with a current plan. `visit` gets each bucket with the bytes its buffer has now.
    pub(crate) fn apply(
        &self,
        core: &Core,
        seq: Seq,
        mut visit: impl FnMut(&Arc<Tree>, &Arc<Bucket>, usize),
    ) {
        let same = |a: &Step<'_>, b: &Step<'_>| a.slot == b.slot;
        for group in self.steps.chunk_by(same) {
            let Some(first) = group.first() else { continue };
            let target = self
                .targets
                .get(first.target as usize)
                .expect("a target for each step");
            let index = (first.slot - target.first_slot) as usize;
            let bucket = target
                .routing
                .buckets()
                .get(index)
                .expect("planned with this routing");
            let buffer = bucket.active();
            let before = buffer.bytes();
            let mut guard = buffer.lock();
            for step in group {
                debug_assert!(bucket.holds(step.key), "the routing is right");
                guard.push(seq, step.op, step.key, step.value);
            }
            drop(guard);
            let after = buffer.bytes();
            core.memory.grow(after - before);
            visit(&target.tree, bucket, after);
        }
    }
}
