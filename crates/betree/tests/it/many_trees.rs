//! Thousands of small trees in little memory.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use betree::{Batch, Db, Direction, Durability, Options, TreeId, TreeOptions};
use sim::{SimOptions, SimVfs};

/// A fifth of 10,000 trees in 256 MiB would be 50 MiB; most of that is what the process has anyway.
const TREES: u32 = 2000;
const ROWS: u32 = 40;

fn open(disk: &SimVfs) -> Db {
    let options = Options::default()
        .with_memory(8 << 20)
        .with_log_segment(1 << 20)
        .with_log_max(4 << 20)
        .with_threads(0);
    Db::open_with(Arc::new(disk.clone()), Path::new("/store"), options).unwrap()
}

fn count(db: &Db, tree: TreeId) -> u32 {
    let snapshot = db.begin_read().unwrap();
    let all = Bound::Unbounded;
    let mut cursor = snapshot.cursor(tree, all, all, Direction::Forward).unwrap();
    let mut count = 0;
    while cursor.advance().unwrap() {
        count += 1;
    }
    count
}

#[test]
fn two_thousand_trees_are_written_checkpointed_and_opened_again() {
    let disk = SimVfs::new(SimOptions::default());
    let db = open(&disk);
    let name = |tree: u32| format!("tree {tree}");
    let create = |tree| db.create_tree(&name(tree), TreeOptions::default()).unwrap();
    let trees: Vec<TreeId> = (0..TREES).map(create).collect();
    let mut batch = Batch::new();
    for row in 0..ROWS {
        for tree in &trees {
            batch.put(*tree, &row.to_be_bytes(), &[7; 100]);
        }
        db.write(&batch, Durability::None).unwrap();
        batch.clear();
        while db.step().unwrap() {}
    }
    db.checkpoint().unwrap();
    db.verify().unwrap();
    for tree in trees.iter().step_by(97) {
        assert_eq!(count(&db, *tree), ROWS);
    }
    for tree in (0..TREES).step_by(2) {
        db.drop_tree(&name(tree)).unwrap();
    }
    db.close().unwrap();
    let db = open(&disk);
    assert_eq!(db.trees().unwrap().len(), TREES as usize / 2);
    for tree in (1..TREES).step_by(194) {
        let tree = db.open_tree(&name(tree)).unwrap();
        assert_eq!(count(&db, tree), ROWS);
    }
    db.verify().unwrap();
}
