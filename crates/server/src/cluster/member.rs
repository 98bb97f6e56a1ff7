//! This server as a member of a replica set of several members: what its commands need of the
//! driver of the protocol.
//!
//! - M1. Clients write only while the driver lets them: a write is admitted while the flag is set,
//!   and the store refuses those that come to their commit later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use query::{Code, Error, Result};
use repl::message::Envelope;
use stdx::sync::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use super::config::SetConfig;
use super::driver::{Ask, Driver, INPUTS, Input, Parts, Served};
use super::file::{self, Stored};
use super::host::Host;
use super::key::Key;
use super::letter::Letter;
use super::network::{Health, Network as _};
use super::peers::{Dial, Peers};
use super::store::MemberStore;
use super::sync::status::Status;
use super::view::{Progress, View};
use crate::config::{ClusterAuth, Config, Initiate};
use crate::tls::Tls;

/// How long a primary that shuts down waits for a member to hand over to.
const RESIGN: Duration = Duration::from_millis(1_000);

/// How long it does not campaign afterwards.
const RESIGNED: Duration = Duration::from_secs(60);

/// What this server needs as a member.
pub(crate) struct Member {
    pub(crate) storage: Arc<MemberStore>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) progress: watch::Receiver<Progress>,
    /// The progress of an initial sync.
    pub(crate) status: Arc<Status>,
    pub(crate) key: Option<Arc<Key>>,
    view: Arc<ArcSwap<View>>,
    inputs: mpsc::Sender<Input>,
    /// Whether clients may write (M1).
    open: AtomicBool,
    /// The configuration to store for clients.
    pub(crate) newest: Mutex<Option<Arc<SetConfig>>>,
    /// Whether users are about to be read again.
    pub(crate) refreshing: AtomicBool,
    /// What the driver is made of, until it starts.
    unstarted: Mutex<Option<(Unstarted, Option<Stored>)>>,
}

/// The parts of the driver that exist before the server.
struct Unstarted {
    set: String,
    file: std::path::PathBuf,
    progress: watch::Sender<Progress>,
    inputs: mpsc::Receiver<Input>,
}

impl Member {
    /// Whether a server with these settings is a member of a set of several members, or waits to
    /// become one.
    pub(crate) fn is_wanted(config: &Config) -> bool {
        let waits = config.initiate == Initiate::Command;
        config.replica_set.is_some() && (waits || file::path(&config.db_path).exists())
    }

    /// Settings that a member of such a set cannot have.
    ///
    /// # Errors
    /// The first one, in a sentence.
    pub(crate) fn check(config: &Config, persistent: bool) -> std::result::Result<(), String> {
        let refuse = |why: &str| Err(format!("a replica set of several members {why}"));
        if !Member::is_wanted(config) {
            return Ok(());
        }
        if !persistent {
            return refuse("needs a storage engine that keeps its data when the process ends");
        }
        if config.oplog_bytes == Some(0) {
            return refuse("needs an oplog; replication.oplogSizeMB must not be 0");
        }
        let tls = &config.tls;
        if tls.encrypts_members() && tls.ca_file.is_none() && !tls.allow_invalid_certificates {
            return refuse(
                "with TLS needs net.tls.CAFile, by which members check each other's certificates",
            );
        }
        let by_certificate = config.cluster_auth != ClusterAuth::KeyFile;
        if by_certificate && (!tls.encrypts_members() || tls.ca_file.is_none()) {
            return refuse(
                "with this security.clusterAuthMode needs net.tls.mode preferTLS or requireTLS, \
                 and net.tls.CAFile",
            );
        }
        let by_key = config.cluster_auth != ClusterAuth::X509;
        if by_key && config.authorization && config.key_file.is_none() {
            return refuse(
                "with security.authorization needs security.keyFile, by which members recognize \
                 each other, or security.clusterAuthMode x509",
            );
        }
        Ok(())
    }

