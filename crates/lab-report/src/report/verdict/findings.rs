//! The findings, one sentence each, with their weaknesses.

use serde::Serialize;

use crate::analysis::{ComparisonRow, Flatness, Verdict, equal_targets, escaped, limits_of_caps};
use crate::format;
use crate::report::compare::{self, times};
use crate::report::model::{StepView, View};

use super::contest::{Contest, ranking};
use super::cut;

/// Minimum number of whole seconds for a cliff: with fewer, the first and the last tenth are too
/// short.
const CLIFF_SECONDS: usize = 5;
/// A worst second below this share of the median second is called a stop.
const STOP: f64 = 0.1;
/// A target above this share of the generator's ceiling measures the generator too.
const NEAR_CEILING: f64 = 0.5;

/// One line of the card.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// The verdict word, or `note`, `warning`.
    pub(crate) word: String,
    /// Its style class.
    pub(crate) class: String,
    /// The sentence.
    pub(crate) text: String,
    /// Its weaknesses: `uncalibrated`, `within-run`.
    pub(crate) tags: Vec<String>,
    /// The section with the details, as an anchor.
    pub(crate) href: String,
}

impl Finding {
    fn new(word: &str, class: &str, text: String, href: &str) -> Finding {
        Finding {
            word: word.to_owned(),
            class: class.to_owned(),
            text,
            tags: Vec::new(),
            href: href.to_owned(),
        }
    }
}

/// All findings; unusable results come first.
pub(crate) fn findings(view: &View<'_>) -> Vec<Finding> {
    let fastest: Vec<Option<Finding>> = view.steps.iter().map(|s| fastest(view, s)).collect();
    let mut found = unusable(view);
    found.extend(disturbed(view));
    found.extend(equal_targets(view.run).iter().map(|pair| {
        let class = if pair.wrong.is_empty() { "good" } else { "bad" };
        Finding::new("A/A", class, format!("{}.", pair.text()), "summary")
    }));
    found.extend(inconclusive(view, &fastest));
    for (step, first) in view.steps.iter().zip(fastest) {
        found.extend(first.filter(|f| worth_a_line(view, f)));
        found.extend(explanation(view, step));
        let cuts = cut::cuts(step);
        found.extend(cuts.iter().map(|c| {
            let text = cut::sentence(view, step, c);
            Finding::new("cut off", "warn", text, &step.id)
        }));
        found.extend(ceiling(view, step));
    }
    found.extend(view.steps.iter().flat_map(|s| cliffs(view, s)));
    found.extend(view.steps.iter().flat_map(|s| stops(view, s)));
    found.extend(amplification(view));
    found.extend(escapes(view));
    found.extend(limits_of_validity(view));
    found
}

/// The targets whose writes bypassed the caps of the run.
fn escapes(view: &View<'_>) -> Option<Finding> {
    let mut targets = view.targets.iter();
    let text = targets.any(|t| escaped(view.run, t.name));
    let text = limits_of_caps(view.run).filter(|_| text)?;
    Some(Finding::new("warning", "warn", text, "tested"))
}

fn unusable(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for step in &view.steps {
        for target in 0..view.targets.len() {
            let reasons = step.invalid_reasons(target);
            if reasons.is_empty() {
                continue;
            }
            let text = format!(
                "{} in {} may not be used: {}.",
                view.name(target),
                step.plan.name,
                reasons.join("; ")
            );
            found.push(Finding::new("invalid", "invalid", text, &step.id));
        }
    }
    found.extend(failed(view));
    found
}

/// The repeats that other programs disturbed, with the reasons of the first; one line.
fn disturbed(view: &View<'_>) -> Option<Finding> {
    let all: Vec<_> = view.steps.iter().flat_map(|s| &s.cells).collect();
    let hit = all.iter().filter(|c| !c.summary.disturbed().is_empty());
    let hit: Vec<_> = hit.collect();
    let first = hit.first()?;
    let summary = first.summary;
    let text = format!(
        "Other programs disturbed {} of {} steps and repeats, such as repeat {} of {} in {}: {}. \
         Verdicts that depend on them are inconclusive; repeat the run on a machine that does \
         nothing else.",
        hit.len(),
        all.len(),
        summary.repeat,
        view.name(first.target),
        summary.step,
        summary.disturbed().join("; ")
    );
    Some(Finding::new("disturbed", "warn", text, "tested"))
}

