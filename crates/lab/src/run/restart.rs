//! The state of a store between two steps: fresh, cold, or audited after a kill.
//!
//! In each case a new worker process in the same envelope replaces the old one, so that no state of
//! the old store is left in memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::mem;
use std::path::{Path, PathBuf};

use kv::{Codec, Durability, EngineOptions, Factory};
use lab_host::sample::{Sampler, self_usage};
use lab_report::error::{Error, Result};
use lab_report::record::{
    Ended, Integrity, Main, Plan, Setting, StepPlan, TargetSpec, Work, encode_histogram,
};
use lab_report::store::StepDir;
use rustix::fs::{Advice, fadvise};
use stdx::time;

use super::cell::{self, RunningCell, clear};
use super::child::Worker;
use super::exchange::{Settling, StepLog, unexpected};
use super::halt::halt;
use super::measured::Measured;
use super::observe::Observer;
use super::power::{self, Power};
use super::server::Server;
use crate::load::no_latencies;
use crate::protocol::{Audit, Before, Event, Finished, Request, Tick};
use crate::targets::{self, CODEC, FILL, Kind, Managed, Private};
use crate::workload::program::Spec;

/// Maximum number of clients of an engine within the worker: each client has a thread there, which
/// shares the memory cap with the engine.
const THREADS_MAX: u32 = 512;

/// Why a target cannot run a step, as far as this is known before the run; `None` if it can.
#[must_use]
pub fn unsupported(plan: &Plan, spec: &TargetSpec, step: &StepPlan) -> Option<String> {
    let setting = &step.setting;
    if owns_tables(step)
        && let Some(why) = targets::tables_unsupported(spec, transactions(plan))
    {
        return Some(why.to_owned());
    }
    if setting.power
        && let Some(why) = power::lacks()
    {
        return Some(why.to_owned());
    }
    let factory = match targets::kind(spec) {
        Ok(Kind::Embedded(factory)) => factory,
        Ok(Kind::Private(private)) => {
            let lacks = setting.durability.and_then(|level| private.lacks(level));
            let why = private.unsupported().or(lacks);
            return why
                .map(str::to_owned)
                .or_else(|| server_pages(&private, setting));
        }
        Ok(Kind::Managed(managed)) => return served(&managed, step),
        _ => {
            if setting.iops.is_some() {
                return Some("the lab did not start it, so it cannot be capped".to_owned());
            }
            let needs = setting.kill || setting.cold || on_fresh(plan, step);
            let why = "it needs a store of its own, and this server runs already";
            return needs.then(|| why.to_owned());
        }
    };
    if let Some(why) = page_settings(factory, step) {
        return Some(why);
    }
    if setting.clients.is_some_and(|clients| THREADS_MAX < clients) {
        return Some(format!(
            "its clients are threads of one program: more than {THREADS_MAX} are not tried"
        ));
    }
    let can = factory.capabilities();
    match setting.durability {
        Some(level) if level != Durability::None && !can.persistent => {
            return Some("it keeps nothing that could survive the process".to_owned());
        }
        Some(Durability::Group) if !can.group_commit => {
            return Some("its commits cannot share a sync; see sync".to_owned());
        }
        Some(Durability::Interval) if !can.interval => {
            return Some("it has no log that could be synced in intervals".to_owned());
        }
        _ => {}
    }
    if (setting.kill || setting.cold) && !can.persistent {
        return Some("it keeps nothing on disk".to_owned());
    }
    None
}

/// Why the program's own server cannot run a step; `None` if it can.
fn served(managed: &Managed, step: &StepPlan) -> Option<String> {
    let (setting, can) = (&step.setting, managed.factory.capabilities());
    let why = match setting.durability {
        Some(Durability::Group) => "its journaled writes share syncs as they are; see sync",
        Some(Durability::None) => "its journal cannot be switched off; see interval",
        _ if setting.fill.is_some() => "it has no fill factor; see the steps without one",
        _ if setting.compressor.is_some() => "its codec cannot be chosen by name here",
        _ if (setting.kill || setting.cold || setting.map) && !can.persistent => {
            "its engine keeps nothing on disk"
        }
        _ if rebuilds(step) && !can.compaction => "it cannot rewrite its data on request",
        _ => return None,
    };
    Some(why.to_owned())
}

