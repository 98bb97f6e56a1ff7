//! The verdict card: what the data say, one line each, with what weakens it.
//!
//! A target is called faster or slower only by [`super::compare`]; invalid results are named first
//! and take part in no comparison.

use serde::Serialize;

use super::compare::{Ratio, Word, times};
use super::format;
use super::metrics::Better;
use super::model::{StepView, View};
use super::svg;

/// A last tenth below this share of the first tenth is called a cliff.
const CLIFF: f64 = 0.5;
/// A worst second below this share of the median second is called a stop.
const STOP: f64 = 0.1;

/// One line of the card.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// The verdict word, or `note`, `warning`.
    pub(crate) word: String,
    /// Its style class.
    pub(crate) class: String,
    /// The sentence.
    pub(crate) text: String,
    /// What weakens it: `uncalibrated`, `within-run`.
    pub(crate) tags: Vec<String>,
    /// The section with the details, as an anchor.
    pub(crate) href: String,
}

/// A target's place in a step.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rank {
    pub(crate) target: String,
    pub(crate) color: usize,
    pub(crate) rate: String,
    /// SVG.
    pub(crate) spark: String,
    pub(crate) ratio: String,
    pub(crate) interval: String,
    /// SVG, empty without an interval.
    pub(crate) mark: String,
    pub(crate) word: String,
    pub(crate) class: String,
}

/// All targets of a step, the fastest first, invalid ones last.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct League {
    pub(crate) step: String,
    pub(crate) href: String,
    pub(crate) about: String,
    pub(crate) unit: String,
    pub(crate) rows: Vec<Rank>,
    pub(crate) tags: Vec<String>,
}

/// The card.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) headline: String,
    pub(crate) findings: Vec<Finding>,
    pub(crate) leagues: Vec<League>,
}

/// Reads the verdict from the data.
pub(crate) fn verdict(view: &View<'_>) -> Verdict {
    let mut findings = invalid(view);
    let mut wins: Vec<(usize, &str)> = Vec::new();
    for step in &view.steps {
        if let Some((finding, winner)) = fastest(view, step) {
            wins.extend(winner.map(|w| (w, step.plan.name.as_str())));
            findings.push(finding);
        }
        findings.extend(explanation(view, step));
    }
    findings.extend(cliffs(view));
    findings.extend(stops(view));
    findings.extend(amplification(view));
    findings.extend(limits_of_validity(view));
    Verdict {
        headline: headline(view, &wins, &findings),
        findings,
        leagues: view.steps.iter().map(|s| league(view, s)).collect(),
    }
}

/// Usable targets of a step with their mean rates, the fastest first.
fn ranking(view: &View<'_>, step: &StepView<'_>) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> = (0..view.targets.len())
        .filter(|t| step.usable(*t))
        .filter_map(|t| Some((t, step.metric(t, "rate_mean")?)))
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

/// The ratio of a metric of two targets, when both have an interval.
pub(crate) fn ratio(step: &StepView<'_>, metric: &str, a: usize, b: usize) -> Option<Ratio> {
    let estimate = |t: usize| {
        step.results
            .get(t)
            .copied()
            .flatten()?
            .estimates
            .get(metric)
    };
    Ratio::of(estimate(a)?, estimate(b)?)
}

