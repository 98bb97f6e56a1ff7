//! Answers the fetches of other members, at once or as soon as there is something new.

use std::time::Duration;

use query::{Code, Error, Result};
use repl::event::Event;
use repl::message::{Envelope, Message};
use repl::position::Position;
use tokio::sync::oneshot;

use super::{Driver, key_of};

/// How long a fetch waits for something new.
const WAIT: Duration = Duration::from_millis(1_000);

/// The answer of the state machine to a fetch; the entries are read by who sends it.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) envelope: Envelope,
    /// The last entry that may be sent.
    pub(crate) through: Position,
}

/// Takes the answer to a fetch.
pub(crate) type Answer = oneshot::Sender<Result<Served>>;

/// A fetch that waits.
pub(super) struct Parked {
    envelope: Envelope,
    answer: Answer,
    until: Duration,
    /// The commit point when it came.
    commit: Position,
}

impl Driver {
    /// A member asks for entries.
    pub(super) fn serve(&mut self, key: &str, envelope: Envelope, answer: Answer) {
        let now = self.now();
        let halted = self.halted.is_some();
        let Some(seat) = &mut self.seat else {
            return refuse(answer, "this server belongs to no replica set yet");
        };
        let from = envelope.from.0;
        let known = key == key_of(&seat.config) && envelope.to.0 == seat.me;
        if halted || !known || seat.config.member(from).is_none() {
            return refuse(answer, "this server does not serve members of that set");
        }
        let node = seat.replica.node();
        let up_to_date =
            matches!(envelope.message, Message::Fetch { after } if after == node.last());
        let newer_term = node.term() < envelope.term;
        if !up_to_date || newer_term {
            return self.serve_now(envelope, answer);
        }
        let commit = node.commit();
        let parked = Parked {
            envelope,
            answer,
            until: now + WAIT,
            commit,
        };
        // A newer fetch of a member replaces its older one, whose connection is gone.
        seat.parked.insert(from, parked);
    }

    /// Answer the fetches for which there is something new, and those that have waited long.
    pub(super) fn answer_parked(&mut self) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        let (last, commit) = (seat.replica.node().last(), seat.replica.node().commit());
        let due = |parked: &Parked| {
            let news = matches!(parked.envelope.message, Message::Fetch { after } if after != last);
            news || parked.commit < commit || parked.until <= now
        };
        let due = seat.parked.iter().filter(|(_, parked)| due(parked));
        let due: Vec<u32> = due.map(|(id, _)| *id).collect();
        for id in due {
            let parked = self.seat.as_mut().and_then(|seat| seat.parked.remove(&id));
            if let Some(parked) = parked {
                self.serve_now(parked.envelope, parked.answer);
            }
        }
    }

    fn serve_now(&mut self, envelope: Envelope, answer: Answer) {
        let Some(seat) = &mut self.seat else { return };
        seat.served = None;
        let key = key_of(&seat.config);
        if seat.gate.may_put() && seat.replica.node().term() < envelope.term {
            // D1: the term is delivered when writes have ended; the member asks again.
            self.receive(&key, crate::cluster::letter::Letter::plain(envelope));
            return refuse(answer, "this member steps down");
        }
        self.step(Event::Receive(envelope));
        let Some(seat) = &mut self.seat else { return };
        let Some(envelope) = seat.served.take() else {
            return refuse(answer, "this member serves no entries in its present state");
        };
        let through = seat.replica.node().last();
        // The connection may be gone.
        let _: std::result::Result<(), _> = answer.send(Ok(Served { envelope, through }));
    }
}

fn refuse(answer: Answer, why: &'static str) {
    // The connection may be gone.
    let _: std::result::Result<(), _> =
        answer.send(Err(Error::new(Code::NOT_PRIMARY_OR_SECONDARY, why)));
}
