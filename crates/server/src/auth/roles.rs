//! The built-in roles, as data: a role is actions on resources. Sets of actions are MongoDB's,
//! without actions on what is not there (sharding).
//!
//! Collections `system.*` belong to no role but by name: whoever reads a database does not read
//! the users in it.

use bson::{Document, doc};

/// What a privilege is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The deployment.
    Cluster,
    /// A database and the collections in it but for `system.*`.
    Database(String),
    /// Every database and the collections in it but for `system.*`.
    Any,
    /// Every database but `local` and `config`, as a user of all databases has them.
    Ordinary,
    /// A collection by its name, in every database.
    Named(&'static str),
    /// One collection.
    Collection(String, &'static str),
}

impl Resource {
    /// As `connectionStatus` shows it.
    pub(crate) fn to_document(&self) -> Document {
        match self {
            Resource::Cluster => doc! {"cluster": true},
            Resource::Database(database) => doc! {"db": database.as_str(), "collection": ""},
            Resource::Any | Resource::Ordinary => doc! {"db": "", "collection": ""},
            Resource::Named(name) => doc! {"db": "", "collection": *name},
            Resource::Collection(database, name) => {
                doc! {"db": database.as_str(), "collection": *name}
            }
        }
    }
}

/// Actions on a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The resource.
    pub(crate) resource: Resource,
    /// The actions.
    pub(crate) actions: &'static [&'static str],
}

const READ: &[&str] = &[
    "changeStream",
    "collStats",
    "dbHash",
    "dbStats",
    "find",
    "killCursors",
    "listCollections",
    "listIndexes",
];

const WRITE: &[&str] = &[
    "convertToCapped",
    "createCollection",
    "createIndex",
    "dropCollection",
    "dropIndex",
    "insert",
    "remove",
    "renameCollectionSameDB",
    "update",
];

const DB_ADMIN: &[&str] = &[
    "bypassDocumentValidation",
    "collMod",
    "collStats",
    "compact",
    "convertToCapped",
    "createCollection",
    "createIndex",
    "dbStats",
    "dropCollection",
    "dropDatabase",
    "dropIndex",
    "enableProfiler",
    "indexStats",
    "listCollections",
    "listIndexes",
    "planCacheIndexFilter",
    "planCacheRead",
    "planCacheWrite",
    "reIndex",
    "renameCollectionSameDB",
    "storageDetails",
    "validate",
];

const PROFILE: &[&str] = &[
    "changeStream",
    "collStats",
    "convertToCapped",
    "createCollection",
    "dbHash",
    "dbStats",
    "dropCollection",
    "find",
    "killCursors",
    "listCollections",
    "listIndexes",
    "planCacheRead",
];

const USER_ADMIN: &[&str] = &[
    "changeCustomData",
    "changePassword",
    "createRole",
    "createUser",
    "dropRole",
    "dropUser",
    "grantRole",
    "revokeRole",
    "setAuthenticationRestriction",
    "viewRole",
    "viewUser",
];

const USERS: &[&str] = &[
    "collStats",
    "dbHash",
    "dbStats",
    "find",
    "killCursors",
    "listIndexes",
    "planCacheRead",
];

const MONITOR: &[&str] = &[
    "connPoolStats",
    "getCmdLineOpts",
    "getDefaultRWConcern",
    "getLog",
    "getParameter",
    "hostInfo",
    "inprog",
    "listDatabases",
    "listSessions",
    "netstat",
    "operationMetrics",
    "replSetGetConfig",
    "replSetGetStatus",
    "serverStatus",
    "top",
];

const MANAGER: &[&str] = &[
    "appendOplogNote",
    "applicationMessage",
    "getDefaultRWConcern",
    "listSessions",
    "replSetConfigure",
    "replSetGetConfig",
    "replSetGetStatus",
    "replSetStateChange",
    "resync",
    "setDefaultRWConcern",
    "setFeatureCompatibilityVersion",
];

const HOST: &[&str] = &[
    "applicationMessage",
    "closeAllDatabases",
    "connPoolSync",
    "cpuProfiler",
    "flushRouterConfig",
    "fsync",
    "invalidateUserCache",
    "killAnyCursor",
    "killAnySession",
    "killop",
    "logRotate",
    "resync",
    "rotateCertificates",
    "setParameter",
    "shutdown",
    "unlock",
];

const RESTORE: &[&str] = &[
    "bypassDocumentValidation",
    "changeCustomData",
    "changePassword",
    "collMod",
    "createCollection",
    "createIndex",
    "createRole",
    "createUser",
    "dropCollection",
    "dropRole",
    "dropUser",
    "grantRole",
    "insert",
    "listCollections",
    "listIndexes",
    "revokeRole",
    "viewRole",
    "viewUser",
];

const USERS_OF_CLUSTER: &[&str] = &["authSchemaUpgrade", "invalidateUserCache", "listDatabases"];

const MONITOR_ANY: &[&str] = &["collStats", "dbStats", "indexStats"];

const BACKUP: &[&str] = &["collStats", "find", "listCollections", "listIndexes"];

const BACKUP_OF_CLUSTER: &[&str] = &["appendOplogNote", "listDatabases", "serverStatus"];

/// A role of any database.
pub(crate) const OF_DATABASES: &[&str] = &["read", "readWrite", "dbAdmin", "userAdmin", "dbOwner"];

/// A role of the database `admin`.
pub(crate) const OF_ADMIN: &[&str] = &[
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "dbAdminAnyDatabase",
    "userAdminAnyDatabase",
    "clusterMonitor",
    "clusterManager",
    "hostManager",
    "clusterAdmin",
    "backup",
    "restore",
    "root",
];

