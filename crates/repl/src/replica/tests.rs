//! A set of three in simulated time, whose messages take 1 ms, and whose disks take no time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::config::{Config, ConfigId, Member};
use crate::event::{Hard, Refusal};
use crate::log::Log;
use crate::message::Envelope;
use crate::position::Term;

struct Set {
    now: Duration,
    replicas: Vec<Replica>,
    net: Vec<Envelope>,
    /// Members that neither send nor receive.
    cut: BTreeSet<MemberId>,
    /// Pairs of members that do not reach each other, the lower one first.
    apart: BTreeSet<(MemberId, MemberId)>,
}

impl Set {
    fn new(members: &[Member]) -> Self {
        let config = Arc::new(Config {
            id: ConfigId {
                term: Term(0),
                version: 1,
            },
            members: members.to_vec(),
        });
        let replica = |member: &Member| {
            let hard = Hard {
                config: config.clone(),
                ..Hard::default()
            };
            let node = Node::start(member.id, hard, Log::default(), Position::ZERO);
            Replica::new(node, member.id, Timing::default(), Duration::ZERO)
        };
        Self {
            now: Duration::ZERO,
            replicas: members.iter().map(replica).collect(),
            net: Vec::new(),
            cut: BTreeSet::new(),
            apart: BTreeSet::new(),
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += Duration::from_millis(1);
            let arrived = std::mem::take(&mut self.net);
            for envelope in arrived {
                let (a, b) = (envelope.to, envelope.from);
                let apart = self.apart.contains(&(a.min(b), a.max(b)));
                if !apart && !self.cut.contains(&a) && !self.cut.contains(&b) {
                    let to = usize::try_from(envelope.to.0).unwrap();
                    self.step(to, Event::Receive(envelope));
                }
            }
            for i in 0..self.replicas.len() {
                let replica = &mut self.replicas[i];
                let primary =
                    |replica: &Replica| matches!(replica.node().state(), State::Primary { .. });
                let announced = replica.loses_majority(self.now) || replica.quiet.is_some();
                let before = primary(replica);
                let effects = replica.tick(self.now);
                let stays = !before || primary(replica);
                assert!(stays || announced, "T2: its caller knows before");
                self.effects(i, effects);
            }
        }
    }

    fn step(&mut self, i: usize, event: Event) {
        let effects = self.replicas[i].step(self.now, event);
        self.effects(i, effects);
    }

    fn effects(&mut self, i: usize, effects: Vec<Effect>) {
        for effect in effects {
            let last = self.replicas[i].node().last();
            match effect {
                Effect::Send(envelope) => self.net.push(envelope),
                Effect::Persist(hard) => self.step(i, Event::Persisted(hard)),
                Effect::Write { .. } | Effect::WriteNoop(_) => self.step(i, Event::Durable(last)),
                Effect::Rollback(_) => self.step(i, Event::RolledBack),
                Effect::Role(State::Primary { writable: false }) => {
                    self.step(i, Event::Drained { ts: last.ts + 1 });
                }
                _ => {}
            }
        }
    }

    fn primaries(&self) -> Vec<usize> {
        let states = self.replicas.iter().map(|r| r.node().state());
        let primary = |(i, state)| matches!(state, State::Primary { .. }).then_some(i);
        states.enumerate().filter_map(primary).collect()
    }

    fn primary(&self) -> usize {
        let primaries = self.primaries();
        assert_eq!(primaries.len(), 1, "{primaries:?}");
        primaries[0]
    }

    fn write(&mut self) {
        let i = self.primary();
        self.write_at(i);
    }

    fn write_at(&mut self, i: usize) {
        let ts = self.replicas[i].node().last().ts + 1;
        self.step(i, Event::Append { ts });
        let last = self.replicas[i].node().last();
        self.step(i, Event::Durable(last));
    }
}

fn voters() -> Vec<Member> {
    (0..3).map(Member::voter).collect()
}

#[test]
fn a_set_elects_a_primary_and_commits() {
    let mut set = Set::new(&voters());
    set.run(3000);
    let primary = set.primary();
    set.write();
    set.run(1500);
    for replica in &set.replicas {
        let node = replica.node();
        assert_eq!((node.last().ts, node.commit().ts), (2, 2));
    }
    set.run(60_000);
    assert_eq!(
        (set.primary(), set.replicas[0].node().term()),
        (primary, Term(1)),
        "T1"
    );
}

