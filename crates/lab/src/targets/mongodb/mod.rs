//! A server that speaks MongoDB's wire protocol, through the official driver: Romanesco itself,
//! `mongod`, or any other.
//!
//! A row is a document in the form of the published program for MongoDB, with the row's number as
//! `_id`, and with the three secondary indexes of the run's shape. Durability becomes the write
//! concern: `sync` and `group` wait for the journal (`j: true`), `interval` and `none` do not.
//!
//! - M1. All written data is in collections whose names are reserved for the laboratory; they are
//!   dropped before a run and after it, and nothing else of the server is touched.
//! - M2. No password is kept: not in the plan, not in the results (see [`address`]).
//! - M3. A process is attributed to the server only after `/proc` confirmed it (see [`facts`]).

pub(super) mod address;
mod connection;
mod database;
mod document;
mod facts;
mod failure;
mod tables;

pub(super) use database::{answers, directory, open};
pub(super) use document::indexes as indexes_of;
pub(super) use facts::{local, started_as_reported};
