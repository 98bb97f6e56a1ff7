//! A client: one connection, its metadata, and the user it authenticated as.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bson::RawDocumentBuf;
use stdx::sync::Mutex;
use tokio::sync::Semaphore;
use wire::Compressor;

use super::peer::Peer;
use crate::auth::custom::key;
use crate::auth::{Conversation, Identity};

/// A connection.
pub(crate) struct Client {
    /// Number of the connection, counted since the server started.
    pub(crate) id: i64,
    /// Where the client is.
    pub(crate) peer: Peer,
    /// Address of the server, if the system reports it.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) encrypted: bool,
    /// The subject of the certificate it showed, if that is valid.
    pub(crate) subject: Option<String>,
    /// Whether that certificate is one of a member of this server's replica set.
    pub(crate) is_member: bool,
    /// Its state, which changes during the connection.
    pub(crate) state: Mutex<ClientState>,
}

/// What a client sent about itself, and the user it authenticated as.
#[derive(Default)]
pub(crate) struct ClientState {
    /// The metadata of its greeting.
    pub(crate) metadata: Option<RawDocumentBuf>,
    /// The name of the application in it.
    pub(crate) application: String,
    /// Compressors that both sides support, in the client's order of preference.
    pub(crate) compressors: Vec<Compressor>,
    /// Whether it supports backing off when the server is overloaded.
    pub(crate) backpressure: bool,
    /// The user it authenticated as.
    pub(crate) identity: Option<Identity>,
    /// The places of this user.
    pub(crate) share: Option<Arc<Semaphore>>,
    /// An authentication in progress.
    pub(crate) conversation: Option<Conversation>,
    /// Whether it has sent a greeting.
    pub(crate) greeted: bool,
}

impl Client {
    /// A connection just accepted.
    pub(crate) fn new(id: i64, peer: Peer, local: Option<SocketAddr>) -> Client {
        Client {
            id,
            peer,
            local,
            encrypted: false,
            subject: None,
            is_member: false,
            state: Mutex::new(ClientState::default()),
        }
    }

    /// The same connection encrypted, the name in the client's certificate, and whether it is one
    /// of a member.
    pub(crate) fn secured(self, subject: Option<String>, is_member: bool) -> Client {
        Client {
            encrypted: true,
            subject,
            is_member,
            ..self
        }
    }

    /// Whether it has authenticated as a user.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.state.lock().identity.is_some()
    }

    /// The address under which limits count it: for IPv6 the 64-bit network, which belongs to one
    /// customer.
    pub(crate) fn source(&self) -> IpAddr {
        match self.peer.ip().to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address @ IpAddr::V4(_) => address,
        }
    }

    /// The user it authenticated as, as owner of cursors: `database.name`. The name of a database
    /// holds no dot, so no two users share an owner.
    pub(crate) fn user(&self) -> Option<String> {
        let state = self.state.lock();
        let user = state.identity.as_ref()?;
        Some(key(&user.database, &user.name))
    }

    /// The user it authenticated as, as MongoDB displays it: `name@database`. Two users may be
    /// displayed alike.
    pub(crate) fn displayed_user(&self) -> Option<String> {
        let state = self.state.lock();
        let user = state.identity.as_ref()?;
        Some(format!("{}@{}", user.name, user.database))
    }

    /// The places that its user may take at once; `None` if it is no user.
    pub(crate) fn share(&self) -> Option<Arc<Semaphore>> {
        self.state.lock().share.clone()
    }

    /// Its name in the log and in `currentOp`.
    pub(crate) fn name(&self) -> String {
        format!("conn{}", self.id)
    }
}
