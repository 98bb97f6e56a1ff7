//! Damage to a small store that is closed: each byte flipped, each sector zeroed, pages swapped,
//! files cut and removed, stale pages. Opening and reading everything gives what was there, or an
//! error that says `Corrupt` (`Invalid` where the damage makes it another version or another
//! file's); never anything else, and never a panic.
//!
//! One exception, by design of the log: what was synced last, with no group and no checkpoint after
//! it, leaves no evidence of having been durable. Damage to that alone looks like a tail torn by a
//! power loss and is cut; then the store opens with an older prefix of the commits, never with
//! anything that was not committed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use betree::{Codec, Db, Durability, Error, ErrorKind, MasterKey, Options};
use sim::checker::{Change, History, State};
use sim::{SimOptions, SimVfs};
use stdx::Rng;

use crate::draw::CODECS;
use crate::look::everything;
use crate::rig::{DIRECTORY, Step, World};
use crate::scripts::small;
use crate::{Repeat, setting};

/// One byte in this many is flipped, unless `BETREE_SIM_EVERY=1` is set.
const STRIDE: u64 = 37;

/// A closed store on disk, its content, and its history of commits.
struct Victim {
    vfs: SimVfs,
    options: Options,
    state: State,
    history: History,
}

/// The outcomes of damage.
#[derive(Default, Debug)]
struct Sum {
    cases: u64,
    harmless: u64,
    refused: u64,
    cut: u64,
}

/// A store of about 64 KiB: several buckets with deltas and filters, two trees, a log with commits
/// that no run holds.
fn victim(codec: Codec, key: Option<MasterKey>) -> Victim {
    let vfs = SimVfs::new(SimOptions {
        seed: 5,
        capacity: None,
    });
    let filter = betree::Filter::All;
    let options = small()
        .with_codec(codec)
        .with_delta_codec(codec)
        .with_filter(filter)
        .with_encryption(key);
    let mut world = World::new(vfs, options.clone());
    let build = |world: &mut World| -> Step {
        world.open()?;
        world.create("a")?;
        world.create("b")?;
        for i in 0..5 {
            world.fill("a", (i, 40, 10), 50, Durability::Interval)?;
        }
        world.settle()?;
        world.fill("b", (0, 60, 3), 30, Durability::Interval)?;
        world.fill("a", (7, 120, 5), 40, Durability::Interval)?;
        world.steps(4)?;
        world.checkpoint()?;
        for i in 0..5 {
            world.fill("a", (i * 50, 4, 3), 40, Durability::Sync)?;
        }
        world.write(
            vec![Change::Delete("b".to_owned(), b"000003".to_vec())],
            Durability::Sync,
        )?;
        world.look()?;
        world
            .db
            .take()
            .expect("open")
            .close()
            .expect("a healthy disk");
        Ok(())
    };
    build(&mut world).expect("nothing stops it");
    Victim {
        vfs: world.vfs.fork(),
        options,
        state: world.model.clone(),
        history: world.history,
    }
}

/// Open the store and read everything twice: by scans, and by the check of the whole store.
fn read(vfs: &SimVfs, options: &Options) -> Result<State, Error> {
    let db = Db::open_with(Arc::new(vfs.clone()), Path::new(DIRECTORY), options.clone())?;
    let state = everything(&db)?;
    Ok(state)
}

impl Victim {
    /// Read after `damage`; the answer must be right, or an error of an allowed kind.
    fn hurt(&self, sum: &mut Sum, what: &str, damage: impl FnOnce(&SimVfs)) {
        let _repeat = Repeat(format!("cargo test -p betree --test crash damage ({what})"));
        let vfs = self.vfs.fork();
        damage(&vfs);
        sum.cases += 1;
        match read(&vfs, &self.options) {
            Ok(state) if state == self.state => sum.harmless += 1,
            Ok(state) => {
                // Only the end of the log may be cut, and only what no checkpoint covers.
                let prefix = self.history.check(&state);
                let prefix = prefix.map_or_else(|e| e.explained_by, |found| Some(found.last));
                assert!(
                    prefix.is_some(),
                    "{what}: wrong data, not a prefix of the commits"
                );
                assert!(
                    what.contains(".wal"),
                    "{what}: commits are lost by damage to other files"
                );
                sum.cut += 1;
            }
            Err(error) => {
                let kind = error.kind();
                let allowed = matches!(kind, ErrorKind::Corrupt | ErrorKind::Invalid);
                assert!(allowed, "{what}: {kind:?}, {error}");
                sum.refused += 1;
            }
        }
    }

