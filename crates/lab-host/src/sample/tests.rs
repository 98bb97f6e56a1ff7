//! Tests of samples and their differences.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use lab_report::record::Limits;

use super::*;
use crate::envelope::{Cgroups, data_device};

/// A sampler of this process, with its data in `dir`.
fn of_self(dir: &Path) -> Sampler {
    let envelope = Envelope::uncapped(&Limits::default(), "a test");
    Sampler::new(
        Some(std::process::id()),
        &envelope,
        dir,
        data_device(dir).ok(),
    )
}

#[test]
fn a_running_process_has_every_counter_it_should() {
    let dir = tempfile::tempdir().unwrap();
    let mut sampler = of_self(dir.path());
    let before = sampler.sample();
    let mut file = File::create(dir.path().join("f")).unwrap();
    file.write_all(&vec![7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    let after = sampler.sample();
    let process = after.process.unwrap();
    assert!(process.rss_bytes > 1 << 20 && process.threads >= 1);
    assert_eq!(after.data.unwrap().length_bytes, 1 << 20);
    assert_eq!(
        (after.memory, after.group_io),
        (None, None),
        "S1: no group, no zero"
    );
    let delta = after.since(&before);
    assert!(delta.elapsed > Duration::ZERO);
    assert!(delta.process_io.unwrap().write_calls >= 1);
    assert!(delta.switches.is_some() && delta.cpu_user_s.is_some());
    if after.device_source == DeviceSource::WholeDisk {
        assert!(delta.device.unwrap().write_bytes >= 1 << 20, "{delta:?}");
        assert!(sampler.disk_name().is_some());
    }
    assert_eq!(
        after.pressure.io.is_some(),
        Path::new("/proc/pressure/io").exists()
    );
    let json = serde_json::to_string(&after).unwrap();
    assert_eq!(serde_json::from_str::<OsSample>(&json).unwrap(), after);
}

#[test]
fn a_process_that_ends_becomes_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let envelope = Envelope::uncapped(&Limits::default(), "a test");
    let mut sampler = Sampler::new(Some(child.id()), &envelope, dir.path(), None);
    let alive = sampler.sample();
    assert!(alive.process.is_some());
    assert_eq!(
        (alive.device, alive.device_source),
        (None, DeviceSource::None)
    );
    drop(child.stdin.take());
    child.wait().unwrap();
    let gone = sampler.sample();
    assert_eq!(gone.process, None, "S3");
    assert_eq!(gone.since(&alive).cpu_user_s, None);
}

#[test]
fn counters_that_run_backwards_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut sampler = of_self(dir.path());
    let (first, mut second) = (sampler.sample(), sampler.sample());
    if let Some(process) = &mut second.process {
        process.major_faults = 0;
    }
    let mut first = first;
    if let Some(process) = &mut first.process {
        process.major_faults = 1;
    }
    assert_eq!(second.since(&first).major_faults, None);
}

#[test]
fn the_group_of_a_worker_is_sampled() {
    let dir = tempfile::tempdir().unwrap();
    let cgroups = Cgroups::detect();
    let envelope = Envelope::create(&cgroups, &Limits::default(), None).unwrap();
    let file = dir.path().join("f");
    let script = format!(
        "read x; head -c 5000000 /dev/zero > {}; read y",
        file.display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    envelope.admit(child.id()).unwrap();
    let mut sampler = Sampler::new(Some(child.id()), &envelope, dir.path(), None);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"\n").unwrap();
    while fs::metadata(&file).map_or(0, |m| m.len()) < 5_000_000 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the worker ended early"
        );
        std::thread::yield_now();
    }
    let memory = sampler.sample().memory;
    input.write_all(b"\n").unwrap();
    child.wait().unwrap();
    let Some(memory) = memory else {
        assert_eq!(envelope.memory_group(), None, "a group has memory counters");
        stdx::skip::test("memory is not counted by control groups here");
        return;
    };
    assert!(memory.page_cache_bytes.unwrap() >= 4_000_000, "{memory:?}");
    assert!(memory.usage_bytes.unwrap() >= 4_000_000, "{memory:?}");
    assert!(memory.dirty_bytes.is_some() && memory.writeback_bytes.is_some());
}

/// Measures the cost of one sample with 30 threads; the number is printed, not asserted.
#[test]
fn the_cost_of_a_sample_with_thirty_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let receive = std::sync::Arc::new(stdx::sync::Mutex::new(receive));
    let threads: Vec<_> = (0..30)
        .map(|_| {
            let receive = std::sync::Arc::clone(&receive);
            stdx::sync::spawn("idle", move || receive.lock().recv().is_err()).unwrap()
        })
        .collect();
    let mut sampler = of_self(dir.path());
    sampler.sample();
    let used = || self_usage().unwrap().cpu_s;
    let (begin, cpu) = (stdx::time::now(), used());
    for _ in 0..200 {
        assert!(sampler.sample().process.unwrap().threads >= 30);
    }
    let (wall, cpu) = (begin.elapsed() / 200, (used() - cpu) / 200.0);
    println!(
        "one sample: {wall:?} elapsed, {:.3} ms of processor",
        cpu * 1e3
    );
    drop(send);
    for thread in threads {
        assert!(thread.join().unwrap(), "the channel was closed");
    }
}
