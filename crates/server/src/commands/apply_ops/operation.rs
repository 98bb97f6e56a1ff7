//! One oplog entry, and the command in an entry of kind `c`.

use bson::raw::cstr;
use bson::{RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Uuid};
use docdb::{Applied, AppliedUpdate};
use query::pipeline::distinct;
use query::value::uuid_raw;
use query::{Code, Error, Namespace, Result};

use crate::commands::{ddl, index};
use crate::row::Row;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Insert,
    Update,
    Delete,
    Command,
    Nothing,
}

/// What the first field of an entry's command names, and what the entry's UUID identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A collection that the command creates, with this UUID unless it is a view.
    New,
    /// A collection, by its name in the database.
    Collection,
    /// A collection, by its full name.
    Namespace,
    /// A database, which has no UUID.
    Database,
}

/// Makes the command of an entry.
type Translate = fn(&RawDocument) -> Result<RawDocumentBuf>;

/// How a command is represented in entries.
pub(super) struct Form {
    /// Its name in entries.
    name: &'static str,
    /// The name of the command that runs.
    command: &'static str,
    /// What its first field names.
    pub(super) target: Target,
    /// What makes the command, where it differs from the entry.
    translate: Option<Translate>,
    /// Errors after which the entry counts as applied: its effect exists already.
    pub(super) accepted: &'static [Code],
}

impl Form {
    const fn new(name: &'static str, target: Target, accepted: &'static [Code]) -> Form {
        Form {
            name,
            command: name,
            target,
            translate: None,
            accepted,
        }
    }

    /// The row of the command.
    fn row(&self) -> Option<&'static Row> {
        let mut rows = ddl::ROWS.iter().chain(index::ROWS);
        rows.find(|row| row.name == self.command)
    }
}

/// The name of a nested `applyOps`.
const NESTED: &str = "applyOps";

/// The commands that entries may contain, in addition to `applyOps` itself.
const FORMS: &[Form] = &[
    Form::new("create", Target::New, &[Code::NAMESPACE_EXISTS]),
    Form::new(
        "collMod",
        Target::Collection,
        &[Code::INDEX_NOT_FOUND, Code::NAMESPACE_NOT_FOUND],
    ),
    Form::new("drop", Target::Collection, &[Code::NAMESPACE_NOT_FOUND]),
    Form::new(
        "dropDatabase",
        Target::Database,
        &[Code::NAMESPACE_NOT_FOUND],
    ),
    Form::new("convertToCapped", Target::Collection, &[]),
    Form::new("dropIndexes", Target::Collection, NO_INDEX),
    Form {
        command: "dropIndexes",
        ..Form::new("deleteIndexes", Target::Collection, NO_INDEX)
    },
    Form {
        command: "dropIndexes",
        translate: Some(drop_indexes),
        ..Form::new("deleteIndex", Target::Collection, NO_INDEX)
    },
    Form {
        translate: Some(create_indexes),
        ..Form::new(
            "createIndexes",
            Target::Collection,
            &[Code::INDEX_ALREADY_EXISTS, Code::NAMESPACE_NOT_FOUND],
        )
    },
    Form {
        translate: Some(rename),
        ..Form::new(
            "renameCollection",
            Target::Namespace,
            &[Code::NAMESPACE_NOT_FOUND, Code::NAMESPACE_EXISTS],
        )
    },
];

/// The index, or its collection, no longer exists.
const NO_INDEX: &[Code] = &[Code::INDEX_NOT_FOUND, Code::NAMESPACE_NOT_FOUND];

/// Commands that real oplogs contain and that are not supported.
const UNSUPPORTED: &[&str] = &[
    "startIndexBuild",
    "commitIndexBuild",
    "abortIndexBuild",
    "commitTransaction",
    "abortTransaction",
];

/// The command of an entry.
pub(super) enum Inner<'a> {
    Entries(RawDocumentBuf),
    /// Another command.
    Command(Ordered<'a>),
}

/// A command in an entry.
pub(super) struct Ordered<'a> {
    /// The database that it runs on.
    pub(super) database: &'a str,
    /// The command.
    pub(super) row: &'static Row,
    /// How it is represented in entries.
    pub(super) form: &'static Form,
    /// The command with its arguments.
    pub(super) body: RawDocumentBuf,
}

/// An entry.
pub(super) struct Operation<'a> {
    pub(super) kind: Kind,
    /// The namespace as it is given.
    pub(super) ns: &'a str,
    /// The UUID of the collection; it takes precedence over the name.
    pub(super) uuid: Option<Uuid>,
    document: &'a RawDocument,
    filter: Option<&'a RawDocument>,
    /// Whether an update may insert.
    upsert: bool,
}

fn illegal(message: &str) -> Error {
    Error::new(Code::ILLEGAL_OPERATION, message)
}

