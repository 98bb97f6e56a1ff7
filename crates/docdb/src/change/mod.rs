//! Change streams: the stage `$changeStream` of `aggregate`, as a pure function of the oplog.
//!
//! | module | what it does |
//! |---|---|
//! | `options` | parses the stage, and refuses what MongoDB refuses |
//! | `scope` | decides on the bytes of an entry whether it has an event of the stream |
//! | `event` | makes the events of an operation |
//! | `stream` | follows the oplog from a position: starting, resuming, ending |
//! | `large` | refuses or splits large events |
//! | `token` | positions, as clients keep them |
//!
//! Two traits reach the store: `stream::Entries` reads the oplog, `event::Documents` reads current
//! documents and those before a change. `aggregate` implements both for its cursors. The store
//! keeps no documents from before a change: `whenAvailable` gives null, and `required` fails with
//! `NoMatchingDocument`.
//!
//! The server opens its store without an oplog, and so refuses the stage (40573). With an oplog it
//! needs to:
//!
//! - Give errors of `getMore` on a stream the label `ResumableChangeStreamError` (see `stream` for
//!   the codes).
//! - Wait for events outside of its pool of threads: `getMore` waits on the thread that runs it.
//! - Read what a majority has committed, once a set has several members.

pub mod event;
pub mod large;
pub mod options;
pub mod scope;
pub mod stream;
pub mod token;
