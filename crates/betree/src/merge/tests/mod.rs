//! Tests of the merger against a sorted model, and of retention against all possible readers.

mod merger;
mod retention;

use super::*;
use crate::types::{Entry, Op, Seq};

/// An owned entry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    key: Vec<u8>,
    seq: Seq,
    op: Op,
    value: Vec<u8>,
}

impl Version {
    fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.key,
            seq: self.seq,
            op: self.op,
            value: &self.value,
        }
    }
}

impl From<Entry<'_>> for Version {
    fn from(entry: Entry<'_>) -> Version {
        Version {
            key: entry.key.to_vec(),
            seq: entry.seq,
            op: entry.op,
            value: entry.value.to_vec(),
        }
    }
}

/// A sorted list as a source, which may fail at its end.
#[derive(Debug, Default)]
struct List {
    versions: Vec<Version>,
    position: usize,
    fails: bool,
}

impl Source for List {
    fn current(&self) -> Option<Entry<'_>> {
        self.versions.get(self.position).map(Version::entry)
    }

    fn advance(&mut self) -> crate::error::Result<()> {
        self.position += 1;
        if self.fails && self.versions.len() <= self.position {
            return Err(crate::error::Error::corrupt("planted"));
        }
        Ok(())
    }
}

fn drain(mut source: impl Source) -> Vec<Version> {
    let mut out = Vec::new();
    while let Some(entry) = source.current() {
        out.push(entry.into());
        source.advance().unwrap();
    }
    source.advance().unwrap();
    assert!(source.current().is_none(), "the end stays the end");
    out
}
