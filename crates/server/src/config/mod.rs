//! How a server is set up. Names and defaults are those of MongoDB's configuration file.

mod apply;
mod endpoint;
mod engine;
mod file;
mod foreign;
mod memory;
mod server;
mod setting;
mod settings;
#[cfg(test)]
mod tests;
mod tls;
mod value;

pub(crate) use apply::{COMMAND, COMPONENTS};
pub use apply::{all, foreign_parameters};
pub use endpoint::EndpointConfig;
pub(crate) use endpoint::{address, is_loopback};
pub use engine::EngineSetup;
pub use memory::Memory;
pub use server::{AtRest, ClusterAuth, Config, EngineSetting, Initiate, UnixSocket};
pub use setting::{Flag, Setting, Standing, Takes};
pub use tls::{TlsConfig, TlsMode};