fn text<'a>(entry: &'a RawDocument, name: &str) -> Result<&'a str> {
    match entry.get(name)? {
        None => {
            let message = format!("op does not contain required \"{name}\" field");
            Err(illegal(&message))
        }
        Some(RawBsonRef::String(text)) => Ok(text),
        Some(_) => Err(illegal(&format!("\"{name}\" field is not a string"))),
    }
}

/// The entries of a list.
///
/// # Errors
/// What is no entry.
pub(super) fn parse_all(list: &RawArray) -> Result<Vec<Operation<'_>>> {
    let mut operations = Vec::new();
    for (place, value) in list.into_iter().enumerate() {
        let RawBsonRef::Document(entry) = value? else {
            return Err(Error::parse(format!("op not an object: applyOps.{place}")));
        };
        operations.push(Operation::parse(entry)?);
    }
    Ok(operations)
}

impl<'a> Operation<'a> {
    fn parse(entry: &'a RawDocument) -> Result<Operation<'a>> {
        distinct("applyOps", entry)?;
        let (kind, ns) = (text(entry, "op")?, text(entry, "ns")?);
        let kind = match kind {
            "i" => Kind::Insert,
            "u" => Kind::Update,
            "d" => Kind::Delete,
            "c" => Kind::Command,
            "n" => Kind::Nothing,
            other => {
                let message = format!("bad opType '{other}'");
                return Err(Error::location(14_825, message));
            }
        };
        if ns.is_empty() && kind != Kind::Nothing {
            let message = "\"ns\" field value cannot be empty when op type is not 'n'";
            return Err(illegal(message));
        }
        let document = match entry.get("o")? {
            Some(RawBsonRef::Document(document)) => document,
            None if kind == Kind::Nothing => RawDocument::from_bytes(b"\x05\0\0\0\0")?,
            _ => return Err(Error::parse("the field 'o' of an op must be an object")),
        };
        let filter = match (entry.get("o2")?, kind) {
            (Some(RawBsonRef::Document(filter)), _) => Some(filter),
            (_, Kind::Update) => {
                let message = "the field 'o2' of an update must be an object";
                return Err(Error::parse(message));
            }
            _ => None,
        };
        let uuid = entry.get("ui")?;
        let uuid = uuid.map(|value| uuid_raw(value).ok_or_else(bad_uuid));
        let uuid = uuid.transpose()?;
        Ok(Operation {
            kind,
            ns,
            uuid,
            document,
            filter,
            upsert: entry.get("b")? == Some(RawBsonRef::Boolean(true)),
        })
    }

    /// The collection of a document change, by its name.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub(super) fn namespace(&self) -> Result<Namespace> {
        Namespace::parse(self.ns)
    }

    /// Whether an update may insert, if updates do not insert by default.
    pub(super) fn may_insert(&self) -> bool {
        self.upsert
    }

    /// The change of a document entry. With `always_upsert` every update may insert.
    ///
    /// # Errors
    /// What is no update or delete.
    pub(super) fn change(&self, always_upsert: bool) -> Result<Applied> {
        let document = self.document;
        match self.kind {
            Kind::Insert => Ok(Applied::Insert(document.to_owned())),
            Kind::Update => Ok(Applied::Update {
                filter: self.filter.map(ToOwned::to_owned).unwrap_or_default(),
                update: update(document)?,
                upsert: always_upsert || self.upsert,
            }),
            Kind::Delete if document.get("_id")?.is_some() => {
                Ok(Applied::Delete(document.to_owned()))
            }
            Kind::Delete => {
                let message = "Failed to apply delete due to missing _id";
                Err(Error::new(Code::NO_SUCH_KEY, message))
            }
            Kind::Command | Kind::Nothing => Err(illegal("the op changes no documents")),
        }
    }

    /// The command of an entry.
    ///
    /// # Errors
    /// `InvalidNamespace`; what is not supported in entries.
    pub(super) fn command(&self) -> Result<Inner<'a>> {
        let Some(database) = self.ns.strip_suffix(".$cmd") else {
            let message = format!("the ns of a command must end in .$cmd: {}", self.ns);
            return Err(Error::new(Code::INVALID_NAMESPACE, message));
        };
        let first = self.document.iter().next().transpose()?;
        let (name, _) = first.ok_or_else(|| Error::bad_value("an op has an empty command"))?;
        let name = name.as_str();
        distinct("applyOps.o", self.document)?;
        if name == NESTED {
            return Ok(Inner::Entries(self.document.to_owned()));
        }
        if UNSUPPORTED.contains(&name) {
            let message = format!("The {name} operation is not supported in applyOps mode");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
        }
        let Some(form) = FORMS.iter().find(|form| form.name == name) else {
            let message = format!("Invalid key '{name}' found in field 'o'");
            return Err(Error::bad_value(message));
        };
        let body = match form.translate {
            None => self.document.to_owned(),
            Some(translate) => translate(self.document)?,
        };
        Ok(Inner::Command(Ordered {
            database,
            row: form.row().ok_or_else(|| {
                let message = format!("no such command: '{name}'");
                Error::new(Code::COMMAND_NOT_FOUND, message)
            })?,
            form,
            body,
        }))
    }
}

