//! Every command and every stage in a form that only accesses database `own` and collection `c`.
//! The tests replace these names by others.

use bson::{Bson, Document, bson, doc};

/// The forms of a command that the tests send.
pub(super) enum Entry {
    /// Only the command's name.
    Name,
    /// These forms.
    Of(Vec<Document>),
    /// None, for the given reason.
    Never(&'static str),
}

/// The forms of a stage; `None` for an unknown stage.
pub(super) fn stage(name: &str) -> Option<Vec<Bson>> {
    let inner = bson!([{"$unionWith": "c"}]);
    let graph = bson!({
        "from": "c", "as": "x", "startWith": "$_id", "connectFromField": "_id",
        "connectToField": "_id",
    });
    Some(match name {
        "$lookup" => vec![
            bson!({"from": "c", "as": "x", "localField": "k", "foreignField": "k"}),
            bson!({"from": {"db": "own", "coll": "c"}, "as": "x", "pipeline": []}),
            bson!({"from": "c", "as": "x", "pipeline": inner}),
        ],
        "$graphLookup" => vec![graph],
        "$unionWith" => vec![
            bson!("c"),
            bson!({"coll": "c"}),
            bson!({"coll": "c", "pipeline": inner}),
        ],
        "$facet" => vec![bson!({"f": inner})],
        "$out" => vec![bson!("o"), bson!({"db": "own", "coll": "o"})],
        "$merge" => vec![
            bson!("o"),
            bson!({"into": "o"}),
            bson!({"into": {"db": "own", "coll": "o"}, "whenMatched": "merge"}),
        ],
        "$addFields" | "$set" | "$project" => vec![bson!({"x": "$k"})],
        "$bucket" => vec![bson!({"groupBy": "$k", "boundaries": [0, 9]})],
        "$bucketAuto" => vec![bson!({"groupBy": "$k", "buckets": 2})],
        "$count" => vec![bson!("n")],
        "$sortByCount" => vec![bson!("$k")],
        "$unset" => vec![bson!("x")],
        "$unwind" => vec![bson!("$v")],
        "$collStats" => vec![bson!({"storageStats": {}, "latencyStats": {}})],
        "$currentOp" | "$indexStats" | "$planCacheStats" | "$match" => vec![bson!({})],
        "$listLocalSessions" | "$listSessions" => vec![bson!({"users": []})],
        "$densify" => vec![bson!({"field": "k", "range": {"step": 1, "bounds": "full"}})],
        "$documents" => vec![bson!([{"k": 1}])],
        "$fill" => vec![bson!({"output": {"v": {"value": 0}}})],
        "$group" => vec![bson!({"_id": "$k"})],
        "$limit" | "$skip" => vec![bson!(1)],
        "$redact" => vec![bson!("$$KEEP")],
        "$replaceRoot" => vec![bson!({"newRoot": {"k": "$k"}})],
        "$replaceWith" => vec![bson!({"k": "$k"})],
        "$sample" => vec![bson!({"size": 1})],
        "$setWindowFields" => vec![bson!({"output": {"n": {"$count": {}}}})],
        "$sort" => vec![bson!({"k": 1})],
        _ => return None,
    })
}

/// The commands that can contain a stage.
pub(super) fn of_stage(name: &str, spec: &Bson) -> Vec<Document> {
    let mut stage = Document::new();
    stage.insert(name, spec.clone());
    let aggregate = doc! {"aggregate": "c", "pipeline": [stage.clone()], "cursor": {}};
    let mut bare = aggregate.clone();
    bare.insert("aggregate", 1);
    bare.insert(
        "pipeline",
        vec![doc! {"$documents": [{"k": 1}]}, stage.clone()],
    );
    vec![
        own(aggregate.clone()),
        own(bare),
        own(doc! {"explain": aggregate, "verbosity": "executionStats"}),
        own(doc! {"create": "w", "viewOn": "c", "pipeline": [stage.clone()]}),
        own(doc! {"collMod": "v", "viewOn": "c", "pipeline": [stage]}),
    ]
}

fn on(database: &str, mut command: Document) -> Document {
    command.insert("$db", database);
    command
}

fn own(command: Document) -> Document {
    on("own", command)
}

fn admin(command: Document) -> Document {
    on("admin", command)
}

/// The entry of a command; `None` for an unknown command.
pub(super) fn command(name: &str) -> Option<Entry> {
    if let Some(listed) = of_documents(name).or_else(|| of_users(name)) {
        return Some(Entry::Of(listed));
    }
    Some(match name {
        "shutdown" => Entry::Never("it would end the server of the test"),
        "logout" => Entry::Never("it would end the user of the test"),
        "saslStart" | "saslContinue" | "authenticate" => {
            Entry::Never("what it makes a client is the client's secret")
        }
        "hello"
        | "isMaster"
        | "ping"
        | "buildInfo"
        | "endSessions"
        | "listCommands"
        | "whatsmyuri"
        | "connectionStatus"
        | "isdbgrid"
        | "startSession"
        | "refreshSessions"
        | "commitTransaction"
        | "abortTransaction"
        | "createSearchIndexes"
        | "updateSearchIndex"
        | "dropSearchIndex"
        | "listSearchIndexes"
        | "testVersion2"
        | "killSessions"
        | "features"
        | "profile"
        | "fsync"
        | "createBackup"
        | "readOplog"
        | "streamBackup"
        | "fsyncUnlock"
        | "top"
        | "setDefaultRWConcern"
        | "getClusterParameter"
        | "setClusterParameter"
        | "killOp"
        | "hostInfo"
        | "getLog"
        | "logRotate"
        | "rotateCertificates"
        | "rotateMasterKey"
        | "getParameter"
        | "setParameter"
        | "configureFailPoint"
        | "setFeatureCompatibilityVersion"
        | "getCmdLineOpts"
        | "replSetGetStatus"
        | "replSetGetConfig"
        | "replSetInitiate"
        | "replSetResizeOplog"
        | "replSetStepDown"
        | "replSetStepUp"
        | "replSetReconfig"
        | "replSetAbortPrimaryCatchUp"
        | "replSetFreeze"
        | "replSetMaintenance"
        | "replSetSyncFrom"
        | "replSetMessage"
        | "replSetFetch"
        | "replSetCopy"
        | "replSetProbe"
        | "getDefaultRWConcern"
        | "killAllSessions"
        | "killAllSessionsByPattern"
        | "serverStatus"
        | "getDiagnosticData"
        | "connPoolStats"
        | "lockInfo"
        | "invalidateUserCache" => Entry::Name,
        _ => return None,
    })
}

/// Commands on documents, collections and databases.
fn of_documents(name: &str) -> Option<Vec<Document>> {
    let update = doc! {"q": {"_id": 7}, "u": {"$set": {"k": 2}}, "upsert": true};
    Some(match name {
        // Further forms come from the stages.
        "aggregate" => vec![own(doc! {"aggregate": "c", "pipeline": [], "cursor": {}})],
        "explain" => [
            doc! {"find": "c"},
            doc! {"count": "c"},
            doc! {"distinct": "c", "key": "v"},
            doc! {"update": "c", "updates": [update]},
            doc! {"delete": "c", "deletes": [{"q": {}, "limit": 1}]},
            doc! {"findAndModify": "c", "update": {"$set": {"k": 3}}},
        ]
        .map(|inner| own(doc! {"explain": inner}))
        .to_vec(),
        "find" => vec![own(doc! {"find": "c", "filter": {}})],
        "count" => vec![own(doc! {"count": "c"})],
        "distinct" => vec![own(doc! {"distinct": "c", "key": "v"})],
        "getMore" => vec![own(doc! {"getMore": 1_i64, "collection": "c"})],
        "killCursors" => vec![own(doc! {"killCursors": "c", "cursors": [1_i64]})],
        "insert" => vec![own(doc! {"insert": "c", "documents": [{"k": 5}]})],
        "update" => vec![own(doc! {"update": "c", "updates": [update]})],
        "delete" => vec![own(
            doc! {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
        )],
        "findAndModify" => vec![
            own(doc! {"findAndModify": "c", "query": {}, "update": {"$set": {"k": 3}}}),
            own(doc! {"findAndModify": "c", "query": {}, "remove": true}),
        ],
        "bulkWrite" => vec![admin(doc! {
            "bulkWrite": 1,
            "ops": [
                {"insert": 0, "document": {"k": 6}},
                {"update": 0, "filter": {}, "updateMods": {"$set": {"k": 8}}, "upsert": true},
                {"delete": 0, "filter": {}},
            ],
            "nsInfo": [{"ns": "own.c"}],
        })],
        "applyOps" => [
            doc! {"op": "i", "ns": "own.c", "o": {"_id": 9}},
            doc! {"op": "u", "ns": "own.c", "o2": {"_id": 1}, "o": {"$set": {"k": 9}}},
            doc! {"op": "d", "ns": "own.c", "o": {"_id": 1}},
            doc! {"op": "c", "ns": "own.$cmd", "o": {"create": "w", "viewOn": "c", "pipeline": [
                {"$unionWith": {"coll": "c"}},
            ]}},
            doc! {"op": "c", "ns": "own.$cmd", "o": {"drop": "d"}},
            doc! {"op": "c", "ns": "own.$cmd", "o": {
                "renameCollection": "own.c", "to": "own.d", "dropTarget": true,
            }},
            doc! {"op": "c", "ns": "own.$cmd", "o": {"applyOps": [
                {"op": "i", "ns": "own.c", "o": {"_id": 11}},
            ]}},
        ]
        .map(|entry| admin(doc! {"applyOps": [entry]}))
        .to_vec(),
        "create" => vec![
            own(doc! {"create": "d"}),
            own(doc! {"create": "w", "viewOn": "c"}),
        ],
        "collMod" => vec![own(doc! {"collMod": "c", "validationLevel": "off"})],
        "drop" => vec![own(doc! {"drop": "d"})],
        "dropDatabase" => vec![own(doc! {"dropDatabase": 1})],
        "createIndexes" => vec![own(
            doc! {"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": "k"}]},
        )],
        "dropIndexes" => vec![own(doc! {"dropIndexes": "c", "index": "*"})],
        "convertToCapped" => vec![own(doc! {"convertToCapped": "d", "size": 4_096})],
        "renameCollection" => vec![
            admin(doc! {"renameCollection": "own.c", "to": "own.d", "dropTarget": true}),
            admin(doc! {"renameCollection": "own.d", "to": "own.c", "dropTarget": true}),
        ],
        "cloneCollectionAsCapped" => vec![own(
            doc! {"cloneCollectionAsCapped": "c", "toCollection": "d", "size": 4_096},
        )],
        "dataSize" => vec![own(doc! {"dataSize": "own.c"})],
        "listDatabases" => vec![admin(doc! {"listDatabases": 1})],
        "listCollections" => vec![
            own(doc! {"listCollections": 1}),
            own(doc! {
                "listCollections": 1, "nameOnly": true, "authorizedCollections": true,
            }),
        ],
        "currentOp" => vec![admin(doc! {"currentOp": 1, "$ownOps": true})],
        "dbHash" | "dbStats" | "validateDBMetadata" => {
            let mut command = Document::new();
            command.insert(name, 1);
            vec![own(command)]
        }
        "listIndexes"
        | "collStats"
        | "storageMap"
        | "validate"
        | "compact"
        | "reIndex"
        | "planCacheClear"
        | "planCacheListFilters"
        | "planCacheClearFilters" => {
            let mut command = Document::new();
            command.insert(name, "c");
            vec![own(command)]
        }
        _ => return None,
    })
}

