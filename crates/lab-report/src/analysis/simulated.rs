//! Whole comparisons of simulated runs: how often equal targets get a wrong verdict on any metric,
//! and how often planted slowdowns are found. `docs/lab.md` has the tables that these tests make.

use stdx::Rng;

use super::compare::{Accept, compare};
use super::equal_targets::equal_targets;
use super::verdict::Verdict;
use crate::fixture::{run, standard_normal, step};
use crate::record::{Latency, QuerySummary, RunRecord, StepSummary};

const PAGE: &str = include_str!("../../../../docs/lab.md");

/// Runs of each kind.
const RUNS: u32 = 400;

/// Noise with mean 0, on the scale of logarithms: of a repeat as a whole, and of each number in it.
struct Noise {
    name: &'static str,
    repeat: fn(&mut Rng) -> f64,
    number: fn(&mut Rng) -> f64,
}

const QUIET: Noise = Noise {
    name: "log-normal, 1 %",
    repeat: none,
    number: quiet,
};
const NORMAL: Noise = Noise {
    name: "log-normal, 3 %",
    repeat: none,
    number: normal,
};
const DISTURBED: Noise = Noise {
    name: "the same, every tenth number disturbed by five times the noise",
    repeat: none,
    number: disturbed,
};
const MODES: Noise = Noise {
    name: "log-normal, 1 %, and each repeat in one of two modes 10 % apart",
    repeat: modes,
    number: quiet,
};

fn none(_: &mut Rng) -> f64 {
    0.0
}

fn quiet(rng: &mut Rng) -> f64 {
    0.01 * standard_normal(rng)
}

fn normal(rng: &mut Rng) -> f64 {
    0.03 * standard_normal(rng)
}

/// Every tenth number is disturbed by five times the noise.
fn disturbed(rng: &mut Rng) -> f64 {
    let factor = if rng.chance(0.1) { 5.0 } else { 1.0 };
    factor * normal(rng)
}

