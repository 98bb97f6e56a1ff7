//! Rules of `lab check`: `rate_mean<-5%`, `latency_p99_ms>+20%`, `stall_seconds>0`.

use std::fmt;
use std::str::FromStr;

use super::metric::{METRICS, Metric};
use crate::error::unknown;

/// Short names people know.
const ALIASES: [(&str, &str); 4] = [
    ("ips", "rate_mean"),
    ("p99", "latency_p99_ms"),
    ("wamp", "write_amplification"),
    ("samp", "space_amplification"),
];

/// What is a regression: a metric beyond a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The metric.
    pub metric: Metric,
    /// Where.
    pub threshold: Threshold,
}

/// The side of a number that is a regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// The metric fell by more than this share of the base (0.05 = 5 %).
    FellBy(f64),
    /// The metric rose by more than this share of the base.
    RoseBy(f64),
    /// The metric is below this number, whatever the base is.
    Below(f64),
    /// The metric is above this number, whatever the base is.
    Above(f64),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Thousandths of a percent at most: shares are not written as 0.30000000000000004.
        let percent = |share: f64| (share * 1e5).round() / 1e3;
        let name = self.metric.name;
        let text = match self.threshold {
            Threshold::FellBy(share) => format!("{name}<-{}%", percent(share)),
            Threshold::RoseBy(share) => format!("{name}>+{}%", percent(share)),
            Threshold::Below(value) => format!("{name}<{value}"),
            Threshold::Above(value) => format!("{name}>{value}"),
        };
        f.pad(&text)
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let form = "write METRIC<-PERCENT%, METRIC>+PERCENT%, METRIC<VALUE or METRIC>VALUE, \
                    for example rate_mean<-5%";
        let place = text.find(['<', '>']);
        let place = place.ok_or_else(|| format!("not a rule: {text:?}; {form}"))?;
        let (name, rest) = text.split_at(place);
        let metric = metric(name.trim())?;
        let fell = rest.starts_with('<');
        let value = rest.trim_start_matches(['<', '>']).trim();
        let number = value.trim_end_matches('%').trim();
        let bad = || format!("not a number in rule {text:?}: {value:?}; {form}");
        let number: f64 = number.parse().map_err(|_| bad())?;
        if !number.is_finite() || rest.get(1..).is_some_and(|r| r.starts_with(['<', '>'])) {
            return Err(bad());
        }
        let threshold = match (fell, value.ends_with('%')) {
            (true, false) => Threshold::Below(number),
            (false, false) => Threshold::Above(number),
            (true, true) if number <= 0.0 => Threshold::FellBy(-number / 100.0),
            (false, true) if 0.0 <= number => Threshold::RoseBy(number / 100.0),
            (true, true) => {
                return Err(format!(
                    "{text:?} asks for a gain; a fall is written {name}<-{number}%"
                ));
            }
            (false, true) => {
                let number = -number;
                return Err(format!(
                    "{text:?} asks for a fall; a rise is written {name}>+{number}%"
                ));
            }
        };
        Ok(Rule { metric, threshold })
    }
}

/// The metric of a name or alias.
fn metric(name: &str) -> Result<Metric, String> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, metric)| metric);
    Metric::named(name).ok_or_else(|| {
        let known = METRICS
            .iter()
            .map(|m| m.name)
            .chain(ALIASES.iter().map(|(alias, _)| *alias));
        unknown("metric", name, &known.collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shown: &str) {
        let rule: Rule = text.parse().unwrap();
        assert_eq!(rule.to_string(), shown);
        assert_eq!(shown.parse::<Rule>().unwrap(), rule);
    }

    #[test]
    fn rules_are_read_and_shown() {
        check("ips<-5%", "rate_mean<-5%");
        check(" p99 > +20 %", "latency_p99_ms>+20%");
        check("wamp>10%", "write_amplification>+10%");
        check("samp>+0.3%", "space_amplification>+0.3%");
        check("stall_seconds>0", "stall_seconds>0");
        check("worst_second<100", "worst_second<100");
        check("rate_mean<-0%", "rate_mean<-0%");
        let rule: Rule = "rate_mean<-5%".parse().unwrap();
        assert_eq!(rule.threshold, Threshold::FellBy(0.05));
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in [
            ("rate_maen<-5%", "did you mean \"rate_mean\"?"),
            ("rate_mean", "write METRIC"),
            ("rate_mean<-x%", "not a number"),
            ("rate_mean<<-5%", "not a number"),
            ("rate_mean<5%", "a fall is written rate_mean<-5%"),
            ("p99>-5%", "a rise is written p99>+5%"),
            ("p99>nan", "not a number"),
            ("<5", "unknown metric"),
        ] {
            let error = text.parse::<Rule>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
