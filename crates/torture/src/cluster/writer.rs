//! A client that writes with `majority`, each operation with its number in a session. It sends an
//! operation again until it knows whether it happened, so that its model is exact.

use bson::{Binary, Document, Timestamp, doc, spec::BinarySubtype};
use stdx::Rng;
use stdx::sync::atomic::Ordering;

use super::answer;
use super::shared::Shared;
use crate::server::link::{Link, Lost, is_ok};
use crate::server::model::{Change, Model, Row, Side};
use crate::server::operation::{DATABASE, Draw, Expect, IDS, Operation};

/// How long a write waits for the majority.
const CONCERN_MS: i32 = 3_000;

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Acked,
    RolledBack,
    /// The last command may have been executed.
    Unknown,
}

/// The counts of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) acked: u64,
    pub(super) transactions: u64,
    pub(super) rolled_back: u64,
    /// Operations that were sent again.
    pub(super) again: u64,
    /// Causal reads.
    pub(super) reads: u64,
}

/// A client that writes with `majority`.
pub(super) struct Writer {
    pub(super) model: Model,
    pub(super) counts: Counts,
    name: String,
    rng: Rng,
    lsid: Document,
    txn_number: i64,
    first: i64,
    next: i64,
    /// An operation of unknown outcome.
    pending: Option<Operation>,
    /// Count writes that were not sent, to test the laws.
    skips: bool,
}

impl Writer {
    pub(super) fn new(number: u32, seed: u64, skips: bool) -> Writer {
        let mut rng = Rng::new(seed ^ (u64::from(number) + 1) << 40);
        let mut bytes = vec![0; 16];
        rng.fill(&mut bytes);
        let id = Binary {
            subtype: BinarySubtype::Uuid,
            bytes,
        };
        Writer {
            model: Model::default(),
            counts: Counts::default(),
            name: format!("writer {number}"),
            rng,
            lsid: doc! { "id": id },
            txn_number: 0,
            first: i64::from(number + 1) * IDS,
            next: 0,
            pending: None,
            skips,
        }
    }

