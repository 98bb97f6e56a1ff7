//! Stepping down without a gap: refuse writes, wait until an electable member has every entry
//! durably and all are committed, and ask that member to take over at once. If the time for that is
//! over and the step-down is forced, the member that has most is asked.

use super::{Node, Role};
use crate::event::{Effect, Refusal};
use crate::message::Message;
use crate::position::Position;

impl Node {
    pub(super) fn step_down(&mut self, out: &mut Vec<Effect>) {
        match &mut self.role {
            Role::Primary(primary) if primary.is_writable() => {
                primary.quiesce(true);
                out.push(Effect::Role(self.state()));
                self.hand_over(out);
            }
            _ => Self::refuse(out, Refusal::NotPrimary),
        }
    }

    pub(super) fn step_down_ended(&mut self, force: bool, out: &mut Vec<Effect>) {
        match &mut self.role {
            Role::Primary(primary) if force => {
                if primary.is_quiescing() {
                    self.name_heir(out);
                }
                self.rest(out);
            }
            Role::Primary(primary) if primary.is_quiescing() => {
                primary.quiesce(false);
                out.push(Effect::Role(self.state()));
            }
            _ => {}
        }
    }

    /// The time is over: asks the member that has most to take over, though it lacks entries.
    /// Those after its last one are lost unless they are committed; then voters refuse it.
    fn name_heir(&self, out: &mut Vec<Effect>) {
        let Role::Primary(primary) = &self.role else {
            return;
        };
        let others = self.hard.config.members.iter().filter(|m| m.id != self.me);
        let known = others.filter(|m| m.is_electable() && Position::ZERO < primary.durable(m.id));
        let most =
            known.max_by_key(|m| (primary.durable(m.id), m.priority, std::cmp::Reverse(m.id)));
        if let Some(heir) = most {
            self.send(heir.id, Message::TakeOver, out);
        }
    }

    /// Hands over to the member of the highest priority that has every entry, and the newest
    /// configuration: voters refuse one with an older one.
    pub(super) fn hand_over(&mut self, out: &mut Vec<Effect>) {
        let Role::Primary(primary) = &self.role else {
            return;
        };
        let last = self.log.last();
        if !primary.is_quiescing() || self.commit != last {
            return;
        }
        let others = self.hard.config.members.iter().filter(|m| m.id != self.me);
        let config = self.hard.config.id;
        let ready = others.filter(|m| {
            m.is_electable() && primary.durable(m.id) == last && primary.has_config(m.id, config)
        });
        let Some(heir) = ready.max_by_key(|m| (m.priority, std::cmp::Reverse(m.id))) else {
            return;
        };
        let heir = heir.id;
        self.send(heir, Message::TakeOver, out);
        self.rest(out);
    }
}