    /// Prepare a member on its store, which becomes a follower.
    ///
    /// # Errors
    /// A key or a file that cannot be used; those of the store.
    pub(crate) fn open(
        config: &Config,
        store: &Arc<docdb::Store>,
        tls: Option<&Arc<Tls>>,
    ) -> Result<Member> {
        let invalid = |message: String| Error::new(Code::INVALID_OPTIONS, message);
        let key = config.key_file.as_deref().map(Key::read).transpose();
        let key = key.map_err(invalid)?.map(Arc::new);
        let file = file::path(&config.db_path);
        let stored = file::read(&file)?;
        let set = config.replica_set.clone().unwrap_or_default();
        if let Some(stored) = stored.as_ref().filter(|stored| stored.config.name != set) {
            let other = &stored.config.name;
            let message = format!(
                "the data directory belongs to the replica set {other}; start the server with \
                 --replSet {other}, not {set}"
            );
            return Err(invalid(message));
        }
        let storage = Arc::new(MemberStore::new(Arc::clone(store))?);
        let (inputs, receiver) = mpsc::channel(INPUTS);
        let (sender, progress) = watch::channel(Progress::none());
        let dial = Dial {
            key: key.clone(),
            tls: tls.filter(|_| config.tls.encrypts_members()).cloned(),
            shows_certificate: config.cluster_auth.shows_certificate(),
        };
        let unstarted = Unstarted {
            set,
            file,
            progress: sender,
            inputs: receiver,
        };
        Ok(Member {
            storage,
            peers: Arc::new(Peers::new(dial, &inputs)),
            progress,
            status: Arc::default(),
            key,
            view: Arc::new(ArcSwap::from_pointee(View::startup())),
            inputs,
            open: AtomicBool::new(false),
            newest: Mutex::new(None),
            refreshing: AtomicBool::new(false),
            unstarted: Mutex::new(Some((unstarted, stored))),
        })
    }

    /// Start the driver in the runtime that this thread has entered. Later calls do nothing.
    ///
    /// # Errors
    /// Those of the store; when the system has no thread for it.
    pub(crate) fn start(&self, host: Arc<dyn Host>) -> Result<()> {
        let Some((unstarted, stored)) = self.unstarted.lock().take() else {
            return Ok(());
        };
        let parts = Parts {
            set: unstarted.set,
            file: unstarted.file,
            storage: self.storage.clone(),
            traffic: Arc::clone(&self.storage.traffic),
            network: self.peers.clone(),
            host,
            view: Arc::clone(&self.view),
            progress: unstarted.progress,
            status: Arc::clone(&self.status),
            inputs: unstarted.inputs,
        };
        drop(tokio::spawn(Driver::new(parts, stored)?.run()));
        Ok(())
    }

    /// What clients see of it.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Whether clients may write (M1).
    pub(crate) fn is_writable(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Let clients write, or not.
    pub(crate) fn let_write(&self, open: bool) {
        self.open.store(open, Ordering::Release);
    }

    /// Ask the driver for something, and wait for the answer.
    ///
    /// # Errors
    /// What the driver answers; that the server shuts down.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inputs.send(Input::Ask(ask, answer)).await;
        sent.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Give the driver a message of a member. It may be lost.
    pub(crate) fn deliver(&self, set: String, letter: Letter) {
        // Members bear the loss of messages.
        let _: std::result::Result<(), _> =
            self.inputs.try_send(Input::Letter(set, Box::new(letter)));
    }

    /// Give the driver the fetch of a member, and wait for the answer.
    ///
    /// # Errors
    /// That this member serves no entries; that the server shuts down.
    pub(crate) async fn serve(&self, set: String, envelope: Envelope) -> Result<Served> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inputs.send(Input::Fetch(set, envelope, answer)).await;
        sent.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// A client has written.
    pub(crate) fn wrote(&self) {
        // A full queue has another one of these, or the next write is soon.
        let _: std::result::Result<(), _> = self.inputs.try_send(Input::Wrote);
    }

    /// Hand over to another member before a shutdown.
    pub(crate) async fn resign(&self) {
        let view = self.view();
        let others = view.config.as_ref().is_some_and(|config| {
            let mut others = config.members.iter();
            others.any(|m| Some(m.id) != view.me && m.is_electable())
        });
        if !self.is_writable() || !others {
            return;
        }
        let ask = self.ask(Ask::StepDown {
            wait: RESIGN,
            force: true,
            frozen: RESIGNED,
        });
        // The others elect a primary without this one's help.
        drop(tokio::time::timeout(2 * RESIGN, ask).await);
    }

    /// The state of the connection to a member.
    pub(crate) fn health(&self, member: u32) -> Health {
        self.peers.health(member)
    }
}

/// The error of what the server does not do any more.
pub(crate) fn gone() -> Error {
    let message = "The server is in quiesce mode and will shut down";
    Error::new(Code::SHUTDOWN_IN_PROGRESS, message)
}
