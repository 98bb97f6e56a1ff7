//! A/A runs: targets of one run that are equal in everything, so that any difference between them
//! is a wrong verdict.
//!
//! - A1. Of each group of equal targets the first is the base of the others. All their verdicts are
//!   those of [`compare`], on all metrics and steps.
//! - A2. Equal targets of different runs are no A/A pair: the program may differ.

use super::compare::{Accept, compare};
use super::verdict::Verdict;
use crate::record::{RunRecord, TargetSpec};

/// The verdicts on a target that is equal to another one of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EqualTargets {
    /// The base.
    pub base: String,
    /// The target that is equal to it.
    pub target: String,
    /// Verdicts that name a difference: `load: latency_p99_ms worse`.
    pub wrong: Vec<String>,
    /// Verdicts that there is none.
    pub equal: usize,
    /// Inconclusive and invalid verdicts.
    pub undecided: usize,
}

impl EqualTargets {
    /// The result in a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let all = self.wrong.len() + self.equal + self.undecided;
        let wrong = match self.wrong.as_slice() {
            [] => "none is wrong".to_owned(),
            [one] => format!("1 is wrong ({one})"),
            more => format!("{} are wrong ({})", more.len(), more.join(", ")),
        };
        format!(
            "A/A: {} and {} are the same target; of {all} verdicts {wrong}, {} say no difference, \
             {} are undecided",
            self.base, self.target, self.equal, self.undecided
        )
    }
}

/// The A/A pairs of a run with their verdicts; empty if its targets differ.
#[must_use]
pub fn equal_targets(run: &RunRecord) -> Vec<EqualTargets> {
    let targets = &run.manifest.plan.targets;
    let base_of = |place: usize, target: &TargetSpec| {
        let mut before = targets.iter().take(place);
        before.find(|base| base.is_equal(target))
    };
    let mut found = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        if let Some(base) = base_of(place, target) {
            found.extend(verdicts(run, &base.name, &target.name));
        }
    }
    found
}

fn verdicts(run: &RunRecord, base: &str, target: &str) -> Option<EqualTargets> {
    let all = compare(std::slice::from_ref(run), Some(base), Accept::default()).ok()?;
    let mut found = EqualTargets {
        base: base.to_owned(),
        target: target.to_owned(),
        ..EqualTargets::default()
    };
    for pair in all.pairs.iter().filter(|pair| pair.target == target) {
        for row in &pair.rows {
            match row.verdict {
                None => {}
                Some(Verdict::NoDifference) => found.equal += 1,
                Some(Verdict::Inconclusive | Verdict::Invalid) => found.undecided += 1,
                Some(wrong) => {
                    let text = format!("{}: {} {wrong}", pair.step, row.metric);
                    found.wrong.push(text);
                }
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{run, step};

    fn twins(rates: [[f64; 3]; 2]) -> RunRecord {
        let names = ["betree#1", "betree#2"];
        let steps = names.iter().zip(rates).flat_map(|(name, rates)| {
            let one = |(repeat, rate): (u32, f64)| step(name, repeat, rate);
            (1..).zip(rates).map(one)
        });
        let mut record = run("r", &names, 3, steps.collect());
        for target in &mut record.manifest.plan.targets {
            "betree".clone_into(&mut target.engine);
        }
        record
    }

    #[test]
    fn a_difference_between_equal_targets_is_a_wrong_verdict() {
        let [quiet] = &equal_targets(&twins([[100.0, 101.0, 102.0]; 2]))[..] else {
            panic!("A1: one pair")
        };
        assert!(quiet.wrong.is_empty() && 10 < quiet.equal, "{quiet:?}");
        let text = quiet.text();
        assert!(
            text.starts_with("A/A: betree#1 and betree#2 are the same"),
            "{text}"
        );
        assert!(text.contains("none is wrong"), "{text}");
        let rates = [[100.0, 101.0, 102.0], [200.0, 201.0, 202.0]];
        let [wrong] = &equal_targets(&twins(rates))[..] else {
            panic!("A1: one pair")
        };
        assert!(wrong.wrong.contains(&"load: rate_mean faster".to_owned()));
        assert!(wrong.text().contains("are wrong ("), "{}", wrong.text());
    }

    #[test]
    fn targets_that_differ_are_no_pair() {
        let mut record = twins([[100.0; 3]; 2]);
        let options = &mut record.manifest.plan.targets[1].options;
        options.insert("rho".to_owned(), "1".to_owned());
        assert!(equal_targets(&record).is_empty());
        // The same name in another run is compared, and is no A/A pair.
        let runs = [twins([[100.0; 3]; 2]), twins([[200.0; 3]; 2])];
        let across = compare(&runs, None, Accept::default()).unwrap();
        assert!(
            across.pairs.iter().all(|p| p.base != p.target),
            "A2: {across:?}"
        );
    }
}
