//! Stalls, by the frozen definition ([`StallRule::FROZEN`]).
//!
//! S1. Only whole seconds of the load count (see the module `second`).
//! S2. A second is a stall second when its main rate is 0, or below 10 % of the median of the up to
//!     30 whole seconds before it.
//! S3. With fewer than 5 seconds before it there is no median: then only a rate of 0 is a stall.
//! S4. A stalled second enters the window like any other. A lasting drop is so a stall for about 15
//!     seconds and from then on the new rate; a standstill stays a stall as long as it lasts, by
//!     the 0.
//! S5. A load whose main rate is never above 0 has no stalls: there is no rate to fall from.
//! S6. A stall is a run of stall seconds.

use super::second::whole_seconds;
use super::statistic::median;
use crate::record::{Main, SeriesRow, Stall, StallRule};

/// Seconds before a second below which there is no median to compare it with.
const WINDOW_MIN: usize = 5;
/// Share of a second spent waiting, above which the pressure is named as a cause.
const PRESSURE: f64 = 0.5;
/// Share of the seconds of a stall in which something must be seen to be named, as a divisor: a
/// third. Less is a coincidence.
const SEEN_SHARE: usize = 3;

/// One whole second of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Second<'a> {
    pub(super) row: &'a SeriesRow,
    /// When it began, in seconds from the beginning of the step.
    pub(super) start: f64,
    /// How long it is; 1 but for a late tick.
    pub(super) seconds: f64,
    /// The main rate.
    pub(super) rate: f64,
}

/// The stalls of a step, in order.
#[must_use]
pub fn stalls(series: &[SeriesRow], main: Main) -> Vec<Stall> {
    runs(&whole_seconds(series, main))
        .iter()
        .map(|run| stall(run))
        .collect()
}

/// Seconds that were stalls.
pub(super) fn stall_seconds(seconds: &[Second<'_>]) -> u64 {
    let total: f64 = runs(seconds).iter().flatten().map(|s| s.seconds).sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of a run: positive and small; the cast saturates"
    )]
    let whole = total.round() as u64;
    whole
}

/// The runs of stall seconds.
fn runs<'a>(seconds: &[Second<'a>]) -> Vec<Vec<Second<'a>>> {
    let rates: Vec<f64> = seconds.iter().map(|s| s.rate).collect();
    if !rates.iter().any(|&rate| 0.0 < rate) {
        return Vec::new();
    }
    let mut runs: Vec<Vec<Second<'a>>> = Vec::new();
    let mut within = false;
    for (place, second) in seconds.iter().enumerate() {
        let stalled = is_stalled(rates.get(..place).unwrap_or(&[]), second.rate);
        if stalled {
            match runs.last_mut().filter(|_| within) {
                Some(run) => run.push(*second),
                None => runs.push(vec![*second]),
            }
        }
        within = stalled;
    }
    runs
}

fn is_stalled(before: &[f64], rate: f64) -> bool {
    if rate <= 0.0 {
        return true;
    }
    let rule = StallRule::FROZEN;
    let window = before
        .get(before.len().saturating_sub(rule.window)..)
        .unwrap_or(before);
    let limit = |rate: f64| rule.fraction * rate;
    // A rate not below the limit of any second is not below that of their median: most seconds are
    // done without sorting, which a display that asks every few seconds of a run of days needs.
    WINDOW_MIN <= window.len()
        && window.iter().any(|&before| rate < limit(before))
        && median(window).is_some_and(|m| rate < limit(m))
}

fn stall(run: &[Second<'_>]) -> Stall {
    Stall {
        start: run.first().map_or(0.0, |s| s.start),
        seconds: run.iter().map(|s| s.seconds).sum(),
        rate_min: run
            .iter()
            .map(|s| s.rate)
            .min_by(f64::total_cmp)
            .unwrap_or(0.0),
        causes: causes(run),
    }
}

/// What was seen in at least a third of a stall's seconds, most often seen first; of what was seen
/// as often, the engine's own words before the pressure they bring about.
fn causes(run: &[Second<'_>]) -> Vec<String> {
    let mut seen: Vec<(String, usize)> = Vec::new();
    for second in run {
        for cause in seen_in(second.row) {
            match seen.iter_mut().find(|(name, _)| *name == cause) {
                Some((_, count)) => *count += 1,
                None => seen.push((cause, 1)),
            }
        }
    }
    seen.retain(|(_, count)| run.len() <= count * SEEN_SHARE);
    // Stable: engine words come before pressure within a row.
    seen.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), is_pressure(name)));
    seen.into_iter().map(|(name, _)| name).collect()
}

