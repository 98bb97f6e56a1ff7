//! The privileges that pipelines need, from the collections their stages use.

use std::sync::Arc;

use bson::{Bson, Timestamp};
use docdb::{AggregateRequest, Op};
use kv::Durability;
use query::expr::System;
use query::pipeline::Access;
use query::stage::Statistics;
use query::{Namespace, Result};

use super::current_op::Shown;
use crate::auth::privilege::Wanted;

/// The collections that a pipeline on `ns` uses. System variables have dummy values.
///
/// # Errors
/// What is wrong with the pipeline.
pub(super) fn of_request(request: &AggregateRequest, ns: &Namespace) -> Result<Vec<Access>> {
    let time = Timestamp {
        time: 0,
        increment: 0,
    };
    let system = System {
        cluster_time: Some(Bson::Timestamp(time)),
        user_roles: Some(Arc::new(Bson::Array(Vec::new()))),
    };
    let op = Op {
        system: Some(Arc::new(system)),
        ..Op::new(Durability::Interval)
    };
    request.accesses(&op, ns)
}

/// Add the privileges of accesses. With `bypass` written documents need not be valid.
///
/// # Errors
/// Options of `$currentOp` that are none.
pub(super) fn needs(accesses: &[Access], bypass: bool, wanted: &mut Vec<Wanted>) -> Result<()> {
    for access in accesses {
        let (ns, actions): (&Namespace, &[&'static str]) = match access {
            Access::Read(ns) => (ns, &["find"]),
            Access::Replace(ns) => (ns, &["insert", "remove"]),
            Access::Merge(ns) => (ns, &["insert", "update"]),
            Access::Follow(ns) => (ns, &["changeStream"]),
            Access::Report(ns, statistics) => match statistics {
                Statistics::CollStats(_) => (ns, &["collStats"]),
                Statistics::IndexStats => (ns, &["indexStats"]),
                Statistics::PlanCacheStats => (ns, &["planCacheRead"]),
                Statistics::CurrentOp(options) => {
                    // Users may see their own operations.
                    if Shown::of(options)?.of_all_users() {
                        wanted.push(Wanted::Cluster("inprog"));
                    }
                    continue;
                }
                Statistics::ListSessions(_) | Statistics::ListLocalSessions(_) => {
                    wanted.push(Wanted::Cluster("listSessions"));
                    continue;
                }
            },
        };
        let on = |action: &'static str| Wanted::Collection(ns.db.clone(), ns.coll.clone(), action);
        wanted.extend(actions.iter().copied().map(on));
        if bypass && matches!(access, Access::Replace(_) | Access::Merge(_)) {
            wanted.push(on("bypassDocumentValidation"));
        }
    }
    Ok(())
}
