//! Renames members, so that states that differ only in their numbers are one state.
//!
//! Members with the same attributes are sorted by a signature of what they do. Members with equal
//! signatures keep their order, so some equal states stay apart; none that differ are joined.

use super::hash::hash;
use super::scenario::Scenario;
use super::world::{Action, World};
use crate::config::Member;
use crate::node::Role;
use crate::position::MemberId;

impl World {
    /// The state with its members in the order of their signatures.
    pub(super) fn canonical(mut self, scenario: &Scenario) -> Self {
        let count = self.nodes.len();
        let signatures: Vec<u128> = (0..count).map(|i| self.signature(i)).collect();
        let class = |i: usize| Member {
            id: MemberId(0),
            ..scenario.members[i]
        };
        // Place `at` gets the member that is now at `order[at]`, of the same class.
        let mut order: Vec<usize> = Vec::with_capacity(count);
        for at in 0..count {
            let free = (0..count).filter(|i| class(*i) == class(at) && !order.contains(i));
            order.push(
                free.min_by_key(|i| (signatures[*i], *i))
                    .expect("one is free"),
            );
        }
        if order.is_sorted() {
            return self;
        }
        let names = |id: MemberId| {
            let now = scenario.members.iter().position(|m| m.id == id).unwrap();
            let at = order.iter().position(|i| *i == now).unwrap();
            scenario.members[at].id
        };
        self.nodes = order.iter().map(|i| self.nodes[*i].clone()).collect();
        self.disks = order.iter().map(|i| self.disks[*i].clone()).collect();
        self.nodes.iter_mut().for_each(|node| node.rename(&names));
        for disk in &mut self.disks {
            disk.hard.rename(&names);
            if let Some(hard) = &mut disk.pending {
                hard.rename(&names);
            }
        }
        self.net
            .iter_mut()
            .for_each(|envelope| envelope.rename(&names));
        self.net.sort_unstable();
        self.past
            .primaries
            .iter_mut()
            .for_each(|(_, id)| *id = names(*id));
        self
    }

    /// A hash of what a member does, without numbers of members.
    fn signature(&self, i: usize) -> u128 {
        let (node, disk) = (&self.nodes[i], &self.disks[i]);
        let role = match &node.role {
            Role::Startup2 => 0,
            Role::Recovering => 1,
            Role::Secondary => 2,
            Role::Candidate(_) => 3,
            Role::Primary(_) => 4,
            Role::Rollback(_) => 5,
            Role::Arbiter => 6,
            Role::Removed => 7,
        };
        let vote = node.hard.voted_for.map(|to| to == node.me);
        let stable = node.stable.voted_for.map(|to| to == node.me);
        let source = node.source.is_some();
        let wrote = (&disk.entries, disk.durable, disk.pending.is_some());
        let configs = (node.hard.config.id, node.stable.config.id);
        let ours = |e: &&crate::message::Envelope| e.to == node.me || e.from == node.me;
        let messages: Vec<_> = self.net.iter().filter(ours).collect();
        let messages = messages
            .iter()
            .map(|e| (e.to == node.me, e.term))
            .collect::<Vec<_>>();
        let led = self.past.primaries.iter().filter(|(_, id)| *id == node.me);
        let led: Vec<_> = led.map(|(term, _)| *term).collect();
        let terms = (node.hard.term, node.stable.term, node.commit, led);
        hash(&(role, vote, stable, source, wrote, configs, messages, terms))
    }

    pub(super) fn describe(&self, action: Action) -> String {
        match action {
            Action::Deliver(i) | Action::Repeat(i) | Action::Lose(i) => {
                format!("{action:?} {:?}", self.net[usize::from(i)])
            }
            _ => format!("{action:?}"),
        }
    }

    pub(super) fn summary(&self) -> String {
        let one = |(node, disk): (&crate::node::Node, &super::world::Disk)| {
            let entries: Vec<String> = disk.entries.iter().map(ToString::to_string).collect();
            format!(
                "{}: term {} {:?} config {:?} commit {} durable {} of [{}]",
                node.me,
                node.term(),
                node.state(),
                node.config().id,
                node.commit,
                disk.durable,
                entries.join(" "),
            )
        };
        let all: Vec<String> = self.nodes.iter().zip(&self.disks).map(one).collect();
        all.join("\n    ")
    }
}