    fn files(&self) -> Vec<(PathBuf, u64)> {
        let files = self.vfs.files().into_iter();
        files
            .filter(|(path, length)| 0 < *length && !path.ends_with("LOCK"))
            .collect()
    }

    /// The content of a file; for the log without the zeros at the end.
    fn content(&self, path: &Path) -> Vec<u8> {
        let mut bytes = self.vfs.peek(path).expect("it is there");
        let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
        bytes.truncate(end.next_multiple_of(4096));
        bytes
    }
}

#[test]
fn damage_to_each_byte_is_found() {
    let stride = setting("BETREE_SIM_EVERY").unwrap_or(STRIDE);
    let plain = CODECS.map(|codec| (codec, None));
    let sealed = [Codec::None, Codec::Lz4].map(|codec| (codec, Some(MasterKey::new([7; 32]))));
    for (codec, key) in plain.into_iter().chain(sealed) {
        let name = if key.is_some() { "encrypted" } else { "plain" };
        let victim = victim(codec, key);
        let mut sum = Sum::default();
        for (path, _) in victim.files() {
            let bytes = victim.content(&path);
            let mut at = 0;
            while at < bytes.len() {
                let bit = 1 << (at % 8);
                let what = format!("{codec}: {} byte {at} xor {bit}", path.display());
                victim.hurt(&mut sum, &what, |vfs| {
                    vfs.poke(&path, at as u64, &[bytes[at] ^ bit]);
                });
                at += usize::try_from(stride).expect("small");
            }
        }
        println!("{codec}, {name}: bytes flipped, one in {stride}: {sum:?}");
    }
}

#[test]
fn damage_to_each_sector_is_found() {
    for key in [None, Some(MasterKey::new([7; 32]))] {
        to_each_sector(&victim(Codec::Lz4, key));
    }
}

fn to_each_sector(victim: &Victim) {
    let mut sum = Sum::default();
    let mut rng = Rng::new(4);
    for (path, _) in victim.files() {
        let bytes = victim.content(&path);
        for (i, sector) in bytes.chunks(512).enumerate() {
            let at = i as u64 * 512;
            let mut garbage = vec![0; sector.len()];
            victim.hurt(
                &mut sum,
                &format!("{} sector {i} zeroed", path.display()),
                |vfs| {
                    vfs.poke(&path, at, &garbage);
                },
            );
            rng.fill(&mut garbage);
            victim.hurt(
                &mut sum,
                &format!("{} sector {i} garbage", path.display()),
                |vfs| {
                    vfs.poke(&path, at, &garbage);
                },
            );
        }
    }
    println!("sectors zeroed and garbled: {sum:?}");
}

#[test]
fn damage_by_misdirected_writes_is_found() {
    for key in [None, Some(MasterKey::new([7; 32]))] {
        by_misdirected_writes(&victim(Codec::None, key));
    }
}

fn by_misdirected_writes(victim: &Victim) {
    let mut sum = Sum::default();
    for (path, _) in victim.files() {
        let bytes = victim.content(&path);
        let blocks: Vec<&[u8]> = bytes.chunks_exact(4096).collect();
        for (a, one) in blocks.iter().enumerate() {
            for (b, other) in blocks.iter().enumerate().skip(a + 1) {
                if setting("BETREE_SIM_EVERY").is_none() && 40 < blocks.len() && (a + b) % 5 != 0 {
                    continue;
                }
                let what = format!("{} blocks {a} and {b} swapped", path.display());
                victim.hurt(&mut sum, &what, |vfs| {
                    vfs.poke(&path, a as u64 * 4096, other);
                    vfs.poke(&path, b as u64 * 4096, one);
                });
            }
        }
    }
    println!("blocks swapped: {sum:?}");
}