/// Whether there is a role of this name in a database.
pub(crate) fn exists(role: &str, database: &str) -> bool {
    OF_DATABASES.contains(&role) || (database == "admin" && OF_ADMIN.contains(&role))
}

/// What a role grants; nothing when there is no such role.
pub(crate) fn grants(role: &str, database: &str) -> Vec<Grant> {
    if !exists(role, database) {
        return Vec::new();
    }
    let mut grants = Vec::new();
    if OF_DATABASES.contains(&role) {
        of_database(role, database, &mut grants);
    } else {
        of_admin(role, &mut grants);
    }
    grants
}

fn add(grants: &mut Vec<Grant>, resource: &Resource, actions: &[&'static [&'static str]]) {
    grants.extend(actions.iter().map(|actions| Grant {
        resource: resource.clone(),
        actions,
    }));
}

fn of_database(role: &str, database: &str, grants: &mut Vec<Grant>) {
    let whole = Resource::Database(database.to_owned());
    let profile = Resource::Collection(database.to_owned(), "system.profile");
    match role {
        "read" => add(grants, &whole, &[READ]),
        "readWrite" => add(grants, &whole, &[READ, WRITE]),
        "dbAdmin" => {
            add(grants, &whole, &[DB_ADMIN]);
            add(grants, &profile, &[PROFILE]);
        }
        "userAdmin" => add(grants, &whole, &[USER_ADMIN]),
        _ => {
            add(grants, &whole, &[READ, WRITE, DB_ADMIN, USER_ADMIN]);
            add(grants, &profile, &[PROFILE]);
        }
    }
}

/// The roles that are other roles together.
fn parts(role: &str) -> &'static [&'static str] {
    match role {
        "clusterAdmin" => &["clusterMonitor", "clusterManager", "hostManager"],
        "root" => &[
            "readWriteAnyDatabase",
            "dbAdminAnyDatabase",
            "userAdminAnyDatabase",
            "clusterAdmin",
            "restore",
            "backup",
        ],
        _ => &[],
    }
}

fn of_admin(role: &str, grants: &mut Vec<Grant>) {
    let users = Resource::Collection("admin".to_owned(), "system.users");
    let profile = Resource::Named("system.profile");
    let cluster = &Resource::Cluster;
    for part in parts(role) {
        of_admin(part, grants);
    }
    match role {
        "readAnyDatabase" => {
            add(grants, &Resource::Ordinary, &[READ]);
            add(grants, cluster, &[&["listDatabases"]]);
        }
        "readWriteAnyDatabase" => {
            add(grants, &Resource::Ordinary, &[READ, WRITE]);
            add(grants, cluster, &[&["listDatabases"]]);
        }
        "dbAdminAnyDatabase" => {
            add(grants, &Resource::Ordinary, &[DB_ADMIN]);
            add(grants, &profile, &[PROFILE]);
            add(grants, cluster, &[&["listDatabases"]]);
        }
        "userAdminAnyDatabase" => {
            add(grants, &Resource::Any, &[USER_ADMIN]);
            add(grants, &users, &[USERS]);
            add(grants, cluster, &[USERS_OF_CLUSTER]);
        }
        "clusterMonitor" => {
            add(grants, cluster, &[MONITOR]);
            add(grants, &Resource::Any, &[MONITOR_ANY]);
            add(grants, &profile, &[&["find"]]);
        }
        "clusterManager" => add(grants, cluster, &[MANAGER]),
        "hostManager" => {
            add(grants, cluster, &[HOST]);
            add(grants, &Resource::Any, &[&["killCursors"]]);
        }
        "clusterAdmin" => add(grants, &Resource::Any, &[&["dropDatabase"]]),
        "backup" => {
            add(grants, &Resource::Any, &[BACKUP]);
            add(grants, &users, &[&["find"]]);
            add(grants, &profile, &[&["find"]]);
            add(grants, cluster, &[BACKUP_OF_CLUSTER]);
        }
        "restore" => {
            add(grants, &Resource::Any, &[RESTORE]);
            add(grants, &users, &[&["find"]]);
        }
        _ => {}
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// An action on the deployment.
    Cluster(&'static str),
    /// An action on a database.
    Database(String, &'static str),
    /// An action on a collection.
    Collection(String, String, &'static str),
    /// An action on all databases.
    Everywhere(&'static str),
}

impl Grant {
    /// Whether it allows something.
    pub(crate) fn allows(&self, wanted: &Wanted) -> bool {
        let ordinary = |database: &str| !matches!(database, "local" | "config");
        let (action, covered) = match wanted {
            Wanted::Cluster(action) => (action, self.resource == Resource::Cluster),
            Wanted::Everywhere(action) => (action, self.resource == Resource::Any),
            Wanted::Database(database, action) => {
                let covered = match &self.resource {
                    Resource::Database(own) => own == database,
                    Resource::Any => true,
                    Resource::Ordinary => ordinary(database),
                    _ => false,
                };
                (action, covered)
            }
            Wanted::Collection(database, collection, action) => {
                let system = collection.starts_with("system.") || collection.is_empty();
                let covered = match &self.resource {
                    Resource::Database(own) => !system && own == database,
                    Resource::Any => !system,
                    Resource::Ordinary => !system && ordinary(database),
                    Resource::Named(name) => name == collection,
                    Resource::Collection(own, name) => own == database && name == collection,
                    Resource::Cluster => false,
                };
                (action, covered)
            }
        };
        covered && self.actions.contains(action)
    }
}
