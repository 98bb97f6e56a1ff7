//! `romanesco compare-members`: whether all members of a replica set have the same documents.
//!
//! Members have equal data at equal times only, and while clients write each has another time. So
//! writes are locked until every member has applied the last one and has opened a snapshot of that
//! moment, which takes milliseconds more than the members are behind. The hashes are computed from
//! the snapshots, while clients write again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use lab::run::Interrupt;
use mongodb::bson::{Document, Timestamp, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{ClientOptions, ReadPreference, ServerAddress};
use mongodb::sync::Client;

use crate::backup::message;

/// Maximum time to find a server, unless the address sets it.
const SELECTION: Duration = Duration::from_secs(10);

/// How often a common moment is tried: the primary's own notes can come between.
const ATTEMPTS: u32 = 20;

/// Time between two looks at a member that is behind.
const LOOK: Duration = Duration::from_millis(2);

/// The code of a read at a moment that is past.
const SNAPSHOT_TOO_OLD: i32 = 239;

/// Check that all members of a replica set have the same documents, while it works
#[derive(clap::Args)]
#[command(
    after_help = "Writes wait until every member has applied the last one: some milliseconds more \
than the members are behind. The exit code is 1 if documents differ.

Example: romanesco compare-members 'mongodb://db1,db2,db3/?replicaSet=rs0'"
)]
pub(crate) struct Args {
    /// Address of the replica set
    #[arg(value_name = "URI", env = "ROMANESCO_URI", hide_env_values = true)]
    set: String,
    /// Seconds that writes wait at most; members that are further behind are not compared
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    longest: f64,
}

/// A member with data.
#[derive(Clone)]
struct Member {
    host: String,
    client: Client,
}

/// The hash of each collection, by its name with the database.
type Hashes = BTreeMap<String, String>;

impl Args {
    /// Compare.
    ///
    /// # Errors
    /// What differs; a member that cannot be asked.
    pub(crate) fn run(&self) -> Result<(), String> {
        let longest = Duration::try_from_secs_f64(self.longest);
        let longest = longest.map_err(|error| format!("--longest {}: {error}", self.longest))?;
        let failed = |error: Error| message(&error);
        let mut options = ClientOptions::parse(&self.set).run().map_err(failed)?;
        options.server_selection_timeout.get_or_insert(SELECTION);
        let set = Client::with_options(options.clone()).map_err(failed)?;
        let members = members(&set, &options)?;
        // A signal must not end the program while writes are locked.
        let interrupt = Interrupt::listen().map_err(|error| error.to_string())?;
        let (moment, waited) = common(&members, longest)?;
        if interrupt.is_set() {
            return Err("ended by a signal".to_owned());
        }
        say!(
            "{} members at {}:{}; writes waited {} ms",
            members.len(),
            moment.time,
            moment.increment,
            waited.as_millis()
        );
        let hashes: Vec<Result<Hashes, String>> = thread::scope(|scope| {
            let begun = members
                .iter()
                .map(|member| scope.spawn(move || hashes(member, moment)));
            let begun: Vec<_> = begun.collect();
            let ended = begun.into_iter().map(thread::ScopedJoinHandle::join);
            ended
                .map(|ended| ended.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
                .collect()
        });
        let hashes = hashes
            .into_iter()
            .collect::<Result<Vec<Hashes>, String>>()?;
        judge(&members, &hashes)
    }
}

/// The members that have data, by the configuration of the set.
fn members(set: &Client, options: &ClientOptions) -> Result<Vec<Member>, String> {
    let failed = |error: Error| message(&error);
    let admin = set.database("admin");
    let reply = admin
        .run_command(doc! {"replSetGetConfig": 1})
        .run()
        .map_err(failed)?;
    let wrong = || format!("the server's configuration is {reply}");
    let config = reply.get_document("config").map_err(|_| wrong())?;
    let mut members = Vec::new();
    for member in config.get_array("members").map_err(|_| wrong())? {
        let member = member.as_document().ok_or("a member is no document")?;
        if member.get_bool("arbiterOnly").unwrap_or(false) {
            continue;
        }
        let host = member.get_str("host").map_err(|_| wrong())?.to_owned();
        let mut own = options.clone();
        own.hosts = vec![ServerAddress::parse(&host).map_err(failed)?];
        own.direct_connection = Some(true);
        own.repl_set_name = None;
        own.selection_criteria = Some(ReadPreference::Nearest { options: None }.into());
        let client = Client::with_options(own).map_err(failed)?;
        members.push(Member { host, client });
    }
    match members.len() {
        0 | 1 => Err("the set has one member with data: there is nothing to compare".to_owned()),
        _ => Ok(members),
    }
}

/// A moment of which all members have a snapshot, and how long writes waited for it.
fn common(members: &[Member], longest: Duration) -> Result<(Timestamp, Duration), String> {
    // Connections to all, before writes wait. The server that is locked is unlocked again,
    // whichever is primary then.
    let mut primary = None;
    for member in members {
        let admin = member.client.database("admin");
        let hello = admin.run_command(doc! {"hello": 1}).run();
        let hello = hello.map_err(|error| format!("{}: {}", member.host, message(&error)))?;
        if hello.get_bool("isWritablePrimary").unwrap_or(false) {
            primary = Some(admin);
        }
    }
    let admin = primary.ok_or("the set has no primary")?;
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let begun = stdx::time::now();
        let locked = admin.run_command(doc! {"fsync": 1, "lock": true}).run();
        locked.map_err(|error| format!("writes cannot be locked: {}", message(&error)))?;
        let until = begun + longest;
        let opened = newest(&admin).and_then(|moment| {
            at_once(members, until, move |member| open(member, moment, until))?;
            Ok(moment)
        });
        let unlocked = admin.run_command(doc! {"fsyncUnlock": 1}).run();
        let waited = begun.elapsed();
        unlocked.map_err(|error| {
            let why = message(&error);
            format!("writes may still be locked, run db.fsyncUnlock() on the primary: {why}")
        })?;
        match opened {
            Ok(moment) => return Ok((moment, waited)),
            Err(Missed::Again(why)) => last = why,
            Err(Missed::Failed(why)) => return Err(why),
        }
    }
    Err(format!("no common moment in {ATTEMPTS} attempts: {last}"))
}

