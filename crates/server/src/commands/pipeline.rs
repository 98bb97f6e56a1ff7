//! Pipelines between authorization and execution: the privileges that they need, from the
//! collections their stages use.

use std::borrow::Cow;
use std::sync::Arc;

use docdb::{AggregateRequest, Op, Parsed};
use kv::Durability;
use query::pipeline::{Access, Followed};
use query::stage::Statistics;
use query::{Namespace, Result};

use super::current_op::Shown;
use super::list_sessions::Listed;
use crate::access::{Asked, Needed};
use crate::auth::privilege::Wanted;
use crate::auth::users::User;
use crate::request::{Call, Understood, system};
use crate::state::digest;

/// Parse the pipeline of a request on `ns`, add the privileges that it needs, and keep it for the
/// command to run (A4). With `bypass` written documents need not be valid.
///
/// # Errors
/// What is wrong with the pipeline.
pub(super) fn add(
    asked: &Asked<'_>,
    (mut request, ns): (AggregateRequest, &Namespace),
    bypass: bool,
    needed: &mut Needed,
) -> Result<()> {
    let server = asked.server;
    let op = Op {
        system: Some(Arc::new(system(server, Some(asked.user)))),
        ..Op::new(Durability::Interval)
    };
    server.store.parse_aggregate(&op, ns, &mut request)?;
    let accesses = request.parsed.as_ref().map_or(&[][..], Parsed::accesses);
    needs(accesses, bypass, asked.user, &mut needed.wanted)?;
    needed.understood = Understood::of(request, asked.sent.bytes());
    Ok(())
}

/// The request of a command: what authorization has read (A4), or what `read` reads now.
///
/// # Errors
/// As `read`.
pub(super) fn authorized<'a>(
    call: &'a Call<'_>,
    read: impl FnOnce() -> Result<AggregateRequest>,
) -> Result<Cow<'a, AggregateRequest>> {
    Ok(match &call.understood {
        Some(Understood::Request(request)) => Cow::Borrowed(request),
        Some(Understood::Accesses(parsed)) => Cow::Owned(AggregateRequest {
            parsed: Some(parsed.clone()),
            ..read()?
        }),
        _ => Cow::Owned(read()?),
    })
}

/// A privilege that a change stream needs: it shows documents, so it needs that of reading, too.
fn follow(ns: &Namespace, followed: Followed, action: &'static str) -> Wanted {
    match followed {
        Followed::System => Wanted::Everything(action),
        Followed::AllDatabases => Wanted::AllDatabases(action),
        Followed::Here if ns.is_collectionless() => Wanted::Database(ns.db.clone(), action),
        Followed::Here => Wanted::Collection(ns.db.clone(), ns.coll.clone(), action),
    }
}

/// Add the privileges that `user` needs for accesses. With `bypass` the pipeline may write
/// documents that a validator rejects.
///
/// # Errors
/// Options of `$currentOp` that are none.
pub(super) fn needs(
    accesses: &[Access],
    bypass: bool,
    user: &User,
    wanted: &mut Vec<Wanted>,
) -> Result<()> {
    for access in accesses {
        let (ns, actions): (&Namespace, &[&'static str]) = match access {
            Access::Read(ns) => (ns, &["find"]),
            Access::Replace(ns) => (ns, &["insert", "remove"]),
            Access::Merge(ns) => (ns, &["insert", "update"]),
            Access::Follow(ns, followed) => {
                wanted.extend(["find", "changeStream"].map(|action| follow(ns, *followed, action)));
                continue;
            }
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
                Statistics::ListSessions(options) | Statistics::ListLocalSessions(options) => {
                    // Wrong options are reported by the stage, to those who may see all.
                    let own = digest(&user.name, &user.database);
                    let listed = Listed::of(statistics.name(), options);
                    if !listed.is_ok_and(|listed| !listed.of_others(&own)) {
                        wanted.push(Wanted::Cluster("listSessions"));
                    }
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
