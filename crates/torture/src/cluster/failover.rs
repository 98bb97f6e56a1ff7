//! How long a replica set acknowledges no write when its primary fails.
//!
//! One client writes with `majority` and retries as drivers do: with the same number in its
//! session, at the member that is primary now. The outage of a failure is the longest pause between
//! two acknowledgements from the failure until the next primary has acknowledged some writes.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use bson::{Binary, Document, doc, spec::BinarySubtype};
use stdx::sync::Mutex;
use stdx::{Rng, time};

use super::answer;
use super::check::HEAL_MAX;
use super::faults::{Faults, Kind};
use super::shared::{Shared, is_primary};
use super::{Config, run};
use crate::server::Failure;
use crate::server::cycle::empty;
use crate::server::link::is_ok;
use crate::server::operation::DATABASE;

/// The failures that are measured.
const KINDS: [Kind; 3] = [Kind::Kill, Kind::Isolate, Kind::StepDown];

/// Acknowledgements by the next primary that end an outage.
const AFTER: usize = 10;

/// The pause between looks at a condition.
const LOOK: Duration = Duration::from_millis(5);

/// The outages of a set, by failure of its primary.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// The engines of the members.
    pub members: String,
    /// The outages in increasing order.
    pub of: Vec<(Kind, Vec<Duration>)>,
}

impl fmt::Display for Outages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outages of {}, in ms:", self.members)?;
        for (kind, sorted) in &self.of {
            let at = |share: usize| {
                let nth = (sorted.len() * share).div_ceil(100).saturating_sub(1);
                sorted.get(nth).map_or(0, Duration::as_millis)
            };
            let count = sorted.len();
            let kind = format!("{kind:?}");
            write!(
                f,
                "\n  {kind:<9} {count} times: median {}, p95 {}, longest {}",
                at(50),
                at(95),
                at(100)
            )?;
        }
        Ok(())
    }
}

/// What the client has found.
#[derive(Default)]
struct Client {
    acked: Mutex<Vec<Instant>>,
}

/// A set whose primary fails.
struct Trial<'a> {
    shared: &'a Shared,
    client: &'a Client,
    faults: Faults<'a>,
    rng: Rng,
}

/// Let the primary of a new set with default settings fail `rounds` times in each way. `note` is
/// called for each outage.
///
/// # Errors
/// Why the set could not begin; a set that no longer acknowledges writes.
pub fn failover(
    config: &Config,
    rounds: u64,
    note: &mut dyn FnMut(&str),
) -> Result<Outages, Failure> {
    let fail = |story: String| Failure {
        broken: true,
        story,
        directory: config.directory.clone(),
    };
    empty(&config.directory).map_err(fail)?;
    let shared = Shared::new(config.members.len());
    measure(config, &shared, rounds, note).map_err(|what| {
        let journal = config.directory.join("journal.txt");
        let written = shared.journal.write(&journal).err().unwrap_or_default();
        fail(format!("{what}{}{written}", shared.journal.around(&what)))
    })
}

fn measure(
    config: &Config,
    shared: &Shared,
    rounds: u64,
    note: &mut dyn FnMut(&str),
) -> Result<Outages, String> {
    let mut rng = Rng::new(config.seed);
    let mut faults = Faults::new(shared, config, Rng::new(rng.next_u64()))?;
    faults.initiate(Document::new(), None)?;
    faults.await_majority()?;
    let mut outages = Outages {
        members: config.members.join(","),
        of: KINDS.map(|kind| (kind, Vec::new())).to_vec(),
    };
    let client = Client::default();
    let mut drawn = Rng::new(rng.next_u64());
    let mut trial = Trial {
        shared,
        client: &client,
        faults,
        rng,
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let result = client.write(shared, &mut drawn);
            shared.stop(true);
            result
        });
        let measured = trial.fail_often(rounds, &mut outages, note);
        shared.stop(true);
        let written = writer.join();
        written.map_err(|_| "the client panicked".to_owned())??;
        measured
    })?;
    for (_, found) in &mut outages.of {
        found.sort_unstable();
    }
    Ok(outages)
}

impl Client {
    /// Write until stopped.
    fn write(&self, shared: &Shared, rng: &mut Rng) -> Result<(), String> {
        let mut bytes = vec![0; 16];
        rng.fill(&mut bytes);
        let id = Binary {
            subtype: BinarySubtype::Uuid,
            bytes,
        };
        let mut link = None;
        let mut number = 1_i64;
        while !shared.stopped() {
            let Some((_, current)) = &mut link else {
                link = shared.primary(rng)?;
                continue;
            };
            let command = doc! {
                "insert": "outages", "documents": [{ "_id": number }],
                "lsid": { "id": id.clone() }, "txnNumber": number,
                "writeConcern": { "w": "majority", "wtimeout": 10_000 },
            };
            match current.command(DATABASE, &command) {
                Ok(reply) if is_ok(&reply) && !answer::is_unsatisfied(&reply) => {
                    self.acked.lock().push(time::now());
                    number += 1;
                }
                Ok(reply) if answer::is_passing(&reply) => link = None,
                Ok(reply) => return Err(format!("{command} was answered {reply}")),
                Err(_) => link = None,
            }
        }
        Ok(())
    }

    /// The longest pause since an acknowledgement.
    fn longest(&self, from: usize) -> Duration {
        let acked = self.acked.lock();
        let since = acked.get(from..).unwrap_or_default();
        let pauses = since.windows(2).filter_map(|pair| match pair {
            [one, next] => Some(next.duration_since(*one)),
            _ => None,
        });
        pauses.max().unwrap_or_default()
    }

    fn count(&self) -> usize {
        self.acked.lock().len()
    }
}

impl Trial<'_> {
    fn fail_often(
        &mut self,
        rounds: u64,
        outages: &mut Outages,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        for round in 1..=rounds {
            for (kind, found) in &mut outages.of {
                let outage = self.outage(*kind)?;
                note(&format!(
                    "round {round}: {kind:?} {} ms",
                    outage.as_millis()
                ));
                found.push(outage);
            }
        }
        Ok(())
    }

    /// Let the primary fail, and wait for the end of the outage and of the failure.
    fn outage(&mut self, kind: Kind) -> Result<Duration, String> {
        let (shared, client) = (self.shared, self.client);
        let before = client.count();
        run::until(shared, "the client gets acknowledgements", || {
            Ok(before + AFTER <= client.count())
        })?;
        let Some((primary, _)) = shared.primary(&mut self.rng)? else {
            return Err("no primary though writes are acknowledged".to_owned());
        };
        let from = client.count().saturating_sub(1);
        self.faults.strike(kind, primary)?;
        run::until(shared, "another member is primary", || {
            others(shared, primary)
        })?;
        let elected = client.count();
        run::until(shared, "the next primary acknowledges", || {
            Ok(elected + AFTER <= client.count())
        })?;
        let longest = client.longest(from);
        self.faults.alive()?;
        self.faults.end()?;
        self.faults.await_all()?;
        Ok(longest)
    }
}

/// Whether a member other than this one is primary.
fn others(shared: &Shared, but: usize) -> Result<bool, String> {
    for member in (0..shared.members()).filter(|member| *member != but) {
        let Some(mut link) = shared.to(member, HEAL_MAX) else {
            continue;
        };
        if shared
            .hello(member, &mut link)?
            .is_some_and(|hello| is_primary(&hello))
        {
            return Ok(true);
        }
    }
    time::sleep(LOOK);
    Ok(false)
}
