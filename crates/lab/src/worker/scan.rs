//! The client that reads the rows and every index from beginning to end.
//!
//! A *query* of a scan reads the next [`SCAN_PIECE`] entries, or the rest if there are fewer, so
//! that rates and latencies refer to pieces of one size.

use lab_report::error::{Error, Result};

use super::meter::ClientMeter;
use super::step::Shared;
use crate::targets::Part;
use crate::workload::iibench::SCAN_PIECE;

/// Scan the rows, then each index.
pub(super) fn all(shared: &Shared<'_>) {
    if let Err(error) = parts(shared) {
        shared.fail(error);
    }
}

fn parts(shared: &Shared<'_>) -> Result<()> {
    let session = shared.session;
    let connected = session.database.connect();
    shared.arrive();
    if !session.live.indexed {
        return Err(Error::target("a scan follows a load with indexes"));
    }
    let meter = ClientMeter::new(shared, 0);
    let mut connection = connected?;
    let indexes = 0..usize::from(session.generator.params().indexes);
    let indexes = indexes.map(Part::Index);
    for part in [Part::Rows].into_iter().chain(indexes) {
        let found = connection.scan(part, SCAN_PIECE, &meter)?;
        let rows = session.live.rows();
        if found == rows || !session.keeps {
            continue;
        }
        // If the time was up, entries were not read but are not missing.
        if shared.stopped() {
            break;
        }
        shared.wrong(format!("a scan met {found} entries where there are {rows}"));
    }
    Ok(())
}
