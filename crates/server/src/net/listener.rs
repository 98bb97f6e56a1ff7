//! Accepts connections, up to a limit.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use tokio::net::{TcpListener, TcpStream};

use super::open::open;
use crate::server::Server;

/// Pause after a failed accept, mostly for want of file descriptors: other connections may close.
const PAUSE: Duration = Duration::from_millis(50);

/// Open the sockets.
///
/// # Errors
/// The address that cannot be bound.
pub(crate) async fn listen(addresses: &[String], port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut port = port;
    for address in addresses {
        let listener = TcpListener::bind((address.as_str(), port))
            .await
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot listen on {address}:{port}: {error}"),
                )
            })?;
        // A free port is chosen once, for all addresses.
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Accept until the server stops.
pub(crate) async fn accept(server: Arc<Server>, listener: TcpListener) {
    let mut stopping = server.stopping();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match accepted {
            Ok((stream, peer)) => admit(&server, stream, peer),
            Err(error) => {
                let attributes = doc! {"error": error.to_string()};
                let message = "Error accepting new connection";
                server
                    .log
                    .info("NETWORK", 22_986, "listener", message, attributes);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn admit(server: &Arc<Server>, stream: TcpStream, peer: SocketAddr) {
    let Some(slot) = server.connections.open() else {
        server.metrics.rejected.one();
        let attributes = doc! {"remote": peer.to_string()};
        let message = "Connection refused because there are too many open connections";
        server
            .log
            .info("NETWORK", 22_942, "listener", message, attributes);
        return;
    };
    let id = slot.id();
    log_event(
        server,
        peer,
        id,
        (22_943, "listener", "Connection accepted"),
    );
    let server = Arc::clone(server);
    tokio::spawn(async move {
        open(&server, &slot, stream, peer).await;
        drop(slot);
        let context = format!("conn{id}");
        log_event(&server, peer, id, (22_944, &context, "Connection ended"));
    });
}

/// Log a connection's beginning or end, unless the parameter `quiet` says not to.
fn log_event(
    server: &Server,
    peer: SocketAddr,
    id: i64,
    (event, context, message): (i32, &str, &str),
) {
    if server.parameters.is_on("quiet") {
        return;
    }
    let attributes = doc! {
        "remote": peer.to_string(),
        "connectionId": id,
        "connectionCount": server.connections.current(),
    };
    server
        .log
        .info("NETWORK", event, context, message, attributes);
}
