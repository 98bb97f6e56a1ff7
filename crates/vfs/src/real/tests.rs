//! The same tests for buffered and direct files, on the file system of the temporary directory.

use std::io::ErrorKind;
use std::path::Path;

use stdx::Rng;

use super::*;

const SITE: Site = Site("test");

fn open(path: &Path, direct: bool) -> Box<dyn File> {
    let how = Open {
        create: true,
        direct,
    };
    RealVfs::new().open(SITE, path, how).unwrap()
}

/// Runs `law` on a new buffered file, on a direct file, and on a direct file on tmpfs if it is
/// mounted.
fn on_each_kind(law: impl Fn(&dyn File)) {
    for (direct, root) in [(false, None), (true, None), (true, Some("/dev/shm"))] {
        let dir = match root.filter(|root| Path::new(root).is_dir()) {
            Some(root) => tempfile::tempdir_in(root).unwrap(),
            None => tempfile::tempdir().unwrap(),
        };
        law(&*open(&dir.path().join("f"), direct));
    }
}

#[test]
fn any_offset_and_length_reads_back_as_a_vector_would() {
    on_each_kind(|file| {
        let mut rng = Rng::new(1);
        let mut model: Vec<u8> = Vec::new();
        for _ in 0..60 {
            let aligned = rng.chance(0.5);
            let (mut at, mut n) = (rng.index(3 << 20), rng.index(200_000));
            if rng.chance(0.1) {
                n = 2_500_000;
            }
            if aligned {
                (at, n) = (at & !4095, n & !4095);
            }
            let mut bytes = vec![0; n];
            rng.fill(&mut bytes);
            file.write_at(SITE, &bytes, at as u64).unwrap();
            if n > 0 {
                model.resize(model.len().max(at + n), 0);
                model[at..at + n].copy_from_slice(&bytes);
            }
            assert_eq!(file.len().unwrap(), model.len() as u64);
            let from = rng.index(model.len() + 1);
            let mut found = vec![0; rng.index(model.len() - from + 1)];
            file.read_at(SITE, &mut found, from as u64).unwrap();
            assert!(found == model[from..from + found.len()], "read at {from}");
            found.fill(0);
            file.read_scattered_at(SITE, &mut found, from as u64)
                .unwrap();
            assert!(
                found == model[from..from + found.len()],
                "scattered, at {from}"
            );
        }
        file.sync(SITE).unwrap();
        let mut all = vec![0; model.len()];
        file.read_at(SITE, &mut all, 0).unwrap();
        assert!(all == model);
    });
}

