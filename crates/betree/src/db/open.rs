//! Opening a store: making one, or recovering what is durable.
//!
//! 1. The newest superblock names the image; the image names every run. The space between the runs
//!    is free: there is no map of free space on disk that could be wrong.
//! 2. The log is replayed from where the image says. A bucket skips what its runs have already; the
//!    rest goes into its buffer as it did the first time, and is flushed when memory fills.
//! 3. A store that had a log and is now opened without makes a checkpoint at once, so that what the
//!    log held is in the image, and removes the log. One that had none begins a log where it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use vfs::{Held, Open, Site, Vfs};

use super::catalog::Catalog;
use super::core::{Core, DATA_FILE, Parts};
use super::gate::Gate;
use super::replay::Replay;
use crate::cache::Cache;
use crate::checkpoint::{self, BucketImage, DataFile, Image, Superblock, TreeImage};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::{self, Keys};
use crate::limits::RUN_GAP;
use crate::log::{Log, LogOptions};
use crate::options::{Codec, Options};
use crate::run::{Run, RunStore};
use crate::tree::{Bucket, Tree};
use crate::types::{RunId, Seq, TreeOptions};
use crate::work::{Checkpoints, Sharing};

/// Open the store in `directory`, or create it.
pub(crate) fn open(
    vfs: &Arc<dyn Vfs>,
    directory: &Path,
    options: &Options,
) -> Result<(Core, Box<dyn Held>)> {
    options.validate()?;
    vfs.create_dir(Site("open.create_dir"), directory)
        .map_err(|e| Error::io("create the directory", directory, e))?;
    let held = vfs.hold(directory).map_err(|e| {
        if e.kind() != std::io::ErrorKind::WouldBlock {
            return Error::io("lock the directory", directory, e);
        }
        let message = "the store is open in another process or by another handle of this one; \
                       close it there, or name another directory";
        Error::invalid(message).with_path(directory)
    })?;
    let path = directory.join(DATA_FILE);
    let names = vfs
        .list(directory)
        .map_err(|e| Error::io("list the directory", directory, e))?;
    if !names.iter().any(|name| name == DATA_FILE) {
        let store = vfs.unique();
        if options.encryption().is_some() || !options.log() {
            // A log with commits is refused before a key file is written.
            Log::clear(&**vfs, directory)?;
        }
        let keys = match options.encryption() {
            Some(master) => Some(Keys::create(&**vfs, directory, store, master)?),
            None => None,
        };
        let keys = keys.map(Arc::new);
        if options.log() {
            Log::create(
                Arc::clone(vfs),
                directory,
                store,
                Seq(1),
                log_options(options, keys.clone()),
            )?;
        }
        let first = Superblock::first(store);
        checkpoint::create(&**vfs, &path, &first, keys.as_deref())?;
    }
    let core = recover(vfs, directory, options)?;
    if core.keys.is_some() && names.iter().any(|name| name == keys::NEW_KEY_FILE) {
        // A rotation did not finish. One that cannot be removed is replaced by the next rotation.
        let _ = vfs.remove(Site("keys.remove"), &directory.join(keys::NEW_KEY_FILE));
    }
    Ok((core, held))
}

fn log_options(options: &Options, keys: Option<Arc<Keys>>) -> LogOptions {
    let total = usize::try_from(options.shares().log).unwrap_or(usize::MAX);
    // Compressing takes the memory of one buffer.
    let compress = options.log_codec() != Codec::None;
    let (buffer, buffers) = LogOptions::divide(total);
    LogOptions {
        segment: options.log_segment(),
        first: crate::limits::LOG_SEGMENT_FIRST,
        buffer,
        buffers: if compress {
            (buffers - 1).max(2)
        } else {
            buffers
        },
        compress,
        group_delay: options.group_delay(),
        direct: options.direct_io(),
        keys,
    }
}

