//! What events say about changes of the catalog.
//!
//! | entry | `operationDescription` |
//! |---|---|
//! | `create` | the options, and `idIndex` |
//! | `createIndexes`, `commitIndexBuild`, `dropIndexes` | `{indexes: [..]}` |
//! | `collMod` | the fields of the command |
//! | `convertToCapped` | `{capped: true, size}` |
//! | `renameCollection` | `{to: {db, coll}, dropTarget}` |
//! | `drop`, `dropDatabase` | none |

use bson::raw::cstr;
use bson::{Binary, RawArrayBuf, RawDocument, RawDocumentBuf, Uuid, rawdoc};
use query::Result;

use super::append_namespace;
use crate::oplog::entry::Command;

/// The fields of an event of a change of the catalog.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    /// The new name of a renamed collection, with the database.
    to: Option<String>,
    /// `operationDescription`. It identifies the event, so its form must not change.
    pub(super) description: Option<RawDocumentBuf>,
    /// `stateBeforeChange`.
    state: Option<RawDocumentBuf>,
    /// `nsType`.
    ns_type: Option<&'static str>,
}

impl Catalog {
    /// Append the fields; `expanded` with those of `showExpandedEvents`.
    pub(super) fn append_to(&self, out: &mut RawDocumentBuf, expanded: bool) {
        if let Some(to) = &self.to {
            append_namespace(out, cstr!("to"), to);
        }
        if !expanded {
            return;
        }
        if let Some(description) = &self.description {
            out.append(cstr!("operationDescription"), &**description);
        }
        if let Some(state) = &self.state {
            out.append(cstr!("stateBeforeChange"), &**state);
        }
        if let Some(ns_type) = self.ns_type {
            out.append(cstr!("nsType"), ns_type);
        }
    }
}

/// The name of the collection, without the database and empty for no collection, and the fields.
pub(super) fn describe<'e>(
    command: &Command<'e>,
    uuid: Option<Uuid>,
    replaced: Option<&RawDocument>,
) -> Result<(&'e str, Catalog)> {
    let mut catalog = Catalog::default();
    let collection = match command {
        Command::Create {
            collection,
            options,
        } => {
            catalog.description = Some(options.clone());
            // Entries of views have no UUID.
            catalog.ns_type = Some(if uuid.is_none() { "view" } else { "collection" });
            *collection
        }
        Command::CreateIndexes { collection, index } => {
            catalog.description = Some(indexes([&**index]));
            *collection
        }
        Command::CommitIndexBuild(build) => {
            catalog.description = Some(indexes(build.indexes.iter().copied()));
            build.collection
        }
        Command::DropIndexes { collection, index } => {
            let named = rawdoc! { "name": *index };
            catalog.description = Some(indexes([replaced.unwrap_or(&named)]));
            *collection
        }
        Command::CollMod {
            collection,
            changes,
        } => {
            catalog.description = Some(changes.clone());
            catalog.state = Some(state(replaced)?);
            *collection
        }
        Command::ConvertToCapped { collection, size } => {
            catalog.description = Some(rawdoc! { "capped": true, "size": *size });
            *collection
        }
        Command::RenameCollection { to, dropped, .. } => {
            catalog.to = Some((*to).to_owned());
            catalog.description = Some(renamed(to, *dropped));
            ""
        }
        Command::Drop { collection } => *collection,
        Command::DropDatabase
        | Command::StartIndexBuild(_)
        | Command::AbortIndexBuild { .. }
        | Command::ApplyOps(_) => "",
    };
    Ok((collection, catalog))
}

fn indexes<'i>(all: impl IntoIterator<Item = &'i RawDocument>) -> RawDocumentBuf {
    let list: RawArrayBuf = all.into_iter().collect();
    let mut out = RawDocumentBuf::new();
    out.append(cstr!("indexes"), list);
    out
}

fn renamed(to: &str, dropped: Option<Uuid>) -> RawDocumentBuf {
    let mut out = RawDocumentBuf::new();
    append_namespace(&mut out, cstr!("to"), to);
    if let Some(dropped) = dropped {
        out.append(cstr!("dropTarget"), Binary::from(dropped));
    }
    out
}

/// `{collectionOptions, indexOptions}` of what a `collMod` replaced.
fn state(replaced: Option<&RawDocument>) -> Result<RawDocumentBuf> {
    let mut out = RawDocumentBuf::new();
    for (from, to) in [
        ("collectionOptions_old", cstr!("collectionOptions")),
        ("indexOptions_old", cstr!("indexOptions")),
    ] {
        if let Some(old) = replaced
            .map(|replaced| replaced.get(from))
            .transpose()?
            .flatten()
        {
            out.append(to, old);
        }
    }
    Ok(out)
}
