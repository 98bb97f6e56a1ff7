//! Collections of documents over the persistence API.
//!
//! Storage is seen only through `kv`; what is synchronous stays so.
