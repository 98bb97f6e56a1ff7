//! A server that speaks MongoDB's wire protocol, through the official driver: Romanesco itself,
//! `mongod`, or any other.
//!
//! A row is a document as the published program for MongoDB makes it, under its number as `_id`,
//! with the three secondary indexes of the run's shape. Durability becomes the write concern:
//! `sync` and `group` wait for the journal (`j: true`), `interval` and `none` do not.
//!
//! - M1. All written data is in one collection whose name is reserved for the laboratory; it is
//!   dropped before a run and after it, and nothing else of the server is touched.
//! - M2. No password is kept: not in the plan, not in the results (see [`address`]).
//! - M3. A process is attributed to the server only after `/proc` confirmed it (see [`facts`]).

pub(super) mod address;
mod audit;
mod connection;
mod database;
mod document;
mod facts;
mod failure;
mod tables;
mod verify;

pub(super) use database::{answers, directory, open};
pub(super) use document::indexes as indexes_of;
pub(super) use facts::{began_when_it_says, local};
