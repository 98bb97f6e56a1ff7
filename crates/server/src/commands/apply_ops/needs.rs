//! What one must be allowed to do for entries of an oplog: what they do, and to name collections by
//! their UUIDs.

use bson::RawArray;
use query::{Code, Error, Result};

use super::DEPTH_MAX;
use super::operation::{Kind, inner, parse_all};
use crate::auth::User;
use crate::auth::authorize::{Asked, bypasses, rule};
use crate::auth::privilege::Wanted;
use crate::dispatch::Arguments;
use crate::server::Server;

/// What `applyOps` needs.
///
/// # Errors
/// Entries that are none; `Unauthorized` for a command without a rule.
pub(crate) fn needed(
    server: &Server,
    user: &User,
    arguments: &Arguments<'_>,
) -> Result<Vec<Wanted>> {
    let always_upsert = arguments.boolean("alwaysUpsert")?.unwrap_or(true);
    let mut wanted = Vec::new();
    let list = arguments.need_array("applyOps")?;
    let how = (always_upsert, bypasses(arguments));
    collect((server, user), list, how, 0, &mut wanted)?;
    Ok(wanted)
}

/// The error of entries in entries, too deep.
pub(super) fn too_deep() -> Error {
    let message = format!("applyOps is nested deeper than {DEPTH_MAX}");
    Error::parse(message)
}

fn collect(
    who: (&Server, &User),
    list: &RawArray,
    how: (bool, bool),
    depth: usize,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    if DEPTH_MAX < depth {
        return Err(too_deep());
    }
    let (always_upsert, bypass) = how;
    for operation in parse_all(list)? {
        if operation.uuid.is_some() {
            wanted.extend([Wanted::Cluster("useUUID"), Wanted::Cluster("forceUUID")]);
        }
        let actions: &[&'static str] = match operation.kind {
            Kind::Insert => &["insert"],
            Kind::Update if always_upsert || operation.may_insert() => &["update", "insert"],
            Kind::Update => &["update"],
            Kind::Delete => &["remove"],
            Kind::Nothing => {
                wanted.push(Wanted::Cluster("appendOplogNote"));
                continue;
            }
            Kind::Command => {
                let (database, row, body) = operation.command()?;
                if row.name == "applyOps" {
                    collect(who, inner(&body)?, how, depth + 1, wanted)?;
                    continue;
                }
                let asked = Asked {
                    row,
                    database,
                    body: &body,
                    message: None,
                };
                if !rule(who.0, who.1, &asked, wanted)? {
                    let message = format!("not authorized to apply {}", row.name);
                    return Err(Error::new(Code::UNAUTHORIZED, message));
                }
                continue;
            }
        };
        let ns = operation.namespace()?;
        let on = |action: &&'static str| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
        wanted.extend(actions.iter().map(on));
        if bypass {
            wanted.push(on(&"bypassDocumentValidation"));
        }
    }
    Ok(())
}
