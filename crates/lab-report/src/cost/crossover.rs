//! Which target does the most for a dollar as more operations are paid for, and where one takes
//! over from another: the crossover between engines that need operations and engines that need
//! processors.
//!
//! Only steps with caps of their own tell ([`Mode::Provisioned`]). Between two caps the logarithm
//! of the ratio of two targets is taken as a straight line over that of the operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::estimate::{CostLine, Mode};

/// The best targets on one kind of volume, by increasing number of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaders {
    /// The kind of volume.
    pub volume: String,
    /// The fewest and the most operations per second that were tried.
    pub tried: (f64, f64),
    /// The targets with the most operations per dollar, in order; never empty.
    pub spans: Vec<Span>,
}

/// The range in which one target is the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The target.
    pub target: String,
    /// Operations per second from which the next target is better; `None` for the last.
    pub until: Option<f64>,
}

/// Operations per dollar of each target at one cap.
type Rates<'a> = BTreeMap<&'a str, f64>;

/// The best by volume; empty where fewer than two caps or two targets can be compared.
#[must_use]
pub fn leaders(lines: &[CostLine]) -> Vec<Leaders> {
    let mut volumes: BTreeMap<&str, Vec<(f64, Rates<'_>)>> = BTreeMap::new();
    let paid = lines.iter().filter(|l| l.mode == Mode::Provisioned);
    for line in paid {
        let (Some(required), Some(rate)) = (line.required, line.rate_per_dollar) else {
            continue;
        };
        let caps = volumes.entry(&line.volume).or_default();
        let same = |cap: &&mut (f64, Rates<'_>)| cap.0.total_cmp(&required.iops).is_eq();
        let rates = match caps.iter_mut().find(same) {
            Some((_, rates)) => rates,
            None => {
                caps.push((required.iops, Rates::new()));
                &mut caps.last_mut().expect("just pushed").1
            }
        };
        if rates.insert(&line.target, rate).is_some() {
            // Two steps with the same cap do different work: there is no order.
            return Vec::new();
        }
    }
    volumes
        .into_iter()
        .filter_map(|(volume, caps)| order(volume, caps))
        .collect()
}

fn order(volume: &str, mut caps: Vec<(f64, Rates<'_>)>) -> Option<Leaders> {
    caps.retain(|(iops, rates)| *iops > 0.0 && rates.len() > 1);
    caps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, last) = (caps.first()?, caps.last()?);
    if caps.len() < 2 {
        return None;
    }
    let mut spans: Vec<Span> = Vec::new();
    for pair in caps.windows(2) {
        let [low, high] = pair else { continue };
        let (before, after) = (best(&low.1)?, best(&high.1)?);
        if before != after {
            spans.push(Span {
                target: before.to_owned(),
                until: Some(crossing(low, high, before, after)),
            });
        }
    }
    spans.push(Span {
        target: best(&last.1)?.to_owned(),
        until: None,
    });
    Some(Leaders {
        volume: volume.to_owned(),
        tried: (first.0, last.0),
        spans,
    })
}

fn best<'a>(rates: &Rates<'a>) -> Option<&'a str> {
    let most = rates.iter().max_by(|a, b| a.1.total_cmp(b.1));
    most.map(|(target, _)| *target)
}

/// Where `after` overtakes `before` between two caps; halfway if one was not measured at both.
fn crossing(low: &(f64, Rates<'_>), high: &(f64, Rates<'_>), before: &str, after: &str) -> f64 {
    let lead = |rates: &Rates<'_>| {
        let lead = (rates.get(before)? / rates.get(after)?).ln();
        lead.is_finite().then_some(lead)
    };
    let share = match (lead(&low.1), lead(&high.1)) {
        (Some(at_low), Some(at_high)) if at_low > at_high => at_low / (at_low - at_high),
        _ => 0.5,
    };
    low.0 * (high.0 / low.0).powf(share.clamp(0.0, 1.0))
}

impl Leaders {
    /// The order in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let number = |value: f64| crate::format::maybe(Some(value));
        let mut text = format!(
            "On {}, with {} to {} I/O operations/s paid for: ",
            self.volume,
            number(self.tried.0),
            number(self.tried.1)
        );
        for span in &self.spans {
            text.push_str(&span.target);
            match span.until {
                Some(iops) => {
                    let iops = number(iops);
                    text.push_str(&format!(
                        " up to about {iops} I/O operations/s, from there on "
                    ));
                }
                None => text.push_str(" does the most for a dollar."),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::Requirement;
    use super::*;

    fn line(target: &str, step: &str, iops: f64, rate_per_dollar: f64) -> CostLine {
        CostLine {
            target: target.to_owned(),
            step: step.to_owned(),
            operation: "transactions".to_owned(),
            volume: "gp3".to_owned(),
            mode: Mode::Provisioned,
            rate: 1.0,
            rate_interval: None,
            sustainable: None,
            sustainable_reason: None,
            required: Some(Requirement {
                gb: 1.0,
                iops,
                mb: 1.0,
            }),
            volumes: Some(1),
            gb: Some(1.0),
            storage: Some(1.0),
            total: Some(1.0),
            rate_per_dollar: Some(rate_per_dollar),
            rate_per_storage_dollar: None,
            sustainable_per_dollar: None,
            dollars_per_million: None,
            wear: None,
            reason: None,
        }
    }

    #[test]
    fn the_crossing_is_found_between_two_caps() {
        // A is bound by its processors, B by operations: equal where B has gained a factor of two.
        let lines = [
            line("b", "1k", 1000.0, 1.0),
            line("a", "1k", 1000.0, 2.0),
            line("a", "4k", 4000.0, 2.0),
            line("b", "4k", 4000.0, 4.0),
        ];
        let found = leaders(&lines);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].tried, (1000.0, 4000.0));
        let names: Vec<&str> = found[0].spans.iter().map(|s| s.target.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!((found[0].spans[0].until.unwrap() - 2000.0).abs() < 1e-6);
        let sentence = found[0].sentence();
        assert!(
            sentence.contains("a up to about 2,000 I/O operations/s"),
            "{sentence}"
        );
        assert!(
            sentence.ends_with("b does the most for a dollar."),
            "{sentence}"
        );
    }

    #[test]
    fn one_that_always_leads_has_no_crossing() {
        let mut lines = Vec::new();
        for iops in [100.0, 1000.0, 10_000.0] {
            lines.push(line("a", &iops.to_string(), iops, 3.0));
            lines.push(line("b", &iops.to_string(), iops, 1.0));
        }
        let found = leaders(&lines);
        assert_eq!(found[0].spans.len(), 1);
        assert_eq!(found[0].spans[0].until, None);
    }

    #[test]
    fn what_cannot_be_ordered_is_not() {
        let one_cap = [line("a", "s", 10.0, 1.0), line("b", "s", 10.0, 2.0)];
        assert!(leaders(&one_cap).is_empty());
        let alone = [line("a", "s", 10.0, 1.0), line("a", "t", 20.0, 2.0)];
        assert!(leaders(&alone).is_empty());
        let twice = [line("a", "s", 10.0, 1.0), line("a", "t", 10.0, 2.0)];
        assert!(leaders(&twice).is_empty());
        let mut required = line("a", "s", 10.0, 1.0);
        required.mode = Mode::Required;
        assert!(leaders(&[required]).is_empty());
    }
}
