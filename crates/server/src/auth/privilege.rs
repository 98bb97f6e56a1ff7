//! Privileges: actions on resources, as roles grant them and commands want them.
//!
//! A role on a database does not include its collections `system.*`, only a role that names them
//! does: a user that may read a database may not read the users in it.

use std::borrow::Cow;
use std::collections::HashMap;

use bson::{Bson, Document, doc};
use query::{Error, Result};

use crate::arguments::type_name;

/// The resource of a privilege.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    /// The cluster.
    Cluster,
    /// A database and its collections except `system.*`.
    Database(String),
    /// Every database and its collections except `system.*`.
    Any,
    /// Every database except `local` and `config`, for the roles on all databases.
    Ordinary,
    /// A collection by its name, in every database.
    Named(Cow<'static, str>),
    Collection(String, Cow<'static, str>),
    /// Every resource.
    Everything,
}

/// Actions on a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) resource: Resource,
    pub(crate) actions: Cow<'static, [&'static str]>,
}

/// A required action on a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// An action on the cluster.
    Cluster(&'static str),
    /// An action on a database.
    Database(String, &'static str),
    /// An action on a collection.
    Collection(String, String, &'static str),
    /// An action on all databases.
    Everywhere(&'static str),
    /// An action on all databases but those of the server itself.
    AllDatabases(&'static str),
    /// An action on everything, system collections of all databases included.
    Everything(&'static str),
}

/// The action that includes all actions.
const ANY: &str = "anyAction";

/// Every action that MongoDB's manual lists for this kind of deployment, Percona Server's of
/// backups, and `rotateMasterKey`.
const ACTIONS: &[&str] = &[
    "addShard",
    ANY,
    "appendOplogNote",
    "applicationMessage",
    "applyOps",
    "auditConfigure",
    "authSchemaUpgrade",
    "bypassDocumentValidation",
    "bypassWriteBlockingMode",
    "changeCustomData",
    "changeOwnCustomData",
    "changeOwnPassword",
    "changePassword",
    "changeStream",
    "checkMetadataConsistency",
    "cleanupOrphaned",
    "closeAllDatabases",
    "collMod",
    "collStats",
    "compact",
    "compactStructuredEncryptionData",
    "connPoolStats",
    "connPoolSync",
    "convertToCapped",
    "cpuProfiler",
    "createCollection",
    "createIndex",
    "createRole",
    "createSearchIndexes",
    "createUser",
    "dbHash",
    "dbStats",
    "dropCollection",
    "dropConnections",
    "dropDatabase",
    "dropIndex",
    "dropRole",
    "dropSearchIndex",
    "dropUser",
    "enableProfiler",
    "enableSharding",
    "find",
    "flushRouterConfig",
    "forceUUID",
    "fsync",
    "getCmdLineOpts",
    "getClusterParameter",
    "getDefaultRWConcern",
    "getLog",
    "getParameter",
    "getShardMap",
    "getShardVersion",
    "grantRole",
    "hostInfo",
    "impersonate",
    "indexStats",
    "inprog",
    "insert",
    "internal",
    "invalidateUserCache",
    "killAnyCursor",
    "killAnySession",
    "killCursors",
    "killop",
    "listCachedAndActiveUsers",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "listSampledQueries",
    "listSearchIndexes",
    "listSessions",
    "listShards",
    "logRotate",
    "moveChunk",
    "netstat",
    "operationMetrics",
    "planCacheIndexFilter",
    "planCacheRead",
    "planCacheWrite",
    "querySettings",
    "queryStatsRead",
    "reIndex",
    "refineCollectionShardKey",
    "remove",
    "removeShard",
    "renameCollectionSameDB",
    "replSetConfigure",
    "replSetGetConfig",
    "replSetGetStatus",
    "replSetHeartbeat",
    "replSetReconfig",
    "replSetResizeOplog",
    "replSetStateChange",
    "resync",
    "revokeRole",
    "rotateCertificates",
    "rotateMasterKey",
    "runTenantMigration",
    "serverStatus",
    "setAuthenticationRestriction",
    "setClusterParameter",
    "setDefaultRWConcern",
    "setFeatureCompatibilityVersion",
    "setFreeMonitoring",
    "setParameter",
    "setUserWriteBlockMode",
    "shardingState",
    "shutdown",
    "splitChunk",
    "splitVector",
    "startBackup",
    "storageDetails",
    "top",
    "touch",
    "unlock",
    "update",
    "updateRole",
    "updateSearchIndex",
    "updateUser",
    "useUUID",
    "validate",
    "viewRole",
    "viewUser",
];

impl Resource {
    /// The form in privilege documents.
    pub(crate) fn to_document(&self) -> Document {
        match self {
            Resource::Cluster => doc! {"cluster": true},
            Resource::Everything => doc! {"anyResource": true},
            Resource::Database(database) => doc! {"db": database.as_str(), "collection": ""},
            Resource::Any | Resource::Ordinary => doc! {"db": "", "collection": ""},
            Resource::Named(name) => doc! {"db": "", "collection": name.as_ref()},
            Resource::Collection(database, name) => {
                doc! {"db": database.as_str(), "collection": name.as_ref()}
            }
        }
    }

    /// Parse the resource of a privilege.
    ///
    /// # Errors
    /// `FailedToParse`, saying what is wrong.
    fn of(document: &Document) -> Result<Resource> {
        let wrong = |what: &str| Err(Error::parse(format!("resource {document}: {what}")));
        for name in ["cluster", "anyResource"] {
            match document.get(name) {
                None => continue,
                Some(Bson::Boolean(true)) if document.len() == 1 => {}
                Some(_) => return wrong(&format!("{name} stands alone and must be true")),
            }
            return Ok(match name {
                "cluster" => Resource::Cluster,
                _ => Resource::Everything,
            });
        }
        let (Ok(database), Ok(collection)) =
            (document.get_str("db"), document.get_str("collection"))
        else {
            return wrong("must have 'cluster', 'anyResource', or 'db' and 'collection'");
        };
        if document.len() != 2 {
            return wrong("has an unknown field");
        }
        Ok(match (database, collection) {
            ("", "") => Resource::Any,
            ("", name) => Resource::Named(name.to_owned().into()),
            (database, "") => Resource::Database(database.to_owned()),
            (database, name) => Resource::Collection(database.to_owned(), name.to_owned().into()),
        })
    }

    /// Its database, if it belongs to one.
    pub(crate) fn database(&self) -> Option<&str> {
        match self {
            Resource::Database(database) | Resource::Collection(database, _) => Some(database),
            _ => None,
        }
    }

    fn is_of(&self, wanted: &Wanted) -> bool {
        let ordinary = |database: &str| !matches!(database, "local" | "config");
        match (self, wanted) {
            (Resource::Everything, _) => true,
            (_, Wanted::Cluster(_)) => *self == Resource::Cluster,
            (_, Wanted::Everywhere(_)) => *self == Resource::Any,
            (_, Wanted::Everything(_)) => false,
            (_, Wanted::AllDatabases(_)) => matches!(self, Resource::Any | Resource::Ordinary),
            (Resource::Any, Wanted::Database(..)) => true,
            (Resource::Ordinary, Wanted::Database(database, _)) => ordinary(database),
            (Resource::Database(own), Wanted::Database(database, _)) => own == database,
            (_, Wanted::Database(..)) => false,
            (_, Wanted::Collection(database, collection, _)) => {
                let system = collection.starts_with("system.") || collection.is_empty();
                match self {
                    Resource::Database(own) => !system && own == database,
                    Resource::Any => !system,
                    Resource::Ordinary => !system && ordinary(database),
                    Resource::Named(name) => name == collection,
                    Resource::Collection(own, name) => own == database && name == collection,
                    Resource::Cluster | Resource::Everything => false,
                }
            }
        }
    }
}

impl Wanted {
    fn action(&self) -> &'static str {
        match self {
            Wanted::Cluster(action)
            | Wanted::Database(_, action)
            | Wanted::Collection(_, _, action)
            | Wanted::Everywhere(action)
            | Wanted::AllDatabases(action)
            | Wanted::Everything(action) => action,
        }
    }
}

impl Grant {
    /// Whether it allows the required action.
    pub(crate) fn allows(&self, wanted: &Wanted) -> bool {
        let action = wanted.action();
        let named = |own: &&str| *own == action || *own == ANY;
        self.resource.is_of(wanted) && self.actions.iter().any(named)
    }

    /// The form in role documents.
    pub(crate) fn to_document(&self) -> Document {
        let actions: Vec<Bson> = self.actions.iter().map(|action| (*action).into()).collect();
        doc! {"resource": self.resource.to_document(), "actions": actions}
    }

    /// Parse a privilege: `{resource, actions}`.
    ///
    /// # Errors
    /// `FailedToParse`, `BadValue` for an unknown action.
    pub(crate) fn of(document: &Document) -> Result<Grant> {
        let (Ok(resource), Ok(actions)) = (
            document.get_document("resource"),
            document.get_array("actions"),
        ) else {
            let message = format!("privilege {document}: must have a 'resource' and 'actions'");
            return Err(Error::parse(message));
        };
        let mut known = Vec::new();
        for action in actions {
            let Bson::String(action) = action else {
                let found = bson::RawBson::try_from(action.clone())?;
                let found = type_name(found.as_raw_bson_ref());
                return Err(Error::parse(format!(
                    "an action must be a string, not {found}"
                )));
            };
            let Some(action) = ACTIONS.iter().find(|known| *known == action) else {
                let message = format!("Unrecognized action privilege strings: {action}");
                return Err(Error::bad_value(message));
            };
            known.push(*action);
        }
        if known.is_empty() {
            return Err(Error::bad_value(format!(
                "privilege {document}: has no action"
            )));
        }
        known.sort_unstable();
        known.dedup();
        Ok(Grant {
            resource: Resource::of(resource)?,
            actions: known.into(),
        })
    }
}

/// Merge privileges into one per resource, as roles store them.
pub(crate) fn joined(grants: impl IntoIterator<Item = Grant>) -> Vec<Grant> {
    let mut all: Vec<Grant> = Vec::new();
    let mut places: HashMap<Resource, usize> = HashMap::new();
    for grant in grants {
        let place = *places.entry(grant.resource.clone()).or_insert(all.len());
        match all.get_mut(place) {
            None => all.push(grant),
            Some(known) => {
                let mut actions = known.actions.to_vec();
                actions.extend(grant.actions.iter());
                actions.sort_unstable();
                actions.dedup();
                known.actions = actions.into();
            }
        }
    }
    all
}

/// Remove privileges from others, resource by resource.
pub(crate) fn without(grants: Vec<Grant>, taken: &[Grant]) -> Vec<Grant> {
    let less = grants.into_iter().map(|mut grant| {
        let taken = taken.iter().filter(|t| t.resource == grant.resource);
        let taken: Vec<&str> = taken.flat_map(|t| t.actions.iter().copied()).collect();
        let mut actions = grant.actions.to_vec();
        actions.retain(|action| !taken.contains(action));
        grant.actions = actions.into();
        grant
    });
    less.filter(|grant| !grant.actions.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(resource: Document, actions: &[&str]) -> Result<Grant> {
        let actions: Vec<Bson> = actions.iter().map(|action| (*action).into()).collect();
        Grant::of(&doc! {"resource": resource, "actions": actions})
    }

    #[test]
    fn resources_are_read_and_shown_alike() {
        for resource in [
            doc! {"cluster": true},
            doc! {"anyResource": true},
            doc! {"db": "", "collection": ""},
            doc! {"db": "d", "collection": ""},
            doc! {"db": "", "collection": "c"},
            doc! {"db": "d", "collection": "c"},
        ] {
            let read = grant(resource.clone(), &["find", "insert", "find"]).unwrap();
            let shown = doc! {"resource": resource, "actions": ["find", "insert"]};
            assert_eq!(read.to_document(), shown);
        }
        for bad in [
            doc! {},
            doc! {"cluster": false},
            doc! {"cluster": true, "db": "d", "collection": ""},
            doc! {"db": "d"},
            doc! {"db": "d", "collection": "c", "x": 1},
        ] {
            assert!(grant(bad.clone(), &["find"]).is_err(), "{bad}");
        }
        assert!(grant(doc! {"cluster": true}, &["fly"]).is_err());
        assert!(grant(doc! {"cluster": true}, &[]).is_err());
    }

    #[test]
    fn a_privilege_reaches_no_further_than_its_resource() {
        let on = |d: &str, c: &str| Wanted::Collection(d.into(), c.into(), "find");
        let whole = grant(doc! {"db": "d", "collection": ""}, &["find"]).unwrap();
        assert!(whole.allows(&on("d", "c")) && whole.allows(&Wanted::Database("d".into(), "find")));
        assert!(!whole.allows(&on("e", "c")) && !whole.allows(&on("d", "system.users")));
        assert!(!whole.allows(&Wanted::Collection("d".into(), "c".into(), "insert")));
        let one = grant(doc! {"db": "d", "collection": "c"}, &["find"]).unwrap();
        assert!(one.allows(&on("d", "c")));
        assert!(!one.allows(&on("d", "e")) && !one.allows(&Wanted::Database("d".into(), "find")));
        let all = grant(doc! {"anyResource": true}, &["anyAction"]).unwrap();
        assert!(all.allows(&on("d", "system.users")) && all.allows(&Wanted::Cluster("shutdown")));
        let cluster = grant(doc! {"cluster": true}, &["shutdown"]).unwrap();
        assert!(cluster.allows(&Wanted::Cluster("shutdown")) && !cluster.allows(&on("d", "c")));
    }

    #[test]
    fn privileges_join_and_part_by_resource() {
        let d = || doc! {"db": "d", "collection": ""};
        let all = joined([
            grant(d(), &["find"]).unwrap(),
            grant(doc! {"cluster": true}, &["top"]).unwrap(),
            grant(d(), &["insert"]).unwrap(),
        ]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].actions.as_ref(), ["find", "insert"]);
        let taken = [grant(d(), &["find", "remove"]).unwrap()];
        let left = without(all, &taken);
        assert_eq!(left[0].actions.as_ref(), ["insert"]);
        let none = without(left, &[grant(d(), &["insert"]).unwrap()]);
        assert_eq!(none.len(), 1);
    }
}
