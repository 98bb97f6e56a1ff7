//! Changing the members, by MongoDB's protocol without log entries: a configuration is an object
//! with an identity {term, version}, which spreads by heartbeats and replaces older ones.
//!
//! - R1. A primary replaces a configuration only when a majority of its voters has it durably, and
//!   the commit point is of this term and held by a majority of it.
//! - R2. The new configuration changes at most one voter.

use std::sync::Arc;

use super::{Node, Role};
use crate::config::{Config, ConfigError, ConfigId, Member};
use crate::event::{Effect, Refusal};
use crate::plant::Plant;
use crate::position::MemberId;

impl Node {
    pub(super) fn reconfig(&mut self, mut members: Vec<Member>, out: &mut Vec<Effect>) {
        members.sort_unstable_by_key(|member| member.id);
        let next = Config {
            id: ConfigId {
                term: self.hard.term,
                version: self.hard.config.id.version + 1,
            },
            members,
        };
        match self.check(&next) {
            Ok(()) => self.install(next.into(), out),
            Err(why) => Self::refuse(out, why),
        }
    }

    fn check(&self, next: &Config) -> Result<(), Refusal> {
        let Role::Primary(primary) = &self.role else {
            return Err(Refusal::NotPrimary);
        };
        if !primary.is_writable() {
            return Err(Refusal::NotPrimary);
        }
        next.validate()?;
        let current = &self.hard.config;
        if 1 < current.voters_changed(next) && !self.planted(Plant::ChangeTwoVoters) {
            return Err(ConfigError::TwoVoters.into());
        }
        if !next.member(self.me).is_some_and(Member::is_electable) {
            return Err(ConfigError::RemovesPrimary.into());
        }
        let has = |member: &&Member| {
            if member.id == self.me {
                self.reported_config() == current.id
            } else {
                primary.has_config(member.id, current.id)
            }
        };
        let majority = current.majority();
        let spread = current.voters().filter(has).count();
        if spread < majority && !self.planted(Plant::ReconfigBeforeMajority) {
            return Err(Refusal::ConfigNotCommitted);
        }
        let durable = |member: &&Member| {
            let at = if member.id == self.me {
                self.durable
            } else {
                primary.durable(member.id)
            };
            member.acknowledges() && self.commit <= at
        };
        let held = current.voters().filter(durable).count();
        let committed = self.commit.term == self.hard.term && majority <= held;
        if !committed && !self.planted(Plant::ReconfigBeforeCommit) {
            return Err(Refusal::NothingCommitted);
        }
        Ok(())
    }

    /// Uses a configuration at once; it is reported to others when it is durable.
    pub(super) fn install(&mut self, config: Arc<Config>, out: &mut Vec<Effect>) {
        assert!(
            self.hard.config.id < config.id,
            "R1: configurations only get newer"
        );
        self.hard.config = config.clone();
        self.persist(out);
        out.push(Effect::Installed(config));
        let member = self.hard.config.member(self.me);
        match &self.role {
            // Votes were counted by the former configuration.
            Role::Candidate(_) | Role::Secondary | Role::Arbiter | Role::Removed => self.rest(out),
            Role::Startup2 | Role::Recovering if member.is_none() => self.rest(out),
            _ => {}
        }
    }

    /// The configuration that the member may report as its own.
    pub(super) fn reported_config(&self) -> ConfigId {
        self.stable.config.id
    }

    /// Whether a heartbeat to `to` must carry the configuration.
    pub(super) fn must_send_config(&self, to: MemberId) -> bool {
        match &self.role {
            Role::Primary(primary) => !primary.has_config(to, self.hard.config.id),
            _ => true,
        }
    }
}
