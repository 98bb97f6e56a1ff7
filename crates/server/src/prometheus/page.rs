//! The page about the server, and its data as JSON. Everything is read only.
//!
//! - X4. The page loads nothing but its data, and its policy allows no other script: it names the
//!   digests of the script and the style that it contains.
//! - X5. What clients chose (names of collections, commands, applications) is data of the JSON and
//!   becomes text of the page, never markup.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use stdx::sync::OnceLock;

pub(super) use super::map::map;
use crate::server::Server;
use crate::state::clock;
use crate::version::{MONGODB, ROMANESCO};

/// The page.
pub(super) const PAGE: &str = include_str!("page.html");

/// The paths of the page and its data.
pub(super) const PATHS: [&str; 3] = ["/", STATUS, MAP];
pub(super) const STATUS: &str = "/status.json";
pub(super) const MAP: &str = "/map.json";

/// How long a storage map is served before another one is made: the page asks for one that often.
pub(super) const MAP_AGE: Duration = Duration::from_secs(30);

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const JSON: &str = "application/json";

/// The policy of the page (X4).
pub(super) fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let (script, style) = (digest("script"), digest("style"));
        format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    })
}

/// The digest of the element's text in the page.
fn digest(element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let text = PAGE
        .split_once(&open)
        .and_then(|(_, rest)| rest.split_once(&close));
    let text = text.map_or("", |(text, _)| text);
    STANDARD.encode(Sha256::digest(text))
}

/// The state of the server as JSON.
pub(super) fn status(server: &Server) -> String {
    let Some(watch) = &server.watch else {
        return json!({}).to_string();
    };
    let history = watch.history.lock().list();
    let slow = watch.slow.lock().list();
    let values = |kept: Vec<Arc<Value>>| kept.iter().map(|one| Value::clone(one)).collect();
    let (history, slow): (Vec<Value>, Vec<Value>) = (values(history), values(slow));
    json!({
        "server": about(server),
        "load": load(server),
        "engine": engine(server),
        "history": history,
        "slow": slow,
        "slowMillis": server.profiler.slow_ms(),
    })
    .to_string()
}

fn about(server: &Server) -> Value {
    json!({
        "version": ROMANESCO,
        "mongodb": MONGODB,
        "engine": server.store.engine().name(),
        "address": server.topology.me,
        "replicaSet": server.topology.set_name,
        "uptimeSeconds": server.started.elapsed().as_secs(),
        "now": clock::now().timestamp_millis(),
        "authorization": server.config.authorization,
        "tls": server.tls.is_some(),
    })
}

fn load(server: &Server) -> Value {
    let store = &server.store;
    let memory = server.memory.usage();
    let cursors = store.cursor_figures();
    let disk = vfs::file_system(&server.config.db_path).ok();
    json!({
        "connections": server.connections.current(),
        "connectionsFree": server.connections.available(),
        "unauthenticated": server.guests.count(),
        "running": server.operations.list().len(),
        "waiting": server.metrics.waiting.get(),
        "rejected": server.metrics.overloaded.get(),
        "sessions": store.session_ids().len(),
        "cursors": cursors.open,
        "transactions": store.open_transactions(),
        "oldestTransactionSeconds": store.oldest_transaction().map(|age| age.as_secs_f64()),
        "failedLogins": server.logins.failed.get(),
        "queryMemory": {
            "limit": memory.limit, "used": memory.used, "peak": memory.peak,
            "refused": memory.refused,
        },
        "disk": disk.map(|disk| json!({"total": disk.total_bytes, "used": disk.used_bytes})),
    })
}

fn engine(server: &Server) -> Value {
    // An engine that is closed or broken has no statistics.
    let Ok(stats) = server.store.engine().stats() else {
        return Value::Null;
    };
    let stalls: Vec<Value> = stats
        .stalls
        .iter()
        .map(|stall| json!({"reason": stall.reason, "count": stall.count, "micros": stall.micros}))
        .collect();
    let counters: Map<String, Value> = stats
        .counters
        .iter()
        .map(|(name, count)| (name.clone(), json!(count)))
        .collect();
    json!({
        "debtBytes": stats.debt_bytes,
        "activity": stats.activity,
        "stalls": stalls,
        "cache": stats.cache.map(|cache| json!({
            "capacity": cache.capacity_bytes, "used": cache.used_bytes,
            "dirty": cache.dirty_bytes, "hits": cache.hits, "misses": cache.misses,
        })),
        "counters": counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X4: the policy has the digests of a script and a style that exist, and nothing else.
    #[test]
    fn the_policy_allows_the_pages_own_script_only() {
        let empty = STANDARD.encode(Sha256::digest(""));
        assert!(!policy().contains(&empty), "{}", policy());
        assert!(!policy().contains("unsafe"), "{}", policy());
        assert_eq!(PAGE.matches("<script").count(), 1);
        assert_eq!(PAGE.matches("<style").count(), 1);
        assert!(!PAGE.contains("http://www.w3.org/1999/xlink"));
    }

    /// X5: the page never makes markup of a text, and has no inline handlers or styles.
    #[test]
    fn the_page_makes_no_markup_of_data() {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "DOMParser",
            "srcdoc",
            "onclick=",
            "style=",
            "javascript:",
            "https://",
        ] {
            assert!(!PAGE.contains(word), "{word} in the page");
        }
    }
}
