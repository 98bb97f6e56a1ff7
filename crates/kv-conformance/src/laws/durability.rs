//! Durability levels: the engine accepts or refuses each as its capabilities state, and keeps its
//! promise when the store is closed and reopened.

use kv::{Batch, Durability, Engine, ErrorKind, TreeId};

use crate::bench::Bench;
use crate::verbs::{all, all_keys, create, get, numbered, refused};

/// Commit a put of `key` at `level`, by a transaction.
fn commit_at(db: &dyn Engine, tree: TreeId, key: &[u8], level: Durability) -> kv::Result<()> {
    let mut txn = db.begin_write()?;
    txn.put(tree, key, level.name().as_bytes())?;
    txn.commit(level)
}

/// Commit a put of `key` at `level`, by a batch.
fn write_at(db: &dyn Engine, tree: TreeId, key: &[u8], level: Durability) -> kv::Result<()> {
    let mut batch = Batch::new();
    batch.put(tree, key, level.name().as_bytes());
    db.write(&batch, level)
}

pub(crate) fn transactions_commit_at_every_level(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for level in Durability::ALL {
        commit_at(&*db, t, b"k", level).unwrap();
        let value = get(&*db, t, b"k").expect("visible at once");
        assert_eq!(value, level.name().as_bytes());
    }
}

pub(crate) fn batches_are_written_at_every_level(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for level in Durability::ALL {
        write_at(&*db, t, b"k", level).unwrap();
        let value = get(&*db, t, b"k").expect("visible at once");
        assert_eq!(value, level.name().as_bytes());
    }
}

pub(crate) fn none_is_always_taken(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    commit_at(&*db, t, b"a", Durability::None).unwrap();
    write_at(&*db, t, b"b", Durability::None).unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b"]);
}

pub(crate) fn without_a_log_stronger_levels_are_unsupported(lab: &mut Bench<'_>) {
    let mut options = lab.options();
    options.log = false;
    let db = match lab.factory().open(&lab.directory(), &options) {
        Ok(db) => db,
        Err(e) => {
            // An engine that cannot work without its log refuses the option with one of these
            // kinds.
            let known = [ErrorKind::Unsupported, ErrorKind::Invalid];
            assert!(known.contains(&e.kind()), "{e}");
            return;
        }
    };
    let t = create(&*db, "t");
    commit_at(&*db, t, b"a", Durability::None).unwrap();
    write_at(&*db, t, b"b", Durability::None).unwrap();
    for level in [Durability::Interval, Durability::Group, Durability::Sync] {
        let result = commit_at(&*db, t, b"c", level);
        assert_eq!(refused(result), ErrorKind::Unsupported, "{level}");
        let result = write_at(&*db, t, b"c", level);
        assert_eq!(refused(result), ErrorKind::Unsupported, "{level}");
    }
    assert_eq!(all_keys(&*db, t), ["a", "b"]);
}

pub(crate) fn levels_mix(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    for n in 0..40u32 {
        let level = Durability::ALL[n as usize % 4];
        if n % 8 < 4 {
            commit_at(&*db, t, &numbered(n), level).unwrap();
        } else {
            write_at(&*db, t, &numbered(n), level).unwrap();
        }
    }
    for (n, (key, value)) in (0u32..).zip(all(&*db, t)) {
        let level = Durability::ALL[n as usize % 4];
        assert_eq!(
            (key, value),
            (numbered(n), level.name().as_bytes().to_vec())
        );
    }
}

pub(crate) fn every_level_survives_close(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let t = create(&*db, "t");
    for level in Durability::ALL {
        commit_at(&*db, t, format!("txn {level}").as_bytes(), level).unwrap();
        write_at(&*db, t, format!("batch {level}").as_bytes(), level).unwrap();
    }
    let expected = all(&*db, t);
    assert_eq!(expected.len(), 8);
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert_eq!(all(&*db, t), expected);
}

pub(crate) fn every_level_survives_drop(lab: &mut Bench<'_>) {
    for level in Durability::ALL {
        let directory = lab.path(level.name());
        let db = lab.try_open(&directory).unwrap();
        let t = create(&*db, "t");
        commit_at(&*db, t, b"a", level).unwrap();
        write_at(&*db, t, b"b", level).unwrap();
        drop(db);
        let db = lab.try_open(&directory).unwrap();
        let t = db.open_tree("t").unwrap();
        assert_eq!(all_keys(&*db, t), ["a", "b"], "{level}");
    }
}

pub(crate) fn close_after_sync_log_keeps_everything(lab: &mut Bench<'_>) {
    let mut db = lab.open();
    let t = create(&*db, "t");
    commit_at(&*db, t, b"a", Durability::None).unwrap();
    db.sync_log().unwrap();
    commit_at(&*db, t, b"b", Durability::None).unwrap();
    db.checkpoint().unwrap();
    commit_at(&*db, t, b"c", Durability::None).unwrap();
    db = lab.reopen(db);
    let t = db.open_tree("t").unwrap();
    assert_eq!(all_keys(&*db, t), ["a", "b", "c"]);
}
