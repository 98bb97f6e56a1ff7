//! Scenes with one or two nodes; what several nodes do together is explored.

use super::*;
use crate::config::{ConfigError, ConfigId, Member};
use crate::message::{HOPS_MAX, Row, VoteRequest};

fn config(members: &[Member]) -> Arc<Config> {
    Arc::new(Config {
        id: ConfigId {
            term: Term(0),
            version: 1,
        },
        members: members.to_vec(),
    })
}

fn voters(count: u32) -> Vec<Member> {
    (0..count).map(Member::voter).collect()
}

fn at(term: u64, ts: u64) -> Position {
    Position {
        term: Term(term),
        ts,
    }
}

fn runs(list: &[(u64, u64)]) -> Vec<Run> {
    let run = |&(term, last)| Run {
        term: Term(term),
        last,
    };
    list.iter().map(run).collect()
}

/// The member 0 with a log of which `commit` is committed.
fn node(members: &[Member], list: &[(u64, u64)], commit: Position) -> Node {
    let log = Log::of(runs(list)).unwrap();
    let hard = Hard {
        term: log.last().term,
        voted_for: None,
        config: config(members),
    };
    Node::start(MemberId(0), hard, log, commit)
}

fn from(member: u32, term: u64, message: Message) -> Event {
    Event::Receive(Envelope {
        to: MemberId(0),
        from: MemberId(member),
        term: Term(term),
        message,
    })
}

fn sent(effects: &[Effect]) -> Vec<(u32, Message)> {
    let send = |effect: &Effect| match effect {
        Effect::Send(envelope) => Some((envelope.to.0, envelope.message.clone())),
        _ => None,
    };
    effects.iter().filter_map(send).collect()
}

fn persisted(node: &mut Node) -> Vec<Effect> {
    node.step(Event::Persisted(node.hard.clone()))
}

fn vote(election: u64, granted: bool) -> Message {
    Message::VoteReply {
        dry_run: false,
        election: Term(election),
        granted,
    }
}

fn row(member: u32, term: u64, durable: Position) -> Message {
    passed(member, term, durable, HOPS_MAX)
}

fn passed(member: u32, term: u64, durable: Position, hops: u8) -> Message {
    Message::Positions(Row {
        hops,
        member: MemberId(member),
        term: Term(term),
        durable,
    })
}

/// The member 0 as primary of term 1, with a noop that is durable there.
fn primary(members: &[Member]) -> Node {
    let mut node = node(members, &[], Position::ZERO);
    node.step(Event::Campaign {
        dry_run: false,
        takeover: false,
    });
    persisted(&mut node);
    for voter in 1..=members.len() / 2 {
        node.step(from(u32::try_from(voter).unwrap(), 1, vote(1, true)));
    }
    persisted(&mut node);
    node.step(Event::CatchUpEnded);
    node.step(Event::Drained { ts: 1 });
    node.step(Event::Durable(at(1, 1)));
    assert_eq!(node.state(), State::Primary { writable: true });
    node
}

fn has_config(node: &Node, durable: Position) -> Message {
    Message::Heartbeat(Heartbeat {
        last: durable,
        durable,
        commit: Position::ZERO,
        config: node.config().id,
        body: None,
        primary: false,
    })
}

/// With five members, an entry that a majority has can be the last of a member outside of it, and
/// look older than an entry of a branch that is dead.
#[test]
fn a_member_does_not_follow_a_source_that_lacks_committed_entries() {
    let mut node = node(&voters(5), &[(2, 1)], at(2, 1));
    node.step(Event::Fetch(MemberId(3)));
    let diverged = Message::Diverged {
        runs: runs(&[(3, 1)]),
    };
    let effects = node.step(from(3, 4, diverged));
    assert!(effects.contains(&Effect::SourceRefused(MemberId(3))), "N1");
    assert_eq!((node.last(), node.source()), (at(2, 1), None), "N1");
}

#[test]
fn a_diverged_member_rolls_back_to_the_common_point() {
    let mut node = node(&voters(3), &[(1, 2), (2, 5)], at(1, 1));
    let diverged = Message::Diverged {
        runs: runs(&[(1, 3), (3, 4)]),
    };
    let effects = node.step(from(1, 3, diverged.clone()));
    assert!(
        effects.contains(&Effect::Rollback(at(1, 2))),
        "S2: {effects:?}"
    );
    assert_eq!(node.state(), State::Rollback);
    assert_eq!(node.step(from(1, 3, diverged)), [], "it is rolling back");
    node.step(Event::RolledBack);
    assert_eq!((node.last(), node.durable()), (at(1, 2), at(1, 2)));
    node.step(Event::Durable(at(2, 5)));
    assert_eq!(
        node.durable(),
        at(1, 2),
        "a sync of removed entries ends late"
    );
    let older = Message::Diverged {
        runs: runs(&[(1, 1)]),
    };
    let effects = node.step(from(2, 3, older));
    assert_eq!(effects, [Effect::SourceRefused(MemberId(2))], "S2");
}

