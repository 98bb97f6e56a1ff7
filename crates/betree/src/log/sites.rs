//! The places at which the log performs I/O, by name.

use vfs::Site;

/// Opening or creating the file of a new segment.
pub(crate) const CREATE: Site = Site("log.create");
/// Reserving the space of a new segment.
pub(crate) const ALLOCATE: Site = Site("log.allocate");
/// Filling reserved space with zeros.
pub(crate) const ZEROS: Site = Site("log.zeros");
/// Making zeros durable, piece by piece.
pub(crate) const ZEROS_SYNC: Site = Site("log.zeros.sync");
/// Creating a file of the reserve for opening.
pub(crate) const RESERVE: Site = Site("log.reserve");
/// Reserving its space.
pub(crate) const RESERVE_ALLOCATE: Site = Site("log.reserve.allocate");
/// Making its length durable.
pub(crate) const RESERVE_SYNC: Site = Site("log.reserve.sync");
/// Making its name durable.
pub(crate) const RESERVE_NAME: Site = Site("log.reserve.name");
/// Removing it when its space cannot be had.
pub(crate) const RESERVE_REMOVE: Site = Site("log.reserve.remove");
/// Writing the header block of a new segment.
pub(crate) const HEADER: Site = Site("log.header");
/// Making the length of a new segment durable.
pub(crate) const LENGTH_SYNC: Site = Site("log.length.sync");
/// Making the header of a new segment durable.
pub(crate) const HEADER_SYNC: Site = Site("log.header.sync");
/// Making the names of segments durable.
pub(crate) const DIRECTORY: Site = Site("log.directory");
/// Writing a group.
pub(crate) const WRITE: Site = Site("log.write");
/// Making groups durable for those who wait.
pub(crate) const SYNC: Site = Site("log.sync");
/// Making a full segment durable before the next one is written to.
pub(crate) const ROTATE: Site = Site("log.rotate");
/// Setting a released segment aside for reuse.
pub(crate) const RECYCLE: Site = Site("log.recycle");
/// Giving a spare segment its new number.
pub(crate) const REUSE: Site = Site("log.reuse");
/// Removing a segment or a spare one.
pub(crate) const REMOVE: Site = Site("log.remove");
/// Making segments durable before they are read from the device.
pub(crate) const PROOF_SYNC: Site = Site("log.proof.sync");
/// Opening a segment at recovery.
pub(crate) const OPEN: Site = Site("log.open");
/// Reading at recovery.
pub(crate) const READ: Site = Site("log.read");
