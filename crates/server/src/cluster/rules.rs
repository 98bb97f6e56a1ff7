//! The rules of a configuration, and of a change from one configuration to the next. Errors have
//! MongoDB's codes.

use std::collections::BTreeSet;

use query::{Code, Error, Result};
use repl::config::{Config, MEMBERS_MAX};

use super::config::{MemberConfig, SetConfig};

/// Bytes of the name of a host: the longest of DNS, with a port.
const HOST_MAX: usize = 261;

/// Bytes of the name of a set.
const NAME_MAX: usize = 128;

/// The error of a configuration that breaks a rule.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::INVALID_REPLICA_SET_CONFIG, message.into())
}

fn incompatible(message: impl Into<String>) -> Error {
    let code = Code::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE;
    Error::new(code, message.into())
}

/// Refuse another member after `count` of them.
pub(super) fn most_members(count: usize) -> Result<()> {
    match count < MEMBERS_MAX {
        true => Ok(()),
        false => Err(invalid(format!(
            "a replica set has at most {MEMBERS_MAX} members; remove some"
        ))),
    }
}

/// Check the rules of one configuration.
///
/// # Errors
/// `InvalidReplicaSetConfig` with the first rule that it breaks.
pub(super) fn check(config: &SetConfig) -> Result<()> {
    if config.name.is_empty() || NAME_MAX < config.name.len() {
        let message = format!("_id, the name of the set, must have from 1 to {NAME_MAX} bytes");
        return Err(invalid(message));
    }
    if config.members.is_empty() {
        return Err(invalid("members must not be empty"));
    }
    for member in &config.members {
        check_member(member)?;
    }
    let hosts: BTreeSet<&str> = config.members.iter().map(|m| m.host.as_str()).collect();
    if hosts.len() < config.members.len() {
        return Err(invalid("two members have the same host"));
    }
    let local = config.members.iter().filter(|m| is_local(&m.host)).count();
    if local != 0 && local != config.members.len() {
        let message = "either all hosts of members are localhost or none is: the others could not \
            reach a member by that name";
        return Err(invalid(message));
    }
    check_modes(config)?;
    let valid = config.core().validate();
    valid.map_err(|error| invalid(error.to_string()))
}

fn check_member(member: &MemberConfig) -> Result<()> {
    let MemberConfig { id, host, .. } = member;
    if split_host(host).is_none() {
        let message = format!("host of member {id} must be HOST:PORT; it is {host:?}");
        return Err(invalid(message));
    }
    if !(0.0..=1_000.0).contains(&member.priority) {
        let message = format!("priority of member {id} must be from 0 to 1000");
        return Err(invalid(message));
    }
    if member.arbiter && !member.tags.is_empty() {
        return Err(invalid(format!("the arbiter {id} must have no tags")));
    }
    if member.arbiter && 0 < member.delay_seconds {
        return Err(invalid(format!(
            "the arbiter {id} must have no secondaryDelaySecs"
        )));
    }
    if 0 < member.delay_seconds {
        return Err(invalid(format!(
            "secondaryDelaySecs of member {id}: delayed members are not supported yet"
        )));
    }
    // The protocol's view of a new member has neither.
    if member.newly_added && !member.votes {
        return Err(invalid(format!(
            "member {id} is newlyAdded and has no vote; leave newlyAdded out"
        )));
    }
    let passive = member.hidden || !member.votes;
    if passive && 0.0 < member.priority {
        return Err(invalid(format!(
            "priority must be 0 when hidden is true or votes is 0; set it for member {id}"
        )));
    }
    Ok(())
}

/// The tags that modes name exist, in as many values as the modes want.
fn check_modes(config: &SetConfig) -> Result<()> {
    for (mode, needs) in &config.settings.modes {
        for (tag, n) in needs {
            let values = config.members.iter().filter_map(|m| m.tags.get(tag));
            let values: BTreeSet<&String> = values.collect();
            if values.len() < *n {
                let message = format!(
                    "getLastErrorModes.{mode} wants {n} values of the tag {tag}; members have {}",
                    values.len()
                );
                return Err(invalid(message));
            }
        }
    }
    Ok(())
}

