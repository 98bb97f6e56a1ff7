//! The structural laws as functions of a captured state. Nothing is locked or read here. The laws
//! are numbered in [`super::verify`].

use std::collections::{BTreeMap, BTreeSet};

use super::Look;
use super::look::{BucketLook, TreeLook};
use crate::run::Run;
use crate::space::Layout;
use crate::types::{Extent, RunId, Seq};

/// What is wrong: the law, and how it is broken.
pub(super) type Law = Result<(), String>;

fn must(holds: bool, broken: impl FnOnce() -> String) -> Law {
    if holds { Ok(()) } else { Err(broken()) }
}

/// Laws 1 to 5, for every bucket.
pub(super) fn structure(look: &Look, next_run: RunId) -> Law {
    for tree in &look.trees {
        routing(tree)?;
        for bucket in &tree.buckets {
            let here = |broken: String| format!("bucket {}: {broken}", bucket.lo.escape_ascii());
            base(bucket).map_err(here)?;
            ages(bucket, look.newest).map_err(here)?;
            buffers(bucket, look.newest).map_err(here)?;
            for run in bucket.runs() {
                let meta = run.meta();
                let ours = meta.tree == tree.tree.id && meta.id < next_run;
                must(ours, || {
                    here(format!("law 5: run {} is not of this tree", meta.id.0))
                })?;
            }
        }
    }
    Ok(())
}

/// Law 1.
pub(super) fn routing(tree: &TreeLook) -> Law {
    let name = &tree.tree.name;
    let broken = |what: &str| format!("law 1: tree {name}: {what}");
    let (first, last) = (tree.buckets.first(), tree.buckets.last());
    must(first.is_some_and(|b| b.lo.is_empty()), || {
        broken("no bucket begins at the empty key")
    })?;
    must(last.is_some_and(|b| b.hi.is_none()), || {
        broken("the last bucket has an end")
    })?;
    for pair in tree.buckets.windows(2) {
        let [left, right] = pair else { continue };
        must(left.hi.as_ref() == Some(&right.lo), || {
            broken("two buckets do not adjoin")
        })?;
        must(left.lo < right.lo, || broken("buckets do not ascend"))?;
    }
    let gone = tree.buckets.iter().any(|b| b.retired || b.dropped);
    must(!gone, || broken("a bucket in the routing was given up"))
}

/// Law 2.
pub(super) fn base(bucket: &BucketLook) -> Law {
    for pair in bucket.base.windows(2) {
        let [left, right] = pair else { continue };
        let (left, right) = (left.meta(), right.meta());
        must(left.max_key < right.min_key, || {
            let (left, right) = (left.id.0, right.id.0);
            format!("law 2: runs {left} and {right} of the base are not in order")
        })?;
    }
    for run in bucket.base.iter() {
        let meta = run.meta();
        let begins = bucket.hi.as_deref().is_none_or(|hi| *meta.min_key < *hi);
        let within = begins && *bucket.lo <= *meta.max_key;
        must(within, || {
            format!(
                "law 2: run {} of the base has no key of the bucket",
                meta.id.0
            )
        })?;
    }
    Ok(())
}

/// Law 3.
pub(super) fn ages(bucket: &BucketLook, newest: Seq) -> Law {
    must(bucket.flushed <= newest, || {
        let flushed = bucket.flushed;
        format!("law 3: flushed up to commit {flushed}, the newest is {newest}")
    })?;
    let mut above = Seq::MAX;
    for run in &bucket.deltas {
        let (id, seq) = (run.meta().id.0, run.meta().max_seq);
        if seq == Seq::ANCIENT {
            continue;
        }
        must(seq < above, || {
            format!("law 3: delta {id} holds commit {seq}, a newer delta holds {above} at most")
        })?;
        above = seq;
    }
    for run in bucket.runs() {
        let (id, seq) = (run.meta().id.0, run.meta().max_seq);
        must(seq <= bucket.flushed, || {
            let flushed = bucket.flushed;
            format!("law 3: run {id} holds commit {seq}, but only {flushed} is flushed")
        })?;
    }
    let of_base = bucket.base.iter().map(|run| run.meta().max_seq).max();
    must(of_base.is_none_or(|seq| seq < above), || {
        "law 3: the base is newer than a delta".to_owned()
    })
}

