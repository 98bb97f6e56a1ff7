//! The only crate that calls the operating system for storage.
//!
//! The adapters and the laboratory use its functions for small atomic files, directory locks and
//! sizes. betree uses the traits [`Vfs`] and [`File`], which [`RealVfs`] implements. All functions
//! return `std::io::Result`; callers add the path to their own errors.

mod atomic;
mod device;
mod directory;
mod extents;
mod lock;
mod page_cache;
mod real;
mod storage;

pub use atomic::{sync_dir, write_atomic};
pub use device::{DeviceId, device_of};
pub use directory::{
    FileSystem, PRIVATE_FILE, Usage, ensure_dir, ensure_private_dir, file_system, free_bytes,
    is_empty, permissions_of_others, usage,
};
pub use extents::{FileExtent, extents_of};
pub use lock::DirLock;
pub use page_cache::PageCacheId;
pub use real::RealVfs;
pub use storage::{File, Held, Open, Site, Vfs};
