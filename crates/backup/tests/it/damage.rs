//! Every kind of damage is found, and its file is named.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use backup::{Codec, MANIFEST, Source, restore};
use kv::{ErrorKind, Flow};

use crate::store::{CODECS, Lab, engines, findings, report};

/// Change a file, check what is found, and change it back.
fn with(path: &Path, change: impl FnOnce(&mut Vec<u8>), check: impl FnOnce()) {
    let before = fs::read(path).unwrap();
    let mut after = before.clone();
    change(&mut after);
    fs::write(path, after).unwrap();
    check();
    fs::write(path, before).unwrap();
}

#[test]
fn a_good_backup_has_no_findings() {
    for factory in engines() {
        let lab = Lab::new(factory);
        for codec in CODECS {
            let name = codec.to_string();
            let manifest = lab.take(&lab.directory(&name), codec);
            let found = report(&lab.path(&name));
            assert_eq!((found.findings, found.manifest), (vec![], manifest));
            let manifest = lab.take(&lab.archive(&name), codec);
            let found = report(&lab.path(&format!("{name}.tar")));
            assert_eq!((found.findings, found.manifest), (vec![], manifest));
        }
    }
}

/// B3.
#[test]
fn damaged_files_are_named() {
    for factory in engines() {
        for codec in CODECS {
            let lab = Lab::new(factory);
            let manifest = lab.take(&lab.directory("copy"), codec);
            let root = lab.path("copy");
            for file in &manifest.files {
                let name = format!("files/{}", file.path);
                let path = root.join(&name);
                let length = usize::try_from(file.stored_size).unwrap();
                let one = |problem: &str| {
                    let found = findings(&root);
                    assert_eq!(found.len(), 1, "{found:?}");
                    assert!(found[0].starts_with(&name), "{found:?}");
                    assert!(found[0].contains(problem), "{found:?}");
                };
                for at in [0, 5, length / 2, length - 1] {
                    with(&path, |bytes| bytes[at] ^= 0x10, || one("altered"));
                }
                with(
                    &path,
                    |bytes| bytes.truncate(length - 1),
                    || one("truncated"),
                );
                with(&path, Vec::clear, || one("truncated: 0 of"));
                with(&path, |bytes| bytes.push(0), || one("too long"));
                let aside = lab.path("aside");
                fs::rename(&path, &aside).unwrap();
                one("missing");
                symlink(&aside, &path).unwrap();
                one("not a regular file");
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
                let found = findings(&root);
                assert!(found.iter().all(|f| f.starts_with(&name)), "{found:?}");
                assert!(!found.is_empty());
                fs::remove_dir(&path).unwrap();
                fs::rename(&aside, &path).unwrap();
            }
            assert_eq!(findings(&root), [""; 0]);
        }
    }
}

/// B3.
#[test]
fn swapped_and_additional_files_are_named() {
    let lab = Lab::new(kv_betree::factory());
    lab.take(&lab.directory("copy"), Codec::Lz4);
    let root = lab.path("copy");
    let (one, other) = ("files/data.betree", "files/romanesco-engine.json");
    let swap = || {
        fs::rename(root.join(one), root.join("aside")).unwrap();
        fs::rename(root.join(other), root.join(one)).unwrap();
        fs::rename(root.join("aside"), root.join(other)).unwrap();
    };
    swap();
    let found = findings(&root);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with(one) && found[1].starts_with(other));
    swap();
    for extra in ["extra", "files/extra", "files/data.betree.1"] {
        fs::write(root.join(extra), b"x").unwrap();
        assert_eq!(
            findings(&root),
            [format!("{extra}: not part of the backup")]
        );
        fs::remove_file(root.join(extra)).unwrap();
    }
    fs::create_dir(root.join("staging")).unwrap();
    assert_eq!(findings(&root), ["staging: not part of the backup"]);
    fs::remove_dir(root.join("staging")).unwrap();
    symlink("/etc/passwd", root.join("files/link")).unwrap();
    assert_eq!(findings(&root), ["files/link: not part of the backup"]);
}

