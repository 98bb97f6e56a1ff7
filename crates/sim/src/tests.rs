//! The disk keeps the promises of its profiles and breaks all others, and the checker detects what
//! a store loses.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use stdx::Rng;
use vfs::{File, Open, Site, Vfs};

use super::checker::{Change, History, State, TreeState};
use super::*;

const SITE: Site = Site("test");
const LOG: &str = "/db/log";

fn disk() -> SimVfs {
    let vfs = SimVfs::new(SimOptions::default());
    vfs.create_dir(SITE, Path::new("/db")).unwrap();
    vfs
}

fn open(vfs: &SimVfs, path: &str) -> io::Result<Box<dyn File>> {
    let how = Open {
        create: true,
        direct: true,
    };
    vfs.open(SITE, Path::new(path), how)
}

fn durable(vfs: &SimVfs, path: &str) -> Box<dyn File> {
    let file = open(vfs, path).unwrap();
    vfs.sync_dir(SITE, Path::new("/db")).unwrap();
    file
}

fn crash(profile: Profile, outcome: Outcome, seed: u64) -> Crash {
    Crash {
        profile,
        outcome,
        seed,
    }
}

fn after(vfs: &SimVfs, outcome: Outcome) -> Option<Vec<u8>> {
    let image = vfs.image(crash(Profile::Atomic512, outcome, 1));
    image.peek(Path::new(LOG))
}

#[test]
fn a_file_is_what_a_vector_would_be_and_syncs_survive() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    let mut rng = Rng::new(3);
    let mut model: Vec<u8> = Vec::new();
    for _ in 0..300 {
        let (at, n) = (rng.index(20_000), rng.index(9000));
        match rng.below(5) {
            0 => {
                file.set_len(SITE, at as u64).unwrap();
                model.resize(at, 0);
            }
            1 => {
                file.allocate(SITE, at as u64, n as u64).unwrap();
                model.resize(model.len().max(if n == 0 { 0 } else { at + n }), 0);
            }
            _ => {
                let mut bytes = vec![0; n];
                rng.fill(&mut bytes);
                file.write_at(SITE, &bytes, at as u64).unwrap();
                if n > 0 {
                    model.resize(model.len().max(at + n), 0);
                    model[at..at + n].copy_from_slice(&bytes);
                }
            }
        }
        assert_eq!(file.len().unwrap(), model.len() as u64);
        let mut all = vec![0; model.len()];
        file.read_at(SITE, &mut all, 0).unwrap();
        assert!(all == model);
        assert!(after(&vfs, Outcome::All).unwrap() == model);
        if rng.chance(0.2) {
            file.sync(SITE).unwrap();
            assert!(after(&vfs, Outcome::None).unwrap() == model);
        }
    }
    let error = file.read_at(SITE, &mut [0; 1], model.len() as u64);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn each_outcome_keeps_what_it_says() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    file.write_at(SITE, &[0; 3000], 0).unwrap();
    file.sync(SITE).unwrap();
    for (i, byte) in (1..=3u8).enumerate() {
        file.write_at(SITE, &[byte; 1000], i as u64 * 1000).unwrap();
    }
    let ends = |outcome| {
        let bytes = after(&vfs, outcome).unwrap();
        [bytes[0], bytes[1000], bytes[2000]]
    };
    assert_eq!(ends(Outcome::None), [0, 0, 0]);
    assert_eq!(ends(Outcome::All), [1, 2, 3]);
    assert_eq!(ends(Outcome::OnlyLast), [0, 0, 3]);
    assert_eq!(ends(Outcome::AllButLast), [1, 2, 0]);
    let torn = |seed| {
        let crash = crash(Profile::Atomic512, Outcome::PrefixTorn, seed);
        let bytes = vfs.image(crash).peek(Path::new(LOG)).unwrap();
        assert_eq!((bytes[0], bytes[1000]), (1, 2));
        bytes[2000..].iter().take_while(|&&b| b == 3).count()
    };
    let kept: Vec<usize> = (0..200).map(torn).collect();
    // A write of 2000..3000 has sector ends at 2048, 2560 and 3000.
    let whole = [0, 48, 560, 1000];
    assert!(whole.iter().all(|end| kept.contains(end)));
    let within = kept.iter().filter(|end| !whole.contains(end)).count();
    assert!((1..100).contains(&within), "{within} torn inside a sector");
}

