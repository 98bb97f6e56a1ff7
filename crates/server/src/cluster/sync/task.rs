//! One attempt of an initial sync, on the side of the member.
//!
//! The task asks for one portion after another and gives each to the store on a thread for
//! blocking calls. It ends when the driver drops it; what the store has then is continued later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf, doc};
use docdb::oplog::entry::OpTime;
use docdb::replica::copy::{Left, Listed, Origin, Wanted};
use query::{Code, Error, Result};
use repl::position::{MemberId, Position};
use tokio::sync::watch;

use super::letter::{Answer, Asked, Content};
use super::status::{Collection, Progress as Copied, Status};
use crate::cluster::host::{Host, Line};
use crate::cluster::letter::{position, position_of, timestamp};
use crate::cluster::network::Network;
use crate::cluster::standing::Standing;
use crate::cluster::storage::Storage;
use crate::cluster::store::optime;
use crate::cluster::view::Progress;
use crate::long::long;

/// Pause before a source is asked again that has not answered, or has nothing new.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a source may lack entries that the primary has.
const BEHIND: Duration = Duration::from_secs(60);

/// How an attempt has ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The store is complete.
    Complete,
    /// The source does not answer; what was copied from it is of use when it does.
    Lost(String),
    /// The copy must restart, for this reason.
    Failed(String),
}

/// What an attempt needs.
pub(crate) struct Attempt {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) status: Arc<Status>,
    pub(crate) progress: watch::Receiver<Progress>,
    pub(crate) source: MemberId,
    /// The address of the source.
    pub(crate) address: String,
    /// Whether to begin a copy, and not to continue one.
    pub(crate) afresh: bool,
    /// How long a source that does not answer is asked again.
    pub(crate) patience: Duration,
}

/// Why an attempt stops.
enum Stop {
    Lost(String),
    Failed(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error.message)
    }
}

impl Attempt {
    pub(crate) async fn run(self) -> Outcome {
        self.status.attempt(&self.address);
        match self.copy().await {
            Ok(()) => Outcome::Complete,
            Err(Stop::Lost(why)) => Outcome::Lost(why),
            Err(Stop::Failed(why)) => Outcome::Failed(why),
        }
    }

    async fn copy(&self) -> std::result::Result<(), Stop> {
        let mut applied = match self.known().await? {
            Some(applied) if !self.afresh => applied,
            _ => self.begin().await?,
        };
        let mut end: Option<Position> = None;
        let mut copied = None;
        let mut moved = stdx::time::now();
        loop {
            let (since, left) = self.next().await?;
            let done = left.is_none();
            if done {
                let at = *copied.get_or_insert_with(stdx::time::now);
                end = end.or_else(|| self.end_after(at));
                if end.is_some_and(|end| end <= applied) {
                    break;
                }
            }
            let wanted = Wanted {
                after: optime(applied),
                since,
                left,
                // The source has its own limits.
                entries: 0,
                records: 0,
            };
            let before = applied;
            applied = self.portion(wanted).await?;
            if !done || applied != before {
                moved = stdx::time::now();
                continue;
            }
            if BEHIND <= moved.elapsed() {
                let why = "the source does not get the entries of the primary";
                return Err(Stop::Lost(why.to_owned()));
            }
            tokio::time::sleep(PAUSE).await;
        }
        let storage = Arc::clone(&self.storage);
        let floor = blocking(move || {
            let floor = storage.complete_copy()?;
            storage.sync()?;
            Ok(floor)
        });
        let floor = floor.await?;
        self.log(
            9_100_064,
            "The data of the source are copied",
            doc! {"source": &self.address, "upTo": position(floor)},
        );
        Ok(())
    }

    /// The position of a copy of this source that was begun before; `None` if there is none.
    async fn known(&self) -> Result<Option<Position>> {
        let (storage, address) = (Arc::clone(&self.storage), self.address.clone());
        blocking(move || {
            let Some(label) = storage.copying() else {
                return Ok(None);
            };
            let same = label
                .get_str("source")
                .is_ok_and(|source| source == address);
            Ok(storage.copied().filter(|_| same))
        })
        .await
    }

    /// Begin a copy.
    async fn begin(&self) -> std::result::Result<Position, Stop> {
        let answer = self.ask(Asked::Begin).await?;
        let origin = match answer.content {
            Content::Origin(origin) => origin,
            Content::Again(why) => return Err(Stop::Failed(why)),
            Content::Portion(_) => return Err(Stop::Failed("no catalog was sent".to_owned())),
        };
        let collections = described(&origin)?;
        let at = position_of(&origin.entry)?;
        self.log(
            9_100_062,
            "Copying the data of another member",
            doc! {
                "source": &self.address,
                "collections": long(collections.len()),
                "from": position(at),
            },
        );
        self.status.copies(timestamp(at), collections);
        let label = label(&self.address, &answer.store)?;
        let storage = Arc::clone(&self.storage);
        blocking(move || storage.begin_copy(&label, &origin)).await?;
        Ok(at)
    }

