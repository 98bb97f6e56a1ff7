//! Cursors that move while buckets are flushed, merged and split.

use std::ops::Bound;
use std::sync::Arc;

use betree::{Batch, Direction, Durability, TreeOptions};

use crate::books::{disk, join, open, thread, tiny};
use crate::explore::explore;

const ROWS: u32 = 24;

fn row(number: u32) -> [u8; 4] {
    (number * 2).to_be_bytes()
}

/// Move a cursor in `direction`, with seeks in both directions; it must return the rows, each once.
fn walk(directions: Direction, splits: bool) -> impl Fn() + Clone + Send + Sync + 'static {
    move || {
        let db = Arc::new(open(&disk(), &tiny()));
        let tree = db.create_tree("rows", TreeOptions::default()).unwrap();
        let mut batch = Batch::new();
        for number in 0..ROWS {
            batch.put(tree, &row(number), &[1; 500]);
        }
        db.write(&batch, Durability::None).unwrap();
        let snapshot = db.begin_read().unwrap();
        let reader = thread(move || {
            let (start, end) = (Bound::Included(&row(2)[..]), Bound::Excluded(&row(20)[..]));
            let mut cursor = snapshot.cursor(tree, start, end, directions).unwrap();
            let mut seen = Vec::new();
            while cursor.advance().unwrap() {
                assert_eq!(cursor.value(), [1; 500]);
                seen.push(cursor.key().to_vec());
            }
            if directions == Direction::Backward {
                seen.reverse();
            }
            let expected: Vec<_> = (2..20).map(|n| row(n).to_vec()).collect();
            assert_eq!(seen, expected);
            for number in [15, 3, 11] {
                assert!(cursor.seek(&row(number)).unwrap());
                assert_eq!(cursor.key(), row(number));
            }
        });
        let work = |compact: bool| {
            let db = Arc::clone(&db);
            thread(move || {
                if compact {
                    let all = (Bound::Unbounded, Bound::Unbounded);
                    assert!(db.compact(tree, all.0, all.1, &mut |_, _| true).unwrap());
                } else {
                    while db.step().unwrap() {}
                }
            })
        };
        let writer = {
            let db = Arc::clone(&db);
            thread(move || {
                for round in 0..3 {
                    let mut batch = Batch::new();
                    for number in 0..ROWS {
                        // Keys above all others: such runs are appended, and the bucket is cut.
                        let ascending = (1_000 + round * ROWS + number).to_be_bytes();
                        batch.put(tree, &ascending, &[2; 300]);
                        match number % 3 {
                            0 => batch.delete(tree, &row(number)),
                            1 => batch.put(tree, &row(number), &[3; 20]),
                            _ => batch.put(tree, &(number * 2 + 1).to_be_bytes(), &[4; 20]),
                        }
                    }
                    db.write(&batch, Durability::None).unwrap();
                }
            })
        };
        join([reader, writer, work(splits), work(false)]);
    }
}

#[test]
fn a_cursor_forward_passes_every_row_once_while_buckets_split() {
    explore(150, walk(Direction::Forward, true));
}

#[test]
fn a_cursor_backward_passes_every_row_once_while_buckets_split() {
    explore(150, walk(Direction::Backward, true));
}

#[test]
fn a_cursor_passes_every_row_once_while_buffers_grow() {
    explore(150, walk(Direction::Forward, false));
    explore(150, walk(Direction::Backward, false));
}
