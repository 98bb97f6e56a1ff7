//! `romanesco cluster`: a replica set on this machine, for developers and tests. No member outlives
//! this program: each is a child process that is killed with it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use lab::run::Interrupt;
use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, ServerAddress};
use mongodb::sync::Client;
use rustix::process::{Pid, Signal, kill_process};

/// Limit of waits for servers that start, begin a set, or end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Start a replica set on this machine, print its address, and end it on Ctrl-C
#[derive(clap::Args)]
#[command(after_help = "Example: romanesco cluster --members betree,betree,lmdb")]
pub(crate) struct Args {
    /// Storage engine of each member, separated by commas
    #[arg(
        long,
        value_name = "ENGINES",
        value_delimiter = ',',
        default_value = "betree,betree,betree"
    )]
    members: Vec<String>,
    /// Directory of the data and the logs, kept at the end; without it both are removed
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Port of the first member of a new set; the others have the next ones [default: free ports]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Name of the replica set
    #[arg(long, value_name = "NAME", default_value = "rs0")]
    name: String,
}

/// A member that runs.
struct Member {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Args {
    /// Run the set until a signal.
    ///
    /// # Errors
    /// A server that does not start; a set that does not begin.
    pub(crate) fn run(&self) -> Result<(), String> {
        let interrupt = Interrupt::listen().map_err(|error| error.to_string())?;
        let (place, temporary) = match &self.directory {
            Some(place) => (place.clone(), false),
            None => {
                let name = format!("romanesco-cluster-{}", std::process::id());
                (std::env::temp_dir().join(name), true)
            }
        };
        let mut members = Vec::new();
        let outcome = self.serve(&place, &mut members, &interrupt);
        let ended = end(members);
        if temporary && let Err(error) = fs::remove_dir_all(&place) {
            note!("{}: {error}", place.display());
        }
        outcome.and(ended)
    }

    fn serve(
        &self,
        place: &Path,
        members: &mut Vec<Member>,
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        let ports = self.ports(place)?;
        for (i, (engine, port)) in self.members.iter().zip(ports).enumerate() {
            let folder = place.join(format!("member{i}"));
            let started = start(&folder, engine, port, &self.name);
            members.push(started.map_err(|error| format!("{}: {error}", folder.display()))?);
        }
        let failed = |error: mongodb::error::Error| error.to_string();
        for member in members.iter_mut() {
            wait_until(interrupt, || {
                if let Some(status) = member.child.try_wait().map_err(|e| e.to_string())? {
                    let log = member.log.display();
                    return Err(format!("a member ended ({status}); its log is {log}"));
                }
                Ok(ask(member.port, doc! {"ping": 1}).is_ok())
            })?;
        }
        let Some(first) = members.first() else {
            return Err("--members names no engine".to_owned());
        };
        let config = self.configuration(members);
        match ask(first.port, doc! {"replSetInitiate": config}) {
            // The data are those of an earlier run.
            Err(error) if code(&error) == Some(23) => {}
            outcome => drop(outcome.map_err(failed)?),
        }
        wait_until(interrupt, || {
            let hello = |member: &Member| ask(member.port, doc! {"hello": 1});
            let replies = members.iter().filter_map(|member| hello(member).ok());
            let mut writable = replies.map(|hello| hello.get_bool("isWritablePrimary"));
            Ok(writable.any(|writable| writable.unwrap_or(false)))
        })?;
        if !interrupt.is_set() {
            say!("{}", self.uri(members));
        }
        watch(members, interrupt)
    }

    /// The ports of the members. A set knows its members by them, so a directory keeps them.
    fn ports(&self, place: &Path) -> Result<Vec<u16>, String> {
        let count = self.members.len();
        let failed = |error: io::Error| format!("{}: {error}", place.display());
        fs::create_dir_all(place).map_err(failed)?;
        let file = place.join("ports");
        if let Ok(text) = fs::read_to_string(&file) {
            let known = text
                .lines()
                .map(str::parse)
                .collect::<Result<Vec<u16>, _>>();
            let known = known.ok().filter(|ports| ports.len() == count);
            return known.ok_or_else(|| {
                let place = file.display();
                format!("{place} does not have the ports of {count} members; name as many engines")
            });
        }
        let ports = self.new_ports(count)?;
        let lines: Vec<String> = ports.iter().map(u16::to_string).collect();
        fs::write(&file, lines.join("\n")).map_err(failed)?;
        Ok(ports)
    }

