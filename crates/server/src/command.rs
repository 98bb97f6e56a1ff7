//! What the server knows of a command without running it: one entry of the table of commands.
//!
//! - N1. No code compares the name of a command: what sets a command apart is a field or a flag
//!   here, and the table says which commands have it.

use std::collections::HashMap;

use bson::RawDocument;

/// Where a command runs.
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

/// What kind of work a command is, for counting.
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

/// What a command does with a collection, as `top` and the profiler tell commands apart.
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
    /// The name that `currentOp` and the profiler have for it.
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

/// Where a reply says how many documents were written, for the log of slow commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Nowhere.
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
/// The command ends the transaction it names: it runs beside it, not in it.
pub(crate) const ENDS: u32 = 1 << 10;
/// A greeting: it may come as a legacy query, may wait for a change of the topology, and names the
/// application of its client.
pub(crate) const GREETS: u32 = 1 << 11;
/// The command runs on a database of any name, and without the API version that the server may
/// require.
pub(crate) const ANYWHERE: u32 = 1 << 12;
/// Its replies are never compressed: they carry secrets, which the length of what is compressed
/// would betray; or they come before compression is agreed on.
pub(crate) const PLAIN: u32 = 1 << 13;
/// Its arguments hold a password or a proof of one: nothing but its name is shown.
pub(crate) const SECRET: u32 = 1 << 14;
/// An attempt to authenticate, which is delayed after failures from its address.
pub(crate) const PROVES: u32 = 1 << 15;
/// The command makes the first user, which clients on this machine may do without being one.
pub(crate) const FIRST_USER: u32 = 1 << 16;
/// The command also writes elsewhere than to the collection it names first, and says itself which
/// privileges it needs to bypass validators.
pub(crate) const ELSEWHERE: u32 = 1 << 17;
/// The command reads a moment of the past, outside of transactions.
pub(crate) const SNAPSHOT: u32 = 1 << 18;
/// Its documents or statements are decoded one at a time, so that their size is no limit.
pub(crate) const STREAMS: u32 = 1 << 19;
/// The error of one document stands in the `writeErrors` of its reply, also when it ends the
/// transaction.
pub(crate) const WRITE_ERRORS: u32 = 1 << 20;
/// The command continues the cursor whose number is its first field; its collection is the argument
/// `collection`.
pub(crate) const CONTINUES: u32 = 1 << 21;
/// No failpoint hits the command: it configures them.
pub(crate) const UNFAILING: u32 = 1 << 22;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Its other names.
    pub(crate) aliases: &'static [&'static str],
    /// Where it runs.
    pub(crate) lane: Lane,
    /// How it is counted.
    pub(crate) class: Class,
    /// What it does with a collection.
    pub(crate) kind: Kind,
    /// Where its reply says what it wrote.
    pub(crate) written: Written,
    /// Which stage of its body writes, for a command that writes only if one does.
    pub(crate) writing_stage: Option<fn(&RawDocument) -> Option<&'static str>>,
    /// The flags above.
    pub(crate) flags: u32,
    /// Its arguments, beside those every command takes.
    pub(crate) fields: &'static [&'static str],
    /// What a client should do instead where the command is refused in transactions: the end of
    /// the error message, with a space before it.
    pub(crate) outside_advice: &'static str,
    /// One line for `listCommands`.
    pub(crate) help: &'static str,
}

impl Command {
    /// A command with the most usual values: no storage, no arguments.
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

    /// All names a client may call it by.
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

    /// The command that is called by a name.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Command> {
        self.by_name.get(name).copied()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Command> {
        self.listed.iter().copied()
    }
}
