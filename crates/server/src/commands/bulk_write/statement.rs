//! One statement of `bulkWrite`: its action, and the namespace it acts on.

use bson::RawDocument;
use docdb::{DeleteStatement, Let, UpdateStatement};
use query::{Code, Error, Result};

use crate::arguments::{Arguments, integer};
use crate::commands::find::collation;
use crate::commands::update::{array_filters, change, refuse_supplied, with_constants};
use crate::commands::write::hint;

const INSERT: &[&str] = &["insert", "document"];

const UPDATE: &[&str] = &[
    "update",
    "filter",
    "updateMods",
    "multi",
    "upsert",
    "upsertSupplied",
    "hint",
    "constants",
    "collation",
    "arrayFilters",
    "sort",
    "sampleId",
    "allowShardKeyUpdatesWithoutFullShardKeyInQuery",
];

const DELETE: &[&str] = &["delete", "filter", "multi", "hint", "collation", "sampleId"];

/// The action of a statement.
pub(super) enum Action<'a> {
    Insert(&'a RawDocument),
    /// Update documents.
    Update(Box<UpdateStatement>),
    /// Delete documents.
    Delete(Box<DeleteStatement>),
}

pub(super) struct Statement<'a> {
    /// The index of its namespace in `nsInfo`.
    pub(super) target: usize,
    /// Its action.
    pub(super) action: Action<'a>,
}

impl<'a> Statement<'a> {
    /// Parse one element of `ops`. `targets` is the number of namespaces, `variables` are those of
    /// `let`.
    ///
    /// # Errors
    /// `IDLUnknownField`, `BadValue` for a namespace that is not listed, `FailedToParse`,
    /// `TypeMismatch`.
    pub(super) fn parse(
        document: &'a RawDocument,
        targets: usize,
        variables: Option<&Let>,
    ) -> Result<Statement<'a>> {
        let first = document.iter().next().transpose()?;
        let (kind, target) = match first {
            Some((kind, target)) => (kind.as_str(), integer(target)),
            None => ("", None),
        };
        let action = match kind {
            "insert" => insert(document)?,
            "update" => update(document, variables)?,
            "delete" => delete(document, variables)?,
            other => {
                let message = format!("BSON field 'bulkWrite.ops.{other}' is an unknown field.");
                return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message));
            }
        };
        let target = target.and_then(|target| usize::try_from(target).ok());
        match target.filter(|target| *target < targets) {
            Some(target) => Ok(Statement { target, action }),
            None => Err(Error::bad_value(format!(
                "BulkWrite ops entry {kind} has an invalid nsInfo index."
            ))),
        }
    }

    /// The document to insert.
    pub(super) fn document(&self) -> Option<&'a RawDocument> {
        match &self.action {
            Action::Insert(document) => Some(document),
            _ => None,
        }
    }

    /// Whether it writes several documents at once, which cannot be retried.
    pub(super) fn is_multi(&self) -> bool {
        match &self.action {
            Action::Insert(_) => false,
            Action::Update(statement) => statement.multi,
            Action::Delete(statement) => statement.multi,
        }
    }

    /// Whether both are inserts into the same collection, which can be executed together.
    pub(super) fn joins(&self, other: &Statement<'_>) -> bool {
        let inserts = matches!(
            (&self.action, &other.action),
            (Action::Insert(_), Action::Insert(_))
        );
        inserts && self.target == other.target
    }

    /// The actions on its collection that it requires.
    pub(super) fn needs(&self) -> &'static [&'static str] {
        match &self.action {
            Action::Insert(_) => &["insert"],
            Action::Update(statement) if statement.upsert => &["update", "insert"],
            Action::Update(_) => &["update"],
            Action::Delete(_) => &["remove"],
        }
    }
}

fn insert(document: &RawDocument) -> Result<Action<'_>> {
    let arguments = Arguments::of("BulkWriteInsertOp", document)?;
    arguments.only(INSERT)?;
    Ok(Action::Insert(arguments.need_document("document")?))
}

fn update<'a>(document: &'a RawDocument, variables: Option<&Let>) -> Result<Action<'a>> {
    let arguments = Arguments::of("BulkWriteUpdateOp", document)?;
    arguments.only(UPDATE)?;
    refuse_supplied(&arguments)?;
    let multi = arguments.is_on("multi")?;
    let sort = arguments.document("sort")?.filter(|sort| !sort.is_empty());
    if multi && sort.is_some() {
        return Err(Error::parse("Cannot specify sort with multi=true"));
    }
    Ok(Action::Update(Box::new(UpdateStatement {
        filter: arguments.need_document("filter")?.to_owned(),
        update: change(arguments.need("updateMods")?)?,
        multi,
        upsert: arguments.is_on("upsert")?,
        hint: hint(&arguments)?,
        collation: collation(&arguments)?,
        array_filters: array_filters(&arguments)?,
        sort: sort.map(ToOwned::to_owned),
        variables: with_constants(&arguments, "constants", variables)?,
    })))
}

fn delete<'a>(document: &'a RawDocument, variables: Option<&Let>) -> Result<Action<'a>> {
    let arguments = Arguments::of("BulkWriteDeleteOp", document)?;
    arguments.only(DELETE)?;
    Ok(Action::Delete(Box::new(DeleteStatement {
        filter: arguments.need_document("filter")?.to_owned(),
        multi: arguments.is_on("multi")?,
        hint: hint(&arguments)?,
        collation: collation(&arguments)?,
        variables: variables.cloned(),
    })))
}
