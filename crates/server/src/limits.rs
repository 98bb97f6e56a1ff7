//! Every limit of the server, with the reason for its value.

use std::time::Duration;

/// Maximum number of commands that access storage at once. More than the disks and processors can
/// serve in parallel, because most of them wait for a shared sync of the log.
pub(crate) const WORKERS: usize = 256;

/// Maximum number of these that are writes outside of transactions: while the engine delays writes,
/// reads still find a worker.
pub(crate) const WRITERS: usize = 192;

/// Maximum number of these for one user: long queries of a user leave places for others. More than
/// [`WRITERS`], so that reads of a user find a place while the engine delays its writes.
pub(crate) const SHARE: usize = 240;

/// Bytes of the message of a command that runs on the thread of its connection: some hundred
/// microseconds of work.
pub(crate) const BRIEF_MESSAGE: usize = 64 * 1_024;

/// Documents that such a command inserts: as much work, with some indexes.
pub(crate) const BRIEF_DOCUMENTS: usize = 16;

/// Average bytes of a document in a collection that such commands read and change: decoding it
/// takes some hundred microseconds.
pub(crate) const BRIEF_AVERAGE: i64 = 64 * 1_024;

/// Threads in addition to [`WORKERS`], for commands that other commands wait for or that show why
/// they wait: commit, abort, kill, `currentOp`.
pub(crate) const RESERVED: usize = 32;

/// Maximum number of small commands whose constant expressions are computed apart at once, before
/// admission: an attacker keeps that many threads busy, which is a small part of those that exist.
pub(crate) const COMPUTING: usize = 32;

/// Number of commands that may wait for a worker before clients that support backoff are rejected:
/// some seconds of work.
pub(crate) const WAITING: usize = 2_048;

/// Maximum wait for a worker; after that a client is rejected even if it does not support backoff.
pub(crate) const ADMISSION: Duration = Duration::from_secs(30);

/// Idle time after which a worker ends.
pub(crate) const WORKER_IDLE: Duration = Duration::from_secs(10);

/// The default limit of connections. MongoDB's default is a million; each of ours holds some
/// kilobytes and a file descriptor.
pub const CONNECTIONS: usize = 65_536;

/// Connections that the system keeps until they are accepted: a burst of clients that reconnect.
pub(crate) const BACKLOG: i32 = 1_024;

/// Maximum time that a greeting waits for a change of the topology: MongoDB's drivers request 10 s.
pub(crate) const AWAIT_MAX: Duration = Duration::from_secs(60);

/// How long commands in flight may continue at shutdown before they are interrupted, and how long
/// after that before connections are dropped: both together stay below five seconds.
pub(crate) const GRACE: Duration = Duration::from_millis(1_500);
/// See [`GRACE`].
pub(crate) const DROP: Duration = Duration::from_millis(2_000);
/// Time after which the shutdown abandons its checkpoint, counted from the start of the shutdown.
pub(crate) const END: Duration = Duration::from_millis(4_500);

/// Number of log lines kept for `getLog` (MongoDB's value).
pub(crate) const LOG_LINES: usize = 1_024;

/// Total bytes of these lines (MongoDB's value).
pub(crate) const LOG_BYTES: usize = 1 << 20;

/// Bytes of a command shown in the log and by `currentOp`, as text.
pub(crate) const SHOWN: usize = 10 * 1_024;

/// Bytes of the attributes of one log event as text: a command and its statistics.
pub(crate) const EVENT: usize = 3 * SHOWN;

/// Bytes of one string, binary value or regular expression in the log.
pub(crate) const SHOWN_VALUE: usize = 1_024;

/// Bytes of one field name in the log: names of collections have at most 255.
pub(crate) const SHOWN_NAME: usize = 256;

/// Maximum nesting of documents and arrays in the log.
pub(crate) const SHOWN_DEPTH: usize = 20;

/// Bytes of the metadata that a client sends about itself.
pub(crate) const METADATA: usize = 512;

/// Bytes read ahead while a command runs; beyond that the server stops reading.
pub(crate) const READ_AHEAD: usize = 64 * 1_024;

/// Bytes of a message of a connection that has not authenticated, where authentication is
/// required. Greetings and the messages of SCRAM have some hundred bytes; the rest is refused
/// anyway.
pub(crate) const GUEST_MESSAGE: usize = 64 * 1_024;

/// Documents in the sequences of such a message. No command that runs before authentication
/// takes any.
pub(crate) const GUEST_DOCUMENTS: usize = 1_000;

/// Bytes that such a connection may send while its command is in work, and the step by which the
/// buffer for its messages grows. Drivers send nothing before they have the answer.
pub(crate) const GUEST_AHEAD: usize = 4 * 1_024;

/// Bytes of such a connection that do not count against [`GUEST_BUDGET`]: the buffer for reading, a
/// message of 4 KiB, its expanded form and a reply of that length.
pub(crate) const GUEST_UNCHARGED: usize = 16 * 1_024;

/// Bytes that all connections that have not authenticated may hold together beyond
/// [`GUEST_UNCHARGED`] each: 500 of the longest messages.
pub(crate) const GUEST_BUDGET: usize = 32 << 20;

/// Bytes of replies that the system keeps for such a connection before they are sent.
pub(crate) const GUEST_UNSENT: u32 = 16 * 1_024;

/// Bytes that a client may send for a handshake of TLS. A hello has some hundred bytes, a chain of
/// certificates some thousand; the library takes messages of up to 64 KiB.
pub(crate) const HANDSHAKE: usize = 80 * 1_024;

/// Bytes of a greeting that waits for a change of the topology. Those of drivers have 300.
pub(crate) const WAITING_GREETING: usize = 4 * 1_024;

/// Maximum number of fields in the arguments of a command. No command has a hundred.
pub(crate) const FIELDS: usize = 1_000;

/// Sessions in one command: drivers end 10,000 at once.
pub(crate) const SESSIONS: usize = 10_000;

/// Collections whose use is counted: some hundred bytes each.
pub(crate) const COUNTED: usize = 10_000;

/// Collections with metrics of their own: each makes some samples, which Prometheus keeps for
/// weeks.
pub(crate) const LABELLED: usize = 200;

/// Maximum number of connections to the Prometheus endpoint: a deployment has few Prometheus
/// servers.
pub const SCRAPERS: usize = 16;

/// Time between two samples for the page about the server: short stalls show, and reading the
/// statistics of an engine with 10,000 trees takes 2 ms.
pub(crate) const SAMPLES: Duration = Duration::from_secs(5);

/// Maximum time that a client may pause in the middle of a message, may leave a reply unread, and
/// may take for a TLS handshake. Otherwise a connection may be idle without limit.
pub const STALL: Duration = Duration::from_secs(30);

/// Bytes of an unfinished message that must arrive within [`STALL`].
pub(crate) const PACE: usize = 16 * 1_024;

/// Minutes after which an unused session expires.
pub(crate) const SESSION_MINUTES: i32 = 30;
