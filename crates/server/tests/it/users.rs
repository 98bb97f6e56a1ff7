//! When the server reads users and roles again, according to its own counters.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bson::{Bson, Document, doc};
use kv::{
    Batch, Capabilities, Compaction, Durability, Engine, EngineStats, Error, Flow, KeyRange,
    Progress, Result, Snapshot, StatScope, StorageMap, Transaction, TreeId, TreeOptions, TreeStats,
};

use crate::auth::{as_user, guarded};
use crate::client::{Client, Site, await_so};

const USERS: i32 = 5_000;

/// The number of reads of the collections, and of users computed from their documents.
fn work(client: &mut Client) -> (i64, i64) {
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let security = status.get_document("security").unwrap();
    let cache = security.get_document("userCache").unwrap();
    (
        cache.get_i64("reads").unwrap(),
        cache.get_i64("computed").unwrap(),
    )
}

fn user(number: i32) -> Document {
    let name = format!("u{number}");
    let roles = vec![doc! {"role": "own", "db": "test"}];
    doc! {"_id": format!("test.{name}"), "user": name, "db": "test", "credentials": {},
    "roles": roles}
}

/// Run a transaction of one insert, and end it with a command.
fn transaction(client: &mut Client, number: i64, document: Document, end: &str) {
    let id = bson::Uuid::from_bytes([9; 16]);
    let part = doc! {"lsid": {"id": id}, "txnNumber": number, "autocommit": false};
    let mut insert = doc! {"insert": "c", "documents": [document], "startTransaction": true};
    insert.extend(part.clone());
    client.ok("test", insert);
    let mut end = doc! {end: 1};
    end.extend(part);
    client.ok("admin", end);
}

/// U1: the versions of the collections decide.
#[test]
fn users_are_read_again_only_when_they_or_roles_were_written() {
    let site = Site::new();
    let mut client = site.client();
    let all: Vec<Bson> = (0..USERS).map(|n| user(n).into()).collect();
    client.ok(
        "test",
        doc! {"createRole": "own", "privileges": [], "roles": ["read"]},
    );
    client.ok("admin", doc! {"insert": "system.users", "documents": all});
    client.ok("test", doc! {"insert": "c", "documents": [{}]});
    let before = work(&mut client);
    assert!(i64::from(USERS) <= before.1, "{before:?}");

    // Commits, aborts, and writes of all kinds that do not touch them.
    transaction(&mut client, 1, doc! {}, "commitTransaction");
    transaction(&mut client, 2, doc! {}, "abortTransaction");
    let ops = vec![doc! {"insert": 0, "document": {}}];
    let bulk = doc! {"bulkWrite": 1, "ops": ops, "nsInfo": [{"ns": "test.c"}]};
    client.ok("admin", bulk);
    client.ok("admin", doc! {"insert": "c", "documents": [{}]});
    let out = doc! {"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}};
    client.ok("test", out);
    assert_eq!(work(&mut client), before);

    // One more user: the collections are read once, and only that user is computed.
    let (reads, computed) = before;
    let users = vec![user(-2)];
    client.ok("admin", doc! {"insert": "system.users", "documents": users});
    assert_eq!(work(&mut client), (reads + 1, computed + 1));
    let info = client.ok("test", doc! {"usersInfo": "u-2"});
    assert_eq!(info.get_array("users").unwrap().len(), 1);
    let ops = vec![doc! {"insert": 0, "document": user(-3)}];
    let ns = vec![doc! {"ns": "admin.system.users"}];
    client.ok("admin", doc! {"bulkWrite": 1, "ops": ops, "nsInfo": ns});
    assert_eq!(work(&mut client), (reads + 2, computed + 2));
    client.ok(
        "test",
        doc! {"grantRolesToUser": "u7", "roles": ["readWrite"]},
    );
    assert_eq!(work(&mut client), (reads + 3, computed + 3));

    // A role may affect every user, so all are computed.
    let grant = doc! {"grantRolesToRole": "own", "roles": ["readWrite"]};
    client.ok("test", grant);
    let (reads_now, computed_now) = work(&mut client);
    assert_eq!(reads_now, reads + 4);
    assert_eq!(computed_now, computed + 3 + i64::from(USERS) + 2);
    // After their documents are deleted, the users are gone.
    let all = vec![doc! {"q": {}, "limit": 0}];
    client.ok("admin", doc! {"delete": "system.users", "deletes": all});
    let info = client.ok("test", doc! {"usersInfo": 1});
    assert!(info.get_array("users").unwrap().is_empty(), "{info}");
}

/// An engine that counts batches, and whose reads fail while `fails` is set. Write transactions are
/// unaffected.
pub(crate) struct Watched {
    inner: Box<dyn Engine>,
    fails: Arc<AtomicBool>,
    batches: Arc<AtomicU64>,
    /// Whether it has no statistics.
    pub(crate) blind: bool,
}

impl Watched {
    pub(crate) fn of(inner: Box<dyn Engine>) -> Watched {
        Watched {
            inner,
            fails: Arc::default(),
            batches: Arc::default(),
            blind: false,
        }
    }
}

impl Engine for Watched {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn create_tree(&self, name: &str, options: &TreeOptions) -> Result<TreeId> {
        self.inner.create_tree(name, options)
    }

    fn open_tree(&self, name: &str) -> Result<TreeId> {
        self.inner.open_tree(name)
    }

    fn drop_tree(&self, name: &str) -> Result<()> {
        self.inner.drop_tree(name)
    }

    fn trees(&self) -> Result<Vec<String>> {
        self.inner.trees()
    }

    fn begin_read(&self) -> Result<Box<dyn Snapshot + '_>> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(Error::unsupported("test", "reading")),
            false => self.inner.begin_read(),
        }
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>> {
        self.inner.begin_write()
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.inner.write(batch, durability)
    }

    fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    fn sync_log(&self) -> Result<()> {
        self.inner.sync_log()
    }

    fn compact(
        &self,
        tree: TreeId,
        range: KeyRange<'_>,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        self.inner.compact(tree, range, watch)
    }

    fn settle(&self, limit: Duration) -> Result<Compaction> {
        self.inner.settle(limit)
    }

    fn backup(
        &self,
        directory: &Path,
        watch: &mut dyn FnMut(Progress) -> Flow,
    ) -> Result<Compaction> {
        self.inner.backup(directory, watch)
    }

    fn stats(&self) -> Result<EngineStats> {
        match self.blind {
            true => Err(Error::unsupported("test", "statistics")),
            false => self.inner.stats(),
        }
    }

    fn tree_stats(&self, tree: TreeId, scope: StatScope) -> Result<TreeStats> {
        self.inner.tree_stats(tree, scope)
    }

    fn storage_map(&self) -> Result<StorageMap> {
        self.inner.storage_map()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }
}

