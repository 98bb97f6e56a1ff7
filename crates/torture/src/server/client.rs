//! A client: executes one operation after the other until its connection ends, and records the
//! replies.

use bson::{Binary, Document, doc, spec::BinarySubtype};
use stdx::Rng;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::cycle::Lie;
use super::link::{Link, Lost, code, has_label, is_ok};
use super::model::Model;
use super::operation::{Draw, IDS, Operation};

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The operation was acknowledged.
    Acked,
    /// The operation was rolled back.
    RolledBack,
    /// The server ended before the operation was sent completely, so it did not happen.
    CutShort,
    /// The server ended during the last command of the operation; it may have happened.
    Unknown,
}

/// The counts of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) acked: u64,
    pub(super) transactions: u64,
    pub(super) rolled_back: u64,
    /// Number of operations that were sent again and had been executed.
    pub(super) done_again: u64,
    /// Number of commits that were sent again and had not been executed.
    pub(super) never_done: u64,
}

/// A client; it continues after a restart of the server.
pub(super) struct Client {
    pub(super) model: Model,
    pub(super) counts: Counts,
    rng: Rng,
    lsid: Document,
    txn_number: i64,
    first: i64,
    next: i64,
    /// The last operation and its result.
    last: Option<(Operation, End)>,
    lie: Option<Lie>,
}

/// The error codes of a server that is shutting down.
const ENDING: [i32; 4] = [11_600, 11_602, 91, 189];

impl Client {
    /// Client `number` of a run.
    pub(super) fn new(number: u32, seed: u64, lie: Option<Lie>) -> Client {
        let mut rng = Rng::new(seed ^ (u64::from(number) + 1) << 40);
        let mut bytes = vec![0; 16];
        rng.fill(&mut bytes);
        let id = Binary {
            subtype: BinarySubtype::Uuid,
            bytes,
        };
        Client {
            model: Model::default(),
            counts: Counts::default(),
            rng,
            lsid: doc! { "id": id },
            txn_number: 0,
            first: i64::from(number + 1) * IDS,
            next: 0,
            last: None,
            lie,
        }
    }

    /// Execute operations until stopped or until the server ends; `answers` counts acknowledged
    /// operations.
    pub(super) fn operate(
        &mut self,
        port: u16,
        stop: &AtomicBool,
        answers: &AtomicU64,
    ) -> Result<(), String> {
        let Ok(mut link) = Link::to(port) else {
            return Ok(());
        };
        while !stop.load(Ordering::Relaxed) {
            self.txn_number += 1;
            let operation = Draw {
                rng: &mut self.rng,
                model: &self.model,
                lsid: &self.lsid,
                txn_number: self.txn_number,
                first: self.first,
                next: &mut self.next,
            }
            .operation();
            let skipped = self.lie == Some(Lie::Skip) && self.rng.chance(0.02);
            let end = match skipped {
                true => End::Acked,
                false => perform(&mut link, &operation)?,
            };
            self.note(operation, end);
            match end {
                End::Acked => {
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                End::RolledBack => {}
                End::Unknown | End::CutShort => break,
            }
        }
        Ok(())
    }

    fn note(&mut self, operation: Operation, end: End) {
        match end {
            End::Acked => {
                self.model.apply(&operation.changes);
                self.counts.acked += 1;
                self.counts.transactions += u64::from(operation.transaction);
            }
            End::RolledBack => self.counts.rolled_back += 1,
            End::CutShort | End::Unknown => {}
        }
        self.last = Some((operation, end));
    }

    /// After a restart: send the last operation again, as a driver does, and then a second time.
    pub(super) fn resolve(&mut self, link: &mut Link) -> Result<(), String> {
        let Some((operation, end)) = self.last.take() else {
            return Ok(());
        };
        let Some((database, command, expect)) = operation.commands.last() else {
            return Ok(());
        };
        if !matches!(end, End::Acked | End::Unknown) || command.contains_key("abortTransaction") {
            return Ok(());
        }
        let mut command = command.clone();
        if self.lie == Some(Lie::Anew) {
            self.txn_number += 1;
            command.insert("txnNumber", self.txn_number);
        }
        let mut done = None;
        for _ in 0..2 {
            let reply = link.command(database, &command);
            let reply = reply.map_err(|lost| lost.to_string())?;
            let now = if is_ok(&reply) && expect.holds(&reply) {
                true
            } else if operation.transaction && code(&reply) == 251 {
                false
            } else {
                return Err(format!("sent again, {command} was answered {reply}"));
            };
            if done.is_some_and(|before| before != now) {
                return Err(format!(
                    "sent twice, {command} was answered otherwise: {reply}"
                ));
            }
            done = Some(now);
        }
        match (end, done) {
            (End::Acked, Some(false)) => Err(format!("{command} was acknowledged, and is unknown")),
            (End::Unknown, Some(true)) => {
                self.model.apply(&operation.changes);
                self.counts.done_again += 1;
                Ok(())
            }
            (End::Unknown, _) => {
                self.counts.never_done += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether `code` is the error of a server that is shutting down.
pub(super) fn is_ending(code: i32) -> bool {
    ENDING.contains(&code)
}

/// Send the commands of an operation.
fn perform(link: &mut Link, operation: &Operation) -> Result<End, String> {
    let last = operation.commands.len().saturating_sub(1);
    for (index, (database, command, expect)) in operation.commands.iter().enumerate() {
        let unknown = if index == last {
            End::Unknown
        } else {
            End::CutShort
        };
        let reply = match link.command(database, command) {
            Ok(reply) => reply,
            Err(Lost::Gone) => return Ok(unknown),
            Err(Lost::Nonsense(what)) => return Err(format!("{command}: {what}")),
        };
        if is_ok(&reply) && expect.holds(&reply) {
            continue;
        }
        if is_ending(code(&reply)) {
            return Ok(unknown);
        }
        if operation.transaction && has_label(&reply, "TransientTransactionError") {
            return Ok(End::RolledBack);
        }
        return Err(format!("{command} was answered {reply}"));
    }
    let aborted = operation.commands.last();
    let aborted = aborted.is_some_and(|(_, c, _)| c.contains_key("abortTransaction"));
    Ok(if aborted { End::RolledBack } else { End::Acked })
}
