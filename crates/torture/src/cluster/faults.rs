//! Faults, drawn from the seed, and the members that suffer them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bson::{Bson, Document, doc};
use stdx::Rng;
use stdx::sync::atomic::Ordering;
use stdx::time;

use super::check::HEAL_MAX;
use super::journal::FAULTS;
use super::links::{Flow, Links};
use super::member::{Member, SET};
use super::shared::{PATIENCE, Shared};
use crate::server::link::is_ok;
use crate::server::operation::DATABASE;

/// The pause between looks at a condition.
const LOOK: Duration = Duration::from_millis(20);

/// How long faults last, in milliseconds.
const HOLD_MS: (u64, u64) = (100, 3_500);

/// Faults, by their share.
const KINDS: [(Kind, u64); 12] = [
    (Kind::Kill, 6),
    (Kind::KillTwo, 1),
    (Kind::KillAll, 1),
    (Kind::Pause, 4),
    (Kind::Isolate, 5),
    (Kind::Cut, 3),
    (Kind::OneWay, 4),
    (Kind::Close, 3),
    (Kind::Late, 2),
    (Kind::Restart, 3),
    (Kind::StepDown, 4),
    (Kind::Empty, 3),
];

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `kill -9`, and a start later.
    Kill,
    /// The same of two members.
    KillTwo,
    /// The same of all members.
    KillAll,
    /// SIGSTOP, and SIGCONT later.
    Pause,
    /// A member reaches no other one, and is not reached.
    Isolate,
    /// Two members do not reach each other.
    Cut,
    /// What one member sends does not arrive.
    OneWay,
    /// The connections of two members are closed, and new ones are refused.
    Close,
    /// What a member sends and gets arrives late.
    Late,
    /// SIGTERM, and a start later.
    Restart,
    /// The primary is asked to step down.
    StepDown,
    /// A member loses its data.
    Empty,
}

/// The members, their links, and what happens to them.
pub(super) struct Faults<'a> {
    shared: &'a Shared,
    program: PathBuf,
    rng: Rng,
    links: Links,
    members: Vec<Member>,
    /// A member that has not yet copied the data again.
    emptied: Option<usize>,
    /// Numbers of the documents that [`Faults::await_majority`] writes.
    awaited: i64,
    pub(super) counts: BTreeMap<Kind, u64>,
}