    /// Write until stopped.
    pub(super) fn operate(&mut self, shared: &Shared) -> Result<(), String> {
        while !shared.stopped() {
            let Some((at, mut link)) = shared.primary(&mut self.rng)? else {
                continue;
            };
            self.resolve(shared, at, &mut link)?;
            while !shared.stopped() && self.pending.is_none() && link.lives() {
                let operation = self.draw();
                if self.skips && self.txn_number % 2 == 1 {
                    self.model.apply(&operation.changes);
                    continue;
                }
                let (end, time) = self.perform(shared, at, &mut link, &operation)?;
                self.note(shared, operation, end);
                if let Some(time) = time.filter(|_| self.rng.chance(0.2)) {
                    self.read_own(shared, time)?;
                }
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> Operation {
        self.txn_number += 1;
        let mut operation = Draw {
            rng: &mut self.rng,
            model: &self.model,
            lsid: &self.lsid,
            txn_number: self.txn_number,
            first: self.first,
            next: &mut self.next,
        }
        .operation();
        for (_, command, _) in &mut operation.commands {
            if command.contains_key("writeConcern") {
                let concern = doc! { "w": "majority", "wtimeout": CONCERN_MS };
                command.insert("writeConcern", concern);
            }
            if command.contains_key("startTransaction") {
                command.insert("readConcern", doc! { "level": "snapshot" });
            }
        }
        operation
    }

    fn note(&mut self, shared: &Shared, operation: Operation, end: End) {
        match end {
            End::Acked => {
                self.model.apply(&operation.changes);
                self.counts.acked += 1;
                self.counts.transactions += u64::from(operation.transaction);
                shared.acked.fetch_add(1, Ordering::Relaxed);
            }
            End::RolledBack => self.counts.rolled_back += 1,
            End::Unknown => self.pending = Some(operation),
        }
    }

    /// Send an operation of unknown outcome again.
    pub(super) fn resolve(
        &mut self,
        shared: &Shared,
        at: usize,
        link: &mut Link,
    ) -> Result<bool, String> {
        let Some(operation) = self.pending.take() else {
            return Ok(true);
        };
        self.counts.again += 1;
        let last = operation.commands.last().cloned();
        let end = match last {
            Some(last) => self.send(shared, at, link, (&operation, &last, true))?.0,
            None => End::RolledBack,
        };
        self.note(shared, operation, end);
        Ok(end != End::Unknown)
    }

    /// Send the commands of an operation. Also returns the time of the last reply.
    fn perform(
        &mut self,
        shared: &Shared,
        at: usize,
        link: &mut Link,
        operation: &Operation,
    ) -> Result<(End, Option<Timestamp>), String> {
        let count = operation.commands.len();
        let mut outcome = (End::RolledBack, None);
        for (index, command) in operation.commands.iter().enumerate() {
            let last = index + 1 == count;
            outcome = self.send(shared, at, link, (operation, command, last))?;
            if outcome.0 != End::Acked {
                break;
            }
        }
        Ok(outcome)
    }

    fn send(
        &self,
        shared: &Shared,
        at: usize,
        link: &mut Link,
        (operation, (database, command, expect), last): (
            &Operation,
            &(&'static str, Document, Expect),
            bool,
        ),
    ) -> Result<(End, Option<Timestamp>), String> {
        let note = |what: String| {
            let text = format!("to {at}: {} {what}", brief(command, operation));
            shared.journal.note(&self.name, text);
        };
        let reply = match link.command(database, command) {
            Ok(reply) => reply,
            Err(Lost::Gone) => {
                note("no answer".to_owned());
                let end = if last { End::Unknown } else { End::RolledBack };
                return Ok((end, None));
            }
            Err(Lost::Nonsense(what)) => return Err(format!("{command}: {what}")),
        };
        let end = verdict(&reply, command, expect, operation.transaction, last)?;
        note(match end {
            End::Acked => "ok".to_owned(),
            _ => format!("{end:?}: {reply}"),
        });
        Ok((end, reply.get_timestamp("operationTime").ok()))
    }

    /// After a write with `majority`: any member shows it to a causal read with `majority` (C3).
    fn read_own(&mut self, shared: &Shared, time: Timestamp) -> Result<(), String> {
        let [left, right] = Side::BOTH;
        let side = if self.rng.chance(0.5) { left } else { right };
        let rows = self.model.rows(side);
        let nth = self.rng.index(rows.len().max(1));
        let Some((id, row)) = rows.iter().nth(nth) else {
            return Ok(());
        };
        let (id, row) = (*id, row.clone());
        let Some((at, mut link)) = shared.any(&mut self.rng) else {
            return Ok(());
        };
        let concern = doc! { "level": "majority", "afterClusterTime": time };
        let find = doc! {
            "find": side.name(), "filter": { "_id": id }, "readConcern": concern,
            "maxTimeMS": 1_000, "singleBatch": true,
        };
        let Ok(reply) = link.command(DATABASE, &find) else {
            return Ok(());
        };
        if !is_ok(&reply) {
            return Ok(());
        }
        self.counts.reads += 1;
        let found = first(&reply);
        if found.as_ref().and_then(Row::of) == Some((id, row.clone())) {
            return Ok(());
        }
        Err(format!(
            "C3: member {at} showed {found:?} after {time} instead of {id} {row:?} in {}",
            side.name()
        ))
    }
}

/// The first document of a reply to `find`.
pub(super) fn first(reply: &Document) -> Option<Document> {
    let cursor = reply.get_document("cursor").ok()?;
    cursor
        .get_array("firstBatch")
        .ok()?
        .first()?
        .as_document()
        .cloned()
}

fn verdict(
    reply: &Document,
    command: &Document,
    expect: &Expect,
    transaction: bool,
    last: bool,
) -> Result<End, String> {
    let held = is_ok(reply) && expect.holds(reply);
    if command.contains_key("abortTransaction") {
        return Ok(End::RolledBack);
    }
    if held {
        return Ok(End::Acked);
    }
    if transaction && answer::is_rolled_back(reply) {
        return Ok(End::RolledBack);
    }
    if answer::is_passing(reply) && (last || !transaction) {
        return Ok(End::Unknown);
    }
    Err(format!("C1: {command} was answered {reply}"))
}

/// A command in a few words.
fn brief(command: &Document, operation: &Operation) -> String {
    let name = command.keys().next().cloned().unwrap_or_default();
    let number = command.get_i64("txnNumber").unwrap_or(0);
    let changes = operation.changes.iter().map(|change| match change {
        Change::Put(side, id, row) => format!("{}[{id}]={}/{}", side.name(), row.v, row.n),
        Change::Delete(side, id) => format!("{}[{id}] deleted", side.name()),
        Change::Count(side) => format!("count {}", side.name()),
    });
    let changes: Vec<String> = changes.collect();
    format!("{name} #{number} ({}):", changes.join(", "))
}
