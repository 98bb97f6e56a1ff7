//! A disk in memory that can crash: what was not synced is kept, dropped or torn by sectors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stdx::rng::Rng;
use stdx::sync::Mutex;
use vfs::{File, Held, Open, Site, Vfs};

const SECTOR: usize = 512;

type Bytes = Vec<u8>;

#[derive(Clone)]
enum Pending {
    Write(u64, Bytes),
    Grow(u64),
}

#[derive(Clone, Default)]
struct Node {
    durable: Bytes,
    visible: Bytes,
    pending: Vec<Pending>,
}

#[derive(Clone)]
enum Name {
    Make(PathBuf, usize),
    Move(PathBuf, PathBuf),
    Drop(PathBuf),
}

/// Called during a sync that a commit waits for.
type Hook = Arc<dyn Fn() + Send + Sync>;

#[derive(Clone, Default)]
struct Inner {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending_names: Vec<Name>,
    /// Number of modifying calls.
    calls: u64,
    /// All calls from this one on fail: the machine has crashed.
    dead_at: Option<u64>,
    fault: Option<(&'static str, u64, io::ErrorKind)>,
    space: Option<u64>,
    clock: u64,
    hook: Option<Hook>,
    /// Called during every sync of groups.
    always: Option<Hook>,
    /// Whether files can be opened to bypass the page cache.
    bypass: bool,
}

/// The disk; clones share it.
#[derive(Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Inner>>);

struct Handle {
    disk: Disk,
    node: usize,
    /// Whether reads bypass the page cache.
    direct: bool,
}

impl Disk {
    /// Make every call from number `call` on fail.
    pub(super) fn die_at(&self, call: u64) {
        self.0.lock().dead_at = Some(call);
    }

    pub(super) fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// Make call number `nth` (from 0) of `site` fail.
    pub(super) fn fail(&self, site: &'static str, nth: u64, kind: io::ErrorKind) {
        self.0.lock().fault = Some((site, nth, kind));
    }

    /// Let files be opened to bypass the page cache, or not.
    pub(super) fn bypass(&self, so: bool) {
        self.0.lock().bypass = so;
    }

    /// The device loses what it was to write, and says so at no later sync: the page cache still
    /// shows it.
    pub(super) fn forget_pending(&self) {
        for node in &mut self.0.lock().nodes {
            node.pending.clear();
        }
    }

    pub(super) fn during_sync(&self, hook: Hook) {
        self.0.lock().hook = Some(hook);
    }

    pub(super) fn during_every_sync(&self, hook: Option<Hook>) {
        self.0.lock().always = hook;
    }

    /// The disk after a power loss that lost the writes for which `lost` returns true, by file and
    /// offset.
    pub(super) fn crash_without(&self, lost: &dyn Fn(&Path, u64) -> bool) -> Disk {
        let inner = self.0.lock().clone();
        let after = Disk::default();
        for (path, node) in &inner.names {
            let node = &inner.nodes[*node];
            let mut bytes = node.durable.clone();
            for change in &node.pending {
                match change {
                    Pending::Write(offset, _) if lost(path, *offset) => {}
                    change => apply(&mut bytes, change),
                }
            }
            after.put(path, bytes);
        }
        after
    }

    /// Set the number of bytes that can be allocated from now on.
    pub(super) fn space(&self, bytes: Option<u64>) {
        self.0.lock().space = bytes;
    }

    /// The disk after a power loss with a random outcome.
    pub(super) fn crash(&self, rng: &mut Rng) -> Disk {
        let inner = self.0.lock().clone();
        let style = rng.below(5);
        let mut names = inner.durable_names.clone();
        for change in &inner.pending_names {
            if keep(style, rng) {
                apply_name(&mut names, change);
            }
        }
        let mut after = Inner::default();
        for (path, node) in names {
            let bytes = crashed(&inner.nodes[node], style, rng);
            let id = after.nodes.len();
            after.nodes.push(Node {
                durable: bytes.clone(),
                visible: bytes,
                pending: Vec::new(),
            });
            after.durable_names.insert(path.clone(), id);
            after.names.insert(path, id);
        }
        Disk(Arc::new(Mutex::new(after)))
    }