/// Whether a step uses a fresh store, which the step itself or an earlier step creates. A workload
/// that recreates its tables needs no fresh store.
fn on_fresh(plan: &Plan, step: &StepPlan) -> bool {
    let place = plan.steps.iter().position(|s| s.name == step.name);
    let mut until = plan.steps.iter().take(place.map_or(0, |place| place + 1));
    let begun = until.rfind(|s| s.setting.fresh);
    begun.is_some_and(|s| !owns_tables(s))
}

/// Whether a step rewrites the rows.
fn rebuilds(step: &StepPlan) -> bool {
    step.work.get("work").and_then(|w| w.as_str()) == Some("rebuild")
}

/// Whether a plan's workload consists of transactions.
fn transactions(plan: &Plan) -> bool {
    matches!(Spec::of(&plan.params), Ok(Some(spec)) if spec.transactions())
}

/// Whether a step's workload declares its own tables.
fn owns_tables(step: &StepPlan) -> bool {
    matches!(
        serde_json::from_value(step.work.clone()),
        Ok(Work::Program(_))
    )
}

/// Why an engine does not support the page settings of a step; `None` if it does.
fn page_settings(factory: &dyn Factory, step: &StepPlan) -> Option<String> {
    let setting = &step.setting;
    let can = factory.capabilities();
    if setting.fill.is_some() && fill_option(factory).is_none() {
        return Some("it has no fill factor; see the steps without one".to_owned());
    }
    if rebuilds(step) && !can.compaction {
        return Some("it cannot rewrite its data on request".to_owned());
    }
    if (setting.map || setting.codecs.is_some()) && !can.persistent {
        return Some("it keeps nothing on disk".to_owned());
    }
    let name = setting.compressor.as_deref()?;
    let missing = codec_options(factory, name).is_none();
    missing.then(|| format!("it has no codec {name}"))
}

/// Why a server does not support the page settings of a step; `None` if it does.
fn server_pages(private: &Private, setting: &Setting) -> Option<String> {
    if setting.fill.is_some() && !private.fills() {
        return Some("it has no fill factor; see the steps without one".to_owned());
    }
    let named = setting.compressor.as_deref().filter(|name| *name != "none");
    let named = named.filter(|name| private.codec(name).is_none());
    named.map(|name| format!("its codec cannot be chosen by name here ({name})"))
}

/// The engine-specific option for the fill factor of pages, if the engine has one.
fn fill_option(factory: &dyn Factory) -> Option<&'static str> {
    let mut options = factory.options().iter();
    options.find(|o| o.name == "split_pct").map(|o| o.name)
}

/// The class and the engine-specific options of a codec. An engine without codecs supports `none`.
fn codec_options(
    factory: &dyn Factory,
    name: &str,
) -> Option<(Codec, &'static [(&'static str, &'static str)])> {
    let codecs = factory.codecs();
    if codecs.is_empty() && name == "none" {
        return Some((Codec::None, &[]));
    }
    let found = codecs.iter().find(|codec| codec.name == name)?;
    Some((found.class, found.own))
}

/// Add the page settings of a step to the options of an engine.
pub(super) fn page_options(spec: &TargetSpec, setting: &Setting, options: &mut EngineOptions) {
    let factory = match targets::kind(spec) {
        Ok(Kind::Embedded(factory)) => factory,
        Ok(Kind::Private(_)) => {
            let fill = setting.fill.map(|fill| (FILL.to_owned(), fill.to_string()));
            options.own.extend(fill);
            if let Some(named) = &setting.compressor {
                options.codec = Codec::None;
                options.own.insert(CODEC.to_owned(), named.clone());
            }
            return;
        }
        _ => return,
    };
    if let (Some(fill), Some(name)) = (setting.fill, fill_option(factory)) {
        options.own.insert(name.to_owned(), fill.to_string());
    }
    let named = setting.compressor.as_deref();
    if let Some((class, own)) = named.and_then(|name| codec_options(factory, name)) {
        options.codec = class;
        let own = own.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        options.own.extend(own);
    }
}