/// Law 4.
pub(super) fn buffers(bucket: &BucketLook, newest: Seq) -> Law {
    let mut flushed = bucket.flushed;
    for (buffer, through) in bucket.frozen.iter().rev() {
        must(0 < buffer.entries, || {
            "law 4: an empty buffer waits for its flush".to_owned()
        })?;
        must(Some(flushed) < buffer.first, || {
            format!(
                "law 4: a buffer holds commit {:?}, flushed is {flushed}",
                buffer.first
            )
        })?;
        must(buffer.last <= Some(*through), || {
            format!(
                "law 4: a buffer holds commit {:?}, frozen at {through}",
                buffer.last
            )
        })?;
        flushed = *through;
    }
    must(flushed <= newest, || {
        format!("law 4: a buffer was frozen at commit {flushed}, the newest is {newest}")
    })?;
    let active = &bucket.active;
    if active.entries == 0 {
        return Ok(());
    }
    must(Some(flushed) < active.first, || {
        format!(
            "law 4: the open buffer holds commit {:?}, {flushed} is below it",
            active.first
        )
    })?;
    must(active.last <= Some(newest), || {
        format!(
            "law 4: the open buffer holds commit {:?}, the newest is {newest}",
            active.last
        )
    })
}

/// Law 6: `named` returns the number of buckets that refer to a run, according to the table of
/// shared runs.
pub(super) fn sharing(look: &Look, named: impl Fn(RunId) -> usize) -> Law {
    for (id, (_, count)) in look.runs() {
        must(named(id) == count, || {
            let said = named(id);
            format!(
                "law 6: {count} buckets name run {}, the table says {said}",
                id.0
            )
        })?;
    }
    Ok(())
}

/// The counters of the memory governor and of the flush queue. The queue is read first, because a
/// flush in progress may end meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryLook {
    /// Memory of buffers that wait for their flush.
    pub(super) waiting: usize,
    /// Memory of buffers that are being flushed.
    pub(super) flushing: usize,
    pub(super) frozen: usize,
    pub(super) buffered: usize,
}

/// Law 7.
pub(super) fn memory(look: &Look, memory: MemoryLook) -> Law {
    let active: usize = look.buckets().map(|b| b.active.bytes).sum();
    let mut seen = BTreeSet::new();
    let frozen = look.buckets().flat_map(|b| &b.frozen);
    let frozen = frozen.filter(|(buffer, _)| seen.insert(buffer.address));
    let frozen: usize = frozen.map(|(buffer, _)| buffer.bytes).sum();
    let (least, most) = (memory.waiting, memory.waiting + memory.flushing);
    must(frozen <= most, || {
        format!("law 7: {frozen} bytes are frozen in buckets, {most} are on their way to a flush")
    })?;
    must((least..=most).contains(&memory.frozen), || {
        let counted = memory.frozen;
        format!("law 7: {counted} bytes are counted as frozen, not {least} to {most}")
    })?;
    let (least, most) = (active + least, active + most);
    must((least..=most).contains(&memory.buffered), || {
        let counted = memory.buffered;
        format!("law 7: {counted} bytes are counted as buffered, not {least} to {most}")
    })
}

