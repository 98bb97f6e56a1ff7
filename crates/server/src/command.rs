//! What the server knows of a command without running it: one entry of the table of commands.
//!
//! - N1. No code compares the name of a command: what sets a command apart is a field or a flag
//!   here, and the table says which commands have it.

use std::collections::HashMap;

use bson::RawDocument;

/// The kind of thread that runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// At once, on the thread of the socket: never touches storage and never waits.
    Inline,
    /// After admission, on a thread of the pool, or on the thread of the socket if it is brief.
    Storage,
    /// On a thread of the pool without admission: it ends what other commands wait for, or reports
    /// why they wait.
    Reserved,
}

/// The class under which a command is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Reads documents.
    Read,
    /// Writes documents.
    Write,
    /// Anything else.
    Command,
    /// A transaction's end.
    Transaction,
}

/// The use of a collection, as `top` and the profiler classify commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `find`.
    Query,
    /// `getMore`.
    GetMore,
    Insert,
    Update,
    /// `delete`.
    Remove,
    /// Anything else.
    Command,
}

impl Kind {
    /// The name in `currentOp` and the profiler.
    pub(crate) fn op(self) -> &'static str {
        match self {
            Kind::Query => "query",
            Kind::GetMore => "getmore",
            Kind::Insert => "insert",
            Kind::Update => "update",
            Kind::Remove => "remove",
            Kind::Command => "command",
        }
    }
}

/// The reply fields that state how many documents were written, for the log of slow commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// The command reports no numbers.
    None,
    /// `n` documents were inserted.
    Inserted,
    /// `n` documents were deleted.
    Deleted,
    /// `n`, `nModified` and `upserted`.
    Updated,
    /// The totals of `bulkWrite`.
    Bulk,
    /// The `lastErrorObject` of `findAndModify`.
    One,
}

/// The command runs on the database `admin` only.
pub(crate) const ADMIN: u32 = 1;
/// The command writes: it has a write concern and moves the clock.
pub(crate) const WRITES: u32 = 1 << 1;
/// The command may be part of a transaction.
pub(crate) const TRANSACTION: u32 = 1 << 2;
/// The command may be retried by its `txnNumber`.
pub(crate) const RETRYABLE: u32 = 1 << 3;
/// The command is part of version 1 of the stable API.
pub(crate) const API: u32 = 1 << 4;
/// The command ends when its client is gone.
pub(crate) const ABANDON: u32 = 1 << 5;
/// The command is for tests, and runs only with `enableTestCommands`.
pub(crate) const TEST: u32 = 1 << 6;
/// Every top-level field is accepted.
pub(crate) const LOOSE: u32 = 1 << 7;
/// The command takes a read concern.
pub(crate) const READS: u32 = 1 << 8;
/// The command runs before authentication.
pub(crate) const OPEN: u32 = 1 << 9;
/// The command ends the transaction that it names, and so runs outside of it.
pub(crate) const ENDS: u32 = 1 << 10;
/// The command is a greeting: it may arrive as a legacy query, may wait for a change of the
/// topology, and names the client's application.
pub(crate) const GREETS: u32 = 1 << 11;
/// The command runs on a database of any name, and without the API version even if the server
/// requires one.
pub(crate) const ANYWHERE: u32 = 1 << 12;
/// The command's replies are never compressed: they contain secrets, which the compressed length
/// would reveal, or are sent before compression is negotiated.
pub(crate) const PLAIN: u32 = 1 << 13;
/// The command's arguments contain a password or a proof of one: only its name is shown.
pub(crate) const SECRET: u32 = 1 << 14;
/// An attempt to authenticate, which is delayed after failures from its address.
pub(crate) const PROVES: u32 = 1 << 15;
/// The command creates the first user, which a client on the same machine may do without
/// authentication.
pub(crate) const FIRST_USER: u32 = 1 << 16;
/// The command also writes to collections other than the one that it names first, and determines
/// itself which privileges it needs to bypass validators.
pub(crate) const ELSEWHERE: u32 = 1 << 17;
/// The command can read at a past time (`atClusterTime`) outside of transactions.
pub(crate) const SNAPSHOT: u32 = 1 << 18;
/// The command's documents or statements are decoded one at a time, so their total size is not
/// limited.
pub(crate) const STREAMS: u32 = 1 << 19;
/// The error of one document is in `writeErrors` of the reply, even if it aborts the transaction.
pub(crate) const WRITE_ERRORS: u32 = 1 << 20;
/// The command continues the cursor whose number is its first field; its collection is the argument
/// `collection`.
pub(crate) const CONTINUES: u32 = 1 << 21;
/// Failpoints do not affect the command, because it configures them.
pub(crate) const UNFAILING: u32 = 1 << 22;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Alternative names.
    pub(crate) aliases: &'static [&'static str],
    /// The kind of thread that runs it.
    pub(crate) lane: Lane,
    /// The class under which it is counted.
    pub(crate) class: Class,
    /// Its use of a collection.
    pub(crate) kind: Kind,
    /// The reply fields that state what it wrote.
    pub(crate) written: Written,
    /// Returns the writing stage of the body, for commands that write only if they have such a
    /// stage.
    pub(crate) writing_stage: Option<fn(&RawDocument) -> Option<&'static str>>,
    /// The flags above.
    pub(crate) flags: u32,
    /// Its arguments, in addition to those of every command.
    pub(crate) fields: &'static [&'static str],
    /// Advice for a client whose command is refused in a transaction: the end of the error message,
    /// starting with a space.
    pub(crate) outside_advice: &'static str,
    /// One line for `listCommands`.
    pub(crate) help: &'static str,
}

impl Command {
    /// A command with the most common values: no storage, no arguments.
    pub(crate) const fn new(name: &'static str, help: &'static str) -> Command {
        Command {
            name,
            aliases: &[],
            lane: Lane::Inline,
            class: Class::Command,
            kind: Kind::Command,
            written: Written::None,
            writing_stage: None,
            flags: 0,
            fields: &[],
            outside_advice: "",
            help,
        }
    }

    /// Whether a flag is set.
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// All names by which a client can call it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.aliases.iter().copied())
    }
}

/// The commands of a server.
pub(crate) struct Commands {
    listed: Vec<&'static Command>,
    by_name: HashMap<&'static str, &'static Command>,
}

impl Commands {
    pub(crate) fn of(listed: impl Iterator<Item = &'static Command>) -> Commands {
        let listed: Vec<&'static Command> = listed.collect();
        let named = listed
            .iter()
            .flat_map(|command| command.names().map(|name| (name, *command)));
        Commands {
            by_name: named.collect(),
            listed,
        }
    }

    /// The command with this name or alias.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Command> {
        self.by_name.get(name).copied()
    }

    /// All commands.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Command> {
        self.listed.iter().copied()
    }
}
