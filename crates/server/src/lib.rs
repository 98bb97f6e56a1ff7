//! The document server.
//!
//! The async world ends at command dispatch: commands run on a bounded pool of blocking threads.
