//! What is explored: the members, the state at the beginning, the bounds, and the bugs that must be
//! found within them.

use super::world::Action;
use crate::config::Member;
use crate::plant::Plant;

/// An exploration.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The members that exist.
    pub(super) members: Vec<Member>,
    /// How many of them, from the first, are in the first configuration.
    pub(super) configured: usize,
    /// The terms of the entries that each member has durably at the beginning.
    pub(super) logs: Vec<Vec<u64>>,
    /// What happens first, with [`AtOnce::all`].
    pub(super) prefix: Vec<Action>,
    /// The greatest term.
    pub(super) terms: u64,
    /// The greatest number of entries that are written after the prefix.
    pub(super) entries: u32,
    /// How many messages are under way at most; the network loses further ones.
    pub(super) network: usize,
    /// How many messages are delivered twice.
    pub(super) repeats: u32,
    /// How many members restart.
    pub(super) restarts: u32,
    /// How many times a primary is asked to change the members.
    pub(super) reconfigs: u32,
    /// Whether elections begin with a dry run.
    pub(super) dry_run: bool,
    /// Whether primaries step down by request.
    pub(super) hand_over: bool,
    /// What takes no time.
    pub(super) at_once: AtOnce,
    /// The bug.
    pub(super) plant: Option<Plant>,
    /// The bugs that this exploration finds.
    pub(super) finds: &'static [Plant],
}

/// Messages and writes that take no time. A message that takes time can be lost, delayed, overtaken
/// and repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce {
    pub(super) heartbeats: bool,
    pub(super) fetches: bool,
    pub(super) batches: bool,
    pub(super) positions: bool,
    pub(super) votes: bool,
    /// The file of term, vote and configuration.
    pub(super) file: bool,
    /// The sync of the log.
    pub(super) log: bool,
}

impl AtOnce {
    pub(super) const fn all() -> Self {
        Self {
            heartbeats: true,
            fetches: true,
            batches: true,
            positions: true,
            votes: true,
            file: true,
            log: true,
        }
    }
}

impl Scenario {
    /// Whether what a fetch causes is over when the action is: then the source of a member only
    /// decides where it passes positions on, which explorations with late messages cover.
    pub(super) fn forgets_sources(&self) -> bool {
        let AtOnce {
            batches,
            positions,
            log,
            ..
        } = self.at_once;
        batches && positions && log
    }
}

/// Three voters with empty logs.
fn three(name: &'static str) -> Scenario {
    Scenario {
        name,
        members: (0..3).map(Member::voter).collect(),
        configured: 3,
        logs: vec![Vec::new(); 3],
        prefix: Vec::new(),
        terms: 2,
        entries: 2,
        network: 2,
        repeats: 0,
        restarts: 0,
        reconfigs: 0,
        dry_run: false,
        hand_over: false,
        at_once: AtOnce::all(),
        plant: None,
        finds: &[],
    }
}

/// The member 0 is the primary of term 1, and its noop is on all members.
fn led() -> Vec<Action> {
    vec![
        Action::Campaign(0),
        Action::Begin(0),
        Action::Fetch(1, 0),
        Action::Fetch(2, 0),
    ]
}

/// The explorations of `cargo test`: small, each visited whole.
pub(super) fn small() -> Vec<Scenario> {
    let mut all = elections();
    all.extend(logs());
    all.extend(members());
    all.extend(configurations());
    all
}

fn elections() -> Vec<Scenario> {
    vec![
        Scenario {
            terms: 1,
            entries: 0,
            repeats: 1,
            restarts: 1,
            at_once: AtOnce {
                votes: false,
                file: false,
                ..AtOnce::all()
            },
            finds: &[Plant::VoteTwice, Plant::VoteBeforeDurable],
            ..three("votes of a term")
        },
        Scenario {
            terms: 1,
            entries: 1,
            dry_run: true,
            hand_over: true,
            at_once: AtOnce {
                votes: false,
                ..AtOnce::all()
            },
            finds: &[Plant::DryRunRaisesTerm],
            ..three("dry runs and hand-over")
        },
        Scenario {
            prefix: vec![Action::Campaign(0), Action::Begin(0)],
            entries: 0,
            network: 3,
            at_once: AtOnce {
                votes: false,
                batches: false,
                ..AtOnce::all()
            },
            finds: &[Plant::CountOtherTerm],
            ..three("elections and late batches")
        },
    ]
}