    /// What is to be asked for next.
    async fn next(&self) -> Result<(OpTime, Option<Left>)> {
        let storage = Arc::clone(&self.storage);
        let next = blocking(move || Ok(storage.copy_next())).await?;
        next.ok_or_else(|| Error::new(Code::INTERNAL_ERROR, "the copy is not under way any more"))
    }

    /// Fetch and take a portion; returns the position then.
    async fn portion(&self, wanted: Wanted) -> std::result::Result<Position, Stop> {
        let answer = self.ask(Asked::Portion(wanted)).await?;
        let portion = match answer.content {
            Content::Portion(portion) => portion,
            Content::Again(why) => return Err(Stop::Failed(why)),
            Content::Origin(_) => return Err(Stop::Failed("no portion was sent".to_owned())),
        };
        let (storage, status) = (Arc::clone(&self.storage), Arc::clone(&self.status));
        let store = answer.store;
        Ok(blocking(move || {
            let same = |label: RawDocumentBuf| is_store(&label, &store);
            if !storage.copying().is_some_and(same) {
                let message = "the source has another store than before";
                return Err(Error::new(Code::ILLEGAL_OPERATION, message));
            }
            let at = storage.take_portion(&portion)?;
            status.took(&portion);
            Ok(at)
        })
        .await?)
    }

    /// The last entry of the primary, if it has reported since `at` (Z2).
    fn end_after(&self, at: std::time::Instant) -> Option<Position> {
        let progress = self.progress.borrow();
        let mut reports = progress.reports.values();
        let found = reports.find(|r| r.note.standing == Standing::Primary && at <= r.at);
        found.map(|report| report.last)
    }

    /// Ask the source; one that does not answer is asked again for some time.
    async fn ask(&self, asked: Asked) -> std::result::Result<Answer, Stop> {
        let begun = stdx::time::now();
        loop {
            let (answer, answered) = tokio::sync::oneshot::channel();
            let done = move |result| {
                // One who does not wait any more gets no answer.
                let _: std::result::Result<(), _> = answer.send(result);
            };
            self.network
                .copy(self.source, asked.clone(), Box::new(done));
            let why = match answered.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(why)) => why,
                Err(_) => "the connection was given up".to_owned(),
            };
            if self.patience <= begun.elapsed() {
                return Err(Stop::Lost(why));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn log(&self, id: i32, message: &'static str, attributes: bson::Document) {
        self.host.log(Line {
            warning: false,
            id,
            message,
            attributes,
        });
    }
}

/// Run a call that blocks.
async fn blocking<R: Send + 'static>(
    body: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let done = tokio::task::spawn_blocking(body).await;
    done.map_err(|error| Error::new(Code::INTERNAL_ERROR, error.to_string()))?
}

/// What the store keeps of the source: its address, and the identifier of its store.
fn label(address: &str, store: &[u8]) -> Result<RawDocumentBuf> {
    let store = bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: store.to_vec(),
    };
    Ok(RawDocumentBuf::try_from(
        &doc! {"source": address, "store": store},
    )?)
}

fn is_store(label: &RawDocument, store: &[u8]) -> bool {
    label
        .get_binary("store")
        .is_ok_and(|known| known.bytes == store)
}

/// The collections of an origin, for the status.
fn described(origin: &Origin) -> Result<BTreeMap<bson::Uuid, Collection>> {
    let mut all = BTreeMap::new();
    for listed in &origin.catalog {
        if let Some((uuid, collection)) = describe(listed)? {
            all.insert(uuid, collection);
        }
    }
    Ok(all)
}

fn describe(listed: &Listed) -> Result<Option<(bson::Uuid, Collection)>> {
    let stored = RawDocument::from_bytes(&listed.stored)?;
    let Some(bson::RawBsonRef::Binary(uuid)) = stored.get("uuid")? else {
        return Ok(None);
    };
    let (Ok(uuid), Ok(ns)) = (<[u8; 16]>::try_from(uuid.bytes), stored.get_str("ns")) else {
        return Ok(None);
    };
    let indexes = stored.get_array("indexes");
    let collection = Collection {
        ns: ns.to_owned(),
        documents: listed.documents,
        bytes: listed.bytes,
        indexes: indexes.map_or(0, |indexes| indexes.into_iter().count()),
        progress: Copied::default(),
    };
    Ok(Some((bson::Uuid::from_bytes(uuid), collection)))
}
