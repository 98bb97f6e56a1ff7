//! Runs one cell: a worker in its envelope, and all steps on one data directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kv::{EngineOptions, EngineStats};
use lab_host::envelope::{Cgroups, Envelope, Mode, data_device};
use lab_host::sample::{Sampler, self_usage};
use lab_report::error::{Error, ErrorKind, Result};
use lab_report::record::{
    Cell, EnvelopeRecord, Limits, LoadKind, Plan, SCHEMA, Setting, StepPlan, StepSummary,
    TargetSpec, Work, file_name,
};
use lab_report::store::StepDir;
use vfs::DeviceId;

use super::child::Worker;
use super::exchange::{Exchange, Settling, StepLog, unexpected};
use super::host::{Asked, Host};
use super::measured::Measured;
use super::observe::{Observer, envelope_record};
use super::power::Power;
use super::server::{Server, log_length, room};
use super::{Runner, drawn, restart};
use crate::protocol::{Before, Event, Open, Request, Step};
use crate::targets::{self, Kind};
use crate::workload::iibench::RowParams;
use crate::workload::program::Spec;

/// Run all steps of a cell. On an error the current step is marked as failed, and the worker ends.
pub(super) fn run(runner: &mut Runner<'_>, cell: Cell) -> Result<()> {
    let plan = runner.manifest.plan.clone();
    let spec = plan
        .targets
        .get(cell.target)
        .ok_or_else(|| Error::environment("a cell has no target"))?;
    let dir = directory(&plan, cell);
    clear(&dir)?;
    let result = with_worker(runner, &plan, cell, spec, &dir);
    if !plan.keep_data {
        clear(&dir)?;
    }
    result
}

/// Data directory of a cell.
pub(super) fn directory(plan: &Plan, cell: Cell) -> PathBuf {
    let target = plan.targets.get(cell.target);
    let name = target.map_or(String::new(), |t| file_name(&t.name));
    plan.data_dir.join(format!("{name}-r{}", cell.repeat))
}

pub(super) fn clear(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|e| Error::io("remove", dir, &e))?;
    }
    Ok(())
}

fn with_worker(
    runner: &mut Runner<'_>,
    plan: &Plan,
    cell: Cell,
    spec: &TargetSpec,
    dir: &Path,
) -> Result<()> {
    vfs::ensure_dir(dir).map_err(|e| Error::io("create", dir, &e))?;
    let device = data_device(dir).ok();
    let kind = targets::kind(spec)?;
    let envelope = envelope(runner, plan, &kind, device)?;
    let record = envelope_record(envelope.status());
    for warning in &record.warnings {
        runner.progress.warning(warning);
    }
    let log = runner.run.path().join("worker.log");
    // Other servers truncate their log when they restart; a private server may append to it.
    let log_start = match &kind {
        Kind::Private(_) => log_length(&server_log(runner, cell, spec)),
        Kind::Embedded(_) | Kind::Managed(_) | Kind::Foreign(_) => 0,
    };
    let setting = restart::first(plan, spec).map_or_else(Setting::default, |s| s.setting.clone());
    let place = (dir, &envelope, log_start);
    let server = server(runner, plan, (cell, spec), &setting, place)?;
    let uri = address(&kind, server.as_ref());
    let (environment, around) = confined(&kind, &envelope);
    let worker = Worker::start(&runner.program, environment, &log, around)?;
    let measured = match &server {
        Some(server) => Some(server.pid()),
        None => around.map(|_| worker.pid()),
    };
    let sampler = Sampler::new(measured, &envelope, dir, device);
    let running = RunningCell {
        runner,
        plan,
        cell,
        target: spec,
        dir: dir.to_owned(),
        device,
        envelope,
        record,
        worker,
        server,
        log_start,
        uri,
        sampler,
        stats: EngineStats::default(),
        rates: BTreeMap::new(),
        before: Before::default(),
        caps: (None, None),
        pristine: true,
        lost: false,
        codecs: None,
        power: None,
    };
    running.run_steps()
}

