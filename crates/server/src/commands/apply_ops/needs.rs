//! The privileges that oplog entries require: for their changes, and to name collections by UUID.

use bson::RawArray;
use query::{Code, Error, Result};

use super::operation::{Inner, Kind, Ordered, inner, parse_all};
use super::target::{How, of_uuid, renamed, wanted};
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
    let how = How {
        always_upsert,
        bypass_validation: bypasses(arguments),
    };
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
    how: How,
    depth: usize,
    needed: &mut Needed,
) -> Result<()> {
    if DEPTH_MAX < depth {
        return Err(too_deep());
    }
    for operation in parse_all(list)? {
        if operation.uuid.is_some() {
            needed.extend([Wanted::Cluster("useUUID"), Wanted::Cluster("forceUUID")]);
        }
        match operation.kind {
            Kind::Nothing => needed.push(Wanted::Cluster("appendOplogNote")),
            Kind::Command => match operation.command()? {
                Inner::Entries(body) => collect(asked, inner(&body)?, how, depth + 1, needed)?,
                Inner::Command(ordered) => command(asked, operation.uuid, &ordered, needed)?,
            },
            Kind::Insert | Kind::Update | Kind::Delete => {
                let found = operation.uuid.and_then(|uuid| of_uuid(asked.server, uuid));
                let ns = found.map_or_else(|| operation.namespace(), Ok)?;
                needed.extend(wanted(&operation, &ns, how));
            }
        }
    }
    Ok(())
}

/// Add the privileges of an entry's command.
fn command(
    asked: &Asked<'_>,
    uuid: Option<bson::Uuid>,
    ordered: &Ordered<'_>,
    needed: &mut Needed,
) -> Result<()> {
    let row = ordered.row;
    let found = uuid.and_then(|uuid| of_uuid(asked.server, uuid));
    let renamed = match &found {
        Some(ns) => renamed(ordered, ns)?,
        None => None,
    };
    let (database, body) = match &renamed {
        Some((database, body)) => (database.as_str(), body),
        None => (ordered.database, &ordered.body),
    };
    let arguments = Arguments::of(row.name, body)?;
    let asked = Asked {
        sent: Sent {
            command: &row.command,
            database,
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
