//! The privileges that oplog entries require: for their changes, and to name collections by UUID.

use bson::RawArray;
use query::{Code, Error, Result};

use super::operation::{Inner, Kind, Ordered, inner, parse_all};
use crate::access::{Asked, Needed, Sent, bypasses};
use crate::arguments::Arguments;
use crate::auth::privilege::Wanted;

/// Maximum depth of `applyOps` in `applyOps`: MongoDB's value.
pub(super) const DEPTH_MAX: usize = 10;

/// The privileges of `applyOps`.
///
/// # Errors
/// Entries that are none; `Unauthorized` for a command without a rule.
pub(super) fn needs(asked: &Asked<'_>, needed: &mut Needed) -> Result<()> {
    let arguments = asked.sent.arguments;
    let always_upsert = arguments.boolean("alwaysUpsert")?.unwrap_or(true);
    let list = arguments.need_array("applyOps")?;
    let how = (always_upsert, bypasses(arguments));
    // The privileges are added only if all entries can be parsed.
    let mut all = Needed::default();
    collect(asked, list, how, 0, &mut all)?;
    needed.extend(all.wanted);
    Ok(())
}

/// The error for `applyOps` nested too deeply.
pub(super) fn too_deep() -> Error {
    let message = format!("applyOps is nested deeper than {DEPTH_MAX}");
    Error::parse(message)
}

fn collect(
    asked: &Asked<'_>,
    list: &RawArray,
    how: (bool, bool),
    depth: usize,
    needed: &mut Needed,
) -> Result<()> {
    if DEPTH_MAX < depth {
        return Err(too_deep());
    }
    let (always_upsert, bypass) = how;
    for operation in parse_all(list)? {
        if operation.uuid.is_some() {
            needed.extend([Wanted::Cluster("useUUID"), Wanted::Cluster("forceUUID")]);
        }
        let actions: &[&'static str] = match operation.kind {
            Kind::Insert => &["insert"],
            Kind::Update if always_upsert || operation.may_insert() => &["update", "insert"],
            Kind::Update => &["update"],
            Kind::Delete => &["remove"],
            Kind::Nothing => {
                needed.push(Wanted::Cluster("appendOplogNote"));
                continue;
            }
            Kind::Command => {
                match operation.command()? {
                    Inner::Entries(body) => {
                        collect(asked, inner(&body)?, how, depth + 1, needed)?;
                    }
                    Inner::Command(ordered) => command(asked, &ordered, needed)?,
                }
                continue;
            }
        };
        let ns = operation.namespace()?;
        let on = |action: &&'static str| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
        needed.extend(actions.iter().map(on));
        if bypass {
            needed.push(on(&"bypassDocumentValidation"));
        }
    }
    Ok(())
}

/// Add the privileges of an entry's command.
fn command(asked: &Asked<'_>, ordered: &Ordered<'_>, needed: &mut Needed) -> Result<()> {
    let row = ordered.row;
    let arguments = Arguments::of(row.name, &ordered.body)?;
    let asked = Asked {
        sent: Sent {
            command: &row.command,
            database: ordered.database,
            arguments: &arguments,
            message: None,
        },
        server: asked.server,
        user: asked.user,
    };
    match row.rule.add(&asked, needed)? {
        true => Ok(()),
        false => {
            let message = format!("not authorized to apply {}", row.name);
            Err(Error::new(Code::UNAUTHORIZED, message))
        }
    }
}
