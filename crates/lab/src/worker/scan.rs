//! The client that reads every tree from end to end.
//!
//! A *query* of a scan is the next [`SCAN_PIECE`] entries, or what is left of a tree, so that rates
//! and latencies are of pieces of one size.

use std::sync::atomic::Ordering;

use kv::{Direction, KeyRange, TreeId};
use stdx::time;

use super::session::text;
use super::step::Shared;
use crate::workload::iibench::SCAN_PIECE;

/// Scan the rows, then each index.
pub(super) fn all(shared: &Shared<'_>) {
    let session = shared.session;
    let Some(indexes) = session.indexes.filter(|_| session.live.indexed) else {
        return shared.fail("a scan follows a load with indexes".to_owned());
    };
    let kept = usize::from(session.generator.params().indexes);
    let indexes = indexes.into_iter().take(kept);
    for tree in [session.rows].into_iter().chain(indexes) {
        match scan(shared, tree) {
            Ok(found) if found == session.live.rows() || !session.keeps => {}
            // The time was up: what was not read cannot be missed.
            Ok(_) if shared.stopped() => return,
            Ok(found) => {
                let rows = session.live.rows();
                shared.wrong(format!("a scan met {found} entries where there are {rows}"));
            }
            Err(message) => return shared.fail(message),
        }
    }
}

/// The entries met.
fn scan(shared: &Shared<'_>, tree: TreeId) -> Result<u64, String> {
    if !shared.session.keeps {
        return Ok(0);
    }
    let snapshot = shared.session.engine.begin_read().map_err(text)?;
    let mut cursor = snapshot
        .cursor(tree, KeyRange::ALL, Direction::Forward)
        .map_err(text)?;
    let mut all = 0;
    while !shared.stopped() {
        let due = time::now();
        shared.main.begin(0, due);
        let mut found = 0;
        // Keys and values are touched as by a program that adds them up.
        let mut bytes = 0u64;
        while found < SCAN_PIECE && cursor.advance().map_err(text)? {
            found += 1;
            bytes += cursor.key().len() as u64 + cursor.value().len() as u64;
        }
        shared.main.end(0, due, time::now());
        std::hint::black_box(bytes);
        all += found;
        shared.entries.fetch_add(found, Ordering::Relaxed);
        if 0 < found {
            shared.queries.fetch_add(1, Ordering::Relaxed);
        }
        if found < SCAN_PIECE {
            break;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use kv::{Batch, Durability};

    use crate::record::LoadKind;
    use crate::worker::protocol::Step;
    use crate::worker::step;
    use crate::worker::verify::tests::loaded;
    use crate::workload::iibench::{Row, Work};

    #[test]
    fn a_scan_reads_all_four_trees_and_misses_what_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut session = loaded(dir.path());
        let plan = Step {
            work: Work::Scan,
            operations: 0,
            seconds_max: 1e6,
            load: LoadKind::Closed,
            clients: 1,
            acknowledged: None,
        };
        let whole = step::run(&mut session, &plan, &|_| ()).unwrap();
        // 500 rows and three indexes of as many entries, each less than a piece.
        assert_eq!((whole.query_entries, whole.queries), (2000, 4));
        assert_eq!(whole.wrong, Vec::<String>::new());

        let mut row = Row::default();
        session.generator.row(7, &mut row);
        let mut batch = Batch::new();
        let tree = session.indexes.unwrap()[2];
        let key = row.index_keys().nth(2).unwrap().to_vec();
        batch.delete(tree, &key);
        session.engine.write(&batch, Durability::None).unwrap();
        let short = step::run(&mut session, &plan, &|_| ()).unwrap();
        assert_eq!(short.wrong, ["a scan met 499 entries where there are 500"]);
    }
}
