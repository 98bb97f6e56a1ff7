//! SQL servers: MariaDB with its storage engines, MySQL, PostgreSQL, through their drivers.
//!
//! The rows of the insert benchmark are a table with the columns of the published program, inserted
//! by prepared statements of many rows; tables that a workload declares are in [`tables`].
//! Statements are written once; [`dialect`] has the parts that differ between servers.
//!
//! - Q1. All written data is in tables whose names are reserved for the laboratory; they are
//!   dropped before a run and after it, and nothing else of a server that was already running is
//!   touched.
//! - Q2. No password is kept: not in the plan, not in the results (see [`address`]).
//! - Q3. A server the laboratory starts is private: it has its own directory, socket and settings,
//!   and it ends with the laboratory (see [`private`]).

pub(super) mod address;
mod connection;
mod database;
mod dialect;
mod engine;
mod facts;
mod mysql;
mod postgres;
mod private;
mod sales;
mod settle;
mod stats;
mod tables;
mod value;
mod wire;

pub(crate) use database::TABLE_BYTES;
pub(super) use database::{answers, codecs, directory, open};
pub(super) use engine::Engine;
pub(crate) use private::{CODEC, FILL};
pub use private::{Line, Place, Private};

use lab_report::record::TargetSpec;

use super::URI;

/// The storage engine of an SQL server; `None` for other targets.
pub(super) fn storage(spec: &TargetSpec) -> Option<Engine> {
    if let Some(private) = Private::of(spec) {
        return Some(private.ok()?.engine());
    }
    let uri = spec.options.get(URI).filter(|uri| address::is_sql(uri))?;
    let address: address::Address = uri.parse().ok()?;
    Some(address.engine)
}

/// The engine name of targets that are already running servers with MySQL's protocol.
pub(super) const MYSQL: &str = "mysql";

/// The engine name of targets that are already running servers with PostgreSQL's protocol.
pub(super) const POSTGRES: &str = "postgresql";
