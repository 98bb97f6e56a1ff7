//! The built-in roles, as data: a role is a set of actions on resources. The sets are MongoDB's,
//! without actions of unsupported features (sharding).

use std::borrow::Cow;

use super::privilege::{Grant, Resource};

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
    "getClusterParameter",
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
    "getClusterParameter",
    "getDefaultRWConcern",
    "listSessions",
    "replSetConfigure",
    "replSetGetConfig",
    "replSetGetStatus",
    "replSetResizeOplog",
    "replSetStateChange",
    "resync",
    "setClusterParameter",
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
    "rotateMasterKey",
    "setParameter",
    "shutdown",
    "startBackup",
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

/// The collections of `admin` that describe users.
const OF_USERS: &[&str] = &["system.users", "system.roles", "system.version"];

const BACKUP_OF_CLUSTER: &[&str] = &[
    "appendOplogNote",
    "getParameter",
    "listDatabases",
    "serverStatus",
    "startBackup",
];

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
    "__system",
];

/// Whether a built-in role of this name exists in a database.
pub(crate) fn exists(role: &str, database: &str) -> bool {
    OF_DATABASES.contains(&role) || (database == "admin" && OF_ADMIN.contains(&role))
}

/// The privileges of a built-in role; empty if the role does not exist.
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
        actions: Cow::Borrowed(actions),
    }));
}

/// Actions on some collections of `admin`.
fn add_admin(
    grants: &mut Vec<Grant>,
    collections: &[&'static str],
    actions: &'static [&'static str],
) {
    for &name in collections {
        let resource = Resource::Collection("admin".to_owned(), name.into());
        add(grants, &resource, &[actions]);
    }
}

fn of_database(role: &str, database: &str, grants: &mut Vec<Grant>) {
    let whole = Resource::Database(database.to_owned());
    let profile = Resource::Collection(database.to_owned(), "system.profile".into());
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

/// The roles that a composite role consists of.
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
    let profile = Resource::Named("system.profile".into());
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
            add_admin(grants, &["system.users", "system.roles"], USERS);
            add_admin(grants, &["system.version"], &["find"]);
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
            add_admin(grants, OF_USERS, BACKUP);
            add(grants, &profile, &[&["find"]]);
            add(grants, cluster, &[BACKUP_OF_CLUSTER]);
        }
        "restore" => {
            add(grants, &Resource::Any, &[RESTORE]);
            add(grants, cluster, &[&["getParameter"]]);
            add_admin(grants, OF_USERS, &["find"]);
            // `mongorestore` first restores users and roles to these collections.
            add_admin(grants, &["tempusers", "temproles"], &["find"]);
        }
        "__system" => add(grants, &Resource::Everything, &[&["anyAction"]]),
        _ => {}
    }
}
