//! This server as the driver of its membership in a replica set sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use docdb::{Op, SessionRef};
use kv::Durability;
use query::Result;

use crate::auth::users::random;
use crate::auth::{SYSTEM, SYSTEM_DATABASE};
use crate::cluster::config::SetConfig;
use crate::cluster::host::{Host, Line};
use crate::server::Server;
use crate::state::log::{Event, Severity};
use crate::state::versions;

/// Start the membership of a server, if it has one, in the runtime that this thread has entered.
///
/// # Errors
/// Those of the store; when the system has no thread for it.
pub(crate) fn start(server: &Arc<Server>) -> Result<()> {
    let Some(member) = &server.member else {
        return Ok(());
    };
    let modes = server.config.cluster_auth;
    let user = (SYSTEM_DATABASE, SYSTEM);
    match &member.key {
        Some(key) if modes.takes_keys() => server.users.set_system(user, key.text())?,
        // It cannot log in by a password, which no one knows.
        _ if modes.takes_certificates() => {
            let password = BASE64.encode(random(48)?);
            server.users.set_system(user, &password)?;
        }
        _ => {}
    }
    member.start(Arc::new(ServerHost(Arc::downgrade(server))))
}

/// The server as its driver sees it.
struct ServerHost(Weak<Server>);

impl Host for ServerHost {
    fn changed(&self) {
        if let Some(server) = self.0.upgrade() {
            server.topology.changed();
        }
    }

    fn open(&self) {
        let Some(server) = self.0.upgrade() else {
            return;
        };
        if let Some(member) = &server.member {
            member.let_write(true);
        }
        server.tune();
        let inner = Arc::clone(&server);
        // Without a thread it is done at the next election.
        server.pool.submit(move || describe(&inner));
    }

    fn shut(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(server) = self.0.upgrade() {
            if let Some(member) = &server.member {
                member.let_write(false);
            }
            server.tune();
            interrupt(&server);
        }
        // The store waits for commits under way, and refuses later ones (M1).
        Box::pin(std::future::ready(()))
    }

    fn applied(&self) {
        let Some(server) = self.0.upgrade() else {
            return;
        };
        let Some(member) = &server.member else { return };
        if member.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::clone(&server);
        let taken = server.pool.submit(move || {
            if let Some(member) = &inner.member {
                member.refreshing.store(false, Ordering::Release);
            }
            refresh(&inner);
        });
        if !taken {
            member.refreshing.store(false, Ordering::Release);
        }
    }

    fn configured(&self, config: &Arc<SetConfig>) {
        let Some(server) = self.0.upgrade() else {
            return;
        };
        let Some(member) = &server.member else { return };
        *member.newest.lock() = Some(Arc::clone(config));
        let inner = Arc::clone(&server);
        // Without a thread the next change stores it.
        server.pool.submit(move || {
            let Some(member) = &inner.member else { return };
            // Held while it is written, so that the newest one is written last.
            let newest = member.newest.lock();
            if let Some(config) = newest.as_ref() {
                inner.store_config(&config.to_document());
            }
        });
    }

    fn limited(&self, key_max: usize) {
        if let Some(server) = self.0.upgrade() {
            server.store.tuning().set_key_max(key_max);
        }
    }

    fn log(&self, line: Line) {
        let Some(server) = self.0.upgrade() else {
            return;
        };
        server.log.write(Event {
            severity: match line.warning {
                true => Severity::Warning,
                false => Severity::Info,
            },
            component: "REPL",
            id: line.id,
            context: "replica-set",
            message: line.message,
            attributes: line.attributes,
        });
    }
}

/// What a primary writes for tools, once for a set.
fn describe(server: &Server) {
    if let Err(error) = versions::ensure(&server.store) {
        let message = "Failed to write admin.system.version; mongodump and mongorestore refuse \
             users and roles until a primary succeeds in it";
        let attributes = bson::doc! {"error": error.message};
        server
            .log
            .info("STORAGE", 9_100_060, "replica-set", message, attributes);
    }
}

/// Take what other members have written into what is kept in memory.
fn refresh(server: &Arc<Server>) {
    server.refresh_users();
    if let Some(visible) = server.store.oplog_visible() {
        server.advance(visible);
    }
    server.reload_settings();
}

/// End the writes and the transactions of clients.
fn interrupt(server: &Arc<Server>) {
    for operation in server.operations.list() {
        if operation.writes() || operation.generic.in_transaction {
            operation.kill_at_step_down();
        }
    }
    let inner = Arc::clone(server);
    // Without a thread the transactions fail at their commit.
    server.pool.submit(move || {
        for (id, txn_number) in inner.store.idle_transactions() {
            let op = Op {
                session: Some(SessionRef {
                    id,
                    txn_number: Some(txn_number),
                    stmt_id: 0,
                    stmt_ids: None,
                }),
                ..Op::new(Durability::Interval)
            };
            // It may have ended meanwhile.
            let _: Result<()> = inner.store.abort_transaction(&op);
        }
    });
}
