//! A sorted sequence in memory, to test what is built on sources.

use std::ops::Bound;

use super::bounds;
use super::source::Source;
use super::stop::Step;
use super::visible::Versions;
use crate::error::Result;
use crate::types::{Direction, Entry, Op, Seq};

/// An owned entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) key: Vec<u8>,
    pub(super) seq: Seq,
    pub(super) op: Op,
    pub(super) value: Vec<u8>,
}

impl Version {
    pub(super) fn new(key: &[u8], seq: u64, op: Op, value: &[u8]) -> Version {
        Version {
            key: key.to_vec(),
            seq: Seq(seq),
            op,
            value: value.to_vec(),
        }
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.key,
            seq: self.seq,
            op: self.op,
            value: &self.value,
        }
    }
}

/// A cursor over versions, which are given in the order of sorted sequences.
pub(super) struct Memory {
    versions: Vec<Version>,
    direction: Direction,
    at: usize,
}

impl Memory {
    pub(super) fn new(mut versions: Vec<Version>, direction: Direction) -> Memory {
        if direction == Direction::Backward {
            versions.reverse();
        }
        let at = versions.len();
        Memory {
            versions,
            direction,
            at,
        }
    }
}

impl Versions for Memory {
    fn seek(&mut self, from: Bound<&[u8]>) -> Result<()> {
        let within = |version: &Version| match self.direction {
            Direction::Forward => bounds::after(&version.key, from),
            Direction::Backward => bounds::before(&version.key, from),
        };
        self.at = self.versions.partition_point(|version| !within(version));
        Ok(())
    }

    fn entry(&self) -> Option<Entry<'_>> {
        self.versions.get(self.at).map(Version::entry)
    }

    fn advance(&mut self) -> Result<()> {
        assert!(self.at < self.versions.len(), "advanced beyond the end");
        self.at += 1;
        Ok(())
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn passed(&self) -> &[u8] {
        &self.versions[self.at.min(self.versions.len() - 1)].key
    }
}

/// As it is, when no key has two versions.
impl Source for Memory {
    fn seek(&mut self, from: Bound<&[u8]>) -> Step {
        Ok(Versions::seek(self, from)?)
    }

    fn entry(&self) -> Option<Entry<'_>> {
        Versions::entry(self)
    }

    fn advance(&mut self) -> Step {
        Ok(Versions::advance(self)?)
    }
}
