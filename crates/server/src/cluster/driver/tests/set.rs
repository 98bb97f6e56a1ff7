//! A replica set of drivers, and waits for conditions on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use query::Result;
use repl::position::Position;
use stdx::sync::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::super::{Ask, Driver, INPUTS, Input, Parts, Reach};
use super::fake::{FakeHost, FakeNetwork, FakeStorage, Wires, config, config_with, value_of};
use crate::cluster::config::SetConfig;
use crate::cluster::file::{self, Stored};
use crate::cluster::view::{Progress, View};

/// A correct set never needs that long, even on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

struct Running {
    inputs: mpsc::Sender<Input>,
    view: Arc<ArcSwap<View>>,
    progress: watch::Receiver<Progress>,
    host: Arc<FakeHost>,
    task: JoinHandle<()>,
}

pub(super) struct Set {
    pub(super) network: Arc<Wires>,
    folder: tempfile::TempDir,
    storages: BTreeMap<u32, Arc<FakeStorage>>,
    running: BTreeMap<u32, Running>,
}

impl Set {
    /// A set of `count` members that was initiated at the first.
    pub(super) async fn started(count: u32) -> Set {
        let ids: Vec<u32> = (0..count).collect();
        Set::with(config(&ids, 1)).await
    }

    /// A set in which only a hint makes a member campaign.
    pub(super) async fn patient(count: u32) -> Set {
        let ids: Vec<u32> = (0..count).collect();
        Set::with(config_with(&ids, 1, 86_400_000)).await
    }

    async fn with(config: SetConfig) -> Set {
        let mut set = Set {
            network: Arc::default(),
            folder: tempfile::tempdir().unwrap(),
            storages: BTreeMap::new(),
            running: BTreeMap::new(),
        };
        let ids: Vec<u32> = config.members.iter().map(|member| member.id).collect();
        for id in ids {
            set.add(id).await;
        }
        let initiate = Ask::Initiate {
            config: Box::new(config),
            me: 0,
        };
        set.ask(0, initiate).await.unwrap();
        set
    }

    /// Start a server that belongs to no set.
    pub(super) async fn add(&mut self, id: u32) {
        self.storages.insert(id, Arc::default());
        self.restart(id).await;
    }

    /// Start a member on what it has stored.
    pub(super) async fn restart(&mut self, id: u32) {
        let (inputs, receiver) = mpsc::channel(INPUTS);
        let view = Arc::new(ArcSwap::from_pointee(View::startup()));
        let (sender, progress) = watch::channel(Progress::none());
        let host = Arc::new(FakeHost::default());
        let storage = self.storage(id);
        let network = FakeNetwork {
            wires: Arc::clone(&self.network),
            config: Mutex::default(),
        };
        let path = self.path(id);
        let parts = Parts {
            set: "rs0".to_owned(),
            file: path.clone(),
            storage: storage.clone(),
            traffic: Arc::default(),
            network: Arc::new(network),
            host: host.clone(),
            view: Arc::clone(&view),
            progress: sender,
            status: Arc::default(),
            inputs: receiver,
        };
        let driver = Driver::new(parts, file::read(&path).unwrap()).unwrap();
        self.network.plug(id, inputs.clone(), storage);
        let task = tokio::spawn(driver.run());
        let running = Running {
            inputs,
            view,
            progress,
            host,
            task,
        };
        self.running.insert(id, running);
    }

    /// The connections of members to this one are closed.
    pub(super) async fn hint(&self, id: u32) {
        for (_, running) in self.running.iter().filter(|(other, _)| **other != id) {
            let reach = Reach::Broken {
                closed: true,
                reason: "the connection was closed".to_owned(),
            };
            assert!(running.inputs.send(Input::Link(id, reach)).await.is_ok());
        }
    }

    /// End a member as a crash of its process does.
    pub(super) async fn kill(&mut self, id: u32) {
        self.network.unplug(id);
        let running = self.running.remove(&id).unwrap();
        running.task.abort();
        drop(running.inputs);
        // Its end is what is waited for.
        drop(running.task.await);
        self.storage(id).crash();
    }

