//! One connection, as commands see it.

use std::net::SocketAddr;

use bson::RawDocumentBuf;
use stdx::sync::Mutex;
use wire::Compressor;

/// A connection.
pub(crate) struct Client {
    /// Counts connections since the server started.
    pub(crate) id: i64,
    /// The other end.
    pub(crate) peer: SocketAddr,
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
    /// Users it is authenticated as: name and database.
    pub(crate) users: Vec<(String, String)>,
    /// It came with a greeting.
    pub(crate) greeted: bool,
}

impl Client {
    /// A connection just accepted.
    pub(crate) fn new(id: i64, peer: SocketAddr) -> Client {
        Client {
            id,
            peer,
            state: Mutex::new(ClientState::default()),
        }
    }

    /// As logs and `currentOp` call it.
    pub(crate) fn name(&self) -> String {
        format!("conn{}", self.id)
    }
}
