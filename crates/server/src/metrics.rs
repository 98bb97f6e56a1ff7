//! Counters of the server. Plain statistics: nothing is decided by them.

use std::collections::BTreeMap;
use std::time::Duration;

use wire::Compressor;

pub(crate) use crate::counter::Counter;

use crate::command::{Class, Command, GREETS, Kind};
use crate::histogram::Histogram;
use crate::long::long;

/// Number and total time of the operations of one class.
#[derive(Default, Debug)]
pub(crate) struct Latency {
    /// Number of operations.
    pub(crate) ops: Counter,
    /// Total microseconds.
    pub(crate) micros: Counter,
}

impl Latency {
    /// Record one operation.
    pub(crate) fn record(&self, taken: Duration) {
        self.ops.one();
        let micros = long(taken.as_micros());
        self.micros.add(micros);
    }
}

/// The `opcounters` of `serverStatus`.
#[derive(Default, Debug)]
pub(crate) struct OpCounters {
    /// Documents inserted.
    pub(crate) insert: Counter,
    /// `find` commands.
    pub(crate) query: Counter,
    /// Update statements.
    pub(crate) update: Counter,
    /// Delete statements.
    pub(crate) delete: Counter,
    /// `getMore` commands.
    pub(crate) getmore: Counter,
    /// Everything else.
    pub(crate) command: Counter,
}

/// Documents, as `serverStatus.metrics.document` counts them.
#[derive(Default, Debug)]
pub(crate) struct Documents {
    pub(crate) returned: Counter,
    pub(crate) inserted: Counter,
    pub(crate) updated: Counter,
    pub(crate) deleted: Counter,
}

/// Calls of one command.
#[derive(Debug)]
pub(crate) struct Calls {
    /// The class of the command.
    class: Class,
    /// Calls that ended.
    pub(crate) total: Counter,
    /// Calls that ended in an error.
    pub(crate) failed: Counter,
    /// Their durations, except those of greetings, which may wait for a change of the topology.
    pub(crate) durations: Histogram,
}

/// Bytes before and after compression or expansion.
#[derive(Default, Debug)]
pub(crate) struct Passed {
    /// Before.
    pub(crate) bytes_in: Counter,
    /// After.
    pub(crate) bytes_out: Counter,
}

impl Passed {
    /// Count the bytes of one message.
    pub(crate) fn add(&self, before: usize, after: usize) {
        self.bytes_in.size(before);
        self.bytes_out.size(after);
    }
}

/// Statistics of a compressor.
#[derive(Default, Debug)]
pub(crate) struct Compression {
    /// Compressed replies.
    pub(crate) compressed: Passed,
    /// Expanded messages of clients.
    pub(crate) expanded: Passed,
}

/// The counters.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Uncompressed bytes received.
    pub(crate) bytes_in: Counter,
    /// Uncompressed bytes sent.
    pub(crate) bytes_out: Counter,
    /// Bytes received from the network.
    pub(crate) physical_in: Counter,
    /// Bytes sent to the network.
    pub(crate) physical_out: Counter,
    /// Connections that were encrypted.
    pub(crate) encrypted: Counter,
    /// Messages answered.
    pub(crate) requests: Counter,
    /// Connections refused.
    pub(crate) rejected: Counter,
    /// Commands rejected because too many waited for a worker.
    pub(crate) overloaded: Counter,
    /// Errors that clients caused, in commands and statements.
    pub(crate) user_errors: Counter,
    /// Greetings that wait for a change of the topology.
    pub(crate) awaiting: Counter,
    /// Brief commands that ran on the thread of their connection.
    pub(crate) inline: Counter,
    /// Of these, those that waited: the thread's duties passed to another one.
    pub(crate) inline_waited: Counter,
    /// Commands that wait for a worker.
    pub(crate) waiting: Counter,
    pub(crate) waiting_writes: Counter,
    pub(crate) reads: Latency,
    pub(crate) writes: Latency,
    /// Latency of other commands.
    pub(crate) commands: Latency,
    /// Latency of the ends of transactions.
    pub(crate) transactions: Latency,
    /// Requests to the metrics endpoint without its token.
    pub(crate) untrusted: Counter,
    pub(crate) ops: OpCounters,
    pub(crate) documents: Documents,
    /// By compressor. Filled once; only the counters change.
    pub(crate) compression: BTreeMap<&'static str, Compression>,
    /// By command. Filled once; only the counters change.
    pub(crate) calls: BTreeMap<&'static str, Calls>,
}

impl Metrics {
    /// Counters at zero, with one entry for each command.
    pub(crate) fn new(commands: impl Iterator<Item = &'static Command>) -> Metrics {
        let none = |command: &'static Command| Calls {
            class: command.class,
            total: Counter::default(),
            failed: Counter::default(),
            durations: Histogram::default(),
        };
        Metrics {
            calls: commands
                .map(|command| (command.name, none(command)))
                .collect(),
            compression: Compressor::ALL
                .into_iter()
                .map(|compressor| (compressor.name(), Compression::default()))
                .collect(),
            ..Metrics::default()
        }
    }

    /// The durations by class, with the names of the classes: for each the sum of the durations of
    /// its commands.
    pub(crate) fn durations(&self) -> [(&'static str, Histogram); 4] {
        let of = |class: Class| {
            let sum = Histogram::default();
            for calls in self.calls.values().filter(|calls| calls.class == class) {
                sum.include(&calls.durations);
            }
            sum
        };
        [
            ("read", of(Class::Read)),
            ("write", of(Class::Write)),
            ("command", of(Class::Command)),
            ("transaction", of(Class::Transaction)),
        ]
    }

    /// Count a command that has ended. `taken` is without waits for documents.
    pub(crate) fn finished(&self, command: &Command, taken: Duration, failed: bool) {
        let latency = match command.class {
            Class::Read => &self.reads,
            Class::Write => &self.writes,
            Class::Command => &self.commands,
            Class::Transaction => &self.transactions,
        };
        latency.record(taken);
        // Commands of other kinds count their documents and statements themselves.
        if command.kind == Kind::Command {
            self.ops.command.one();
        }
        if let Some(calls) = self.calls.get(command.name) {
            calls.total.one();
            // The duration of a greeting that waits says nothing about the server.
            if !command.has(GREETS) {
                calls.durations.record(taken);
            }
            if failed {
                calls.failed.one();
            }
        }
        if failed {
            self.user_errors.one();
        }
    }
}