/// The keys of the store in `directory`, if the options have a master key. Nothing is written. That
/// the store is encrypted, or not, is checked with its superblock.
fn open_keys(
    vfs: &dyn Vfs,
    directory: &Path,
    file: &dyn vfs::File,
    options: &Options,
) -> Result<Option<Arc<Keys>>> {
    let Some(master) = options.encryption() else {
        return Ok(None);
    };
    if let Some(keys) = Keys::open(vfs, directory, master)? {
        return Ok(Some(Arc::new(keys)));
    }
    let path = directory.join(DATA_FILE);
    let data = DataFile {
        file,
        path: &path,
        keys: None,
    };
    // A store that is not encrypted needs no key file; an encrypted one cannot be read without.
    Err(match checkpoint::is_encrypted(data)? {
        true => keys::missing(directory),
        false => checkpoint::not_encrypted().with_path(&path),
    })
}

fn recover(vfs: &Arc<dyn Vfs>, directory: &Path, options: &Options) -> Result<Core> {
    let path = directory.join(DATA_FILE);
    let how = Open {
        create: false,
        direct: options.direct_io(),
    };
    let io = |e| Error::io("open the data file", &path, e);
    let gate = Gate::new(vfs.open(Site("data.open"), &path, how).map_err(io)?);
    let file: Arc<dyn vfs::File> = Arc::<Gate>::clone(&gate);
    let keys = open_keys(&**vfs, directory, &*file, options)?;
    let data = DataFile {
        file: &*file,
        path: &path,
        keys: keys.as_deref(),
    };
    let (superblock, image) = checkpoint::read(data)?;
    let length = file.len().map_err(io)?;
    let space = checkpoint::rebuild_space(length, &superblock, image.as_ref())
        .map_err(|e| e.with_path(&path))?;
    let space = Arc::new(space);
    let cache = Arc::new(Cache::new(options.shares().cache));
    let runs = RunStore::new(file, &path, Arc::clone(&space), cache, keys.clone());
    let sharing = Sharing::default();
    let trees = image
        .as_ref()
        .map_or_else(Vec::new, |i| trees(i, &runs, &sharing));
    let log_from = superblock.log_from;
    let store = superblock.store;
    let mut core = Core::new(Parts {
        options: options.clone(),
        vfs: Arc::clone(vfs),
        directory: directory.to_owned(),
        keys,
        gate,
        space,
        runs,
        log: None,
        catalog: Catalog::new(trees, superblock.next_tree.max(1)),
        sharing,
        last: superblock.last_seq,
        next_run: first_run(&**vfs, superblock.next_run)?.0,
        checkpoints: Checkpoints::new(superblock, vfs.now()),
        #[expect(clippy::cast_possible_truncation, reason = "any 64 bits of it serve")]
        seed: store as u64,
    });
    core.count_deltas();
    // Before the replay, which may flush: on a full disk a checkpoint finds no other space. What
    // cannot be had is asked for again by the next checkpoint.
    let last = core.checkpoints.superblock();
    let _ = checkpoint::keep_reserve(&*core.file, &path, &core.space, &last);
    core.log = open_log(&core, store, log_from)?;
    core.keep_replayed()?;
    Ok(core)
}

/// The number of the first new run, behind a random gap after those that the superblock knows.
/// Without it, a number could be given twice: to a run that a crash lost or that an older copy of
/// the directory lacks, and to another one. Backups tell runs apart by their numbers.
///
/// # Errors
/// `Full`: all numbers are given.
fn first_run(vfs: &dyn Vfs, next: RunId) -> Result<RunId> {
    #[expect(clippy::cast_possible_truncation, reason = "any bits of it serve")]
    let gap = vfs.unique() as u64 % RUN_GAP;
    let first = next
        .0
        .checked_add(gap)
        .filter(|first| *first < u64::MAX - RUN_GAP);
    first.map(RunId).ok_or_else(|| {
        let message = "the store has given all numbers of runs: move its data to a new one";
        Error::new(ErrorKind::Full, message)
    })
}

