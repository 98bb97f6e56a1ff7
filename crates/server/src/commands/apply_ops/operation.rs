//! One entry of an oplog, and the command that one of kind `c` is.

use bson::spec::BinarySubtype;
use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, Uuid};
use docdb::{Applied, AppliedUpdate};
use query::pipeline::distinct;
use query::{Code, Error, Namespace, Result};

use crate::commands;
use crate::dispatch::Row;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Insert,
    Update,
    Delete,
    Command,
    Nothing,
}

/// An entry.
pub(super) struct Operation<'a> {
    pub(super) kind: Kind,
    /// The namespace as it is given.
    pub(super) ns: &'a str,
    /// The UUID of the collection; it counts more than the name.
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
        let uuid = match entry.get("ui")? {
            None => None,
            Some(RawBsonRef::Binary(binary)) if binary.subtype == BinarySubtype::Uuid => {
                let bytes: Result<[u8; 16], _> = binary.bytes.try_into();
                Some(Uuid::from_bytes(bytes.map_err(|_| bad_uuid())?))
            }
            Some(_) => return Err(bad_uuid()),
        };
        Ok(Operation {
            kind,
            ns,
            uuid,
            document,
            filter,
            upsert: entry.get("b")? == Some(RawBsonRef::Boolean(true)),
        })
    }

    /// The collection of a change of documents, as it is named.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub(super) fn namespace(&self) -> Result<Namespace> {
        Namespace::parse(self.ns)
    }

    /// Whether an update may insert, when updates in general do not.
    pub(super) fn may_insert(&self) -> bool {
        self.upsert
    }

    /// What a change of documents does. `always_upsert` says that every update may insert.
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

    /// The database, the row and the body of the command that this is.
    ///
    /// # Errors
    /// `InvalidNamespace`; what is not supported in entries.
    pub(super) fn command(&self) -> Result<(&'a str, &'static Row, RawDocumentBuf)> {
        let Some(database) = self.ns.strip_suffix(".$cmd") else {
            let message = format!("the ns of a command must end in .$cmd: {}", self.ns);
            return Err(Error::new(Code::INVALID_NAMESPACE, message));
        };
        let first = self.document.iter().next().transpose()?;
        let (name, _) = first.ok_or_else(|| Error::bad_value("an op has an empty command"))?;
        let name = name.as_str();
        distinct("applyOps.o", self.document)?;
        let body = match name {
            "create" | "collMod" | "drop" | "dropDatabase" | "convertToCapped" | "applyOps"
            | "dropIndexes" | "deleteIndexes" => self.document.to_owned(),
            "deleteIndex" => self.translated(name, drop_indexes)?,
            "createIndexes" => self.translated(name, create_indexes)?,
            "renameCollection" => self.translated(name, rename)?,
            "startIndexBuild" | "commitIndexBuild" | "abortIndexBuild" | "commitTransaction"
            | "abortTransaction" => {
                let message = format!("The {name} operation is not supported in applyOps mode");
                return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
            }
            _ => {
                let message = format!("Invalid key '{name}' found in field 'o'");
                return Err(Error::bad_value(message));
            }
        };
        let name = if name == "deleteIndex" {
            "dropIndexes"
        } else {
            name
        };
        let row = commands::find(name).ok_or_else(|| {
            Error::new(
                Code::COMMAND_NOT_FOUND,
                format!("no such command: '{name}'"),
            )
        })?;
        Ok((database, row, body))
    }

    fn translated(
        &self,
        name: &str,
        translate: fn(&str, Document) -> Document,
    ) -> Result<RawDocumentBuf> {
        let document = Document::try_from(self.document)?;
        Ok(RawDocumentBuf::try_from(&translate(name, document))?)
    }
}

/// The entries of an `applyOps` within `applyOps`.
///
/// # Errors
/// `FailedToParse`.
pub(super) fn inner(body: &RawDocument) -> Result<&RawArray> {
    match body.get("applyOps")? {
        Some(RawBsonRef::Array(list)) => Ok(list),
        _ => Err(Error::parse("ops has to be an array")),
    }
}

fn bad_uuid() -> Error {
    Error::new(Code::INVALID_UUID, "the field 'ui' of an op must be a UUID")
}

/// An update as entries have them, by its version: 2 is a diff; 1 has operators, or is whole.
fn update(document: &RawDocument) -> Result<AppliedUpdate> {
    let mut document = Document::try_from(document)?;
    let version = match document.remove("$v") {
        None => 1,
        Some(Bson::Int32(version)) => i64::from(version),
        Some(Bson::Int64(version)) => version,
        Some(_) => 0,
    };
    match (version, document.remove("diff")) {
        (2, Some(Bson::Document(diff))) => Ok(AppliedUpdate::Delta(diff)),
        (1, diff) => {
            // A replacement may have a field of this name.
            document.extend(diff.map(|diff| ("diff".to_owned(), diff)));
            let raw = RawDocumentBuf::try_from(&document)?;
            Ok(AppliedUpdate::Document(raw))
        }
        _ => {
            let message = "Unrecognized $v (Update version) value";
            Err(Error::location(4_772_600, message))
        }
    }
}

/// `{createIndexes: c, key, name, ...}` as the command has it.
fn create_indexes(name: &str, mut entry: Document) -> Document {
    if !entry.contains_key("key") {
        return entry;
    }
    let target = entry.remove(name).unwrap_or(Bson::Null);
    let mut command = Document::new();
    command.insert(name, target);
    command.insert("indexes", vec![Bson::Document(entry)]);
    command
}

fn drop_indexes(name: &str, mut entry: Document) -> Document {
    let mut command = Document::new();
    command.insert("dropIndexes", entry.remove(name).unwrap_or(Bson::Null));
    command.extend(entry);
    command
}

/// The target that is dropped may be named by its UUID.
fn rename(_: &str, mut entry: Document) -> Document {
    if let Some(Bson::Binary(_)) = entry.get("dropTarget") {
        entry.insert("dropTarget", true);
    }
    entry
}
