//! When clients may write (D1).
//!
//! ```text
//!          drained, or the step-down was given up
//!   Shut ------------------------------------------> Leading
//!    ^                                                  | the first entry is put
//!    | the last entry is known                          v
//!   Shutting <---------------------------------------- Open
//!          step-down, a newer term, no majority
//! ```

use std::sync::Arc;

use bson::{DateTime, doc};
use query::{Code, Error, Result};
use repl::event::{Event, State};
use repl::position::Position;
use repl::replica::StepDownRequest;
use tokio::sync::oneshot;

use super::jobs::Job;
use super::{Done, Driver};

/// Whether clients write, or an entry of this member's own term can be put.
#[derive(Debug)]
pub(super) enum Gate {
    Shut,
    /// A new primary applies its log.
    Draining,
    /// The first entry of the term is being put; `end` says that writes must end at once.
    Leading {
        end: bool,
    },
    Open,
    Shutting,
    /// Writes have ended, and the state machine waits for a member to hand over to.
    HandingOver(Answers),
}

/// Where the outcome of a step-down is reported.
#[derive(Debug, Default)]
pub(super) struct Answers(Vec<oneshot::Sender<Result<()>>>);

/// A step-down that begins when writes have ended.
pub(super) struct Leaving {
    pub(super) request: StepDownRequest,
    pub(super) answer: oneshot::Sender<Result<()>>,
}

impl Gate {
    /// Whether an entry of this member's own term can still be put.
    pub(super) fn may_put(&self) -> bool {
        matches!(self, Gate::Leading { .. } | Gate::Open | Gate::Shutting)
    }
}

impl Answers {
    fn give(self, outcome: &Result<()>) {
        for answer in self.0 {
            // One who does not wait any more gets no answer.
            let _: std::result::Result<(), _> = answer.send(outcome.clone());
        }
    }
}

impl Driver {
    /// Let writes end, for a reason.
    pub(super) fn shut(&mut self, why: &'static str) {
        let Some(seat) = &mut self.seat else { return };
        match &mut seat.gate {
            Gate::Leading { end } => *end = true,
            Gate::Open => {
                seat.gate = Gate::Shutting;
                self.log(9_100_020, "Writes end", doc! {"reason": why});
                self.end_writes();
            }
            _ => {}
        }
    }

    fn end_writes(&mut self) {
        let (idle, done) = (self.host.shut(), self.report.clone());
        drop(tokio::spawn(async move {
            idle.await;
            // A driver that is gone needs no report.
            let _: std::result::Result<(), _> = done.send(Done::Idle);
        }));
    }

    /// The state machine is primary and does not accept writes: it has caught up, or steps down.
    pub(super) fn waits_to_write(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        if matches!(seat.gate, Gate::HandingOver(_)) {
            return;
        }
        seat.gate = Gate::Draining;
        let to = seat.replica.node().last();
        if seat.applied < to {
            return self.jobs.log(Job::Apply {
                to,
                committed: false,
            });
        }
        self.drained();
    }

    /// A new primary may have applied its log.
    pub(super) fn drained(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        let node = seat.replica.node();
        if matches!(seat.gate, Gate::Draining) && node.last() <= seat.applied {
            seat.gate = Gate::Leading { end: false };
            self.jobs.log(Job::Lead(node.term()));
        }
    }

    /// The first entry of a term, or of the time after a step-down that was given up, is put.
    pub(super) fn led(&mut self, first: Position) {
        let Some(seat) = &mut self.seat else { return };
        let Gate::Leading { end } = seat.gate else {
            return self.halt("an entry was put without a term");
        };
        let node = seat.replica.node();
        let writable = match node.state() {
            State::Primary { writable } if first.term == node.term() => writable,
            _ => return self.halt("an entry was put in the term of another primary"),
        };
        seat.gate = Gate::Open;
        seat.applied = seat.applied.max(first);
        self.step(match writable {
            true => Event::Append { ts: first.ts },
            false => Event::Drained { ts: first.ts },
        });
        if !self.knows(first) {
            return self.halt("the protocol refused the first entry of a term");
        }
        if end {
            return self.shut("another member has a newer term");
        }
        if let Some(election) = self.seat.as_mut().and_then(|seat| seat.election.as_mut()) {
            Arc::make_mut(election).began = Some(DateTime::now());
        }
        self.host.open();
        let message = "This member is primary and accepts writes";
        let term = crate::long::long(first.term.0);
        self.log(9_100_021, message, doc! {"term": term});
    }

    /// The state machine accepts writes.
    pub(super) fn may_write(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        // Otherwise `led` is at work.
        if matches!(seat.gate, Gate::HandingOver(_)) {
            let before = std::mem::replace(&mut seat.gate, Gate::Leading { end: false });
            let term = seat.replica.node().term();
            self.jobs.log(Job::Lead(term));
            if let Gate::HandingOver(answers) = before {
                let message = "No electable secondaries caught up in time; this member stays \
                    primary. Use {force: true} to step down all the same";
                answers.give(&Err(Error::new(Code::EXCEEDED_TIME_LIMIT, message)));
            }
        }
    }

    /// The state machine is no primary.
    pub(super) fn rests(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        if seat.gate.may_put() {
            return self.halt("the protocol ended a term while clients could write (D1)");
        }
        if let Gate::HandingOver(answers) = std::mem::replace(&mut seat.gate, Gate::Shut) {
            answers.give(&Ok(()));
        }
    }

    /// Clients have written; the thread of the log finds out what.
    pub(super) fn wrote(&mut self) {
        let open = self.seat.as_ref().is_some_and(|seat| seat.gate.may_put());
        if open {
            self.jobs.log(Job::Pump);
        }
    }

    /// The entries of clients up to this are in the log.
    pub(super) fn put(&mut self, last: Position) {
        let Some(seat) = &mut self.seat else { return };
        let node = seat.replica.node();
        let of_term = last.term == node.term() && node.last().ts < last.ts;
        let writable = matches!(node.state(), State::Primary { writable: true });
        if of_term && writable && seat.gate.may_put() {
            seat.applied = seat.applied.max(last);
            self.step(Event::Append { ts: last.ts });
        }
    }

    /// Whether the log of the state machine has this entry.
    fn knows(&self, at: Position) -> bool {
        let seat = self.seat.as_ref();
        seat.is_some_and(|seat| at <= seat.replica.node().last())
    }

    /// No client writes any more, and this is the last entry.
    pub(super) fn followed(&mut self, last: Position) {
        self.put(last);
        if !self.knows(last) {
            return self.halt("the protocol does not know the last entry of a term");
        }
        // The last entries are made durable, too.
        self.jobs.log(Job::Pump);
        let Some(seat) = &mut self.seat else { return };
        seat.gate = Gate::Shut;
        let held = std::mem::take(&mut seat.held);
        for letter in held {
            self.deliver(letter);
        }
        let leaving = self.leaving.take();
        let Some(seat) = &mut self.seat else { return };
        let leads = matches!(seat.replica.node().state(), State::Primary { .. });
        match leaving {
            Some(leaving) if leads => self.hand_over(leaving),
            Some(leaving) => Answers(vec![leaving.answer]).give(&Ok(())),
            None if leads => self.step(Event::StepDownEnded { force: true }),
            None => {}
        }
    }

    fn hand_over(&mut self, leaving: Leaving) {
        let now = self.now();
        let Some(seat) = &mut self.seat else { return };
        seat.gate = Gate::HandingOver(Answers(vec![leaving.answer]));
        let effects = seat.replica.step_down(now, leaving.request);
        self.perform(effects);
    }
}
