//! The metrics of a member of a replica set.

use std::time::Duration;

use super::float::{float, unsigned};
use super::text::{Kind, Text};
use crate::cluster::config::SetConfig;
use crate::cluster::member::Member;
use crate::cluster::view::Progress;
use crate::flow;
use crate::server::Server;

/// Append them; nothing on a server that is the only member of its set.
pub(super) fn append(server: &Server, text: &mut Text) {
    window(server, text);
    let Some(member) = &server.member else { return };
    let view = member.view();
    let state = f64::from(view.standing.number());
    let help = "State of this member by MongoDB's number: 1 primary, 2 secondary, 7 arbiter.";
    text.one("repl_state", Kind::Gauge, help, state);
    let term = unsigned(view.term);
    text.one("repl_term", Kind::Gauge, "Number of elections.", term);
    let progress = member.progress.borrow().clone();
    if let Some(config) = &view.config {
        members(member, config, &progress, text);
        uncommitted(config, &progress, text);
    }
    let help = "Share of the limit of what no majority has; writes are delayed from 0.5 on.";
    let load = flow::load(server);
    text.one("repl_flow_load", Kind::Gauge, help, load);
    let help = "Seconds that writes were delayed by flow control.";
    let seconds = float(server.flow.micros.get()) / 1e6;
    text.one(
        "repl_flow_delay_seconds_total",
        Kind::Counter,
        help,
        seconds,
    );
    traffic(member, text);
}

/// The time that the oplog spans.
fn window(server: &Server, text: &mut Text) {
    // Without the oldest entry, which may be removed just now, the family is left out.
    let Ok(Some((first, last))) = server.store.oplog_window() else {
        return;
    };
    let help = "Seconds between the oldest and the newest entry of the oplog.";
    let seconds = f64::from(last.time.saturating_sub(first.time));
    text.one("oplog_window_seconds", Kind::Gauge, help, seconds);
    let (entries, bytes) = server.store.oplog_totals().unwrap_or_default();
    let entries = unsigned(entries);
    text.one("oplog_entries", Kind::Gauge, "Oplog entries.", entries);
    let bytes = unsigned(bytes);
    text.one("oplog_bytes", Kind::Gauge, "Bytes of the oplog.", bytes);
}

fn members(member: &Member, config: &SetConfig, progress: &Progress, text: &mut Text) {
    let help = "For how many seconds a member has lacked something that another one has.";
    text.family("repl_member_lag_seconds", Kind::Gauge, help);
    for (id, lag) in progress.lags.iter() {
        text.sample(&[("member", config.host(*id))], lag.as_secs_f64());
    }
    let silence = 2 * Duration::from_millis(config.settings.election_ms);
    let help = "Whether another member has reported within two election timeouts.";
    text.family("repl_member_up", Kind::Gauge, help);
    let me = member.view().me;
    for other in config.members.iter().filter(|m| Some(m.id) != me) {
        let report = progress.reports.get(&other.id);
        let up = report.is_some_and(|report| report.at.elapsed() <= silence);
        text.sample(&[("member", &other.host)], f64::from(u8::from(up)));
    }
    let help = "Seconds of a round trip to another member.";
    text.family("repl_member_ping_seconds", Kind::Gauge, help);
    for other in config.members.iter().filter(|m| Some(m.id) != me) {
        let ping = member.health(other.id).ping.as_secs_f64();
        text.sample(&[("member", &other.host)], ping);
    }
}

fn uncommitted(config: &SetConfig, progress: &Progress, text: &mut Text) {
    let uncommitted = progress.uncommitted;
    let help = "Age in seconds of the oldest entry of this primary that no majority has.";
    let age = uncommitted.age.as_secs_f64();
    text.one("repl_uncommitted_seconds", Kind::Gauge, help, age);
    let help = "Bytes of entries of this primary that no majority has, about.";
    let bytes = unsigned(uncommitted.bytes);
    text.one("repl_uncommitted_bytes", Kind::Gauge, help, bytes);
    let help = "The member whose acknowledgement the commit point waits for: 1.";
    text.family("repl_commit_held_by", Kind::Gauge, help);
    if let Some(id) = uncommitted.held_by {
        text.sample(&[("member", config.host(id))], 1.0);
    }
}

fn traffic(member: &Member, text: &mut Text) {
    let traffic = &member.storage.traffic;
    let one = |text: &mut Text, name: &str, help: &str, value: f64| {
        text.one(name, Kind::Counter, help, value);
    };
    let bytes = float(traffic.fetched_bytes.get());
    let help = "Bytes of entries fetched from other members.";
    one(text, "repl_fetched_bytes_total", help, bytes);
    let fetched = float(traffic.fetched.get());
    let help = "Entries fetched from other members.";
    one(text, "repl_fetched_entries_total", help, fetched);
    let applied = float(traffic.applied.get());
    let help = "Entries of other members that were applied.";
    one(text, "repl_applied_entries_total", help, applied);
    let seconds = float(traffic.apply_millis.get()) / 1e3;
    let help = "Seconds that applying took.";
    one(text, "repl_apply_seconds_total", help, seconds);
    let (entries, bytes) = traffic.buffered();
    let help = "Entries that are written and not applied yet.";
    let entries = unsigned(entries);
    text.one("repl_buffer_entries", Kind::Gauge, help, entries);
    let help = "Bytes of entries that are written and not applied yet.";
    let bytes = unsigned(bytes);
    text.one("repl_buffer_bytes", Kind::Gauge, help, bytes);
}
