//! Random runs: many small programs, each executed on the engine and on a model.
//!
//! A run is a function of its tape ([`stdx::Tape`]). The tape is a sequence of frames of 32 bytes:
//! the first frame has the weight of each kind of step (0 disables it); each further frame is one
//! step, so that cutting a frame removes a step and does not change the others.
//!
//! Every result is compared immediately. At the end, all trees are read in full, in both
//! directions, and read again after reopening if the engine is persistent. A failing tape is shrunk
//! and printed, with its steps and the command that repeats the run.

mod compare;
mod oracle;
mod runner;
mod step;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use stdx::Tape;
use stdx::rng::mix64;

use crate::report::panic_text;
use crate::subject::Subject;

use runner::run;
use step::FRAME;

/// Time after which a part of the default seeds starts no other seed.
const TIME: Duration = Duration::from_secs(30);

/// Minimum number of seeds that each part runs.
const FLOOR: u32 = 2;

/// Size of a tape in bytes: the weights and 511 steps. A power of two, so that shrinking, which
/// halves the tape, cuts it between frames.
const TAPE_BYTES: usize = 512 * FRAME;

/// Maximum number of runs for shrinking a failure.
const SHRINK_RUNS: usize = 4000;

/// Maximum time for shrinking a failure.
const SHRINK_TIME: Duration = Duration::from_secs(20);

/// Number of parts into which the default seeds are divided; tests run the parts in parallel.
pub const PARTS: u64 = 4;

/// Run one part of the seeds on `subject`. `test` is the path of the calling test and `package` its
/// package, for the command that repeats a failure.
///
/// `ROMANESCO_SEEDS=n` runs `n` seeds instead of the subject's, without a time limit;
/// `ROMANESCO_TAPE=hex` runs one tape instead. By default a part ends after 30 seconds, but not
/// before two seeds.
///
/// # Panics
/// If a run differs from the model.
pub fn random_runs(subject: &Subject, package: &str, test: &str, part: u64) {
    if let Ok(hex) = env::var("ROMANESCO_TAPE") {
        if part == 0 {
            let tape = Tape::from_hex(&hex).expect("ROMANESCO_TAPE holds hexadecimal digits");
            if let Some(failure) = check_tape(subject, &tape) {
                panic!("{failure}");
            }
        }
        return;
    }
    let (seeds, time) = match env::var("ROMANESCO_SEEDS") {
        Ok(text) => (
            text.parse().expect("ROMANESCO_SEEDS is a number"),
            Duration::MAX,
        ),
        Err(_) => (subject.seeds(), TIME),
    };
    let begin = stdx::time::now();
    let mut ran = 0;
    for seed in (0..seeds).filter(|seed| seed % PARTS == part) {
        if FLOOR <= ran && time < begin.elapsed() {
            break;
        }
        ran += 1;
        if let Some(failure) = check_seed(subject, seed) {
            let hex = failure.tape.to_hex();
            let test = test.split_once("::").map_or(test, |(_, path)| path);
            panic!(
                "seed {seed}: {failure}\nreproduce: ROMANESCO_TAPE={hex} cargo test -p {package} \
                 {test}::part_0 -- --exact"
            );
        }
    }
    println!(
        "{}: {ran} random runs, part {part}",
        subject.factory().name()
    );
}

/// A run that differs from the model.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The tape of the run.
    pub tape: Tape,
    /// The difference.
    pub message: String,
    /// The steps of the run, the failing one last.
    pub steps: Vec<String>,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "the engine differs from the model: {}", self.message)?;
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{number:4} {step}")?;
        }
        write!(f, "tape: {}", self.tape.to_hex())
    }
}

/// Run the tape of `seed` on `subject`; returns the shrunk failure, or `None` if the run passes.
#[must_use]
pub fn check_seed(subject: &Subject, seed: u64) -> Option<Divergence> {
    let failure = check_seed_quickly(subject, seed)?;
    let begin = stdx::time::now();
    let fails = |tape: Tape| begin.elapsed() < SHRINK_TIME && check_tape(subject, &tape).is_some();
    let small = failure.tape.shrink(SHRINK_RUNS, fails);
    // A failure that depends on timing may not recur; then the first failure is reported.
    Some(check_tape(subject, &small).unwrap_or(failure))
}

/// Run the tape of `seed` on `subject`; returns the failure without shrinking it.
#[must_use]
pub fn check_seed_quickly(subject: &Subject, seed: u64) -> Option<Divergence> {
    check_tape(subject, &Tape::from_seed(mix64(seed), TAPE_BYTES))
}

/// Run `tape` on `subject`; returns the failure, or `None` if the run passes.
#[must_use]
pub fn check_tape(subject: &Subject, tape: &Tape) -> Option<Divergence> {
    let mut steps = Vec::new();
    let body = || run(subject, tape.bytes(), &mut steps);
    let message = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return None,
        Ok(Err(message)) => message,
        Err(payload) => format!("panic: {}", panic_text(&*payload)),
    };
    Some(Divergence {
        tape: tape.clone(),
        message,
        steps,
    })
}
