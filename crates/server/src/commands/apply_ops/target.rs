//! The collection that an entry changes. A UUID takes precedence over the name, so the privileges
//! are those on the collection with the UUID.
//!
//! - E2. The collection may be renamed between the check of all privileges, which precedes the
//!   first change, and its entry. So the privileges on it are checked again when the UUID is
//!   resolved for the change.

use bson::{RawDocument, RawDocumentBuf};
use query::{Code, Error, Namespace, Result};

use super::operation::{Kind, Operation, Ordered, Target};
use crate::access::{Sent, authorize, is_allowed};
use crate::arguments::Arguments;
use crate::auth::privilege::Wanted;
use crate::request::Call;
use crate::server::Server;

/// How entries are applied.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) always_upsert: bool,
    pub(super) bypass_validation: bool,
}

/// The privileges that a document entry requires on its collection; none for other entries.
pub(super) fn wanted(operation: &Operation<'_>, ns: &Namespace, how: How) -> Vec<Wanted> {
    let actions: &[&'static str] = match operation.kind {
        Kind::Insert => &["insert"],
        Kind::Update if how.always_upsert || operation.may_insert() => &["update", "insert"],
        Kind::Update => &["update"],
        Kind::Delete => &["remove"],
        Kind::Command | Kind::Nothing => return Vec::new(),
    };
    let bypass = how.bypass_validation.then_some("bypassDocumentValidation");
    let actions = actions.iter().copied().chain(bypass);
    let on = |action| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
    actions.map(on).collect()
}

/// The collection with a UUID.
pub(super) fn of_uuid(server: &Server, uuid: bson::Uuid) -> Option<Namespace> {
    let catalog = server.store.catalog();
    catalog.of_uuid(uuid).map(|found| found.ns().clone())
}

fn by_uuid(request: &Call<'_>, uuid: bson::Uuid) -> Result<Namespace> {
    of_uuid(&request.server, uuid).ok_or_else(|| {
        let message = format!("Failed to apply operation due to missing collection ({uuid})");
        Error::new(Code::NAMESPACE_NOT_FOUND, message)
    })
}

/// The collection of a document entry (E2).
///
/// # Errors
/// `NamespaceNotFound`, `Unauthorized`, `InvalidNamespace`.
pub(super) fn target(request: &Call<'_>, operation: &Operation<'_>, how: How) -> Result<Namespace> {
    let Some(uuid) = operation.uuid else {
        return operation.namespace();
    };
    let ns = by_uuid(request, uuid)?;
    let wanted = wanted(operation, &ns, how);
    match wanted.iter().all(|wanted| is_allowed(request, wanted)) {
        true => Ok(ns),
        false => {
            let message = format!("not authorized on {} to execute command applyOps", ns.db);
            Err(Error::new(Code::UNAUTHORIZED, message))
        }
    }
}

/// A command with the collection of its entry's UUID in place of the name: its database and its
/// body. `None` for a command whose UUID identifies no existing collection.
///
/// # Errors
/// Bytes that are not valid BSON.
pub(super) fn renamed(
    ordered: &Ordered<'_>,
    ns: &Namespace,
) -> Result<Option<(String, RawDocumentBuf)>> {
    let first = match ordered.form.target {
        Target::Namespace => ns.to_string(),
        Target::Collection => ns.coll.clone(),
        Target::New | Target::Database => return Ok(None),
    };
    let body = named(&ordered.body, first)?;
    Ok(Some((ns.db.clone(), body)))
}

/// The command of an entry on the collection with a UUID (E2).
///
/// # Errors
/// `NamespaceNotFound`, `Unauthorized`.
pub(super) fn command(
    request: &Call<'_>,
    ordered: &Ordered<'_>,
    uuid: bson::Uuid,
) -> Result<Option<(String, RawDocumentBuf)>> {
    if !matches!(ordered.form.target, Target::Collection | Target::Namespace) {
        return Ok(None);
    }
    let Some((database, body)) = renamed(ordered, &by_uuid(request, uuid)?)? else {
        return Ok(None);
    };
    let row = ordered.row;
    let sent = Sent {
        command: &row.command,
        database: &database,
        arguments: &Arguments::of(row.name, &body)?,
        message: None,
    };
    authorize(&request.server, &request.client, &row.rule, sent)?;
    Ok(Some((database, body)))
}

/// The command with another target.
fn named(body: &RawDocument, target: String) -> Result<RawDocumentBuf> {
    let mut command = RawDocumentBuf::new();
    let mut target = Some(target);
    for element in body {
        let (name, value) = element?;
        match target.take() {
            Some(target) => command.append(name, target),
            None => command.append(name, value),
        }
    }
    Ok(command)
}
