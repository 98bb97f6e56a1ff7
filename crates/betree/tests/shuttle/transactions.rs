//! Transactions that write the same keys.

use std::sync::Arc;

use betree::{Durability, ErrorKind, TreeOptions};

use crate::books::{disk, join, open, thread, tiny};
use crate::explore::explore;

#[test]
fn no_increment_is_lost() {
    explore(400, || {
        let db = Arc::new(open(&disk(), &tiny()));
        let tree = db.create_tree("counter", TreeOptions::default()).unwrap();
        let increment = || {
            let db = Arc::clone(&db);
            thread(move || {
                let mut done = 0;
                while done < 2 {
                    let mut transaction = db.begin().unwrap();
                    let old = transaction.get(tree, b"n").unwrap();
                    let new = old.map_or(0, |bytes| bytes[0]) + 1;
                    let result = transaction.put(tree, b"n", &[new]);
                    match result.and_then(|()| transaction.commit(Durability::None)) {
                        Ok(()) => done += 1,
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                            // The winner may not be visible yet.
                            stdx::sync::shuttle::thread::yield_now();
                        }
                    }
                }
            })
        };
        let worker = {
            let db = Arc::clone(&db);
            thread(move || {
                assert!(!db.settle(std::time::Duration::ZERO).unwrap());
                while db.step().unwrap() {}
            })
        };
        join([increment(), increment(), increment(), worker]);
        let found = db.begin_read().unwrap().get(tree, b"n").unwrap();
        assert_eq!(found, Some(vec![6]));
    });
}
