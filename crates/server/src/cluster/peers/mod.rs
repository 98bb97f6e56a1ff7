//! The connections to the other members: for each one for messages, and one for fetches. Messages
//! to a member are sent in order over one connection; those that wait for long are lost.

mod broken;
mod connection;
mod copying;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::{Document, doc};
use repl::message::{Envelope, Message};
use repl::position::MemberId;
use stdx::sync::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use broken::{Broken, Link};
use connection::Connection;
pub(crate) use connection::Dial;

use super::config::SetConfig;
use super::driver::{Input, key_of};
use super::letter::{Letter, fetch_command, parse_fetched, runs_of};
use super::network::{CopyDone, FetchDone, Fetched, Health, Network};
use super::sync::letter::Asked;

/// Messages to a member that wait for those before them.
const WAITING: usize = 64;

/// Pauses between attempts to connect.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// See [`PAUSE_MIN`].
const PAUSE_MAX: Duration = Duration::from_millis(1_000);

/// How long a source may take to answer a fetch, beside the network.
const FETCH: Duration = Duration::from_secs(10);

/// The connections.
pub(crate) struct Peers {
    dial: Dial,
    inputs: mpsc::WeakSender<Input>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The key of the set, which is in every message.
    set: String,
    /// This member.
    me: u32,
    limit: Duration,
    peers: BTreeMap<u32, Peer>,
}

struct Peer {
    host: String,
    limit: Duration,
    letters: mpsc::Sender<Document>,
    health: Arc<Mutex<Health>>,
    /// The connection for fetches, while none is under way.
    fetches: Arc<Mutex<Option<Connection>>>,
    task: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peers {
    /// Connections of the member whose driver has these inputs.
    pub(crate) fn new(dial: Dial, inputs: &mpsc::Sender<Input>) -> Peers {
        Peers {
            dial,
            inputs: inputs.downgrade(),
            state: Mutex::default(),
        }
    }

    /// Ask a server, of which only the address is known, what it is.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) async fn probe(&self, host: &str, set: &str) -> Result<Probed, String> {
        let limit = Duration::from_secs(10);
        let opened = Connection::open(host, &self.dial, limit).await;
        let mut connection = opened.map_err(|broken| broken.reason)?;
        let asked = connection.command("admin", doc! {"replSetProbe": 1, "set": set});
        let reply = tokio::time::timeout(limit, asked).await;
        let reply = reply.map_err(|_| "no answer".to_owned())?;
        let reply = reply.map_err(|broken| broken.reason)?;
        let process = reply
            .get_object_id("processId")
            .map_err(|e| e.to_string())?;
        Ok(Probed {
            process,
            belongs: reply.get_bool("belongs").unwrap_or(true),
            empty: reply.get_bool("empty").unwrap_or(false),
        })
    }

    fn asking(&self, state: &State, peer: &Peer) -> Asking {
        Asking {
            host: peer.host.clone(),
            dial: self.dial.clone(),
            limit: state.limit,
            set: state.set.clone(),
            idle: Arc::clone(&peer.fetches),
        }
    }

    fn link(&self, member: u32) -> Link {
        Link {
            inputs: self.inputs.clone(),
            member,
        }
    }

    fn peer(&self, member: MemberPlace<'_>) -> Peer {
        let (letters, waiting) = mpsc::channel(WAITING);
        let health = Arc::new(Mutex::new(Health::default()));
        let talk = Talk {
            host: member.host.to_owned(),
            dial: self.dial.clone(),
            limit: member.limit,
            health: Arc::clone(&health),
            link: self.link(member.id),
        };
        Peer {
            host: member.host.to_owned(),
            limit: member.limit,
            letters,
            health,
            fetches: Arc::default(),
            task: tokio::spawn(talk.run(waiting)),
        }
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probed {
    pub(crate) process: bson::oid::ObjectId,
    /// Whether it belongs to a set already.
    pub(crate) belongs: bool,
    /// Whether it has no entries.
    pub(crate) empty: bool,
}

struct MemberPlace<'a> {
    id: u32,
    host: &'a str,
    limit: Duration,
}

impl Network for Peers {
    fn configure(&self, config: &Arc<SetConfig>, me: u32) {
        let mut state = self.state.lock();
        let timeout = Duration::from_secs(config.settings.heartbeat_timeout_seconds);
        let election = Duration::from_millis(config.settings.election_ms);
        // An answer that is later than an election timeout helps no one.
        let limit = timeout.min(election.max(Duration::from_millis(500)));
        state.set = key_of(config);
        state.me = me;
        state.limit = limit;
        let same = |id: &u32, peer: &Peer| peer.host == config.host(*id) && peer.limit == limit;
        state.peers.retain(|id, peer| same(id, peer));
        for member in config.members.iter().filter(|m| m.id != me) {
            let place = MemberPlace {
                id: member.id,
                host: &member.host,
                limit,
            };
            let make = || self.peer(place);
            state.peers.entry(member.id).or_insert_with(make);
        }
    }

