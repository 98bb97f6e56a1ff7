//! Flow control: what a primary has written and a majority has not is what it would have to take
//! back after a failover. Beyond half of a limit writes are delayed in proportion; at the limit
//! they wait, and are refused if that takes long.
//!
//! - W1. A write that begins while the load is at or above 1 does not run.
//! - W2. Only the bytes count while too few voters with data are in contact: to wait for them would
//!   only refuse writes that do not want a majority.

use std::time::Duration;

use query::{Code, Error, Result};

use crate::cluster::view::Uncommitted;
use crate::limits::ADMISSION;
use crate::request::Request;
use crate::server::Server;

/// Most bytes of entries that no majority has: a rollback of them takes seconds.
pub(crate) const BYTES_MAX: u64 = 300 << 20;

/// From this load on writes are delayed.
pub(crate) const SLOWS: f64 = 0.5;

/// The delay of a write just below the limit.
const DELAY_MAX: Duration = Duration::from_millis(200);

/// Between looks at the limit.
const LOOK: Duration = Duration::from_millis(20);

/// The name of the parameter that turns it on.
const ON: &str = "enableFlowControl";

/// The age, in seconds, from which on writes are delayed: half of the limit.
const TARGET: &str = "flowControlTargetLagSeconds";

/// Whether writes are delayed at all.
pub(crate) fn is_on(server: &Server) -> bool {
    server.parameters.is_on(ON)
}

/// The share of the limits that is used.
pub(crate) fn load(server: &Server) -> f64 {
    let Some(member) = &server.member else {
        return 0.0;
    };
    let target = u64::try_from(server.parameters.number(TARGET)).unwrap_or(1);
    share(
        member.progress.borrow().uncommitted,
        Duration::from_secs(target) * 2,
    )
}

fn share(uncommitted: Uncommitted, age_max: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
    let bytes = uncommitted.bytes as f64 / BYTES_MAX as f64;
    if uncommitted.stuck {
        // W2.
        return bytes;
    }
    bytes.max(uncommitted.age.as_secs_f64() / age_max.as_secs_f64())
}

/// How long a write is delayed at a load below 1.
fn delay(load: f64) -> Duration {
    match load < SLOWS {
        true => Duration::ZERO,
        false => DELAY_MAX.mul_f64(((load - SLOWS) / (1.0 - SLOWS)).min(1.0)),
    }
}

/// Before a write: delay it as the load wants (W1).
///
/// # Errors
/// `IngressRequestRateLimitExceeded` after a long wait, or at once for a client that supports
/// backoff; the operation must end.
pub(crate) async fn wait(request: &Request) -> Result<()> {
    let server = &request.server;
    let now = load(server);
    if now < SLOWS || !is_on(server) {
        return Ok(());
    }
    let begun = stdx::time::now();
    server.flow.delayed.one();
    let outcome = pass(request, begun).await;
    let taken = crate::long::long(begun.elapsed().as_micros());
    server.flow.micros.add(taken);
    outcome
}

async fn pass(request: &Request, begun: std::time::Instant) -> Result<()> {
    let server = &request.server;
    let polite = request.client.state.lock().backpressure;
    let limit = request.generic.max_time.unwrap_or(ADMISSION).min(ADMISSION);
    loop {
        let now = load(server);
        if now < 1.0 {
            let rest = delay(now).saturating_sub(begun.elapsed());
            tokio::time::sleep(rest).await;
            return request.op().check();
        }
        if polite || limit <= begun.elapsed() {
            server.flow.refused.one();
            let message = "too many writes wait for a majority of the replica set \
                (serverStatus().flowControl, rs.status().uncommitted); try again later, or repair \
                the members that lag";
            let code = Code::INGRESS_REQUEST_RATE_LIMIT_EXCEEDED;
            return Err(Error::new(code, message));
        }
        tokio::time::sleep(LOOK).await;
        request.op().check()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_delayed_in_proportion_and_wait_at_the_limit() {
        let limit = Duration::from_secs(30);
        let of = |seconds: u64, bytes: u64, stuck| {
            let uncommitted = Uncommitted {
                age: Duration::from_secs(seconds),
                bytes,
                held_by: None,
                stuck,
            };
            share(uncommitted, limit)
        };
        assert_eq!(delay(of(14, 0, false)), Duration::ZERO);
        assert_eq!(delay(of(15, 0, false)), Duration::ZERO);
        let some = delay(of(20, 0, false));
        let more = delay(of(25, 0, false));
        assert!(Duration::ZERO < some && some < more && more < DELAY_MAX);
        assert!(1.0 <= of(30, 0, false), "W1");
        assert!(1.0 <= of(0, BYTES_MAX, false), "W1");
        assert!(of(3_600, 0, true) < SLOWS, "W2");
        assert!(1.0 <= of(0, BYTES_MAX, true), "W2: the bytes count");
        assert!(delay(of(0, BYTES_MAX * 3 / 4, false)) > Duration::ZERO);
    }
}