#[test]
fn entries_are_appended_only_after_their_predecessor() {
    let mut node = node(&voters(3), &[(1, 2)], Position::ZERO);
    let batch = |after| Message::Batch {
        after,
        runs: runs(&[(1, 4)]),
        commit: at(1, 3),
    };
    node.step(from(1, 1, batch(at(1, 1))));
    assert_eq!(node.last(), at(1, 2), "S1");
    node.step(from(1, 1, batch(at(1, 2))));
    assert_eq!((node.last(), node.commit()), (at(1, 4), at(1, 3)), "S1, P2");
}

#[test]
fn a_vote_is_answered_when_it_is_durable_and_only_once_in_a_term() {
    let mut node = node(&voters(3), &[(1, 2)], Position::ZERO);
    let request = |election, last, dry_run| {
        let config = ConfigId {
            term: Term(0),
            version: 1,
        };
        Message::VoteRequest(VoteRequest {
            takeover: false,
            dry_run,
            election: Term(election),
            last,
            config,
        })
    };
    let effects = node.step(from(1, 1, request(2, at(1, 2), true)));
    assert_eq!((sent(&effects).len(), node.term()), (1, Term(1)), "E3");
    let effects = node.step(from(1, 2, request(2, at(1, 2), false)));
    assert_eq!(sent(&effects), [], "N3: {effects:?}");
    let effects = persisted(&mut node);
    assert_eq!(sent(&effects), [(1, vote(2, true))], "E1");
    let effects = node.step(from(2, 2, request(2, at(1, 3), false)));
    assert_eq!(sent(&effects), [(2, vote(2, false))], "E1");
    let effects = node.step(from(2, 3, request(3, at(1, 1), false)));
    assert_eq!(sent(&effects), [(2, vote(3, false))], "E2: an older log");
    let effects = node.step(from(7, 3, request(3, at(1, 3), false)));
    assert_eq!(sent(&effects), [(7, vote(3, false))], "E2: a stranger");
    node.step(Event::InitialSync);
    let effects = node.step(from(1, 4, request(4, at(1, 3), false)));
    assert_eq!(sent(&effects), [(1, vote(4, false))], "no data, no vote");
}

#[test]
fn a_member_in_initial_sync_takes_no_part_until_it_has_a_log() {
    let mut node = Node::start(
        MemberId(0),
        Hard {
            config: config(&voters(3)),
            ..Hard::default()
        },
        Log::default(),
        Position::ZERO,
    );
    let run = |term, last| Run {
        term: Term(term),
        last,
    };
    let log = Log::of(vec![run(1, 3), run(2, 5)]).unwrap();
    // One that does not wait for it takes none.
    assert_eq!(node.step(Event::Synced(log.clone())), []);
    node.step(Event::InitialSync);
    assert_eq!(node.state(), State::Startup2);
    assert_eq!(
        node.step(Event::Fetch(MemberId(1))),
        [],
        "it fetches nothing"
    );
    assert!(
        !node
            .step(Event::Campaign {
                dry_run: true,
                takeover: false,
            })
            .iter()
            .any(|effect| matches!(effect, Effect::Send(_))),
        "it does not campaign"
    );
    node.step(Event::Durable(at(2, 5)));
    assert_eq!(node.durable(), Position::ZERO, "it reports no entries");
    let effects = node.step(Event::Synced(log));
    assert!(effects.contains(&Effect::Role(State::Secondary)));
    assert!(
        effects.iter().any(|e| matches!(e, Effect::Persist(_))),
        "N2: its log has a newer term"
    );
    assert_eq!((node.last(), node.durable()), (at(2, 5), at(2, 5)));
    assert_eq!((node.term(), node.commit()), (Term(2), Position::ZERO));
    // It may have to take entries back as any member.
    let newer = Message::Diverged {
        runs: vec![run(1, 3), run(2, 4), run(3, 6)],
    };
    let effects = node.step(from(1, 3, newer));
    assert!(effects.contains(&Effect::Rollback(at(2, 4))));
}

#[test]
fn a_restarted_primary_is_a_secondary() {
    let before = primary(&voters(3));
    let after = Node::start(MemberId(0), before.hard, before.log, before.commit);
    assert_eq!(after.state(), State::Secondary, "N4");
    assert_eq!(after.term(), Term(1));
}

#[test]
fn a_majority_of_persistent_data_members_commits() {
    let volatile = Member {
        persistent: false,
        ..Member::voter(2)
    };
    let delayed = Member {
        priority: 0,
        hidden: true,
        delay_seconds: 3600,
        ..Member::voter(3)
    };
    let members = [
        Member::voter(0),
        Member::voter(1),
        volatile,
        delayed,
        Member::arbiter(4),
    ];
    let mut node = primary(&members);
    node.step(from(2, 1, row(2, 1, at(1, 1))));
    node.step(from(1, 1, row(1, 1, at(1, 1))));
    assert_eq!(node.commit(), Position::ZERO, "P1: two of five");
    let effects = node.step(from(1, 1, row(3, 1, at(1, 1))));
    assert_eq!(
        effects,
        [Effect::Committed(at(1, 1))],
        "P1: a delayed voter stores at once"
    );
}

