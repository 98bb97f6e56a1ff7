//! The worker's main loop.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lab_host::probe::check_caps;
use lab_map::codec;
use lab_report::error::{Error, Result};
use rustix::process::{Signal, set_parent_process_death_signal};
use stdx::sync::Mutex;
use stdx::time;

use super::session::Session;
use super::{acknowledged, step};
use crate::protocol::{Audit, Event, Request, Tick};
use crate::targets::{self, Settled};

/// Serve requests from standard input until it closes or a `close` request arrives. Returns the
/// program's exit code: 0 after `close`, 1 after a failed request.
#[must_use]
pub fn serve() -> u8 {
    // If the lab dies, the worker must not continue to run operations.
    if let Err(e) = set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("romanesco lab worker: cannot set the parent-death signal: {e}");
    }
    // Ctrl-C sends a signal to all processes of the terminal, but only the lab decides when the
    // worker ends.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        if let Err(e) = signal_hook::flag::register(signal, Arc::default()) {
            eprintln!("romanesco lab worker: a Ctrl-C will end it at once: {e}");
        }
    }
    let out = Mutex::new(io::stdout());
    let emit = |event: Event| {
        let line = serde_json::to_string(&event).expect("events are plain data");
        let mut out = out.lock();
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            // Writing fails because the lab has ended.
            process::exit(1);
        }
    };
    let mut session = None;
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let result = serde_json::from_str(&line)
            .map_err(|e| Error::target(format!("not a request: {e}: {line}")))
            .and_then(|request| answer(&mut session, request, &emit));
        match result {
            Ok(Event::Closed) => {
                emit(Event::Closed);
                return 0;
            }
            Ok(event) => emit(event),
            Err(e) => {
                let (kind, message) = (e.kind(), e.message);
                emit(Event::Failed { kind, message });
                return 1;
            }
        }
    }
    0
}

fn answer(
    session: &mut Option<Session>,
    request: Request,
    emit: &(dyn Fn(Event) + Sync),
) -> Result<Event> {
    if let Request::Open(open) = &request {
        let start = time::now();
        let open = session.insert(Session::open(open)?);
        let server = open.database.server().map(Box::new);
        let seconds = start.elapsed().as_secs_f64();
        return Ok(Event::Opened { seconds, server });
    }
    if matches!(request, Request::Close) {
        if let Some(open) = session.take() {
            open.database.close()?;
        }
        return Ok(Event::Closed);
    }
    if let Request::Caps {
        directory,
        limits,
        seconds,
    } = &request
    {
        let duration = Duration::from_secs_f64(seconds.clamp(0.1, 60.0));
        let checks = check_caps(directory, limits, duration)
            .map_err(|e| Error::environment(format!("{}: {e}", directory.display())))?;
        return Ok(Event::Caps { checks });
    }
    let open = session.as_mut();
    let open = open.ok_or_else(|| Error::target("no store is open"))?;
    match request {
        Request::Step(plan) => {
            step::run(open, &plan, &emit).map(|finished| Event::Finished(Box::new(finished)))
        }
        Request::Settle { seconds_max } => settle(open, seconds_max, emit),
        Request::Audit {
            acknowledged,
            before_cut,
        } => audit(open, &acknowledged, before_cut.as_ref()).map(Event::Audited),
        Request::Codecs { directory, seconds } => {
            let tried = codec::on_files(
                &directory,
                Duration::from_secs_f64(seconds.clamp(0.001, 60.0)),
            );
            tried.map(|tried| Event::Codecs { tried })
        }
        Request::Verify => Ok(Event::Verified(match &open.running {
            Some(running) => running.check(open.database.as_ref()),
            None => targets::verify(open.database.as_ref(), &open.generator, open.live),
        })),
        Request::Open(_) | Request::Caps { .. } | Request::Close => {
            Err(Error::target("handled before"))
        }
    }
}

/// Compare a killed target with the acknowledgements in `directory`.
fn audit(
    session: &Session,
    directory: &Path,
    before_cut: Option<&BTreeMap<String, u64>>,
) -> Result<Audit> {
    let clients = acknowledged::read(directory, before_cut);
    let clients = clients.map_err(|e| Error::io("read", directory, &e))?;
    targets::audit(session.database.as_ref(), &session.generator, &clients)
}

fn settle(session: &Session, seconds_max: f64, emit: &(dyn Fn(Event) + Sync)) -> Result<Event> {
    let start = time::now();
    let limit = Duration::from_secs_f64(seconds_max.clamp(0.0, 1e9));
    let result = thread::scope(|scope| {
        let work = scope.spawn(|| session.database.settle(limit));
        let mut next = 1.0;
        loop {
            let done = work.is_finished();
            let t = start.elapsed().as_secs_f64();
            if done || t >= next {
                next = t.floor() + 1.0;
                let state = session.database.state();
                emit(Event::Tick(Box::new(Tick {
                    t,
                    stats: state.stats,
                    file_bytes: state.file_bytes,
                    ..Tick::default()
                })));
            }
            if done {
                break;
            }
            time::sleep(Duration::from_millis(20));
        }
        work.join()
    });
    let ended = result.map_err(|_| Error::target("settling panicked"))??;
    Ok(Event::Settled {
        seconds: start.elapsed().as_secs_f64(),
        cut: ended == Settled::Cut,
        unknown: ended == Settled::Unknown,
    })
}