    fn send(&self, letter: Letter) {
        let state = self.state.lock();
        let command = letter.to_command(&state.set);
        let peer = state.peers.get(&letter.envelope.to.0);
        if let (Some(command), Some(peer)) = (command, peer) {
            // Members bear the loss of messages.
            let _: Result<(), _> = peer.letters.try_send(command);
        }
    }

    fn fetch(&self, envelope: Envelope, done: FetchDone) {
        let state = self.state.lock();
        let Some(peer) = state.peers.get(&envelope.to.0) else {
            return done(Err("the source is no member".to_owned()));
        };
        let asking = self.asking(&state, peer);
        let link = self.link(envelope.to.0);
        drop(tokio::spawn(async move {
            let asked = asking.ask(envelope).await;
            done(asked.map_err(|broken| link.reason(broken)));
        }));
    }

    fn copy(&self, from: MemberId, asked: Asked, done: CopyDone) {
        self.ask_for_copy(from, asked, done);
    }

    fn health(&self, member: u32) -> Health {
        let state = self.state.lock();
        let peer = state.peers.get(&member);
        peer.map_or_else(Health::default, |peer| peer.health.lock().clone())
    }
}

/// The task of the messages to one member.
struct Talk {
    host: String,
    dial: Dial,
    limit: Duration,
    health: Arc<Mutex<Health>>,
    link: Link,
}

impl Talk {
    /// The next message. Meanwhile a connection that the other side closes is noticed.
    async fn next(
        &self,
        open: &mut Option<Connection>,
        waiting: &mut mpsc::Receiver<Document>,
    ) -> Option<Document> {
        loop {
            let Some(connection) = open.as_mut() else {
                return waiting.recv().await;
            };
            let broken = tokio::select! {
                biased;
                next = waiting.recv() => return next,
                broken = connection.closed() => broken,
            };
            *open = None;
            self.link.broken(&broken);
            self.health.lock().error = broken.reason;
        }
    }

    async fn run(self, mut waiting: mpsc::Receiver<Document>) {
        let mut open: Option<Connection> = None;
        let mut pause = PAUSE_MIN;
        while let Some(mut command) = self.next(&mut open, &mut waiting).await {
            let mut connection = match open.take() {
                Some(connection) => connection,
                None => match Connection::open(&self.host, &self.dial, self.limit).await {
                    Ok(connection) => connection,
                    Err(broken) => {
                        self.link.broken(&broken);
                        self.health.lock().error = broken.reason;
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                        continue;
                    }
                },
            };
            pause = PAUSE_MIN;
            // What has waited for the connection is outdated.
            while waiting.len() > WAITING / 2 {
                match waiting.try_recv() {
                    Ok(newer) => command = newer,
                    Err(_) => break,
                }
            }
            let begun = stdx::time::now();
            let sent = connection.command("admin", command);
            let sent = tokio::time::timeout(self.limit, sent).await;
            let late = |_| Err(format!("no answer within {:?}", self.limit).into());
            let sent = sent.unwrap_or_else(late);
            let mut health = self.health.lock();
            match sent {
                Ok(_) => {
                    if !health.error.is_empty() || health.answered.is_none() {
                        self.link.works();
                    }
                    *health = Health {
                        answered: Some(stdx::time::now()),
                        ping: begun.elapsed(),
                        error: String::new(),
                    };
                    drop(health);
                    open = Some(connection);
                }
                // An error may leave a reply that is still to come.
                Err(broken) => {
                    self.link.broken(&broken);
                    health.error = broken.reason;
                }
            }
        }
    }
}

/// One fetch.
struct Asking {
    host: String,
    dial: Dial,
    limit: Duration,
    set: String,
    idle: Arc<Mutex<Option<Connection>>>,
}

impl Asking {
    async fn ask(self, envelope: Envelope) -> Result<Fetched, Broken> {
        let Message::Fetch { after } = envelope.message else {
            return Err("no fetch".to_owned().into());
        };
        let idle = self.idle.lock().take();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(&self.host, &self.dial, self.limit).await?,
        };
        let command = fetch_command(&self.set, &envelope, after);
        let asked = connection.command("admin", command);
        let reply = tokio::time::timeout(FETCH, asked).await;
        let late = |_| Err("no answer to a fetch".to_owned().into());
        let reply = reply.unwrap_or_else(late)?;
        let mut entries = Vec::new();
        if let Ok(list) = reply.get_array("entries") {
            for entry in list {
                let entry = entry.map_err(|error| error.to_string())?;
                let bson::RawBsonRef::Binary(binary) = entry else {
                    return Err("an entry that is not binary".to_owned().into());
                };
                entries.push(binary.bytes.to_vec());
            }
        }
        let runs = runs_of(after, entries.iter().map(Vec::as_slice));
        let runs = runs.map_err(|error| error.message)?;
        let answer = parse_fetched(&reply, runs).map_err(|error| error.message)?;
        *self.idle.lock() = Some(connection);
        Ok(match answer {
            None => Fetched::TooOld,
            Some(answer) if matches!(answer.message, Message::Diverged { .. }) => {
                Fetched::Diverged(answer)
            }
            Some(answer) => Fetched::Batch(answer, entries),
        })
    }
}
