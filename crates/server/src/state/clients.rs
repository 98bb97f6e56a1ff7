//! The connected clients, for `$currentOp`.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::Mutex;

use super::Client;

/// The connections by number.
#[derive(Default)]
pub(crate) struct Clients(Mutex<BTreeMap<i64, Arc<Client>>>);

/// Entry of a connection; dropping it removes the connection from the list.
pub(crate) struct Listed<'a> {
    clients: &'a Clients,
    id: i64,
}

impl Clients {
    /// A connection begins.
    pub(crate) fn begin(&self, client: &Arc<Client>) -> Listed<'_> {
        self.0.lock().insert(client.id, Arc::clone(client));
        Listed {
            clients: self,
            id: client.id,
        }
    }

    /// The connected clients, in the order of their connections.
    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        self.0.lock().values().map(Arc::clone).collect()
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.clients.0.lock().remove(&self.id);
    }
}
