//! Change streams: no event of a namespace that a user may not read.

use bson::{Document, Timestamp, doc};

use super::{CANARIES, ROLES, Role, SAME, World, no_canary};
use crate::auth::{as_user, guarded_with};
use crate::client::{Client, batch};
use crate::oplog::SIZE;

/// The events from `since` on that a user gets of a target; the error code if it gets none.
fn events(
    user: &mut Client,
    (database, target): (&str, &bson::Bson),
    since: Timestamp,
) -> Result<Vec<Document>, i32> {
    let cluster = database == "admin" && target.as_str().is_none();
    let mut options = doc! {"startAtOperationTime": since, "fullDocument": "updateLookup"};
    if cluster {
        options.insert("allChangesForCluster", true);
    }
    let command = doc! {
        "aggregate": target, "pipeline": [{"$changeStream": options}],
        "cursor": {"batchSize": 1_000},
    };
    let reply = user.run(database, command);
    if let Ok(code) = reply.get_i32("code") {
        return Err(code);
    }
    let mut all = batch(&reply);
    let cursor = reply.get_document("cursor").unwrap();
    let (id, ns) = (cursor.get_i64("id").unwrap(), cursor.get_str("ns").unwrap());
    let (_, collection) = ns.split_once('.').unwrap();
    // A batch is empty when nothing else has happened.
    loop {
        let more = doc! {"getMore": id, "collection": collection, "maxTimeMS": 1};
        let reply = user.run(database, more);
        let next = batch(&reply);
        if next.is_empty() {
            return Ok(all);
        }
        all.extend(next);
    }
}

#[test]
fn a_stream_has_no_event_of_what_its_user_may_not_read() {
    let site = guarded_with(|config| config.oplog_bytes = Some(SIZE));
    let mut before = as_user(&site, "admin", "root");
    let since = before.ok("admin", doc! {"ping": 1});
    let since = since.get_timestamp("operationTime").unwrap();
    let world = World::of(site);
    let everywhere = |user: &mut Client, role: Option<&Role>| {
        let mut seen = String::new();
        for database in ["own", "foreign", "admin"] {
            for target in ["c", "secret", "system.users", ""] {
                let target = match target {
                    "" => bson::Bson::Int32(1),
                    name => name.into(),
                };
                let found = events(user, (database, &target), since);
                for event in found.into_iter().flatten() {
                    if let Some(role) = role {
                        no_canary(role, &event, &(database, &target));
                    }
                    seen.push_str(&event.to_string());
                }
            }
        }
        seen
    };
    for role in ROLES {
        let seen = everywhere(&mut world.user(role), Some(role));
        // Only who may read everything, or the database, gets anything at all.
        assert_eq!(!seen.is_empty(), !role.sees.is_empty(), "{}", role.name);
        for canary in role.sees {
            assert!(seen.contains(canary), "{} misses {canary}", role.name);
        }
    }
    // Users are in no stream, not even for an administrator.
    let seen = everywhere(&mut before, None);
    let [same, other, user] = CANARIES;
    assert_eq!(same, SAME);
    assert!(seen.contains(same) && seen.contains(other));
    assert!(!seen.contains(user), "{user}");
}