const MEMORY_PRESSURE: &str = "memory pressure";
const IO_PRESSURE: &str = "I/O pressure";

fn is_pressure(cause: &str) -> bool {
    cause == MEMORY_PRESSURE || cause == IO_PRESSURE
}

fn seen_in(row: &SeriesRow) -> Vec<String> {
    let words = row
        .activity
        .split('+')
        .map(str::trim)
        .filter(|w| !w.is_empty());
    let mut seen: Vec<String> = words.map(str::to_owned).collect();
    let high = |share: Option<f64>| share.is_some_and(|s| PRESSURE < s);
    if high(row.psi_memory) {
        seen.push(MEMORY_PRESSURE.to_owned());
    }
    if high(row.psi_io) {
        seen.push(IO_PRESSURE.to_owned());
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::series;

    #[test]
    fn a_run_of_slow_seconds_is_one_stall_with_its_causes() {
        let mut rates = vec![1000.0; 10];
        rates.extend([99.0, 0.0, 100.0, 1000.0, 0.0]);
        let mut rows = series(&rates);
        rows[10].activity = "checkpoint+eviction".into();
        rows[10].psi_io = Some(0.9);
        rows[11].activity = "checkpoint".into();
        rows[11].psi_io = Some(0.6);
        rows[11].psi_memory = Some(0.4);
        let found = stalls(&rows, Main::Rows);
        assert_eq!(found.len(), 2, "S2: 100 is not below 10 % of 1000");
        assert_eq!(
            (found[0].start, found[0].seconds, found[0].rate_min),
            (10.0, 2.0, 0.0),
            "S6: one run of two seconds"
        );
        assert_eq!(found[0].causes, ["checkpoint", "I/O pressure", "eviction"]);
        assert_eq!((found[1].start, found[1].seconds), (14.0, 1.0));
        assert!(found[1].causes.is_empty());
        assert_eq!(stall_seconds(&whole_seconds(&rows, Main::Rows)), 3);
    }

    #[test]
    fn the_first_seconds_stall_only_at_zero() {
        let found = stalls(
            &series(&[1000.0, 1.0, 0.0, 1000.0, 1000.0, 1.0]),
            Main::Rows,
        );
        let starts: Vec<f64> = found.iter().map(|s| s.start).collect();
        assert_eq!(
            starts,
            [2.0, 5.0],
            "S3: second 1 has no window yet, second 5 has one of 5"
        );
    }

    #[test]
    fn a_lasting_drop_becomes_the_new_rate() {
        let mut rates = vec![1000.0; 30];
        rates.extend(vec![50.0; 30]);
        let found = stalls(&series(&rates), Main::Rows);
        assert_eq!(found.len(), 1);
        // After 15 slow seconds the median of 15 and 15 is 525, and 50 < 52.5 is still a stall.
        assert_eq!(found[0].seconds, 16.0, "S4: a lasting drop");
        let mut rates = vec![1000.0; 30];
        rates.extend(vec![0.0; 40]);
        let stood = stalls(&series(&rates), Main::Rows)[0].seconds;
        assert_eq!(stood, 40.0, "S4: a standstill");
    }

    #[test]
    fn without_any_rate_there_is_no_stall() {
        assert!(
            stalls(&series(&[0.0; 20]), Main::Rows).is_empty(),
            "S5: no rate to fall from"
        );
        assert!(stalls(&[], Main::Rows).is_empty());
    }

    #[test]
    fn a_cut_second_and_settling_are_no_stalls() {
        let mut rows = series(&[1000.0; 10]);
        let row = |t: f64, phase: &str| SeriesRow {
            t,
            phase: phase.into(),
            ..SeriesRow::default()
        };
        rows.extend([row(10.3, "load"), row(11.3, "settle")]);
        let found = stalls(&rows, Main::Rows);
        assert!(found.is_empty(), "S1: neither is a whole second: {found:?}");
    }
}