/// Check that a configuration may follow another one. `force` allows changes of several voters.
///
/// # Errors
/// `NewReplicaSetConfigurationIncompatible`, or `InvalidReplicaSetConfig`.
pub(super) fn check_change(old: &SetConfig, new: &SetConfig, force: bool) -> Result<()> {
    if old.name != new.name {
        return Err(incompatible(format!(
            "the name of the set cannot change: it is {}, the new configuration has {}",
            old.name, new.name
        )));
    }
    if new.settings.id.is_some() && old.settings.id != new.settings.id {
        return Err(incompatible("settings.replicaSetId cannot change"));
    }
    if !force && new.version <= old.version {
        return Err(incompatible(format!(
            "version must be greater than that of the current configuration, {}; it is {}",
            old.version, new.version
        )));
    }
    if !force && 1 < voters(old).voters_changed(&voters(new)) {
        let message = "more than one voter changes; change one voter at a time";
        return Err(incompatible(message));
    }
    for member in &new.members {
        let same_host = old.members.iter().find(|m| m.host == member.host);
        if let Some(known) = same_host.filter(|known| known.id != member.id) {
            return Err(incompatible(format!(
                "the member {} has the number {}; its _id cannot become {}",
                member.host, known.id, member.id
            )));
        }
        let same = old.member(member.id).filter(|m| m.host == member.host);
        if same.is_some_and(|known| known.arbiter != member.arbiter) {
            return Err(incompatible(format!(
                "arbiterOnly of the member {} cannot change; remove it, and add it with another \
                 _id",
                member.host
            )));
        }
    }
    Ok(())
}

/// The configuration with the votes that its members have or will have.
fn voters(config: &SetConfig) -> Config {
    let mut later = config.clone();
    for member in &mut later.members {
        member.newly_added = false;
    }
    later.core()
}

/// The host and the port of a member.
pub(in crate::cluster) fn split_host(host: &str) -> Option<(&str, u16)> {
    let (name, port) = host.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| 0 < *port)?;
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    (plain && host.len() <= HOST_MAX).then_some((name, port))
}

