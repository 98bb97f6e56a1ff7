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
}

/// Metrics text being written.
#[derive(Default)]
pub(super) struct Text {
    text: String,
    family: &'static str,
}

/// A label and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

impl Text {
    /// Begin a family; its samples follow (M2).
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> &mut Text {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.family = name;
        self.text.push_str("# HELP romanesco_");
        self.text.push_str(name);
        self.text.push(' ');
        self.text.push_str(help);
        self.text.push_str("\n# TYPE romanesco_");
        self.text.push_str(name);
        self.text.push(' ');
        self.text.push_str(kind);
        self.text.push('\n');
        self
    }

    /// Add a sample to the family.
    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: f64) -> &mut Text {
        self.text.push_str("romanesco_");
        self.text.push_str(self.family);
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
    pub(super) fn one(&mut self, name: &'static str, kind: Kind, help: &str, value: f64) {
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
        let expected = "# HELP romanesco_things_total Things.\n\
            # TYPE romanesco_things_total counter\n\
            romanesco_things_total{kind=\"a\\\"b\\\\c\\nd\"} 3\n\
            romanesco_things_total{kind=\"e\",of=\"f\"} 1.5\n\
            # HELP romanesco_open Open now.\n\
            # TYPE romanesco_open gauge\n\
            romanesco_open 0\n";
        assert_eq!(text.finish(), expected);
    }
}
