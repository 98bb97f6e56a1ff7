//! Commits that are refused because the log could not be written or synced.

use std::path::Path;
use std::sync::Arc;

use betree::{Db, Durability, ErrorKind, Options, TreeId, TreeOptions};
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
fn a_refused_commit_stays_visible_until_the_store_is_opened_again() {
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
        // Others may have seen it before the sync that they share has failed.
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
        // A sync that failed may have made any of the writes before it durable.
        let may_be_durable = site == "log.sync";
        assert!(
            may_be_durable || !has(&again, tree, b"refused"),
            "{context}"
        );
        commit(&again, tree, b"next", Durability::Sync).unwrap();
    }
}
