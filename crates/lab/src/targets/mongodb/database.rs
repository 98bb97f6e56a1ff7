//! The server, the collection with the rows, and the operations on them as a whole.

use std::path::PathBuf;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use kv::{Durability, EngineStats};
use lab_report::error::{Error, Result};
use mongodb::IndexModel;
use mongodb::error::Error as DriverError;
use mongodb::options::{CollectionOptions, WriteConcern};
use mongodb::sync::{Client, Collection};
use stdx::sync::Mutex;
use stdx::time;

use super::connection::Link;
use super::{address, document, facts, failure, tables};
use crate::protocol::{Open, ServerFacts};
use crate::targets::database::{Connection, Database, Meter, Settled, State};
use crate::targets::poll::Polled;
use crate::workload::iibench::Generator;
use crate::workload::tables::Tables;

/// Prefix of the collections of the laboratory: unlikely to be used by others, since they are
/// dropped.
pub(super) const PREFIX: &str = "romanesco_lab_";

/// The collection of the rows.
pub(super) const COLLECTION: &str = "romanesco_lab_rows";

/// Number of connections in addition to those of the load: the ticker's, the query client's, the
/// driver's own.
const MORE_CONNECTIONS: u32 = 8;

/// Interval at which a settling server is polled.
const LOOK: Duration = Duration::from_millis(200);

/// Pending work that an idle server has not reduced for this time counts as permanent: it is data
/// in the server's memory, which stays there until more writes arrive.
const STILL: Duration = Duration::from_secs(2);

/// An open server.
pub(super) struct Server {
    /// Address of the server, for messages.
    pub(super) place: String,
    pub(super) client: Client,
    pub(super) database: String,
    pub(super) rows: Collection<RawDocumentBuf>,
    pub(super) generator: Generator,
    /// The write concern of every write.
    pub(super) concern: WriteConcern,
    pub(super) catalog: tables::Catalog,
    facts: ServerFacts,
    keep: bool,
    indexed: Mutex<[bool; 3]>,
    last: Mutex<Polled>,
}

/// Check that a server answers and accepts the user of the address.
///
/// # Errors
/// A message that states what to do next.
pub(in crate::targets) fn answers(uri: &str) -> Result<()> {
    let (client, database) = connect(uri, 1)?;
    let listed = client.database(&database).list_collection_names().run();
    listed.map(|_| ()).map_err(|e| failure::text(uri, &e))
}

/// The data directory of a server, if it is on this machine.
pub(in crate::targets) fn directory(uri: &str) -> Result<Option<PathBuf>> {
    let (client, _) = connect(uri, 1)?;
    let facts = facts::gather(&client, uri, &concern(uri, Durability::Interval)?);
    Ok(facts.map_err(|e| failure::text(uri, &e))?.data_dir)
}

fn connect(uri: &str, connections: u32) -> Result<(Client, String)> {
    let (options, database) = address::options(uri, connections)?;
    let client = Client::with_options(options).map_err(|e| failure::text(uri, &e))?;
    Ok((client, database))
}

/// Connect to a server, and drop the collection of an earlier run, unless the request is to open
/// existing data.
pub(in crate::targets) fn open(uri: &str, request: &Open) -> Result<Box<dyn Database>> {
    let (client, database) = connect(uri, request.clients + MORE_CONNECTIONS)?;
    let concern = concern(uri, request.durability)?;
    let rows = collection((&client, database.as_str()), COLLECTION, &concern);
    let text = |e: DriverError| failure::text(uri, &e);
    let generator = Generator::new(request.rows);
    let indexed = match request.found {
        // A workload that declares its own tables opens those itself.
        true if request.program.is_some() => [false; 3],
        true => indexed(&rows, &generator).map_err(text)?,
        false => {
            rows.drop().run().map_err(text)?;
            let place = client.database(&database);
            place.create_collection(COLLECTION).run().map_err(text)?;
            [false; 3]
        }
    };
    Ok(Box::new(Server {
        facts: facts::gather(&client, uri, &concern).map_err(text)?,
        place: uri.to_owned(),
        client,
        database,
        rows,
        generator,
        concern,
        catalog: tables::Catalog::default(),
        keep: request.keep,
        indexed: Mutex::new(indexed),
        last: Mutex::new(Polled::new()),
    }))
}

/// A collection that the laboratory may create, fill and drop.
pub(super) fn collection(
    (client, database): (&Client, &str),
    name: &str,
    concern: &WriteConcern,
) -> Collection<RawDocumentBuf> {
    assert!(
        name.starts_with(PREFIX),
        "M1: {name} is not the laboratory's"
    );
    let options = CollectionOptions::builder()
        .write_concern(concern.clone())
        .build();
    let database = client.database(database);
    database.collection_with_options(name, options)
}

