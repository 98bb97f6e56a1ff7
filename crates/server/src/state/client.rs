//! One connection, as commands see it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use bson::{Bson, RawDocumentBuf};
use stdx::sync::Mutex;
use wire::Compressor;

use crate::auth::users::key;
use crate::auth::{Conversation, User};

/// A connection.
pub(crate) struct Client {
    /// Counts connections since the server started.
    pub(crate) id: i64,
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// This end, if the system tells it.
    pub(crate) local: Option<SocketAddr>,
    /// It is encrypted.
    pub(crate) encrypted: bool,
    /// The subject of the certificate it showed, if that is a good one.
    pub(crate) subject: Option<String>,
    /// What is known of it by now.
    pub(crate) state: Mutex<ClientState>,
}

/// What a client told, and who it proved to be.
#[derive(Default)]
pub(crate) struct ClientState {
    /// What it said of itself in its greeting.
    pub(crate) metadata: Option<RawDocumentBuf>,
    /// The name of the application in it.
    pub(crate) application: String,
    /// Compressors both sides have, in the order of the client.
    pub(crate) compressors: Vec<Compressor>,
    /// It knows how to back off when told so.
    pub(crate) backpressure: bool,
    /// Who it proved to be.
    pub(crate) identity: Option<Identity>,
    /// An authentication under way.
    pub(crate) conversation: Option<Conversation>,
    /// It came with a greeting.
    pub(crate) greeted: bool,
}

/// The user a client proved to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Identity {
    /// The name.
    pub(crate) name: String,
    /// The database the name belongs to.
    pub(crate) database: String,
    /// Tells it from a later user of the same name.
    pub(crate) id: Option<Bson>,
}

impl Identity {
    /// The identity of a user.
    pub(crate) fn of(user: &User) -> Identity {
        Identity {
            name: user.name.clone(),
            database: user.database.clone(),
            id: user.id.clone(),
        }
    }
}

impl Client {
    /// A connection just accepted.
    pub(crate) fn new(id: i64, peer: SocketAddr, local: Option<SocketAddr>) -> Client {
        Client {
            id,
            peer,
            local,
            encrypted: false,
            subject: None,
            state: Mutex::new(ClientState::default()),
        }
    }

    /// The same connection encrypted, and the name in the client's certificate.
    pub(crate) fn secured(self, subject: Option<String>) -> Client {
        Client {
            encrypted: true,
            subject,
            ..self
        }
    }

    /// Whether it proved to be a user.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.state.lock().identity.is_some()
    }

    /// The address by which it is counted: of IPv6 the network of 64 bits that one customer has.
    pub(crate) fn source(&self) -> IpAddr {
        match self.peer.ip().to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address @ IpAddr::V4(_) => address,
        }
    }

    /// The user it proved to be, as owner of cursors: `database.name`. The name of a database holds
    /// no dot, so no two users share an owner.
    pub(crate) fn user(&self) -> Option<String> {
        let state = self.state.lock();
        let user = state.identity.as_ref()?;
        Some(key(&user.database, &user.name))
    }

    /// The user it proved to be, as MongoDB displays it and digests it for the owner of sessions:
    /// `name@database`. Two users may be displayed alike.
    pub(crate) fn displayed_user(&self) -> Option<String> {
        let state = self.state.lock();
        let user = state.identity.as_ref()?;
        Some(format!("{}@{}", user.name, user.database))
    }

    /// As logs and `currentOp` call it.
    pub(crate) fn name(&self) -> String {
        format!("conn{}", self.id)
    }
}
