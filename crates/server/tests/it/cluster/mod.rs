//! Replica sets of several servers in this process.

mod arbiters;
mod changes;
mod concerns;
mod hostile;
mod operation;
mod roles;
mod sync;
mod tls;

use std::path::PathBuf;

use bson::{Bson, Document, doc};
use server::Initiate;

use crate::auth::log_in;
use crate::client::{Client, Site, await_so, batch};

const KEY: &str = "bWVtYmVycyBrbm93IGVhY2ggb3RoZXI=";

/// The servers of a set, some of which may be stopped.
pub(crate) struct Set {
    sites: Vec<Option<Site>>,
    ports: Vec<u16>,
    key: Option<(tempfile::TempDir, PathBuf)>,
    adjust: Adjust,
    factory: fn(usize) -> &'static dyn kv::Factory,
}

/// Changes the settings of the server with this number.
type Adjust = std::sync::Arc<dyn Fn(usize, &mut server::Config)>;

/// A server that waits for a set, on a free port.
fn waiting(key: Option<&PathBuf>, port: u16) -> impl FnOnce(&mut server::Config) + use<> {
    let key = key.cloned();
    move |config| {
        config.initiate = Initiate::Command;
        config.oplog_bytes = Some(64 << 20);
        config.port = port;
        config.authorization = key.is_some();
        config.key_file = key;
    }
}

impl From<Vec<Site>> for Set {
    /// Servers that are set up already, without a key. Those added later have the engine betree.
    fn from(sites: Vec<Site>) -> Set {
        Set {
            ports: sites.iter().map(|site| site.address().port()).collect(),
            sites: sites.into_iter().map(Some).collect(),
            key: None,
            adjust: std::sync::Arc::new(|_, _| {}),
            factory: |_| kv_betree::factory(),
        }
    }
}

impl Set {
    /// Servers that belong to no set yet.
    pub(crate) fn waiting(count: usize) -> Set {
        Set::of(count, None, std::sync::Arc::new(|_, _| {}))
    }

    /// The same with other settings.
    pub(crate) fn adjusted(
        count: usize,
        adjust: impl Fn(usize, &mut server::Config) + 'static,
    ) -> Set {
        Set::of(count, None, std::sync::Arc::new(adjust))
    }

    /// A set that has begun at the first server, whose last one has the engine LMDB.
    pub(crate) fn mixed(count: usize) -> Set {
        let mut set = Set::waiting(count - 1);
        set.factory = |_| kv_lmdb::factory();
        set.add();
        set.begin();
        set
    }