/// The first step that a target can run; its setting opens the store.
pub(super) fn first<'p>(plan: &'p Plan, spec: &TargetSpec) -> Option<&'p StepPlan> {
    let mut steps = plan.steps.iter();
    steps.find(|step| unsupported(plan, spec, step).is_none())
}

impl RunningCell<'_, '_, '_> {
    /// Bring the store into the state that a step requires at its start.
    pub(super) fn enter(&mut self, step: &StepPlan) -> Result<()> {
        let pristine = mem::take(&mut self.pristine);
        let Setting { fresh, cold, .. } = step.setting;
        let stays = matches!(targets::kind(self.target), Ok(Kind::Foreign(_)));
        let begins = fresh && !pristine && !stays;
        if begins || cold || step.setting.power {
            if fresh {
                self.before = Before::default();
            }
            self.replace(step, fresh)?;
            self.open(&step.setting, !fresh)?;
        }
        Ok(())
    }

    /// Close the store, end the worker and its server, and start new ones: on an empty directory,
    /// or on the existing data.
    fn replace(&mut self, step: &StepPlan, fresh: bool) -> Result<()> {
        let next = self.start()?;
        let last = mem::replace(&mut self.worker, next);
        if !mem::take(&mut self.lost) {
            last.close(self.runner.interrupt, &self.envelope)?;
        }
        if let Some(server) = self.server.take() {
            server.stop()?;
        }
        if fresh {
            self.power = None;
            clear(&self.dir)?;
            vfs::ensure_dir(&self.dir).map_err(|e| Error::io("create", &self.dir, &e))?;
            if step.setting.power {
                self.power = Some(Power::on(&self.dir)?);
            }
        } else {
            drop_pages(&self.dir)?;
        }
        self.serve(step)?;
        if let Some(power) = &self.power {
            // The audit is not meant to cover the files that the setup of a server wrote, so sync
            // them first.
            power.sync()?;
        }
        self.attend();
        Ok(())
    }

    /// Start the server of the target, if it has one.
    fn serve(&mut self, step: &StepPlan) -> Result<()> {
        self.server = cell::server(
            self.runner,
            self.plan,
            (self.cell, self.target),
            &step.setting,
            (&self.dir, &self.envelope, self.log_start),
        )?;
        if let Some(server) = &self.server {
            self.uri = Some(server.uri().to_owned());
        }
        Ok(())
    }

    fn start(&self) -> Result<Worker> {
        let log = self.runner.run.path().join("worker.log");
        let kind = targets::kind(self.target)?;
        let (environment, around) = cell::confined(&kind, &self.envelope);
        Worker::start(&self.runner.program, environment, &log, around)
    }

    /// Make the sampler sample the current server process or, if there is none, the current worker.
    fn attend(&mut self) {
        let server = self.server.as_ref().map(Server::pid);
        self.sampler = Sampler::new(
            Some(server.unwrap_or(self.worker.pid())),
            &self.envelope,
            &self.dir,
            self.device,
        );
        self.stats = kv::EngineStats::default();
    }

    /// Run a step that ends with a kill: load until its time is up, kill the worker, open the store
    /// in a new worker, and compare it with the commits that were acknowledged to the clients.
    pub(super) fn killed(&mut self, step: &StepPlan, dir: &mut StepDir) -> Result<Measured> {
        let acknowledged = Acknowledged::new(&self.dir)?;
        let lab_before = self_usage();
        let mut request = self.step_request(step)?;
        if let Request::Step(asked) = &mut request {
            asked.seconds_max = f64::MAX;
            asked.acknowledged = Some(acknowledged.0.clone());
        }
        let stats = mem::take(&mut self.stats);
        let mut observer = Observer::new(&mut self.sampler, Main::Rows, stats);
        let progress = &mut *self.runner.progress;
        let mut step_log = StepLog::new(step, dir, progress);
        self.worker.ask(&request, &self.envelope)?;
        let last = loop {
            match self.worker.event(self.runner.interrupt, &self.envelope)? {
                Event::Tick(tick) => {
                    let done = tick.t >= step.seconds_max && 0 < tick.rows;
                    let end = tick.clone();
                    step_log.second(&mut observer, *tick)?;
                    if done {
                        break *end;
                    }
                }
                Event::Interval(_) => {}
                other => return Err(unexpected(&other)),
            }
        };
        let (power, server) = (self.power.as_ref(), self.server.take());
        let before_cut = crash(&acknowledged, power, server, &mut self.worker)?;
        let end = observer.sample();
        step_log.progress.verifying();
        let mut measured = Measured::new(
            Main::Rows,
            observer,
            (end.clone(), end),
            ended(&last),
            Settling::default(),
            Integrity::default(),
            (lab_before, self_usage()),
        );
        let request = Request::Audit {
            acknowledged: acknowledged.0.clone(),
            before_cut,
        };
        self.reopen(step, &request, &mut measured)?;
        Ok(measured)
    }

    /// Open the store of the killed worker, and audit it.
    fn reopen(
        &mut self,
        step: &StepPlan,
        request: &Request,
        measured: &mut Measured,
    ) -> Result<()> {
        self.lost = true;
        let next = self.start()?;
        self.worker = next;
        let level = step.setting.durability.unwrap_or(self.plan.durability);
        let consistent = match targets::kind(self.target)? {
            Kind::Private(private) => private.none_is_consistent(),
            Kind::Embedded(factory) => factory.capabilities().none_is_consistent,
            // Inconsistencies of these targets are not excused.
            Kind::Managed(_) | Kind::Foreign(_) => true,
        };
        let excused = level == Durability::None && !consistent;
        let extra = &mut measured.extra;
        let begun = time::now();
        let served = self.serve(step);
        let recovered = begun.elapsed().as_secs_f64();
        self.attend();
        match served.and_then(|()| self.open(&step.setting, true)) {
            Ok(seconds) => {
                // A server recovers before it listens, so its start counts as recovery.
                let all = if self.server.is_some() {
                    recovered
                } else {
                    0.0
                } + seconds;
                extra.insert("recovery_seconds".to_owned(), all);
            }
            Err(e) if excused && !self.runner.interrupt.is_set() => {
                extra.insert("opens_after_kill".to_owned(), 0.0);
                measured.warnings.push(format!(
                    "the store does not open after the kill, which this level permits: {}",
                    e.message
                ));
                return Ok(());
            }
            Err(e) => return Err(e),
        }
        self.lost = false;
        let audit = match self.ask(request)? {
            Event::Audited(audit) => audit,
            other => return Err(unexpected(&other)),
        };
        self.stats = kv::EngineStats::default();
        judge(&audit, level, excused, measured);
        Ok(())
    }
}