#[test]
fn every_flipped_byte_of_a_manifest_is_refused() {
    let lab = Lab::new(kv_betree::factory());
    lab.take(&lab.directory("copy"), Codec::None);
    let root = lab.path("copy");
    let path = root.join(MANIFEST);
    let length = fs::read(&path).unwrap().len();
    for at in 0..length {
        let manifest = || Source::open(&root).unwrap().manifest();
        with(
            &path,
            |bytes| bytes[at] ^= 1,
            || assert!(manifest().is_err(), "{at}"),
        );
    }
    for cut in [0, 1, length / 2, length - 1] {
        with(
            &path,
            |bytes| bytes.truncate(cut),
            || {
                let error = Source::open(&root).unwrap().manifest().unwrap_err();
                assert!(error.to_string().contains(MANIFEST), "{error}");
            },
        );
    }
    assert_eq!(findings(&root), [""; 0]);
}

/// B3: also the bytes of an archive that are in no file.
#[test]
fn every_flipped_byte_of_an_archive_is_found() {
    for codec in [Codec::None, Codec::Zstd] {
        let lab = Lab::new(kv_betree::factory());
        lab.take(&lab.archive("whole"), codec);
        let path = lab.path("whole.tar");
        let bytes = fs::read(&path).unwrap();
        let (start, end) = (1_200, bytes.len() - 6_000);
        for at in (0..start)
            .chain((start..end).step_by(4_999))
            .chain(end..bytes.len())
        {
            let mut other = bytes.clone();
            other[at] ^= 0x20;
            fs::write(&path, other).unwrap();
            assert_ne!(findings(&path), [""; 0], "B3: {codec}: byte {at}");
        }
        for extra in [&[0; 512][..], b"x"] {
            fs::write(&path, [&bytes, extra].concat()).unwrap();
            assert_ne!(findings(&path), [""; 0], "B3: more bytes");
        }
        fs::write(&path, &bytes).unwrap();
        assert_eq!(findings(&path), [""; 0]);
    }
}

/// An archive of these entries.
fn archive(path: &Path, entries: &[(&str, tar::EntryType, &[u8])]) {
    let mut builder = tar::Builder::new(fs::File::create(path).unwrap());
    for (name, kind, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        let field = &mut header.as_old_mut().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(1);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.finish().unwrap();
}

/// B4.
#[test]
fn hostile_archives_are_refused() {
    use tar::EntryType;
    let lab = Lab::new(kv_betree::factory());
    let path = lab.path("bad.tar");
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::GNULongName,
        EntryType::XHeader,
        EntryType::GNUSparse,
        EntryType::Directory,
        EntryType::Fifo,
    ] {
        archive(&path, &[("files/a", kind, b"")]);
        let found = findings(&path);
        assert!(found[0].contains("not a regular file"), "{found:?}");
    }
    let regular = EntryType::Regular;
    archive(
        &path,
        &[("files/a", regular, b"1"), ("files/a", regular, b"2")],
    );
    assert!(findings(&path)[0].contains("twice"));
    archive(&path, &[("../../evil", regular, b"1")]);
    assert!(findings(&path)[0].contains("the header of"));
    archive(&path, &[("files/x", regular, b"1")]);
    assert!(findings(&path)[0].contains("no complete backup"));
    // A name that is in no manifest is never used.
    lab.take(&lab.directory("copy"), Codec::None);
    let read = |name: &str| fs::read(lab.path("copy").join(name)).unwrap();
    let (data, identity) = (
        read("files/data.betree"),
        read("files/romanesco-engine.json"),
    );
    let entries = [
        ("evil/x", regular, &b"1"[..]),
        ("files/data.betree", regular, &data),
        ("files/romanesco-engine.json", regular, &identity),
        (MANIFEST, regular, &read(MANIFEST)),
    ];
    archive(&path, &entries);
    assert_eq!(findings(&path), ["evil/x: not part of the backup"]);
    let source = Source::open(&path).unwrap();
    let target = lab.path("new");
    let restored = restore(&source, &target, &|_| Ok(()), &mut |_| Flow::Continue);
    assert_eq!(restored.unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(!target.exists());
    archive(&path, &entries[1..]);
    assert_eq!(findings(&path), [""; 0]);
    for (bytes, what) in [(&b"no archive"[..], "archive"), (&[0xFF; 4096], "archive")] {
        fs::write(&path, bytes).unwrap();
        assert!(findings(&path)[0].contains(what));
    }
}
