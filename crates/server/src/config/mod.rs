//! How a server is set up. Names and defaults are those of MongoDB's configuration file.

mod engine;
mod file;
mod memory;
mod server;
mod settings;
mod tls;
mod value;

pub use engine::EngineSetup;
pub use memory::Memory;
pub use server::{Config, EngineSetting};
pub use tls::{TlsConfig, TlsMode};