/// Whether a host is this machine by name.
fn is_local(host: &str) -> bool {
    let name = split_host(host).map_or("", |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let address: Option<std::net::IpAddr> = address.parse().ok();
    name == "localhost" || address.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use bson::{Document, RawDocumentBuf, doc};

    use super::*;

    fn parsed(config: &Document) -> Result<SetConfig> {
        SetConfig::parse(&RawDocumentBuf::try_from(config).unwrap())
    }

    fn set(members: Vec<Document>) -> Document {
        doc! {"_id": "rs0", "version": 1, "members": members}
    }

    fn member(id: i32) -> Document {
        doc! {"_id": id, "host": format!("h{id}:27017")}
    }

    fn with(id: i32, more: Document) -> Document {
        let mut member = member(id);
        member.extend(more);
        member
    }

    #[test]
    fn a_configuration_survives_its_document() {
        let config = doc! {
            "_id": "rs0", "version": 3, "term": 7_i64,
            "members": [
                with(0, doc! {"priority": 2.5, "tags": {"dc": "a"}}),
                with(3, doc! {"tags": {"dc": "b"}}),
                with(1, doc! {"hidden": true, "priority": 0, "votes": 0}),
                with(2, doc! {"arbiterOnly": true}),
            ],
            "settings": {
                "chainingAllowed": false, "electionTimeoutMillis": 900,
                "getLastErrorModes": {"both": {"dc": 2}},
                "replicaSetId": bson::oid::ObjectId::new(),
            },
        };
        let parsed_once = parsed(&config).unwrap();
        let again = parsed(&parsed_once.to_document()).unwrap();
        assert_eq!(parsed_once, again, "G1");
        assert_eq!(parsed_once.members.len(), 4);
        let core = parsed_once.core();
        assert_eq!(core.majority(), 2);
        assert_eq!(core.members.first().unwrap().priority, 2_500);
        assert_eq!(parsed_once.timing().election.as_millis(), 900);
    }

    #[test]
    fn the_broken_rule_is_named() {
        let many = (0..8).map(member).collect();
        let too_many = (0..51)
            .map(|id| with(id, doc! {"votes": 0, "priority": 0}))
            .collect();
        let cases: Vec<(Document, i32, &str)> = vec![
            (set(vec![]), 93, "must not be empty"),
            (set(many), 93, "voters"),
            (set(too_many), 93, "at most 50"),
            (set(vec![member(1), member(1)]), 93, "same host"),
            (set(vec![member(-1)]), 93, "from 0 to 255"),
            (set(vec![member(256)]), 93, "from 0 to 255"),
            (set(vec![with(0, doc! {"host": "h"})]), 93, "HOST:PORT"),
            (set(vec![with(0, doc! {"host": ":1"})]), 93, "HOST:PORT"),
            (set(vec![with(0, doc! {"host": "h:0"})]), 93, "HOST:PORT"),
            (set(vec![with(0, doc! {"votes": 2})]), 93, "votes"),
            (set(vec![with(0, doc! {"votes": 0})]), 93, "priority"),
            (set(vec![with(0, doc! {"hidden": true})]), 93, "priority"),
            (set(vec![with(0, doc! {"priority": 1_001})]), 93, "1000"),
            (set(vec![with(0, doc! {"priority": f64::NAN})]), 93, "1000"),
            (set(vec![with(0, doc! {"priority": 0})]), 93, "primary"),
            (
                set(vec![with(0, doc! {"buildIndexes": false})]),
                93,
                "buildIndexes",
            ),
            (
                set(vec![member(0), with(1, doc! {"arbiterOnly": true})]),
                93,
                "durably",
            ),
            (
                set(vec![
                    member(0),
                    with(1, doc! {"arbiterOnly": true, "votes": 0}),
                ]),
                93,
                "arbiters vote",
            ),
            (
                set(vec![member(0), with(1, doc! {"host": "localhost:1"})]),
                93,
                "localhost",
            ),
            (set(vec![with(0, doc! {"unknown": 1})]), 40_415, "unknown"),
            (set(vec![with(0, doc! {"tags": {"a": 1}})]), 14, "string"),
            (doc! {"_id": "", "members": [member(0)]}, 93, "name"),
            (
                doc! {"_id": "a", "members": [member(0)], "version": 0},
                93,
                "version",
            ),
            (
                doc! {"_id": "a", "members": [member(0)], "protocolVersion": 0},
                93,
                "protocolVersion",
            ),
            (
                doc! {"_id": "a", "members": [member(0)],
                "settings": {"getLastErrorModes": {"m": {"dc": 1}}}},
                93,
                "dc",
            ),
            (
                doc! {"_id": "a", "members": [member(0)],
                "settings": {"electionTimeoutMillis": 0}},
                93,
                "electionTimeoutMillis",
            ),
        ];
        for (config, code, part) in cases {
            let error = parsed(&config).unwrap_err();
            assert_eq!(error.code, Code(code), "G1: {config}: {error}");
            assert!(error.message.contains(part), "{config}: {error}");
        }
    }

    #[test]
    fn a_change_keeps_names_and_roles() {
        let old = parsed(&set(vec![member(0), member(1), member(2)])).unwrap();
        let change = |change: &dyn Fn(&mut SetConfig)| {
            let mut new = SetConfig {
                version: 2,
                ..old.clone()
            };
            change(&mut new);
            check_change(&old, &new, false).map_err(|error| error.code.0)
        };
        assert_eq!(change(&|_| {}), Ok(()));
        assert_eq!(change(&|new| new.version = 1), Err(103));
        let add = |new: &mut SetConfig, id: u32| {
            let mut member = new.members.last().unwrap().clone();
            member.id = id;
            member.host = format!("new{id}:1");
            member.newly_added = true;
            new.members.push(member);
        };
        assert_eq!(change(&|new| add(new, 3)), Ok(()));
        let two = change(&|new| (3..5).for_each(|id| add(new, id)));
        assert_eq!(two, Err(103), "their votes come later");
        assert_eq!(change(&|new| new.name = "other".to_owned()), Err(103));
        assert_eq!(
            change(&|new| new.settings.id = Some(bson::oid::ObjectId::new())),
            Err(103)
        );
        assert_eq!(
            change(&|new| new.members.last_mut().unwrap().id = 9),
            Err(103)
        );
        assert_eq!(
            change(&|new| new.members.last_mut().unwrap().arbiter = true),
            Err(103)
        );
    }
}
