//! Did a step come to a steady state? Frozen definition: two windows of 30 s in a row, each with a
//! slope below 5 % of its mean over the window and a coefficient of variation below 10 %.

use crate::record::SeriesRow;

const WINDOW: usize = 30;
const WINDOWS: usize = 2;

/// What is known about steadiness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Steady {
    /// Its last windows were steady, and so was everything from this second on.
    Since(f64),
    /// Its last windows were not.
    Never,
    /// Shorter than two windows.
    TooShort,
}

impl Steady {
    pub(crate) fn text(self) -> String {
        match self {
            Steady::Since(t) => format!("from second {t:.0}"),
            Steady::Never => "not reached".to_owned(),
            Steady::TooShort => "run too short".to_owned(),
        }
    }
}

/// Judges the load phase of a series by what `rate` takes from a second. Windows are counted from
/// its end, so that a late change cannot hide behind an early calm.
pub(crate) fn judge(series: &[SeriesRow], rate: impl Fn(&SeriesRow) -> f64) -> Steady {
    let load: Vec<(f64, f64)> = series
        .iter()
        .filter(|r| r.phase != "settle")
        .map(|r| (r.t, rate(r)))
        .collect();
    if load.len() < WINDOW * WINDOWS {
        return Steady::TooShort;
    }
    let mut since = None;
    let mut count = 0;
    for window in load.rchunks_exact(WINDOW) {
        if !is_steady(window) {
            break;
        }
        count += 1;
        since = window.first().map(|p| p.0);
    }
    match since {
        Some(t) if count >= WINDOWS => Steady::Since((t - 1.0).max(0.0)),
        _ => Steady::Never,
    }
}

fn is_steady(window: &[(f64, f64)]) -> bool {
    let n = window.len() as f64;
    let mean = window.iter().map(|p| p.1).sum::<f64>() / n;
    if mean <= 0.0 {
        return false;
    }
    let t = window.iter().map(|p| p.0).sum::<f64>() / n;
    let deviation = (window.iter().map(|p| (p.1 - mean).powi(2)).sum::<f64>() / n).sqrt();
    let across = window.iter().map(|p| (p.0 - t).powi(2)).sum::<f64>();
    let slope = window.iter().map(|p| (p.0 - t) * (p.1 - mean)).sum::<f64>() / across.max(1e-9);
    (slope * n / mean).abs() < 0.05 && deviation / mean < 0.10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rate: impl Fn(u32) -> f64, seconds: u32) -> Vec<SeriesRow> {
        (1..=seconds)
            .map(|t| SeriesRow {
                t: f64::from(t),
                phase: "load".into(),
                rate: rate(t),
                ..SeriesRow::default()
            })
            .collect()
    }

    fn judged(series: &[SeriesRow]) -> Steady {
        judge(series, |r| r.rate)
    }

    #[test]
    fn a_flat_end_is_steady_and_a_slope_is_not() {
        assert_eq!(judged(&series(|_| 100.0, 59)), Steady::TooShort);
        assert_eq!(judged(&series(|_| 100.0, 90)), Steady::Since(0.0));
        assert_eq!(
            judged(&series(|t| 1000.0 - 5.0 * f64::from(t), 120)),
            Steady::Never
        );
        let cliff = |t| if t < 50 { 1000.0 } else { 100.0 };
        assert_eq!(judged(&series(cliff, 150)), Steady::Since(60.0));
    }
}
