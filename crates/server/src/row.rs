//! A row of the table of commands: the command, its function, and the privileges that it requires.
//!
//! Rows are made by chains of calls, so that each says only what sets its command apart.

use std::ops::Deref;

use bson::RawDocument;

use crate::access::{Needs, Privilege, Rule};
use crate::command::{Class, Command, Kind, Lane, OPEN, Written};
use crate::request::{Brief, Run};

/// A command, and how it is run.
pub(crate) struct Row {
    pub(crate) command: Command,
    /// Its function.
    pub(crate) run: Run,
    /// Which of its requests are brief.
    pub(crate) brief: Option<Brief>,
    /// The privileges that it requires.
    pub(crate) rule: Rule,
}

impl Deref for Row {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

impl Row {
    /// A row with the most common values: no storage, no arguments, for every authenticated client.
    pub(crate) const fn new(name: &'static str, run: Run, help: &'static str) -> Row {
        Row {
            command: Command::new(name, help),
            run,
            brief: None,
            rule: Rule {
                privilege: Privilege::Authenticated,
                needs: None,
            },
        }
    }

    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Row {
        self.command.aliases = aliases;
        self
    }

    pub(crate) const fn brief(mut self, brief: Brief) -> Row {
        self.brief = Some(brief);
        self
    }

    pub(crate) const fn lane(mut self, lane: Lane) -> Row {
        self.command.lane = lane;
        self
    }

    pub(crate) const fn class(mut self, class: Class) -> Row {
        self.command.class = class;
        self
    }

    pub(crate) const fn kind(mut self, kind: Kind) -> Row {
        self.command.kind = kind;
        self
    }

    pub(crate) const fn written(mut self, written: Written) -> Row {
        self.command.written = written;
        self
    }

    pub(crate) const fn writing_stage(
        mut self,
        stage: fn(&RawDocument) -> Option<&'static str>,
    ) -> Row {
        self.command.writing_stage = Some(stage);
        self
    }

    /// Set further flags.
    pub(crate) const fn flags(mut self, flags: u32) -> Row {
        self.command.flags |= flags;
        self
    }

    pub(crate) const fn fields(mut self, fields: &'static [&'static str]) -> Row {
        self.command.fields = fields;
        self
    }

    pub(crate) const fn outside_advice(mut self, advice: &'static str) -> Row {
        self.command.outside_advice = advice;
        self
    }

    /// The command runs before authentication.
    pub(crate) const fn open(mut self) -> Row {
        self.command.flags |= OPEN;
        self.rule.privilege = Privilege::Open;
        self
    }

    pub(crate) const fn privilege(mut self, privilege: Privilege) -> Row {
        self.rule.privilege = privilege;
        self
    }

    /// The privileges are determined by the arguments alone, through `needs`.
    pub(crate) const fn own(mut self, needs: Needs) -> Row {
        self.rule.privilege = Privilege::Own;
        self.rule.needs = Some(needs);
        self
    }

    /// The arguments require privileges in addition to that of the command, through `needs`.
    pub(crate) const fn also(mut self, needs: Needs) -> Row {
        self.rule.needs = Some(needs);
        self
    }
}
