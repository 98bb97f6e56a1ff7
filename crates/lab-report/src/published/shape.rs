//! Published shapes, and whether a run reproduces them.
//!
//! - S1. A shape is a ratio of two numbers, never a size. There is one ratio for each repeat; the
//!   median is shown, and the verdict must be the same at the median and at both ends of the 95 %
//!   interval.
//! - S2. A published ratio is reproduced within a factor of [`BAND`] on either side, if the ratio
//!   is on the published side of no effect. Beyond the band on that side the direction is the same,
//!   stronger or weaker.
//! - S3. Fewer than [`REPEATS_MIN`] repeats, or a repeat of less than [`SECONDS_MIN`] in the steps
//!   of the ratio, are inconclusive.
//!   So is a ratio with a repeat that other programs disturbed.
//! - S4. Whether data exceed memory is decided by the bytes loaded, not by those planned.
//! - S5. A shape that was not measured has a reason.

use serde::{Deserialize, Serialize};

use super::why_not;
use crate::analysis::{self, Flatness};
use crate::format;
use crate::record::{RunRecord, StepSummary};

/// A published ratio is reproduced up to this factor from it.
const BAND: f64 = 1.5;

/// Minimum distance of a ratio from 1 for an effect.
const CLEAR: f64 = 0.1;

/// Minimum number of repeats for a verdict.
const REPEATS_MIN: usize = 3;

/// Minimum duration of the steps of a ratio, in each repeat.
const SECONDS_MIN: f64 = 30.0;

/// Data exceed memory when they are at least this many times its cap.
const OUTGROWN: f64 = 3.0;

/// Whether a published shape was reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reproduced {
    /// The ratio is within the band around the published one.
    Yes,
    /// The direction is the same, and the effect is stronger than published.
    Stronger,
    /// The direction is the same, and the effect is weaker than published.
    Weaker,
    /// There is no effect, or the opposite one.
    No,
    /// Too few repeats, too little time, or repeats that differ too much.
    Inconclusive,
    /// A number is missing.
    NotMeasured,
    /// The shape depends on caps that were not in force for the target.
    NotJudged,
}

/// A published shape, and its counterpart for a target of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The target.
    pub target: String,
    /// The published finding, in a sentence.
    pub claim: String,
    /// The published ratio; `None` if the article has it in words or in a plot.
    pub published: Option<f64>,
    /// The measured ratio: the median of the repeats.
    pub measured: Option<f64>,
    /// Its 95 % interval, if there are enough repeats for one.
    #[serde(default)]
    pub between: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Reproduced,
    /// Factor by which the effect is stronger or weaker.
    #[serde(default)]
    pub times: Option<f64>,
    /// Why it is inconclusive, or was not measured.
    #[serde(default)]
    pub reason: String,
}

/// The verdict on a ratio, with the factor by which its effect is stronger or weaker.
pub(super) type Judged = (Reproduced, Option<f64>);

impl Shape {
    /// A shape with a published ratio.
    pub(super) fn new(target: &str, claim: &str, published: f64, measured: &Measured) -> Shape {
        Shape::judged(target, claim, Some(published), measured, |ratio| {
            let on_side = match published < 1.0 {
                true => ratio <= 1.0 - CLEAR,
                false => 1.0 + CLEAR <= ratio,
            };
            banded(published, ratio, published > 1.0, on_side)
        })
    }

    /// A shape that `judge` decides, for the median and both ends of the interval.
    pub(super) fn judged(
        target: &str,
        claim: &str,
        published: Option<f64>,
        measured: &Measured,
        judge: impl Fn(f64) -> Judged,
    ) -> Shape {
        let mut shape = Shape {
            target: target.to_owned(),
            claim: claim.to_owned(),
            published,
            measured: measured.value,
            between: measured.between,
            verdict: Reproduced::NotMeasured,
            times: None,
            reason: String::new(),
        };
        let Some(value) = measured.value else {
            shape.reason = measured.why_missing();
            return shape;
        };
        shape.verdict = Reproduced::Inconclusive;
        if let Some(reason) = measured.too_little() {
            shape.reason = reason;
            return shape;
        }
        let (verdict, times) = judge(value);
        let same = |end: f64| judge(end).0 == verdict;
        if measured
            .between
            .is_some_and(|ends| ends.into_iter().all(same))
        {
            (shape.verdict, shape.times) = (verdict, times);
        } else {
            "the repeats differ too much".clone_into(&mut shape.reason);
        }
        shape
    }

