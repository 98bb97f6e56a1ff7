//! Fetches entries of another member: one fetch at a time, which the source answers when it has
//! something.

use std::time::Duration;

use bson::doc;
use repl::event::{Event, State};
use repl::log::Run;
use repl::message::{Envelope, Message};
use repl::position::{MemberId, Position};

use super::jobs::Job;
use super::{Done, Driver};
use crate::cluster::network::Fetched;
use crate::cluster::storage::StoredEntry;

/// Batches that are fetched and not durable yet; each has at most the bytes of a reply.
const WRITING_MAX: usize = 2;

/// Time after which an answer is no longer waited for, while another member can be asked. A source
/// that has nothing answers earlier.
const LATE: Duration = Duration::from_millis(2_500);

/// Time after a fetch that failed until the next one.
const PAUSE: Duration = Duration::from_millis(100);

/// The fetch under way.
#[derive(Debug, Default)]
pub(super) struct Fetching {
    /// Its number, whom it asks, and since when.
    current: Option<(u64, MemberId, Duration)>,
    next: u64,
    /// No fetch begins before this.
    pause: Duration,
    /// The last entries of batches that are not durable yet.
    writing: Vec<Position>,
    /// The member that an operator wants to fetch from.
    pub(super) wanted: Option<u32>,
}

impl Fetching {
    /// Whether a fetch may begin: none is under way, or only one that is late or asks a member that
    /// is not the primary any more.
    fn is_free(&self, now: Duration, primary: Option<MemberId>) -> bool {
        let current = self.current.filter(|(_, source, since)| {
            let other = primary.is_some_and(|primary| primary != *source);
            now < *since + LATE && (!other || self.wanted.is_some())
        });
        current.is_none() && self.pause <= now
    }
}

impl Driver {
    /// Keep a fetch open at the primary, while nothing newer is known elsewhere.
    pub(super) fn follow_primary(&mut self) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        let durable = seat.replica.node().durable();
        seat.fetching.writing.retain(|last| durable < *last);
        let free = seat.fetching.is_free(now, seat.replica.followed(now));
        let secondary =
            seat.replica.node().state() == State::Secondary && !seat.replica.node().is_candidate();
        if !free || !secondary || WRITING_MAX <= seat.fetching.writing.len() {
            return;
        }
        let wanted = seat.fetching.wanted.map(MemberId);
        if let Some(source) = wanted.or_else(|| seat.replica.followed(now)) {
            self.step(Event::Fetch(source));
        }
    }

    /// The state machine asks a member for entries.
    pub(super) fn begin_fetch(&mut self, envelope: Envelope) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        let primary = seat.replica.followed(now);
        let fetching = &mut seat.fetching;
        let full = WRITING_MAX <= fetching.writing.len();
        if full || !fetching.is_free(now, primary) {
            return;
        }
        fetching.next += 1;
        let number = fetching.next;
        fetching.current = Some((number, envelope.to, now));
        let done = self.report.clone();
        let answer = move |result| {
            // A driver that is gone needs no answer.
            let _: std::result::Result<(), _> = done.send(Done::Fetched(number, result));
        };
        self.network.fetch(envelope, Box::new(answer));
    }

    /// The answer to a fetch.
    pub(super) fn fetched(&mut self, number: u64, result: Result<Fetched, String>) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        let current = seat.fetching.current.take_if(|(own, ..)| *own == number);
        let Some((_, source, since)) = current else {
            return;
        };
        if let Ok(Fetched::Batch(_, entries)) = &result {
            let taken = now.saturating_sub(since).as_millis();
            self.traffic.fetches.one();
            self.traffic.fetch_millis.add(crate::long::long(taken));
            self.traffic.fetched.size(entries.len());
            let bytes = entries.iter().map(Vec::len).sum();
            self.traffic.fetched_bytes.size(bytes);
        }
        match result {
            Ok(Fetched::Batch(envelope, entries)) => self.answered(envelope, entries),
            Ok(Fetched::Diverged(envelope)) => self.answered(envelope, Vec::new()),
            Ok(Fetched::TooOld) => self.too_old(source),
            Err(_) => {
                seat.fetching.pause = now + PAUSE;
                seat.fetching.wanted = None;
            }
        }
    }

    fn answered(&mut self, envelope: Envelope, entries: Vec<StoredEntry>) {
        let Some(seat) = &mut self.seat else { return };
        // A primary that accepts writes does not copy any more.
        if envelope.to.0 != seat.me || seat.gate.may_put() {
            return;
        }
        // Diverged logs are looked at again after a pause, not at once.
        if matches!(envelope.message, Message::Diverged { .. }) {
            seat.fetching.pause = self.begun.elapsed() + PAUSE;
        }
        seat.batch = entries;
        self.step(Event::Receive(envelope));
        if let Some(seat) = &mut self.seat {
            seat.batch = Vec::new();
        }
    }

    /// The state machine accepts the batch.
    pub(super) fn write(&mut self, runs: &[Run]) {
        let Some(seat) = &mut self.seat else { return };
        let entries = std::mem::take(&mut seat.batch);
        let Some(last) = runs.last().filter(|_| !entries.is_empty()) else {
            return self.halt("the protocol accepts entries that the server does not have");
        };
        let last = Position {
            term: last.term,
            ts: last.last,
        };
        seat.fetching.writing.push(last);
        self.jobs.log(Job::Append(entries, last));
    }

    /// The source has removed entries that this member lacks.
    fn too_old(&mut self, source: MemberId) {
        let host = self.host_of(source.0);
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        seat.fetching.pause = now + Duration::from_secs(1);
        seat.fetching.wanted = None;
        let last = seat.replica.node().last();
        if last == Position::ZERO {
            let message = "This member has no data, and the oplog of its sync source does not \
                 begin with the set: an initial sync copies the data";
            self.log(9_100_031, message, doc! {"source": host});
            return self.need_sync();
        }
        let message = "This member is too far behind: its sync source has removed entries that it \
             lacks. Stop the server, empty its data directory, and start it again: it then copies \
             the data of another member";
        message.clone_into(&mut seat.info);
        let attributes = doc! {"source": host, "last": super::effects::shown(last)};
        self.warn(9_100_030, message, attributes);
        self.step(Event::Maintenance(true));
    }
}
