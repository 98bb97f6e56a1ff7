//! Tests of maps: of stores that the engines created, of a tablespace that a server created, and of
//! damaged files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use kv::{Batch, Codec, Durability, EngineOptions, Factory, TreeOptions};
use lab_report::record::map::{Cell, Kind, TreeSum};
use stdx::rng::Rng;

use super::*;

/// The map of a store that is not encrypted.
fn read(path: &Path) -> Result<Map> {
    super::read(path, None)
}

/// A table of 767 rows, some with a long text, written by MariaDB 10.11. It has 14 leaves and a
/// root of the primary index, one page of a secondary index, and 14 pages of long texts.
const TABLESPACE: &[u8] = include_bytes!("testdata/innodb.ibd.gz");

fn tablespace() -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(TABLESPACE)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// The engines whose files can be drawn.
fn factories() -> [&'static dyn Factory; 4] {
    [
        kv_betree::factory(),
        kv_lmdb::factory(),
        kv_rocksdb::factory(),
        kv_wiredtiger::factory(),
    ]
}

/// A store with two trees and some deleted entries, for each engine that is compiled in.
fn stores() -> Vec<(&'static str, tempfile::TempDir)> {
    let mut all = Vec::new();
    for factory in factories() {
        if !factory.available() {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            codec: Codec::None,
            ..EngineOptions::default()
        };
        let db = factory.open(dir.path(), &options).unwrap();
        let tree = |name| db.create_tree(name, &TreeOptions::default()).unwrap();
        let (rows, more) = (tree("rows"), tree("more"));
        let mut batch = Batch::new();
        for id in 0..20_000_u32 {
            let mixed = id.wrapping_mul(2_654_435_761);
            batch.put(rows, &mixed.to_be_bytes(), &[7; 100]);
            if id % 1000 == 0 {
                batch.put(more, &id.to_be_bytes(), &vec![9; 20_000]);
                db.write(&batch, Durability::None).unwrap();
                batch.clear();
            }
        }
        db.write(&batch, Durability::None).unwrap();
        db.settle(std::time::Duration::from_secs(60)).unwrap();
        batch.clear();
        for id in (0..20_000_u32).filter(|id| id % 3 == 0) {
            batch.delete(rows, &id.wrapping_mul(2_654_435_761).to_be_bytes());
        }
        db.write(&batch, Durability::None).unwrap();
        db.settle(std::time::Duration::from_secs(60)).unwrap();
        db.close().unwrap();
        all.push((factory.name(), dir));
    }
    all
}

/// All files below a directory, with their contents.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(content(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn every_engine_is_drawn_and_left_as_it_was() {
    for (name, dir) in stores() {
        let before = content(dir.path());
        let map = read(dir.path()).unwrap();
        assert_eq!(map.kind, name);
        assert_eq!(content(dir.path()), before, "{name}");
        for tree in ["rows", "more"] {
            let sum = map.trees.iter().find(|t| t.name == tree);
            assert!(sum.is_some_and(|t| 0 < t.bytes), "{name} {tree}: {map:?}");
        }
        // The rows are 13,333 of 104 bytes and 20 of 20,000; betree stores common parts of keys
        // once per page.
        assert!(400_000 < map.sums.file_bytes, "{name}: {:?}", map.sums);
        assert!(map.sums.free_bytes < map.sums.file_bytes, "{name}");
        if let Some(fill) = map.sums.leaf_fill {
            assert!((0.2..=1.0).contains(&fill), "{name}: {fill}");
        }
        for panel in &map.panels {
            assert!(!panel.cells.is_empty(), "{name}");
            let data = panel.cells.iter().any(|c| c.kind == Kind::Data);
            assert!(data, "{name} {}", panel.title);
            let lost = panel.cells.iter().filter(|c| c.kind == Kind::Unknown);
            assert!(lost.count() * 20 <= panel.cells.len(), "{name}: {map:?}");
        }
        let plain = text(&map, Ink::Plain);
        assert!(plain.is_ascii(), "{name}: {plain}");
        assert!(text(&map, Ink::Colours).contains('\u{1b}'), "{name}");
    }
}

#[test]
fn the_map_of_lmdb_agrees_with_lmdb() {
    let Some((_, dir)) = stores().into_iter().find(|(name, _)| *name == "lmdb") else {
        stdx::skip::test("LMDB is not compiled in");
        return;
    };
    let map = read(dir.path()).unwrap();
    let lmdb = factories()
        .into_iter()
        .find(|f| f.name() == "lmdb")
        .unwrap();
    let db = lmdb.open(dir.path(), &EngineOptions::default()).unwrap();
    let own = db.storage_map().unwrap();
    let bytes = |kind| -> u64 {
        let of = own
            .regions
            .iter()
            .filter(|r| r.kind == kind && r.tree.is_some());
        of.map(|r| r.length).sum()
    };
    let sum = |of: fn(&TreeSum) -> u64| -> u64 {
        let named = map
            .trees
            .iter()
            .filter(|t| t.name == "rows" || t.name == "more");
        named.map(of).sum::<u64>() * 4096
    };
    assert_eq!(sum(|t| t.leaves), bytes(kv::RegionKind::Data));
    assert_eq!(sum(|t| t.inner), bytes(kv::RegionKind::Index));
    assert_eq!(sum(|t| t.overflow), bytes(kv::RegionKind::Overflow));
}