    /// The same with a key and authorization.
    pub(crate) fn guarded(count: usize) -> Set {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, KEY).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).unwrap();
        Set::of(count, Some((folder, path)), std::sync::Arc::new(|_, _| {}))
    }

    fn of(count: usize, key: Option<(tempfile::TempDir, PathBuf)>, adjust: Adjust) -> Set {
        let path = key.as_ref().map(|(_, path)| path);
        let site = |i: usize| {
            Site::with(|config| {
                waiting(path, 0)(config);
                adjust(i, config);
            })
        };
        let sites: Vec<Site> = (0..count).map(site).collect();
        Set {
            key,
            adjust,
            ..Set::from(sites)
        }
    }

    /// A set that has begun at the first server, with a primary.
    pub(crate) fn started(count: usize) -> Set {
        let set = Set::waiting(count);
        set.begin();
        set
    }

    fn begin(&self) {
        self.client(0)
            .ok("admin", doc! {"replSetInitiate": self.config(1, |_, _| {})});
        self.primary();
    }

    /// A configuration of all servers with short timeouts; `change` changes its members.
    pub(crate) fn config(&self, version: i64, change: impl Fn(usize, &mut Document)) -> Document {
        let members = (0..self.sites.len()).map(|i| {
            let mut member = doc! {"_id": i32::try_from(i).unwrap(), "host": self.host(i)};
            change(i, &mut member);
            Bson::Document(member)
        });
        doc! {
            "_id": "rs0", "version": version, "members": members.collect::<Vec<_>>(),
            "settings": {"electionTimeoutMillis": 5_000, "heartbeatIntervalMillis": 200},
        }
    }

    /// A set whose members campaign for no timeout, only because of a hint.
    pub(crate) fn patient(count: usize) -> Set {
        let set = Set::waiting(count);
        let mut config = set.config(1, |_, _| {});
        let settings = config.get_document_mut("settings").unwrap();
        settings.insert("electionTimeoutMillis", 86_400_000);
        set.client(0).ok("admin", doc! {"replSetInitiate": config});
        set.primary();
        set
    }

    pub(crate) fn host(&self, i: usize) -> String {
        format!("127.0.0.1:{}", self.ports[i])
    }

    pub(crate) fn site(&self, i: usize) -> &Site {
        self.sites[i].as_ref().unwrap()
    }

    /// A client, authenticated if the set is guarded and has the user.
    pub(crate) fn client(&self, i: usize) -> Client {
        self.site(i).client()
    }

    pub(crate) fn system(&self, i: usize) -> Client {
        let mut client = self.client(i);
        let reply = log_in(&mut client, "local", "__system", KEY);
        assert!(reply.get_bool("done").unwrap(), "{reply}");
        client
    }

    /// Another server, which belongs to no set yet.
    pub(crate) fn add(&mut self) -> usize {
        let path = self.key.as_ref().map(|(_, path)| path);
        let i = self.sites.len();
        let folder = tempfile::tempdir().unwrap();
        let site = Site::of((self.factory)(i), folder, |config| {
            waiting(path, 0)(config);
            (self.adjust)(i, config);
        });
        let site = site.unwrap();
        self.ports.push(site.address().port());
        self.sites.push(Some(site));
        self.sites.len() - 1
    }

    pub(crate) fn stop(&mut self, i: usize) -> tempfile::TempDir {
        self.sites[i].take().unwrap().stop()
    }

    pub(crate) fn resume(&mut self, i: usize, folder: tempfile::TempDir) {
        let path = self.key.as_ref().map(|(_, path)| path);
        let site = Site::try_in(folder, |config| {
            waiting(path, self.ports[i])(config);
            (self.adjust)(i, config);
        });
        self.sites[i] = Some(site.unwrap());
    }

    /// The servers that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = usize> + '_ {
        let sites = self.sites.iter().enumerate();
        sites.filter(|(_, site)| site.is_some()).map(|(i, _)| i)
    }

    pub(crate) fn hello(&self, i: usize) -> Document {
        self.client(i).ok("admin", doc! {"hello": 1})
    }

    /// Wait for a primary.
    pub(crate) fn primary(&self) -> usize {
        self.primary_but(None)
    }

    pub(crate) fn primary_but(&self, not: Option<usize>) -> usize {
        let mut found = None;
        await_so("a primary", || {
            let mut all = self.running().filter(|i| Some(*i) != not);
            found = all.find(|i| self.hello(*i).get_bool("isWritablePrimary").unwrap());
            found.is_some()
        });
        found.unwrap()
    }

    /// Wait until a member shows these documents.
    pub(crate) fn await_documents(&self, i: usize, collection: &str, ids: &[i32]) {
        let mut client = self.client(i);
        await_so("documents", || {
            let reply = client.run("test", read(collection));
            if reply.get_f64("ok").unwrap() < 1.0 {
                return false;
            }
            let found = batch(&reply);
            let mut found: Vec<i32> = found.iter().map(|d| d.get_i32("_id").unwrap()).collect();
            found.sort_unstable();
            found == ids
        });
    }
}

/// A read that a secondary answers.
pub(crate) fn read(collection: &str) -> Document {
    doc! {
        "find": collection, "batchSize": 10_000,
        "$readPreference": {"mode": "secondaryPreferred"},
    }
}

/// An insert of a document.
pub(crate) fn insert(id: i32) -> Document {
    doc! {"insert": "c", "documents": [{"_id": id}]}
}