/// The result of a load whose clients were killed: its state at its last report.
fn ended(last: &Tick) -> Finished {
    let seconds = last.t.max(1e-3);
    let rate = last.rows as f64 / seconds;
    Finished {
        ended: Ended::Time,
        rows: last.rows,
        seconds,
        rate_first_tenth: rate,
        rate_last_tenth: rate,
        histogram: encode_histogram(&no_latencies()),
        client_cpu_seconds: last.client_cpu_seconds,
        ..Finished::default()
    }
}

/// Cut the power, if the step ends with that, and kill the processes that hold the store. Returns
/// the sizes of the acknowledgement files before the cut. A cut takes a while, during which nothing
/// may be written out; so all processes are halted first (P2).
fn crash(
    acknowledged: &Acknowledged,
    power: Option<&Power>,
    server: Option<Server>,
    worker: &mut Worker,
) -> Result<Option<BTreeMap<String, u64>>> {
    let mut before_cut = None;
    if let Some(power) = power {
        let mut working = server.as_ref().map_or_else(Vec::new, Server::processes);
        working.push(worker.pid());
        halt(&working);
        before_cut = Some(acknowledged.sizes()?);
        power.cut()?;
    }
    if let Some(server) = server {
        server.kill();
    }
    worker.kill();
    power.map_or(Ok(()), Power::back)?;
    Ok(before_cut)
}

