//! Configurations: who is a member, who votes, whose durable writes count.
//!
//! - C1. A configuration is valid: [`Config::validate`] has the rules.
//! - C2. Two consecutive configurations of a term differ in at most one voter, so any two
//!   majorities of theirs have a member in common.

use crate::position::{MemberId, Term};

/// The most members of a set, as in MongoDB.
pub const MEMBERS_MAX: usize = 50;
/// The most voters of a set, as in MongoDB: an election waits for that many votes.
pub const VOTERS_MAX: usize = 7;

/// The identity of a configuration. Order is by term first: a configuration of a newer primary
/// replaces any of an older one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigId {
    /// The term of the primary that installed it.
    pub term: Term,
    /// Increases with each change.
    pub version: u64,
}

/// A member as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Its number.
    pub id: MemberId,
    /// Whether it votes (`votes: 1`).
    pub votes: bool,
    /// Whether it votes without holding data (`arbiterOnly`).
    pub arbiter: bool,
    /// Zero: it never becomes primary. Otherwise the member of the highest priority is preferred.
    pub priority: u32,
    /// Whether clients do not see it (`hidden`).
    pub hidden: bool,
    /// Seconds that it applies entries late (`secondaryDelaySecs`); it stores them at once.
    pub delay_seconds: u64,
    /// Whether its storage engine survives a restart; otherwise it is not counted by a majority of
    /// durable writes.
    pub persistent: bool,
}

impl Member {
    /// A voter that holds data and can become primary.
    #[must_use]
    pub const fn voter(id: u32) -> Self {
        Self {
            id: MemberId(id),
            votes: true,
            arbiter: false,
            priority: 1,
            hidden: false,
            delay_seconds: 0,
            persistent: true,
        }
    }

    /// An arbiter.
    #[must_use]
    pub const fn arbiter(id: u32) -> Self {
        Self {
            arbiter: true,
            priority: 0,
            ..Self::voter(id)
        }
    }

    /// Whether the member can become primary.
    #[must_use]
    pub const fn is_electable(&self) -> bool {
        self.votes && !self.arbiter && 0 < self.priority
    }

    /// Whether its durable writes count for a majority.
    #[must_use]
    pub const fn acknowledges(&self) -> bool {
        self.votes && !self.arbiter && self.persistent
    }
}

/// A configuration of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Config {
    /// Its identity.
    pub id: ConfigId,
    /// The members, by number.
    pub members: Vec<Member>,
}

/// Why a configuration is not valid or cannot follow the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Too many members.
    #[error("a set has at most {MEMBERS_MAX} members; remove some")]
    Members,
    /// No voter, or too many.
    #[error("a set has 1 to {VOTERS_MAX} voters; set votes: 0 for the others")]
    Voters,
    /// Two members have one number.
    #[error("member {0} is listed twice; member numbers are unique")]
    Duplicate(MemberId),
    /// A hidden, delayed, arbiter or non-voting member has a priority.
    #[error("member {0} is hidden, delayed, an arbiter or has no vote; set its priority to 0")]
    Priority(MemberId),
    /// An arbiter without a vote.
    #[error("member {0} is an arbiter and has no vote; arbiters vote")]
    Arbiter(MemberId),
    /// No member can become primary.
    #[error("no member can become primary; give a voter a priority above 0")]
    NoElectable,
    /// Fewer persistent data-bearing voters than a majority of the voters.
    #[error("too few voters store data durably for a majority; replace arbiters by data members")]
    NoDurableMajority,
    /// The roles of more than one voter change.
    #[error("more than one voter changes; change one voter at a time")]
    TwoVoters,
    /// The primary itself would not be electable.
    #[error("this primary would not be electable; step down first")]
    RemovesPrimary,
}

