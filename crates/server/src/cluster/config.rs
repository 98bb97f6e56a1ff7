//! The configuration of a replica set, as commands show it and as the protocol uses it.
//!
//! - G1. Every configuration in memory has passed [`check`](super::rules::check): what arrives
//!   from clients, from members and from the file is parsed by [`SetConfig::parse`].

use std::collections::BTreeMap;
use std::time::Duration;

use bson::oid::ObjectId;
use bson::{Bson, Document, RawDocument, doc};
use query::{Code, Error, Result};
use repl::config::{Config, ConfigId};
use repl::position::{MemberId, Term};
use repl::replica::Timing;

use super::rules;
use crate::arguments::{Arguments, integer};
use crate::long::long;

/// Fields of a configuration.
const FIELDS: &[&str] = &[
    "_id",
    "version",
    "term",
    "protocolVersion",
    "writeConcernMajorityJournalDefault",
    "members",
    "settings",
    "configsvr",
];

/// Fields of a member.
const MEMBER_FIELDS: &[&str] = &[
    "_id",
    "host",
    "arbiterOnly",
    "buildIndexes",
    "hidden",
    "priority",
    "tags",
    "secondaryDelaySecs",
    "votes",
    "newlyAdded",
];

/// Fields of the settings.
const SETTINGS_FIELDS: &[&str] = &[
    "chainingAllowed",
    "heartbeatIntervalMillis",
    "heartbeatTimeoutSecs",
    "electionTimeoutMillis",
    "catchUpTimeoutMillis",
    "catchUpTakeoverDelayMillis",
    "getLastErrorModes",
    "getLastErrorDefaults",
    "replicaSetId",
];

/// A configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetConfig {
    /// The name of the set.
    pub(crate) name: String,
    pub(crate) version: u64,
    /// The term of the primary that installed it; 0 before the first election.
    pub(crate) term: u64,
    /// By number.
    pub(crate) members: Vec<MemberConfig>,
    pub(crate) settings: Settings,
}

/// A member as configured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MemberConfig {
    /// `_id`, from 0 to 255.
    pub(crate) id: u32,
    /// `host:port`, under which members and clients reach it.
    pub(crate) host: String,
    pub(crate) arbiter: bool,
    pub(crate) hidden: bool,
    /// From 0 (never primary) to 1000.
    pub(crate) priority: f64,
    pub(crate) votes: bool,
    /// `secondaryDelaySecs`.
    pub(crate) delay_seconds: u64,
    pub(crate) tags: BTreeMap<String, String>,
    /// The member was added and has not reported yet that it has copied the data: until then it
    /// neither votes nor becomes primary.
    pub(crate) newly_added: bool,
}

/// The settings of a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Default true.
    pub(crate) chaining: bool,
    /// Default 500.
    pub(crate) heartbeat_ms: u64,
    /// Default 10.
    pub(crate) heartbeat_timeout_seconds: u64,
    /// Default 2000.
    pub(crate) election_ms: u64,
    /// Default -1, which is 2 seconds.
    pub(crate) catch_up_ms: i64,
    /// Default 30000; stored and shown only.
    pub(crate) takeover_ms: i64,
    /// The modes of write concerns: for each tag, how many different values must acknowledge.
    pub(crate) modes: BTreeMap<String, BTreeMap<String, usize>>,
    /// Made by `replSetInitiate`: distinguishes sets of one name.
    pub(crate) id: Option<ObjectId>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            chaining: true,
            heartbeat_ms: 500,
            heartbeat_timeout_seconds: 10,
            election_ms: 2_000,
            catch_up_ms: -1,
            takeover_ms: 30_000,
            modes: BTreeMap::new(),
            id: None,
        }
    }
}

