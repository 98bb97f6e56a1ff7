//! Progress of a copy on standard error: a bar on a terminal, a line now and then otherwise.

use std::io::{IsTerminal as _, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stdx::ByteSize;

/// Time between two lines.
const LINES: Duration = Duration::from_secs(10);

/// Shows how far a copy is.
pub(super) struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    begun: Instant,
    next: Duration,
}

impl Progress {
    pub(super) fn new(what: &'static str) -> Progress {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.expect("the template is a constant"));
            bar.with_message(what)
        });
        Progress {
            what,
            bar,
            begun: stdx::time::now(),
            next: LINES,
        }
    }

    /// Show the bytes done, and those in all as far as they are known.
    pub(super) fn show(&mut self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total.max(done));
            bar.set_position(done);
            return;
        }
        let taken = self.begun.elapsed();
        if taken < self.next {
            return;
        }
        self.next = taken + LINES;
        let (done, total) = (ByteSize(done), ByteSize(total));
        note!("{}: {done} of {total}, {} s", self.what, taken.as_secs());
    }
}

/// Lines about work whose size is not known, one now and then.
#[derive(Default)]
pub(super) struct Lines {
    last: Option<Instant>,
}

impl Lines {
    /// Print a line if the last one was long ago.
    pub(super) fn show(&mut self, line: impl FnOnce() -> String) {
        let last = self.last.get_or_insert_with(stdx::time::now);
        if LINES <= last.elapsed() {
            *last = stdx::time::now();
            note!("{}", line());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
