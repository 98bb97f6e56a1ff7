//! The record of all calls: one hash over all calls, and a table of sites and their faults.

use std::collections::BTreeMap;
use std::fmt;

use stdx::hash::hash64_seeded;
use vfs::Site;

/// A kind of numbered call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`vfs::Vfs::open`]
    Open,
    /// [`vfs::Vfs::rename`]
    Rename,
    /// [`vfs::Vfs::remove`]
    Remove,
    /// [`vfs::Vfs::create_dir`]
    CreateDir,
    /// [`vfs::Vfs::sync_dir`]
    SyncDir,
    /// [`vfs::File::read_at`]
    Read,
    /// [`vfs::File::write_at`]
    Write,
    /// [`vfs::File::sync`]
    Sync,
    /// [`vfs::File::set_len`]
    SetLen,
    /// [`vfs::File::allocate`]
    Allocate,
}

/// Statistics of the calls of one kind from one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The site.
    pub site: Site,
    /// The kind of call.
    pub call: Call,
    /// Number of calls.
    pub calls: u64,
    /// Bytes requested to be read or written.
    pub bytes: u64,
    /// Number of times that each fault was injected, by name.
    pub faults: BTreeMap<&'static str, u64>,
}

/// The sites seen, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(BTreeMap<(Site, Call), Row>);

/// A call in the trace.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) call: Call,
    pub(crate) site: Site,
    /// The path, or the number of the file as bytes.
    pub(crate) subject: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) bytes: &'a [u8],
}

/// The record of all calls to a disk.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    pub(crate) hash: u64,
    pub(crate) table: Table,
}

impl Trace {
    /// Record a call, and the name of the fault that was injected into it.
    pub(crate) fn record(&mut self, event: Event<'_>, fault: Option<&'static str>) {
        let numbers = [event.call as u64, event.offset, event.length];
        for number in numbers {
            self.hash = hash64_seeded(&number.to_le_bytes(), self.hash);
        }
        let fault = fault.unwrap_or_default();
        for bytes in [
            event.site.0.as_bytes(),
            event.subject,
            event.bytes,
            fault.as_bytes(),
        ] {
            self.hash = hash64_seeded(bytes, self.hash);
        }
        let row = self.table.0.entry((event.site, event.call));
        let row = row.or_insert_with(|| Row {
            site: event.site,
            call: event.call,
            calls: 0,
            bytes: 0,
            faults: BTreeMap::new(),
        });
        row.calls += 1;
        if matches!(event.call, Call::Read | Call::Write) {
            row.bytes += event.length;
        }
        if !fault.is_empty() {
            *row.faults.entry(fault).or_default() += 1;
        }
    }
}

impl Table {
    /// The rows of the table, ordered by site and call.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.values()
    }

    /// Add the counts of another run's table.
    pub fn merge(&mut self, other: &Table) {
        for (key, row) in &other.0 {
            let Some(mine) = self.0.get_mut(key) else {
                self.0.insert(*key, row.clone());
                continue;
            };
            mine.calls += row.calls;
            mine.bytes += row.bytes;
            for (name, n) in &row.faults {
                *mine.faults.entry(name).or_default() += n;
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:24} {:9} {:>9} {:>12}  faults",
            "site", "call", "calls", "bytes"
        )?;
        for row in self.rows() {
            let call = format!("{:?}", row.call);
            write!(
                f,
                "{:24} {call:9} {:>9} {:>12} ",
                row.site.0, row.calls, row.bytes
            )?;
            for (name, n) in &row.faults {
                write!(f, " {name}:{n}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