impl SetConfig {
    /// Parse a configuration, and check its rules.
    ///
    /// # Errors
    /// `InvalidReplicaSetConfig` for a broken rule; `TypeMismatch`, `IDLUnknownField` or 40414 for
    /// fields.
    pub(crate) fn parse(document: &RawDocument) -> Result<SetConfig> {
        let fields = Arguments::of("ReplSetConfig", document)?;
        fields.only(FIELDS)?;
        if fields.is_on("configsvr")? {
            return Err(rules::invalid(
                "configsvr: config servers are not supported",
            ));
        }
        if fields.long("protocolVersion")?.is_some_and(|v| v != 1) {
            return Err(rules::invalid("protocolVersion must be 1"));
        }
        let journal = fields.boolean("writeConcernMajorityJournalDefault")?;
        if journal == Some(false) {
            let message = "writeConcernMajorityJournalDefault: false is not supported: a majority \
                always means durable writes";
            return Err(rules::invalid(message));
        }
        let mut members = Vec::new();
        for member in fields.documents("members")?.unwrap_or_default() {
            rules::most_members(members.len())?;
            members.push(MemberConfig::parse(member)?);
        }
        members.sort_by_key(|member| member.id);
        let settings = match fields.document("settings")? {
            Some(settings) => Settings::parse(settings)?,
            None => Settings::default(),
        };
        let config = SetConfig {
            name: fields.need_string("_id")?.to_owned(),
            version: number(&fields, "version", 1, 1..=i64::from(i32::MAX))?,
            term: u64::try_from(fields.long("term")?.unwrap_or(0)).unwrap_or(0),
            members,
            settings,
        };
        rules::check(&config)?;
        Ok(config)
    }

    /// As commands show it.
    pub(crate) fn to_document(&self) -> Document {
        let members = self.members.iter().map(MemberConfig::to_document);
        let members: Vec<Bson> = members.map(Bson::Document).collect();
        doc! {
            "_id": &self.name,
            "version": long(self.version),
            "term": long(self.term),
            "members": members,
            "protocolVersion": 1_i64,
            "writeConcernMajorityJournalDefault": true,
            "settings": self.settings.to_document(),
        }
    }

    /// Its identity.
    pub(crate) fn id(&self) -> ConfigId {
        ConfigId {
            term: Term(self.term),
            version: self.version,
        }
    }

    /// The same configuration with another identity.
    pub(crate) fn with_id(&self, id: ConfigId) -> SetConfig {
        SetConfig {
            term: id.term.0,
            version: id.version,
            ..self.clone()
        }
    }

    /// As the protocol uses it.
    pub(crate) fn core(&self) -> Config {
        Config {
            id: self.id(),
            members: self.members.iter().map(MemberConfig::core).collect(),
        }
    }

    /// The timers that it sets.
    pub(crate) fn timing(&self) -> Timing {
        let settings = &self.settings;
        let default = Timing::default();
        let catch_up = u64::try_from(settings.catch_up_ms);
        Timing {
            heartbeat: Duration::from_millis(settings.heartbeat_ms),
            election: Duration::from_millis(settings.election_ms),
            catch_up: catch_up.map_or(default.catch_up, Duration::from_millis),
            chaining: settings.chaining,
            ..default
        }
    }

    /// The member with this number.
    pub(crate) fn member(&self, id: u32) -> Option<&MemberConfig> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The host of a member; empty if it is none.
    pub(crate) fn host(&self, id: u32) -> &str {
        self.member(id).map_or("", |member| member.host.as_str())
    }

    /// Members that hold data.
    pub(crate) fn data_members(&self) -> impl Iterator<Item = &MemberConfig> {
        self.members.iter().filter(|member| !member.arbiter)
    }
}

