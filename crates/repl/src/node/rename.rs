//! Gives members other numbers: the exploration treats states that differ only in them as one.

use std::sync::Arc;

use super::{Node, Role};
use crate::config::Config;
use crate::event::Hard;
use crate::message::{Envelope, Message};
use crate::position::MemberId;

/// New numbers of members.
pub(crate) type Names<'a> = &'a dyn Fn(MemberId) -> MemberId;

impl Node {
    pub(crate) fn rename(&mut self, names: Names) {
        self.me = names(self.me);
        self.hard.rename(names);
        self.stable.rename(names);
        self.asked = self.asked.map(names);
        self.source = self.source.map(names);
        match &mut self.role {
            Role::Candidate(candidate) => {
                candidate.granted.iter_mut().for_each(|m| *m = names(*m));
                candidate.granted.sort_unstable();
            }
            Role::Primary(primary) => {
                let progress = &mut primary.progress;
                progress.iter_mut().for_each(|p| p.member = names(p.member));
                progress.sort_unstable_by_key(|p| p.member);
            }
            _ => {}
        }
    }
}

impl Hard {
    pub(crate) fn rename(&mut self, names: Names) {
        self.voted_for = self.voted_for.map(names);
        renamed(&mut self.config, names);
    }
}

impl Envelope {
    pub(crate) fn rename(&mut self, names: Names) {
        self.from = names(self.from);
        self.to = names(self.to);
        match &mut self.message {
            Message::Positions(row) => row.member = names(row.member),
            Message::Heartbeat(beat) => {
                if let Some(body) = &mut beat.body {
                    renamed(body, names);
                }
            }
            _ => {}
        }
    }
}

fn renamed(config: &mut Arc<Config>, names: Names) {
    let same = config
        .members
        .iter()
        .all(|m| config.member(names(m.id)).is_some());
    if !same {
        let config = Arc::make_mut(config);
        config.members.iter_mut().for_each(|m| m.id = names(m.id));
        config.members.sort_unstable_by_key(|m| m.id);
    }
}