/// The environment of a worker, and the limits around it: one without an embedded engine stays
/// outside.
pub(super) fn confined<'e>(
    kind: &Kind,
    envelope: &'e Envelope,
) -> (
    &'static [(&'static str, &'static str)],
    Option<&'e Envelope>,
) {
    match kind {
        Kind::Embedded(factory) => (factory.environment(), Some(envelope)),
        Kind::Managed(_) | Kind::Private(_) | Kind::Foreign(_) => (&[], None),
    }
}

/// Address at which the server of a target listens, if the target has one.
pub(super) fn address(kind: &Kind, server: Option<&Server>) -> Option<String> {
    match kind {
        Kind::Foreign(uri) => Some(uri.clone()),
        Kind::Embedded(_) | Kind::Managed(_) | Kind::Private(_) => {
            server.map(|s| s.uri().to_owned())
        }
    }
}

fn envelope(
    runner: &Runner<'_>,
    plan: &Plan,
    kind: &Kind,
    device: Option<vfs::DeviceId>,
) -> Result<Envelope> {
    if matches!(kind, Kind::Foreign(_)) {
        let reason = "the server was not started by the lab, so its limits are its own";
        return Ok(Envelope::uncapped(&plan.limits, reason));
    }
    if runner.cgroups.mode() == Mode::None && !plan.limits.is_unlimited() {
        let reason = "no control group can be used here; see `lab doctor`";
        return Ok(Envelope::uncapped(&plan.limits, reason));
    }
    Ok(Envelope::create(&runner.cgroups, &plan.limits, device)?)
}

/// Log file of a cell's server.
fn server_log(runner: &Runner<'_>, cell: Cell, spec: &TargetSpec) -> PathBuf {
    let name = format!("server_{}_r{}.log", file_name(&spec.name), cell.repeat);
    runner.run.path().join(name)
}

/// Start the server of a cell, if it has one, with the settings of a step. `log_start`: the
/// offset in its log at which this try's messages begin.
pub(super) fn server(
    runner: &Runner<'_>,
    plan: &Plan,
    (cell, spec): (Cell, &TargetSpec),
    setting: &Setting,
    (dir, envelope, log_start): (&Path, &Envelope, u64),
) -> Result<Option<Server>> {
    let log = server_log(runner, cell, spec);
    let host = Host {
        program: &runner.program,
        directory: dir,
        log: &log,
        envelope,
        interrupt: runner.interrupt,
    };
    let mut options = engine_options(plan, spec);
    options.codec = setting.codec.unwrap_or(options.codec);
    restart::page_options(spec, setting, &mut options);
    let asked = Asked {
        options: &options,
        durability: setting.durability.unwrap_or(plan.durability),
        clients: most_clients(plan),
        limits: &plan.limits,
    };
    let started = match targets::kind(spec)? {
        Kind::Managed(managed) => host.serve(&managed, &options).map(Some),
        Kind::Private(private) => host.start(&private, &asked).map(Some),
        Kind::Embedded(_) | Kind::Foreign(_) => Ok(None),
    };
    started.map_err(|e| {
        let room = room(&log, log_start, dir);
        e.with_message(format!("{}: {}{room}", spec.name, e.message))
    })
}

