//! The client that builds the three indexes, one after the other, or that rewrites the rows.

use lab_report::error::{Error, Result};

use crate::targets::Meter as _;

use super::meter::ClientMeter;
use super::step::Shared;

pub(super) fn indexes(shared: &Shared<'_>) {
    if let Err(error) = all(shared) {
        shared.fail(error);
    }
}

fn all(shared: &Shared<'_>) -> Result<()> {
    let live = shared.session.live;
    let meter = ClientMeter::new(shared, 0);
    let connected = shared.session.database.connect();
    shared.arrive();
    let mut connection = connected?;
    for index in 0..3 {
        connection.build(index, live.low..live.high, &meter)?;
        if shared.stopped() {
            return Err(Error::target(
                "building the indexes took longer than the step may",
            ));
        }
    }
    Ok(())
}

/// Rewrite the rows. They count as written only when the rewrite is complete.
pub(super) fn rows(shared: &Shared<'_>) {
    shared.arrive();
    let meter = ClientMeter::new(shared, 0);
    meter.begin();
    match shared.session.database.rebuild(&meter) {
        Ok(()) => {
            meter.end();
            meter.wrote(shared.session.live.rows(), 0);
        }
        Err(error) => shared.fail(error),
    }
}
