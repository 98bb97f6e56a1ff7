//! The laps of a run: clients work while members suffer faults, then everything is healed and
//! compared.

use std::path::PathBuf;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use bson::{Timestamp, doc};
use stdx::{Rng, time};

use super::check::{self, Expected, HEAL_MAX};
use super::faults::Faults;
use super::loose::Loose;
use super::registers::Registers;
use super::report::Summary;
use super::shared::{Shared, observe};
use super::stream::Stream;
use super::writer::Writer;
use crate::server::Failure;
use crate::server::check::prepare;
use crate::server::cycle::empty;
use crate::server::link::{Link, is_ok};
use crate::server::model::Model;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The storage engine of each member.
    pub members: Vec<String>,
    /// Least duration of the run; it ends with the lap in which it is reached.
    pub time: Duration,
    /// Rounds of faults, one or two in each, between two comparisons.
    pub rounds: u64,
    /// The seed of operations and faults.
    pub seed: u64,
    /// Directory of the members; empty or missing.
    pub directory: PathBuf,
    /// The program of the servers, run with `serve`.
    pub program: PathBuf,
    /// Number of clients that write with `majority`.
    pub clients: u32,
    /// Whether clients count writes as acknowledged that they do not send, to test the laws.
    pub skips: bool,
}

struct Run<'a> {
    shared: &'a Shared,
    faults: Faults<'a>,
    rng: Rng,
    writers: Vec<Writer>,
    loose: Loose,
    registers: Registers,
    stream: Stream,
    summary: Summary,
}

/// Execute a run. `note` is called for each lap.
///
/// # Errors
/// A broken law, or the reason why the run could not start.
pub fn run(config: &Config, note: &mut dyn FnMut(&str)) -> Result<Summary, Failure> {
    let fail = |broken: bool, story: String| Failure {
        broken,
        story,
        directory: config.directory.clone(),
    };
    empty(&config.directory).map_err(|e| fail(false, e))?;
    if config.members.len() < 3 {
        return Err(fail(false, "a set needs three members".to_owned()));
    }
    let shared = Shared::new(config.members.len());
    let (result, states) = match Run::begin(config, &shared) {
        Ok(mut run) => {
            let result = run.laps(config, note);
            let states = result.as_ref().err().map(|_| run.faults.states());
            (result, states.unwrap_or_default())
        }
        Err(what) => (Err(what), Vec::new()),
    };
    result.map_err(|what| {
        let journal = config.directory.join("journal.txt");
        let written = shared.journal.write(&journal).err().unwrap_or_default();
        let place = config.directory.display();
        let (seed, members) = (config.seed, config.members.join(","));
        let seconds = config.time.as_secs();
        let around = shared.journal.around(&what);
        let states = states.join("\n    ");
        fail(
            true,
            format!(
                "{what}{around}\n  the members:\n    {states}\n  seed {seed}, members {members}\n  \
                 kept in {place}: everything that happened in `journal.txt`; of each member the \
                 store, `server.log` (of former processes `server.N.log`) and `server.err` in \
                 `memberN` {written}\n  again (the moments of faults will differ): torture \
                 --cluster {seconds} --members {members} --seed {seed}"
            ),
        )
    })
}

