//! The check of the whole store, while it works.
//!
//! The laws:
//! 1. The routing of a tree covers all keys: the first bucket begins at the empty key, each ends
//!    where the next begins, the last has no end; no bucket in it was given up.
//! 2. The runs of a base are in key order, do not overlap, and hold keys of their bucket.
//! 3. No run holds a commit above its bucket's `flushed`, nor that above the newest commit; of two
//!    deltas the newer holds the newer commits, and no base is newer than a delta above it.
//! 4. Frozen buffers are in the order they were frozen: each begins after what was flushed or
//!    frozen before it and ends at or before the commit it was frozen at; the open one comes last.
//! 5. Every run is of the tree that names it, and its number was given.
//! 6. The table of shared runs knows how many buckets name each run.
//! 7. The memory counted as buffered and as frozen is that of the buffers that buckets name, but
//!    for buffers whose flush is ending; every frozen buffer is on its way to a flush.
//! 8. Every byte of the data file has one owner: a run, the image, the reserve, free space, or
//!    space freed by the next checkpoint. What is given out is accounted for by open runs, runs
//!    being written and the image. Nothing that the durable image names is free.
//! 9. The log holds every commit that is in memory only, but for dropped trees, and what recovery
//!    asks for.
//! 10. The image of the last durable checkpoint can be read, and describes the runs as they are.
//! 11. Readers see the newest commit.
//! 12. Inside each run everything is as [`crate::run::Run::verify`] asks: checksums, order, counts,
//!     least and greatest key, fences, filter.
//!
//! Laws 1 to 9 and 11 are asked of one moment, under the locks of the checkpoint and of commits;
//! the pages are read afterwards, outside of all locks, from runs that the look holds. Commits wait
//! for pointer work only: about 200 ns a bucket.

use super::laws::{self, Law, MemoryLook};
use super::look::Look;
use crate::checkpoint::{self, Superblock};
use crate::db::Core;
use crate::error::{Error, Result};
use crate::run::RunMeta;
use crate::space::Layout;
use crate::stats::Report;
use crate::types::{Extent, RunId, Seq};

/// The state captured at one moment.
struct Seen {
    look: Look,
    visible: Seq,
    next_run: RunId,
    memory: MemoryLook,
    sharing: Law,
    held: u64,
    layout: Layout,
    released: Option<Seq>,
}

impl Core {
    /// Check everything.
    ///
    /// # Errors
    /// `Corrupt`: the first law that is broken, or the first damage; `Io`, `Closed`.
    pub(crate) fn verify(&self) -> Result<Report> {
        self.health.check_open()?;
        let mut report = Report::default();
        let look = self.verify_structure()?;
        report.trees = look.trees.len() as u64;
        report.buckets = look.buckets().count() as u64;
        for (run, _) in look.runs().into_values() {
            self.health.check_open()?;
            run.verify()?;
            let meta = run.meta();
            report.runs += 1;
            report.pages += u64::from(meta.pages) + 1 + u64::from(meta.filter_len != 0);
            report.entries += meta.entries;
            report.bytes += meta.bytes;
        }
        assert!(report.runs <= report.entries, "a run has an entry");
        Ok(report)
    }

    /// Laws 1 to 11.
    fn verify_structure(&self) -> Result<Look> {
        let checkpoint = self.checkpoints.hold();
        let superblock = checkpoint.superblock().clone();
        let durable = self.durable_runs(&superblock)?;
        let seen = self.see();
        // After a failed write of a superblock it is unknown which image is the newest; both stay.
        let certain = !self.health.is_poisoned();
        drop(checkpoint);
        check(&superblock, &durable, &seen, certain).map_err(|broken| {
            let message = format!("{broken}; this is a bug of the engine, please report it");
            Error::corrupt(message).with_path(&self.directory)
        })?;
        Ok(seen.look)
    }

    /// The runs of the durable image (law 10). The caller holds the checkpoint lock.
    fn durable_runs(&self, superblock: &Superblock) -> Result<Vec<RunMeta>> {
        let path = self.data_path();
        let stored = checkpoint::read_newest(self.data_file(&path))?;
        if stored != *superblock && !self.health.is_poisoned() {
            let message = format!(
                "law 10: the superblock in the file is of checkpoint {}, not {}",
                stored.number, superblock.number
            );
            return Err(Error::corrupt(message).with_path(&path));
        }
        let Some(place) = superblock.image else {
            return Ok(Vec::new());
        };
        let image = checkpoint::read_image(self.data_file(&path), superblock, place)?;
        Ok(image.runs)
    }

    fn see(&self) -> Seen {
        // Not during a bulk commit, which readers do not see yet.
        let committer = self.committer();
        let look = Look::at(self, &committer);
        let (waiting, flushing) = self.queue.bytes();
        let memory = MemoryLook {
            waiting,
            flushing,
            frozen: self.memory.frozen(),
            buffered: self.memory.buffered(),
        };
        let (held, layout) = self.runs.accounts();
        Seen {
            visible: self.snapshots.visible(),
            next_run: RunId(self.peek_run()),
            sharing: laws::sharing(&look, |run| self.sharing.names(run)),
            released: self.log.as_ref().map(crate::log::Log::released),
            memory,
            held,
            layout,
            look,
        }
    }
}

fn check(superblock: &Superblock, durable: &[RunMeta], seen: &Seen, certain: bool) -> Law {
    let look = &seen.look;
    laws::structure(look, seen.next_run)?;
    seen.sharing.clone()?;
    laws::memory(look, seen.memory)?;
    if certain {
        let image = superblock.image.map(|place| place.extent());
        let extents: Vec<(RunId, Extent)> = durable
            .iter()
            .flat_map(|meta| meta.extents.iter().map(|extent| (meta.id, *extent)))
            .collect();
        laws::space(look, &seen.layout, seen.held, image, &extents)?;
        laws::durable_runs(durable.iter(), &look.runs())?;
    }
    if let Some(released) = seen.released {
        laws::log(look, released, superblock.log_from)?;
    }
    if seen.visible != look.newest {
        let (visible, newest) = (seen.visible, look.newest);
        return Err(format!(
            "law 11: readers see commit {visible}, the newest is {newest}"
        ));
    }
    Ok(())
}
