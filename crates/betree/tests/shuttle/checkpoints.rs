//! Checkpoints during commits, flushes, merges, splits and changes of the catalog: the image that a
//! crash leaves must be complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use betree::{Batch, Durability, TreeOptions};

use crate::books::{Books, directory, join, open, scan, thread, tiny};
use crate::commits::{any_crash, drops_everything};
use crate::explore::explore;

fn checkpointer(books: &Arc<Books>, rounds: u32) -> impl FnOnce() + Send + use<> {
    let books = Arc::clone(books);
    move || {
        for _ in 0..rounds {
            books.db.checkpoint().unwrap();
        }
    }
}

#[test]
fn an_image_is_complete_while_buckets_are_flushed_merged_and_split() {
    explore(200, || {
        let books = Books::new(2, 700, &tiny());
        join([
            books.writer(0, 3, Durability::Group),
            books.writer(1, 4, Durability::None),
            books.worker(2),
            thread(checkpointer(&books, 2)),
        ]);
        let image = books.disk.image(drops_everything());
        let found = books.recover(&image, &tiny(), &books.acknowledged());
        books.db.verify().unwrap();
        books.db.sync_log().unwrap();
        let all = books.audit(&books.db.begin_read().unwrap());
        drop(found);
        let image = books.disk.image(any_crash());
        drop(books.recover(&image, &tiny(), &all));
    });
}

#[test]
fn what_an_image_names_is_not_given_out() {
    explore(400, || {
        let books = Books::new(1, 300, &tiny().with_k_cap(1));
        let checkpointer = {
            let books = Arc::clone(&books);
            thread(move || {
                for _ in 0..3 {
                    books.db.checkpoint().unwrap();
                    books.db.verify().unwrap();
                }
            })
        };
        join([
            books.writer(0, 4, Durability::None),
            books.worker(3),
            books.worker(3),
            checkpointer,
        ]);
        let image = books.disk.image(drops_everything());
        drop(books.recover(&image, &tiny(), &books.acknowledged()));
    });
}

#[test]
fn without_a_log_an_image_is_a_moment() {
    explore(200, || {
        let options = tiny().with_log(false);
        let books = Books::new(2, 300, &options);
        join([
            books.writer(0, 4, Durability::None),
            books.writer(1, 4, Durability::None),
            books.worker(2),
            thread(checkpointer(&books, 2)),
        ]);
        let image = books.disk.image(drops_everything());
        let found = open(&image, &options);
        let snapshot = found.begin_read().unwrap();
        let Ok(tree) = found.open_tree("books") else {
            panic!("a checkpoint was made");
        };
        assert_eq!(tree, books.tree);
        books.audit_content(&snapshot);
    });
}

#[test]
fn a_tree_created_during_a_checkpoint_is_there_after_a_crash() {
    explore(300, || {
        let books = Books::new(1, 20, &tiny());
        let creator = {
            let books = Arc::clone(&books);
            thread(move || {
                let tree = books.db.create_tree("new", TreeOptions::default()).unwrap();
                let mut batch = Batch::new();
                batch.put(tree, b"key", b"value");
                books.db.write(&batch, Durability::Sync).unwrap();
            })
        };
        join([creator, thread(checkpointer(&books, 2)), books.worker(1)]);
        let found = open(&books.disk.image(drops_everything()), &tiny());
        let tree = found.open_tree("new").unwrap();
        assert_eq!(scan(&found.begin_read().unwrap(), tree).len(), 1);
    });
}

#[test]
fn a_tree_dropped_during_a_checkpoint_stays_dropped_after_a_crash() {
    explore(300, || {
        let books = Books::new(1, 20, &tiny());
        let tree = books.db.create_tree("old", TreeOptions::default()).unwrap();
        let dropped = Arc::new(AtomicBool::new(false));
        let mut batch = Batch::new();
        batch.put(tree, b"key", b"value");
        books.db.write(&batch, Durability::Sync).unwrap();
        let dropper = {
            let (books, dropped) = (Arc::clone(&books), Arc::clone(&dropped));
            thread(move || {
                books.db.drop_tree("old").unwrap();
                dropped.store(true, Ordering::Relaxed);
            })
        };
        let crasher = {
            let (books, dropped) = (Arc::clone(&books), Arc::clone(&dropped));
            thread(move || {
                let gone = dropped.load(Ordering::Relaxed);
                let found = open(&books.disk.image(any_crash()), &tiny());
                match found.open_tree("old") {
                    Ok(tree) => {
                        assert!(!gone, "{} came back", directory().display());
                        assert_eq!(scan(&found.begin_read().unwrap(), tree).len(), 1);
                    }
                    Err(error) => assert_eq!(error.kind(), betree::ErrorKind::NotFound),
                }
            })
        };
        join([
            dropper,
            crasher,
            thread(checkpointer(&books, 2)),
            books.worker(1),
        ]);
        let found = open(&books.disk.image(drops_everything()), &tiny());
        assert_eq!(found.trees().unwrap(), ["books"]);
    });
}