#[test]
fn random_outcomes_stay_within_their_profile() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    for i in 0..8u8 {
        let offset = u64::from(i) * 4096;
        file.write_at(SITE, &[i + 1; 4096], offset).unwrap();
    }
    let (mut torn, mut holes) = (0, 0);
    for profile in Profile::ALL {
        for seed in 0..100 {
            let image = vfs.image(crash(profile, Outcome::Random, seed));
            let bytes = image.peek(Path::new(LOG)).unwrap();
            let kept = |block: usize, b: &[u8]| b.iter().all(|&x| usize::from(x) == block + 1);
            let blocks: Vec<bool> = bytes
                .chunks(4096)
                .enumerate()
                .map(|(i, b)| kept(i, b))
                .collect();
            let ordered = blocks.is_sorted_by(|a, b| a >= b);
            match profile {
                Profile::DropsEverything => assert!(bytes.is_empty()),
                Profile::KeepsEverything => assert_eq!(blocks, [true; 8]),
                Profile::Sequential => {
                    // Only the last block may be torn.
                    let before = blocks.split_last().map_or(&[][..], |(_, before)| before);
                    assert!(before.iter().all(|&kept| kept), "{profile:?} {seed}");
                    torn += usize::from(!bytes.len().is_multiple_of(4096));
                }
                Profile::OrderedAppend => {
                    assert!(ordered && !bytes.contains(&0), "{profile:?} {seed}");
                    torn += usize::from(!bytes.len().is_multiple_of(4096));
                }
                Profile::Atomic512 => holes += usize::from(!ordered),
                Profile::Atomic4096 => assert!(bytes.len().is_multiple_of(4096)),
            }
        }
    }
    assert!(0 < torn && 0 < holes, "{torn} torn, {holes} with holes");
}

#[test]
fn a_torn_write_may_damage_the_rest_of_its_sectors_and_nothing_else() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    file.write_at(SITE, &[7; 16384], 0).unwrap();
    file.sync(SITE).unwrap();
    file.write_at(SITE, &[1; 100], 4096 + 700).unwrap();
    for profile in Profile::ALL {
        let sector = match profile {
            Profile::Atomic4096 => 4096..8192,
            _ => 4096 + 512..4096 + 1024,
        };
        let mut damaged = 0;
        let outcomes = [Outcome::Random, Outcome::PrefixTorn];
        for (seed, outcome) in (0..400).zip(outcomes.into_iter().cycle()) {
            let image = vfs.image(crash(profile, outcome, seed));
            let bytes = image.peek(Path::new(LOG)).unwrap();
            assert_eq!(bytes.len(), 16384);
            let covered = 4096 + 700..4096 + 800;
            let differ = |at: &usize| bytes[*at] != 7 && !covered.contains(at);
            let wrong: Vec<usize> = (0..bytes.len()).filter(differ).collect();
            assert!(wrong.iter().all(|at| sector.contains(at)), "{profile:?}");
            damaged += usize::from(!wrong.is_empty());
        }
        let whole = [Profile::DropsEverything, Profile::KeepsEverything].contains(&profile);
        assert_eq!(damaged == 0, whole, "{profile:?}: {damaged} damaged");
        assert!(damaged < 200, "{profile:?}: {damaged} damaged");
    }
}

