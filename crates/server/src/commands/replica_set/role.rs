//! The role of a member in a set of several members, as `hello` and `serverStatus` show it.

use wire::Builder;

use crate::cluster::config::{MemberConfig, SetConfig};
use crate::cluster::letter::{date_of, timestamp};
use crate::cluster::member::Member;
use crate::cluster::standing::Standing;
use crate::cluster::view::{Progress, View};
use crate::long::long;

/// Append the fields. `primary` is the name of the field that states whether the member accepts
/// writes.
pub(crate) fn role(member: &Member, primary: &str, reply: &mut Builder) {
    let view = member.view();
    let own = view.me.zip(view.config.as_ref());
    let own = own.and_then(|(me, config)| Some((config, config.member(me)?)));
    let Some((config, own)) = own.filter(|_| view.standing != Standing::Removed) else {
        reply.boolean(primary, false).boolean("secondary", false);
        reply.boolean("isreplicaset", true);
        reply.string("info", "Does not have a valid replica set config");
        return;
    };
    hosts(config, reply);
    reply.string("setName", &config.name);
    reply.int(
        "setVersion",
        i32::try_from(config.version).unwrap_or(i32::MAX),
    );
    reply.boolean(primary, member.is_writable() && view.is_writable());
    reply.boolean("secondary", view.standing == Standing::Secondary);
    if let Some(known) = view.primary {
        reply.string("primary", config.host(known));
    }
    kind(own, reply);
    reply.string("me", &own.host);
    if view.is_writable() {
        reply.object_id("electionId", view.election());
    }
    let progress = member.progress.borrow().clone();
    last_write(&view, &progress, reply);
}

/// The members that clients see.
fn hosts(config: &SetConfig, reply: &mut Builder) {
    let shown = |fits: &dyn Fn(&MemberConfig) -> bool| -> Vec<&str> {
        let members = config.members.iter().filter(|m| !m.hidden && fits(m));
        members.map(|m| m.host.as_str()).collect()
    };
    reply.strings("hosts", shown(&|m| !m.arbiter && 0.0 < m.priority));
    for (name, list) in [
        ("passives", shown(&|m| !m.arbiter && m.priority <= 0.0)),
        ("arbiters", shown(&|m| m.arbiter)),
    ] {
        if !list.is_empty() {
            reply.strings(name, list);
        }
    }
}

fn kind(own: &MemberConfig, reply: &mut Builder) {
    if own.arbiter {
        reply.boolean("arbiterOnly", true);
    } else if own.priority <= 0.0 {
        reply.boolean("passive", true);
    }
    if own.hidden {
        reply.boolean("hidden", true);
    }
    if !own.tags.is_empty() {
        reply.open_document("tags");
        for (name, value) in &own.tags {
            reply.string(name, value);
        }
        reply.close();
    }
}

fn last_write(view: &View, progress: &Progress, reply: &mut Builder) {
    if view.standing == Standing::Arbiter {
        return;
    }
    let committed = progress.commit.min(progress.applied);
    reply.open_document("lastWrite");
    for (optime, date, at) in [
        ("opTime", "lastWriteDate", progress.applied),
        ("majorityOpTime", "majorityWriteDate", committed),
    ] {
        reply.open_document(optime).timestamp("ts", timestamp(at));
        reply.long("t", long(at.term.0)).close();
        reply.date(date, date_of(at));
    }
    reply.close();
}