/// Open and replay the log; `None` if the options specify no log.
fn open_log(core: &Core, store: u128, from: Seq) -> Result<Option<Log>> {
    let directory = &core.directory;
    let covered = core.commit.lock().last;
    let has_log = Log::exists(&*core.vfs, directory)?;
    let logged = core.checkpoints.superblock().log_from <= covered;
    if !has_log && logged && Seq(0) < covered && core.options.log() {
        // According to the image, some of its commits are only in the log.
        let message = "the log is missing: its segments hold commits that the data file does not; \
                       put them back, or restore a backup";
        return Err(Error::corrupt(message).with_path(directory));
    }
    let options = log_options(&core.options, core.keys.clone());
    let vfs = Arc::clone(&core.vfs);
    if !has_log {
        if !core.options.log() {
            return Ok(None);
        }
        return Log::create(vfs, directory, store, Seq(covered.0 + 1), options).map(Some);
    }
    core.commit.lock().last = Seq(from.0.max(1) - 1);
    let mut replay = Replay::new(core, store);
    let mut record = |seq: Seq, payload: &[u8]| replay.record(seq, payload);
    let log = Log::recover(vfs, directory, store, from, options, &mut record)?;
    let reached = log.appended();
    replay.finish(reached);
    if reached < covered {
        let message = format!(
            "the log ends at commit {reached}, but the data file holds commit {covered}: the end \
             of the log is missing; put the newest segment back, or restore a backup"
        );
        return Err(Error::corrupt(message).with_path(directory));
    }
    assert_eq!(
        core.commit.lock().last,
        reached,
        "the log was replayed to its end"
    );
    if core.options.log() {
        return Ok(Some(log));
    }
    // What it held must be in the image before it goes; the next commits will not be in it.
    drop(log);
    core.checkpoint()?;
    Log::remove(&*core.vfs, directory)?;
    Ok(None)
}

/// The trees of an image. The image is consistent: decoding has checked it.
fn trees(image: &Image, store: &Arc<RunStore>, sharing: &Sharing) -> Vec<Arc<Tree>> {
    let open = |meta: &crate::run::RunMeta| (meta.id, Run::open(store, meta.clone()));
    let runs: BTreeMap<RunId, Arc<Run>> = image.runs.iter().map(open).collect();
    let mut named: BTreeMap<RunId, usize> = BTreeMap::new();
    for tree in &image.trees {
        for bucket in &tree.buckets {
            for id in bucket.deltas.iter().chain(&bucket.base) {
                *named.entry(*id).or_insert(0) += 1;
            }
        }
    }
    for (id, count) in named {
        sharing.add(id, count - 1);
    }
    let make = |tree: &TreeImage| Arc::new(make_tree(tree, &runs));
    image.trees.iter().map(make).collect()
}

fn make_tree(tree: &TreeImage, runs: &BTreeMap<RunId, Arc<Run>>) -> Tree {
    let find = |id: &RunId| Arc::clone(runs.get(id).expect("the image was checked"));
    let ends = tree.buckets.iter().skip(1).map(|b| Some(Arc::from(&*b.lo)));
    let make = |(bucket, hi): (&BucketImage, Option<Arc<[u8]>>)| {
        let deltas = bucket.deltas.iter().map(find).collect();
        let base = bucket.base.iter().map(find).collect();
        let lo = Arc::from(&*bucket.lo);
        Arc::new(Bucket::with_runs(lo, hi, bucket.flushed, deltas, base))
    };
    let buckets = tree
        .buckets
        .iter()
        .zip(ends.chain([None]))
        .map(make)
        .collect();
    let options = TreeOptions {
        ascending: tree.flags.ascending,
        point_lookups: tree.flags.point_lookups,
    };
    // The tree exists for every future snapshot.
    Tree::with_buckets(tree.id, tree.name.clone(), options, Seq::ANCIENT, buckets)
}
