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
//! documents and those before a change. The server does not support the stage yet. It needs:
//!
//! - `Entries` over the trees of the oplog, with times below which entries were removed.
//! - `Documents` over the collections. `current` reads by `_id` in a collection of the name, and
//!   returns `None` if the collection has another UUID. `before` returns `None` always, as the
//!   store keeps no documents from before a change: `whenAvailable` gives null, and `required`
//!   fails with `NoMatchingDocument`.
//! - A cursor with a `Stream` in place of a plan. Each batch reads with `Stream::read`, and runs
//!   the stages behind on each event; then `large::check` or `large::Splitter`. Where an event does
//!   not fit into the batch, the cursor returns to the position before it. An event whose `_id` the
//!   stages removed or changed is refused with `ChangeStreamFatalError`.
//! - `postBatchResumeToken` of each reply is `Stream::token`; that of a batch that ended within the
//!   fragments of an event is the token of the last fragment. The cursor ends with the stream
//!   (`Stream::is_over`).
//! - `getMore` waits for the visible time to move while the batch is empty.
//! - Refusals outside of this module: 40573 on a standalone server, `$changeStream` in a
//!   transaction or on a view, in `explain` only the plan.

pub mod event;
pub mod large;
pub mod options;
pub mod scope;
pub mod stream;
pub mod token;