/// The failures; repeats of a step that failed for the same reason are listed once.
fn failed(view: &View<'_>) -> Vec<Finding> {
    let mut kinds: Vec<(String, Vec<u32>, &str)> = Vec::new();
    for failure in &view.failed {
        let reason = failure.reason.trim_end_matches('.');
        let (what, repeat) = match &failure.place {
            Some(p) => (
                format!("{} failed in {}", view.name(p.target), p.step),
                vec![p.repeat],
            ),
            None => (
                format!("{} did not come to its end", failure.directory),
                Vec::new(),
            ),
        };
        match kinds.iter_mut().find(|k| k.0 == what && k.2 == reason) {
            Some(kind) => kind.1.extend(repeat),
            None => kinds.push((what, repeat, reason)),
        }
    }
    let planned = view.run.manifest.plan.repeats;
    let finding = |(what, repeats, reason): (String, Vec<u32>, &str)| {
        let numbers: Vec<String> = repeats.iter().map(u32::to_string).collect();
        let text = match repeats.len() {
            0 => format!("{what}: {reason}."),
            _ if planned < 2 => format!("{what}: {reason}."),
            1 => format!("{what}, repeat {}: {reason}.", numbers.concat()),
            n if n >= planned as usize => format!("{what} in every repeat: {reason}."),
            _ => format!("{what}, repeats {}: {reason}.", numbers.join(", ")),
        };
        Finding::new("failed", "invalid", text, "environment")
    };
    kinds.into_iter().map(finding).collect()
}

/// The text of findings that only repeat the ranking of their step.
const INCONCLUSIVE: &str = "inconclusive";
const NOTE: &str = "note";

/// With many steps, the inconclusive ones share one line.
fn worth_a_line(view: &View<'_>, finding: &Finding) -> bool {
    view.steps.len() < 2 || (finding.word != INCONCLUSIVE && finding.word != NOTE)
}

