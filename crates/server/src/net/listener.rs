//! Accepts connections, up to a limit.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use tokio::net::{TcpStream, UnixStream};

use super::bind::Listener;
use super::open::{open, open_local};
use crate::server::Server;
use crate::state::peer::Peer;

/// Pause after a failed accept, which is usually caused by a lack of file descriptors: closing
/// connections may free some.
const PAUSE: Duration = Duration::from_millis(50);

/// A new connection.
enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Accepted {
    fn peer(&self) -> Peer {
        match self {
            Accepted::Tcp(_, address) => Peer::Network(*address),
            Accepted::Unix(_) => Peer::Local,
        }
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, address))
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Accepted::Unix(stream))
            }
        }
    }
}

/// Accept until the server stops.
pub(crate) async fn accept(server: Arc<Server>, listener: Listener) {
    let mut stopping = server.stopping();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match accepted {
            Ok(accepted) => admit(&server, accepted),
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

fn admit(server: &Arc<Server>, accepted: Accepted) {
    let peer = accepted.peer();
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
        match accepted {
            Accepted::Tcp(stream, address) => open(&server, &slot, stream, address).await,
            Accepted::Unix(stream) => open_local(&server, &slot, stream).await,
        }
        drop(slot);
        let context = format!("conn{id}");
        log_event(&server, peer, id, (22_944, &context, "Connection ended"));
    });
}

/// Log a connection's beginning or end, unless the parameter `quiet` says not to.
fn log_event(server: &Server, peer: Peer, id: i64, (event, context, message): (i32, &str, &str)) {
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
