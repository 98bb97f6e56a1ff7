//! Every bound of the server, with the reason for the number.

use std::time::Duration;

/// Commands that work on storage at once. More than the disks and processors can do side by side,
/// because most of them wait for a log to be synced together.
pub(crate) const WORKERS: usize = 256;

/// Of these, those that may be writes outside of transactions: when the engine holds writers up,
/// others go on.
pub(crate) const WRITERS: usize = 192;

/// Threads beside [`WORKERS`] for commands that let others go on: commit, abort, kill, look.
pub(crate) const RESERVED: usize = 32;

/// Commands that wait for a worker before clients are told to back off: some seconds of work.
pub(crate) const WAITING: usize = 2_048;

/// The longest wait for a worker; then even a client that does not know how to back off is told.
pub(crate) const ADMISSION: Duration = Duration::from_secs(30);

/// How long a worker without work stays.
pub(crate) const WORKER_IDLE: Duration = Duration::from_secs(10);

/// Connections, when nothing is said. MongoDB's default is a million; each of ours holds some
/// kilobytes and a file descriptor.
pub const CONNECTIONS: usize = 65_536;

/// The longest a greeting waits for a change of the topology: MongoDB's drivers ask for 10 s.
pub(crate) const AWAIT_MAX: Duration = Duration::from_secs(60);

/// How long commands in flight may go on at shutdown before they are interrupted, and how long
/// after that before connections are dropped: both together stay below five seconds.
pub(crate) const GRACE: Duration = Duration::from_millis(1_500);
/// See [`GRACE`].
pub(crate) const DROP: Duration = Duration::from_millis(2_000);
/// When the end gives up a checkpoint, counted from its beginning.
pub(crate) const END: Duration = Duration::from_millis(4_500);

/// Lines of the log kept for `getLog`, as MongoDB keeps.
pub(crate) const LOG_LINES: usize = 1_024;

/// Bytes of these lines together, as MongoDB keeps.
pub(crate) const LOG_BYTES: usize = 1 << 20;

/// Bytes of a command shown in the log and by `currentOp`, as text.
pub(crate) const SHOWN: usize = 10 * 1_024;

/// Bytes of the attributes of one event of the log, as text: a command and what it did.
pub(crate) const EVENT: usize = 3 * SHOWN;

/// Bytes of one string, binary value or regular expression in the log.
pub(crate) const SHOWN_VALUE: usize = 1_024;

/// Bytes of one field name in the log: names of collections have at most 255.
pub(crate) const SHOWN_NAME: usize = 256;

/// Levels of documents and arrays in one another in the log.
pub(crate) const SHOWN_DEPTH: usize = 20;

/// Bytes of the metadata a client tells of itself.
pub(crate) const METADATA: usize = 512;

/// Bytes that may lie unread behind a command in work before reading stops.
pub(crate) const READ_AHEAD: usize = 64 * 1_024;

/// Collections whose use is counted: some hundred bytes each.
pub(crate) const COUNTED: usize = 10_000;

/// Collections whose figures are told to Prometheus one by one: each makes some samples, which it
/// keeps for weeks.
pub(crate) const LABELLED: usize = 200;

/// Connections to the endpoint of Prometheus at once: there are a few of it, not many.
pub(crate) const SCRAPERS: usize = 16;

/// How long a message that was begun may stand still, how long a reply may wait to be taken, and
/// how long a handshake of TLS may take. A connection without any of them may be idle for ever.
pub const STALL: Duration = Duration::from_secs(30);

/// Bytes of a message that must come within [`STALL`], unless it ends before.
pub(crate) const PACE: usize = 16 * 1_024;

/// Minutes a session without use lives.
pub(crate) const SESSION_MINUTES: i32 = 30;
