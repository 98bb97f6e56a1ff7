//! What a change stream watches, and which oplog entries concern it.
//!
//! | watched | collections | invalidated by |
//! |---|---|---|
//! | a collection | that of the name, also a later one | `drop`, `rename` from or to the name |
//! | a database | all but `system.*` and names with a dollar in front | `dropDatabase` |
//! | the deployment | the same, of all databases but `admin`, `config`, `local` | nothing |
//!
//! A stream on a database or the deployment with `showSystemEvents` has `system.js`,
//! `system.buckets.*` and `system.resharding.*` as well. Views have events only in streams with
//! `showExpandedEvents` on a database or the deployment.
//!
//! [`Scope::concerns`] reads the bytes of an entry as far as the decision needs them, and copies
//! none: neither a document nor the operations of an `applyOps` are parsed.
//!
//! - W1. An entry that it rejects has no event of the scope.

use bson::raw::RawElement;
use bson::{RawBsonRef, RawDocument, Uuid};
use query::{Namespace, Result};

use crate::oplog::entry::{Command, Operation};

/// The databases that a stream on the deployment leaves out.
const INTERNAL: [&str; 3] = ["admin", "config", "local"];

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A document was inserted.
    Insert,
    /// A document was changed, and the event has the difference.
    Update,
    /// A document was replaced.
    Replace,
    /// A document was deleted.
    Delete,
    /// A collection or a view was dropped.
    Drop,
    /// A collection has a new name.
    Rename,
    /// A database was dropped.
    DropDatabase,
    /// The stream ends, because what it watches is gone.
    Invalidate,
    /// A collection or a view was created.
    Create,
    /// Indexes were created.
    CreateIndexes,
    /// An index was dropped.
    DropIndexes,
    /// Options of a collection, a view or an index changed.
    Modify,
}

impl Kind {
    /// The `operationType` of its events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Insert => "insert",
            Kind::Update => "update",
            Kind::Replace => "replace",
            Kind::Delete => "delete",
            Kind::Drop => "drop",
            Kind::Rename => "rename",
            Kind::DropDatabase => "dropDatabase",
            Kind::Invalidate => "invalidate",
            Kind::Create => "create",
            Kind::CreateIndexes => "createIndexes",
            Kind::DropIndexes => "dropIndexes",
            Kind::Modify => "modify",
        }
    }

    /// Whether only streams with `showExpandedEvents` have its events.
    #[must_use]
    pub fn is_expanded(self) -> bool {
        use Kind::{Create, CreateIndexes, DropIndexes, Modify};
        matches!(self, Create | CreateIndexes | DropIndexes | Modify)
    }
}

/// What a stream watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A collection, by name.
    Collection(Namespace),
    /// The collections of a database.
    Database(String),
    /// The collections of all databases.
    Deployment,
}

/// What a stream watches, and which events of it.
#[derive(Clone, Debug)]
pub struct Scope {
    watched: Watched,
    /// How the names of the watched collections begin in entries: `db.c`, `db.` or nothing.
    prefix: String,
    expanded: bool,
    system: bool,
}

impl Scope {
    /// The scope of a stream: `expanded` for `showExpandedEvents`, `system` for
    /// `showSystemEvents`.
    #[must_use]
    pub fn new(watched: Watched, expanded: bool, system: bool) -> Scope {
        let prefix = match &watched {
            Watched::Collection(ns) => ns.to_string(),
            Watched::Database(database) => format!("{database}."),
            Watched::Deployment => String::new(),
        };
        Scope {
            watched,
            prefix,
            expanded,
            system,
        }
    }

    /// How the names of the collections that it follows begin: `db.c`, `db.` or nothing.
    pub(crate) fn followed(&self) -> &str {
        &self.prefix
    }

    /// The scope with the events of all kinds: a stream may resume after an event that it does not
    /// show.
    pub(super) fn widened(&self) -> Scope {
        Scope {
            expanded: true,
            ..self.clone()
        }
    }