fn fastest(view: &View<'_>, step: &StepView<'_>) -> Option<(Finding, Option<usize>)> {
    let ranked = ranking(view, step);
    let (first, rate) = *ranked.first()?;
    let name = view.name(first);
    let Some((second, _)) = ranked.get(1).copied() else {
        let text = format!(
            "{name} ran {} at {} {}; there is no other valid target to compare with.",
            step.plan.name,
            format::number(rate),
            step.unit()
        );
        return Some((note("note", "note", text, &step.id), None));
    };
    let other = view.name(second);
    let floor = view.floor("rate_mean");
    let Some(ratio) = ratio(step, "rate_mean", first, second) else {
        let text = format!(
            "{}: {name} ran at {} {}, the most; without intervals nothing more can be said.",
            step.plan.name,
            format::number(rate),
            step.unit()
        );
        return Some((note("note", "note", text, &step.id), None));
    };
    let word = ratio.word(Better::Higher, floor);
    let text = match word {
        Word::Faster => format!(
            "{}: {name} is faster than every other valid target: {} {}, {}\u{d7} the rate of \
             {other}, the next ({}).",
            step.plan.name,
            format::number(rate),
            step.unit(),
            times(ratio.median),
            ratio.interval()
        ),
        _ => format!(
            "{}: no difference between {name} and {other}: ratio {} ({}).",
            step.plan.name,
            times(ratio.median),
            ratio.interval()
        ),
    };
    let mut finding = note(word.text(), word.class(), text, &step.id);
    finding.tags = ratio
        .caveats(floor)
        .into_iter()
        .map(str::to_owned)
        .collect();
    Some((finding, (word == Word::Faster).then_some(first)))
}

/// Which cost per row goes with the difference between the two fastest targets; nothing where
/// queries were compared, for the costs are per row written.
fn explanation(view: &View<'_>, step: &StepView<'_>) -> Option<Finding> {
    const COSTS: [(&str, &str); 4] = [
        ("device_write_bytes_per_row", "bytes written"),
        ("device_read_bytes_per_row", "bytes read"),
        ("cpu_us_per_row", "CPU"),
        ("switches_per_row", "context switches"),
    ];
    if step.queries() {
        return None;
    }
    let ranked = ranking(view, step);
    let (first, second) = (ranked.first()?.0, ranked.get(1)?.0);
    let rates = ratio(step, "rate_mean", first, second)?;
    if !rates.counts(view.floor("rate_mean")) {
        return None;
    }
    let (mut less, mut more) = (Vec::new(), Vec::new());
    for (metric, name) in COSTS {
        let Some(cost) = ratio(step, metric, first, second) else {
            continue;
        };
        let said = format!("{}\u{d7} the {name}", times(cost.median));
        if cost.counts(view.floor(metric)) && cost.median < 0.95 {
            less.push(said);
        } else if cost.counts(view.floor(metric)) && cost.median > 1.05 {
            more.push(said);
        }
    }
    let (a, b) = (view.name(first), view.name(second));
    if less.is_empty() {
        let text = format!(
            "{}: no cost per row explains why {a} is faster than {b}; look at the latencies and \
             at what each waits for before relying on it.",
            step.plan.name
        );
        return Some(note("warning", "warn", text, &step.id));
    }
    let mut text = format!("Per row {a} needs {} of {b}", less.join(", "));
    if !more.is_empty() {
        text.push_str(&format!(", but {}", more.join(", ")));
    }
    text.push('.');
    Some(note("why", "note", text, &step.id))
}

fn invalid(view: &View<'_>) -> Vec<Finding> {
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
            found.push(note("invalid", "invalid", text, &step.id));
        }
    }
    for (directory, reason) in &view.failed {
        let text = format!("Step {directory} did not come to its end: {reason}.");
        found.push(note("invalid", "invalid", text, "environment"));
    }
    found
}

fn cliffs(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for step in &view.steps {
        let mut holds = Vec::new();
        let shape = if step.queries() { "time" } else { "knee" };
        let href = format!("{}-{shape}", step.id);
        for (target, _) in ranking(view, step) {
            let first = step.metric(target, "rate_first_tenth").filter(|v| *v > 0.0);
            let last = step.metric(target, "rate_last_tenth");
            let (Some(first), Some(last)) = (first, last) else {
                continue;
            };
            let (name, share) = (view.name(target), last / first);
            if share >= CLIFF {
                holds.push(format!("{name} {}", format::percent(share)));
                continue;
            }
            let text = format!(
                "{name} falls off the cliff in {}: its last tenth ran at {} {}, {} of its \
                 first tenth.",
                step.plan.name,
                format::number(last),
                step.unit(),
                format::percent(share)
            );
            found.push(note("cliff", "bad", text, &href));
        }
        if !holds.is_empty() && view.steps.len() <= 3 {
            let text = format!(
                "Last tenth against first tenth in {}: {}.",
                step.plan.name,
                holds.join(", ")
            );
            found.push(note("flat", "note", text, &href));
        }
    }
    found
}

