//! Ordinary clients during the attack: they insert, update and read; the server may refuse them for
//! memory, but for no other reason.

use bson::{Document, doc};
use stdx::Rng;

use super::super::link::{Link, code, is_ok};
use super::figures::Part;
use super::tally::{self, Tally};

/// Number of ordinary clients.
pub(super) const CLIENTS: u32 = 4;

/// The error codes of a server that has too little memory.
pub(super) const OUT_OF_MEMORY: [i32; 3] = [146, 292, 462];

/// Inserts, updates and reads until stopped.
pub(super) fn run(port: u16, number: u32, mut rng: Rng, tally: &Tally) -> Result<Part, String> {
    let mut link = Link::to(port).map_err(|lost| format!("H3: no connection: {lost}"))?;
    let mut part = Part::default();
    let mut next = i64::from(number) << 32;
    while !tally.is_stopped() {
        next += 1;
        let command = command(next, &mut rng);
        let reply = link.command("load", &command);
        let reply = reply.map_err(|lost| format!("H3: {command} was not answered: {lost}"))?;
        part.operations += 1;
        tally::one(&tally.operations);
        if !is_ok(&reply) {
            if !OUT_OF_MEMORY.contains(&code(&reply)) {
                return Err(format!("H3: {command} was answered {reply}"));
            }
            part.operations_refused += 1;
        }
    }
    Ok(part)
}

fn command(next: i64, rng: &mut Rng) -> Document {
    let id = i64::try_from(rng.below(1_000)).unwrap_or(0);
    match rng.below(4) {
        0 => {
            let documents: Vec<_> = (0..10)
                .map(|n| doc! {"_id": next * 16 + n, "n": id, "pad": "x".repeat(500)})
                .collect();
            doc! {"insert": "grown", "documents": documents}
        }
        1 => {
            let update = doc! {"q": {"_id": id}, "u": {"$inc": {"n": 1}}};
            doc! {"update": "kept", "updates": [update]}
        }
        2 => doc! {"find": "kept", "filter": {"n": {"$gte": id}}, "sort": {"n": 1}, "limit": 20},
        _ => doc! {"find": "kept", "filter": {"_id": id}},
    }
}
