//! A replica set of several members: what surrounds the protocol of the crate `repl`.
//!
//! `config` and `rules` are configurations; `file` keeps what a member must not forget; `letter`
//! has messages as BSON, and `network` carries them; `driver` gives the state machine its events
//! and does its effects; `storage` and `host` are what it needs of the store and of the server;
//! `sync` is initial sync; `view` is what clients and writers see.

pub(crate) mod config;
pub(crate) mod driver;
pub(crate) mod file;
pub(crate) mod host;
pub(crate) mod key;
pub(crate) mod lag;
pub(crate) mod letter;
pub(crate) mod member;
pub(crate) mod network;
pub(crate) mod peers;
mod rules;
pub(crate) mod standing;
pub(crate) mod storage;
pub(crate) mod store;
pub(crate) mod sync;
pub(crate) mod traffic;
pub(crate) mod view;
