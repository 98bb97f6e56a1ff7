//! The text format: families of samples, each with its help and type. See
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.
//!
//! - M2. A family is opened once, and its samples follow it.

use std::fmt::Write as _;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows while the server runs.
    Counter,
    /// It may also fall.
    Gauge,
    /// Counts by bucket, with a sum and a total.
    Histogram,
    /// Unknown: a statistic under the name that another program gives it.
    Untyped,
}

/// Metrics text being written.
#[derive(Default)]
pub(super) struct Text {
    text: String,
    family: String,
}

/// A label and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

impl Text {
    /// Begin a family of this server; its samples follow (M2).
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) -> &mut Text {
        self.foreign(format!("romanesco_{name}"), kind, help)
    }

    /// Begin a family whose whole name is given by a convention (M2).
    pub(super) fn foreign(&mut self, name: impl Into<String>, kind: Kind, help: &str) -> &mut Text {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Untyped => "untyped",
        };
        self.family = name.into();
        let name = &self.family;
        self.text
            .push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        self
    }

    /// Add a sample to the family.
    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: f64) -> &mut Text {
        self.part("", labels, value)
    }

    /// Add a histogram to the family: for each bucket its bound in seconds and its count, then the
    /// sum of all durations in seconds.
    pub(super) fn histogram(
        &mut self,
        labels: &[Label<'_>],
        buckets: impl Iterator<Item = (f64, f64)>,
        sum: f64,
    ) -> &mut Text {
        let mut total = 0.0;
        for (bound, count) in buckets {
            total += count;
            let bound = match bound.is_finite() {
                true => bound.to_string(),
                false => "+Inf".to_owned(),
            };
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.part("_bucket", &labels, total);
        }
        self.part("_sum", labels, sum).part("_count", labels, total)
    }

    fn part(&mut self, part: &str, labels: &[Label<'_>], value: f64) -> &mut Text {
        self.text.push_str(&self.family);
        self.text.push_str(part);
        let mut separator = '{';
        for (name, value) in labels {
            self.text.push(separator);
            separator = ',';
            self.text.push_str(name);
            self.text.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        // Writing to a string does not fail.
        let _: Result<(), std::fmt::Error> = writeln!(self.text, " {value}");
        self
    }

    /// A family of one sample.
    pub(super) fn one(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// The finished text.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M2: a family is opened once.
    #[test]
    fn samples_follow_their_family() {
        let mut text = Text::default();
        text.family("things_total", Kind::Counter, "Things.")
            .sample(&[("kind", "a\"b\\c\nd")], 3.0)
            .sample(&[("kind", "e"), ("of", "f")], 1.5);
        text.one("open", Kind::Gauge, "Open now.", 0.0);
        let buckets = [(0.5, 2.0), (f64::INFINITY, 1.0)];
        text.foreign("seconds", Kind::Histogram, "Seconds.")
            .histogram(&[("of", "f")], buckets.into_iter(), 7.0);
        let expected = "# HELP romanesco_things_total Things.\n\
            # TYPE romanesco_things_total counter\n\
            romanesco_things_total{kind=\"a\\\"b\\\\c\\nd\"} 3\n\
            romanesco_things_total{kind=\"e\",of=\"f\"} 1.5\n\
            # HELP romanesco_open Open now.\n\
            # TYPE romanesco_open gauge\n\
            romanesco_open 0\n\
            # HELP seconds Seconds.\n\
            # TYPE seconds histogram\n\
            seconds_bucket{of=\"f\",le=\"0.5\"} 2\n\
            seconds_bucket{of=\"f\",le=\"+Inf\"} 3\n\
            seconds_sum{of=\"f\"} 7\n\
            seconds_count{of=\"f\"} 3\n";
        assert_eq!(text.finish(), expected);
    }
}
