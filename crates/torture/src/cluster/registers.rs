//! Numbers that one client counts up with `majority` and others read with `linearizable`.

use bson::{Binary, Document, doc, spec::BinarySubtype};
use stdx::Rng;
use stdx::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::answer;
use super::shared::Shared;
use super::writer::first;
use crate::server::link::{Lost, is_ok};
use crate::server::operation::DATABASE;

pub(super) const REGISTERS: &str = "registers";

/// Number of registers.
const COUNT: usize = 3;

/// The registers.
#[derive(Default)]
pub(super) struct Registers {
    cells: [Cell; COUNT],
    reads: AtomicU64,
    number: AtomicI64,
}

#[derive(Default)]
struct Cell {
    /// The greatest number that was sent.
    sent: AtomicI64,
    /// The greatest number that was acknowledged, or that a read has returned.
    least: AtomicI64,
}

impl Registers {
    /// Count up until stopped.
    pub(super) fn write(&self, shared: &Shared, rng: &mut Rng) -> Result<(), String> {
        let id = Binary {
            subtype: BinarySubtype::Uuid,
            bytes: vec![7; 16],
        };
        let lsid = doc! { "id": id };
        while !shared.stopped() {
            let Some((at, mut link)) = shared.primary(rng)? else {
                continue;
            };
            while !shared.stopped() {
                // A number that was sent and not acknowledged is sent again, as the same operation.
                let number = self.number.load(Ordering::SeqCst) + 1;
                let index = usize::try_from(number).unwrap_or(0) % COUNT;
                let value = number / 3 + 1;
                let Some(cell) = self.cells.get(index) else {
                    return Ok(());
                };
                cell.sent.store(value, Ordering::SeqCst);
                let command = command(index, value, (&lsid, number));
                let reply = match link.command(DATABASE, &command) {
                    Ok(reply) => reply,
                    Err(Lost::Gone) => break,
                    Err(Lost::Nonsense(what)) => return Err(format!("{command}: {what}")),
                };
                let text = format!("to {at}: register {index} = {value:04}: {reply}");
                shared.journal.note(REGISTERS, text);
                if is_ok(&reply) {
                    if !reply.get_i32("n").is_ok_and(|n| n == 1) {
                        return Err(format!("C1: {command} was answered {reply}"));
                    }
                    cell.least.fetch_max(value, Ordering::SeqCst);
                    self.number.store(number, Ordering::SeqCst);
                } else if answer::is_passing(&reply) {
                    break;
                } else {
                    return Err(format!("C1: {command} was answered {reply}"));
                }
            }
        }
        Ok(())
    }

    /// Read with `linearizable` until stopped (C5).
    pub(super) fn read(&self, shared: &Shared, rng: &mut Rng) -> Result<(), String> {
        while !shared.stopped() {
            let Some((at, mut link)) = shared.primary(rng)? else {
                continue;
            };
            while !shared.stopped() {
                let index = rng.index(COUNT);
                let Some(cell) = self.cells.get(index) else {
                    return Ok(());
                };
                let least = cell.least.load(Ordering::SeqCst);
                let find = doc! {
                    "find": REGISTERS, "filter": { "_id": i64::try_from(index).unwrap_or(0) },
                    "readConcern": { "level": "linearizable" }, "maxTimeMS": 2_000,
                    "singleBatch": true,
                };
                let Ok(reply) = link.command(DATABASE, &find) else {
                    break;
                };
                if !is_ok(&reply) {
                    break;
                }
                let most = cell.sent.load(Ordering::SeqCst);
                let found = first(&reply).map_or(Ok(0), |d| d.get_i64("v"));
                let value = found.map_err(|e| format!("{REGISTERS}: {e}: {reply}"))?;
                let text = format!("at {at}: read register {index} = {value:04}");
                shared.journal.note("linear", text);
                if value < least || most < value {
                    return Err(format!(
                        "C5: a linearizable read of register {index} at member {at} returned \
                         {value:04}; before it began {least:04} was acknowledged or read, and \
                         until its end {most:04} was sent"
                    ));
                }
                cell.least.fetch_max(value, Ordering::SeqCst);
                self.reads.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// What contradicts the documents that are there.
    pub(super) fn differences(&self, found: &[Document]) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            let id = i64::try_from(index).unwrap_or(0);
            let document = found
                .iter()
                .find(|d| d.get_i64("_id").is_ok_and(|i| i == id));
            let value = document.and_then(|d| d.get_i64("v").ok()).unwrap_or(0);
            let (least, most) = (
                cell.least.load(Ordering::SeqCst),
                cell.sent.load(Ordering::SeqCst),
            );
            if value < least || most < value {
                lines.push(format!(
                    "C1: register {index} is {value:04}; {least:04} was acknowledged or read, \
                     and {most:04} sent"
                ));
            }
        }
        lines
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

fn command(index: usize, value: i64, (lsid, number): (&Document, i64)) -> Document {
    let id = i64::try_from(index).unwrap_or(0);
    let update = doc! { "q": { "_id": id }, "u": { "$set": { "v": value } }, "upsert": true };
    doc! {
        "update": REGISTERS, "updates": [update], "lsid": lsid.clone(), "txnNumber": number,
        "writeConcern": { "w": "majority", "wtimeout": 2_000 },
    }
}