#[test]
fn names_are_lost_until_the_directory_is_synced() {
    let vfs = disk();
    let file = open(&vfs, LOG).unwrap();
    file.write_at(SITE, b"x", 0).unwrap();
    file.sync(SITE).unwrap();
    assert_eq!(after(&vfs, Outcome::None), None);
    vfs.sync_dir(SITE, Path::new("/db")).unwrap();
    assert_eq!(after(&vfs, Outcome::None).unwrap(), b"x");

    let new = Path::new("/db/new");
    vfs.rename(SITE, Path::new(LOG), new).unwrap();
    assert_eq!(vfs.list(Path::new("/db")).unwrap(), ["new"]);
    assert_eq!(after(&vfs, Outcome::None).unwrap(), b"x");
    assert_eq!(after(&vfs, Outcome::All), None);
    vfs.sync_dir(SITE, Path::new("/db")).unwrap();
    let image = vfs.image(crash(Profile::Atomic512, Outcome::None, 0));
    assert_eq!(image.peek(new).unwrap(), b"x");

    vfs.remove(SITE, new).unwrap();
    assert_eq!(file.len().unwrap(), 1);
    let image = vfs.image(crash(Profile::Atomic512, Outcome::None, 0));
    assert_eq!(image.files(), [(new.to_owned(), 1)]);
    vfs.sync_dir(SITE, Path::new("/db")).unwrap();
    drop(file);
    assert_eq!((vfs.used(), vfs.files().len()), (0, 0));
    let missing = vfs.remove(SITE, new).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn a_name_never_survives_what_it_depends_on() {
    let vfs = disk();
    open(&vfs, "/db/a").unwrap();
    vfs.rename(SITE, Path::new("/db/a"), Path::new("/db/b"))
        .unwrap();
    // Only the rename survives, but not the creation of the file: then no file exists.
    let image = vfs.image(crash(Profile::Atomic512, Outcome::OnlyLast, 0));
    assert!(image.files().is_empty());
    let image = vfs.image(crash(Profile::Atomic512, Outcome::AllButLast, 0));
    assert_eq!(image.list(Path::new("/db")).unwrap(), ["a"]);
}

#[test]
fn a_machine_stops_at_the_number_it_was_told() {
    // I2 of `disk`.
    let vfs = disk();
    let file = durable(&vfs, LOG);
    file.write_at(SITE, b"1", 0).unwrap();
    vfs.stop_at(vfs.ios() + 2);
    file.write_at(SITE, b"2", 1).unwrap();
    let error = file.write_at(SITE, b"3", 2).unwrap_err();
    assert!(is_stopped(&error) && vfs.has_stopped());
    let ios = vfs.ios();
    for error in [
        file.sync(SITE).unwrap_err(),
        file.read_at(SITE, &mut [0], 0).unwrap_err(),
        file.len().unwrap_err(),
        vfs.list(Path::new("/db")).unwrap_err(),
        vfs.hold(Path::new("/db")).err().unwrap(),
        open(&vfs, "/db/x").err().unwrap(),
    ] {
        assert!(is_stopped(&error));
    }
    assert_eq!(vfs.ios(), ios);
    // The call at which the machine stopped may have taken effect.
    assert_eq!(after(&vfs, Outcome::All).unwrap(), b"123");
    assert_eq!(after(&vfs, Outcome::AllButLast).unwrap(), b"12");
    assert_eq!(after(&vfs, Outcome::None).unwrap(), b"");
    let disk = vfs.crash(crash(Profile::KeepsEverything, Outcome::None, 0));
    assert_eq!(disk.peek(Path::new(LOG)).unwrap(), b"123");
    assert!(!disk.has_stopped());
    assert!(!is_stopped(&io::Error::from(ErrorKind::Other)));
}

#[test]
fn stops_are_counted_in_changes_too() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    vfs.stop_at_change(vfs.changes() + 2);
    file.write_at(SITE, b"1", 0).unwrap();
    file.read_at(SITE, &mut [0], 0).unwrap();
    assert!(is_stopped(&file.sync(SITE).unwrap_err()));
}

