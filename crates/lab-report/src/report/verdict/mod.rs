//! The verdict card: what the data say, in a headline, a ranking per step and one line per finding.
//!
//! A target is called faster or slower only by [`crate::analysis`]; invalid results are named first
//! and take part in no comparison; the generator's ceiling wins nothing.

mod contest;
mod cut;
mod findings;
mod headline;
mod league;
mod terms;

use serde::Serialize;

use super::model::View;
use crate::published;

pub(crate) use findings::Finding;
pub(crate) use league::League;

/// A target's answer to the question of the experiment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Answer {
    pub(crate) target: String,
    pub(crate) color: usize,
    pub(crate) text: String,
}

/// The card.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) headline: String,
    /// The problems of targets; empty if there are none.
    pub(crate) beside: String,
    /// What is unequal between the targets; empty if nothing is compared.
    pub(crate) terms: String,
    pub(crate) answers: Vec<Answer>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) leagues: Vec<League>,
}

/// The verdict card of a run.
pub(crate) fn verdict(view: &View<'_>) -> Verdict {
    Verdict {
        headline: headline::headline(view),
        beside: headline::beside(view),
        terms: terms::terms(view),
        answers: answers(view),
        findings: findings::findings(view),
        leagues: view.steps.iter().map(|s| league::league(view, s)).collect(),
    }
}

fn answers(view: &View<'_>) -> Vec<Answer> {
    let answer = |(target, text): (String, String)| Answer {
        color: view.color_of(&target).unwrap_or(0),
        target,
        text,
    };
    let all = published::answers(view.run).into_iter();
    all.map(answer).collect()
}
