//! Change streams: positions in them.
//!
//! The module is complete by itself; the server does not use it yet, because it does not support
//! the stage `$changeStream`.

pub mod token;