impl MemberConfig {
    fn parse(document: &RawDocument) -> Result<MemberConfig> {
        let fields = Arguments::of("MemberConfig", document)?;
        fields.only(MEMBER_FIELDS)?;
        fields.need("_id")?;
        let id = number(&fields, "_id", 0, 0..=255)?;
        if fields.boolean("buildIndexes")? == Some(false) {
            return Err(rules::invalid("buildIndexes: false is not supported"));
        }
        let arbiter = fields.is_on("arbiterOnly")?;
        let priority = match fields.get("priority") {
            None => 1.0,
            Some(bson::RawBsonRef::Double(n)) => n,
            Some(other) => {
                let whole = integer(other).and_then(|n| i32::try_from(n).ok());
                whole.map(f64::from).ok_or_else(|| {
                    Error::type_mismatch("BSON field 'MemberConfig.priority' must be a number")
                })?
            }
        };
        if arbiter && priority != 0.0 && (priority - 1.0).abs() > f64::EPSILON {
            let message = format!("priority of the arbiter {id} must be 0 or 1");
            return Err(rules::invalid(message));
        }
        let mut tags = BTreeMap::new();
        if let Some(given) = fields.document("tags")? {
            for (name, _) in Arguments::of("MemberConfig.tags", given)?.iter() {
                let value = Arguments::of("MemberConfig.tags", given)?
                    .need_string(name)?
                    .to_owned();
                tags.insert(name.to_owned(), value);
            }
        }
        Ok(MemberConfig {
            id: u32::try_from(id).unwrap_or(u32::MAX),
            host: fields.need_string("host")?.to_owned(),
            arbiter,
            hidden: fields.is_on("hidden")?,
            priority: if arbiter { 0.0 } else { priority },
            votes: number(&fields, "votes", 1, 0..=1)? == 1,
            delay_seconds: number(&fields, "secondaryDelaySecs", 0, 0..=366 * 24 * 60 * 60)?,
            tags,
            newly_added: fields.is_on("newlyAdded")?,
        })
    }

    fn to_document(&self) -> Document {
        let tags: Document = self
            .tags
            .iter()
            .map(|(k, v)| (k.clone(), Bson::from(v)))
            .collect();
        let mut shown = doc! {
            "_id": i32::try_from(self.id).unwrap_or(i32::MAX),
            "host": &self.host,
            "arbiterOnly": self.arbiter,
            "buildIndexes": true,
            "hidden": self.hidden,
            "priority": self.priority,
            "tags": tags,
            "secondaryDelaySecs": long(self.delay_seconds),
            "votes": i32::from(self.votes),
        };
        if self.newly_added {
            shown.insert("newlyAdded", true);
        }
        shown
    }

    fn core(&self) -> repl::config::Member {
        let active = !self.newly_added;
        repl::config::Member {
            id: MemberId(self.id),
            votes: self.votes && active,
            arbiter: self.arbiter,
            priority: if active { rank(self.priority) } else { 0 },
            hidden: self.hidden,
            delay_seconds: self.delay_seconds,
            persistent: true,
        }
    }

    /// Whether the member can become primary.
    pub(crate) fn is_electable(&self) -> bool {
        self.core().is_electable()
    }
}

