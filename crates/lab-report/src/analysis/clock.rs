//! When a target had written a given number of rows, interpolated between the seconds of its
//! series.

use crate::record::SeriesRow;

/// Rows and seconds from (0, 0), in order.
pub(crate) struct Clock(Vec<(f64, f64)>);

impl Clock {
    /// The clock of a load, without its settling.
    pub(crate) fn of(series: &[SeriesRow]) -> Clock {
        let load = series.iter().filter(|r| r.phase != "settle");
        let points = load.map(|r| (r.rows as f64, r.t));
        Clock(std::iter::once((0.0, 0.0)).chain(points).collect())
    }

    /// Rows at the end of the load.
    pub(crate) fn rows(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "made from a number of this type"
        )]
        let rows = self.0.last().map_or(0, |p| p.0 as u64);
        rows
    }

    /// Seconds until `rows` rows were written; `None` if they never were.
    pub(crate) fn at(&self, rows: f64) -> Option<f64> {
        let after = self.0.iter().position(|p| p.0 >= rows * (1.0 - 1e-9))?;
        let (rows_after, t_after) = *self.0.get(after)?;
        let Some((rows_before, t_before)) = after.checked_sub(1).and_then(|i| self.0.get(i)) else {
            return Some(t_after);
        };
        let span = rows_after - rows_before;
        let share = if span > 0.0 {
            (rows - rows_before) / span
        } else {
            1.0
        };
        Some(t_before + share * (t_after - t_before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_between_seconds_are_interpolated() {
        let row = |t: f64, rows: u64, phase: &str| SeriesRow {
            t,
            rows,
            phase: phase.into(),
            ..SeriesRow::default()
        };
        let series = [
            row(1.0, 100, "load"),
            row(2.0, 300, "load"),
            row(9.0, 300, "settle"),
        ];
        let clock = Clock::of(&series);
        assert_eq!(clock.at(50.0), Some(0.5));
        assert_eq!(clock.at(200.0), Some(1.5));
        assert_eq!(clock.at(300.0), Some(2.0));
        assert_eq!(clock.at(301.0), None);
    }
}
