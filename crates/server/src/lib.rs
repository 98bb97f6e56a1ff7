//! The document server.
//!
//! The async world ends at command dispatch: commands run on a bounded pool of blocking threads;
//! those on single documents run where they arrive. A message comes in by `net`, becomes a request
//! in `dispatch`, and is run by the function its row in `commands` names; `state` is what lives as
//! long as the server.
//!
//! - S1. No thread of the sockets waits for storage: greetings are answered while an engine stalls.
//!   A thread that runs a command hands its sockets to another one before it waits.
//! - S2. A command exists by its row in the table and by nothing else.

mod access;
mod arguments;
mod auth;
mod cluster;
mod command;
mod commands;
mod compatibility;
mod config;
mod counter;
mod dispatch;
pub mod failure;
mod flow;
mod histogram;
mod kernel;
pub mod limits;
mod long;
mod membership;
mod metrics;
mod net;
mod notify;
mod oplog;
mod own;
mod prometheus;
mod reference;
mod request;
mod restored;
mod row;
mod running;
mod server;
mod signals;
mod start;
mod startup;
mod startup_log;
mod state;
mod store_id;
mod stored_config;
mod tls;
mod version;
mod watch;

pub use compatibility::{HEADING, compatibility};
pub use config::{
    AtRest, ClusterAuth, Config, EndpointConfig, EngineSetting, EngineSetup, Flag, Initiate,
    Memory, Setting, Standing, Takes, TlsConfig, TlsMode, UnixSocket, all as settings,
    foreign_parameters,
};
pub use failure::Failure;
pub use query::Error as StoreError;
pub use reference::{REFERENCE_HEADING, reference};
pub use restored::{Pattern, Restored, Until};
pub use running::Running;
pub use signals::Signals;
pub use start::{Start, leave_in_log, problems};
pub use version::{MONGODB, ROMANESCO};