/// Store the findings of an audit in the result.
fn judge(audit: &Audit, level: Durability, excused: bool, measured: &mut Measured) {
    let extra = &mut measured.extra;
    let mut put = |name: &str, value: u64| extra.insert(name.to_owned(), value as f64);
    put("opens_after_kill", 1);
    put("acknowledged", audit.acknowledged);
    put("lost_after_kill", audit.lost);
    put("unacknowledged_found", audit.unacknowledged);
    let mut faults = audit.faults.clone();
    if 0 < audit.gaps {
        faults.push(format!(
            "{} commits are gone though later ones of the same client are there",
            audit.gaps
        ));
    }
    if excused {
        let permitted = faults.drain(..).map(|f| format!("permitted here: {f}"));
        measured.warnings.extend(permitted);
    }
    let promised = matches!(level, Durability::Sync | Durability::Group);
    if promised && 0 < audit.lost {
        faults.push(format!(
            "{} of {} acknowledged commits are lost after the kill, at durability {level}",
            audit.lost, audit.acknowledged
        ));
    }
    measured.finished.rows = audit.acknowledged;
    measured.finished.live_rows = audit.found;
    measured.integrity = Integrity {
        checked: true,
        rows_expected: audit.acknowledged - audit.lost.min(audit.acknowledged),
        rows_found: audit.found,
        faults,
        seconds: audit.seconds,
    };
}

/// Directory in which the clients log acknowledged commits. It is beside the data directory, so
/// that the size of the data files is that of the store alone. Removed when dropped.
struct Acknowledged(PathBuf);

impl Acknowledged {
    fn new(data: &Path) -> Result<Acknowledged> {
        let mut path = data.as_os_str().to_owned();
        path.push(".acknowledged");
        let path = PathBuf::from(path);
        clear(&path)?;
        vfs::ensure_dir(&path).map_err(|e| Error::io("create", &path, &e))?;
        Ok(Acknowledged(path))
    }

    /// The current size of each file.
    fn sizes(&self) -> Result<BTreeMap<String, u64>> {
        let failed = |e| Error::io("read", &self.0, &e);
        let mut sizes = BTreeMap::new();
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let size = entry.metadata().map_err(failed)?.len();
            sizes.insert(entry.file_name().to_string_lossy().into_owned(), size);
        }
        Ok(sizes)
    }
}

impl Drop for Acknowledged {
    fn drop(&mut self) {
        // If removing fails, the next run of the cell removes the files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Evict the files below `dir` from the page cache. Dirty pages cannot be evicted, so the files are
/// synced first.
fn drop_pages(dir: &Path) -> Result<()> {
    let entries = fs::read_dir(dir).map_err(|e| Error::io("read", dir, &e))?;
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("read", dir, &e))?;
        let path = entry.path();
        let kind = entry
            .file_type()
            .map_err(|e| Error::io("read", &path, &e))?;
        if kind.is_dir() {
            drop_pages(&path)?;
        } else if kind.is_file() {
            let file = File::open(&path).map_err(|e| Error::io("open", &path, &e))?;
            file.sync_all().map_err(|e| Error::io("sync", &path, &e))?;
            fadvise(&file, 0, None, Advice::DontNeed).map_err(|e| {
                Error::io("drop from the page cache", &path, &std::io::Error::from(e))
            })?;
        }
    }
    Ok(())
}