impl Settings {
    fn parse(document: &RawDocument) -> Result<Settings> {
        let fields = Arguments::of("ReplSetConfigSettings", document)?;
        fields.only(SETTINGS_FIELDS)?;
        let default = Settings::default();
        let day = 24 * 60 * 60 * 1_000;
        let millis = |name: &str, default: u64| {
            let default = i64::try_from(default).unwrap_or(i64::MAX);
            number(&fields, name, default, 1..=day)
        };
        let signed = |name: &str, default: i64| -> Result<i64> {
            let given = fields.long(name)?.unwrap_or(default);
            match (-1..=day).contains(&given) {
                true => Ok(given),
                false => Err(rules::invalid(format!(
                    "settings.{name} must be from -1 to {day}; it is {given}"
                ))),
            }
        };
        if let Some(defaults) = fields.document("getLastErrorDefaults")? {
            let defaults = Arguments::of("getLastErrorDefaults", defaults)?;
            let w = defaults.get("w").and_then(integer);
            let timeout = defaults.long("wtimeout")?.unwrap_or(0);
            if !matches!(w, None | Some(1)) || timeout != 0 {
                let message = "getLastErrorDefaults must be {w: 1, wtimeout: 0}; use \
                    setDefaultRWConcern";
                return Err(rules::invalid(message));
            }
        }
        let id = match fields.get("replicaSetId") {
            None => None,
            Some(bson::RawBsonRef::ObjectId(id)) => Some(id),
            Some(_) => {
                let message = "BSON field 'settings.replicaSetId' must be an objectId";
                return Err(Error::type_mismatch(message));
            }
        };
        Ok(Settings {
            chaining: fields.boolean("chainingAllowed")?.unwrap_or(true),
            heartbeat_ms: millis("heartbeatIntervalMillis", default.heartbeat_ms)?,
            heartbeat_timeout_seconds: millis(
                "heartbeatTimeoutSecs",
                default.heartbeat_timeout_seconds,
            )?,
            election_ms: millis("electionTimeoutMillis", default.election_ms)?,
            catch_up_ms: signed("catchUpTimeoutMillis", default.catch_up_ms)?,
            takeover_ms: signed("catchUpTakeoverDelayMillis", default.takeover_ms)?,
            modes: modes(&fields)?,
            id,
        })
    }

    fn to_document(&self) -> Document {
        let mut modes = Document::new();
        for (name, needs) in &self.modes {
            let needs = needs
                .iter()
                .map(|(tag, n)| (tag.clone(), Bson::from(count(*n))));
            modes.insert(name, needs.collect::<Document>());
        }
        let mut shown = doc! {
            "chainingAllowed": self.chaining,
            "heartbeatIntervalMillis": long(self.heartbeat_ms),
            "heartbeatTimeoutSecs": long(self.heartbeat_timeout_seconds),
            "electionTimeoutMillis": long(self.election_ms),
            "catchUpTimeoutMillis": self.catch_up_ms,
            "catchUpTakeoverDelayMillis": self.takeover_ms,
            "getLastErrorModes": modes,
            "getLastErrorDefaults": {"w": 1, "wtimeout": 0},
        };
        if let Some(id) = self.id {
            shown.insert("replicaSetId", id);
        }
        shown
    }
}

/// The modes of write concerns.
fn modes(fields: &Arguments<'_>) -> Result<BTreeMap<String, BTreeMap<String, usize>>> {
    let mut modes = BTreeMap::new();
    let Some(given) = fields.document("getLastErrorModes")? else {
        return Ok(modes);
    };
    let given = Arguments::of("getLastErrorModes", given)?;
    for (name, _) in given.iter() {
        let needs = Arguments::of("getLastErrorModes", given.need_document(name)?)?;
        let mut mode = BTreeMap::new();
        for (tag, value) in needs.iter() {
            let n = integer(value).and_then(|n| usize::try_from(n).ok());
            let Some(n) = n.filter(|n| 0 < *n) else {
                let message = format!("getLastErrorModes.{name}.{tag} must be a positive number");
                return Err(Error::new(Code::BAD_VALUE, message));
            };
            mode.insert(tag.to_owned(), n);
        }
        modes.insert(name.to_owned(), mode);
    }
    Ok(modes)
}

/// A number within a range.
fn number(
    fields: &Arguments<'_>,
    name: &str,
    default: i64,
    range: std::ops::RangeInclusive<i64>,
) -> Result<u64> {
    let given = fields.long(name)?.unwrap_or(default);
    let valid = range.contains(&given).then_some(given);
    let number = valid.and_then(|n| u64::try_from(n).ok());
    number.ok_or_else(|| {
        let (least, most) = range.into_inner();
        let place = fields.name();
        rules::invalid(format!(
            "{place}.{name} must be from {least} to {most}; it is {given}"
        ))
    })
}

/// The order of priorities in whole numbers, in thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "priorities are checked to be from 0 to 1000"
)]
fn rank(priority: f64) -> u32 {
    (priority * 1_000.0).ceil() as u32
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
