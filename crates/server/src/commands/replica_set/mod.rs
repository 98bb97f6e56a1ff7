//! The commands of replica sets: `replSetGetStatus`, `replSetInitiate` and others. In these files:
//! `single` for a set whose only member is this server since its start; for sets of several members
//! `role` in `hello`, `status`, `change`, and `talk` and `copy` for messages between
//! members.

mod change;
mod copy;
mod role;
mod single;
mod status;
mod talk;

use query::{Code, Error, Result};
use wire::Builder;

use crate::access::Privilege;
use crate::cluster::driver::not_initialized;
use crate::cluster::member::Member;
use crate::command::{ADMIN, FIRST_USER, LOOSE};
use crate::request::{Call, Request};
use crate::row::Row;

pub(crate) use role::role;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "replSetGetStatus",
        get_status,
        "Return the state of the replica set",
    )
    .flags(ADMIN | LOOSE)
    .privilege(Privilege::Cluster("replSetGetStatus")),
    Row::new(
        "replSetGetConfig",
        get_config,
        "Return the configuration of the replica set",
    )
    .flags(ADMIN | LOOSE)
    .privilege(Privilege::Cluster("replSetGetConfig")),
    Row::new(
        "replSetInitiate",
        change::initiate,
        "Begin a replica set of several members, at one of them (replication.initiate: command)",
    )
    .flags(ADMIN | LOOSE | FIRST_USER)
    .privilege(Privilege::Cluster("replSetConfigure")),
    Row::new(
        "replSetReconfig",
        change::reconfig,
        "Change the members and settings of the replica set",
    )
    .flags(ADMIN)
    .fields(&["force"])
    .privilege(Privilege::Cluster("replSetConfigure")),
    Row::new(
        "replSetResizeOplog",
        single::resize,
        "Change the size of the oplog and how long entries are kept",
    )
    .flags(ADMIN)
    .fields(&["size", "minRetentionHours"])
    .privilege(Privilege::Cluster("replSetResizeOplog")),
    Row::new(
        "replSetStepDown",
        change::step_down,
        "Let another member become primary",
    )
    .flags(ADMIN | LOOSE)
    .privilege(Privilege::Cluster("replSetStateChange")),
    Row::new("replSetStepUp", change::step_up, "Become primary")
        .flags(ADMIN)
        .fields(&["skipDryRun"])
        .privilege(Privilege::Cluster("replSetStateChange")),
    Row::new(
        "replSetFreeze",
        change::freeze,
        "Do not become primary for some seconds",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("replSetStateChange")),
    Row::new(
        "replSetMaintenance",
        change::maintain,
        "Enter or leave maintenance: a member in it serves no reads",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("replSetStateChange")),
    Row::new(
        "replSetSyncFrom",
        change::sync_from,
        "Fetch entries from this member",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("replSetStateChange")),
    Row::new(
        "replSetAbortPrimaryCatchUp",
        change::abort_catch_up,
        "Accept writes at once: a new primary fetches no more entries of others",
    )
    .flags(ADMIN)
    .privilege(Privilege::Cluster("replSetStateChange")),
    Row::new(
        "replSetMessage",
        talk::message,
        "Receive a message of another member (internal)",
    )
    .flags(ADMIN)
    .fields(talk::MESSAGE)
    .privilege(Privilege::Cluster("internal")),
    Row::new(
        "replSetFetch",
        talk::fetch,
        "Return entries of the oplog to another member (internal)",
    )
    .flags(ADMIN)
    .fields(&["set", "from", "to", "term", "after"])
    .privilege(Privilege::Cluster("internal")),
    Row::new(
        "replSetCopy",
        copy::copy,
        "Return data to another member that has none (internal)",
    )
    .flags(ADMIN)
    .fields(crate::cluster::sync::letter::FIELDS)
    .privilege(Privilege::Cluster("internal")),
    Row::new(
        "replSetProbe",
        talk::probe,
        "Return whether this server may become a member (internal)",
    )
    .flags(ADMIN)
    .fields(&["set"])
    .privilege(Privilege::Cluster("internal")),
];

fn get_status(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    match &request.server.member {
        Some(member) => status::status(request, member, reply),
        None => single::status(request, reply),
    }
}

fn get_config(request: &Call<'_>, reply: &mut Builder) -> Result<()> {
    match &request.server.member {
        Some(member) => status::config(member, reply),
        None => single::config(request, reply),
    }
}

/// The name of the set.
fn name(request: &Request) -> Result<&str> {
    request
        .server
        .topology
        .set_name
        .as_deref()
        .ok_or_else(|| Error::new(Code::NO_REPLICATION_ENABLED, "not running with --replSet"))
}

/// The membership in a set of several members; `None` for the only member of a set.
fn member(request: &Request) -> Result<Option<&Member>> {
    name(request)?;
    Ok(request.server.member.as_ref())
}
