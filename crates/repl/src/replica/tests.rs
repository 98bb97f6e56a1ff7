//! A set of three in simulated time, whose messages take 1 ms, and whose disks take no time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::config::{Config, ConfigId, Member};
use crate::event::Hard;
use crate::log::Log;
use crate::message::Envelope;
use crate::position::Term;

struct Set {
    now: Duration,
    replicas: Vec<Replica>,
    net: Vec<Envelope>,
    /// Members that neither send nor receive.
    cut: BTreeSet<MemberId>,
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
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += Duration::from_millis(1);
            let arrived = std::mem::take(&mut self.net);
            for envelope in arrived {
                if !self.cut.contains(&envelope.to) && !self.cut.contains(&envelope.from) {
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
    set.run(8000);
    assert!(set.primary() != first, "T3");
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