fn stops(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for step in &view.steps {
        for (target, _) in ranking(view, step) {
            let median = step.metric(target, "median_second").filter(|v| *v > 0.0);
            let worst = step.metric(target, "worst_second");
            let (Some(median), Some(worst)) = (median, worst) else {
                continue;
            };
            if worst / median >= STOP {
                continue;
            }
            let stalled = step.metric(target, "stall_seconds").unwrap_or(0.0);
            let text = format!(
                "{} stops in {}: its worst second ran at {} {} against a median second of {}; \
                 {} s were stalls.",
                view.name(target),
                step.plan.name,
                format::fixed(worst, 0),
                step.unit(),
                format::number(median),
                format::fixed(stalled, 0)
            );
            found.push(note("stall", "bad", text, "stalls"));
        }
    }
    found
}

/// Write amplification of the step that wrote the most.
fn amplification(view: &View<'_>) -> Option<Finding> {
    let step = view.steps.iter().max_by_key(|s| {
        s.cells
            .iter()
            .map(|c| c.summary.logical_bytes)
            .max()
            .unwrap_or(0)
    })?;
    let mut all: Vec<(f64, usize)> = (0..view.targets.len())
        .filter(|t| step.usable(*t))
        .filter_map(|t| Some((step.metric(t, "write_amplification")?, t)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let said: Vec<String> = all
        .iter()
        .map(|(value, t)| format!("{} {}\u{d7}", view.name(*t), times(*value)))
        .collect();
    if said.is_empty() {
        return None;
    }
    let text = format!(
        "Write amplification in {}: {}.",
        step.plan.name,
        said.join(", ")
    );
    Some(note("cost", "note", text, &format!("{}-rum", step.id)))
}

fn limits_of_validity(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let plan = &view.run.manifest.plan;
    if plan.repeats < 2 {
        let text = "One repeat: intervals come from within the run and do not know how much one \
                    run differs from the next.";
        found.push(note("warning", "warn", text.to_owned(), "method"));
    }
    if view.run.noise.is_empty() {
        let text = "This host was not calibrated: the A/A noise floor is unknown, so small \
                    differences may be noise. Run `lab calibrate --aa 3`.";
        found.push(note("warning", "warn", text.to_owned(), "method"));
    }
    if !view.run.summary.complete {
        let text = "The run is not complete: steps of the plan are missing.";
        found.push(note("warning", "warn", text.to_owned(), "environment"));
    }
    found
}

fn headline(view: &View<'_>, wins: &[(usize, &str)], findings: &[Finding]) -> String {
    if view.steps.is_empty() {
        return "No step of this run came to its end.".to_owned();
    }
    if let ([step], [(winner, _)]) = (view.steps.as_slice(), wins) {
        let next = ranking(view, step).get(1).map(|r| r.0);
        if let Some(r) = next.and_then(|n| ratio(step, "rate_mean", *winner, n)) {
            return format!(
                "{} is faster: {}\u{d7} the rate of the next",
                view.name(*winner),
                times(r.median)
            );
        }
    }
    let mut best: Option<(usize, usize)> = None;
    for target in 0..view.targets.len() {
        let count = wins.iter().filter(|w| w.0 == target).count();
        if count > 0 && best.is_none_or(|(_, c)| count > c) {
            best = Some((target, count));
        }
    }
    match best {
        Some((target, count)) => format!(
            "{} is faster than every other valid target in {count} of {} steps",
            view.name(target),
            view.steps.len()
        ),
        None if findings.iter().any(|f| f.word == Word::NoDifference.text()) => {
            "No difference between the two fastest targets".to_owned()
        }
        None => "No comparison is possible".to_owned(),
    }
}

fn league(view: &View<'_>, step: &StepView<'_>) -> League {
    let ranked = ranking(view, step);
    let best = ranked.first().map(|r| r.0);
    let floor = view.floor("rate_mean");
    let pairs: Vec<(usize, Option<Ratio>)> = ranked
        .iter()
        .map(|(t, _)| (*t, best.and_then(|b| ratio(step, "rate_mean", *t, b))))
        .collect();
    let least = pairs
        .iter()
        .filter_map(|p| p.1)
        .map(|r| r.low)
        .fold(0.8, f64::min)
        .max(1.0 / 1024.0);
    let mut tags: Vec<String> = Vec::new();
    for caveat in pairs
        .iter()
        .filter_map(|p| p.1)
        .flat_map(|r| r.caveats(floor))
    {
        if !tags.iter().any(|t| t == caveat) {
            tags.push(caveat.to_owned());
        }
    }
    let mut rows: Vec<Rank> = pairs
        .iter()
        .map(|(t, r)| rank(view, step, *t, *r, best == Some(*t), least))
        .collect();
    let rest = (0..view.targets.len()).filter(|t| !ranked.iter().any(|r| r.0 == *t));
    rows.extend(rest.map(|t| rank(view, step, t, None, false, least)));
    League {
        step: step.plan.name.clone(),
        href: step.id.clone(),
        about: step.plan.about.clone(),
        unit: step.unit().to_owned(),
        rows,
        tags,
    }
}

fn rank(
    view: &View<'_>,
    step: &StepView<'_>,
    target: usize,
    ratio: Option<Ratio>,
    best: bool,
    least: f64,
) -> Rank {
    let (name, color) = (view.name(target), view.color(target));
    let floor = view.floor("rate_mean");
    let (word, class) = match ratio {
        _ if !step.usable(target) => (Word::Invalid.text(), Word::Invalid.class()),
        _ if best => ("reference", "ref"),
        Some(r) => (
            r.word(Better::Higher, floor).text(),
            r.word(Better::Higher, floor).class(),
        ),
        None => (format::MISSING, "invalid"),
    };
    let spark = step
        .cells
        .iter()
        .find(|c| c.target == target && c.shown)
        .map(|c| {
            let load = c.record.series.iter().filter(|r| r.phase != "settle");
            let points: Vec<_> = load.map(|r| (r.t, Some(step.rate(r)))).collect();
            svg::sparkline(&points, color, &format!("rate of {name} over time"))
        });
    let mark = ratio.filter(|_| !best).map(|r| {
        let mark = svg::Mark {
            median: r.median,
            low: r.low,
            high: r.high,
            floor: floor.unwrap_or(0.0),
            color,
        };
        svg::mark(
            &mark,
            least,
            1.25,
            &format!("{name}: {}, {}", times(r.median), r.interval()),
        )
    });
    let shown = ratio.filter(|_| !best);
    Rank {
        target: name.to_owned(),
        color,
        rate: format::maybe(step.metric(target, "rate_mean")),
        spark: spark.unwrap_or_default(),
        ratio: match shown {
            Some(r) => format!("{}\u{d7}", times(r.median)),
            None if best => "1".to_owned(),
            None => format::MISSING.to_owned(),
        },
        interval: shown.map_or(String::new(), |r| {
            format!("{} \u{2013} {}", times(r.low), times(r.high))
        }),
        mark: mark.unwrap_or_default(),
        word: word.to_owned(),
        class: class.to_owned(),
    }
}

fn note(word: &str, class: &str, text: String, href: &str) -> Finding {
    Finding {
        word: word.to_owned(),
        class: class.to_owned(),
        text,
        tags: Vec::new(),
        href: href.to_owned(),
    }
}