    /// A copy of the visible content: the disk after the process was killed.
    pub(super) fn copy(&self) -> Disk {
        let mut inner = self.0.lock().clone();
        inner.dead_at = None;
        inner.fault = None;
        inner.always = None;
        Disk(Arc::new(Mutex::new(inner)))
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.0.lock().names.keys().cloned().collect()
    }

    pub(super) fn read(&self, path: &Path) -> Bytes {
        let inner = self.0.lock();
        inner.nodes[inner.names[path]].visible.clone()
    }

    /// Replace a file's content, durably.
    pub(super) fn put(&self, path: &Path, bytes: Bytes) {
        let mut inner = self.0.lock();
        let id = inner.nodes.len();
        inner.nodes.push(Node {
            durable: bytes.clone(),
            visible: bytes,
            pending: Vec::new(),
        });
        inner.names.insert(path.to_owned(), id);
        inner.durable_names.insert(path.to_owned(), id);
    }

    pub(super) fn delete(&self, path: &Path) {
        let mut inner = self.0.lock();
        inner.names.remove(path).expect("a file to delete");
        inner.durable_names.remove(path);
    }

    fn call(&self, site: Site) -> io::Result<()> {
        let mut inner = self.0.lock();
        inner.calls += 1;
        if inner.dead_at.is_some_and(|at| at <= inner.calls) {
            return Err(io::Error::other("the machine is gone"));
        }
        if let Some((name, nth, kind)) = inner.fault.take() {
            if name == site.0 && nth == 0 {
                return Err(kind.into());
            }
            let left = nth - u64::from(name == site.0);
            inner.fault = Some((name, left, kind));
        }
        Ok(())
    }
}

fn keep(style: u64, rng: &mut Rng) -> bool {
    match style {
        0 => true,
        1 => false,
        _ => rng.chance(0.5),
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, usize>, change: &Name) {
    match change {
        Name::Make(path, node) => {
            names.insert(path.clone(), *node);
        }
        Name::Move(from, to) => {
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
        Name::Drop(path) => {
            names.remove(path);
        }
    }
}

fn crashed(node: &Node, style: u64, rng: &mut Rng) -> Bytes {
    let mut bytes = node.durable.clone();
    for change in &node.pending {
        match change {
            Pending::Grow(length) if keep(style, rng) => {
                let length = usize::try_from(*length).unwrap().max(bytes.len());
                bytes.resize(length, 0);
            }
            Pending::Grow(_) => {}
            Pending::Write(offset, new) => {
                let whole = style < 4 || rng.chance(0.3);
                let kept = keep(style, rng);
                for (at, sector) in sectors(*offset, new) {
                    if if whole { kept } else { rng.chance(0.5) } {
                        lay(&mut bytes, at, sector);
                    } else if style == 3 && rng.chance(0.2) {
                        ruin(&mut bytes, at);
                    }
                }
            }
        }
    }
    bytes
}

/// The new bytes of each sector, with their offset.
fn sectors(offset: u64, mut new: &[u8]) -> Vec<(u64, &[u8])> {
    let mut at = offset;
    let mut all = Vec::new();
    while !new.is_empty() {
        let room = SECTOR - usize::try_from(at).unwrap() % SECTOR;
        let (sector, rest) = new.split_at(room.min(new.len()));
        all.push((at, sector));
        at += sector.len() as u64;
        new = rest;
    }
    all
}

/// Damage the sector at `at`, whose write was interrupted: neither its old nor its new content can
/// be read.
fn ruin(bytes: &mut Bytes, at: u64) {
    let from = usize::try_from(at).unwrap() / SECTOR * SECTOR;
    let end = (from + SECTOR).min(bytes.len());
    if from < end {
        bytes[from..end].fill(0xA5);
    }
}

fn apply(bytes: &mut Bytes, change: &Pending) {
    match change {
        Pending::Grow(length) => {
            let length = usize::try_from(*length).unwrap().max(bytes.len());
            bytes.resize(length, 0);
        }
        Pending::Write(offset, new) => lay(bytes, *offset, new),
    }
}

fn lay(bytes: &mut Bytes, offset: u64, new: &[u8]) {
    let from = usize::try_from(offset).unwrap();
    if bytes.len() < from + new.len() {
        bytes.resize(from + new.len(), 0);
    }
    bytes[from..from + new.len()].copy_from_slice(new);
}

impl File for Handle {
    fn read_at(&self, _: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let inner = self.disk.0.lock();
        let from = usize::try_from(offset).unwrap();
        let node = &inner.nodes[self.node];
        let bytes = if self.direct {
            let mut device = node.durable.clone();
            node.pending.iter().for_each(|op| apply(&mut device, op));
            Cow::Owned(device)
        } else {
            Cow::Borrowed(&node.visible)
        };
        let bytes = bytes.get(from..from + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, site: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let failed = self.disk.call(site);
        let mut inner = self.disk.0.lock();
        let gone = inner.dead_at.is_some_and(|at| at < inner.calls);
        // The failing write may have been executed partially; the crash then tears it.
        if !gone {
            let node = &mut inner.nodes[self.node];
            node.pending.push(Pending::Write(offset, bytes.to_vec()));
            lay(&mut node.visible, offset, bytes);
        }
        failed
    }

    fn sync(&self, site: Site) -> io::Result<()> {
        // Writes during the sync need not be covered by it.
        let covered = self.disk.0.lock().nodes[self.node].pending.len();
        if matches!(site.0, "log.sync" | "log.rotate") {
            let always = self.disk.0.lock().always.clone();
            if let Some(hook) = always {
                hook();
            }
        }
        self.disk.call(site)?;
        if site.0 == "log.sync" {
            let hook = self.disk.0.lock().hook.take();
            if let Some(hook) = hook {
                hook();
            }
        }
        let mut inner = self.disk.0.lock();
        let node = &mut inner.nodes[self.node];
        for change in node.pending.drain(..covered) {
            apply(&mut node.durable, &change);
        }
        Ok(())
    }

    fn set_len(&self, _: Site, _: u64) -> io::Result<()> {
        unreachable!("the log cuts no file")
    }

    fn allocate(&self, site: Site, offset: u64, length: u64) -> io::Result<()> {
        self.disk.call(site)?;
        let mut inner = self.disk.0.lock();
        if let Some(space) = inner.space {
            inner.space = Some(
                space
                    .checked_sub(length)
                    .ok_or(io::ErrorKind::StorageFull)?,
            );
        }
        let node = &mut inner.nodes[self.node];
        node.pending.push(Pending::Grow(offset + length));
        let end = usize::try_from(offset + length).unwrap();
        let end = end.max(node.visible.len());
        node.visible.resize(end, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().nodes[self.node].visible.len() as u64)
    }

    fn reads_device(&self) -> bool {
        self.direct
    }
}

impl Vfs for Disk {
    fn open(&self, site: Site, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        self.call(site)?;
        let mut inner = self.0.lock();
        let node = match inner.names.get(path) {
            Some(node) => *node,
            None if how.create => {
                let node = inner.nodes.len();
                inner.nodes.push(Node::default());
                inner.names.insert(path.to_owned(), node);
                inner.pending_names.push(Name::Make(path.to_owned(), node));
                node
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Box::new(Handle {
            disk: self.clone(),
            node,
            direct: how.direct && inner.bypass,
        }))
    }

    fn rename(&self, site: Site, from: &Path, to: &Path) -> io::Result<()> {
        self.call(site)?;
        let mut inner = self.0.lock();
        let node = inner.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        inner.names.insert(to.to_owned(), node);
        let change = Name::Move(from.to_owned(), to.to_owned());
        inner.pending_names.push(change);
        Ok(())
    }

    fn remove(&self, site: Site, path: &Path) -> io::Result<()> {
        self.call(site)?;
        let mut inner = self.0.lock();
        inner.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        inner.pending_names.push(Name::Drop(path.to_owned()));
        Ok(())
    }

    fn create_dir(&self, _: Site, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        let files = self.files();
        let names = files.iter().filter_map(|path| path.file_name()?.to_str());
        Ok(names.map(str::to_owned).collect())
    }

    fn sync_dir(&self, site: Site, _: &Path) -> io::Result<()> {
        self.call(site)?;
        let mut inner = self.0.lock();
        inner.durable_names = inner.names.clone();
        inner.pending_names.clear();
        Ok(())
    }

    fn hold(&self, _: &Path) -> io::Result<Box<dyn Held>> {
        unreachable!("the log holds no directory")
    }

    fn now(&self) -> Duration {
        let mut inner = self.0.lock();
        inner.clock += 1;
        Duration::from_micros(inner.clock)
    }

    fn sleep(&self, _: Duration) {
        std::thread::yield_now();
    }
}