#[test]
fn a_failed_sync_loses_what_was_pending_and_is_reported_once_per_handle() {
    for pages in [Pages::Keep, Pages::Revert] {
        let vfs = disk();
        let (file, other) = (durable(&vfs, LOG), open(&vfs, LOG).unwrap());
        for i in 0..16u8 {
            file.write_at(SITE, &[1; 512], u64::from(i) * 512).unwrap();
        }
        vfs.inject(Fault::once("test", 1, FaultKind::SyncFails(pages)));
        assert_eq!(file.sync(SITE).unwrap_err().raw_os_error(), Some(5));
        let lost = |bytes: Vec<u8>| bytes.len() < 8192 || bytes.contains(&0);
        let seen = lost(vfs.peek(Path::new(LOG)).unwrap());
        assert_eq!(seen, pages == Pages::Revert);
        // The next sync succeeds although data are lost; the other descriptor reports the failure
        // once.
        file.sync(SITE).unwrap();
        other.sync(SITE).unwrap_err();
        other.sync(SITE).unwrap();
        open(&vfs, LOG).unwrap().sync(SITE).unwrap();
        assert!(lost(after(&vfs, Outcome::All).unwrap()), "{pages:?}");
        vfs.evict();
        assert!(lost(vfs.peek(Path::new(LOG)).unwrap()));
    }
}

#[test]
fn faults_strike_where_and_when_they_should() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    let write = || file.write_at(SITE, &[7; 100], 0).is_ok();
    let fault = |lasts| Fault {
        sites: Sites::StartWith("te"),
        call: Some(Call::Write),
        when: When::Nth(2),
        lasts,
        kind: FaultKind::Enospc,
    };
    let pattern = |lasts| {
        vfs.clear_faults();
        vfs.inject(fault(lasts));
        [write(), write(), write(), write(), write()]
    };
    assert_eq!(pattern(Lasts::Once), [true, false, true, true, true]);
    assert_eq!(pattern(Lasts::Heals(2)), [true, false, false, true, true]);
    assert_eq!(pattern(Lasts::Sticky), [true, false, false, false, false]);
    file.write_at(Site("other"), &[7; 100], 0).unwrap();
    file.sync(SITE).unwrap();
    let error = file.write_at(SITE, b"x", 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let table = vfs.table();
    let row = table
        .rows()
        .find(|r| r.site == SITE && r.call == Call::Write);
    assert_eq!(row.unwrap().faults["enospc"], 8);
    assert!(table.to_string().contains("enospc:8"), "{table}");
    let mut twice = table.clone();
    twice.merge(&table);
    assert!(twice.to_string().contains("enospc:16"));
}

#[test]
fn chances_are_near_their_probability() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    vfs.inject(Fault {
        sites: Sites::All,
        call: None,
        when: When::Chance(0.25),
        lasts: Lasts::Heals(1),
        kind: FaultKind::Eio,
    });
    let first = (1..200).find(|_| file.sync(SITE).is_err());
    assert!(first.is_some());
    assert!((0..50).all(|_| file.sync(SITE).is_ok()));
}

#[test]
fn reads_and_writes_lie_when_told_to() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    for i in 0..4u8 {
        file.write_at(SITE, &[i; 4096], u64::from(i) * 4096)
            .unwrap();
    }
    let read = |offset| {
        let mut bytes = vec![0; 4096];
        file.read_at(SITE, &mut bytes, offset).unwrap();
        bytes
    };
    vfs.inject(Fault::once("test", 1, FaultKind::BitFlip));
    let wrong: u32 = read(0).iter().map(|b| b.count_ones()).sum();
    assert_eq!(wrong, 1);
    assert_eq!(read(0), [0; 4096]);
    vfs.inject(Fault::once("test", 1, FaultKind::MisdirectedRead));
    assert_ne!(read(4096)[0], 1);
    vfs.inject(Fault::once("test", 1, FaultKind::LostWrite));
    file.write_at(SITE, &[9; 4096], 4096).unwrap();
    assert_eq!(read(4096)[0], 1);
    vfs.inject(Fault::once("test", 1, FaultKind::MisdirectedWrite));
    file.write_at(SITE, &[9; 4096], 4096).unwrap();
    assert_eq!(read(4096)[0], 1);
    assert!((0..4).any(|i| read(i * 4096)[0] == 9));
    vfs.inject(Fault::once("test", 1, FaultKind::ShortWrite));
    let error = file.write_at(SITE, &[8; 4096], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_ne!(read(0)[4095], 8);
}

