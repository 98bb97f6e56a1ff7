//! One life of a worker, from its start to its end.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use kv::Factory;
use rustix::process::Signal;
use stdx::time;

use super::Config;
use super::child::{Child, Message, Received};
use super::ending::Ending;
use super::report::Summary;
use crate::key::{Key, TREES};
use crate::oracle::{Law, Oracle, State, Violation};
use crate::protocol::{Event, Order, Start};
use crate::value::decode;

/// Maximum time without an expected message; after that the worker counts as hanging.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Maximum wait for a worker to start a sync, which workers do frequently.
const SYNC_WAIT: Duration = Duration::from_millis(500);

/// Maximum time in which a worker must reach the call in which it kills itself.
const ABORT_WAIT: Duration = Duration::from_millis(1_500);

type Result<T> = std::result::Result<T, Violation>;

/// One life of a worker: its parameters, the oracle, and the counts.
pub(super) struct Life<'a> {
    pub(super) config: &'a Config,
    pub(super) factory: &'static dyn Factory,
    pub(super) start: &'a Start,
    pub(super) oracle: &'a mut Oracle,
    pub(super) summary: &'a mut Summary,
}

/// A violation: the worker does not behave as required.
fn wrong(story: impl Into<String>) -> Violation {
    Violation::new(Law::Behaviour, story)
}

impl Life<'_> {
    /// Run the worker and end it as `ending` requires; without an ending, close the store after the
    /// check.
    pub(super) fn live(mut self, ending: Option<&Ending>) -> Result<()> {
        let mut child = self.child()?;
        child.ask(&Order::Start(Box::new(self.start.clone())));
        let limit = match ending {
            Some(Ending::KillOpening(after)) => Some(time::now() + *after),
            _ => None,
        };
        let Some(found) = self.found(&mut child, limit)? else {
            match ending {
                Some(Ending::Abort) => self.summary.aborted += 1,
                _ => self.summary.killed_opening += 1,
            }
            return Ok(());
        };
        let verdict = self.oracle.check(found)?;
        self.summary.checked(verdict);
        let Some(ending) = ending else {
            return self.close(&mut child, &Order::Close);
        };
        child.ask(&Order::Go);
        self.end(&mut child, *ending)
    }

    fn child(&self) -> Result<Child> {
        let log = self.config.directory.join("worker.log");
        let environment = self.factory.environment();
        Child::start(&self.config.program, environment, &log).map_err(wrong)
    }

    /// The state that the worker sends after opening; `None` when it was killed at `limit`.
    fn found(&mut self, child: &mut Child, limit: Option<Instant>) -> Result<Option<State>> {
        let mut found = State::new();
        loop {
            let deadline = limit.unwrap_or_else(|| time::now() + SILENCE_MAX);
            match child.receive(deadline) {
                Received::Message(Message::Entry(tree, key, value)) => {
                    entry(&mut found, tree, &key, &value)?;
                }
                Received::Message(Message::Event(Event::Dumped)) if limit.is_none() => {
                    return Ok(Some(found));
                }
                Received::Message(Message::Event(Event::Verified(done))) => {
                    self.summary.verified += u64::from(done);
                }
                Received::Message(message) => self.record(message)?,
                Received::Nothing if limit.is_some() => {
                    child.reap();
                    return Ok(None);
                }
                Received::Nothing => return Err(hangs(child, "opening")),
                Received::End if self.start.abort.is_some() && was_killed(child) => {
                    return Ok(None);
                }
                Received::End => return Err(died(child, "opened the store")),
            }
        }
    }

    fn record(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Event(event) => self.oracle.observe(&event),
            Message::Entry(..) => Err(wrong("the worker sends an entry that was not requested")),
            Message::Noise(line) => Err(wrong(format!("not a message: {line}"))),
        }
    }

    /// End a worker that is writing.
    fn end(&mut self, child: &mut Child, ending: Ending) -> Result<()> {
        match ending {
            Ending::Kill(after) | Ending::KillOpening(after) => self.listen(child, after)?,
            Ending::KillSyncing(after, more) => {
                self.listen(child, after)?;
                self.listen_for_sync(child)?;
                self.listen(child, more)?;
            }
            Ending::KillStopped(after, stopped) => {
                self.listen(child, after)?;
                child.signal(Signal::STOP);
                self.listen(child, stopped)?;
            }
            Ending::KillContinued(after, stopped, more) => {
                self.listen(child, after)?;
                child.signal(Signal::STOP);
                self.listen(child, stopped)?;
                child.signal(Signal::CONT);
                self.listen(child, more)?;
            }
            Ending::Terminate(after) => {
                self.listen(child, after)?;
                child.signal(Signal::TERM);
                return self.finish(child);
            }
            Ending::KillClosing(after, more) => {
                self.listen(child, after)?;
                child.ask(&Order::Close);
                return self.kill_closing(child, more);
            }
            Ending::Rival(after) => {
                self.listen(child, after)?;
                self.rival()?;
            }
            Ending::Abort if self.listen_for_end(child)? => {
                self.summary.aborted += 1;
                return Ok(());
            }
            // The worker did not reach the chosen call: it is killed below.
            Ending::Abort => {}
        }
        child.reap();
        self.summary.killed += 1;
        self.rest(child)
    }

    /// Receive the worker's messages for `span`. The worker must not end meanwhile.
    fn listen(&mut self, child: &mut Child, span: Duration) -> Result<()> {
        let deadline = time::now() + span;
        loop {
            match child.receive(deadline) {
                Received::Message(message) => self.record(message)?,
                Received::Nothing => return Ok(()),
                Received::End => return Err(died(child, "wrote")),
            }
            // Checked here, too, for a worker that sends messages without a pause.
            if deadline <= time::now() {
                return Ok(());
            }
        }
    }

    /// Receive the worker's messages until it kills itself; returns false if it does not.
    fn listen_for_end(&mut self, child: &mut Child) -> Result<bool> {
        let deadline = time::now() + ABORT_WAIT;
        loop {
            match child.receive(deadline) {
                Received::Message(message) => self.record(message)?,
                Received::Nothing => return Ok(false),
                Received::End if was_killed(child) => return Ok(true),
                Received::End => return Err(died(child, "wrote")),
            }
            if deadline <= time::now() {
                return Ok(false);
            }
        }
    }

    /// Receive the worker's messages until a sync starts, for at most `SYNC_WAIT`.
    fn listen_for_sync(&mut self, child: &mut Child) -> Result<()> {
        let deadline = time::now() + SYNC_WAIT;
        loop {
            match child.receive(deadline) {
                Received::Message(Message::Event(Event::SyncBegun)) => {
                    return self.oracle.observe(&Event::SyncBegun);
                }
                Received::Message(message) => self.record(message)?,
                Received::Nothing => return Ok(()),
                Received::End => return Err(died(child, "wrote")),
            }
            if deadline <= time::now() {
                return Ok(());
            }
        }
    }

    /// Receive the remaining messages of a worker that has ended.
    fn rest(&mut self, child: &Child) -> Result<()> {
        while let Some(message) = child.receive_rest() {
            self.record(message)?;
        }
        Ok(())
    }

    fn kill_closing(&mut self, child: &mut Child, more: Duration) -> Result<()> {
        let deadline = time::now() + more;
        let mut closed = false;
        loop {
            match child.receive(deadline) {
                Received::Message(Message::Event(Event::Closed)) => closed = true,
                Received::Message(message) => self.record(message)?,
                Received::Nothing => break,
                Received::End if closed => break,
                Received::End => return Err(died(child, "closed the store")),
            }
            if deadline <= time::now() {
                break;
            }
        }
        child.reap();
        while let Some(message) = child.receive_rest() {
            match message {
                Message::Event(Event::Closed) => closed = true,
                message => self.record(message)?,
            }
        }
        if closed {
            self.oracle.closed();
            self.summary.closed += 1;
        } else {
            self.summary.killed_closing += 1;
        }
        Ok(())
    }

    fn close(&mut self, child: &mut Child, order: &Order) -> Result<()> {
        child.ask(order);
        self.finish(child)
    }

    /// Check that a worker that was asked to close ends with success.
    fn finish(&mut self, child: &mut Child) -> Result<()> {
        loop {
            match child.receive(time::now() + SILENCE_MAX) {
                Received::Message(Message::Event(Event::Closed)) => break,
                Received::Message(message) => self.record(message)?,
                Received::Nothing => return Err(hangs(child, "closing")),
                Received::End => return Err(died(child, "closed the store")),
            }
        }
        let status = child.wait(SILENCE_MAX);
        if !status.is_some_and(|s| s.success()) {
            let status = status.map_or("does not end".to_owned(), |s| s.to_string());
            return Err(wrong(format!(
                "the worker closed the store, then: {status}"
            )));
        }
        self.oracle.closed();
        self.summary.closed += 1;
        Ok(())
    }

    /// Check that a second worker cannot open a store that is open.
    fn rival(&mut self) -> Result<()> {
        let mut rival = self.child()?;
        rival.ask(&Order::Start(Box::new(self.start.clone())));
        match rival.receive(time::now() + SILENCE_MAX) {
            Received::Message(Message::Event(Event::Wrong(_))) => {
                self.summary.rivals += 1;
                Ok(())
            }
            Received::Message(_) => Err(wrong("a second process opened a store that is open")),
            Received::Nothing => Err(hangs(&mut rival, "refusing a store that is open")),
            Received::End => Err(died(&mut rival, "refused a store that is open")),
        }
    }
}

