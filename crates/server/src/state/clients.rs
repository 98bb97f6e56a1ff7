//! Who is connected, for `$currentOp`.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::Mutex;

use super::Client;

/// The connections by number.
#[derive(Default)]
pub(crate) struct Clients(Mutex<BTreeMap<i64, Arc<Client>>>);

/// A connection's place among them; dropping it takes the connection out.
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

    /// Those that are connected, in the order they came.
    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        self.0.lock().values().map(Arc::clone).collect()
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.clients.0.lock().remove(&self.id);
    }
}
