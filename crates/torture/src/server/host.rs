//! The server as a process of this program, for tests without the program `romanesco serve`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use kv::Engine;
use server::{Config, Running, Signals};

/// The command line, a part of that of `romanesco serve`.
#[derive(Args)]
pub struct Host {
    #[arg(long)]
    dbpath: PathBuf,
    #[arg(long)]
    logpath: PathBuf,
    #[arg(long = "storageEngine")]
    storage_engine: String,
    #[arg(long)]
    port: u16,
    /// Clients must authenticate
    #[arg(long)]
    auth: bool,
    #[arg(long = "cacheSizeGB")]
    cache_size_gb: Option<String>,
    #[arg(long = "replSet")]
    replica_set: Option<String>,
    /// `self` or `command`
    #[arg(long)]
    initiate: Option<String>,
}

/// Serve until the process is ended.
///
/// # Errors
/// A description of the failure.
pub fn host(line: &Host) -> Result<(), String> {
    let factory = lab::targets::factory(&line.storage_engine)?;
    let mut config = Config {
        db_path: line.dbpath.clone(),
        log_path: Some(line.logpath.clone()),
        engine: line.storage_engine.clone(),
        port: line.port,
        authorization: line.auth,
        ..Config::default()
    };
    if let Some(size) = &line.cache_size_gb {
        config.set("storage.cacheSizeGB", size)?;
    }
    let set = [
        ("replication.replSetName", &line.replica_set),
        ("replication.initiate", &line.initiate),
    ];
    for (name, value) in set {
        if let Some(value) = value {
            config.set(name, value)?;
        }
    }
    let setup = config.engine_setup(factory);
    let setup = setup.map_err(|errors| errors.join("; "))?;
    config.cache_bytes = Some(setup.options.cache.bytes());
    let signals = Signals::catch().map_err(|e| e.to_string())?;
    let opened = factory.open(&line.dbpath, &setup.options);
    let engine: Arc<dyn Engine> = Arc::from(opened.map_err(|e| e.to_string())?);
    let running = Running::start(config, engine).map_err(|e| e.message)?;
    let waited = running.wait(signals);
    running.stop();
    waited.map_err(|e| e.message)
}
