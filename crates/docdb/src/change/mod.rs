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
//! documents and those before a change. `aggregate` implements both for its cursors. Documents
//! from before a change are kept where the collection asks for it (see `oplog::image`); for others
//! `whenAvailable` gives null, and `required` fails with `NoMatchingDocument`.
//!
//! A stream reads what is committed on this member; with several members it must read what a
//! majority has committed.

pub mod event;
pub mod large;
pub mod options;
pub mod scope;
pub mod stream;
pub mod token;