#[test]
fn a_disk_has_room_for_so_much() {
    let vfs = disk();
    vfs.set_capacity(Some(16 * 4096));
    let file = durable(&vfs, LOG);
    file.allocate(SITE, 0, 10 * 4096).unwrap();
    let other = durable(&vfs, "/db/other");
    other.write_at(SITE, &[1; 6 * 4096], 0).unwrap();
    let full = other.write_at(SITE, b"x", 6 * 4096).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    // Reserved space can still be written, and existing bytes can be overwritten.
    file.write_at(SITE, &[1; 10 * 4096], 0).unwrap();
    other.write_at(SITE, &[2; 6 * 4096], 0).unwrap();
    assert_eq!(vfs.used(), 16 * 4096);
    other.set_len(SITE, 1).unwrap();
    file.write_at(SITE, &[1; 5 * 4096], 10 * 4096).unwrap();
    assert!(file.allocate(SITE, 15 * 4096, 1).is_err());
    let image = vfs.image(crash(Profile::KeepsEverything, Outcome::All, 0));
    assert_eq!(image.used(), 16 * 4096);
}

#[test]
fn one_holder_and_a_clock_that_only_goes_on() {
    let vfs = disk();
    let held = vfs.hold(Path::new("/db")).unwrap();
    let error = vfs.hold(Path::new("/db")).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let image = vfs.image(crash(Profile::KeepsEverything, Outcome::All, 0));
    image.hold(Path::new("/db")).unwrap();
    drop(held);
    vfs.hold(Path::new("/db")).unwrap();
    assert_eq!(vfs.list(Path::new("/db")).unwrap(), ["LOCK"]);
    let before = vfs.now();
    assert!(before < vfs.now());
    vfs.sleep(Duration::from_secs(5));
    assert!(before + Duration::from_secs(5) < vfs.now());
    assert!(before < image.now());
}

#[test]
fn damage_is_seen_and_forks_are_apart() {
    let vfs = disk();
    let file = durable(&vfs, LOG);
    file.write_at(SITE, b"abc", 0).unwrap();
    let fork = vfs.fork();
    assert_eq!(fork.content_hash(), vfs.content_hash());
    fork.poke(Path::new(LOG), 1, b"X");
    assert_ne!(fork.content_hash(), vfs.content_hash());
    assert_eq!(fork.peek(Path::new(LOG)).unwrap(), b"aXc");
    fork.truncate(Path::new(LOG), 1);
    assert_eq!(fork.peek(Path::new(LOG)).unwrap(), b"a");
    assert_eq!(vfs.peek(Path::new(LOG)).unwrap(), b"abc");
}

/// A toy store: one file of records of 16 bytes {value, check}. A commit appends one record; the
/// state is the value of the last whole record before the first broken one.
struct Toy {
    file: Box<dyn File>,
    next: u64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A correct store: each record has a block of its own.
    Honest,
    /// Acknowledges commits as durable without a sync.
    Lies,
    /// Appends records to sectors that contain synced records.
    SharesSectors,
}

impl Kind {
    /// The position of a record.
    fn place(self, number: u64) -> u64 {
        number
            * if self == Kind::SharesSectors {
                16
            } else {
                4096
            }
    }
}

