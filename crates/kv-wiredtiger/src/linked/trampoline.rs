//! Lets the library call our code while it opens a store, before recovery.
//!
//! Recovery opens trees, so their compressors must be registered before recovery. In
//! `wiredtiger_open` only an extension can do that: a shared object that the library loads by its
//! path, and in which it looks up a symbol. A Rust program does not export such a symbol, so the
//! object is a few lines of C (`trampoline/trampoline.c`), compiled by `build.rs` and embedded
//! here. It is written to memory (`memfd_create`), with a path in `/proc/self/fd` that is valid in
//! this process.
//!
//! T1: the object is loaded once, gets the address of our function before its path is used, and is
//! never unloaded: its file stays open, so that the path refers to this object until the process
//! ends.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::mem;
use std::os::fd::AsRawFd;

use rustix::fs::{MemfdFlags, memfd_create};
use stdx::sync::OnceLock;

use super::compressors;
use super::connection::owned;
use super::sys;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trampoline.so"));

/// The function that the shared object calls with the connection that is being opened.
type Registrar = unsafe extern "C" fn(*mut sys::WT_CONNECTION) -> c_int;

/// The function of the shared object that stores the address to call.
type CallOnOpen = unsafe extern "C" fn(Registrar);

const CALL_ON_OPEN: &CStr = c"romanesco_call_on_open";

/// The loaded shared object.
struct Loaded {
    path: String,
    /// Keeps the path valid (T1).
    _file: File,
}

static LOADED: OnceLock<Result<Loaded, String>> = OnceLock::new();

/// The path of the extension that registers our compressors, or the reason why it is not available:
/// a system may forbid executing files in memory.
pub(super) fn path() -> Result<&'static str, &'static str> {
    match LOADED.get_or_init(load) {
        Ok(loaded) => Ok(&loaded.path),
        Err(why) => Err(why),
    }
}

fn load() -> Result<Loaded, String> {
    let failed = |what: &str, why: &dyn std::fmt::Display| format!("{what}: {why}");
    let file = memfd_create(c"romanesco-wiredtiger", MemfdFlags::CLOEXEC)
        .map_err(|e| failed("memfd_create", &e))?;
    let mut file = File::from(file);
    file.write_all(OBJECT)
        .map_err(|e| failed("writing to memory", &e))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let symbol = symbol(&path)?;
    // SAFETY: the symbol is the function of this type in `trampoline.c`, and nothing unloads it.
    let call_on_open = unsafe { mem::transmute::<*mut c_void, CallOnOpen>(symbol) };
    // SAFETY: the function only stores a pointer; the path has not been returned yet, so the
    // library does not read that pointer meanwhile (T1).
    unsafe { call_on_open(compressors::register) };
    Ok(Loaded { path, _file: file })
}

/// Load the object and find its function `CALL_ON_OPEN`.
fn symbol(path: &str) -> Result<*mut c_void, String> {
    let name = CString::new(path).map_err(|e| e.to_string())?;
    // SAFETY: the name ends in a zero byte; loading our object executes none of its code.
    let object = unsafe { sys::dlopen(name.as_ptr(), sys::RTLD_NOW) };
    if object.is_null() {
        return Err(last_error());
    }
    // SAFETY: the object was loaded and is not closed; the name ends in a zero byte.
    let symbol = unsafe { sys::dlsym(object, CALL_ON_OPEN.as_ptr()) };
    if symbol.is_null() {
        return Err(last_error());
    }
    Ok(symbol)
}

fn last_error() -> String {
    // SAFETY: `dlerror` returns null or a text that ends in a zero byte, and belongs to this thread
    // until the next such call.
    unsafe { owned(sys::dlerror()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_object_is_loaded_once_and_its_path_stays() {
        let first = path().unwrap();
        assert_eq!(fs::read(first).unwrap(), OBJECT, "T1: the path is open");
        assert_eq!(path().unwrap(), first, "T1: loaded once");
    }
}
