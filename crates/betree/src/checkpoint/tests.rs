//! Tests of the superblock's slots, and of checkpoints interrupted at every write.

use std::io;
use std::path::Path;

use stdx::sync::Mutex;
use stdx::{Tape, hash};
use vfs::{File, Site};

use super::image::tests as images;
use super::superblock::{Bad, FORMAT, ImagePlace, SLOTS, newest, read_slots};
use super::{
    DATA_START, DataFile, Image, Superblock, keep_reserve, read, rebuild_space, superblock, write,
};
use crate::error::ErrorKind;
use crate::types::{Extent, RunId, Seq, UNIT};

/// A file in memory that records the writes since the last sync.
#[derive(Default)]
struct Disk {
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync.
    pending: Vec<(u64, Vec<u8>)>,
    /// Possible contents of the file after a power loss at each write and sync so far.
    crashes: Vec<Vec<u8>>,
    /// Writes and allocations beyond this length fail.
    limit: Option<u64>,
    /// Whether every sync fails.
    sync_fails: bool,
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

fn put(bytes: &mut Vec<u8>, offset: u64, new: &[u8]) {
    let at = at(offset);
    let end = bytes.len().max(at + new.len());
    bytes.resize(end, 0);
    bytes[at..at + new.len()].copy_from_slice(new);
}

impl State {
    /// Record crashes in which all, none, or pseudo-randomly chosen sectors of the unsynced writes
    /// survive.
    fn remember_crashes(&mut self) {
        for pick in 0..6_u64 {
            let mut image = self.durable.clone();
            for (offset, bytes) in &self.pending {
                for (index, sector) in bytes.chunks(512).enumerate() {
                    let index = index as u64;
                    let kept = match pick {
                        0 => false,
                        1 => true,
                        2 => index % 8 < 4,
                        3 => index % 8 >= 4,
                        4 => index < 8,
                        _ => hash::hash64_seeded(&index.to_le_bytes(), *offset) & 1 == 0,
                    };
                    if kept {
                        put(&mut image, offset + index * 512, sector);
                    }
                }
            }
            self.crashes.push(image);
        }
    }
}

impl File for Disk {
    fn read_at(&self, _: Site, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.state.lock();
        let at = at(offset);
        let found = state.bytes.get(at..at + buffer.len());
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, _: Site, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        if state
            .limit
            .is_some_and(|limit| limit < offset + bytes.len() as u64)
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        put(&mut state.bytes, offset, bytes);
        state.pending.push((offset, bytes.to_vec()));
        state.remember_crashes();
        Ok(())
    }

    fn sync(&self, _: Site) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.sync_fails {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.durable = state.bytes.clone();
        state.pending.clear();
        state.remember_crashes();
        Ok(())
    }

    fn set_len(&self, _: Site, length: u64) -> io::Result<()> {
        let length = at(length);
        self.state.lock().bytes.resize(length, 0);
        Ok(())
    }

    fn allocate(&self, _: Site, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let end = offset + length;
        if state.limit.is_some_and(|limit| limit < end) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let end = at(end).max(state.bytes.len());
        state.bytes.resize(end, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().bytes.len() as u64)
    }
}

impl Disk {
    fn of(bytes: Vec<u8>) -> Disk {
        Disk {
            state: Mutex::new(State {
                durable: bytes.clone(),
                bytes,
                ..State::default()
            }),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.state.lock().bytes.clone()
    }
}

const SLOTS_LEN: usize = 4 * 4096;
const STORE: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;

/// The disk's data file, not encrypted.
fn at_disk(disk: &Disk) -> DataFile<'_> {
    DataFile {
        file: disk,
        path: path(),
        keys: None,
    }
}

fn path() -> &'static Path {
    Path::new("data.betree")
}

/// A file as `create` writes it.
fn fresh() -> Vec<u8> {
    Superblock::first(STORE).encode().repeat(4)
}

fn sample() -> Superblock {
    Superblock {
        store: STORE,
        number: 6,
        image: Some(ImagePlace {
            offset: 5 * UNIT,
            length: 5000,
            hash: 0x0123_4567_89ab_cdef,
        }),
        log_from: Seq(91),
        last_seq: Seq(100),
        next_run: RunId(4),
        next_tree: 2,
    }
}

