//! A row of the table of commands: the command, what it does, and what a client must be allowed to
//! do for it.
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
    /// What it does.
    pub(crate) run: Run,
    /// Which of its requests are brief.
    pub(crate) brief: Option<Brief>,
    /// Who may run it.
    pub(crate) rule: Rule,
}

impl Deref for Row {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

impl Row {
    /// A row with the most usual values: no storage, no arguments, for every authenticated client.
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

    /// Set flags beside those that are set.
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

    /// The arguments say what the command needs, by this rule alone.
    pub(crate) const fn own(mut self, needs: Needs) -> Row {
        self.rule.privilege = Privilege::Own;
        self.rule.needs = Some(needs);
        self
    }

    /// The arguments say what the command needs beside its privilege.
    pub(crate) const fn also(mut self, needs: Needs) -> Row {
        self.rule.needs = Some(needs);
        self
    }
}
