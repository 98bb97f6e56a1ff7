//! `$sample`: draws a random number for every row, and returns the rows with the smallest numbers
//! in the order of their numbers.

use std::collections::BinaryHeap;

use super::{Host, Rows, memory};
use crate::meter::{self, Held};
use crate::{Result, Row};

/// `$sample`.
pub(super) struct SampleRows {
    input: Option<Box<dyn Rows>>,
    size: u64,
    chosen: std::vec::IntoIter<Drawn>,
    /// Memory reserved in the budget of all operations.
    held: Held,
}

struct Drawn {
    number: u64,
    row: Row,
}

impl Ord for Drawn {
    fn cmp(&self, other: &Drawn) -> std::cmp::Ordering {
        self.number.cmp(&other.number)
    }
}

impl PartialOrd for Drawn {
    fn partial_cmp(&self, other: &Drawn) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Drawn {
    fn eq(&self, other: &Drawn) -> bool {
        self.number == other.number
    }
}

impl Eq for Drawn {}

impl SampleRows {
    pub(super) fn new(input: Box<dyn Rows>, size: u64) -> SampleRows {
        SampleRows {
            input: Some(input),
            size,
            chosen: Vec::new().into_iter(),
            held: Held::new(),
        }
    }

    fn choose(&mut self, input: &mut dyn Rows, host: &mut dyn Host) -> Result<Vec<Drawn>> {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let mut chosen: BinaryHeap<Drawn> = BinaryHeap::new();
        let mut bytes = 0;
        while let Some(row) = input.next(host)? {
            host.check()?;
            let number = host.random();
            if chosen.len() >= size {
                if chosen.peek().is_none_or(|most| most.number <= number) {
                    continue;
                }
                if let Some(dropped) = chosen.pop() {
                    bytes -= memory::row(&dropped.row)?;
                }
            }
            bytes += memory::row(&row)?;
            if bytes > host.memory_limit() {
                return Err(memory::exceeded("$sample"));
            }
            self.held.require("$sample", bytes)?;
            let row = row.compact()?;
            chosen.push(Drawn { number, row });
        }
        meter::sort_by(chosen.into_vec(), Drawn::cmp)
    }
}

impl Rows for SampleRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(mut input) = self.input.take() {
            self.chosen = self.choose(input.as_mut(), host)?.into_iter();
        }
        Ok(self.chosen.next().map(|drawn| drawn.row))
    }
}
