//! A client that sends common commands and measures their duration.

use std::time::Duration;

use bson::doc;
use stdx::time;

use super::super::link::{Link, is_ok};
use super::Phase;
use super::figures::Part;
use super::tally::{self, Tally};

/// The pause between probes.
const PAUSE: Duration = Duration::from_millis(20);
/// Number of probes after which the connection is replaced.
const RECONNECT: u64 = 5;

/// Sends `hello`, or finds a document by `_id`, until stopped.
pub(super) fn run(port: u16, phase: Phase, tally: &Tally) -> Result<Part, String> {
    let mut part = Part::default();
    let connect = || Link::to(port).map_err(|lost| format!("H3: no connection: {lost}"));
    let mut link = connect()?;
    let mut number = 0;
    while !tally.is_stopped() {
        number += 1;
        let begun = time::now();
        if number % RECONNECT == 0 {
            link = connect()?;
        }
        let (database, command) = match phase {
            Phase::Queries => ("load", doc! {"find": "kept", "filter": {"_id": 7}}),
            Phase::BeforeLogin => ("admin", doc! {"hello": 1}),
        };
        let reply = link.command(database, &command);
        let reply = reply.map_err(|lost| format!("H3: a probe was not answered: {lost}"))?;
        part.probes.push(begun.elapsed());
        tally::one(&tally.probes);
        if !is_ok(&reply) {
            return Err(format!("H3: a probe was answered {reply}"));
        }
        time::sleep(PAUSE);
    }
    Ok(part)
}
