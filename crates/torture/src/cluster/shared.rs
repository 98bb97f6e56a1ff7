//! What the clients of a run share: where the members are, whether to stop, and who was primary.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Document, doc};
use stdx::Rng;
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use stdx::time;

use super::journal::Journal;
use crate::server::link::{Link, Lost};

/// How long a client waits for a reply before it looks for another member.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// The pause of a client that finds no member to talk to.
const PAUSE: Duration = Duration::from_millis(10);

/// What the clients share.
pub(super) struct Shared {
    pub(super) journal: Journal,
    stop: AtomicBool,
    /// Acknowledged writes with `majority`.
    pub(super) acked: AtomicU64,
    /// The port of each member; 0 while it does not run.
    ports: Vec<AtomicU64>,
    /// The primary of each term, by its `electionId`.
    terms: Mutex<BTreeMap<String, usize>>,
}

impl Shared {
    pub(super) fn new(members: usize) -> Shared {
        Shared {
            journal: Journal::new(),
            stop: AtomicBool::new(false),
            acked: AtomicU64::new(0),
            ports: (0..members).map(|_| AtomicU64::new(0)).collect(),
            terms: Mutex::new(BTreeMap::new()),
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self, on: bool) {
        self.stop.store(on, Ordering::Relaxed);
    }

    pub(super) fn listens(&self, member: usize, port: u16) {
        if let Some(place) = self.ports.get(member) {
            place.store(u64::from(port), Ordering::Relaxed);
        }
    }

    pub(super) fn members(&self) -> usize {
        self.ports.len()
    }

    /// Number of terms in which a primary was seen.
    pub(super) fn terms(&self) -> usize {
        self.terms.lock().len()
    }

    /// A connection to a member, if it runs.
    pub(super) fn to(&self, member: usize, patience: Duration) -> Option<Link> {
        let port = self.ports.get(member)?.load(Ordering::Relaxed);
        let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
        Link::within(port, patience).ok()
    }

    /// A connection to any member, which serves reads also as a secondary.
    pub(super) fn any(&self, rng: &mut Rng) -> Option<(usize, Link)> {
        let member = rng.index(self.members());
        match self.to(member, PATIENCE) {
            Some(link) => Some((member, link.on_secondaries())),
            None => {
                time::sleep(PAUSE);
                None
            }
        }
    }

    /// A connection to a member that believes that it is the primary. Two may do so.
    pub(super) fn primary(&self, rng: &mut Rng) -> Result<Option<(usize, Link)>, String> {
        let first = rng.index(self.members());
        for nth in 0..self.members() {
            let member = (first + nth) % self.members();
            let Some(mut link) = self.to(member, PATIENCE) else {
                continue;
            };
            if self
                .hello(member, &mut link)?
                .is_some_and(|hello| is_primary(&hello))
            {
                return Ok(Some((member, link)));
            }
        }
        time::sleep(PAUSE);
        Ok(None)
    }

    /// The reply to `hello`, which must not name a second primary of a term (C4).
    pub(super) fn hello(&self, member: usize, link: &mut Link) -> Result<Option<Document>, String> {
        let hello = match link.command("admin", &doc! { "hello": 1 }) {
            Ok(hello) => hello,
            Err(Lost::Gone) => return Ok(None),
            Err(Lost::Nonsense(what)) => return Err(format!("hello: {what}")),
        };
        if is_primary(&hello)
            && let Ok(election) = hello.get_object_id("electionId")
        {
            let mut terms = self.terms.lock();
            let known = *terms.entry(election.to_hex()).or_insert_with(|| {
                let text = format!("member {member} is primary, election {election}");
                self.journal.note("observer", text);
                member
            });
            if known != member {
                return Err(format!(
                    "C4: members {known} and {member} are both primary by election {election}"
                ));
            }
        }
        Ok(Some(hello))
    }
}

pub(super) fn is_primary(hello: &Document) -> bool {
    hello.get_bool("isWritablePrimary").unwrap_or(false)
}

/// Ask all members who is primary until stopped.
pub(super) fn observe(shared: &Shared) -> Result<(), String> {
    let short = Duration::from_millis(500);
    let mut links: Vec<Option<Link>> = (0..shared.members()).map(|_| None).collect();
    while !shared.stopped() {
        for (member, place) in links.iter_mut().enumerate() {
            let Some(mut link) = place.take().or_else(|| shared.to(member, short)) else {
                continue;
            };
            if shared.hello(member, &mut link)?.is_some() {
                *place = Some(link);
            }
        }
        time::sleep(PAUSE);
    }
    Ok(())
}