/// Which of the three indexes exist.
fn indexed(
    rows: &Collection<RawDocumentBuf>,
    generator: &Generator,
) -> Result<[bool; 3], DriverError> {
    let there = rows.list_indexes().run()?;
    let there: Vec<Document> = there
        .map(|index| Ok(index?.keys))
        .collect::<Result<_, DriverError>>()?;
    let all = document::indexes(generator.params().shape);
    Ok(all.map(|fields| there.contains(&document::keys(fields))))
}

/// The write concern of every write: the members of the address, and the journal if the run wants
/// durable writes.
fn concern(uri: &str, durability: Durability) -> Result<WriteConcern> {
    let mut concern = WriteConcern::default();
    concern.w = Some(address::acknowledgment(uri)?);
    concern.journal = Some(matches!(durability, Durability::Sync | Durability::Group));
    Ok(concern)
}

impl Server {
    /// A message for an error of the driver.
    pub(super) fn text(&self, error: &DriverError) -> Error {
        failure::text(&self.place, error)
    }

    /// The fields of each index that the run has.
    pub(super) fn indexes(&self) -> impl Iterator<Item = &'static [&'static str]> {
        let params = self.generator.params();
        let all = document::indexes(params.shape).into_iter();
        all.take(usize::from(params.indexes))
    }

    /// Create one of the indexes, unless it exists.
    pub(super) fn create_index(&self, index: usize) -> Result<()> {
        let mut made = self.indexed.lock();
        let (Some(made), Some(fields)) = (made.get_mut(index), self.indexes().nth(index)) else {
            return Err(Error::target("there is no such index"));
        };
        if *made {
            return Ok(());
        }
        let model = IndexModel::builder().keys(document::keys(fields)).build();
        let created = self.rows.create_index(model).run();
        created.map_err(|e| self.text(&e))?;
        *made = true;
        Ok(())
    }

    fn look(&self) -> State {
        let database = self.client.database(&self.database);
        let size = database.run_command(doc! { "dbStats": 1 }).run();
        let size = size.ok().and_then(|stats| total(&stats));
        State {
            stats: self.stats().unwrap_or_default(),
            file_bytes: size,
        }
    }

    /// The engine's statistics; `None` if the server does not report them.
    fn stats(&self) -> Option<EngineStats> {
        let admin = self.client.database("admin");
        let status = admin.run_command(doc! { "serverStatus": 1 }).run().ok()?;
        facts::engine_stats(&status)
    }
}

impl Database for Server {
    fn keeps(&self) -> bool {
        true
    }

    fn server(&self) -> Option<ServerFacts> {
        Some(self.facts.clone())
    }

    fn tables(&self) -> Result<&dyn Tables> {
        Ok(self)
    }

    fn connect(&self) -> Result<Box<dyn Connection + '_>> {
        Ok(Box::new(Link::new(self)))
    }

    fn create_indexes(&self) -> Result<()> {
        (0..self.indexes().count()).try_for_each(|index| self.create_index(index))
    }

    fn rebuild(&self, _meter: &dyn Meter) -> Result<()> {
        let command = doc! { "compact": COLLECTION, "force": true };
        let done = self
            .client
            .database(&self.database)
            .run_command(command)
            .run();
        done.map(|_| ()).map_err(|e| self.text(&e))
    }

    fn row_bytes(&self, indexed: bool) -> f64 {
        document::mean_bytes(&self.generator, indexed)
    }

    fn settle(&self, limit: Duration) -> Result<Settled> {
        let end = time::now() + limit;
        let mut last = (None, time::now());
        loop {
            let Some(stats) = self.stats().filter(|s| s.debt_bytes.is_some()) else {
                return Ok(Settled::Unknown);
            };
            let idle = stats.activity.is_empty();
            if stats.debt_bytes != last.0 || !idle {
                last = (stats.debt_bytes, time::now());
            }
            let paid = stats
                .debt_bytes
                .is_some_and(|debt| debt <= facts::QUIET_BYTES);
            if idle && (paid || STILL <= last.1.elapsed()) {
                return Ok(Settled::Complete);
            }
            if end <= time::now() {
                return Ok(Settled::Cut);
            }
            time::sleep(LOOK);
        }
    }

    fn state(&self) -> State {
        self.last.lock().state(|_| self.look())
    }

    fn close(self: Box<Self>) -> Result<()> {
        if self.keep {
            return Ok(());
        }
        self.drop_all()?;
        self.rows.drop().run().map_err(|e| self.text(&e))
    }
}

/// The size of a database in bytes, from its statistics.
fn total(stats: &Document) -> Option<u64> {
    let number = |name: &str| match stats.get(name)? {
        Bson::Int32(n) => u64::try_from(*n).ok(),
        Bson::Int64(n) => u64::try_from(*n).ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size: positive, saturates"
        )]
        Bson::Double(n) => Some(*n as u64),
        _ => None,
    };
    number("totalSize").or_else(|| Some(number("storageSize")? + number("indexSize")?))
}