/// U2: the known users remain.
#[test]
fn a_commit_that_happened_is_acknowledged_when_the_users_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let factory = kv_betree::factory();
    let options = kv::EngineOptions::default();
    let fails = Arc::new(AtomicBool::new(false));
    let engine = Watched {
        fails: Arc::clone(&fails),
        ..Watched::of(factory.open(folder.path(), &options).unwrap())
    };
    let site = Site::over(Arc::new(engine), folder, |_| ()).unwrap();
    let mut client = site.client();
    let users = vec![Bson::from(user(1))];
    client.ok("admin", doc! {"insert": "system.users", "documents": users});
    let (reads, _) = work(&mut client);
    fails.store(true, Ordering::Relaxed);
    let users = vec![Bson::from(user(2))];
    client.ok("admin", doc! {"insert": "system.users", "documents": users});
    // The known users remain.
    let known = |client: &mut Client| {
        let info = client.ok("test", doc! {"usersInfo": 1});
        info.get_array("users").unwrap().len()
    };
    assert_eq!(known(&mut client), 1);
    fails.store(false, Ordering::Relaxed);
    assert_eq!(work(&mut client).0, reads + 1, "an attempt");
    // The next command that writes tries again.
    client.ok("test", doc! {"insert": "c", "documents": [{}]});
    assert_eq!(known(&mut client), 2);
    assert_eq!(work(&mut client).0, reads + 2);
}

#[test]
fn strangers_who_end_sessions_make_the_store_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let factory = kv_betree::factory();
    let options = kv::EngineOptions::default();
    let batches = Arc::new(AtomicU64::new(0));
    let engine = Watched {
        batches: Arc::clone(&batches),
        ..Watched::of(factory.open(folder.path(), &options).unwrap())
    };
    let site = Site::over(Arc::new(engine), folder, |config| {
        config.authorization = true;
    });
    let site = site.unwrap();
    let roles = vec!["root"];
    let first = doc! {"createUser": "root", "pwd": "secret", "roles": roles};
    site.client().ok("admin", first);
    let ids = vec![Bson::from(doc! {"id": bson::Uuid::from_bytes([9; 16])})];
    let end = doc! {"endSessions": ids};
    let before = batches.load(Ordering::Relaxed);
    site.client().ok("admin", end.clone());
    assert_eq!(batches.load(Ordering::Relaxed), before);
    as_user(&site, "admin", "root").ok("admin", end);
    assert_eq!(batches.load(Ordering::Relaxed), before + 1);
}

/// T1: a user that loses a role while its command waits for the turn is refused.
#[test]
fn a_command_that_waited_is_authorized_again() {
    let site = guarded();
    let mut root = as_user(&site, "admin", "root");
    let system = doc! {"createUser": "system", "pwd": "secret", "roles": ["__system"]};
    root.ok("admin", system);
    let resource = doc! {"db": "test", "collection": ""};
    let privilege = doc! {"resource": resource, "actions": ["grantRole"]};
    root.ok(
        "test",
        doc! {"createRole": "own", "privileges": [privilege], "roles": []},
    );
    root.ok(
        "test",
        doc! {"createUser": "owner", "pwd": "secret", "roles": ["own"]},
    );
    // The role is taken from each of them, so the command that drops it has the turn for long.
    let all: Vec<Bson> = (0..USERS).map(|n| user(n).into()).collect();
    let mut system = as_user(&site, "admin", "system");
    system.ok("admin", doc! {"insert": "system.users", "documents": all});
    let mut owner = as_user(&site, "test", "owner");
    let mut watcher = as_user(&site, "admin", "root");
    root.send("test", doc! {"dropAllRolesFromDatabase": 1}, 0);
    let filter = doc! {"currentOp": 1, "command.dropAllRolesFromDatabase": {"$exists": true}};
    await_so("the roles to be dropped", || {
        let shown = watcher.ok("admin", filter.clone());
        !shown.get_array("inprog").unwrap().is_empty()
    });
    let granted = owner.run("test", doc! {"grantRolesToUser": "owner", "roles": ["own"]});
    let (_, dropped) = root.receive().unwrap();
    assert_eq!(dropped.get_f64("ok").unwrap(), 1.0, "{dropped}");
    // It may have had the turn first; otherwise it must not learn whether the role exists.
    let refused = granted.get_i32("code").is_ok_and(|code| code == 13);
    assert!(
        refused || granted.get_f64("ok").unwrap() == 1.0,
        "{granted}"
    );
}