    /// Whether an entry may have an event of the scope (W1). An entry with `partialTxn` has none:
    /// the last entry of its chain has its events.
    ///
    /// # Errors
    /// `InvalidBSON`, and those of [`Operation::parse`], for a damaged entry.
    pub fn concerns(&self, entry: &RawDocument) -> Result<bool> {
        let Some(head) = Head::of(entry)? else {
            // The parser says what is wrong.
            return Ok(true);
        };
        Ok(match head.op {
            "i" | "u" | "d" => self.covers(head.ns),
            "n" => false,
            _ => match head.command {
                Some((command, "applyOps")) => self.concerns_group(command, head.linked)?,
                _ => self.concerns_command(entry, &head)?,
            },
        })
    }

    /// Whether a group of operations has an event of the scope. The last entry of a chain may have
    /// events of the entries before.
    fn concerns_group(&self, command: &RawDocument, linked: bool) -> Result<bool> {
        if is_partial(command)? {
            return Ok(false);
        }
        if linked {
            return Ok(true);
        }
        let Some(RawBsonRef::Array(list)) = command.get("applyOps")? else {
            return Ok(true);
        };
        for operation in list.iter_elements() {
            match document(&operation?)? {
                Some(operation) if !self.concerns_one(operation)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Whether an operation of a group has an event of the scope.
    pub(super) fn concerns_one(&self, operation: &RawDocument) -> Result<bool> {
        let Some(head) = Head::of(operation)? else {
            return Ok(true);
        };
        match head.op {
            "i" | "u" | "d" => Ok(self.covers(head.ns)),
            "n" => Ok(false),
            _ => self.concerns_command(operation, &head),
        }
    }

    /// Whether a change of the catalog has an event of the scope.
    fn concerns_command(&self, operation: &RawDocument, head: &Head<'_>) -> Result<bool> {
        let database = head.ns.split_once('.').map_or(head.ns, |(db, _)| db);
        let renames = head
            .command
            .is_some_and(|(_, name)| name == "renameCollection");
        if !renames && !self.reaches(database) {
            return Ok(false);
        }
        let Operation::Command { uuid, command, .. } = Operation::parse(operation)? else {
            return Ok(true);
        };
        let command = Command::parse(command)?;
        // A group within a group is refused when its events are made.
        let is_group = matches!(command, Command::ApplyOps(_));
        Ok(is_group || self.kind_of(database, uuid, &command).is_some())
    }

    /// The kind of the event that a change of the catalog has in the scope.
    pub(super) fn kind_of(
        &self,
        database: &str,
        uuid: Option<Uuid>,
        command: &Command<'_>,
    ) -> Option<Kind> {
        let (kind, collection) = match command {
            Command::Create { collection, .. } => (Kind::Create, *collection),
            Command::Drop { collection } => (Kind::Drop, *collection),
            Command::CreateIndexes { collection, .. } => (Kind::CreateIndexes, *collection),
            Command::CommitIndexBuild(build) => (Kind::CreateIndexes, build.collection),
            Command::DropIndexes { collection, .. } => (Kind::DropIndexes, *collection),
            Command::CollMod { collection, .. } | Command::ConvertToCapped { collection, .. } => {
                (Kind::Modify, *collection)
            }
            Command::RenameCollection { from, to, .. } => {
                return (self.covers(from) || self.covers(to)).then_some(Kind::Rename);
            }
            Command::DropDatabase => {
                return self.covers_database(database).then_some(Kind::DropDatabase);
            }
            Command::StartIndexBuild(_)
            | Command::AbortIndexBuild { .. }
            | Command::ApplyOps(_) => return None,
        };
        // Entries of views have no UUID.
        let is_view = uuid.is_none();
        let hidden = !self.expanded && (kind.is_expanded() || is_view);
        let watches_one = matches!(self.watched, Watched::Collection(_));
        let covered = self.covers_collection(database, collection);
        (covered && !hidden && !(is_view && watches_one)).then_some(kind)
    }

    /// Whether an event of the kind ends the stream. The event is one of the scope.
    #[must_use]
    pub fn is_invalidated_by(&self, kind: Kind) -> bool {
        match self.watched {
            Watched::Collection(_) => matches!(kind, Kind::Drop | Kind::Rename),
            Watched::Database(_) => kind == Kind::DropDatabase,
            Watched::Deployment => false,
        }
    }

    /// Whether the stream shows the events and fields of `showExpandedEvents`.
    #[must_use]
    pub fn is_expanded(&self) -> bool {
        self.expanded
    }

    /// Whether the scope has the documents of a collection, by its full name.
    #[must_use]
    pub fn covers(&self, ns: &str) -> bool {
        match self.watched {
            Watched::Collection(_) => ns == self.prefix,
            Watched::Database(_) => ns
                .strip_prefix(&*self.prefix)
                .is_some_and(|collection| self.shows(collection)),
            Watched::Deployment => ns.split_once('.').is_some_and(|(database, collection)| {
                is_shown_database(database) && self.shows(collection)
            }),
        }
    }

    fn covers_collection(&self, database: &str, collection: &str) -> bool {
        match &self.watched {
            Watched::Collection(ns) => ns.db == database && ns.coll == collection,
            _ => self.covers_database(database) && self.shows(collection),
        }
    }

    /// Whether the scope has the whole database.
    fn covers_database(&self, database: &str) -> bool {
        match &self.watched {
            Watched::Collection(_) => false,
            Watched::Database(watched) => watched == database,
            Watched::Deployment => is_shown_database(database),
        }
    }

    /// Whether the scope has anything of the database.
    fn reaches(&self, database: &str) -> bool {
        match &self.watched {
            Watched::Collection(ns) => ns.db == database,
            _ => self.covers_database(database),
        }
    }

    /// Whether streams on databases show the collection.
    fn shows(&self, collection: &str) -> bool {
        match collection.strip_prefix("system.") {
            None => !collection.is_empty() && !collection.starts_with('$'),
            Some(rest) => {
                let listed = ["buckets.", "resharding."];
                self.system && (rest == "js" || listed.iter().any(|name| rest.starts_with(name)))
            }
        }
    }
}

/// Whether a group is an entry of a chain, and not the last one.
pub(super) fn is_partial(command: &RawDocument) -> Result<bool> {
    Ok(matches!(
        command.get("partialTxn")?,
        Some(RawBsonRef::Boolean(true))
    ))
}

fn is_shown_database(database: &str) -> bool {
    !INTERNAL.contains(&database)
}

/// The fields of an operation that decide.
struct Head<'e> {
    op: &'e str,
    ns: &'e str,
    /// The document of a command, and its name.
    command: Option<(&'e RawDocument, &'e str)>,
    /// Whether an entry of the same chain is before.
    linked: bool,
}

impl<'e> Head<'e> {
    /// `None` for what is no operation. Of a change of a document, nothing behind `ns` is read.
    fn of(operation: &'e RawDocument) -> Result<Option<Head<'e>>> {
        let (mut op, mut ns) = (None, None);
        let mut command = None;
        let mut linked = false;
        for element in operation.iter_elements() {
            let element = element?;
            match element.key().as_str() {
                "op" => op = text(&element)?,
                "ns" => ns = text(&element)?,
                "o" => command = named(&element)?,
                "prevOpTime" => linked = is_linked(&element)?,
                _ => {}
            }
            if let (Some(op @ ("i" | "u" | "d" | "n")), Some(ns)) = (op, ns) {
                return Ok(Some(Head {
                    op,
                    ns,
                    command: None,
                    linked,
                }));
            }
        }
        Ok(op.zip(ns).map(|(op, ns)| Head {
            op,
            ns,
            command,
            linked,
        }))
    }
}

fn is_linked(element: &RawElement<'_>) -> Result<bool> {
    match element.value()? {
        RawBsonRef::Document(previous) => match previous.get("ts")? {
            Some(RawBsonRef::Timestamp(ts)) => Ok((ts.time, ts.increment) != (0, 0)),
            _ => Ok(true),
        },
        _ => Ok(true),
    }
}

/// A command with its name, the first field.
fn named<'e>(element: &RawElement<'e>) -> Result<Option<(&'e RawDocument, &'e str)>> {
    let Some(command) = document(element)? else {
        return Ok(None);
    };
    let first = command.iter_elements().next().transpose()?;
    Ok(first.map(|first| (command, first.key().as_str())))
}

fn text<'e>(element: &RawElement<'e>) -> Result<Option<&'e str>> {
    match element.value()? {
        RawBsonRef::String(text) => Ok(Some(text)),
        _ => Ok(None),
    }
}

fn document<'e>(element: &RawElement<'e>) -> Result<Option<&'e RawDocument>> {
    match element.value()? {
        RawBsonRef::Document(document) => Ok(Some(document)),
        _ => Ok(None),
    }
}