/// Add an entry that the worker sent.
fn entry(found: &mut State, tree: u8, key: &[u8], value: &[u8]) -> Result<()> {
    let bytes = |story: String| Violation::new(Law::Bytes, story);
    let name = TREES.get(usize::from(tree)).unwrap_or(&"?");
    let read = Key::read(tree, key);
    let read = read.ok_or_else(|| {
        bytes(format!(
            "tree {name} has a key that no writer wrote: {key:?}"
        ))
    })?;
    let stamp = decode(read, value).map_err(|e| bytes(format!("{read} has a wrong value: {e}")))?;
    let last = found.last_key_value().map(|(&key, _)| key);
    if last.is_some_and(|last| read <= last) {
        return Err(bytes(format!(
            "{read} is sent after {}",
            last.unwrap_or(read)
        )));
    }
    found.insert(read, stamp);
    Ok(())
}

fn hangs(child: &mut Child, what: &str) -> Violation {
    child.reap();
    let seconds = SILENCE_MAX.as_secs();
    wrong(format!(
        "the worker has sent nothing for {seconds} s while {what}: it hangs"
    ))
}

/// Whether SIGKILL ended the worker, whose pipe has ended. Only the worker itself sends this signal
/// here.
fn was_killed(child: &mut Child) -> bool {
    let status = child.wait(SILENCE_MAX);
    status.and_then(|status| status.signal()) == Some(Signal::KILL.as_raw())
}

fn died(child: &mut Child, before: &str) -> Violation {
    let status = child.wait(SILENCE_MAX);
    let status = status.map_or("it does not end".to_owned(), |s| s.to_string());
    wrong(format!(
        "the worker ended by itself before it had {before} ({status}); see worker.log"
    ))
}