#[test]
fn a_tablespace_is_drawn_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("small.ibd");
    fs::write(&path, tablespace()).unwrap();
    let map = read(&path).unwrap();
    assert_eq!(map.kind, "innodb");
    let [panel] = map.panels.as_slice() else {
        panic!("{map:?}")
    };
    assert_eq!((panel.cells.len(), panel.pages_per_cell), (256, 1));
    let count = |kind| panel.cells.iter().filter(|c| c.kind == kind).count();
    assert_eq!(count(Kind::Overflow), 14);
    assert_eq!(count(Kind::Inner), 1);
    assert_eq!(count(Kind::Meta), 3);
    assert_eq!(count(Kind::Unknown), 0);
    let [rows, by_k] = map.trees.as_slice() else {
        panic!("{:?}", map.trees)
    };
    assert_eq!((rows.leaves, rows.depth, by_k.leaves), (14, Some(2), 1));
    let fill = rows.leaf_fill.unwrap();
    assert!((0.4..0.9).contains(&fill), "{fill}");
    // A directory of tablespaces is also drawn.
    assert_eq!(read(dir.path()).unwrap().panels, map.panels);
}

#[test]
fn a_torn_page_is_shown_as_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("small.ibd");
    let mut bytes = tablespace();
    let leaf = 4 * 16_384 + 200;
    bytes[leaf] ^= 1;
    fs::write(&path, bytes).unwrap();
    let map = read(&path).unwrap();
    let lost = map.panels[0]
        .cells
        .iter()
        .filter(|c| c.kind == Kind::Unknown);
    assert_eq!(lost.count(), 1);
    assert!(
        map.notes.iter().any(|n| n.contains("checksum")),
        "{:?}",
        map.notes
    );
}

#[test]
fn what_is_no_store_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        error
    };
    assert!(refusal("a", b"").contains("empty"));
    assert!(refusal("b", &[7; 9000]).contains("not a file of an engine"));
    assert!(refusal("c.sst", &[7; 9000]).contains("directory"));
    assert!(refusal("d.ibd", &[0; 9000]).contains("tablespace"));
    let nothing = dir.path().join("e");
    assert!(read(&nothing).is_err());
    fs::create_dir(&nothing).unwrap();
    let error = read(&nothing).unwrap_err().to_string();
    assert!(error.contains("no store"), "{error}");
}

#[test]
fn no_bytes_make_a_reader_panic_or_run_away() {
    let seed = u64::from(stdx::time::wall().subsec_nanos());
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let table = tempfile::tempdir().unwrap();
    fs::write(table.path().join("t.ibd"), tablespace()).unwrap();
    let mut all = stores();
    all.push(("innodb", table));
    for (name, dir) in all {
        let whole = content(dir.path());
        let targets: Vec<&PathBuf> = whole
            .keys()
            .filter(|path| !path.ends_with(kv::identity::FILE))
            .collect();
        for round in 0..40 {
            let path = targets[rng.index(targets.len())];
            let mut bytes = whole[path].clone();
            if bytes.is_empty() {
                continue;
            }
            for _ in 0..=rng.below(20) {
                // Damage to the beginning of a file is the more interesting case.
                let most = if rng.chance(0.5) { 8192 } else { bytes.len() };
                let at = rng.index(most.min(bytes.len()));
                bytes[at] = u8::try_from(rng.below(256)).unwrap();
            }
            if round % 5 == 0 {
                bytes.truncate(rng.index(bytes.len()));
            }
            fs::write(path, &bytes).unwrap();
            // Both results are correct: a map that shows the damage, or an error.
            match read(dir.path()) {
                Ok(map) => {
                    let _drawn = (text(&map, Ink::Plain), page(&map));
                }
                Err(e) => assert!(!e.message.is_empty(), "{name}"),
            }
            fs::write(path, &whole[path]).unwrap();
        }
    }
}

#[test]
fn names_from_files_cannot_leave_their_place() {
    let mut map = Map::new("lmdb", Path::new("<script>"));
    let evil = "<b>\u{1b}[2J&\"".to_owned();
    map.trees.push(TreeSum {
        name: evil.clone(),
        ..TreeSum::default()
    });
    let cells = [Cell {
        owner: Some(0),
        ..Cell::of(Kind::Data)
    }];
    let mut panel = lab_report::record::map::Panel::pages(
        &evil,
        "about",
        4096,
        std::slice::from_ref(&evil),
        &cells,
    );
    panel.title = evil;
    map.panels.push(panel);
    let html = page(&map);
    assert!(!html.contains("<script>") && !html.contains("<b>\u{1b}"));
    assert!(!text(&map, Ink::Plain).contains('\u{1b}'));
    assert!(!text(&map, Ink::TrueColour).contains("\u{1b}[2J"));
}
