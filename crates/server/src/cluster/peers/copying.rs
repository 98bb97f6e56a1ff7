//! Requests of an initial sync. They use the connection for fetches, of which a member without data
//! has none.

use std::time::Duration;

use repl::position::MemberId;

use super::broken::Broken;
use super::connection::Connection;
use super::{Asking, Peers};
use crate::cluster::network::CopyDone;
use crate::cluster::sync::letter::{Answer, Asked, Request, parse_reply};

/// How long a source may take to answer: it waits for a snapshot between commits, and for its
/// disk.
const LIMIT: Duration = Duration::from_secs(30);

impl Peers {
    /// Ask a member for what a copy of it lacks.
    pub(super) fn ask_for_copy(&self, from: MemberId, asked: Asked, done: CopyDone) {
        let state = self.state.lock();
        let Some(peer) = state.peers.get(&from.0) else {
            return done(Err("the source is no member".to_owned()));
        };
        let asking = self.asking(&state, peer);
        let request = Request {
            set: state.set.clone(),
            from: state.me,
            to: from.0,
            asked,
        };
        let link = self.link(from.0);
        drop(tokio::spawn(async move {
            let copied = asking.copy(&request).await;
            done(copied.map_err(|broken| link.reason(broken)));
        }));
    }
}

impl Asking {
    async fn copy(self, request: &Request) -> Result<Answer, Broken> {
        let command = request.to_command().map_err(|error| error.message)?;
        let idle = self.idle.lock().take();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(&self.host, &self.dial, self.limit).await?,
        };
        let asked = connection.command("admin", command);
        let reply = tokio::time::timeout(LIMIT, asked).await;
        let late = |_| Err("no answer of the source".to_owned().into());
        let reply = reply.unwrap_or_else(late)?;
        let answer = parse_reply(&reply).map_err(|error| error.message)?;
        *self.idle.lock() = Some(connection);
        Ok(answer)
    }
}
