//! A new connection from its first byte: plain or encrypted, by its first bytes and the settings.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use rustix::net::sockopt;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::connection::{self, dismissed};
use crate::config::TlsMode;
use crate::server::{Server, Slot};
use crate::state::Client;
use crate::state::guests::Guest;
use crate::state::peer::Peer;
use crate::tls::{self, Allowance, First, Tls, first};

/// Idle time after which the kernel probes whether the client is alive: MongoDB's value.
const IDLE: Duration = Duration::from_secs(300);

/// The reason why a connection is refused before its first message.
type Refusal = (&'static str, String);

/// Serve a connection from its first byte to its end.
pub(super) async fn open(server: &Arc<Server>, slot: &Slot, stream: TcpStream, peer: SocketAddr) {
    prepare(&stream);
    let done = match &server.tls {
        None => {
            let local = stream.local_addr().ok();
            let client = Arc::new(Client::new(slot.id(), Peer::Network(peer), local));
            connection::serve(Arc::clone(server), client, stream, Vec::new()).await;
            Ok(())
        }
        // Boxed, so that the future of a plain connection does not include a handshake.
        Some(tls) => Box::pin(told_apart(server, tls, slot, stream, peer)).await,
    };
    if let Err((code, message)) = done {
        let attributes = doc! {
            "error": {"code": 141, "codeName": code, "errmsg": message},
            "remote": peer.to_string(),
            "connectionId": slot.id(),
        };
        let context = format!("conn{}", slot.id());
        let message = "Error receiving request from client. Ending connection from remote";
        server
            .log
            .info("NETWORK", 22_988, &context, message, attributes);
    }
}

/// Serve a connection by a Unix socket. It is never encrypted: its bytes do not leave the machine,
/// and the permissions of the socket say who may connect.
pub(super) async fn open_local(server: &Arc<Server>, slot: &Slot, stream: UnixStream) {
    let client = Arc::new(Client::new(slot.id(), Peer::Local, None));
    connection::serve(Arc::clone(server), client, stream, Vec::new()).await;
}

/// Set socket options. A connection works without those that the system refuses.
fn prepare(stream: &TcpStream) {
    // Without `TCP_NODELAY` small replies wait for acknowledgements of earlier ones.
    let _: io::Result<()> = stream.set_nodelay(true);
    let alive = sockopt::set_socket_keepalive(stream, true)
        .and_then(|()| sockopt::set_tcp_keepidle(stream, IDLE));
    let _: Result<(), rustix::io::Errno> = alive;
}

fn failed(error: &io::Error) -> Refusal {
    ("SSLHandshakeFailed", tls::reason(error))
}

/// Wait until the guest must close; pending for ever for a client that is no guest.
async fn notified(ending: Option<Arc<Notify>>) {
    match ending {
        Some(ending) => ending.notified().await,
        None => std::future::pending().await,
    }
}

async fn told_apart(
    server: &Arc<Server>,
    tls: &Tls,
    slot: &Slot,
    stream: TcpStream,
    peer: SocketAddr,
) -> Result<(), Refusal> {
    let late = |_| {
        (
            "SSLHandshakeFailed",
            "the handshake took too long".to_owned(),
        )
    };
    let client = Client::new(slot.id(), Peer::Network(peer), stream.local_addr().ok());
    // One deadline for the whole handshake: a client that sends single bytes does not extend it.
    let deadline = Instant::now() + server.config.stall;
    let authorization = server.config.authorization;
    let guest = authorization.then(|| server.guests.admit(&client));
    let mut stopping = server.stopping();
    let first = tokio::select! {
        first = timeout_at(deadline, first(stream)) => first.map_err(late)?,
        _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
        () = dismissed(guest.as_ref()) => return Ok(()),
    };
    let (first, mut stream) = first.map_err(|error| failed(&error))?;
    match first {
        First::Nothing => Ok(()),
        First::Plain if server.config.tls.mode == TlsMode::Required => {
            let message = "The server is configured to only allow SSL connections";
            Err(("SSLHandshakeFailed", message.to_owned()))
        }
        First::Plain => {
            let client = Arc::new(client);
            let (bytes, stream) = stream.into_parts();
            drop(guest);
            connection::serve(Arc::clone(server), client, stream, bytes).await;
            Ok(())
        }
        First::Handshake => {
            let ending = guest.as_ref().map(Guest::ending);
            stream.limit(Some(Allowance::new(guest)));
            let shaken = tokio::select! {
                shaken = timeout_at(deadline, tls.accept(stream)) => shaken.map_err(late)?,
                () = notified(ending) => return Ok(()),
            };
            let mut secured = shaken.map_err(|error| failed(&error))?;
            secured.stream.get_mut().0.limit(None);
            server.metrics.encrypted.one();
            let client = client.secured(secured.subject, secured.is_member);
            let stream = secured.stream;
            connection::serve(Arc::clone(server), Arc::new(client), stream, Vec::new()).await;
            Ok(())
        }
    }
}