/// Why there is no snapshot of a moment.
#[derive(Debug, PartialEq)]
enum Missed {
    /// Something was written meanwhile.
    Again(String),
    Failed(String),
}

/// The time of the last write of the primary.
fn newest(admin: &mongodb::sync::Database) -> Result<Timestamp, Missed> {
    let failed = |why: String| Missed::Failed(why);
    let hello = admin.run_command(doc! {"hello": 1}).run();
    let hello = hello.map_err(|error| failed(message(&error)))?;
    written(&hello).ok_or_else(|| failed(format!("no time of the last write: {hello}")))
}

/// The time of the last write that a server has.
fn written(hello: &Document) -> Option<Timestamp> {
    let last = hello.get_document("lastWrite").ok()?;
    last.get_document("opTime").ok()?.get_timestamp("ts").ok()
}

/// Ask all members at once, and wait for their answers until a time: a member that hangs must not
/// keep writes locked.
fn at_once(
    members: &[Member],
    until: Instant,
    ask: impl Fn(&Member) -> Result<(), Missed> + Clone + Send + 'static,
) -> Result<(), Missed> {
    let (done, answers) = channel();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for member in members {
        waiting.insert(&member.host);
        let (member, done, ask) = (member.clone(), done.clone(), ask.clone());
        let body = move || {
            let answer = ask(&member);
            // The caller does not wait for a late answer.
            drop(done.send((member.host, answer)));
        };
        stdx::sync::spawn("member", body).map_err(|error| Missed::Failed(error.to_string()))?;
    }
    while !waiting.is_empty() {
        let rest = until.saturating_duration_since(stdx::time::now());
        let Ok((host, answer)) = answers.recv_timeout(rest) else {
            let hosts: Vec<&str> = waiting.into_iter().collect();
            return Err(Missed::Failed(format!(
                "not ready while writes waited: {}; a member that is behind can be compared later, \
                 or let writes wait for longer with --longest",
                hosts.join(", ")
            )));
        };
        answer?;
        waiting.remove(host.as_str());
    }
    Ok(())
}

/// Wait until a member has a moment, but not after `until`, and let it open a snapshot.
fn open(member: &Member, moment: Timestamp, until: Instant) -> Result<(), Missed> {
    let host = &member.host;
    let failed = |error: Error| Missed::Failed(format!("{host}: {}", message(&error)));
    let admin = member.client.database("admin");
    loop {
        let hello = admin.run_command(doc! {"hello": 1}).run().map_err(failed)?;
        if written(&hello).is_some_and(|at| moment <= at) {
            break;
        }
        if until <= stdx::time::now() {
            return Err(Missed::Failed(format!("{host} is too far behind")));
        }
        stdx::time::sleep(LOOK);
    }
    let read = doc! {
        "find": "romanesco.moment", "limit": 1, "singleBatch": true,
        "readConcern": {"level": "snapshot", "atClusterTime": moment},
    };
    match admin.run_command(read).run() {
        Ok(_) => Ok(()),
        Err(error) if code(&error) == Some(SNAPSHOT_TOO_OLD) => {
            Err(Missed::Again(format!("{host}: {}", message(&error))))
        }
        Err(error) => Err(failed(error)),
    }
}