    /// Mark a shape as one that cannot be judged, whatever its ratio.
    pub(super) fn unjudged(self) -> Shape {
        Shape {
            verdict: Reproduced::NotJudged,
            times: None,
            reason: String::new(),
            ..self
        }
    }

    /// The verdict in words.
    #[must_use]
    pub fn verdict_text(&self) -> String {
        let times = |how: &str| match self.times {
            Some(times) => format!("same direction, {} x {how}", format::maybe(Some(times))),
            None => format!("same direction, {how}"),
        };
        match self.verdict {
            Reproduced::Yes => "reproduced".to_owned(),
            Reproduced::Stronger => times("stronger"),
            Reproduced::Weaker => times("weaker"),
            Reproduced::No => "not reproduced".to_owned(),
            Reproduced::Inconclusive => format!("inconclusive: {}", self.reason),
            Reproduced::NotMeasured if self.reason.is_empty() => "not measured".to_owned(),
            Reproduced::NotMeasured => format!("not measured: {}", self.reason),
            Reproduced::NotJudged => "not judged".to_owned(),
        }
    }

    /// The published ratio; in words where the article has no number.
    #[must_use]
    pub fn published_text(&self) -> String {
        match self.published {
            Some(ratio) => format::maybe(Some(ratio)),
            None => "in words".to_owned(),
        }
    }

    /// The measured ratio, with its interval if it has one.
    #[must_use]
    pub fn measured_text(&self) -> String {
        let measured = format::maybe(self.measured);
        match self
            .between
            .map(|ends| ends.map(|end| format::maybe(Some(end))))
        {
            Some([low, high]) => format!("{measured} [{low} to {high}]"),
            None => measured,
        }
    }

    /// The shape in a line for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{}: {}: {}, {} (published {})",
            self.target,
            self.claim,
            self.verdict_text(),
            self.measured_text(),
            self.published_text()
        )
    }
}

/// The verdict on an effect beside the published one (S2). `larger`: more of it is stronger;
/// `on_side`: it is an effect in the published direction.
pub(super) fn banded(published: f64, effect: f64, larger: bool, on_side: bool) -> Judged {
    if !on_side {
        return (Reproduced::No, None);
    }
    let times = effect / published;
    if (1.0 / BAND..=BAND).contains(&times) {
        return (Reproduced::Yes, None);
    }
    // An effect that vanishes has no factor.
    let factor = Some(times.max(1.0 / times)).filter(|factor| 0.0 < times && factor.is_finite());
    match (1.0 < times) == larger {
        true => (Reproduced::Stronger, factor),
        false => (Reproduced::Weaker, factor),
    }
}

/// The verdict on an engine that is reported to keep its rate.
pub(super) fn stays(published: Option<f64>, kept: f64) -> Judged {
    let on_side = Flatness::of(kept) == Flatness::Kept;
    match published {
        Some(published) => banded(published, kept, true, on_side),
        None if on_side => (Reproduced::Yes, None),
        None => (Reproduced::No, None),
    }
}

/// The verdict on an engine that is reported to fall off a cliff.
pub(super) fn falls(published: Option<f64>, kept: f64) -> Judged {
    match (published, Flatness::of(kept)) {
        (Some(published), class) => banded(published, kept, false, class != Flatness::Kept),
        (None, Flatness::Fell) => (Reproduced::Yes, None),
        (None, Flatness::Declined) => (Reproduced::Weaker, None),
        (None, Flatness::Kept) => (Reproduced::No, None),
    }
}

/// The measured side of a shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    value: Option<f64>,
    between: Option<[f64; 2]>,
    repeats: usize,
    /// Duration of the steps of the ratio in the shortest repeat.
    seconds: f64,
    /// The first repeat with a step that other programs disturbed.
    disturbed: Option<u32>,
    /// Why there is no value (S5).
    missing: String,
}