fn numbered(number: u64) -> Superblock {
    Superblock { number, ..sample() }
}

fn file_of(slots: &[Vec<u8>]) -> Disk {
    Disk::of(slots.concat())
}

fn message(disk: &Disk, kind: ErrorKind) -> String {
    let error = read(at_disk(disk)).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.path(), Some(path()));
    error.to_string()
}

#[test]
fn a_slot_comes_back_and_every_flipped_byte_is_noticed() {
    for superblock in [sample(), Superblock::first(7)] {
        let slot = superblock.encode();
        assert_eq!(Superblock::decode(&slot), Ok(superblock));
        for at in 0..slot.len() {
            let mut bad = slot.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(Superblock::decode(&bad).is_err(), "byte {at}");
            assert!(Superblock::decode(&slot[..at]).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn wrong_bytes_under_a_right_hash_never_panic() {
    for seed in 0..2000 {
        let mut tape = Tape::from_seed(seed, 64);
        let mut slot = sample().encode();
        for _ in 0..4 {
            let at = 8 + tape.index(92);
            slot[at] = tape.byte();
        }
        let hash = hash::hash64(&slot[..4088]);
        slot[4088..].copy_from_slice(&hash.to_le_bytes());
        if let Ok(superblock) = Superblock::decode(&slot) {
            assert!(superblock.number == 0 || superblock.image.is_some());
        }
    }
}

/// As in docs/format.md. When this changes, so does the version.
#[test]
fn the_bytes_of_a_superblock_are_these() {
    let slot = sample().encode();
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let lines: Vec<String> = slot[..96].chunks(16).map(hex).collect();
    let expected = [
        "89424554524545 0a 01000000 00000000",
        "ffeeddccbbaa99887766554433221100",
        "0600000000000000 0050000000000000",
        "8813000000000000 efcdab8967452301",
        "5b00000000000000 6400000000000000",
        "0400000000000000 02000000 00000000",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert_eq!(*line, expected.replace(' ', ""));
    }
    assert!(slot[96..4088].iter().all(|byte| *byte == 0));
    assert_eq!(hex(&slot[4088..]), "f4aa6022b3896e5b");
}

#[test]
fn the_newest_of_the_valid_slots_is_taken() {
    // superblock: I3, three slots are lost.
    let bad = vec![0x55; 4096];
    let zero = vec![0; 4096];
    let [old, new] = [5, 6].map(|number| numbered(number).encode());
    for slots in [
        [new.clone(), bad.clone(), old.clone(), old.clone()],
        [bad.clone(), new.clone(), bad.clone(), zero.clone()],
        [old.clone(), old.clone(), zero.clone(), new.clone()],
        [bad, zero.clone(), new, old],
    ] {
        assert_eq!(
            newest(&read_slots(&file_of(&slots), None)).unwrap().number,
            6
        );
    }
}

#[test]
fn what_is_not_ours_or_not_of_this_version_is_said_precisely() {
    let text = message(&Disk::of(vec![b'x'; 1 << 15]), ErrorKind::Invalid);
    assert!(text.contains("not a data file of betree"), "{text}");
    let mut newer = sample().encode();
    newer[8] = 3;
    let hash = hash::hash64(&newer[..4088]);
    newer[4088..].copy_from_slice(&hash.to_le_bytes());
    let text = message(&file_of(&[sample().encode(), newer]), ErrorKind::Invalid);
    assert!(
        text.contains("format 3") && text.contains(&format!("format {FORMAT}")),
        "{text}"
    );

    let mut torn = sample().encode();
    torn[100] = 1;
    let text = message(
        &file_of(&[torn.clone(), vec![0; 4096], torn]),
        ErrorKind::Corrupt,
    );
    for part in [
        "slot 0 has a wrong checksum",
        "slot 1 is all zeros",
        "slot 3 lies beyond the end of the file",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let other = Superblock {
        store: 1,
        ..sample()
    };
    let text = message(
        &file_of(&[sample().encode(), other.encode()]),
        ErrorKind::Corrupt,
    );
    assert!(text.contains("two stores"), "{text}");
    message(&Disk::default(), ErrorKind::Corrupt);
}

/// The small image as checkpoint `number`, in a file that contains its runs.
fn image(number: u64) -> Image {
    Image {
        number,
        ..images::small()
    }
}

/// A store with checkpoint 6, its superblock, and space.
fn store() -> (Disk, Superblock, crate::space::Space) {
    let mut bytes = fresh();
    bytes.resize(14 * 4096, 7);
    let disk = Disk::of(bytes);
    let (first, none) = read(at_disk(&disk)).unwrap();
    assert_eq!((first.number, none), (0, None));
    let image = image(6);
    let space = rebuild_space(disk.len().unwrap(), &first, Some(&image)).unwrap();
    let epoch = space.begin_checkpoint();
    let six = write(at_disk(&disk), &space, &first, epoch, &image).unwrap();
    (disk, six, space)
}

#[test]
fn a_checkpoint_is_read_back() {
    let (disk, six, space) = store();
    assert_eq!(read(at_disk(&disk)).unwrap(), (six.clone(), Some(image(6))));
    space.set_reserve(0, |_, _| Ok(())).unwrap();
    let again = rebuild_space(disk.len().unwrap(), &six, Some(&image(6))).unwrap();
    assert_eq!(again.used_bytes(), space.used_bytes());
    assert_eq!(again.free_list(), space.free_list());
    // Any single slot suffices.
    for keep in 0..SLOTS {
        let mut bytes = disk.bytes();
        for slot in (0..SLOTS).filter(|slot| *slot != keep) {
            put(&mut bytes, slot * UNIT, &[0xee; 4096]);
        }
        let one = Disk::of(bytes);
        assert_eq!(read(at_disk(&one)).unwrap().0, six);
        assert_eq!(one.bytes()[..SLOTS_LEN], disk.bytes()[..SLOTS_LEN]);
    }
}

#[test]
fn a_power_loss_at_any_write_leaves_one_checkpoint_or_the_other() {
    // protocol: I1, I2.
    // superblock: I1, I2.
    let (disk, six, space) = store();
    disk.state.lock().crashes.clear();
    let epoch = space.begin_checkpoint();
    let seven = write(at_disk(&disk), &space, &six, epoch, &image(7)).unwrap();
    let crashes = disk.state.lock().crashes.clone();
    assert_eq!(crashes.len(), 6 * 6, "six calls, six outcomes each");
    let mut numbers = Vec::new();
    for bytes in crashes {
        let disk = Disk::of(bytes);
        let (superblock, found) = read(at_disk(&disk)).unwrap();
        assert!(superblock == six || superblock == seven);
        assert_eq!(found, Some(image(superblock.number)));
        numbers.push(superblock.number);
        // Reading has repaired the slots, so that space of the other checkpoint may be reused.
        assert!(
            read_slots(&disk, None)
                .iter()
                .all(|slot| slot.as_ref() == Ok(&superblock))
        );
    }
    assert!(
        numbers[..12].iter().all(|number| *number == 6),
        "not before the image is synced"
    );
    assert!(
        numbers[18..].iter().all(|number| *number == 7),
        "committed by the first sync"
    );
}

#[test]
fn a_power_loss_while_slots_are_repaired_leaves_one_that_serves() {
    let (disk, six, space) = store();
    let epoch = space.begin_checkpoint();
    write(at_disk(&disk), &space, &six, epoch, &image(7)).unwrap();
    let [old, new] = [six, newest(&read_slots(&disk, None)).unwrap()].map(|s| s.encode());
    let torn = vec![1; 4096];
    for slots in [
        [&new, &torn, &old, &old],
        [&torn, &new, &old, &torn],
        [&new, &new, &torn, &old],
        [&torn, &torn, &torn, &new],
        [&old, &torn, &new, &old],
    ] {
        let mut bytes = disk.bytes();
        for (index, slot) in slots.into_iter().enumerate() {
            put(&mut bytes, index as u64 * UNIT, slot);
        }
        let damaged = Disk::of(bytes);
        assert_eq!(read(at_disk(&damaged)).unwrap().0.number, 7);
        let crashes = damaged.state.lock().crashes.clone();
        assert!(!crashes.is_empty());
        for bytes in crashes {
            assert_eq!(
                newest(&read_slots(&Disk::of(bytes), None)).unwrap().number,
                7
            );
        }
    }
}

#[test]
fn on_a_full_disk_the_reserve_carries_checkpoint_after_checkpoint() {
    let (disk, mut last, space) = store();
    let mut tape = Tape::from_seed(1, 200);
    let mut long = |number| {
        let mut image = image(number);
        // Both bounds of run 1 are long, so that the image is 15 units long.
        let long = |byte: u8, len: usize| vec![byte; len].into_boxed_slice();
        image.runs[0].min_key = long(b'a', 30_000 + tape.index(500));
        image.runs[0].max_key = long(b'z', 30_000 + tape.index(500));
        image
    };
    let take_all = || {
        while space.largest_free() > 0 {
            space.allocate(space.largest_free());
        }
    };
    for number in 7..9 {
        let epoch = space.begin_checkpoint();
        last = write(at_disk(&disk), &space, &last, epoch, &long(number)).unwrap();
        keep_reserve(&disk, path(), &space, &last).unwrap();
    }
    disk.state.lock().limit = Some(space.backed());
    for number in 9..60 {
        take_all();
        let epoch = space.begin_checkpoint();
        let image = long(number);
        last = write(at_disk(&disk), &space, &last, epoch, &image).unwrap();
        // Other allocations take the space that the checkpoint freed, except the reserve.
        take_all();
        let kept = keep_reserve(&disk, path(), &space, &last);
        assert!(kept.is_ok() || kept.unwrap_err().kind() == ErrorKind::Full);
        assert_eq!(read(at_disk(&disk)).unwrap().1, Some(image));
    }
}

#[test]
fn failures_are_full_before_anything_is_unknown_and_io_after() {
    let (disk, six, space) = store();
    let used = space.used_bytes();
    disk.state.lock().limit = Some(DATA_START);
    let epoch = space.begin_checkpoint();
    let error = write(at_disk(&disk), &space, &six, epoch, &image(7)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert_eq!(space.used_bytes(), used, "its extent is free again");
    disk.state.lock().limit = None;
    disk.state.lock().sync_fails = true;
    let epoch = space.begin_checkpoint();
    let error = write(at_disk(&disk), &space, &six, epoch, &image(7)).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Io,
        "a failed sync is not a full disk"
    );
    assert_eq!(read(at_disk(&disk)).unwrap().0, six);
}

#[test]
fn an_image_that_is_not_the_superblocks_is_refused() {
    let (disk, six, _) = store();
    let place = six.image.unwrap();
    let refused = |bytes: Vec<u8>, what: &str| {
        let error = read(at_disk(&Disk::of(bytes))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    let mut stale = disk.bytes();
    put(&mut stale, place.offset, &image(5).encode());
    refused(stale, "another checksum");
    let mut flipped = disk.bytes();
    flipped[at(place.offset) + 70] ^= 1;
    refused(flipped, "wrong checksum");
    let mut cut = disk.bytes();
    cut.truncate(at(place.offset + place.length) - 1);
    refused(cut, "beyond the end of the file");
    let renumbered = Superblock { number: 8, ..six };
    let mut other = disk.bytes();
    put(&mut other, 0, &renumbered.encode());
    refused(other, "another number");
}

#[test]
fn extents_that_overlap_are_found_at_open() {
    let (disk, six, _) = store();
    let mut image = image(6);
    image.runs[1].extents[0] = Extent {
        offset: 10 * UNIT,
        len: UNIT,
    };
    let error = rebuild_space(disk.len().unwrap(), &six, Some(&image)).unwrap_err();
    assert!(error.to_string().contains("run 1 and run 2"), "{error}");
    assert_eq!(superblock::read_slots(&disk, None).len(), 4);
    assert_eq!(Superblock::decode(&[0; 4096]), Err(Bad::Empty));
}
