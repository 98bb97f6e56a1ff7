//! A running server: its threads, its sockets, and its orderly shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use bson::doc;
use kv::Engine;
use query::{Code, Error, Result};
use tokio::runtime::Runtime;

use crate::config::Config;
use crate::failure::{DATA, Failure};
use crate::limits::{DROP, END, GRACE};
use crate::long::long;
use crate::membership;
use crate::net::{self, SocketFile};
use crate::notify;
use crate::prometheus;
use crate::server::Server;
use crate::signals::Signals;
use crate::start::{Listens, Start};

/// How often shutdown checks whether connections are closed.
const LOOK: Duration = Duration::from_millis(10);

/// How often expired cursors and sessions are looked for.
const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// A server that listens.
pub struct Running {
    server: Arc<Server>,
    runtime: Option<Runtime>,
    addresses: Vec<SocketAddr>,
    metrics_addresses: Vec<SocketAddr>,
    /// Removed with it.
    _files: Vec<SocketFile>,
}

impl Running {
    /// Open the store in an engine, listen and serve, without the steps before it.
    ///
    /// # Errors
    /// As [`Start::begin`] and [`Start::serve`].
    pub fn start(config: Config, engine: Arc<dyn Engine>) -> Result<Running, Failure> {
        Start::begin(config)?.serve(engine)
    }

    /// Accept connections.
    ///
    /// # Errors
    /// A membership in a replica set that cannot be continued.
    fn accept(listens: Listens) -> Result<Running, Failure> {
        let Listens {
            server,
            runtime,
            listening,
        } = listens;
        server.log_expiry_failures();
        let entered = runtime.enter();
        let joined = membership::start(&server);
        joined.map_err(|error| Failure::new(DATA, error.message))?;
        drop(entered);
        let mut addresses = Vec::new();
        for listener in listening.clients {
            let attributes = doc! {"address": listener.place()};
            server
                .log
                .info("NETWORK", 23_015, "listener", "Listening on", attributes);
            addresses.extend(listener.address());
            runtime.spawn(net::accept(Arc::clone(&server), listener));
        }
        let metrics = listening.metrics;
        let metrics_addresses = metrics.iter().filter_map(|l| l.local_addr().ok());
        let metrics_addresses: Vec<SocketAddr> = metrics_addresses.collect();
        let places = prometheus::places();
        for listener in metrics {
            let places = Arc::clone(&places);
            runtime.spawn(prometheus::serve(Arc::clone(&server), listener, places));
        }
        if server.watch.is_some() {
            runtime.spawn(prometheus::keep_history(Arc::clone(&server)));
        }
        runtime.spawn(housekeep(Arc::clone(&server)));
        let port = addresses.first().map_or(0, SocketAddr::port);
        let attributes = doc! {"port": i32::from(port)};
        let message = "Waiting for connections";
        server
            .log
            .info("NETWORK", 23_016, "listener", message, attributes);
        notify::ready();
        Ok(Running {
            server,
            runtime: Some(runtime),
            addresses,
            metrics_addresses,
            _files: listening.files,
        })
    }

    /// Where it listens, in the order of `bind_ip`.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses of the Prometheus endpoint; none if it is off.
    #[must_use]
    pub fn metrics_addresses(&self) -> &[SocketAddr] {
        &self.metrics_addresses
    }

    /// Serve until the process gets SIGTERM or SIGINT, or a client shuts the server down. SIGHUP
    /// rotates the certificates, SIGUSR1 the log.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub fn wait(&self, signals: Signals) -> Result<()> {
        let Some(runtime) = &self.runtime else {
            return Ok(());
        };
        let handling = signals.handle(Arc::clone(&self.server));
        let (ended, handle) = handling.map_err(|error| system(&error))?;
        runtime.block_on(async {
            let mut stopping = self.server.stopping();
            tokio::select! {
                _ = ended => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
        });
        handle.close();
        Ok(())
    }

    /// Shut down: let running commands finish for a while, interrupt them, close the connections,
    /// close the storage. Takes less than five seconds as long as commands check for interruption.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let server = &self.server;
        let begun = stdx::time::now();
        let attributes = doc! {"connections": server.connections.current()};
        server.log.info(
            "CONTROL",
            23_377,
            "SignalHandler",
            "Shutting down",
            attributes,
        );
        notify::stopping();
        if let Some(member) = &server.member {
            runtime.block_on(member.resign());
        }
        server.stop();
        runtime.block_on(async {
            if !gone(server, GRACE).await {
                for request in server.operations.list() {
                    request.kill_at_shutdown();
                }
                gone(server, DROP).await;
            }
        });
        server.pool.close();
        runtime.shutdown_background();
        let closed = server.store.close();
        if let Err(error) =
            closed.and_then(|()| checkpoint(server, END.saturating_sub(begun.elapsed())))
        {
            let attributes = doc! {"error": error.message};
            let message = "The storage did not close in order; the next start recovers";
            server
                .log
                .info("STORAGE", 22_312, "SignalHandler", message, attributes);
        }
        let message = "Now exiting";
        server
            .log
            .info("CONTROL", 20_565, "SignalHandler", message, doc! {});
    }
}

impl Start {
    /// Open the store in an engine, listen and serve.
    ///
    /// # Errors
    /// An address that another process has taken meanwhile; a parameter or a file that is not
    /// right; those of the storage.
    pub fn serve(self, engine: Arc<dyn Engine>) -> Result<Running, Failure> {
        self.listen(engine).and_then(Running::accept)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Close cursors and sessions that were not used for long, every few seconds.
async fn housekeep(server: Arc<Server>) {
    let mut stopping = server.stopping();
    loop {
        tokio::select! {
            () = tokio::time::sleep(HOUSEKEEPING) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        let inner = Arc::clone(&server);
        server.pool.submit(move || {
            inner.store.reap_cursors();
            inner.refresh_users();
            if inner.freeze.count() > 0 || !inner.is_writable() {
                return;
            }
            if let Err(error) = inner.store.expire_sessions() {
                let attributes = doc! {"error": error.message};
                let message = "Expired sessions could not be ended; it is tried again";
                inner
                    .log
                    .info("CONTROL", 20_714, "housekeeping", message, attributes);
            }
        });
    }
}

/// Wait until no client is connected; returns false after `limit`.
async fn gone(server: &Server, limit: Duration) -> bool {
    let wait = async {
        while server.connections.current() > 0 {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(limit, wait).await.is_ok()
}

/// Make a checkpoint, so that the next start reads no log. One that takes longer than `limit` is
/// abandoned: the log holds everything.
fn checkpoint(server: &Server, limit: Duration) -> Result<()> {
    let store = Arc::clone(&server.store);
    let (done, made) = channel();
    let body = move || {
        let result = store.checkpoint();
        drop(store);
        // The receiver may have timed out.
        drop(done.send(result));
    };
    stdx::sync::spawn("checkpoint", body).map_err(|error| system(&error))?;
    match made.recv_timeout(limit) {
        Ok(result) => return result,
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => {
            let message = "the thread of the checkpoint did not come to its end";
            return Err(Error::new(Code::INTERNAL_ERROR, message));
        }
    }
    let attributes = doc! {"limitMillis": long(limit.as_millis())};
    let message = "The last checkpoint was not done in time; the next start reads the log";
    server
        .log
        .info("STORAGE", 22_313, "SignalHandler", message, attributes);
    Ok(())
}

fn system(error: &std::io::Error) -> Error {
    Error::new(Code::INTERNAL_ERROR, error.to_string())
}
