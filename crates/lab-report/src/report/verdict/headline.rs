//! The headline of a report, and the line below it: the main result, and the targets that had
//! problems.

use crate::analysis::equal_targets;
use crate::format;
use crate::record::Preset;
use crate::report::compare::times;
use crate::report::model::{StepView, View};

use super::contest::Contest;
use super::cut::cuts;
use super::findings::fallen;

/// The first thing to know about a run at the preset `smoke`.
const SMOKE: &str = "A smoke run shows that everything works; its numbers are of too little data \
                     and time to say which target is faster";

/// The same for a single target.
const SMOKE_ALONE: &str = "A smoke run shows that everything works; its numbers are of too little \
                           data and time to say how fast a target is";

/// The headline.
pub(crate) fn headline(view: &View<'_>) -> String {
    if let Some(text) = of_equal_targets(view) {
        return text;
    }
    match view.steps.as_slice() {
        [] => "No step of this run came to its end".to_owned(),
        _ if view.run.manifest.plan.preset == Preset::Smoke && 1 < view.targets.len() => {
            "A smoke run names no target as the fastest".to_owned()
        }
        [step] => of_one(view, step),
        steps => of_many(view, steps),
    }
}

/// The headline of an A/A run: one whose targets are all the same, but for the generator.
fn of_equal_targets(view: &View<'_>) -> Option<String> {
    let all = view.run.manifest.plan.targets.iter();
    let stores = all.filter(|target| !target.is_generator()).count();
    let pairs = equal_targets(view.run);
    if view.steps.is_empty() || stores != pairs.len() + 1 {
        return None;
    }
    let engine = pairs.first()?.base.split('#').next()?.to_owned();
    let wrong: usize = pairs.iter().map(|pair| pair.wrong.len()).sum();
    let equal: usize = pairs.iter().map(|pair| pair.equal).sum();
    let undecided: usize = pairs.iter().map(|pair| pair.undecided).sum();
    let all = wrong + equal + undecided;
    Some(match wrong {
        0 => format!("A/A run of {engine}: none of {all} verdicts is wrong, {undecided} undecided"),
        1 => format!("A/A run of {engine}: 1 of {all} verdicts is wrong"),
        _ => format!("A/A run of {engine}: {wrong} of {all} verdicts are wrong"),
    })
}

fn of_one(view: &View<'_>, step: &StepView<'_>) -> String {
    let Some(contest) = Contest::of(view, step) else {
        return "No target has a valid result".to_owned();
    };
    let name = view.name(contest.first);
    let Some((next, row)) = contest.next() else {
        let rate = format::number(contest.rate);
        return format!("{name} ran at {rate} {}", step.unit());
    };
    let next = view.name(next);
    let equals = contest.equals();
    let ratio = row.and_then(|r| r.ratio).map(times);
    let over = contest.over();
    match ratio {
        Some(ratio) if contest.won() && contest.rivals.len() == 1 => {
            format!("{name} is faster than {next}: {ratio}\u{d7} its rate{over}")
        }
        Some(ratio) if contest.won() => {
            format!("{name} is the fastest: {ratio}\u{d7} the rate of {next}, the next{over}")
        }
        _ if !equals.is_empty() => {
            let mut names = vec![name];
            names.extend(equals.into_iter().map(|t| view.name(t)));
            format!("No difference between {}{over}", listed(&names))
        }
        Some(ratio) => format!(
            "{name} ran at {ratio}\u{d7} the rate of {next}{over}; the difference is inconclusive"
        ),
        None => format!("{name} and {next} cannot be compared"),
    }
}

fn of_many(view: &View<'_>, steps: &[StepView<'_>]) -> String {
    let contests: Vec<Contest> = steps.iter().filter_map(|s| Contest::of(view, s)).collect();
    let wins = |target: usize| {
        let won = contests.iter().filter(|c| c.won() && c.first == target);
        won.count()
    };
    let most = (0..view.targets.len()).map(wins).max().unwrap_or(0);
    let best: Vec<&str> = (0..view.targets.len())
        .filter(|t| 0 < most && wins(*t) == most)
        .map(|t| view.name(t))
        .collect();
    let all = steps.len();
    match best.as_slice() {
        [] if contests.is_empty() => "No target has a valid result".to_owned(),
        [] if contests.iter().all(|c| c.rivals.is_empty()) => {
            format!(
                "{} ran alone in {all} steps",
                contests.first().map_or("", |c| view.name(c.first))
            )
        }
        [] => format!("Inconclusive: no target is the fastest in any of {all} steps"),
        [one] if most == all => format!("{one} is the fastest in all {all} steps"),
        [one] => format!("{one} is the fastest in {most} of {all} steps"),
        several => {
            let names = listed(several);
            format!("{names} are the fastest in {most} of {all} steps each")
        }
    }
}

/// The problems of targets, such as `lmdb falls off the cliff; wiredtiger failed`; empty if there
/// are none.
pub(crate) fn beside(view: &View<'_>) -> String {
    let of = |target: usize| {
        let clauses = [
            clause(view, "falls off the cliff", |s| {
                fallen(view, s, target).is_some()
            }),
            stopped(view, target),
            clause(view, "failed", |s| s.standing(view, target) == "failed"),
            clause(view, "is invalid", |s| {
                s.standing(view, target) == "invalid"
            }),
        ];
        let clauses: Vec<String> = clauses.into_iter().flatten().collect();
        let clauses: Vec<&str> = clauses.iter().map(String::as_str).collect();
        (!clauses.is_empty()).then(|| format!("{} {}", view.name(target), listed(&clauses)))
    };
    let all = (0..view.targets.len()).filter_map(of);
    let text = if view.targets.len() == 1 {
        SMOKE_ALONE
    } else {
        SMOKE
    };
    let smoke = (view.run.manifest.plan.preset == Preset::Smoke).then(|| text.to_owned());
    let all: Vec<String> = smoke.into_iter().chain(all).collect();
    all.join("; ")
}

fn stopped(view: &View<'_>, target: usize) -> Option<String> {
    let share = |step: &StepView<'_>| {
        let all = cuts(step);
        let cut = all.iter().find(|c| c.target == target)?;
        Some(cut.share())
    };
    if let [step] = view.steps.as_slice() {
        let what = step.operation.many;
        let share = format::percent(share(step)?);
        return Some(format!("was stopped by its time at {share} of the {what}"));
    }
    clause(view, "was stopped by its time", |s| share(s).is_some())
}

/// A clause with the steps for which it is true; they are not listed if there is only one step.
fn clause(view: &View<'_>, what: &str, is: impl Fn(&StepView<'_>) -> bool) -> Option<String> {
    let found = view.steps.iter().filter(|s| is(s));
    let names: Vec<&str> = found.map(|s| s.plan.name.as_str()).collect();
    match names.len() {
        0 => None,
        _ if view.steps.len() == 1 => Some(what.to_owned()),
        1..=3 => Some(format!("{what} in {}", listed(&names))),
        n => Some(format!("{what} in {n} steps")),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_english() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b"]), "a and b");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }
}