#[test]
fn reading_past_the_end_is_said() {
    on_each_kind(|file| {
        file.write_at(SITE, b"12345", 0).unwrap();
        let mut five = [0; 5];
        file.read_at(SITE, &mut five, 0).unwrap();
        assert_eq!(&five, b"12345");
        for (offset, length) in [(0, 6), (1, 5), (4, 4096), (4096, 4096), (1 << 30, 1)] {
            let error = file.read_at(SITE, &mut vec![0; length], offset);
            assert_eq!(error.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        }
        file.read_at(SITE, &mut [], 1 << 30).unwrap();
    });
}

#[test]
fn set_len_cuts_and_extends_with_zeros() {
    on_each_kind(|file| {
        file.write_at(SITE, &[7; 8192], 0).unwrap();
        file.set_len(SITE, 5000).unwrap();
        file.set_len(SITE, 10_000).unwrap();
        let mut all = vec![1; 10_000];
        file.read_at(SITE, &mut all, 0).unwrap();
        assert!(all[..5000].iter().all(|&b| b == 7));
        assert!(all[5000..].iter().all(|&b| b == 0));
    });
}

#[test]
fn allocate_grows_with_zeros_and_keeps_what_is_there() {
    on_each_kind(|file| {
        file.write_at(SITE, b"kept", 0).unwrap();
        file.allocate(SITE, 0, 1 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 1 << 20);
        file.allocate(SITE, 0, 4096).unwrap();
        file.allocate(SITE, 99, 0).unwrap();
        assert_eq!(file.len().unwrap(), 1 << 20);
        assert!(!file.is_empty().unwrap());
        let mut all = vec![1; 1 << 20];
        file.read_at(SITE, &mut all, 0).unwrap();
        assert_eq!(&all[..4], b"kept");
        assert!(all[4..].iter().all(|&b| b == 0));
        let error = file.allocate(SITE, u64::MAX, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn hints_change_nothing() {
    on_each_kind(|file| {
        file.write_at(SITE, &[3; 12_288], 0).unwrap();
        file.start_writeback(0, 12_288);
        file.forget(0, 12_288);
        file.forget(0, 0);
        let mut all = vec![0; 12_288];
        file.read_at(SITE, &mut all, 0).unwrap();
        assert!(all.iter().all(|&b| b == 3));
    });
}

#[test]
fn threads_write_aligned_and_unaligned_side_by_side() {
    // I1 of `file`.
    on_each_kind(|file| {
        std::thread::scope(|scope| {
            for writer in 0..4u8 {
                scope.spawn(move || {
                    // Aligned writers write whole blocks, unaligned writers the bytes between these
                    // blocks.
                    for i in 0..40 {
                        let base = (i * 4 + u64::from(writer)) * 8192;
                        let skew = u64::from(writer % 2) * 100;
                        let bytes = vec![writer + 1; 4096];
                        file.write_at(SITE, &bytes, base + skew).unwrap();
                    }
                });
            }
        });
        for i in 0..160u64 {
            let writer = u8::try_from(i % 4).unwrap();
            let mut bytes = vec![0; 4096];
            let skew = u64::from(writer % 2) * 100;
            file.read_at(SITE, &mut bytes, i * 8192 + skew).unwrap();
            assert!(bytes.iter().all(|&b| b == writer + 1), "slot {i}");
        }
    });
}

#[test]
fn names_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new();
    let root = dir.path().join("a/b");
    assert!(vfs.list(&root).unwrap().is_empty());
    vfs.create_dir(SITE, &root).unwrap();
    vfs.create_dir(SITE, &root).unwrap();
    let how = Open {
        create: false,
        direct: true,
    };
    let error = vfs.open(SITE, &root.join("x"), how).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for name in ["b", "a"] {
        open(&root.join(name), true);
    }
    vfs.create_dir(SITE, &root.join("directory")).unwrap();
    assert_eq!(vfs.list(&root).unwrap(), ["a", "b"]);
    vfs.rename(SITE, &root.join("a"), &root.join("b")).unwrap();
    assert_eq!(vfs.list(&root).unwrap(), ["b"]);
    vfs.remove(SITE, &root.join("b")).unwrap();
    vfs.sync_dir(SITE, &root).unwrap();
    assert!(vfs.list(&root).unwrap().is_empty());
}

#[test]
fn one_holder_at_a_time_and_a_clock_that_does_not_go_back() {
    let dir = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new();
    let held = vfs.hold(dir.path()).unwrap();
    let error = vfs.hold(dir.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(held);
    vfs.hold(dir.path()).unwrap();
    let before = vfs.now();
    vfs.sleep(Duration::from_micros(10));
    assert!(before < vfs.now());
}

#[test]
fn a_file_that_lost_its_name_is_still_the_one_that_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let file = open(&path, false);
    file.write_at(SITE, b"mine", 0).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"else").unwrap();
    let mut found = [0; 4];
    file.read_scattered_at(SITE, &mut found, 0).unwrap();
    assert_eq!(&found, b"mine");
}

/// I3.
#[test]
fn only_what_must_wait_for_the_device_is_announced() {
    on_each_kind(|file| {
        file.write_at(SITE, &[7; 100], 0).unwrap();
        let (found, reads) = stdx::blocking::handled(
            |call| call(),
            || {
                let mut found = [0; 100];
                file.read_at(SITE, &mut found, 0).unwrap();
                file.read_scattered_at(SITE, &mut found, 0).unwrap();
                found
            },
        );
        assert_eq!(found, [7; 100]);
        assert!(reads <= 2, "one for each read at most");
        let (synced, syncs) = stdx::blocking::handled(|call| call(), || file.sync(SITE));
        synced.unwrap();
        assert_eq!(syncs, 1);
    });
}
