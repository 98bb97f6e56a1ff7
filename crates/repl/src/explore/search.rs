//! Breadth-first search over states.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::hash::hash;
use super::scenario::Scenario;
use super::world::{Action, World};

/// What an exploration found.
#[derive(Debug)]
pub(super) struct Outcome {
    /// States, equal ones and those that differ only in the numbers of members counted once.
    pub(super) states: usize,
    /// Actions done.
    pub(super) steps: usize,
    /// The length of the longest shortest path.
    pub(super) depth: usize,
    /// Whether every state within the bounds was visited.
    pub(super) complete: bool,
    /// The law that a state breaks, and how to get there.
    pub(super) broken: Option<(String, Vec<String>)>,
}

/// Takes the bits of a hash as they are.
#[derive(Default)]
struct Plain(u64);

impl Hasher for Plain {
    fn write(&mut self, _: &[u8]) {}

    fn write_u128(&mut self, bits: u128) {
        self.0 = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The step that first led to a state.
struct Step {
    from: u32,
    action: Action,
}

/// Visits at most `limit` states.
pub(super) fn explore(scenario: &Scenario, limit: usize) -> Outcome {
    let mut seen: HashSet<u128, BuildHasherDefault<Plain>> = HashSet::default();
    let mut steps: Vec<Step> = Vec::new();
    let begin = World::begin(scenario);
    let mut now = vec![(u32::MAX, begin.clone())];
    let mut next = Vec::new();
    let mut actions = Vec::new();
    let mut outcome = Outcome {
        states: 1,
        steps: 0,
        depth: 0,
        complete: true,
        broken: None,
    };
    seen.insert(hash(&begin.clone().canonical(scenario)));
    while !now.is_empty() {
        for (from, world) in now.drain(..) {
            world.actions(scenario, &mut actions);
            for &action in &actions {
                outcome.steps += 1;
                let mut reached = world.clone();
                let broken = attempt(&mut reached, action, scenario);
                if let Some(law) = broken {
                    steps.push(Step { from, action });
                    outcome.broken = Some((law, path(&begin, &steps, scenario)));
                    return outcome;
                }
                let reached = reached.canonical(scenario);
                if !seen.insert(hash(&reached)) {
                    continue;
                }
                let at = u32::try_from(steps.len()).expect("fewer states than 2^32");
                steps.push(Step { from, action });
                next.push((at, reached));
                outcome.states += 1;
            }
            if limit <= outcome.states {
                outcome.complete = false;
                return outcome;
            }
        }
        outcome.depth += usize::from(!next.is_empty());
        std::mem::swap(&mut now, &mut next);
    }
    outcome
}

/// Does an action; returns the law that it broke. With a plant an assertion can fail first.
fn attempt(world: &mut World, action: Action, scenario: &Scenario) -> Option<String> {
    let mut run = || {
        world.act(action, scenario);
        world.broken().map(str::to_owned)
    };
    if scenario.plant.is_none() {
        return run();
    }
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut run)) {
        Ok(broken) => broken,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Some(text.unwrap_or_else(|| "an assertion".to_owned()))
        }
    }
}

/// The actions from the beginning to the last step, with the state after each.
fn path(begin: &World, steps: &[Step], scenario: &Scenario) -> Vec<String> {
    let mut actions = Vec::new();
    let mut at = u32::try_from(steps.len() - 1).expect("fewer states than 2^32");
    while let Some(step) = steps.get(usize::try_from(at).unwrap()) {
        actions.push(step.action);
        at = step.from;
    }
    actions.reverse();
    let mut world = begin.clone();
    let last = actions.len() - 1;
    let mut lines = Vec::new();
    for (i, action) in actions.into_iter().enumerate() {
        let what = world.describe(action);
        if i < last {
            world.act(action, scenario);
            world = world.canonical(scenario);
        }
        lines.push(format!("{what}\n    {}", world.summary()));
    }
    lines
}