#[test]
fn a_secondary_passes_positions_on() {
    let mut node = node(&voters(3), &[(1, 2)], Position::ZERO);
    node.step(Event::Fetch(MemberId(1)));
    let effects = node.step(from(2, 1, row(2, 1, at(1, 1))));
    let next = passed(2, 1, at(1, 1), HOPS_MAX - 1);
    assert_eq!(sent(&effects), [(1, next)]);
    assert_eq!(
        node.step(from(2, 1, passed(2, 1, at(1, 1), 0))),
        [],
        "a circle ends"
    );
    node.step(Event::Fetch(MemberId(2)));
    assert_eq!(node.step(from(2, 1, row(2, 1, at(1, 2)))), [], "not back");
}

#[test]
fn a_reconfiguration_needs_the_former_one_and_a_commit() {
    let mut node = primary(&voters(3));
    let refused = |node: &mut Node, members: Vec<Member>, why: Refusal| {
        let effects = node.step(Event::Reconfig(members));
        assert_eq!(effects, [Effect::Refused(why)]);
    };
    refused(&mut node, voters(5), ConfigError::TwoVoters.into());
    let without = voters(3)[1..].to_vec();
    refused(&mut node, without, ConfigError::RemovesPrimary.into());
    refused(&mut node, voters(2), Refusal::ConfigNotCommitted);
    let beat = has_config(&node, Position::ZERO);
    node.step(from(1, 1, beat));
    refused(&mut node, voters(2), Refusal::NothingCommitted);
    let beat = has_config(&node, at(1, 1));
    node.step(from(1, 1, beat));
    let effects = node.step(Event::Reconfig(voters(2)));
    assert!(
        effects.contains(&Effect::Installed(node.config().clone())),
        "R1, R2"
    );
    assert_eq!(node.config().id.version, 2);
    refused(&mut node, voters(3), Refusal::ConfigNotCommitted);
}

#[test]
fn a_member_leaves_and_joins_by_configurations() {
    let mut node = node(&voters(3), &[(1, 1)], Position::ZERO);
    let beat = |version, members: Vec<Member>| {
        let id = ConfigId {
            term: Term(1),
            version,
        };
        let body = Config { id, members };
        Message::Heartbeat(Heartbeat {
            last: at(1, 1),
            durable: at(1, 1),
            commit: Position::ZERO,
            config: id,
            body: Some(body.into()),
            primary: true,
        })
    };
    let arbiter = [vec![Member::arbiter(0)], voters(4)[1..].to_vec()].concat();
    node.step(from(1, 1, beat(3, voters(3)[1..].to_vec())));
    assert_eq!(node.state(), State::Removed);
    node.step(from(1, 1, beat(2, voters(3))));
    assert_eq!(node.state(), State::Removed, "an older configuration");
    node.step(from(1, 1, beat(4, voters(3))));
    assert_eq!(node.state(), State::Secondary);
    node.step(from(1, 1, beat(5, arbiter)));
    assert_eq!(node.state(), State::Arbiter);
}

#[test]
fn a_primary_hands_over_when_all_is_committed() {
    let mut node = primary(&voters(3));
    node.step(Event::Append { ts: 2 });
    node.step(Event::StepDown);
    let effects = node.step(Event::Append { ts: 3 });
    assert_eq!(effects, [Effect::Refused(Refusal::NotPrimary)]);
    node.step(from(2, 1, row(2, 1, at(1, 2))));
    assert_eq!(
        node.state(),
        State::Primary { writable: false },
        "its own is not durable"
    );
    node.step(Event::StepDownEnded { force: false });
    assert_eq!(node.state(), State::Primary { writable: true });
    node.step(Event::StepDown);
    node.step(Event::Durable(at(1, 2)));
    node.step(from(2, 1, row(2, 1, at(1, 2))));
    assert_eq!(
        node.state(),
        State::Primary { writable: false },
        "member 2 may have an older configuration"
    );
    let beat = has_config(&node, at(1, 2));
    let effects = node.step(from(2, 1, beat));
    assert_eq!(sent(&effects), [(2, Message::TakeOver)]);
    assert_eq!(node.state(), State::Secondary);
}

#[test]
fn a_candidate_catches_up_before_it_writes() {
    let mut node = node(&voters(3), &[(1, 1)], Position::ZERO);
    node.step(Event::Campaign {
        dry_run: false,
        takeover: false,
    });
    persisted(&mut node);
    node.step(from(1, 2, vote(2, true)));
    assert!(node.is_catching_up());
    node.step(Event::Fetch(MemberId(2)));
    let batch = Message::Batch {
        after: at(1, 1),
        runs: runs(&[(1, 3)]),
        commit: Position::ZERO,
    };
    node.step(from(2, 2, batch));
    node.step(Event::CatchUpEnded);
    let effects = node.step(Event::Drained { ts: 4 });
    assert!(effects.contains(&Effect::WriteNoop(at(2, 4))));
}
