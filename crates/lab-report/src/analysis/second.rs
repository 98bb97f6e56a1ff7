//! The one-second rates of a step, and what they say.
//!
//! A *whole second* is a row of the series of phase `load` that covers at least half a second: the
//! last row of a load is cut off where the load ended, and its rate is of too short a time.

use super::stall::{Second, stall_seconds};
use super::statistic::{mean, median, quantile, slope, variation};
use crate::record::{Main, SeriesRow};

/// A row that covers less is no whole second.
const WHOLE_MIN: f64 = 0.5;
/// Seconds of a window over which a rate is looked at for steadiness.
const WINDOW: usize = 30;
/// Windows that must be steady, the last ones.
const WINDOWS: usize = 2;
/// The most a steady rate may rise or fall over a window, relative to its mean.
const SLOPE_MAX: f64 = 0.05;
/// The largest coefficient of variation of a steady window.
const VARIATION_MAX: f64 = 0.10;

/// What the one-second rates say. Rates are main operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SecondStats {
    /// The worst second.
    pub worst: f64,
    /// The median.
    pub median: f64,
    /// Seconds that were stalls ([`crate::record::StallRule`]).
    pub stall_seconds: u64,
    /// The 5th percentile: 95 % of the seconds are at least as fast.
    pub p5: f64,
    /// The coefficient of variation (0.1 = 10 %); 0 for fewer than 2 seconds.
    pub cv: f64,
    /// Whether the rate came to rest: in each of the last two windows of 30 s the least-squares
    /// slope is below 5 % of the mean and the coefficient of variation below 10 %. `None` when the
    /// load had fewer than 60 whole seconds.
    pub steady: Option<bool>,
}

/// The statistics of a step's whole seconds; of all its rows of phase `load` (of all rows when
/// there is none) when it has no whole second. Zeros for an empty series.
#[must_use]
pub fn second_stats(series: &[SeriesRow], main: Main) -> SecondStats {
    let rates = main_rates(series, main);
    let seconds = whole_seconds(series, main);
    SecondStats {
        worst: rates.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0),
        median: median(&rates).unwrap_or(0.0),
        stall_seconds: stall_seconds(&seconds),
        p5: quantile(&rates, 0.05).unwrap_or(0.0),
        cv: variation(&rates).unwrap_or(0.0),
        steady: steady(&rates),
    }
}

/// The main rate of each whole second, in order; of what rows there are when there is no whole
/// second.
#[must_use]
pub fn main_rates(series: &[SeriesRow], main: Main) -> Vec<f64> {
    let whole = whole_seconds(series, main);
    if !whole.is_empty() {
        return whole.iter().map(|s| s.rate).collect();
    }
    let any_load = series.iter().any(is_load);
    let rows = series.iter().filter(|row| is_load(row) || !any_load);
    rows.map(|row| main_rate(row, main)).collect()
}

/// The whole seconds of a load.
pub(super) fn whole_seconds(series: &[SeriesRow], main: Main) -> Vec<Second<'_>> {
    let mut last = 0.0;
    let mut whole = Vec::new();
    for row in series.iter().filter(|row| is_load(row)) {
        let seconds = row.t - last;
        if WHOLE_MIN <= seconds {
            let rate = main_rate(row, main);
            whole.push(Second {
                row,
                start: last,
                seconds,
                rate,
            });
        }
        last = row.t;
    }
    whole
}

fn is_load(row: &SeriesRow) -> bool {
    row.phase == "load"
}

/// The rate of what the step measures.
fn main_rate(row: &SeriesRow, main: Main) -> f64 {
    match main {
        Main::Rows => row.rate,
        Main::Queries => row.query_rate,
    }
}

fn steady(rates: &[f64]) -> Option<bool> {
    let first = rates.len().checked_sub(WINDOW * WINDOWS)?;
    let tail = rates.get(first..)?;
    Some(tail.chunks(WINDOW).all(|window| {
        let mean = mean(window).unwrap_or(0.0);
        let change = slope(window).unwrap_or(0.0) * WINDOW as f64;
        0.0 < mean
            && change.abs() < SLOPE_MAX * mean
            && variation(window).is_some_and(|cv| cv < VARIATION_MAX)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::series;

    #[test]
    fn a_cut_last_second_and_settling_do_not_count() {
        let mut rows = series(&[100.0, 200.0, 300.0]);
        rows.push(SeriesRow {
            t: 3.3,
            phase: "load".into(),
            rate: 1.0,
            ..SeriesRow::default()
        });
        rows.push(SeriesRow {
            t: 4.3,
            phase: "settle".into(),
            ..SeriesRow::default()
        });
        let stats = second_stats(&rows, Main::Rows);
        assert_eq!((stats.worst, stats.median), (100.0, 200.0));
        assert_eq!(stats.cv, 0.5);
        assert_eq!(stats.p5, 110.0);
        assert_eq!(stats.steady, None);
        assert_eq!(main_rates(&rows, Main::Rows), [100.0, 200.0, 300.0]);
    }

    #[test]
    fn without_a_whole_second_every_row_counts() {
        let rows = [SeriesRow {
            t: 0.2,
            phase: "load".into(),
            rate: 7.0,
            ..SeriesRow::default()
        }];
        assert_eq!(main_rates(&rows, Main::Rows), [7.0]);
        assert_eq!(second_stats(&rows, Main::Rows).median, 7.0);
        assert_eq!(second_stats(&[], Main::Rows), SecondStats::default());
    }

    #[test]
    fn query_steps_are_measured_by_queries() {
        let mut rows = series(&[100.0, 100.0]);
        rows[1].query_rate = 9.0;
        assert_eq!(main_rates(&rows, Main::Queries), [0.0, 9.0]);
    }

    #[test]
    fn steady_means_level_and_smooth_for_a_minute() {
        let level: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i % 2)).collect();
        assert_eq!(steady(&level), Some(true));
        assert_eq!(steady(&level[1..]), None);
        // 0.2 % a second is 6 % over a window.
        let falling: Vec<f64> = (0..60).map(|i| 100.0 - 0.2 * f64::from(i)).collect();
        assert_eq!(steady(&falling), Some(false));
        let rough: Vec<f64> = (0..60).map(|i| 100.0 + 30.0 * f64::from(i % 2)).collect();
        assert_eq!(steady(&rough), Some(false));
        let idle = [0.0; 60];
        assert_eq!(steady(&idle), Some(false));
    }
}