/// A cell in progress.
pub(super) struct RunningCell<'r, 'p, 'a> {
    pub(super) runner: &'r mut Runner<'a>,
    pub(super) plan: &'p Plan,
    pub(super) cell: Cell,
    pub(super) target: &'p TargetSpec,
    pub(super) dir: PathBuf,
    pub(super) device: Option<DeviceId>,
    pub(super) envelope: Envelope,
    pub(super) record: EnvelopeRecord,
    pub(super) worker: Worker,
    pub(super) server: Option<Server>,
    /// Offset in the server's log at which the messages of this try begin.
    pub(super) log_start: u64,
    /// Address at which the target's server listens.
    pub(super) uri: Option<String>,
    pub(super) sampler: Sampler,
    /// The engine's last reported statistics.
    pub(super) stats: EngineStats,
    /// Mean rates of the completed steps, by step name.
    pub(super) rates: BTreeMap<String, f64>,
    /// The caps in force on operations and on bytes, if they are those of the step; `None` if they
    /// are those of the plan.
    caps: (Option<u64>, Option<u64>),
    /// Rows and bytes that the last step left in the store.
    pub(super) before: Before,
    /// True until a step writes to the store.
    pub(super) pristine: bool,
    /// True if the worker has no open store to close.
    pub(super) lost: bool,
    /// The codecs that the cell's server reports; `None` until the server was queried.
    pub(super) codecs: Option<Vec<String>>,
    /// The file system of the store, if a step cuts its power.
    pub(super) power: Option<Power>,
}