/// The pages in the data file, by length: where each begins. A page begins with "bpg1" and says at
/// byte 28 how long it is.
fn pages(bytes: &[u8]) -> BTreeMap<usize, Vec<usize>> {
    let mut pages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, header) in bytes.windows(32).enumerate() {
        if let ([b'b', b'p', b'g', b'1', ..], Some(length)) = (header, header.last_chunk::<4>()) {
            let length = usize::try_from(u32::from_le_bytes(*length)).expect("64 bits");
            pages.entry(length).or_default().push(at);
        }
    }
    pages
}

/// A whole page in the place of another, with its checksum: of another run, or of another place in
/// its own.
#[test]
fn damage_by_exchanged_pages_is_found() {
    let victim = victim(Codec::None, None);
    let path = Path::new(DIRECTORY).join("data.betree");
    let bytes = victim.content(&path);
    let mut sum = Sum::default();
    for (length, places) in pages(&bytes) {
        for pair in places.windows(2) {
            let &[a, b] = pair else { continue };
            let (one, other) = (bytes.get(a..a + length), bytes.get(b..b + length));
            let (Some(one), Some(other)) = (one, other) else {
                continue;
            };
            if a + length <= b && one != other {
                let what = format!("pages at {a} and {b} exchanged");
                victim.hurt(&mut sum, &what, |vfs| {
                    vfs.poke(&path, a as u64, other);
                    vfs.poke(&path, b as u64, one);
                });
            }
        }
    }
    assert!(5 < sum.cases, "pages are of one length: {sum:?}");
    assert!(0 < sum.refused, "pages are distinguished: {sum:?}");
    println!("pages exchanged: {sum:?}");
}

#[test]
fn damage_by_cutting_and_removing_files_is_found() {
    for key in [None, Some(MasterKey::new([7; 32]))] {
        by_cutting_and_removing_files(&victim(Codec::Lz4, key));
    }
}

fn by_cutting_and_removing_files(victim: &Victim) {
    let mut sum = Sum::default();
    for (path, length) in victim.files() {
        let content = victim.content(&path).len() as u64;
        let mut cuts: Vec<u64> = (0..content).step_by(509).collect();
        cuts.extend((0..content).step_by(4096));
        cuts.extend([1, content, length - 1]);
        for cut in cuts {
            victim.hurt(
                &mut sum,
                &format!("{} cut to {cut}", path.display()),
                |vfs| {
                    vfs.truncate(&path, cut);
                },
            );
        }
        if path.ends_with("data.betree") {
            // Without it there is no store: a log that holds commits must keep one from being made.
            let vfs = victim.vfs.fork();
            remove(&vfs, &path);
            let error = read(&vfs, &victim.options).expect_err("a log without its data file");
            assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
        } else {
            victim.hurt(&mut sum, &format!("{} removed", path.display()), |vfs| {
                remove(vfs, &path);
            });
        }
    }
    println!("files cut and removed: {sum:?}");
}

fn remove(vfs: &SimVfs, path: &Path) {
    vfs::Vfs::remove(vfs, vfs::Site("test.remove"), path).expect("it is there");
}

/// A lost write leaves the previous content, which is valid in itself.
#[test]
fn damage_by_lost_writes_is_found() {
    let before = victim(Codec::None, None);
    let mut sum = Sum::default();
    let mut world = World::new(before.vfs.fork(), before.options.clone());
    world.open().expect("a healthy disk");
    world.adopt_as(before.state.clone());
    world
        .fill("a", (3, 60, 4), 50, Durability::Interval)
        .expect("a healthy disk");
    world.settle().expect("a healthy disk");
    world
        .fill("a", (1, 60, 4), 50, Durability::Interval)
        .expect("a healthy disk");
    world.settle().expect("a healthy disk");
    world.abandon();
    let after = Victim {
        vfs: world.vfs.fork(),
        options: before.options.clone(),
        state: world.model.clone(),
        history: world.history,
    };
    for (path, _) in after.files() {
        let new = after.content(&path);
        let Some(old) = before.vfs.peek(&path) else {
            continue;
        };
        for (i, (new, old)) in new.chunks(4096).zip(old.chunks(4096)).enumerate() {
            if new == old {
                continue;
            }
            after.hurt(
                &mut sum,
                &format!("{} block {i} stale", path.display()),
                |vfs| {
                    vfs.poke(&path, i as u64 * 4096, old);
                },
            );
        }
    }
    assert!(5 < sum.cases, "blocks were written again: {sum:?}");
    println!("stale blocks: {sum:?}");
}
