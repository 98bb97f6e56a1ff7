//! A row of the table of commands: all the dispatcher knows of one.

use query::Result;
use wire::Builder;

use super::call::Call;
use crate::state::metrics::Class;

/// What a command does. It fills the reply but for `ok` and the times.
pub(crate) type Run = fn(&Call<'_>, &mut Builder) -> Result<()>;

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// At once, on the thread of the socket: never touches storage and never waits.
    Inline,
    /// On a thread of the pool, after admission.
    Storage,
    /// On a thread of the pool without admission: it lets others go on, or looks at why they do
    /// not.
    Reserved,
}

/// What one must be allowed to do for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// Nothing; it runs before authentication.
    Open,
    /// To be somebody.
    Authenticated,
    /// An action on the collection the command names.
    Collection(&'static str),
    /// An action on the database.
    Database(&'static str),
    /// An action on the deployment.
    Cluster(&'static str),
    /// What its statements or stages need, which the command itself says.
    Own,
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
/// The command is for tests, and there only with `enableTestCommands`.
pub(crate) const TEST: u32 = 1 << 6;
/// Every top-level field is accepted.
pub(crate) const LOOSE: u32 = 1 << 7;
/// The command takes a read concern.
pub(crate) const READS: u32 = 1 << 8;

/// A command.
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its other names.
    pub(crate) aliases: &'static [&'static str],
    /// What it does.
    pub(crate) run: Run,
    /// Where.
    pub(crate) lane: Lane,
    /// How it is counted.
    pub(crate) class: Class,
    /// Who may run it.
    pub(crate) privilege: Privilege,
    /// The flags above.
    pub(crate) flags: u32,
    /// Its arguments, beside those every command takes.
    pub(crate) fields: &'static [&'static str],
    /// One line for `listCommands`.
    pub(crate) help: &'static str,
}

impl Row {
    /// A row with the most usual values: no storage, no arguments, for whoever is authenticated.
    pub(crate) const fn new(name: &'static str, run: Run, help: &'static str) -> Row {
        Row {
            name,
            aliases: &[],
            run,
            lane: Lane::Inline,
            class: Class::Command,
            privilege: Privilege::Authenticated,
            flags: 0,
            fields: &[],
            help,
        }
    }

    /// Whether a flag is set.
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}