impl RunningCell<'_, '_, '_> {
    fn run_steps(mut self) -> Result<()> {
        let plan = self.plan;
        if let Some(first) = restart::first(plan, self.target) {
            self.open(&first.setting, false)?;
        }
        for step in &plan.steps {
            self.step(step)?;
        }
        self.close()
    }

    /// Open the store with the settings of a step; returns the seconds taken. With `found`, the
    /// contents of the store are kept.
    pub(super) fn open(&mut self, setting: &Setting, found: bool) -> Result<f64> {
        let params = setting.params.as_ref().unwrap_or(&self.plan.params);
        let program = Spec::of(params).map_err(Error::environment)?;
        let rows = match &program {
            Some(_) => RowParams::NONE,
            None => serde_json::from_value(params.clone())
                .map_err(|e| Error::environment(format!("the plan's parameters: {e}")))?,
        };
        let mut options = engine_options(self.plan, self.target);
        options.codec = setting.codec.unwrap_or(options.codec);
        restart::page_options(self.target, setting, &mut options);
        let request = Request::Open(Open {
            engine: self.target.engine.clone(),
            directory: self.dir.clone(),
            options,
            uri: self.uri.clone(),
            durability: setting.durability.unwrap_or(self.plan.durability),
            rows,
            program,
            rows_present: self.before.rows,
            clients: setting.clients.unwrap_or(0).max(most_clients(self.plan)),
            // The data of a private server is removed with its directory.
            keep: self.plan.keep_data || self.server.is_some(),
            found,
        });
        let opened = self.ask(&request).map_err(|e| self.with_target(&e))?;
        let Event::Opened { seconds, server } = opened else {
            return Err(unexpected(&opened));
        };
        if let Some(facts) = server {
            self.runner.learn(self.cell, &facts)?;
            if self.uri.is_some() && self.server.is_none() {
                // Measure the server's process and disk where they are visible.
                let place = facts.data_dir.as_deref();
                let device = place.and_then(|path| data_device(path).ok());
                self.sampler = Sampler::new(facts.pid, &self.envelope, &self.dir, device);
            }
        }
        Ok(seconds)
    }

    /// End the worker, then the server that it is connected to.
    fn close(self) -> Result<()> {
        if !self.lost {
            self.worker.close(self.runner.interrupt, &self.envelope)?;
        }
        self.server.map_or(Ok(()), Server::stop)
    }

    /// Send a request and wait for its final event.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Event> {
        self.worker.ask(request, &self.envelope)?;
        loop {
            let event = self.worker.event(self.runner.interrupt, &self.envelope)?;
            if !matches!(event, Event::Tick(_) | Event::Interval(_)) {
                return Ok(event);
            }
        }
    }

    fn with_target(&mut self, error: &Error) -> Error {
        let name = &self.target.name;
        // If the server ended, the reason explains more than the client's error.
        let envelope = &self.envelope;
        let death = self.server.as_mut().and_then(|s| s.death_soon(envelope));
        let error = death.as_ref().unwrap_or(error);
        // The messages of engines already begin with the engine's name.
        let mut message = if error.message.starts_with(&format!("{name}: ")) {
            error.message.clone()
        } else {
            format!("{name}: {}", error.message)
        };
        if let Some(server) = &self.server {
            message.push_str(&room(server.log(), self.log_start, &self.dir));
        }
        error.with_message(message)
    }

    fn step(&mut self, step: &StepPlan) -> Result<()> {
        let lacks = restart::unsupported(self.plan, self.target, step);
        if let Some(reason) = lacks.or_else(|| self.lacks_codec(step)) {
            return self.pass_over(step, &reason);
        }
        let name = &self.target.name;
        self.cap((step.setting.iops, step.setting.bandwidth))?;
        if step.setting.iops.is_some() && !self.envelope.status().caps_operations() {
            return self.pass_over(
                step,
                "the cap it is about is not in force here: see the limits",
            );
        }
        let step = &match self.paced(step) {
            Ok(step) => step,
            Err(reason) => {
                self.pass_over(step, &reason)?;
                // The caps of a skipped step do not apply to later steps.
                return self.cap((None, None));
            }
        };
        let mut dir = self
            .runner
            .run
            .begin_step(name, self.cell.repeat, &step.name)?;
        dir.write_envelope(&self.record)?;
        self.runner.progress.step(self.plan, self.cell, step);
        let measured = self.enter(step).and_then(|()| match step.setting.kill {
            true => self.killed(step, &mut dir),
            false => self.measure(step, &mut dir),
        });
        match measured {
            Ok(mut done) => {
                let kept = drawn::look(self, step, &dir, &mut done);
                let kept = kept.and_then(|()| done.keep(self, step, dir));
                kept.map_err(|e| self.with_target(&e).with_kind(ErrorKind::Invalid))
            }
            Err(e) if self.runner.interrupt.is_set() => Err(e),
            Err(e) => {
                let e = self.with_target(&e).with_kind(ErrorKind::Invalid);
                dir.fail(&e.message)?;
                Err(e)
            }
        }
    }

    /// Apply the I/O caps of a step; those of the plan if the step has none.
    fn cap(&mut self, caps: (Option<u64>, Option<u64>)) -> Result<()> {
        if self.caps == caps || matches!(targets::kind(self.target), Ok(Kind::Foreign(_))) {
            self.record = envelope_record(self.envelope.status());
            return Ok(());
        }
        let own = &self.plan.limits;
        let limits = own.within(caps.0, caps.1);
        self.caps = caps;
        recap(
            &mut self.envelope,
            &self.runner.cgroups,
            &limits,
            self.device,
        )?;
        self.record = envelope_record(self.envelope.status());
        Ok(())
    }

    /// `step` with the rate of its open loop filled in, if that rate is a share of another step's
    /// rate. The error states why the rate is not known.
    fn paced(&self, step: &StepPlan) -> std::result::Result<StepPlan, String> {
        let mut step = step.clone();
        if let (Some(share), LoadKind::Open { rate, .. }) = (&step.setting.share, &mut step.load) {
            let known = self.rates.get(&share.of).copied().filter(|r| 0.0 < *r);
            let of = known.ok_or_else(|| format!("{} has no rate to take a share of", share.of))?;
            *rate = of * f64::from(share.percent) / 100.0;
        }
        Ok(step)
    }

    /// Record a step that the target does not support.
    fn pass_over(&mut self, step: &StepPlan, reason: &str) -> Result<()> {
        let (name, repeat) = (&self.target.name, self.cell.repeat);
        let dir = self.runner.run.begin_step(name, repeat, &step.name)?;
        dir.write_envelope(&self.record)?;
        let summary = StepSummary {
            schema: SCHEMA,
            target: name.clone(),
            repeat,
            step: step.name.clone(),
            valid: true,
            unsupported: Some(reason.to_owned()),
            ..StepSummary::default()
        };
        dir.finish(&summary, &[], None, None)?;
        self.runner.progress.step(self.plan, self.cell, step);
        self.runner.progress.step_end(self.plan, &summary);
        Ok(())
    }

    pub(super) fn step_request(&self, step: &StepPlan) -> Result<Request> {
        let work: Work = serde_json::from_value(step.work.clone())
            .map_err(|e| Error::environment(format!("step {}: {e}", step.name)))?;
        Ok(Request::Step(Step {
            work,
            operations: step.operations,
            seconds_max: step.seconds_max,
            load: step.load,
            clients: step.setting.clients.unwrap_or(self.plan.clients),
            acknowledged: None,
            before: self.before,
            salt: step.setting.share.as_ref().map_or(0, |s| s.percent),
        }))
    }

    fn measure(&mut self, step: &StepPlan, dir: &mut StepDir) -> Result<Measured> {
        let work: Work = serde_json::from_value(step.work.clone())
            .map_err(|e| Error::environment(format!("step {}: {e}", step.name)))?;
        let main = work.main();
        let lab_before = self_usage();
        let request = self.step_request(step)?;
        let progress = &mut *self.runner.progress;
        let mut step_log = StepLog::new(step, dir, progress);
        let mut exchange = Exchange {
            worker: &mut self.worker,
            interrupt: self.runner.interrupt,
            envelope: &self.envelope,
        };
        let stats = std::mem::take(&mut self.stats);
        let mut observer = Observer::new(&mut self.sampler, main, stats);
        let finished = match exchange.observed(&request, &mut step_log, &mut observer)? {
            Event::Finished(finished) => *finished,
            other => return Err(unexpected(&other)),
        };
        let loaded = observer.sample();
        observer.settle(finished.seconds);
        // The caps of a step do not apply to later steps.
        if std::mem::take(&mut self.caps) != (None, None) {
            let (groups, limits) = (&self.runner.cgroups, &self.plan.limits);
            recap(&mut self.envelope, groups, limits, self.device)?;
        }
        let mut exchange = Exchange {
            worker: &mut self.worker,
            interrupt: self.runner.interrupt,
            envelope: &self.envelope,
        };
        let mut settled = Settling::default();
        if step.settle {
            let seconds_max = self.plan.settle_max;
            settled = exchange.settled(seconds_max, &mut step_log, &mut observer)?;
        }
        let end = observer.sample();
        self.stats = observer.stats().clone();
        let lab = (lab_before, self_usage());
        step_log.progress.verifying();
        let integrity = match exchange.observed(&Request::Verify, &mut step_log, &mut observer)? {
            Event::Verified(integrity) => integrity,
            other => return Err(unexpected(&other)),
        };
        Ok(Measured::new(
            main,
            observer,
            (loaded, end),
            finished,
            settled,
            integrity,
            lab,
        ))
    }
}

fn recap(
    envelope: &mut Envelope,
    cgroups: &Cgroups,
    limits: &Limits,
    device: Option<DeviceId>,
) -> Result<()> {
    Ok(envelope.recap(cgroups, limits, device)?)
}

/// The highest number of clients of any step.
fn most_clients(plan: &Plan) -> u32 {
    let own = plan.steps.iter().filter_map(|s| s.setting.clients);
    own.fold(plan.clients, u32::max)
}

/// The options a target is opened with.
pub(super) fn engine_options(plan: &Plan, target: &TargetSpec) -> EngineOptions {
    let own: BTreeMap<String, String> = match targets::kind(target) {
        Ok(Kind::Managed(managed)) => managed.own,
        Ok(Kind::Private(_)) => BTreeMap::new(),
        _ => target.options.clone(),
    };
    EngineOptions {
        cache: plan.cache,
        interval: Duration::from_millis(plan.interval_ms),
        direct_io: plan.direct_io,
        codec: plan.codec,
        threads: plan.threads,
        // Space to grow well beyond the estimate; LMDB reserves this amount of address space.
        size_max: stdx::ByteSize(plan.disk_bytes.saturating_mul(4).max(16 << 30)),
        own,
        ..EngineOptions::default()
    }
}
