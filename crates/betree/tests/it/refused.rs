//! Commits that are refused because the log could not be written or synced.

use std::path::Path;
use std::sync::Arc;

use betree::{Batch, Db, Durability, ErrorKind, Options, TreeId, TreeOptions};
use sim::{Crash, Fault, FaultKind, Outcome, Pages, Profile, SimOptions, SimVfs};

fn open(disk: &SimVfs) -> Db {
    let options = Options::default().with_threads(0);
    Db::open_with(Arc::new(disk.clone()), Path::new("/store"), options).unwrap()
}

fn commit(db: &Db, tree: TreeId, key: &[u8], durability: Durability) -> betree::Result<()> {
    let mut txn = db.begin()?;
    txn.put(tree, key, b"value")?;
    txn.commit(durability)
}

fn has(db: &Db, tree: TreeId, key: &[u8]) -> bool {
    let snapshot = db.begin_read().unwrap();
    snapshot.get(tree, key).unwrap().is_some()
}

#[test]
fn levels_that_need_the_log_are_unsupported_without_it() {
    let disk = SimVfs::new(SimOptions::default());
    let options = Options::default().with_threads(0).with_log(false);
    let db = Db::open_with(Arc::new(disk), Path::new("/store"), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    for level in [Durability::Interval, Durability::Group, Durability::Sync] {
        let error = commit(&db, tree, b"k", level).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let error = db.write(&Batch::new(), level).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    assert!(!has(&db, tree, b"k"), "nothing of them was applied");
    commit(&db, tree, b"k", Durability::None).unwrap();
    assert!(has(&db, tree, b"k"));
}

#[test]
fn a_refused_commit_stays_visible_until_the_store_is_opened_again() {
    // health: I1.
    let lost = FaultKind::SyncFails(Pages::Keep);
    let cases = [
        (Durability::Interval, "log.write", FaultKind::Eio),
        (Durability::Group, "log.write", FaultKind::Eio),
        (Durability::Group, "log.sync", lost),
        (Durability::Sync, "log.sync", lost),
    ];
    for (durability, site, kind) in cases {
        let context = format!("{durability}, {site}");
        let disk = SimVfs::new(SimOptions::default());
        let db = open(&disk);
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        commit(&db, tree, b"before", Durability::Sync).unwrap();
        disk.inject(Fault::once(site, 1, kind));
        let refused = commit(&db, tree, b"refused", durability).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Io, "{context}");
        disk.clear_faults();
        // Other readers may have seen it before the shared sync failed.
        assert!(has(&db, tree, b"refused"), "{context}");
        let next = commit(&db, tree, b"next", Durability::None).unwrap_err();
        assert_eq!(next.kind(), ErrorKind::Closed, "{context}");
        assert!(!has(&db, tree, b"next"), "{context}");
        let crash = Crash {
            profile: Profile::DropsEverything,
            outcome: Outcome::None,
            seed: 0,
        };
        let again = open(&disk.image(crash));
        let tree = again.open_tree("t").unwrap();
        assert!(has(&again, tree, b"before"), "{context}");
        // A failed sync may have made any of the writes before it durable.
        let may_be_durable = site == "log.sync";
        assert!(
            may_be_durable || !has(&again, tree, b"refused"),
            "{context}"
        );
        commit(&again, tree, b"next", Durability::Sync).unwrap();
    }
}