/// As of a file that is cached or not.
fn modes(rng: &mut Rng) -> f64 {
    if rng.chance(0.5) { 0.05 } else { -0.05 }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive and far below the limit"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// A repeat of a target at `speed`, in which every measured number has noise of its own: the more
/// independent the metrics are, the more chances there are for a wrong verdict.
fn repeat(target: &str, repeat: u32, speed: f64, noise: &Noise, rng: &mut Rng) -> StepSummary {
    let whole = (noise.repeat)(rng);
    let mut of = |value: f64| value * (whole + (noise.number)(rng)).exp();
    let latency = |factor: f64, of: &mut dyn FnMut(f64) -> f64| Latency {
        count: 1000,
        mean: of(1.0) * factor,
        p50: of(1.0) * factor,
        p90: of(3.0) * factor,
        p99: of(5.0) * factor,
        p999: of(8.0) * factor,
        max: of(20.0) * factor,
    };
    let rate = of(1000.0) * speed;
    let count = |value: f64| Some(rounded(value));
    let base = step(target, repeat, rate);
    StepSummary {
        seconds: 1e5 / rate,
        rows: 100_000,
        rate_first_tenth: of(1100.0) * speed,
        rate_last_tenth: of(900.0) * speed,
        worst_second: of(500.0) * speed,
        median_second: of(1000.0) * speed,
        latency_ms: latency(1.0 / speed, &mut of),
        queries: Some(QuerySummary {
            queries: 1000,
            rate_mean: of(100.0) * speed,
            entries: 10_000,
            latency_ms: latency(1.0 / speed, &mut of),
        }),
        device_write_bytes: count(of(4e8)),
        device_read_bytes: count(of(3e8)),
        device_write_ios: count(of(1e6)),
        device_read_ios: count(of(1e6)),
        file_bytes: rounded(of(2e8)),
        cpu_seconds: Some(of(20.0)),
        switches: count(of(1e6)),
        rss_max: count(of(1e8)),
        debt_bytes: count(of(1e7)),
        settle_seconds: of(5.0),
        ..base
    }
}

/// A run of two targets, equal but for the speed of the second.
fn pair(repeats: u32, speed: f64, noise: &Noise, rng: &mut Rng) -> RunRecord {
    let names = ["a#1", "a#2"];
    let mut steps = Vec::new();
    for number in 1..=repeats {
        steps.push(self::repeat(names[0], number, 1.0, noise, rng));
        steps.push(self::repeat(names[1], number, speed, noise, rng));
    }
    let mut record = run("r", &names, repeats, steps);
    for target in &mut record.manifest.plan.targets {
        "a".clone_into(&mut target.engine);
    }
    // The floor would hide what the intervals do.
    record.noise = crate::analysis::METRICS
        .iter()
        .map(|m| (m.name.to_owned(), 0.0))
        .collect();
    record
}

/// Whether a table of the page has this line, which is printed.
fn is_on_page(cells: &[String]) -> bool {
    let line = format!("| {} |", cells.join(" | "));
    println!("{line}");
    PAGE.lines().any(|l| l == line)
}

fn percent(count: u32) -> String {
    format!("{:.1} %", f64::from(count) * 100.0 / f64::from(RUNS))
}

#[test]
fn equal_targets_have_a_wrong_verdict_on_any_metric_in_at_most_one_of_twenty_runs() {
    let mut missing = Vec::new();
    for noise in [QUIET, NORMAL, DISTURBED, MODES] {
        let name = noise.name;
        let mut cells = vec![name.to_owned()];
        for repeats in [3, 5, 7] {
            let mut rng = Rng::new(u64::from(repeats));
            let wrong = |rng: &mut Rng| {
                let found = equal_targets(&pair(repeats, 1.0, &noise, rng));
                found.iter().any(|pair| !pair.wrong.is_empty())
            };
            let count = (0..RUNS).filter(|_| wrong(&mut rng)).count();
            let count = u32::try_from(count).unwrap();
            assert!(
                count <= RUNS / 20,
                "{name}, {repeats} repeats: {count} of {RUNS}"
            );
            cells.push(percent(count));
        }
        if !is_on_page(&cells) {
            missing.push(cells);
        }
    }
    assert!(missing.is_empty(), "not in docs/lab.md: {missing:?}");
}

/// Comparisons of runs with a planted slowdown: how many found it, and how many denied it.
fn planted(slower: u32, noise: &Noise, repeats: u32) -> [u32; 2] {
    let mut rng = Rng::new(u64::from(repeats + slower));
    let speed = 1.0 - f64::from(slower) / 100.0;
    let (mut found, mut denied) = (0, 0);
    for _ in 0..RUNS {
        let record = pair(repeats, speed, noise, &mut rng);
        let all = compare(&[record], None, Accept::default()).unwrap();
        let rate = all.pairs[0].rows.iter().find(|r| r.metric == "rate_mean");
        match rate.unwrap().verdict.unwrap() {
            Verdict::Slower => found += 1,
            Verdict::Inconclusive => {}
            _ => denied += 1,
        }
    }
    [found, denied]
}

#[test]
fn a_planted_slowdown_is_found_or_inconclusive() {
    let mut missing = Vec::new();
    for slower in [5, 10, 20] {
        for noise in [QUIET, NORMAL, MODES] {
            let name = noise.name;
            let mut cells = vec![format!("{slower} %"), name.to_owned()];
            for repeats in [3, 5, 7] {
                let [found, denied] = planted(slower, &noise, repeats);
                // What is within 5 % counts as equal, so 5 % is denied as often as an interval
                // misses. A slowdown as large as the distance of two modes is hidden if all repeats
                // of the slower side are in the faster mode. Any other one is never denied.
                let hidden = slower == 5 || (slower == 10 && name == MODES.name);
                let most = if hidden { RUNS / 50 } else { 0 };
                let what = format!("{slower} %, {name}, {repeats} repeats");
                assert!(denied <= most, "{what}: denied {denied} times");
                cells.push(percent(found));
            }
            if !is_on_page(&cells) {
                missing.push(cells);
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/lab.md: {missing:?}");
}
