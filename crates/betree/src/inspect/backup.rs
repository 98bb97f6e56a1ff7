//! Hot backup: a copy of the store as of one commit, taken while it is written to.
//!
//! 1. A cut, as a store without a log makes for its checkpoints: all buffers are frozen at one
//!    commit and flushed; later ones wait meanwhile. Then the runs hold that commit and nothing
//!    later, and a look takes hold of them. Commits wait for pointer work only, unless buffer
//!    memory fills up while the cut is flushed.
//! 2. The runs are copied. They are immutable, and the look keeps their extents from being reused:
//!    what it costs the store is the space that would have been freed meanwhile. Checkpoints,
//!    flushes and merges continue.
//! 3. The copy lays the runs end to end, then an image that describes them so, and is synced; then
//!    the superblock, synced; then the file gets its name. A copy needs no log.
//!
//! A copy can also be passed to the caller piece by piece, from the first byte to the last: then
//! the superblock comes first, and the caller decides when the copy counts as complete. Runs that
//! the caller has from an earlier copy are not read.
//!
//! - I1. The copy holds exactly the commits up to the cut: the newest at the call or a later one.
//! - I2. A directory in which this did not end well holds no data file.
//! - I3. The copy is a store of its own: another identity, so that no log of one serves the other.
//! - I4. Runs with one id have the same bytes, in all copies of a store. A run's number is given
//!   once: a store that is opened continues behind a random gap (`db::open`), so that the numbers
//!   of runs that a crash lost, or that an older copy of the directory does not have, are not given
//!   again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use vfs::{File, Open, Site};

use super::Look;
use super::look::{BucketLook, TreeLook};
use crate::checkpoint::{
    BucketImage, DATA_START, Image, ImagePlace, Superblock, TreeFlags, TreeImage, seal_image,
};
use crate::db::{Core, DATA_FILE, Reader};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::{KEY_FILE, Keys};
use crate::run::{Run, RunMeta};
use crate::types::{BackupNext, BackupPart, Extent, RunId, Seq, UNIT};

/// Bytes copied at once; the caller is asked after each piece.
const PIECE: u64 = 1 << 20;