/// Commands on users and roles.
fn of_users(name: &str) -> Option<Vec<Document>> {
    let role = || doc! {"role": "read", "db": "own"};
    let privilege = || {
        doc! {"resource": {"db": "own", "collection": "c"}, "actions": ["find"]}
    };
    let one = match name {
        "createUser" => doc! {"createUser": "made", "pwd": "x", "roles": [role()]},
        "updateUser" => doc! {"updateUser": "spare", "roles": [role()]},
        "dropUser" => doc! {"dropUser": "spare"},
        "dropAllUsersFromDatabase" => doc! {"dropAllUsersFromDatabase": 1},
        "grantRolesToUser" => doc! {"grantRolesToUser": "spare", "roles": [role()]},
        "revokeRolesFromUser" => doc! {"revokeRolesFromUser": "spare", "roles": [role()]},
        "usersInfo" => {
            let named = doc! {"user": "shown", "db": "own"};
            doc! {"usersInfo": named, "showCredentials": true, "showCustomData": true}
        }
        "createRole" => {
            doc! {"createRole": "made", "privileges": [privilege()], "roles": [role()]}
        }
        "updateRole" => {
            doc! {"updateRole": "spare", "privileges": [privilege()], "roles": [role()]}
        }
        "dropRole" => doc! {"dropRole": "spare"},
        "dropAllRolesFromDatabase" => doc! {"dropAllRolesFromDatabase": 1},
        "grantPrivilegesToRole" => {
            doc! {"grantPrivilegesToRole": "spare", "privileges": [privilege()]}
        }
        "revokePrivilegesFromRole" => {
            doc! {"revokePrivilegesFromRole": "spare", "privileges": [privilege()]}
        }
        "grantRolesToRole" => doc! {"grantRolesToRole": "spare", "roles": [role()]},
        "revokeRolesFromRole" => doc! {"revokeRolesFromRole": "spare", "roles": [role()]},
        "rolesInfo" => {
            let named = doc! {"role": "spare", "db": "own"};
            doc! {"rolesInfo": named, "showPrivileges": true}
        }
        "_mergeAuthzCollections" => {
            return Some(vec![admin(doc! {
                "_mergeAuthzCollections": 1, "tempUsersCollection": "own.c", "db": "own",
            })]);
        }
        _ => return None,
    };
    Some(vec![own(one)])
}
