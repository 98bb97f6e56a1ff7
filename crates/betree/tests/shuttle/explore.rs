//! Drawing schedules.

use std::env;

use stdx::sync::shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use stdx::sync::shuttle::{Config, MaxSteps, Runner, replay};

/// Stack size: the threads decode pages and format errors on their stacks.
const STACK: usize = 512 << 10;

/// A fixed seed, so that a failure on one machine is a failure on every machine.
const SEED: u64 = 0x5EED;

/// Run `kernel` with `schedules` random schedules, and with as many that preempt rarely (PCT).
pub(crate) fn explore(schedules: usize, kernel: impl Fn() + Clone + Send + Sync + 'static) {
    if let Ok(schedule) = env::var("ROMANESCO_SCHEDULE") {
        return replay(kernel, &schedule);
    }
    let schedules = match env::var("ROMANESCO_SCHEDULES") {
        Ok(number) => number.parse().expect("ROMANESCO_SCHEDULES is a number"),
        Err(_) => schedules,
    };
    let seed = match env::var("ROMANESCO_SEED") {
        Ok(number) => number.parse().expect("ROMANESCO_SEED is a number"),
        Err(_) => SEED,
    };
    run(
        RandomScheduler::new_from_seed(seed, schedules),
        kernel.clone(),
    );
    for depth in [2, 4] {
        let scheduler = PctScheduler::new_from_seed(seed, depth, schedules.div_ceil(2));
        run(scheduler, kernel.clone());
    }
}

fn run(scheduler: impl Scheduler + 'static, kernel: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(5_000_000);
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(kernel);
}

/// A number below `limit`, drawn by the schedule.
pub(crate) fn draw(limit: u64) -> u64 {
    use stdx::sync::shuttle::rand::{Rng, thread_rng};
    thread_rng().gen_range(0..limit)
}
