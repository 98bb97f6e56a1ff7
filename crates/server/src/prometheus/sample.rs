//! Reads the counters for the page every few seconds.

use std::sync::Arc;

use super::serve::on_pool;
use crate::server::Server;
use crate::state::clock;
use crate::watch::{Sample, Stall};

/// Keep the history until the server stops.
pub(crate) async fn keep_history(server: Arc<Server>) {
    let mut stopping = server.stopping();
    loop {
        if on_pool(&server, keep).await.is_none() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(server.config.endpoint.period) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
}

fn keep(server: &Server) {
    if let Some(watch) = &server.watch {
        let sample = sample(server);
        watch.history.lock().add(sample);
    }
}

fn sample(server: &Server) -> Sample {
    let durations = server.metrics.durations();
    let durations = durations.map(|(class, durations)| (class, durations.counts()));
    // An engine that is closed or broken has no statistics.
    let stats = server.store.engine().stats().unwrap_or_default();
    let stalls = stats.stalls.iter().map(|stall| {
        let waits = Stall {
            count: stall.count,
            micros: stall.micros.unwrap_or(0),
        };
        (stall.reason.clone(), waits)
    });
    Sample {
        now: stdx::time::now(),
        at: clock::now().timestamp_millis(),
        durations: durations.to_vec(),
        stalls: stalls.collect(),
        debt: stats.debt_bytes,
        written: stats.written.iter().map(|count| count.bytes).sum(),
    }
}
