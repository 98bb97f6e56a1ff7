//! The explorations that `cargo test` runs, and those that are run by hand.

use super::scenario::{Scenario, large, small};
use super::search::{Outcome, explore};
use crate::plant::Plant;

/// States of a small exploration that `cargo test` visits at most; about a second.
const STATES_MAX: usize = 22_000;
/// States within which a plant must be found.
const PLANT_STATES_MAX: usize = 60_000;

/// `ROMANESCO_STATES`: how many states of each exploration are visited when it is run by hand.
fn by_hand() -> Option<usize> {
    let text = std::env::var("ROMANESCO_STATES").ok()?;
    Some(text.parse().expect("ROMANESCO_STATES is a number"))
}

/// Explores, prints what was visited, and how a law was broken.
fn run(scenario: &Scenario, limit: usize) -> Outcome {
    let begun = stdx::time::now();
    let outcome = explore(scenario, limit);
    let plant = scenario
        .plant
        .map_or(String::new(), |plant| format!(", {plant:?}"));
    println!(
        "{}{plant}: {} states, {} steps, depth {}, {}, {:.1} s, {:?}",
        scenario.name,
        outcome.states,
        outcome.steps,
        outcome.depth,
        if outcome.complete { "complete" } else { "cut" },
        begun.elapsed().as_secs_f64(),
        outcome.broken.as_ref().map(|(law, _)| law)
    );
    if let Some((_, path)) = outcome.broken.as_ref().filter(|_| scenario.plant.is_none()) {
        println!("{}", path.join("\n"));
    }
    outcome
}

fn check(scenarios: Vec<Scenario>, limit: usize) {
    for scenario in scenarios {
        let broken = run(&scenario, limit).broken.map(|(law, _)| law);
        assert_eq!(broken, None, "A1 to A9: {}", scenario.name);
    }
}

#[test]
fn no_state_breaks_a_law() {
    check(small(), by_hand().unwrap_or(STATES_MAX));
}

#[test]
fn no_state_of_a_large_exploration_breaks_a_law() {
    if let Some(limit) = by_hand() {
        check(large(), limit);
    }
}

#[test]
fn every_plant_is_found() {
    let mut found = Vec::new();
    for scenario in small() {
        for plant in scenario.finds {
            let planted = Scenario {
                plant: Some(*plant),
                ..scenario.clone()
            };
            let outcome = run(&planted, PLANT_STATES_MAX);
            assert!(outcome.broken.is_some(), "B1: {plant:?} is not found");
            found.push(*plant);
        }
    }
    found.sort_unstable();
    assert_eq!(found, Plant::ALL, "B1: each plant has an exploration");
}