impl Config {
    /// The member `id`.
    #[must_use]
    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The voters, arbiters included.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.votes)
    }

    /// Whether `id` votes.
    #[must_use]
    pub fn is_voter(&self, id: MemberId) -> bool {
        self.member(id).is_some_and(|member| member.votes)
    }

    /// The number of voters that elect a primary. The same number of persistent, data-bearing
    /// voters commits an entry: arbiters enlarge the majority but never acknowledge.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.voters().count() / 2 + 1
    }

    /// Checks the rules of a single configuration.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if MEMBERS_MAX < self.members.len() {
            return Err(ConfigError::Members);
        }
        if !(1..=VOTERS_MAX).contains(&self.voters().count()) {
            return Err(ConfigError::Voters);
        }
        for (at, member) in self.members.iter().enumerate() {
            if self.members.iter().skip(at + 1).any(|m| m.id == member.id) {
                return Err(ConfigError::Duplicate(member.id));
            }
            if member.arbiter && !member.votes {
                return Err(ConfigError::Arbiter(member.id));
            }
            let passive = member.hidden || 0 < member.delay_seconds || !member.votes;
            if (passive || member.arbiter) && 0 < member.priority {
                return Err(ConfigError::Priority(member.id));
            }
        }
        if !self.members.iter().any(Member::is_electable) {
            return Err(ConfigError::NoElectable);
        }
        let durable = self.members.iter().filter(|m| m.acknowledges()).count();
        if durable < self.majority() {
            return Err(ConfigError::NoDurableMajority);
        }
        Ok(())
    }

    /// The number of voters that `next` adds, removes or gives another role.
    #[must_use]
    pub fn voters_changed(&self, next: &Self) -> usize {
        let role = |config: &Self, id| {
            let member = config.member(id).filter(|member| member.votes);
            member.map(|member| (member.arbiter, member.persistent))
        };
        let ids: std::collections::BTreeSet<MemberId> =
            self.voters().chain(next.voters()).map(|m| m.id).collect();
        let changed = |id: &&MemberId| role(self, **id) != role(next, **id);
        ids.iter().filter(changed).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(members: &[Member]) -> Config {
        Config {
            id: ConfigId::default(),
            members: members.to_vec(),
        }
    }

    #[test]
    fn c1_names_the_broken_rule() {
        let voter = Member::voter;
        let hidden = Member {
            hidden: true,
            ..voter(2)
        };
        let memory = |id| Member {
            persistent: false,
            ..voter(id)
        };
        let silent = Member {
            votes: false,
            ..Member::arbiter(2)
        };
        let check = |members: &[Member]| config(members).validate();
        assert_eq!(check(&[voter(1), voter(2), Member::arbiter(3)]), Ok(()));
        assert_eq!(check(&[voter(1), voter(2), memory(3)]), Ok(()));
        let many: Vec<Member> = (0..8).map(voter).collect();
        assert_eq!(check(&many), Err(ConfigError::Voters), "C1");
        assert_eq!(check(&[]), Err(ConfigError::Voters));
        let twice = [voter(1), voter(1)];
        assert_eq!(check(&twice), Err(ConfigError::Duplicate(MemberId(1))));
        let priority = Err(ConfigError::Priority(MemberId(2)));
        assert_eq!(check(&[voter(1), hidden]), priority);
        assert_eq!(
            check(&[voter(1), silent]),
            Err(ConfigError::Arbiter(MemberId(2)))
        );
        let none = Member {
            priority: 0,
            ..voter(1)
        };
        assert_eq!(check(&[none]), Err(ConfigError::NoElectable));
        let weak = Err(ConfigError::NoDurableMajority);
        assert_eq!(check(&[voter(1), Member::arbiter(2)]), weak);
        assert_eq!(check(&[voter(1), memory(2), memory(3)]), weak);
    }

    #[test]
    fn c2_counts_voters_that_change() {
        let old = config(&[Member::voter(1), Member::voter(2), Member::voter(3)]);
        let same = Member {
            priority: 5,
            ..Member::voter(3)
        };
        let next = config(&[Member::voter(1), Member::voter(2), same]);
        assert_eq!(old.voters_changed(&next), 0, "C2: a priority is no vote");
        let next = config(&[Member::voter(1), Member::voter(2), Member::voter(4)]);
        assert_eq!(old.voters_changed(&next), 2, "C2: one leaves, one joins");
        let next = config(&[Member::voter(1), Member::voter(2), Member::arbiter(3)]);
        assert_eq!(
            old.voters_changed(&next),
            1,
            "C2: a voter becomes an arbiter"
        );
    }
}