impl Measured {
    /// The ratio `of` each repeat, of numbers of these targets and steps; nothing if one of the
    /// steps is missing or not valid.
    pub(super) fn of(
        run: &RunRecord,
        steps: &[(&str, &str)],
        of: impl Fn(&Repeat<'_>) -> Option<f64>,
    ) -> Measured {
        for (target, step) in steps {
            let why = why_not(run, target, step);
            if !why.is_empty() {
                return Measured {
                    missing: format!("step {step} of {target}: {why}"),
                    ..Measured::default()
                };
            }
        }
        let repeats = (1..=run.manifest.plan.repeats).map(|repeat| Repeat { run, repeat });
        let whole = |r: &Repeat<'_>| steps.iter().all(|(t, s)| r.summary(t, s).is_some());
        let repeats: Vec<Repeat<'_>> = repeats.filter(whole).collect();
        let ratios: Vec<f64> = repeats.iter().filter_map(of).collect();
        let seconds = repeats.iter().map(|r| r.seconds(steps));
        let disturbed = repeats.iter().find(|r| r.disturbed(steps));
        Measured {
            value: analysis::median(&ratios),
            between: analysis::mean_between(&ratios),
            repeats: ratios.len(),
            seconds: seconds.fold(f64::INFINITY, f64::min),
            disturbed: disturbed.map(|r| r.repeat),
            missing: "a number that it compares is missing".to_owned(),
        }
    }

    /// The same for a ratio that says something only if the data at the end of a step exceed memory
    /// (S4): repeats in which they do not are left out.
    pub(super) fn beyond_memory(
        run: &RunRecord,
        steps: &[(&str, &str)],
        (target, step): (&str, &str),
        of: impl Fn(&Repeat<'_>) -> Option<f64>,
    ) -> Measured {
        let outgrown = |r: &Repeat<'_>| {
            let loaded = r.loaded(target, step);
            loaded.is_some_and(|loaded| OUTGROWN <= loaded)
        };
        let measured = Measured::of(run, steps, |r| of(r).filter(|_| outgrown(r)));
        let repeats = (1..=run.manifest.plan.repeats).map(|repeat| Repeat { run, repeat });
        let done: Vec<Repeat<'_>> = repeats
            .filter(|r| r.summary(target, step).is_some())
            .collect();
        if measured.value.is_some() || done.is_empty() || done.iter().any(outgrown) {
            return measured;
        }
        let most = done.iter().filter_map(|r| r.loaded(target, step));
        let missing = match most.max_by(f64::total_cmp) {
            Some(most) => format!(
                "loaded {} x of memory, at least {OUTGROWN} x are needed",
                // Rounded down: 2.999 is not 3.
                format::fixed((most * 100.0).floor() / 100.0, 2)
            ),
            None => "memory is not capped, so data cannot outgrow it".to_owned(),
        };
        Measured {
            missing,
            ..measured
        }
    }

    /// The same through a function that keeps the order of numbers.
    pub(super) fn map(self, by: impl Fn(f64) -> f64) -> Measured {
        Measured {
            value: self.value.map(&by),
            between: self.between.map(|ends| ends.map(&by)),
            ..self
        }
    }

    /// Why there is no value, with what else would not suffice for a verdict (S5).
    fn why_missing(&self) -> String {
        let short = (self.seconds < SECONDS_MIN).then(|| {
            format!(
                "steps of {} s, at least {SECONDS_MIN} s are needed",
                format::maybe(Some(self.seconds))
            )
        });
        // A step that is not valid has no duration.
        let short = short.filter(|_| 0.0 < self.seconds);
        let all: Vec<&str> = [self.missing.as_str()]
            .into_iter()
            .chain(short.as_deref())
            .filter(|reason| !reason.is_empty())
            .collect();
        all.join("; ")
    }

    /// Why it is too little for a verdict (S3).
    fn too_little(&self) -> Option<String> {
        if self.repeats < REPEATS_MIN {
            let plural = if self.repeats == 1 { "" } else { "s" };
            return Some(format!(
                "{} repeat{plural}, at least {REPEATS_MIN} are needed",
                self.repeats
            ));
        }
        if self.seconds < SECONDS_MIN {
            return Some(format!(
                "repeats of {} s, at least {SECONDS_MIN} s are needed",
                format::maybe(Some(self.seconds))
            ));
        }
        let repeat = self.disturbed?;
        Some(format!("other programs disturbed repeat {repeat}"))
    }
}

/// One repeat of a run.
pub(super) struct Repeat<'a> {
    run: &'a RunRecord,
    repeat: u32,
}

