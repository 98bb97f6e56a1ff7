//! Has the library call us while it opens a store, before it recovers.
//!
//! Recovery opens trees, so their compressors must be registered before it, and the one way into
//! `wiredtiger_open` is an extension: a shared object that the library loads by its path, in which
//! it looks up a symbol. A Rust program has no such symbol to offer, so the object is a few lines
//! of C (`trampoline/trampoline.c`), compiled by `build.rs` and embedded here. It lies in memory
//! (`memfd_create`), under a path in `/proc/self/fd` that is good for this process.
//!
//! T1: the object is loaded once, told what to call before anybody gets its path, and never given
//! back: its file stays open, so that the path means this object as long as the process lives.

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

/// What the object calls with the connection that is being opened.
type Registrar = unsafe extern "C" fn(*mut sys::WT_CONNECTION) -> c_int;

/// The object's function that is told what to call.
type CallOnOpen = unsafe extern "C" fn(Registrar);

const CALL_ON_OPEN: &CStr = c"romanesco_call_on_open";

/// The object, loaded.
struct Loaded {
    path: String,
    /// Keeps the path good (T1).
    _file: File,
}

static LOADED: OnceLock<Result<Loaded, String>> = OnceLock::new();

/// The path of the extension that registers our compressors, or why there is none: a system may
/// forbid to run what is in memory.
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
    // SAFETY: it stores a pointer; nobody has the path yet, so the library does not read it (T1).
    unsafe { call_on_open(compressors::register) };
    Ok(Loaded { path, _file: file })
}

/// Load the object and find its function.
fn symbol(path: &str) -> Result<*mut c_void, String> {
    let name = CString::new(path).map_err(|e| e.to_string())?;
    // SAFETY: the name ends in a zero byte; loading our object runs nothing of it.
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
    // SAFETY: `dlerror` answers null or a text that ends in a zero byte and is this thread's until
    // the next such call.
    unsafe { owned(sys::dlerror()) }
}