impl Toy {
    fn open(vfs: &SimVfs, kind: Kind) -> io::Result<(Toy, State)> {
        vfs.create_dir(SITE, Path::new("/db"))?;
        let file = open(vfs, LOG)?;
        vfs.sync_dir(SITE, Path::new("/db"))?;
        let mut state = TreeState::new();
        let mut next = 0;
        let mut record = [0; 16];
        while kind.place(next) + 16 <= file.len()? {
            file.read_at(SITE, &mut record, kind.place(next))?;
            let value = u64::from_le_bytes(record[..8].try_into().unwrap());
            let check = u64::from_le_bytes(record[8..].try_into().unwrap());
            if check != stdx::rng::mix64(value ^ (next << 32)) {
                break;
            }
            state.insert(b"v".to_vec(), value.to_string().into());
            next += 1;
        }
        // Records after the first broken one must not reappear later.
        file.set_len(SITE, kind.place(next))?;
        file.sync(SITE)?;
        let state = State::from([("t".to_owned(), state)]);
        Ok((Toy { file, next, kind }, state))
    }

    fn commit(&mut self, value: u64, sync: bool) -> io::Result<()> {
        let check = stdx::rng::mix64(value ^ (self.next << 32));
        let record = [value.to_le_bytes(), check.to_le_bytes()].concat();
        let place = self.kind.place(self.next);
        self.file.write_at(SITE, &record, place)?;
        self.next += 1;
        if sync && self.kind != Kind::Lies {
            self.file.sync(SITE)?;
        }
        Ok(())
    }
}

/// Run several crashes in sequence; returns the number of broken laws that the checker found, and a
/// trace hash.
fn generations(seed: u64, kind: Kind) -> (usize, u64) {
    let mut rng = Rng::new(seed);
    let mut vfs = SimVfs::new(SimOptions {
        seed,
        capacity: None,
    });
    let (mut broken, mut trace) = (0, 0);
    let mut history = History::new(State::from([("t".to_owned(), TreeState::new())]));
    for _ in 0..6 {
        if let Ok((mut toy, found)) = Toy::open(&vfs, kind) {
            broken += usize::from(history.check(&found).is_err());
            history = History::new(found);
            vfs.stop_at(vfs.ios() + 1 + rng.below(60));
            loop {
                let (value, sync) = (rng.next_u64(), rng.chance(0.3));
                let text = value.to_string().into();
                let put = Change::Put("t".into(), b"v".to_vec(), text);
                let id = history.begin(vec![put]);
                if toy.commit(value, sync).is_err() {
                    break;
                }
                history.acknowledge(id, sync);
            }
        }
        trace ^= vfs.trace_hash();
        let next = vfs.crash(Crash::draw(&mut rng));
        // Sometimes the next recovery is interrupted, too.
        if rng.chance(0.3) {
            next.stop_at(1 + rng.below(6));
        }
        vfs = next;
    }
    (broken, trace)
}

#[test]
fn an_honest_store_passes_and_a_lying_one_is_caught() {
    let (mut lying, mut sharing) = (0, 0);
    for seed in 0..200 {
        let (broken, _) = generations(seed, Kind::Honest);
        assert_eq!(broken, 0, "seed {seed}: an honest store is accused");
        lying += usize::from(0 < generations(seed, Kind::Lies).0);
        sharing += usize::from(0 < generations(seed, Kind::SharesSectors).0);
    }
    assert!(100 < lying, "only {lying} of 200 lying stores are caught");
    assert!(
        5 < sharing,
        "only {sharing} of 200 stores that write into synced sectors are caught"
    );
}

