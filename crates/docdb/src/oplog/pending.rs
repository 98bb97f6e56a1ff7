//! The changes of an engine transaction that its oplog entries will have, in order.

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, Uuid};
use kv::TreeId;

use super::entry::{Operation, Operations};
use super::image::Images;
use super::stored::Retry;
use super::undo::{Former, Undo};
use crate::writes::Touched;

/// The changes of an engine transaction.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Changes of the catalog: an entry each, before those of the documents.
    commands: Vec<RawDocumentBuf>,
    /// Changes of documents: one entry, or a chain of entries.
    operations: Operations,
    /// The documents before some of those changes.
    images: Images,
    session: Option<(RawDocumentBuf, i64)>,
    transaction: bool,
    /// What takes back the changes of documents and the records of the session.
    undo: Undo,
    /// The catalog's documents before each command.
    formers: Vec<Vec<(String, Option<Vec<u8>>)>>,
    /// What the commit has put for the session.
    retry: Option<Retry>,
    /// What the changes touch, for the waits of change streams.
    touched: Touched,
}

impl Pending {
    /// Add a change of a document.
    pub(crate) fn operation(&mut self, operation: &Operation<'_>) {
        self.touch(operation);
        self.operations.push(operation);
    }

    /// Add the document before the last change to the pre-images in a tree; `uuid` is the UUID of
    /// its collection.
    pub(crate) fn image(&mut self, tree: TreeId, uuid: Uuid, old: &RawDocument) {
        let last = self.operations.len().saturating_sub(1);
        self.images.push(tree, last, (uuid, old));
    }

    /// Add a change of the catalog.
    pub(crate) fn command(&mut self, operation: &Operation<'_>) {
        self.touch(operation);
        self.commands.push(operation.to_document());
    }

    fn touch(&mut self, operation: &Operation<'_>) {
        touch(&mut self.touched, operation);
    }

    pub(super) fn touched(&self) -> Touched {
        self.touched.clone()
    }

    /// Set the session and the transaction number of the write; `transaction` if it is a
    /// multi-document transaction.
    pub(crate) fn set_session(&mut self, id: RawDocumentBuf, number: i64, transaction: bool) {
        self.session = Some((id, number));
        self.transaction = transaction;
    }

    /// Set the records that the commit has put for the session.
    pub(crate) fn set_retry(&mut self, retry: Retry) {
        self.retry = Some(retry);
    }

    /// Add what takes back the last operation: `former` without its index.
    pub(crate) fn former(&mut self, mut former: Former) {
        former.index = self.operations.len().saturating_sub(1);
        self.undo.operations.push(former);
    }

    /// Add a record of the session before the commit, by its key.
    pub(crate) fn former_record(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.undo.sessions.push((key, value));
    }

    /// Set the catalog's documents before the last command.
    pub(crate) fn former_catalog(&mut self, formers: Vec<(String, Option<Vec<u8>>)>) {
        self.formers
            .resize(self.commands.len().saturating_sub(1), Vec::new());
        self.formers.push(formers);
    }

    /// What takes back the changes of documents, and the records of the session.
    pub(super) fn undo(&self) -> &Undo {
        &self.undo
    }

    /// What takes back a command; `last` if no entry of the commit follows.
    pub(super) fn undo_of_command(&self, index: usize, last: bool) -> Undo {
        Undo {
            operations: Vec::new(),
            sessions: match last {
                true => self.undo.sessions.clone(),
                false => Vec::new(),
            },
            catalog: self.formers.get(index).cloned().unwrap_or_default(),
        }
    }

    /// The hidden part of the last entry.
    pub(super) fn hidden(&self) -> Option<RawDocumentBuf> {
        self.retry.as_ref().map(Retry::to_hidden)
    }

    /// Whether there is nothing to put.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.operations.is_empty()
    }

    /// Give a statement's number to the first operation that belongs to no statement yet, if there
    /// is one.
    pub(crate) fn statement(&mut self, number: i32) {
        self.operations.statement(number);
    }

    pub(super) fn commands(&self) -> &[RawDocumentBuf] {
        &self.commands
    }

    pub(super) fn operations(&self) -> &Operations {
        &self.operations
    }

    pub(super) fn images(&self) -> &Images {
        &self.images
    }

    pub(super) fn is_transaction(&self) -> bool {
        self.transaction
    }

    pub(super) fn session_parts(&self) -> Option<(&RawDocument, i64)> {
        let (id, number) = self.session.as_ref()?;
        Some((id, *number))
    }

    /// The name of the write in reports of open slots.
    pub(super) fn holder(&self) -> &'static str {
        match (self.transaction, self.commands.is_empty()) {
            (true, _) => "transaction",
            (false, true) => "write",
            (false, false) => "change of the catalog",
        }
    }
}

/// Add what an operation changes.
pub(crate) fn touch(touched: &mut Touched, operation: &Operation<'_>) {
    match operation {
        Operation::Insert { place, .. }
        | Operation::Update { place, .. }
        | Operation::Delete { place, .. } => touched.collection(place.ns),
        Operation::Command {
            database, command, ..
        } => {
            let first = command.iter().next().and_then(|first| first.ok());
            match first.map(|(name, value)| (name.as_str(), value)) {
                Some(("renameCollection", RawBsonRef::String(from))) => {
                    touched.collection(from);
                    // It may be in another database.
                    touched.collection(command.get_str("to").unwrap_or_default());
                }
                Some((_, RawBsonRef::String(collection))) => {
                    touched.collection(&format!("{database}.{collection}"));
                }
                _ => touched.database(database),
            }
        }
        Operation::Nothing { .. } => {}
    }
}