/// One line for several steps whose differences are inconclusive.
fn inconclusive(view: &View<'_>, fastest: &[Option<Finding>]) -> Option<Finding> {
    let all = view.steps.iter().zip(fastest);
    let found: Vec<(&StepView<'_>, &Finding)> = all
        .filter_map(|(step, first)| Some((step, first.as_ref()?)))
        .filter(|(_, first)| first.word == INCONCLUSIVE)
        .collect();
    let (step, first) = found.first().filter(|_| 1 < view.steps.len())?;
    let names: Vec<&str> = found.iter().map(|(s, _)| s.plan.name.as_str()).collect();
    let text = format!(
        "{}: the differences between the targets are inconclusive; {}.",
        names.join(", "),
        too_little(view)
    );
    let mut finding = Finding::new(INCONCLUSIVE, "note", text, &step.id);
    finding.tags.clone_from(&first.tags);
    Some(finding)
}

fn fastest(view: &View<'_>, step: &StepView<'_>) -> Option<Finding> {
    let contest = Contest::of(view, step)?;
    let (name, at) = (view.name(contest.first), &step.plan.name);
    let over = contest.over();
    let rate = format!("{} {}{over}", format::number(contest.rate), step.unit());
    if view.targets.len() == 1 {
        // Its rate stands above.
        return None;
    }
    let Some((next, row)) = contest.next() else {
        let text = format!("{at}: {name} ran at {rate}; nothing else can be compared with it.");
        return Some(Finding::new(NOTE, "note", text, &step.id));
    };
    let next = view.name(next);
    let Some((row, ratio)) = row.and_then(|r| Some((r, r.ratio?))) else {
        let text = format!("{at}: {name} ran at {rate}, the most; there is no ratio to {next}.");
        return Some(Finding::new(NOTE, "note", text, &step.id));
    };
    let interval = compare::interval(row).map_or(String::new(), |i| format!(" ({i})"));
    let ratio = times(ratio);
    let equals = contest.equals();
    let mut finding = if contest.won() {
        let text = format!(
            "{at}: {name} is faster than every other valid target: {rate}, {ratio}\u{d7} the \
             rate of {next}{}{interval}.",
            if 1 < contest.rivals.len() {
                ", the next"
            } else {
                ""
            }
        );
        Finding::new("faster", "good", text, &step.id)
    } else if let Some(equal) = equals.first() {
        let equal = view.name(*equal);
        let text = format!(
            "{at}: no difference between {name} and {equal}; {name} ran at {rate}, {ratio}\u{d7} \
             the rate of {next}{interval}."
        );
        Finding::new("no difference", "same", text, &step.id)
    } else {
        let text = format!(
            "{at}: {name} ran at {rate}, {ratio}\u{d7} the rate of {next}{interval}; the \
             difference is inconclusive: {}.",
            too_little(view)
        );
        Finding::new(INCONCLUSIVE, "note", text, &step.id)
    };
    finding.tags = compare::caveats(row, view.floor("rate_mean").is_some());
    Some(finding)
}

/// Why repeats are too few for a verdict.
fn too_little(view: &View<'_>) -> &'static str {
    if view.run.manifest.plan.repeats < 2 {
        "a single repeat shows nothing of the noise between runs"
    } else if disturbed(view).is_some() {
        "other programs disturbed repeats; run it again on a machine that does nothing else"
    } else {
        "the noise between the repeats is too large; repeat more often, on a machine that does \
         nothing else"
    }
}

/// Whether a cost of one target is below (`Some(true)`) or above that of another; `None` without a
/// verdict.
fn cheaper(row: &ComparisonRow) -> Option<bool> {
    match row.verdict {
        Some(Verdict::Better) => Some(true),
        Some(Verdict::Worse) => Some(false),
        _ => None,
    }
}

/// The cost per operation that explains the difference between the two fastest targets.
fn explanation(view: &View<'_>, step: &StepView<'_>) -> Option<Finding> {
    const COSTS: [(&str, &str); 4] = [
        ("device_write_bytes_per_row", "bytes written"),
        ("device_read_bytes_per_row", "bytes read"),
        ("cpu_us_per_row", "CPU"),
        ("switches_per_row", "context switches"),
    ];
    let contest = Contest::of(view, step)?;
    let (next, _) = contest.next().filter(|_| contest.won())?;
    let (mut less, mut more, mut uncertain) = (Vec::new(), Vec::new(), Vec::new());
    for (metric, name) in COSTS {
        let Some(row) = view.compared(step, metric, contest.first, next) else {
            continue;
        };
        let Some((cheaper, ratio)) = cheaper(row).zip(row.ratio) else {
            uncertain.extend((row.verdict == Some(Verdict::Inconclusive)).then_some(name));
            continue;
        };
        let share = format!("{}\u{d7} the {name}", times(ratio));
        if cheaper { &mut less } else { &mut more }.push(share);
    }
    let (a, b) = (view.name(contest.first), view.name(next));
    let what = step.operation.one;
    let at = &step.plan.name;
    if less.is_empty() && !uncertain.is_empty() {
        let text = format!(
            "{at}: which cost per {what} explains why {a} is faster than {b} is inconclusive ({}).",
            uncertain.join(", ")
        );
        return Some(Finding::new(
            NOTE,
            "note",
            text,
            &format!("{}-costs", step.id),
        ));
    }
    if less.is_empty() {
        let text = format!(
            "{at}: no cost per {what} explains why {a} is faster than {b}; look at the latencies \
             and at what each waits for before relying on it."
        );
        return Some(Finding::new("warning", "warn", text, &step.id));
    }
    let mut text = format!("{at}: per {what} {a} needs {} of {b}", less.join(", "));
    if !more.is_empty() {
        text.push_str(&format!(", but {}", more.join(", ")));
    }
    text.push('.');
    let mut finding = Finding::new("why", "note", text, &format!("{}-costs", step.id));
    finding.tags.extend(whole_device(step));
    Some(finding)
}

/// The badge for device bytes that include those of other programs.
fn whole_device(step: &StepView<'_>) -> Option<String> {
    let shared = step
        .cells
        .iter()
        .any(|c| c.summary.device_source == "device");
    shared.then(|| "bytes of the whole device".to_owned())
}

/// The rate of the load generator alone, and the targets that came near it.
fn ceiling(view: &View<'_>, step: &StepView<'_>) -> Option<Finding> {
    let target = (0..view.targets.len()).find(|t| view.ceiling(*t) && step.usable(*t))?;
    let most = step.metric(target, "rate_mean").filter(|v| 0.0 < *v)?;
    let near: Vec<String> = ranking(view, step)
        .into_iter()
        .filter(|(_, rate)| NEAR_CEILING < rate / most)
        .map(|(t, rate)| format!("{} {}", view.name(t), format::percent(rate / most)))
        .collect();
    let mut text = format!(
        "{} keeps nothing: {} {} in {} is what the load generator reaches alone",
        view.name(target),
        format::number(most),
        step.unit(),
        step.plan.name
    );
    if near.is_empty() {
        text.push_str("; every target is below half of it.");
        return Some(Finding::new("ceiling", "note", text, &step.id));
    }
    text.push_str(&format!(
        ". Near it the generator is measured too: {}.",
        near.join(", ")
    ));
    Some(Finding::new("ceiling", "warn", text, &step.id))
}

/// First and last tenth of a target that fell off a cliff.
pub(crate) fn fallen(view: &View<'_>, step: &StepView<'_>, target: usize) -> Option<(f64, f64)> {
    if !step.usable(target) || view.ceiling(target) || brief(step, target) {
        return None;
    }
    let (first, last) = tenths(step, target)?;
    (Flatness::of(last / first) == Flatness::Fell).then_some((first, last))
}

/// Whether every repeat of a target was too short for conclusions from its tenths.
fn brief(step: &StepView<'_>, target: usize) -> bool {
    let mut own = step.cells.iter().filter(|c| c.target == target);
    own.all(|cell| cell.whole_seconds().count() < CLIFF_SECONDS)
}

fn tenths(step: &StepView<'_>, target: usize) -> Option<(f64, f64)> {
    let first = step
        .metric(target, "rate_first_tenth")
        .filter(|v| 0.0 < *v)?;
    Some((first, step.metric(target, "rate_last_tenth")?))
}

fn cliffs(view: &View<'_>, step: &StepView<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut holds = Vec::new();
    let shape = if step.queries() { "time" } else { "knee" };
    let href = format!("{}-{shape}", step.id);
    let at = &step.plan.name;
    for (target, _) in ranking(view, step) {
        let name = view.name(target);
        if let Some((first, last)) = fallen(view, step, target) {
            let text = format!(
                "{name} falls off the cliff in {at}: its last tenth ran at {} {}, {} of its first \
                 tenth ({}).",
                format::number(last),
                step.unit(),
                format::percent(last / first),
                format::number(first)
            );
            found.push(Finding::new("cliff", "bad", text, &href));
        } else if let Some(share) = step
            .metric(target, "flatness")
            .filter(|_| !brief(step, target))
        {
            // The ratios of each repeat, because the medians of the tenths may come from different
            // repeats.
            let class = match Flatness::of(share) {
                Flatness::Kept => "",
                Flatness::Declined => " (declined)",
                Flatness::Fell => " (fell)",
            };
            holds.push(format!("{name} {}{class}", format::percent(share)));
        }
    }
    if !holds.is_empty() && view.steps.len() <= 3 {
        let text = format!(
            "Last tenth against first tenth in {at}: {}.",
            holds.join(", ")
        );
        found.push(Finding::new("tenths", "note", text, &href));
    }
    found
}

fn stops(view: &View<'_>, step: &StepView<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (target, _) in ranking(view, step) {
        let median = step.metric(target, "median_second").filter(|v| 0.0 < *v);
        let worst = step.metric(target, "worst_second");
        let (Some(median), Some(worst)) = (median, worst) else {
            continue;
        };
        if STOP <= worst / median {
            continue;
        }
        let stalled = step.metric(target, "stall_seconds").unwrap_or(0.0);
        let stalls = match format::fixed(stalled, 0).as_str() {
            "0" => "no second counts as a stall".to_owned(),
            "1" => "1 second was a stall".to_owned(),
            n => format!("{n} seconds were stalls"),
        };
        let text = format!(
            "{} stops in {}: its worst second ran at {} {} against a median second of {}; \
             {stalls}.",
            view.name(target),
            step.plan.name,
            format::number(worst),
            step.unit(),
            format::number(median),
        );
        found.push(Finding::new("stall", "bad", text, "stalls"));
    }
    found
}

/// Write amplification of the step that wrote the most.
fn amplification(view: &View<'_>) -> Option<Finding> {
    let written = |s: &&StepView<'_>| {
        let cells = s.cells.iter().map(|c| c.summary.logical_bytes);
        cells.max().unwrap_or(0)
    };
    let step = view.steps.iter().max_by_key(written)?;
    let mut all: Vec<(f64, usize)> = ranking(view, step)
        .into_iter()
        .filter_map(|(t, _)| Some((step.metric(t, "write_amplification")?, t)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let amplifications: Vec<String> = all
        .iter()
        .map(|(value, t)| format!("{} {}\u{d7}", view.name(*t), times(*value)))
        .collect();
    if amplifications.is_empty() {
        return None;
    }
    let text = format!(
        "Write amplification in {}: {}.",
        step.plan.name,
        amplifications.join(", ")
    );
    let mut finding = Finding::new("cost", "note", text, &format!("{}-rum", step.id));
    finding.tags.extend(whole_device(step));
    Some(finding)
}

fn limits_of_validity(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let plan = &view.run.manifest.plan;
    let mut warn = |text: &str, href: &str| {
        found.push(Finding::new("warning", "warn", text.to_owned(), href));
    };
    if plan.repeats < 2 {
        warn(
            "One repeat: intervals come from within the run and do not know how much one run \
             differs from the next.",
            "method",
        );
    }
    if view.run.noise.is_empty() {
        warn(
            "This host was not calibrated: a noise floor of 2 % is assumed, so small differences \
             may be noise. Run `romanesco lab calibrate`.",
            "method",
        );
    }
    if !view.run.summary.complete && view.failed.is_empty() {
        warn(
            "The run is not complete: steps of the plan are missing.",
            "environment",
        );
    }
    found
}