/// Receives the bytes copied and the total, and returns whether to continue.
type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Receives the next part of a copy.
type Receive<'a> = &'a mut dyn FnMut(BackupPart<'_>) -> BackupNext;

/// Gets bytes with their offset in the copy, and returns whether to continue.
type Take<'a> = &'a mut dyn FnMut(&[u8], u64) -> Result<bool>;

/// The content of a copy.
struct Plan {
    /// In the order of their offsets in the copy.
    runs: Vec<Arc<Run>>,
    superblock: Superblock,
    image: Vec<u8>,
    place: ImagePlace,
    /// The keys of an encrypted copy.
    keys: Option<Keys>,
}

impl Plan {
    /// The bytes before the data: one copy of the superblock in each slot.
    fn slots(&self) -> Result<Vec<u8>> {
        let slots = self.superblock.slot(self.keys.as_ref())?.repeat(4);
        assert_eq!(
            slots.len() as u64,
            DATA_START,
            "data begin behind the slots"
        );
        Ok(slots)
    }
}

impl Core {
    /// Copy the store to `directory`, which is empty or missing. Returns false if `watch` stopped
    /// it.
    ///
    /// # Errors
    /// `Exists`: the directory is not empty. `Full`, `Io`; `Conflict`, when the age limit of
    /// snapshots passed during the cut.
    pub(crate) fn backup(self: &Arc<Self>, directory: &Path, watch: Watch<'_>) -> Result<bool> {
        self.health.check_writable()?;
        let io = |operation| move |e| Error::io(operation, directory, e);
        let names = self.vfs.list(directory).map_err(io("list the directory"))?;
        if let Some(name) = names.first() {
            let message = format!("a backup needs an empty directory, this one holds {name:?}");
            return Err(Error::new(ErrorKind::Exists, message).with_path(directory));
        }
        let create = Site("backup.create_dir");
        self.vfs
            .create_dir(create, directory)
            .map_err(io("create the directory"))?;
        let plan = self.plan_backup()?;
        let part = directory.join(format!("{DATA_FILE}.new"));
        let result = self.copy(&plan, &part, watch);
        if let Ok(true) = result {
            let name = directory.join(DATA_FILE);
            return self.give_name(&part, &name, directory).map(|()| true);
        }
        // I2. What cannot be removed is not taken for a store either.
        let _ = self.vfs.remove(Site("backup.remove"), &part);
        if plan.keys.is_some() {
            let keys = directory.join(KEY_FILE);
            let _ = self.vfs.remove(Site("backup.remove_keys"), &keys);
        }
        result
    }

    /// Pass the copy to `receive`, part by part. Returns false if `receive` stopped it.
    ///
    /// # Errors
    /// `Io`, `Closed`; `Conflict`, when the age limit of snapshots passed during the cut.
    pub(crate) fn stream_backup(self: &Arc<Self>, receive: Receive<'_>) -> Result<bool> {
        self.health.check_writable()?;
        let plan = self.plan_backup()?;
        let total = plan.place.extent().end();
        let key_file = plan.keys.as_ref().map(Keys::encode).transpose()?;
        let begin = BackupPart::Begin {
            data_bytes: total,
            key_file: key_file.as_deref(),
        };
        let slots = plan.slots()?;
        for part in [begin, BackupPart::Data(&slots)] {
            if receive(part) == BackupNext::Stop {
                return Ok(false);
            }
        }
        let mut done = DATA_START;
        for run in &plan.runs {
            let (id, bytes) = (run.meta().fingerprint(), run.meta().allocated());
            match receive(BackupPart::Run { id, bytes }) {
                BackupNext::Stop => return Ok(false),
                BackupNext::Skip => done += bytes,
                BackupNext::Continue => {
                    let mut pass =
                        |bytes: &[u8], _| Ok(receive(BackupPart::Data(bytes)) != BackupNext::Stop);
                    if !self.read_run(run, &mut done, &mut pass)? {
                        return Ok(false);
                    }
                }
            }
        }
        assert_eq!(done, plan.place.offset, "the image follows the runs");
        // The file ends with the extent of its image, as that of `copy` does.
        let mut image = plan.image;
        let length = usize::try_from(total - plan.place.offset);
        image.resize(length.expect("the image and its padding are in memory"), 0);
        Ok(receive(BackupPart::Data(&image)) != BackupNext::Stop)
    }

    fn plan_backup(self: &Arc<Self>) -> Result<Plan> {
        // Trees that are dropped during the cut stay whole while this reader sees them.
        let reader = Reader::new(self)?;
        let (look, through) = {
            let _checkpoint = self.checkpoints.hold();
            let cut = self.flush_cut()?;
            let committer = self.commit.lock();
            (Look::at(self, &committer), cut.through)
        };
        if look.buckets().any(|bucket| bucket.dropped) {
            reader.check()?;
        }
        drop(reader);
        let there = |tree: &TreeLook| {
            let dropped = tree.dropped.is_some_and(|dropped| dropped <= through);
            tree.tree.created <= through && !dropped
        };
        let mut trees = look.trees;
        trees.retain(there);
        trees.sort_by_key(|tree| tree.tree.id);
        let look = Look { trees, ..look };
        let unflushed = look.buckets().flat_map(|bucket| &bucket.frozen);
        for (_, frozen) in unflushed {
            assert!(through < *frozen, "I1: all up to the cut is in runs");
        }
        self.lay_out(&look, through)
    }

    /// Place the runs of `look` one after another, and their image behind them.
    fn lay_out(&self, look: &Look, through: Seq) -> Result<Plan> {
        let mut metas: BTreeMap<RunId, RunMeta> = BTreeMap::new();
        let mut runs = Vec::new();
        let mut end = DATA_START;
        for (id, (run, _)) in look.runs() {
            let extent = Extent {
                offset: end,
                len: run.meta().allocated(),
            };
            assert!(
                run.meta().max_seq <= through,
                "I1: nothing later is in runs"
            );
            assert_eq!(extent.len % UNIT, 0, "runs are whole units");
            end = extent.end();
            let extents = vec![extent];
            metas.insert(
                id,
                RunMeta {
                    extents,
                    ..run.meta().clone()
                },
            );
            runs.push(run);
        }
        let image = Image {
            number: 1,
            last_seq: through,
            log_from: Seq(through.0 + 1),
            next_run: RunId(self.peek_run()),
            next_tree: self.catalog.next_id(),
            runs: metas.into_values().collect(),
            trees: look.trees.iter().map(tree_image).collect(),
        };
        let store = self.vfs.unique();
        // Its runs are copied as they are, so it needs their keys.
        let keys = self.keys.as_ref().map(|keys| keys.for_copy(store));
        let bytes = match &keys {
            None => image.encode(),
            Some(keys) => seal_image(&image.encode(), keys)?,
        };
        let place = ImagePlace::of(&bytes, end);
        let superblock = Superblock::of(store, &image, place);
        Ok(Plan {
            runs,
            superblock,
            image: bytes,
            place,
            keys,
        })
    }

    fn copy(&self, plan: &Plan, part: &Path, watch: Watch<'_>) -> Result<bool> {
        let io = |operation| move |e| Error::io(operation, part, e);
        let how = Open {
            create: true,
            direct: false,
        };
        let file = self
            .vfs
            .open(Site("backup.open"), part, how)
            .map_err(io("create the copy"))?;
        let total = plan.place.extent().end();
        // Check first whether there is enough room.
        file.allocate(Site("backup.allocate"), 0, total)
            .map_err(io("make room for the copy"))?;
        let mut done = DATA_START;
        if !watch(done, total) || !self.copy_runs(plan, &*file, part, &mut done, watch)? {
            return Ok(false);
        }
        assert_eq!(done, plan.place.offset, "the image follows the runs");
        file.write_at(Site("backup.image"), &plan.image, done)
            .and_then(|()| file.sync(Site("backup.sync")))
            .map_err(io("write the image of the copy"))?;
        if let Some(keys) = &plan.keys {
            let directory = part.parent().unwrap_or(Path::new(""));
            keys.write(&*self.vfs, directory)?;
        }
        file.write_at(Site("backup.superblock"), &plan.slots()?, 0)
            .and_then(|()| file.sync(Site("backup.superblock_sync")))
            .map_err(io("write the superblock of the copy"))?;
        Ok(watch(total, total))
    }

    fn copy_runs(
        &self,
        plan: &Plan,
        to: &dyn File,
        part: &Path,
        done: &mut u64,
        watch: Watch<'_>,
    ) -> Result<bool> {
        let total = plan.place.extent().end();
        self.read_runs(plan, &mut |bytes, at| {
            to.write_at(Site("backup.write"), bytes, at)
                .map_err(|e| Error::io("write the copy", part, e))?;
            let len = bytes.len() as u64;
            to.start_writeback(at, len);
            *done = at + len;
            Ok(watch(*done, total))
        })
    }

    /// Read the runs in pieces.
    fn read_runs(&self, plan: &Plan, take: Take<'_>) -> Result<bool> {
        let mut done = DATA_START;
        for run in &plan.runs {
            if !self.read_run(run, &mut done, take)? {
                return Ok(false);
            }
        }
        assert_eq!(done, plan.place.offset, "the image follows the runs");
        Ok(true)
    }

    /// Read a run in pieces; `done` is its offset in the copy, and then its end.
    fn read_run(&self, run: &Run, done: &mut u64, take: Take<'_>) -> Result<bool> {
        let from = self.data_path();
        let mut buffer = Vec::new();
        for extent in &run.meta().extents {
            let mut at = extent.offset;
            while at < extent.end() {
                self.health.check_open()?;
                let len = PIECE.min(extent.end() - at);
                buffer.resize(usize::try_from(len).expect("at most a piece"), 0);
                self.file
                    .read_at(Site("backup.read"), &mut buffer, at)
                    .map_err(|e| Error::io("copy a run", &from, e))?;
                self.counters.copied.add(len);
                self.counters.copy_reads.add(1);
                if !take(&buffer, *done)? {
                    return Ok(false);
                }
                at += len;
                *done += len;
            }
        }
        Ok(true)
    }

    fn give_name(&self, part: &Path, name: &Path, directory: &Path) -> Result<()> {
        let parent = directory.parent().filter(|p| !p.as_os_str().is_empty());
        self.vfs
            .rename(Site("backup.rename"), part, name)
            .and_then(|()| self.vfs.sync_dir(Site("backup.sync_dir"), directory))
            .and_then(|()| match parent {
                Some(parent) => self.vfs.sync_dir(Site("backup.sync_parent"), parent),
                None => Ok(()),
            })
            .map_err(|e| Error::io("name the copy", name, e))
    }
}

fn tree_image(tree: &TreeLook) -> TreeImage {
    let id = |run: &Arc<Run>| run.meta().id;
    let bucket = |bucket: &BucketLook| BucketImage {
        lo: bucket.lo.as_ref().into(),
        flushed: bucket.flushed,
        deltas: bucket.deltas.iter().map(id).collect(),
        base: bucket.base.iter().map(id).collect(),
    };
    TreeImage {
        id: tree.tree.id,
        name: tree.tree.name.clone(),
        flags: TreeFlags {
            ascending: tree.tree.options.ascending,
            point_lookups: tree.tree.options.point_lookups,
        },
        buckets: tree.buckets.iter().map(bucket).collect(),
    }
}
