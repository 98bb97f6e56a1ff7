//! Clients that never authenticate, against a server in a separate process.

use std::time::Duration;

use torture::server::{Attack, attack};

/// Memory that the server may use for the attack, in addition to its use before: the budget of
/// clients that have not authenticated (32 MiB), 16 KiB for each of 260 connections, threads, and
/// memory that the allocator keeps.
const ALLOWED: u64 = 160 << 20;

#[test]
fn strangers_cost_little_memory_and_keep_nobody_out() {
    let directory = tempfile::tempdir().unwrap();
    let run = Attack {
        program: env!("CARGO_BIN_EXE_torture").into(),
        engine: "betree".to_owned(),
        directory: directory.path().to_owned(),
        connections: 260,
        rounds: 60,
        greetings: 200,
        closed: 101,
        duration: Duration::ZERO,
        rate: None,
    };
    let outcome = attack(&run).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{outcome}");
    let more = outcome.memory_peak.saturating_sub(outcome.memory_before);
    assert!(more < ALLOWED, "W6: {outcome}");
    // Minimum counts, so that an attack without effect fails the test.
    assert!(5 << 20 < outcome.sent, "{outcome}");
    assert!(100 < outcome.closed, "{outcome}");
    assert!(200 <= outcome.answered, "{outcome}");
}