impl<'a> Run<'a> {
    /// Start the members, and make the collections.
    fn begin(config: &Config, shared: &'a Shared) -> Result<Run<'a>, String> {
        let mut rng = Rng::new(config.seed);
        let mut faults = Faults::new(shared, config, Rng::new(rng.next_u64()))?;
        faults.initiate_drawn()?;
        faults.await_majority()?;
        let mut link = primary(shared, &mut rng)?;
        // Everything from here on is in the change stream.
        let ping = link.command("admin", &doc! { "ping": 1 });
        let ping = ping.map_err(|lost| lost.to_string())?;
        let since = ping.get_timestamp("operationTime");
        let since = since.map_err(|e| format!("the reply to ping: {e}: {ping}"))?;
        let since = Timestamp {
            increment: since.increment + 1,
            ..since
        };
        prepare(&mut link, &doc! { "w": "majority" })?;
        let writers = (0..config.clients).map(|n| Writer::new(n, config.seed, config.skips));
        let names = config.members.join(",");
        Ok(Run {
            shared,
            faults,
            writers: writers.collect(),
            loose: Loose::default(),
            registers: Registers::default(),
            stream: Stream::new(since, config.seed),
            rng,
            summary: Summary::new(config.seed, names),
        })
    }

    fn laps(&mut self, config: &Config, note: &mut dyn FnMut(&str)) -> Result<Summary, String> {
        let begun = time::now();
        loop {
            self.lap(config.rounds)?;
            self.compare()?;
            self.count();
            self.summary.elapsed = begun.elapsed();
            note(&self.summary.to_string());
            if config.time <= begun.elapsed() {
                return Ok(self.summary.clone());
            }
        }
    }

    /// Let clients work while members suffer faults.
    fn lap(&mut self, rounds: u64) -> Result<(), String> {
        let shared = self.shared;
        shared.stop(false);
        let mut seeds: Vec<Rng> = (0..7).map(|_| Rng::new(self.rng.next_u64())).collect();
        let (loose, registers) = (&self.loose, &self.registers);
        let (writers, stream) = (&mut self.writers, &mut self.stream);
        let faults = &mut self.faults;
        thread::scope(|scope| {
            let mut clients = Clients {
                shared,
                scope,
                all: Vec::new(),
            };
            for writer in writers {
                clients.add(move || writer.operate(shared));
            }
            clients.add(move || stream.follow(shared));
            clients.add(move || observe(shared));
            type Client<'c> = Box<dyn Fn(&mut Rng) -> Result<(), String> + Send + 'c>;
            let others: [Client<'_>; 7] = [
                Box::new(move |rng| loose.insert(shared, rng)),
                Box::new(move |rng| loose.insert(shared, rng)),
                Box::new(move |rng| loose.read(shared, rng)),
                Box::new(move |rng| loose.read(shared, rng)),
                Box::new(move |rng| Loose::shake(shared, rng)),
                Box::new(move |rng| registers.write(shared, rng)),
                Box::new(move |rng| registers.read(shared, rng)),
            ];
            for client in others {
                let mut rng = seeds.pop().unwrap_or_else(|| Rng::new(0));
                clients.add(move || client(&mut rng));
            }
            let mut suffered = Ok(());
            for _ in 0..rounds {
                if shared.stopped() || suffered.is_err() {
                    break;
                }
                suffered = faults.round();
            }
            shared.stop(true);
            clients.join().and(suffered)
        })
    }

    /// Heal everything, and compare all members with what is expected.
    fn compare(&mut self) -> Result<(), String> {
        let shared = self.shared;
        shared.stop(false);
        self.faults.end()?;
        self.faults.alive()?;
        self.faults.await_majority()?;
        let end = time::now() + HEAL_MAX;
        let mut model = Model::default();
        for writer in &mut self.writers {
            while let Some((at, mut link)) = shared.primary(&mut self.rng)?
                && !writer.resolve(shared, at, &mut link)?
            {
                if end <= time::now() {
                    return Err("C8: an operation has no outcome in a healed set".to_owned());
                }
            }
            model.add(&writer.model);
        }
        check::settle(shared)?;
        self.summary.laps += 1;
        let mark = i64::try_from(self.summary.laps).unwrap_or(0);
        let mut link = primary(shared, &mut self.rng)?;
        self.stream.finish(shared, &mut link, mark)?;
        check::settle(shared)?;
        self.faults.alive()?;
        let expected = Expected {
            model: &model,
            loose: &self.loose,
            registers: &self.registers,
            stream: &self.stream,
        };
        self.summary.documents += check::members(shared, &expected)?;
        Ok(())
    }

    fn count(&mut self) {
        let summary = &mut self.summary;
        let counts: Vec<_> = self.writers.iter().map(|writer| writer.counts).collect();
        summary.acked = counts.iter().map(|c| c.acked).sum();
        summary.transactions = counts.iter().map(|c| c.transactions).sum();
        summary.rolled_back = counts.iter().map(|c| c.rolled_back).sum();
        summary.again = counts.iter().map(|c| c.again).sum();
        summary.causal = counts.iter().map(|c| c.reads).sum();
        (summary.majority, summary.loose) = self.loose.counts();
        summary.linearizable = self.registers.reads();
        summary.events = self.stream.events;
        summary.resumed = self.stream.resumed;
        summary.terms = self.shared.terms();
        summary.faults = self.faults.counts.clone();
    }
}

/// The threads of the clients. The first one that fails stops all others.
struct Clients<'scope, 'env> {
    shared: &'scope Shared,
    scope: &'scope Scope<'scope, 'env>,
    all: Vec<ScopedJoinHandle<'scope, Result<(), String>>>,
}

impl<'scope> Clients<'scope, '_> {
    fn add(&mut self, client: impl FnOnce() -> Result<(), String> + Send + 'scope) {
        let shared = self.shared;
        self.all.push(self.scope.spawn(move || {
            let result = client();
            if let Err(what) = &result {
                shared.journal.note("broken", what.clone());
                shared.stop(true);
            }
            result
        }));
    }

    fn join(self) -> Result<(), String> {
        let mut first = Ok(());
        for client in self.all {
            let result = client.join().map_err(|_| "a client panicked".to_owned());
            first = first.and(result.and_then(|result| result));
        }
        first
    }
}

/// A connection to the primary of a set that works.
fn primary(shared: &Shared, rng: &mut Rng) -> Result<Link, String> {
    let end = time::now() + HEAL_MAX;
    while time::now() < end {
        if let Some((_, mut link)) = shared.primary(rng)? {
            let written = doc! {
                "insert": "awaited", "documents": [{}],
                "writeConcern": { "w": "majority", "wtimeout": 2_000 },
            };
            let reply = link.command(crate::server::operation::DATABASE, &written);
            if reply.is_ok_and(|reply| is_ok(&reply)) {
                return Ok(link);
            }
        }
    }
    Err("C8: there is no primary".to_owned())
}

/// Wait for a condition.
pub(super) fn until(
    shared: &Shared,
    what: &str,
    mut holds: impl FnMut() -> Result<bool, String>,
) -> Result<(), String> {
    let end = time::now() + HEAL_MAX;
    while !holds()? {
        if end <= time::now() || shared.stopped() {
            return Err(format!("C8: waited in vain until {what}"));
        }
        time::sleep(Duration::from_millis(1));
    }
    Ok(())
}