/// The entries of an `applyOps` within `applyOps`.
///
/// # Errors
/// `FailedToParse`.
pub(super) fn inner(body: &RawDocument) -> Result<&RawArray> {
    match body.get(NESTED)? {
        Some(RawBsonRef::Array(list)) => Ok(list),
        _ => Err(Error::parse("ops has to be an array")),
    }
}

fn bad_uuid() -> Error {
    Error::new(Code::INVALID_UUID, "the field 'ui' of an op must be a UUID")
}

/// Parse an entry's update by its version: 2 is a diff; 1 has operators or is a replacement.
fn update(document: &RawDocument) -> Result<AppliedUpdate> {
    let version = match document.get("$v")? {
        None => return Ok(AppliedUpdate::Document(document.to_owned())),
        Some(RawBsonRef::Int32(version)) => i64::from(version),
        Some(RawBsonRef::Int64(version)) => version,
        Some(_) => 0,
    };
    match (version, document.get("diff")?) {
        (2, Some(RawBsonRef::Document(diff))) => Ok(AppliedUpdate::Delta(diff.to_owned())),
        (1, _) => {
            let mut rest = RawDocumentBuf::new();
            for element in document.iter_elements() {
                let element = element?;
                if element.key().as_str() != "$v" {
                    rest.append(element.key(), element.value()?);
                }
            }
            Ok(AppliedUpdate::Document(rest))
        }
        _ => {
            let message = "Unrecognized $v (Update version) value";
            Err(Error::location(4_772_600, message))
        }
    }
}

/// Convert `{createIndexes: c, key, name, ...}` to the form of the command.
fn create_indexes(entry: &RawDocument) -> Result<RawDocumentBuf> {
    if entry.get("key")?.is_none() {
        return Ok(entry.to_owned());
    }
    let (mut command, mut spec) = (RawDocumentBuf::new(), RawDocumentBuf::new());
    for (at, element) in entry.iter().enumerate() {
        let (name, value) = element?;
        let part = if at == 0 { &mut command } else { &mut spec };
        part.append(name, value);
    }
    let mut indexes = RawArrayBuf::new();
    indexes.push(spec);
    command.append(cstr!("indexes"), indexes);
    Ok(command)
}

fn drop_indexes(entry: &RawDocument) -> Result<RawDocumentBuf> {
    let mut command = RawDocumentBuf::new();
    for (at, element) in entry.iter().enumerate() {
        let (name, value) = element?;
        command.append(if at == 0 { cstr!("dropIndexes") } else { name }, value);
    }
    Ok(command)
}

/// The target to be dropped may be identified by its UUID.
fn rename(entry: &RawDocument) -> Result<RawDocumentBuf> {
    let mut command = RawDocumentBuf::new();
    for element in entry {
        match element? {
            (name, RawBsonRef::Binary(_)) if name == "dropTarget" => command.append(name, true),
            (name, value) => command.append(name, value),
        }
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn the_commands_of_entries_are_commands() {
        for form in FORMS {
            assert!(form.row().is_some(), "{}", form.name);
        }
    }

    /// The fields of a replacement keep their order, also one with the name of a diff.
    #[test]
    fn updates_are_diffs_or_documents() {
        let raw = |document| RawDocumentBuf::try_from(&document).unwrap();
        let whole = doc! {"_id": 1, "diff": 2, "a": 3};
        let mut versioned = doc! {"$v": 1};
        versioned.extend(whole.clone());
        for update in [whole.clone(), versioned] {
            match super::update(&raw(update)).unwrap() {
                AppliedUpdate::Document(document) => assert_eq!(document, raw(whole.clone())),
                AppliedUpdate::Delta(diff) => panic!("{diff:?}"),
            }
        }
        match super::update(&raw(doc! {"$v": 2, "diff": {"u": {"a": 1}}})).unwrap() {
            AppliedUpdate::Delta(diff) => assert_eq!(diff, raw(doc! {"u": {"a": 1}})),
            AppliedUpdate::Document(document) => panic!("{document:?}"),
        }
        for bad in [
            doc! {"$v": 2, "diff": 1},
            doc! {"$v": 3, "diff": {}},
            doc! {"$v": "2"},
        ] {
            assert!(super::update(&raw(bad)).is_err());
        }
    }
}