#[test]
fn a_lost_primary_is_replaced_and_steps_down() {
    let mut set = Set::new(&voters());
    set.run(3000);
    let first = set.primary();
    set.cut.insert(set.replicas[first].me);
    set.run(5000);
    let second = set.primary();
    assert!(second != first, "T2");
    set.write();
    set.cut.clear();
    set.run(3000);
    assert_eq!(
        set.primary(),
        second,
        "the dry run of the other did not disturb it"
    );
    let id = Some(MemberId(u32::try_from(second).unwrap()));
    assert_eq!(set.replicas[first].primary(set.now), id);
    assert_eq!(set.replicas[first].followed(set.now), id);
    assert_eq!(set.replicas[second].primary(set.now), None, "of others");
    let durable = set.replicas[second].node().last();
    let known = MemberId(u32::try_from(first).unwrap());
    assert_eq!(set.replicas[second].node().durable_of(known), durable);
    assert_eq!(set.replicas[first].node().durable_of(known), Position::ZERO);
    assert_eq!(set.replicas[first].node().commit().ts, 3);
}

#[test]
fn a_higher_priority_takes_over_unless_frozen() {
    let mut members = voters();
    members[2].priority = 5;
    let mut set = Set::new(&members);
    set.replicas[2].freeze(Duration::from_secs(10));
    set.run(9000);
    assert!(set.primary() != 2, "T3");
    set.run(4000);
    assert_eq!(set.primary(), 2, "T1");
    assert_eq!(set.replicas[2].reason(), Reason::Priority);
}

#[test]
fn a_step_down_hands_over_at_once() {
    let mut set = Set::new(&voters());
    set.run(3000);
    let first = set.primary();
    set.write();
    set.run(1000);
    let request = StepDownRequest {
        wait: Duration::from_secs(1),
        force: false,
        frozen: Duration::from_secs(10),
    };
    let effects = set.replicas[first].step_down(set.now, request);
    set.effects(first, effects);
    set.run(700);
    assert!(set.primary() != first);
    assert_eq!(set.replicas[set.primary()].reason(), Reason::HandOver);
    set.run(8000);
    assert!(set.primary() != first, "T3");
}

/// Voters refuse a member whose configuration is older than theirs: with one voter down, the vote
/// of the former primary is needed.
#[test]
fn a_step_down_right_after_a_change_of_members_hands_over_at_once() {
    let mut set = Set::new(&voters());
    set.run(3000);
    let first = set.primary();
    set.write();
    set.run(1500);
    let down = set.replicas[(first + 1) % 3].me;
    set.cut.insert(down);
    let mut members = voters();
    members[1].priority = 3;
    let effects = set.replicas[first].step(set.now, Event::Reconfig(members));
    assert!(!effects.contains(&Effect::Refused(Refusal::ConfigNotCommitted)));
    set.effects(first, effects);
    let request = StepDownRequest {
        wait: Duration::from_secs(1),
        force: false,
        frozen: Duration::from_secs(10),
    };
    let effects = set.replicas[first].step_down(set.now, request);
    set.effects(first, effects);
    set.run(20);
    assert!(set.primary() != first);
    assert_eq!(set.replicas[first].node().term(), Term(2), "at once");
}

#[test]
fn a_hand_over_that_is_lost_is_made_up_for() {
    let mut set = Set::new(&voters());
    set.run(3000);
    let first = set.primary();
    set.write();
    set.run(1000);
    let request = StepDownRequest {
        wait: Duration::from_secs(1),
        force: false,
        frozen: Duration::from_secs(10),
    };
    let effects = set.replicas[first].step_down(set.now, request);
    set.effects(first, effects);
    set.net.retain(|e| e.message != Message::TakeOver);
    set.run(1400);
    assert!(set.primary() != first, "T5");
}

#[test]
fn without_a_successor_a_step_down_ends_as_it_was_asked() {
    for force in [false, true] {
        let mut set = Set::new(&voters()[..1]);
        set.run(3000);
        let request = StepDownRequest {
            wait: Duration::from_secs(1),
            force,
            frozen: Duration::from_secs(10),
        };
        let effects = set.replicas[0].step_down(set.now, request);
        set.effects(0, effects);
        set.run(5000);
        assert_eq!(
            set.primaries().len(),
            usize::from(!force),
            "T3: force {force}"
        );
    }
}

/// A set whose primary is cut off after it has committed; returns it.
fn beheaded(members: &[Member]) -> (Set, usize) {
    let mut set = Set::new(members);
    set.run(3000);
    let first = set.primary();
    set.write();
    set.run(1730);
    set.cut.insert(set.replicas[first].me);
    (set, first)
}

fn hint(set: &mut Set, lost: usize, but: &[usize]) {
    let now = set.now;
    let id = set.replicas[lost].me;
    for (i, replica) in set.replicas.iter_mut().enumerate() {
        if i != lost && !but.contains(&i) {
            replica.hint_lost(now, id);
        }
    }
}

/// The primary but for the one that was cut off, which does not know.
fn other_primary(set: &Set, not: usize) -> Option<usize> {
    set.primaries().into_iter().find(|i| *i != not)
}

