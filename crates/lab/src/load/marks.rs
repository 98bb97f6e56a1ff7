//! Progress of a step over time: for the first and the last tenth, and for intervals.

/// Pairs (seconds, operations done), both ascending.
#[derive(Clone, Debug)]
pub struct Marks {
    points: Vec<(f64, u64)>,
}

/// Maximum number of pairs; beyond it every second pair is dropped.
const POINTS_MAX: usize = 1 << 16;

impl Default for Marks {
    fn default() -> Marks {
        Marks {
            points: vec![(0.0, 0)],
        }
    }
}

impl Marks {
    /// Record that `done` operations were complete at `seconds`.
    pub fn push(&mut self, seconds: f64, done: u64) {
        if self
            .points
            .last()
            .is_some_and(|&(t, n)| seconds <= t || done < n)
        {
            return;
        }
        if self.points.len() >= POINTS_MAX {
            let mut index = 0usize;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        self.points.push((seconds, done));
    }

    /// Record that the last of `done` operations ended at `seconds`. This may be earlier than the
    /// time of pairs with the same count, because those are from later polls.
    pub fn finish(&mut self, seconds: f64, done: u64) {
        while self.points.len() > 1 && self.points.last().is_some_and(|&(_, n)| n >= done) {
            self.points.pop();
        }
        let (last, _) = self.last();
        self.push(seconds.max(last + 1e-6), done);
    }

    /// The time at which `done` operations were complete, interpolated between the pairs; `None` if
    /// that number was not reached.
    #[must_use]
    pub fn time_of(&self, done: u64) -> Option<f64> {
        let after = self.points.partition_point(|&(_, n)| n < done);
        let &(t1, n1) = self.points.get(after)?;
        let Some(&(t0, n0)) = after.checked_sub(1).and_then(|i| self.points.get(i)) else {
            return Some(t1);
        };
        let share = if n1 > n0 {
            (done - n0) as f64 / (n1 - n0) as f64
        } else {
            1.0
        };
        Some(t0 + (t1 - t0) * share)
    }

    /// Operations per second between two counts; `None` if one of them was not reached.
    #[must_use]
    pub fn rate(&self, from: u64, to: u64) -> Option<f64> {
        let seconds = self.time_of(to)? - self.time_of(from)?;
        (seconds > 0.0 && from < to).then(|| (to - from) as f64 / seconds)
    }

    /// The last pair.
    #[must_use]
    pub fn last(&self) -> (f64, u64) {
        self.points.last().copied().unwrap_or((0.0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_interpolated_and_rates_follow() {
        let mut marks = Marks::default();
        marks.push(1.0, 100);
        marks.push(3.0, 200);
        assert_eq!(marks.time_of(50), Some(0.5));
        assert_eq!(marks.time_of(150), Some(2.0));
        assert_eq!(marks.time_of(201), None);
        assert_eq!(marks.rate(0, 100), Some(100.0));
        assert_eq!(marks.rate(100, 200), Some(50.0));
    }

    #[test]
    fn idle_looks_after_the_end_do_not_count() {
        let mut marks = Marks::default();
        marks.push(1.0, 100);
        marks.push(1.5, 150);
        marks.push(2.0, 150);
        marks.finish(1.25, 150);
        assert_eq!(marks.last(), (1.25, 150));
        assert_eq!(marks.rate(100, 150), Some(200.0));
    }

    #[test]
    fn a_long_run_stays_bounded_and_right() {
        let mut marks = Marks::default();
        for i in 1..300_000u32 {
            marks.push(f64::from(i), u64::from(i) * 10);
        }
        assert!(marks.points.len() <= POINTS_MAX);
        let t = marks.time_of(1_000_000).unwrap();
        assert!((t - 100_000.0).abs() < 1e-6, "{t}");
    }
}