impl<'a> Faults<'a> {
    /// Start all members.
    pub(super) fn new(
        shared: &'a Shared,
        config: &super::Config,
        rng: Rng,
    ) -> Result<Faults<'a>, String> {
        let links = Links::new(config.members.len())?;
        let members = config.members.iter().zip(0..).map(|(engine, number)| {
            let directory = config.directory.join(format!("member{number}"));
            Member::new(engine, &directory)
        });
        let mut faults = Faults {
            shared,
            program: config.program.clone(),
            rng,
            links,
            members: members.collect(),
            emptied: None,
            awaited: 0,
            counts: BTreeMap::new(),
        };
        for member in 0..faults.members.len() {
            faults.start(member)?;
        }
        Ok(faults)
    }

    /// Make them a set, with timeouts from the seed.
    pub(super) fn initiate_drawn(&mut self) -> Result<(), String> {
        let election = match self.rng.below(3) {
            0 => 600,
            1 => 1_000,
            _ => 2_000,
        };
        let favourite = self
            .rng
            .chance(0.3)
            .then(|| self.rng.index(self.members.len()));
        let catch_up = match self.rng.below(3) {
            0 => -1,
            1 => 0,
            _ => 500,
        };
        let settings = doc! {
            "electionTimeoutMillis": election, "heartbeatIntervalMillis": election / 4,
            "chainingAllowed": self.rng.chance(0.7),
            "catchUpTimeoutMillis": catch_up,
        };
        self.initiate(settings, favourite)
    }

    /// Make them a set. The default of each setting that is missing applies.
    pub(super) fn initiate(
        &mut self,
        settings: Document,
        favourite: Option<usize>,
    ) -> Result<(), String> {
        let members = (0..self.members.len()).map(|member| {
            let host = format!("127.0.0.1:{}", self.links.port(member));
            let priority = if favourite == Some(member) { 2 } else { 1 };
            let id = i32::try_from(member).unwrap_or(0);
            Bson::Document(doc! { "_id": id, "host": host, "priority": priority })
        });
        let config = doc! {
            "_id": SET, "version": 1, "members": members.collect::<Vec<_>>(),
            "settings": settings.clone(),
        };
        self.note(&format!("begins: {settings}, favourite {favourite:?}"));
        let link = self.shared.to(0, HEAL_MAX);
        let mut link = link.ok_or("member 0 does not accept a connection")?;
        let command = doc! { "replSetInitiate": config };
        let reply = link.command("admin", &command).map_err(|e| e.to_string())?;
        match is_ok(&reply) {
            true => Ok(()),
            false => Err(format!("{command} was answered {reply}")),
        }
    }

    fn note(&self, text: &str) {
        self.shared.journal.note(FAULTS, text.to_owned());
    }

    fn start(&mut self, member: usize) -> Result<(), String> {
        let Some(place) = self.members.get_mut(member) else {
            return Ok(());
        };
        let started = place.start(&self.program);
        let (process, port) = started.map_err(|e| format!("C7: member {member}: {e}"))?;
        self.links.runs(member, process, port);
        self.shared.listens(member, port);
        self.note(&format!(
            "member {member} started, process {process}, port {port}"
        ));
        Ok(())
    }

    /// The member has ended.
    fn forget(&self, member: usize) {
        self.links.runs(member, 0, 0);
        self.shared.listens(member, 0);
    }

    /// A member: the primary as often as any other one.
    fn victim(&mut self) -> Result<usize, String> {
        if self.rng.chance(0.5)
            && let Some((primary, _)) = self.shared.primary(&mut self.rng)?
        {
            return Ok(primary);
        }
        Ok(self.rng.index(self.members.len()))
    }

    /// One or two faults, and their end.
    pub(super) fn round(&mut self) -> Result<(), String> {
        for _ in 0..=self.rng.below(2) {
            let kind = self.draw();
            self.begin(kind)?;
            if self.rng.chance(0.5) {
                time::sleep(Duration::from_millis(self.rng.below(400)));
            }
        }
        let (least, most) = HOLD_MS;
        let hold = least + self.rng.below(most - least);
        time::sleep(Duration::from_millis(hold));
        self.alive()?;
        self.end()?;
        if self.rng.chance(0.6) {
            self.await_progress()?;
        } else {
            time::sleep(Duration::from_millis(self.rng.below(500)));
        }
        self.synced()
    }

    fn draw(&mut self) -> Kind {
        let all = KINDS.iter().map(|(_, share)| share).sum();
        let mut drawn = self.rng.below(all);
        for (kind, share) in KINDS {
            match drawn.checked_sub(share) {
                None => return kind,
                Some(rest) => drawn = rest,
            }
        }
        Kind::Kill
    }

    fn begin(&mut self, kind: Kind) -> Result<(), String> {
        let victim = self.victim()?;
        self.strike(kind, victim)
    }

    /// Begin a fault of this member; a step-down is of the primary.
    pub(super) fn strike(&mut self, kind: Kind, victim: usize) -> Result<(), String> {
        let other = (victim + 1 + self.rng.index(self.members.len() - 1)) % self.members.len();
        let others: Vec<usize> = (0..self.members.len()).filter(|m| *m != victim).collect();
        self.note(&format!("{kind:?} of member {victim} (other {other})"));
        *self.counts.entry(kind).or_default() += 1;
        match kind {
            Kind::Kill => self.kill(victim),
            Kind::KillTwo => [victim, other]
                .into_iter()
                .for_each(|member| self.kill(member)),
            Kind::KillAll => (0..self.members.len()).for_each(|member| self.kill(member)),
            Kind::Pause => {
                if let Some(member) = self.members.get_mut(victim) {
                    member.pause(true);
                }
            }
            Kind::Isolate => {
                for other in others {
                    self.both(victim, other, Flow::Held);
                }
            }
            Kind::Cut => self.both(victim, other, Flow::Held),
            Kind::OneWay => match self.rng.below(3) {
                0 => self.links.set(victim, other, Flow::Held),
                1 => others
                    .iter()
                    .for_each(|o| self.links.set(victim, *o, Flow::Held)),
                _ => others
                    .iter()
                    .for_each(|o| self.links.set(*o, victim, Flow::Held)),
            },
            Kind::Close => self.both(victim, other, Flow::Closed),
            Kind::Late => {
                let by = Duration::from_millis(5 + self.rng.below(400));
                for other in others {
                    self.both(victim, other, Flow::Late(by));
                }
            }
            Kind::Restart => self.stop(victim)?,
            Kind::StepDown => self.step_down()?,
            Kind::Empty => self.empty(victim)?,
        }
        Ok(())
    }

    fn both(&self, a: usize, b: usize, flow: Flow) {
        self.links.set(a, b, flow);
        self.links.set(b, a, flow);
    }

    fn kill(&mut self, member: usize) {
        self.forget(member);
        if let Some(member) = self.members.get_mut(member) {
            member.kill();
        }
    }

    fn stop(&mut self, member: usize) -> Result<(), String> {
        let Some(place) = self.members.get_mut(member) else {
            return Ok(());
        };
        if place.paused {
            place.pause(false);
        }
        let stopped = place
            .stop()
            .map_err(|e| format!("C7: SIGTERM of member {member}: {e}"));
        self.forget(member);
        stopped
    }

    fn step_down(&mut self) -> Result<(), String> {
        let Some((at, mut link)) = self.shared.primary(&mut self.rng)? else {
            return Ok(());
        };
        let seconds = i64::try_from(1 + self.rng.below(4)).unwrap_or(1);
        let command = doc! {
            "replSetStepDown": seconds, "secondaryCatchUpPeriodSecs": 1,
            "force": self.rng.chance(0.5),
        };
        let reply = link.command("admin", &command);
        let reply = reply.map_or_else(|lost| lost.to_string(), |reply| reply.to_string());
        self.note(&format!("member {at} steps down: {reply}"));
        Ok(())
    }

    /// Kill a member and remove its data. What it had acknowledged, the others must have: they
    /// have it when they have acknowledged a write without it. Only one member at a time may lack
    /// its data.
    fn empty(&mut self, member: usize) -> Result<(), String> {
        if self.emptied.is_some() || !self.rng.chance(0.9) {
            return Ok(());
        }
        self.end()?;
        self.kill(member);
        self.await_majority()?;
        let Some(place) = self.members.get_mut(member) else {
            return Ok(());
        };
        place.empty()?;
        self.emptied = Some(member);
        self.note(&format!("member {member} is empty"));
        self.start(member)
    }

    /// Whether the member that lost its data has them again.
    fn synced(&mut self) -> Result<(), String> {
        let Some(member) = self.emptied else {
            return Ok(());
        };
        let Some(mut link) = self.shared.to(member, PATIENCE) else {
            return Ok(());
        };
        let hello = self.shared.hello(member, &mut link)?;
        if hello.is_some_and(|hello| hello.get_bool("secondary").unwrap_or(false)) {
            self.note(&format!("member {member} has the data again"));
            self.emptied = None;
        }
        Ok(())
    }

    /// Wait until a majority acknowledges a new write.
    pub(super) fn await_majority(&mut self) -> Result<(), String> {
        self.await_members(&Bson::from("majority"))
    }

    /// Wait until all members acknowledge a new write.
    pub(super) fn await_all(&mut self) -> Result<(), String> {
        let all = i32::try_from(self.members.len()).unwrap_or(1);
        self.await_members(&Bson::from(all))
    }

    fn await_members(&mut self, w: &Bson) -> Result<(), String> {
        let end = time::now() + HEAL_MAX;
        let mut last = "no primary".to_owned();
        while time::now() < end && !self.shared.stopped() {
            if let Some((_, mut link)) = self.shared.primary(&mut self.rng)? {
                self.awaited += 1;
                let command = doc! {
                    "insert": "awaited", "documents": [{ "_id": self.awaited }],
                    "writeConcern": { "w": w, "wtimeout": 1_000 },
                };
                match link.command(DATABASE, &command) {
                    Ok(reply) if is_ok(&reply) => return Ok(()),
                    Ok(reply) => last = reply.to_string(),
                    Err(lost) => last = lost.to_string(),
                }
            }
            time::sleep(LOOK);
        }
        match self.shared.stopped() {
            true => Ok(()),
            false => Err(format!("C8: no write is acknowledged with w: {w}: {last}")),
        }
    }

    /// Wait until the clients have an acknowledgement of a majority.
    fn await_progress(&self) -> Result<(), String> {
        let acked = || self.shared.acked.load(Ordering::Relaxed);
        let (before, end) = (acked(), time::now() + HEAL_MAX);
        while acked() < before + 3 && !self.shared.stopped() {
            if end <= time::now() {
                return Err("C8: no client gets an acknowledgement of a healed set".to_owned());
            }
            time::sleep(LOOK);
        }
        Ok(())
    }

    /// No server has ended by itself.
    pub(super) fn alive(&mut self) -> Result<(), String> {
        for (member, number) in self.members.iter_mut().zip(0..) {
            if let Some(how) = member.ended() {
                return Err(format!("C7: member {number} ended by itself: {how}"));
            }
        }
        Ok(())
    }

    /// End all faults.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.links.heal();
        for member in 0..self.members.len() {
            let Some(place) = self.members.get_mut(member) else {
                continue;
            };
            if place.paused {
                place.pause(false);
            }
            if !place.is_up() {
                self.start(member)?;
            }
        }
        self.note("healed");
        Ok(())
    }

    /// The reply of each member to `replSetGetStatus`, for a failure.
    pub(super) fn states(&self) -> Vec<String> {
        let status = doc! { "replSetGetStatus": 1 };
        let ask = |member| {
            let mut link = self.shared.to(member, PATIENCE)?;
            link.command("admin", &status).ok()
        };
        let shown = |status: Option<Document>| match status {
            Some(status) => {
                let keep = ["myState", "term", "optimes", "initialSyncStatus", "halted"];
                let kept = keep
                    .iter()
                    .filter_map(|k| Some(((*k).to_owned(), status.get(k)?)));
                let kept: BTreeMap<String, &Bson> = kept.collect();
                let infos = status.get_array("members").into_iter().flatten();
                let infos = infos.filter_map(|m| m.as_document()?.get("infoMessage"));
                format!("{kept:?} {:?}", infos.collect::<Vec<_>>())
            }
            None => "no answer".to_owned(),
        };
        let members = 0..self.members.len();
        let line = |member| format!("member {member}: {}", shown(ask(member)));
        members.map(line).collect()
    }
}