#[test]
fn a_closed_connection_to_the_primary_shortens_the_wait() {
    let (mut set, first) = beheaded(&voters());
    set.run(1200);
    assert_eq!(other_primary(&set, first), None, "T1: without a hint");
    let (mut set, first) = beheaded(&voters());
    hint(&mut set, first, &[]);
    set.run(300);
    assert_eq!(other_primary(&set, first), None, "T5: two heartbeats");
    set.run(900);
    let second = other_primary(&set, first).expect("T5");
    set.write_at(second);
    set.run(600);
    let node = set.replicas[second].node();
    assert_eq!(node.commit(), node.last());
    let third = (0..3).find(|i| *i != first && *i != second).unwrap();
    assert_eq!(
        set.replicas[third].primary(set.now),
        Some(set.replicas[second].me),
        "the former one is none any more"
    );
}

#[test]
fn members_that_lose_a_primary_do_not_split_their_votes() {
    // Each hint comes at the same moment, in each of many terms and sets.
    for count in [3, 4, 5, 7] {
        let members: Vec<Member> = (0..count).map(Member::voter).collect();
        let mut set = Set::new(&members);
        set.run(3000);
        for _ in 0..20 {
            let first = set.primary();
            set.cut.insert(set.replicas[first].me);
            let term = set.replicas[first].node().term();
            hint(&mut set, first, &[]);
            set.run(1600);
            let second = other_primary(&set, first).expect("T5");
            let next = set.replicas[second].node().term();
            assert_eq!(next, term.next(), "one election is enough");
            set.cut.clear();
            set.run(2500);
        }
    }
}

#[test]
fn a_wrong_hint_changes_nothing() {
    let mut set = Set::new(&voters());
    set.run(3000);
    let first = set.primary();
    let before = set.replicas[first].node().term();
    for _ in 0..50 {
        hint(&mut set, first, &[]);
        set.run(777);
    }
    assert_eq!(set.primary(), first, "T5");
    assert_eq!(set.replicas[first].node().term(), before);
}

#[test]
fn a_member_that_alone_loses_the_primary_does_not_disturb_it() {
    for hinted in [false, true] {
        let mut set = Set::new(&voters());
        set.run(3000);
        let first = set.primary();
        let third = (first + 1) % 3;
        let (a, b) = (set.replicas[first].me, set.replicas[third].me);
        set.apart.insert((a.min(b), a.max(b)));
        let before = set.replicas[first].node().term();
        for _ in 0..60 {
            if hinted {
                hint(&mut set, first, &[(first + 2) % 3]);
            }
            set.run(500);
            assert_eq!(set.primaries(), [first], "T4: hinted {hinted}");
        }
        assert_eq!(set.replicas[first].node().term(), before, "T4");
        // It is the network between them only: the member takes part in commits.
        set.write();
        set.run(1500);
        let last = set.replicas[first].node().last();
        assert_eq!(set.replicas[third].node().last(), last);
    }
}

#[test]
fn a_primary_answers_no_dry_run_of_one_that_believes_it_lost() {
    // Of two voters, the primary would be the majority of the other.
    let mut set = Set::new(&voters());
    set.run(3000);
    let first = set.primary();
    let third = (first + 1) % 3;
    let silent = (first + 2) % 3;
    set.write();
    set.run(1000);
    set.cut.insert(set.replicas[silent].me);
    let election = set.replicas[first].node().term().next();
    let request = |takeover| {
        Event::Receive(Envelope {
            to: MemberId(u32::try_from(first).unwrap()),
            from: MemberId(u32::try_from(third).unwrap()),
            term: Term(election.0 - 1),
            message: Message::VoteRequest(crate::message::VoteRequest {
                dry_run: true,
                takeover,
                election,
                last: set.replicas[third].node().last(),
                config: set.replicas[third].node().config().id,
            }),
        })
    };
    let (lost, takeover) = (request(false), request(true));
    let now = set.now;
    assert_eq!(set.replicas[first].step(now, lost), [], "T4");
    let answered = set.replicas[first].step(now, takeover);
    assert_eq!(answered.len(), 1, "T4: {answered:?}");
}

#[test]
fn a_forced_step_down_asks_the_member_that_has_most() {
    let mut set = Set::new(&voters());
    set.run(3000);
    let first = set.primary();
    let lagging = (first + 1) % 3;
    let other = (first + 2) % 3;
    set.write();
    set.run(1000);
    // The lagging member stays behind, the other one has all but the last entry.
    set.cut.insert(set.replicas[lagging].me);
    set.write();
    set.run(600);
    set.write();
    let request = StepDownRequest {
        wait: Duration::ZERO,
        force: true,
        frozen: Duration::from_secs(60),
    };
    let effects = set.replicas[first].step_down(set.now, request);
    set.effects(first, effects);
    set.cut.clear();
    set.run(100);
    assert_eq!(set.primaries(), [other], "it need not wait for a timeout");
}