fn logs() -> Vec<Scenario> {
    vec![
        Scenario {
            prefix: vec![Action::Campaign(0), Action::Begin(0), Action::Fetch(1, 0)],
            entries: 2,
            finds: &[
                Plant::VoteForOlderLog,
                Plant::RollBackToOlderLog,
                Plant::PrimaryOutlivesTerm,
            ],
            ..three("logs")
        },
        Scenario {
            prefix: vec![Action::Campaign(0)],
            entries: 2,
            network: 1,
            restarts: 1,
            at_once: AtOnce {
                batches: false,
                log: false,
                ..AtOnce::all()
            },
            finds: &[
                Plant::ReportUnsynced,
                Plant::CountOwnUnsynced,
                Plant::AppendUnmatched,
                Plant::ResumeTermAfterRestart,
            ],
            ..three("restarts")
        },
        Scenario {
            logs: vec![vec![1], vec![2], vec![]],
            terms: 4,
            entries: 1,
            finds: &[
                Plant::CommitOlderTerm,
                Plant::LearnFromHeartbeat,
                Plant::LearnFromDivergedSource,
            ],
            ..three("diverged logs")
        },
        Scenario {
            prefix: vec![Action::Campaign(0), Action::Begin(0)],
            entries: 0,
            repeats: 1,
            at_once: AtOnce {
                heartbeats: false,
                batches: false,
                positions: false,
                ..AtOnce::all()
            },
            ..three("late heartbeats")
        },
    ]
}

fn members() -> Vec<Scenario> {
    let with = |third| vec![Member::voter(0), Member::voter(1), third];
    let volatile = Member {
        persistent: false,
        ..Member::voter(2)
    };
    let at_once = AtOnce {
        log: false,
        ..AtOnce::all()
    };
    vec![
        Scenario {
            members: with(Member::arbiter(2)),
            entries: 1,
            restarts: 1,
            at_once,
            finds: &[Plant::CountArbiter],
            ..three("an arbiter")
        },
        Scenario {
            members: with(volatile),
            restarts: 1,
            entries: 1,
            at_once,
            finds: &[Plant::CountVolatile],
            ..three("a member without persistence")
        },
    ]
}

fn configurations() -> Vec<Scenario> {
    vec![
        Scenario {
            prefix: led(),
            reconfigs: 2,
            entries: 1,
            finds: &[
                Plant::ReconfigBeforeMajority,
                Plant::ChangeTwoVoters,
                Plant::VoteForOlderConfig,
            ],
            ..three("configurations")
        },
        Scenario {
            prefix: [led(), vec![Action::Reconfig(0, 0b011)]].concat(),
            reconfigs: 1,
            entries: 1,
            restarts: 1,
            at_once: AtOnce {
                file: false,
                ..AtOnce::all()
            },
            ..three("configurations and restarts")
        },
        Scenario {
            members: (0..4).map(Member::voter).collect(),
            logs: vec![Vec::new(); 4],
            prefix: vec![Action::Campaign(0), Action::Begin(0), Action::Fetch(2, 0)],
            reconfigs: 2,
            entries: 0,
            finds: &[Plant::ReconfigBeforeCommit],
            ..three("a member joins")
        },
    ]
}

/// The explorations that are run by hand.
pub(super) fn large() -> Vec<Scenario> {
    let mut all = three_terms();
    all.extend(mixed());
    all
}

fn three_terms() -> Vec<Scenario> {
    vec![
        Scenario {
            terms: 3,
            entries: 4,
            restarts: 1,
            at_once: AtOnce {
                log: false,
                ..AtOnce::all()
            },
            ..three("3 terms, 4 entries, restarts")
        },
        Scenario {
            terms: 3,
            entries: 4,
            network: 2,
            repeats: 1,
            at_once: AtOnce {
                batches: false,
                positions: false,
                ..AtOnce::all()
            },
            ..three("3 terms, 4 entries, late batches and positions")
        },
        Scenario {
            terms: 3,
            entries: 1,
            network: 3,
            repeats: 1,
            restarts: 1,
            at_once: AtOnce {
                votes: false,
                file: false,
                ..AtOnce::all()
            },
            ..three("3 terms, late votes, restarts")
        },
    ]
}

fn mixed() -> Vec<Scenario> {
    vec![
        Scenario {
            terms: 3,
            entries: 3,
            reconfigs: 2,
            restarts: 1,
            at_once: AtOnce {
                file: false,
                ..AtOnce::all()
            },
            ..three("3 terms, configurations, restarts")
        },
        Scenario {
            logs: vec![vec![1], vec![2], vec![]],
            terms: 5,
            entries: 3,
            restarts: 1,
            ..three("diverged logs, 5 terms")
        },
        Scenario {
            terms: 3,
            entries: 4,
            network: 2,
            repeats: 1,
            restarts: 1,
            reconfigs: 1,
            dry_run: true,
            hand_over: true,
            at_once: AtOnce {
                heartbeats: false,
                fetches: false,
                batches: false,
                positions: false,
                votes: false,
                file: false,
                log: false,
            },
            ..three("everything late")
        },
    ]
}