/// Law 8: `held` are the bytes of all open runs and runs being written, `image` is where the image
/// of the last checkpoint lies, and `durable` what its runs lie in.
pub(super) fn space(
    look: &Look,
    layout: &Layout,
    held: u64,
    image: Option<Extent>,
    durable: &[(RunId, Extent)],
) -> Law {
    let image_len = image.map_or(0, |extent| extent.len);
    must(layout.used == held + image_len, || {
        let (used, lost) = (layout.used, held + image_len);
        format!("law 8: {used} bytes of the file are given out, {lost} are accounted for")
    })?;
    let sum = |extents: &[Extent]| extents.iter().map(|e| e.len).sum::<u64>();
    let reserve = &layout.reserve;
    let idle = sum(&layout.free) + sum(&layout.pending) + sum(reserve);
    must(layout.data_start + layout.used + idle == layout.end, || {
        format!(
            "law 8: used and {idle} other bytes do not fill the file up to {}",
            layout.end
        )
    })?;
    let mut pieces: Vec<(Extent, String)> = Vec::new();
    let runs = look.runs();
    for (run, _) in runs.values() {
        let meta = run.meta();
        pieces.extend(
            meta.extents
                .iter()
                .map(|e| (*e, format!("run {}", meta.id.0))),
        );
    }
    pieces.extend(image.map(|e| (e, "the image".to_owned())));
    pieces.extend(reserve.iter().map(|e| (*e, "the reserve".to_owned())));
    pieces.extend(layout.free.iter().map(|e| (*e, "free space".to_owned())));
    let durable = durable.iter().filter(|(id, _)| !runs.contains_key(id));
    let pending = layout
        .pending
        .iter()
        .map(|e| (*e, "freed space".to_owned()));
    disjoint(pieces.iter().cloned().chain(pending), layout)?;
    // Extents that the durable image refers to may be pending, but not free.
    let durable = durable.map(|(id, e)| (*e, format!("run {} of the durable image", id.0)));
    disjoint(pieces.into_iter().chain(durable), layout)
}

fn disjoint(pieces: impl Iterator<Item = (Extent, String)>, layout: &Layout) -> Law {
    let mut pieces: Vec<(Extent, String)> = pieces.collect();
    pieces.sort_by_key(|(extent, _)| *extent);
    for (extent, owner) in &pieces {
        let within = layout.data_start <= extent.offset && extent.end() <= layout.end;
        must(within, || {
            format!(
                "law 8: {owner} lies outside of the file, at {}",
                extent.offset
            )
        })?;
    }
    for pair in pieces.windows(2) {
        let [(left, one), (right, other)] = pair else {
            continue;
        };
        must(left.end() <= right.offset, || {
            format!(
                "law 8: {one} and {other} both hold the bytes from {}",
                right.offset
            )
        })?;
    }
    Ok(())
}

/// Law 9: records up to `released` may be missing; recovery starts at `log_from`.
pub(super) fn log(look: &Look, released: Seq, log_from: Seq) -> Law {
    must(released < log_from, || {
        format!("law 9: recovery needs the log from {log_from}, it is gone up to {released}")
    })?;
    // A dropped tree can be read while the store is open, but is never recovered.
    let live = look.trees.iter().filter(|tree| tree.dropped.is_none());
    let buffers = live.flat_map(|tree| &tree.buckets).flat_map(|bucket| {
        let frozen = bucket.frozen.iter().map(|(buffer, _)| buffer);
        frozen.chain([&bucket.active])
    });
    let oldest = buffers.filter_map(|buffer| buffer.first).min();
    must(oldest.is_none_or(|oldest| log_from <= oldest), || {
        format!("law 9: commit {oldest:?} is in memory only, the log is kept from {log_from}")
    })
}

/// Law 10, for runs that both the durable image and buckets refer to.
pub(super) fn durable_runs<'a>(
    durable: impl Iterator<Item = &'a crate::run::RunMeta>,
    runs: &BTreeMap<RunId, (std::sync::Arc<Run>, usize)>,
) -> Law {
    for meta in durable {
        let Some((run, _)) = runs.get(&meta.id) else {
            continue;
        };
        must(run.meta() == meta, || {
            format!(
                "law 10: the image describes run {} in another way",
                meta.id.0
            )
        })?;
    }
    Ok(())
}