    fn new_ports(&self, count: usize) -> Result<Vec<u16>, String> {
        if let Some(first) = self.port {
            let last = usize::from(first) + count;
            let ports = (usize::from(first)..last).map(u16::try_from);
            let ports: Result<Vec<u16>, _> = ports.collect();
            return ports.map_err(|_| "--port: the last port would be above 65535".to_owned());
        }
        // All are taken before any is given back, so that they differ.
        let taken = (0..count).map(|_| TcpListener::bind("127.0.0.1:0"));
        let taken: io::Result<Vec<TcpListener>> = taken.collect();
        let taken = taken.map_err(|error| error.to_string())?;
        let ports = taken.iter().map(|listener| listener.local_addr());
        let ports: io::Result<Vec<u16>> = ports.map(|at| at.map(|at| at.port())).collect();
        ports.map_err(|error| error.to_string())
    }

    fn configuration(&self, members: &[Member]) -> Document {
        let members = members.iter().zip(0_i32..);
        let members = members.map(|(member, id)| {
            doc! {"_id": id, "host": format!("127.0.0.1:{}", member.port)}
        });
        doc! {"_id": &self.name, "version": 1, "members": members.collect::<Vec<_>>()}
    }

    fn uri(&self, members: &[Member]) -> String {
        let hosts = members.iter().map(|m| format!("127.0.0.1:{}", m.port));
        let hosts: Vec<String> = hosts.collect();
        format!("mongodb://{}/?replicaSet={}", hosts.join(","), self.name)
    }
}

fn start(folder: &Path, engine: &str, port: u16, set: &str) -> io::Result<Member> {
    fs::create_dir_all(folder)?;
    let log = folder.join("log");
    let mut line = Command::new(std::env::current_exe()?);
    line.args(["serve", "--supervised", "--createDbPath"]);
    line.args(["--initiate", "command", "--bind_ip", "127.0.0.1"]);
    line.args(["--replSet", set, "--storageEngine", engine]);
    line.arg("--port").arg(port.to_string());
    line.arg("--dbpath").arg(folder.join("data"));
    line.arg("--logpath").arg(&log);
    line.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = line.spawn()?;
    // The word that a supervised server waits for.
    if let Some(stdin) = &mut child.stdin {
        io::Write::write_all(stdin, b"\n")?;
    }
    Ok(Member { child, port, log })
}

/// End the members: with a signal, so that they close their data.
fn end(members: Vec<Member>) -> Result<(), String> {
    for member in &members {
        let pid = i32::try_from(member.child.id())
            .ok()
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended.
            let _: rustix::io::Result<()> = kill_process(pid, Signal::TERM);
        }
    }
    let mut outcome = Ok(());
    for mut member in members {
        let begun = stdx::time::now();
        let ended = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)) | Err(_));
        while !ended(&mut member.child) && begun.elapsed() < PATIENCE {
            stdx::time::sleep(LOOK);
        }
        if !ended(&mut member.child) {
            let log = member.log.display();
            outcome = Err(format!(
                "a member did not end, and is killed; its log is {log}"
            ));
            // It ends with this program in any case.
            let _: io::Result<()> = member.child.kill();
        }
    }
    outcome
}

/// Wait until a condition holds, or a signal.
/// Wait for Ctrl-C, or for the end of all members. The end of one is not that of the set: a user
/// may want to see what the others do.
fn watch(members: &mut [Member], interrupt: &Interrupt) -> Result<(), String> {
    let mut running: Vec<&mut Member> = members.iter_mut().collect();
    while !interrupt.is_set() {
        running.retain_mut(|member| {
            let Ok(Some(status)) = member.child.try_wait() else {
                return true;
            };
            let (port, log) = (member.port, member.log.display());
            note!(
                "the member at port {port} ended ({status}); its log is {log}. End this command \
                 and start it with the same --directory to have all members again"
            );
            false
        });
        if running.is_empty() {
            return Err("all members have ended".to_owned());
        }
        stdx::time::sleep(LOOK);
    }
    Ok(())
}

fn wait_until(
    interrupt: &Interrupt,
    mut so: impl FnMut() -> Result<bool, String>,
) -> Result<(), String> {
    let begun: Instant = stdx::time::now();
    while !interrupt.is_set() {
        if so()? {
            return Ok(());
        }
        if PATIENCE < begun.elapsed() {
            return Err(format!("no primary within {PATIENCE:?}"));
        }
        stdx::time::sleep(LOOK);
    }
    Ok(())
}

/// Run a command on one member.
fn ask(port: u16, command: Document) -> mongodb::error::Result<Document> {
    let address = ServerAddress::Tcp {
        host: "127.0.0.1".to_owned(),
        port: Some(port),
    };
    let mut options = ClientOptions::default();
    options.hosts = vec![address];
    options.direct_connection = Some(true);
    options.server_selection_timeout = Some(Duration::from_secs(1));
    let client = Client::with_options(options)?;
    client.database("admin").run_command(command).run()
}

fn code(error: &mongodb::error::Error) -> Option<i32> {
    match error.kind.as_ref() {
        mongodb::error::ErrorKind::Command(command) => Some(command.code),
        _ => None,
    }
}