impl<'a> Repeat<'a> {
    /// The valid summary of a step.
    pub(super) fn summary(&self, target: &str, step: &str) -> Option<&'a StepSummary> {
        let mut all = self.run.steps.iter().filter_map(|s| s.summary.as_ref());
        let own = |s: &&StepSummary| {
            s.target == target && s.step == step && s.repeat == self.repeat && s.valid
        };
        all.find(own)
    }

    /// A metric, or an experiment's own number, of a step.
    pub(super) fn figure(&self, target: &str, step: &str, name: &str) -> Option<f64> {
        let summary = self.summary(target, step)?;
        let metric = analysis::metrics(summary).get(name).copied().flatten();
        metric.or_else(|| summary.extra.get(name).copied())
    }

    /// The bytes loaded at the end of a step, by the cap of memory (S4); `None` without one.
    fn loaded(&self, target: &str, step: &str) -> Option<f64> {
        let loaded = self.summary(target, step)?.live_bytes as f64;
        let memory = self.run.manifest.plan.limits.memory?;
        Some(loaded / memory.bytes() as f64)
    }

    /// Whether other programs disturbed one of the steps.
    fn disturbed(&self, steps: &[(&str, &str)]) -> bool {
        let mut all = steps.iter().filter_map(|(t, s)| self.summary(t, s));
        all.any(|summary| !summary.disturbed().is_empty())
    }

    /// The duration of the steps, of the target with the least.
    fn seconds(&self, steps: &[(&str, &str)]) -> f64 {
        let of = |target: &str| -> f64 {
            let own = steps.iter().filter(|(t, _)| *t == target);
            own.filter_map(|(t, s)| Some(self.summary(t, s)?.seconds))
                .sum()
        };
        steps
            .iter()
            .map(|(t, _)| of(t))
            .fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn measured(value: f64, spread: f64) -> Measured {
        Measured {
            value: Some(value),
            between: Some([value / spread, value * spread]),
            repeats: REPEATS_MIN,
            seconds: SECONDS_MIN,
            disturbed: None,
            missing: String::new(),
        }
    }

    fn verdict(published: f64, value: f64, spread: f64) -> String {
        Shape::new("t", "c", published, &measured(value, spread)).verdict_text()
    }

    #[test]
    fn the_band_has_two_sides() {
        assert_eq!(verdict(3.0, 2.1, 1.0), "reproduced", "S2");
        assert_eq!(verdict(3.0, 4.4, 1.0), "reproduced", "S2");
        assert_eq!(verdict(3.0, 9.0, 1.0), "same direction, 3.00 x stronger");
        assert_eq!(verdict(3.0, 1.5, 1.0), "same direction, 2.00 x weaker");
        assert_eq!(verdict(3.0, 1.05, 1.0), "not reproduced");
        assert_eq!(verdict(0.5, 0.1, 1.0), "same direction, 5.00 x stronger");
        assert_eq!(verdict(0.1, 0.5, 1.0), "same direction, 5.00 x weaker");
        // Within the factor, but without the effect.
        assert_eq!(verdict(0.73, 1.05, 1.0), "not reproduced", "S2");
    }

    #[test]
    fn both_ends_of_the_interval_have_the_verdict() {
        assert_eq!(verdict(3.0, 3.0, 1.4), "reproduced", "S1");
        let noisy = "inconclusive: the repeats differ too much";
        assert_eq!(verdict(3.0, 3.0, 1.6), noisy, "S1");
        let text = Shape::new("t", "c", 3.0, &measured(3.0, 1.2)).text();
        assert!(
            text.contains("reproduced, 3.00 [2.50 to 3.60] (published 3.00)"),
            "{text}"
        );
    }

    #[test]
    fn few_repeats_and_short_ones_are_inconclusive() {
        let few = Measured {
            repeats: 2,
            between: None,
            ..measured(3.0, 1.0)
        };
        let short = Measured {
            seconds: 25.0,
            ..measured(3.0, 1.0)
        };
        let text = |measured: &Measured| Shape::new("t", "c", 3.0, measured).verdict_text();
        assert_eq!(
            text(&few),
            "inconclusive: 2 repeats, at least 3 are needed",
            "S3"
        );
        let expected = "inconclusive: repeats of 25.0 s, at least 30 s are needed";
        assert_eq!(text(&short), expected, "S3");
        assert_eq!(text(&Measured::default()), "not measured");
        let disturbed = Measured {
            disturbed: Some(2),
            ..measured(3.0, 1.0)
        };
        let expected = "inconclusive: other programs disturbed repeat 2";
        assert_eq!(text(&disturbed), expected, "S3");
    }

    #[test]
    fn what_was_not_measured_has_its_reason() {
        let step = |repeat: u32, bytes: u64, seconds: f64| StepSummary {
            live_bytes: bytes,
            seconds,
            ..fixture::step("lmdb", repeat, 100.0)
        };
        let text = |steps: Vec<StepSummary>, memory: Option<u64>, figure: &str| {
            let all: Vec<_> = steps.iter().map(|s| (s.clone(), Vec::new())).collect();
            let mut run = fixture::run("r", &["lmdb"], 3, steps);
            run.manifest.plan.limits.memory = memory.map(stdx::ByteSize);
            run.summary = analysis::summarize(&run.manifest, &all, true);
            let place = ("lmdb", "load");
            let of = |r: &Repeat<'_>| r.figure("lmdb", "load", figure);
            let measured = Measured::beyond_memory(&run, &[place], place, of);
            Shape::new("lmdb", "c", 3.0, &measured).text()
        };
        let repeats = |bytes, seconds| (1..=3).map(|r| step(r, bytes, seconds)).collect();
        let found = text(repeats(900, 2.0), Some(1000), "rate_mean");
        let why = "not measured: loaded 0.90 x of memory, at least 3 x are needed; steps of \
                   2.00 s, at least 30 s are needed";
        assert!(found.contains(why), "S5: {found}");
        let found = text(repeats(900, 40.0), None, "rate_mean");
        assert!(
            found.contains("not measured: memory is not capped"),
            "S5: {found}"
        );
        let found = text(repeats(9000, 40.0), Some(1000), "nonsense");
        assert!(
            found.contains("not measured: a number that it"),
            "S5: {found}"
        );
        let found = text(Vec::new(), Some(1000), "rate_mean");
        assert!(
            found.contains("not measured: step load of lmdb: "),
            "S5: {found}"
        );
        let found = text(repeats(9000, 40.0), Some(1000), "rate_mean");
        assert!(!found.contains("not measured"), "{found}");
    }

    #[test]
    fn a_disturbed_repeat_is_found_in_the_run() {
        let mut steps = fixture::repeated(&[fixture::step("lmdb", 1, 100.0)]);
        let found = |steps: &[StepSummary]| {
            let run = fixture::run("r", &["lmdb"], 3, steps.to_vec());
            let measured = Measured::of(&run, &[("lmdb", "load")], |r| {
                r.figure("lmdb", "load", "rate_mean")
            });
            measured.disturbed
        };
        assert_eq!(found(&steps), None);
        steps[1] = fixture::disturbed_step("lmdb", 2, 100.0, "a backup");
        assert_eq!(found(&steps), Some(2), "S3");
    }

    #[test]
    fn a_rate_that_declines_neither_stays_nor_falls() {
        let words = |judged: Judged| judged.0;
        assert_eq!(words(stays(None, 0.84)), Reproduced::No);
        assert_eq!(words(stays(None, 0.85)), Reproduced::Yes);
        assert_eq!(words(stays(Some(0.9), 1.5)), Reproduced::Stronger);
        assert_eq!(words(falls(None, 0.3)), Reproduced::Yes);
        assert_eq!(words(falls(None, 0.31)), Reproduced::Weaker);
        assert_eq!(words(falls(Some(0.04), 0.84)), Reproduced::Weaker);
        assert_eq!(words(falls(Some(0.04), 0.85)), Reproduced::No);
    }
}