    fn path(&self, id: u32) -> std::path::PathBuf {
        self.folder.path().join(format!("replset{id}"))
    }

    pub(super) fn stored(&self, id: u32) -> Stored {
        file::read(&self.path(id)).unwrap().unwrap()
    }

    pub(super) fn storage(&self, id: u32) -> Arc<FakeStorage> {
        Arc::clone(self.storages.get(&id).unwrap())
    }

    pub(super) fn host(&self, id: u32) -> Arc<FakeHost> {
        Arc::clone(&self.running.get(&id).unwrap().host)
    }

    pub(super) fn view(&self, id: u32) -> Arc<View> {
        self.running.get(&id).unwrap().view.load_full()
    }

    pub(super) fn progress(&self, id: u32) -> Progress {
        self.running.get(&id).unwrap().progress.borrow().clone()
    }

    pub(super) fn config(&self, id: u32) -> SetConfig {
        SetConfig::clone(self.view(id).config.as_ref().unwrap())
    }

    pub(super) async fn ask(&self, id: u32, ask: Ask) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let inputs = &self.running.get(&id).unwrap().inputs;
        assert!(inputs.send(Input::Ask(ask, answer)).await.is_ok());
        answered.await.unwrap()
    }

    pub(super) async fn until(&self, what: &str, so: impl Fn() -> bool) {
        let begun = stdx::time::now();
        while !so() {
            let state = || {
                let views = self.running.iter();
                let views =
                    views.map(|(id, r)| (*id, r.view.load_full(), r.host.lines.lock().clone()));
                views.collect::<Vec<_>>()
            };
            assert!(begun.elapsed() < PATIENCE, "{what}: {:#?}", state());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The member that accepts writes.
    pub(super) async fn primary(&self) -> u32 {
        self.primary_so(|_| true).await
    }

    pub(super) async fn primary_but(&self, not: u32) -> u32 {
        self.primary_so(|id| id != not).await
    }

    async fn primary_so(&self, so: impl Fn(u32) -> bool) -> u32 {
        let found = || {
            let mut ids = self.running.keys().copied().filter(|id| so(*id));
            ids.find(|id| self.view(*id).is_writable())
        };
        self.until("a primary", || found().is_some()).await;
        loop {
            if let Some(id) = found() {
                return id;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Write at a primary.
    pub(super) async fn write(&self, id: u32, value: i32) -> Position {
        let last = self.storage(id).write(value).expect("a primary");
        let inputs = &self.running.get(&id).unwrap().inputs;
        assert!(inputs.send(Input::Wrote).await.is_ok());
        last
    }

    pub(super) async fn committed_at(&self, id: u32, last: Position) {
        self.until("a majority", || last <= self.progress(id).commit)
            .await;
    }

    pub(super) async fn committed_everywhere(&self, last: Position) {
        for id in self.running.keys() {
            self.until("all members", || last <= self.progress(*id).applied)
                .await;
        }
    }

    pub(super) fn same_logs(&self) {
        let mut logs = self.storages.values().map(|storage| storage.entries());
        let first = logs.next().unwrap();
        for log in logs {
            assert_eq!(log.len(), first.len());
            assert!(log == first);
        }
    }

    pub(super) fn values(&self, id: u32) -> Vec<i32> {
        let entries = self.storage(id).entries();
        entries.iter().filter_map(|entry| value_of(entry)).collect()
    }

    pub(super) async fn reconfig(&self, id: u32, members: &[u32]) -> Result<()> {
        let begun = stdx::time::now();
        loop {
            let version = i64::try_from(self.config(id).version).unwrap();
            let ask = Ask::Reconfig {
                config: Box::new(config(members, version + 1)),
                force: false,
            };
            let outcome = self.ask(id, ask).await;
            let busy = matches!(&outcome, Err(error) if error.code.0 == 109);
            if !busy || PATIENCE < begun.elapsed() {
                return outcome;
            }
            tokio::task::yield_now().await;
        }
    }
}
