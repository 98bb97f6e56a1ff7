//! The commands of entries of kind `c`: changes of the catalog, and several operations at once.
//!
//! | command | fields |
//! |---|---|
//! | `create` | the collection; its options; `idIndex` unless it is clustered or a view |
//! | `drop` | the collection; `o2: {numRecords}` |
//! | `createIndexes` | the collection; one index, for a collection without documents |
//! | `startIndexBuild`, `commitIndexBuild` | the collection; `indexBuildUUID`; `indexes` |
//! | `abortIndexBuild` | as these, and `cause` |
//! | `dropIndexes` | the collection; `index`, a name; `o2` is the index |
//! | `collMod` | the collection; what changes; `o2` has what it was |
//! | `convertToCapped` | the collection; `size` in bytes |
//! | `renameCollection` | from, `to`; `stayTemp`; `dropTarget`, the UUID of a replaced collection |
//! | `dropDatabase` | 1 |
//! | `applyOps` | operations; `partialTxn` or `count` in a chain |
//!
//! Names of collections are without the database, but those of `renameCollection`.

use bson::raw::cstr;
use bson::{Binary, RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Uuid};
use query::{Error, Result};

use super::{Operation, document, integer, uuid, wrong};

/// A command of an entry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Command<'a> {
    /// A collection or a view was created.
    Create {
        /// Its name.
        collection: &'a str,
        /// Its options, and `idIndex`, in the order of the entry.
        options: RawDocumentBuf,
    },
    /// A collection or a view was dropped.
    Drop {
        /// Its name.
        collection: &'a str,
    },
    /// An index was created on a collection without documents.
    CreateIndexes {
        /// The collection.
        collection: &'a str,
        /// `{v, key, name, ..}`.
        index: RawDocumentBuf,
    },
    /// The build of indexes began.
    StartIndexBuild(IndexBuild<'a>),
    /// The indexes can be used.
    CommitIndexBuild(IndexBuild<'a>),
    /// The build of indexes failed.
    AbortIndexBuild {
        /// The build.
        build: IndexBuild<'a>,
        /// `{ok: false, code, codeName, errmsg}`.
        cause: &'a RawDocument,
    },
    /// An index was dropped.
    DropIndexes {
        /// The collection.
        collection: &'a str,
        /// The name of the index.
        index: &'a str,
    },
    /// Options of a collection or of an index changed.
    CollMod {
        /// The collection.
        collection: &'a str,
        /// What changed.
        changes: RawDocumentBuf,
    },
    /// A collection became capped: its indexes but that on `_id` were dropped. Documents beyond the
    /// size have entries of their own.
    ConvertToCapped {
        /// The collection.
        collection: &'a str,
        /// The size, in bytes.
        size: i64,
    },
    /// A collection has a new name.
    RenameCollection {
        /// The old name, with the database.
        from: &'a str,
        /// The new name, with the database.
        to: &'a str,
        /// The collection that had the new name, and was dropped.
        dropped: Option<Uuid>,
    },
    /// A database was dropped; each of its collections has an entry before.
    DropDatabase,
    /// Several operations were committed at once.
    ApplyOps(ApplyOps<'a>),
}

/// A build of indexes.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexBuild<'a> {
    /// The collection.
    pub collection: &'a str,
    /// The identity of the build.
    pub id: Uuid,
    /// The indexes: `{v, key, name, ..}`.
    pub indexes: Vec<&'a RawDocument>,
}

/// Several operations that were committed at once; see [`super::chain()`] for how they are made.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyOps<'a> {
    /// The operations.
    pub operations: Vec<Operation<'a>>,
    /// Whether further entries of the chain follow.
    pub partial: bool,
    /// The operations of all entries of the chain, in the last one.
    pub count: Option<i64>,
}

impl<'a> Command<'a> {
    /// The `o` of the entry.
    ///
    /// # Errors
    /// `InvalidBSON` in the options, the index or the changes.
    pub fn to_raw(&self) -> Result<RawDocumentBuf> {
        let mut out = RawDocumentBuf::new();
        match self {
            Command::Create {
                collection,
                options,
            } => {
                out.append(cstr!("create"), *collection);
                extend(&mut out, options)?;
            }
            Command::Drop { collection } => out.append(cstr!("drop"), *collection),
            Command::CreateIndexes { collection, index } => {
                out.append(cstr!("createIndexes"), *collection);
                extend(&mut out, index)?;
            }
            Command::StartIndexBuild(build) => {
                out.append(cstr!("startIndexBuild"), build.collection);
                build.append_to(&mut out);
            }
            Command::CommitIndexBuild(build) => {
                out.append(cstr!("commitIndexBuild"), build.collection);
                build.append_to(&mut out);
            }
            Command::AbortIndexBuild { build, cause } => {
                out.append(cstr!("abortIndexBuild"), build.collection);
                build.append_to(&mut out);
                out.append(cstr!("cause"), *cause);
            }
            Command::DropIndexes { collection, index } => {
                out.append(cstr!("dropIndexes"), *collection);
                out.append(cstr!("index"), *index);
            }
            Command::CollMod {
                collection,
                changes,
            } => {
                out.append(cstr!("collMod"), *collection);
                extend(&mut out, changes)?;
            }
            Command::ConvertToCapped { collection, size } => {
                out.append(cstr!("convertToCapped"), *collection);
                out.append(cstr!("size"), *size);
            }
            Command::RenameCollection { from, to, dropped } => {
                out.append(cstr!("renameCollection"), *from);
                out.append(cstr!("to"), *to);
                out.append(cstr!("stayTemp"), false);
                if let Some(dropped) = dropped {
                    out.append(cstr!("dropTarget"), Binary::from(*dropped));
                }
            }
            Command::DropDatabase => out.append(cstr!("dropDatabase"), 1_i32),
            Command::ApplyOps(group) => return Ok(group.to_raw()),
        }
        Ok(out)
    }