#[test]
fn a_disk_that_lies_about_writes_is_caught() {
    let mut caught = 0;
    for seed in 0..50 {
        let vfs = SimVfs::new(SimOptions::default());
        let (mut toy, found) = Toy::open(&vfs, Kind::Honest).unwrap();
        let mut history = History::new(found);
        vfs.inject(Fault::once("test", 1 + seed % 10, FaultKind::LostWrite));
        for value in 0..10 {
            let put = Change::Put("t".into(), b"v".to_vec(), value.to_string().into());
            let id = history.begin(vec![put]);
            toy.commit(value, true).unwrap();
            history.acknowledge(id, true);
        }
        let image = vfs.crash(crash(Profile::Atomic512, Outcome::Random, seed));
        let (_, found) = Toy::open(&image, Kind::Honest).unwrap();
        caught += usize::from(history.check(&found).is_err());
    }
    assert_eq!(caught, 50);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let one: Vec<_> = (0..20)
        .map(|seed| generations(seed, Kind::Honest))
        .collect();
    let two: Vec<_> = (0..20)
        .map(|seed| generations(seed, Kind::Honest))
        .collect();
    assert_eq!(one, two);
    let distinct: std::collections::BTreeSet<u64> = one.iter().map(|(_, hash)| *hash).collect();
    assert_eq!(distinct.len(), 20);
}

/// The result of a call as text, to compare results: the value, or the kind of the error.
fn answer<T: std::fmt::Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn random_call(vfs: &dyn Vfs, root: &Path, rng: &mut Rng) -> String {
    let name = |rng: &mut Rng| root.join(format!("f{}", rng.below(4)));
    let (path, other) = (name(rng), name(rng));
    let (at, n) = (rng.below(20_000), rng.index(10_000));
    let how = Open {
        create: rng.chance(0.5),
        direct: rng.chance(0.5),
    };
    let byte = u8::try_from(rng.below(256)).unwrap();
    let call = rng.below(9);
    match call {
        0 => return answer(vfs.rename(SITE, &path, &other)),
        1 => return answer(vfs.remove(SITE, &path)),
        2 => return answer(vfs.list(root)),
        3 => return answer(vfs.list(&root.join("missing"))),
        _ => {}
    }
    let file = match vfs.open(SITE, &path, how) {
        Ok(file) => file,
        Err(error) => return format!("{:?}", error.kind()),
    };
    let done = match call {
        4 => answer(file.set_len(SITE, at)),
        5 => answer(file.allocate(SITE, at, n as u64)),
        6 | 7 => answer(file.write_at(SITE, &vec![byte; n], at)),
        _ => {
            let mut bytes = vec![0; n];
            let read = file.read_at(SITE, &mut bytes, at);
            answer(read.map(|()| stdx::hash::hash64(&bytes)))
        }
    };
    format!("{done} {} {}", answer(file.len()), answer(file.sync(SITE)))
}

#[test]
fn the_simulated_disk_answers_as_the_real_one() {
    let dir = tempfile::tempdir().unwrap();
    let (real, sim) = (vfs::RealVfs::new(), SimVfs::new(SimOptions::default()));
    let root = dir.path().join("db");
    answer(real.create_dir(SITE, &root));
    answer(sim.create_dir(SITE, &root));
    let (mut one, mut two) = (Rng::new(8), Rng::new(8));
    for i in 0..600 {
        let (found, expected) = (
            random_call(&sim, &root, &mut one),
            random_call(&real, &root, &mut two),
        );
        assert_eq!(found, expected, "call {i}");
    }
    let _held = (sim.hold(&root).unwrap(), real.hold(&root).unwrap());
    assert_eq!(sim.list(&root).unwrap(), real.list(&root).unwrap());
}

#[test]
fn a_disk_may_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<SimVfs>();
    let vfs = disk();
    let file = durable(&vfs, LOG);
    std::thread::scope(|scope| {
        for i in 0..4u8 {
            let file = &file;
            scope.spawn(move || {
                for _ in 0..100 {
                    file.write_at(SITE, &[i; 100], u64::from(i) * 100).unwrap();
                    file.sync(SITE).unwrap();
                }
            });
        }
    });
    assert_eq!(after(&vfs, Outcome::None).unwrap().len(), 400);
}