fn code(error: &Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(refused) => Some(refused.code),
        _ => None,
    }
}

/// The hashes of a member's collections at a moment, but for the database `local`.
fn hashes(member: &Member, moment: Timestamp) -> Result<Hashes, String> {
    let failed = |error: Error| {
        let advice = match code(&error) == Some(SNAPSHOT_TOO_OLD) {
            true => "; raise the parameter transactionLifetimeLimitSeconds on all members",
            false => "",
        };
        format!("{}: {}{advice}", member.host, message(&error))
    };
    let mut hashes = Hashes::new();
    let databases = member.client.list_database_names().run().map_err(failed)?;
    for database in databases.iter().filter(|name| *name != "local") {
        let command = doc! {
            "dbHash": 1, "readConcern": {"level": "snapshot", "atClusterTime": moment},
        };
        let reply = member
            .client
            .database(database)
            .run_command(command)
            .run()
            .map_err(failed)?;
        let found = reply.get_document("collections");
        for (collection, hash) in found.into_iter().flatten() {
            let hash = hash
                .as_str()
                .map_or_else(|| hash.to_string(), str::to_owned);
            hashes.insert(format!("{database}.{collection}"), hash);
        }
    }
    Ok(hashes)
}

fn judge(members: &[Member], hashes: &[Hashes]) -> Result<(), String> {
    let names: BTreeSet<&String> = hashes.iter().flat_map(Hashes::keys).collect();
    let mut different = Vec::new();
    for name in &names {
        let found: Vec<Option<&String>> = hashes.iter().map(|of| of.get(*name)).collect();
        if found.windows(2).all(|pair| pair.first() == pair.last()) {
            continue;
        }
        let shown = members.iter().zip(found).map(|(member, hash)| {
            let hash = hash.map_or("missing", String::as_str);
            format!("{} {hash}", member.host)
        });
        let shown: Vec<String> = shown.collect();
        different.push(format!("\n  {name}: {}", shown.join(", ")));
    }
    match different.len() {
        0 => {
            say!("{} collections are equal on all members", names.len());
            Ok(())
        }
        count => Err(format!(
            "{count} of {} collections differ:{}\nA member that differs copies the data again \
             when it is started with an empty data directory",
            names.len(),
            different.concat()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(host: &str) -> Member {
        let options = ClientOptions::builder()
            .hosts(vec![ServerAddress::parse(host).unwrap()])
            .build();
        Member {
            host: host.to_owned(),
            client: Client::with_options(options).unwrap(),
        }
    }

    #[test]
    fn a_member_that_hangs_is_named_when_the_time_is_over() {
        let members = [member("a:1"), member("b:2")];
        let (hold, held) = channel::<()>();
        let held = std::sync::Arc::new(stdx::sync::Mutex::new(held));
        let ask = move |member: &Member| {
            if member.host == "b:2" {
                // Until the test has ended.
                let _ended = held.lock().recv();
            }
            Ok(())
        };
        let until = stdx::time::now() + Duration::from_millis(50);
        let Err(Missed::Failed(why)) = at_once(&members, until, ask) else {
            panic!("it waits for the member");
        };
        assert!(why.contains("waited: b:2;"), "{why}");
        let until = stdx::time::now() + Duration::from_secs(600);
        assert_eq!(at_once(&members, until, |_| Ok(())), Ok(()));
        let again = |_: &Member| Err(Missed::Again("late".to_owned()));
        let again = at_once(&members, until, again);
        assert_eq!(again, Err(Missed::Again("late".to_owned())));
        drop(hold);
    }

    #[test]
    fn what_differs_is_named_with_the_hash_of_each_member() {
        let members = [member("a:1"), member("b:2"), member("c:3")];
        let of = |pairs: &[(&str, &str)]| -> Hashes {
            let owned = pairs
                .iter()
                .map(|(name, hash)| ((*name).to_owned(), (*hash).to_owned()));
            owned.collect()
        };
        let same = of(&[("d.x", "1"), ("d.y", "2")]);
        assert_eq!(
            judge(&members, &[same.clone(), same.clone(), same.clone()]),
            Ok(())
        );
        let other = of(&[("d.x", "1"), ("d.y", "3")]);
        let less = of(&[("d.x", "1")]);
        let error = judge(&members, &[same.clone(), other, less]).unwrap_err();
        assert!(error.starts_with("1 of 2 collections differ:"), "{error}");
        assert!(error.contains("d.y: a:1 2, b:2 3, c:3 missing"), "{error}");
        // The last member alone.
        assert!(judge(&members, &[same.clone(), same, of(&[])]).is_err());
    }
}