    /// The command in the `o` of an entry.
    ///
    /// # Errors
    /// `InvalidBSON`; `BadValue` for an unknown command; `TypeMismatch` for a field of another
    /// type.
    pub fn parse(command: &'a RawDocument) -> Result<Command<'a>> {
        let first = command.iter().next().transpose()?;
        let Some((name, target)) = first else {
            return Err(Error::bad_value("an oplog entry has an empty command"));
        };
        let name = name.as_str();
        let collection = || text(name, target);
        Ok(match name {
            "create" => Command::Create {
                collection: collection()?,
                options: rest(command)?,
            },
            "drop" => Command::Drop {
                collection: collection()?,
            },
            "createIndexes" => Command::CreateIndexes {
                collection: collection()?,
                index: rest(command)?,
            },
            "startIndexBuild" => Command::StartIndexBuild(IndexBuild::of(collection()?, command)?),
            "commitIndexBuild" => {
                Command::CommitIndexBuild(IndexBuild::of(collection()?, command)?)
            }
            "abortIndexBuild" => Command::AbortIndexBuild {
                build: IndexBuild::of(collection()?, command)?,
                cause: document("cause", command.get("cause")?)?,
            },
            "dropIndexes" | "deleteIndexes" => Command::DropIndexes {
                collection: collection()?,
                index: super::text("index", command.get("index")?)?,
            },
            "collMod" => Command::CollMod {
                collection: collection()?,
                changes: rest(command)?,
            },
            "convertToCapped" => Command::ConvertToCapped {
                collection: collection()?,
                size: integer("size", command.get("size")?)?
                    .ok_or_else(|| wrong("size", "a number"))?,
            },
            "renameCollection" => Command::RenameCollection {
                from: collection()?,
                to: super::text("to", command.get("to")?)?,
                dropped: match command.get("dropTarget")? {
                    // Old oplogs have `false` for no collection.
                    Some(RawBsonRef::Boolean(false)) => None,
                    dropped => uuid("dropTarget", dropped)?,
                },
            },
            "dropDatabase" => Command::DropDatabase,
            "applyOps" => Command::ApplyOps(ApplyOps::of(command)?),
            other => {
                let message = format!("an oplog entry has the unknown command '{other}'");
                return Err(Error::bad_value(message));
            }
        })
    }
}

impl<'a> IndexBuild<'a> {
    fn append_to(&self, out: &mut RawDocumentBuf) {
        out.append(cstr!("indexBuildUUID"), Binary::from(self.id));
        let indexes: RawArrayBuf = self.indexes.iter().copied().collect();
        out.append(cstr!("indexes"), indexes);
    }

    fn of(collection: &'a str, command: &'a RawDocument) -> Result<IndexBuild<'a>> {
        let id = uuid("indexBuildUUID", command.get("indexBuildUUID")?)?;
        let index = |value| match value {
            Ok(value) => document("indexes", Some(value)),
            Err(error) => Err(Error::from(error)),
        };
        Ok(IndexBuild {
            collection,
            id: id.ok_or_else(|| wrong("indexBuildUUID", "a UUID"))?,
            indexes: list("indexes", command)?
                .into_iter()
                .map(index)
                .collect::<Result<_>>()?,
        })
    }
}

impl<'a> ApplyOps<'a> {
    fn to_raw(&self) -> RawDocumentBuf {
        let operations = self.operations.iter().map(Operation::to_document);
        let mut out = RawDocumentBuf::new();
        out.append(cstr!("applyOps"), operations.collect::<RawArrayBuf>());
        if self.partial {
            out.append(cstr!("partialTxn"), true);
        }
        if let Some(count) = self.count {
            out.append(cstr!("count"), count);
        }
        out
    }

    fn of(command: &'a RawDocument) -> Result<ApplyOps<'a>> {
        let operation = |value| match value {
            Ok(value) => Operation::parse(document("applyOps", Some(value))?),
            Err(error) => Err(Error::from(error)),
        };
        Ok(ApplyOps {
            operations: list("applyOps", command)?
                .into_iter()
                .map(operation)
                .collect::<Result<_>>()?,
            partial: match command.get("partialTxn")? {
                None => false,
                Some(RawBsonRef::Boolean(partial)) => partial,
                Some(_) => return Err(wrong("partialTxn", "a boolean")),
            },
            count: integer("count", command.get("count")?)?,
        })
    }
}

/// Appends the fields of another document.
fn extend(out: &mut RawDocumentBuf, fields: &RawDocument) -> Result<()> {
    for element in fields {
        let (name, value) = element?;
        out.append(name, value);
    }
    Ok(())
}

/// The fields after the first.
fn rest(command: &RawDocument) -> Result<RawDocumentBuf> {
    let mut out = RawDocumentBuf::new();
    for element in command.iter().skip(1) {
        let (name, value) = element?;
        out.append(name, value);
    }
    Ok(out)
}

fn text<'a>(name: &str, value: RawBsonRef<'a>) -> Result<&'a str> {
    super::text(name, Some(value))
}

fn list<'a>(name: &str, command: &'a RawDocument) -> Result<&'a RawArray> {
    match command.get(name)? {
        Some(RawBsonRef::Array(list)) => Ok(list),
        _ => Err(wrong(name, "an array")),
    }
}
