//! The compressors as tables of functions, which the library calls on any of its threads.

use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use super::Packer;
use super::log::{LOG, LOG_PLAIN, Plain, Snappy};
use super::lz4::Lz4;
use super::zstd::Zstd;
use crate::linked::sys::{self, call};

static COMPRESSORS: [(&CStr, sys::WT_COMPRESSOR); 4] = [
    (c"lz4", table::<Lz4>()),
    (c"zstd", table::<Zstd>()),
    (LOG, table::<Snappy>()),
    (LOG_PLAIN, table::<Plain>()),
];

/// Register the compressors with a connection that is being opened. If the library already has a
/// compressor of the same name, the library's own stays registered.
///
/// # Safety
/// `connection` is the connection that the library passes when it calls this function.
pub(crate) unsafe extern "C" fn register(connection: *mut sys::WT_CONNECTION) -> c_int {
    for (name, table) in &COMPRESSORS {
        let table = ptr::from_ref(table).cast_mut();
        // SAFETY: the connection is live, as the caller promises; name and table are static, and
        // the library only reads the table.
        let code = unsafe {
            call!(
                connection,
                add_compressor,
                name.as_ptr(),
                table,
                ptr::null()
            )
        };
        if code != 0 {
            return code;
        }
    }
    0
}

const fn table<P: Packer>() -> sys::WT_COMPRESSOR {
    sys::WT_COMPRESSOR {
        compress: Some(compress::<P>),
        decompress: Some(decompress::<P>),
        pre_size: Some(pre_size::<P>),
        terminate: None,
    }
}

/// Compute the size of the buffer that `compress` needs.
unsafe extern "C" fn pre_size<P: Packer>(
    _compressor: *mut sys::WT_COMPRESSOR,
    _session: *mut sys::WT_SESSION,
    _from: *mut u8,
    length: usize,
    room: *mut usize,
) -> c_int {
    // SAFETY: the library passes the address of a number of its own.
    unsafe { room.write(P::room(length)) };
    0
}

/// Compress a page. If the result is not shorter, that is no error: `failed` makes the library
/// store the page uncompressed.
unsafe extern "C" fn compress<P: Packer>(
    _compressor: *mut sys::WT_COMPRESSOR,
    _session: *mut sys::WT_SESSION,
    from: *mut u8,
    from_length: usize,
    to: *mut u8,
    to_length: usize,
    length: *mut usize,
    failed: *mut c_int,
) -> c_int {
    let packed = run(|| {
        // SAFETY: the library's contract, `WT_COMPRESSOR::compress`: two buffers of these lengths
        // that do not overlap and that no other code uses during the call.
        let (from, to) = unsafe { buffers(from, from_length, to, to_length) }?;
        P::pack(from, to)
    });
    // SAFETY: the library passes the addresses of two numbers of its own.
    unsafe {
        failed.write(c_int::from(packed.is_none()));
        length.write(packed.unwrap_or(0));
    }
    0
}

/// Decompress a page. A page that cannot be decompressed is damaged.
unsafe extern "C" fn decompress<P: Packer>(
    _compressor: *mut sys::WT_COMPRESSOR,
    _session: *mut sys::WT_SESSION,
    from: *mut u8,
    from_length: usize,
    to: *mut u8,
    to_length: usize,
    length: *mut usize,
) -> c_int {
    let unpacked = run(|| {
        // SAFETY: as in `compress`; `WT_COMPRESSOR::decompress` says the same of its buffers.
        let (from, to) = unsafe { buffers(from, from_length, to, to_length) }?;
        P::unpack(from, to)
    });
    let Some(unpacked) = unpacked else {
        return sys::WT_ERROR;
    };
    // SAFETY: the library passes the address of a number of its own.
    unsafe { length.write(unpacked) };
    0
}

/// Run `body`. A panic must not unwind into the library's frames, so it counts as a failure.
fn run(body: impl FnOnce() -> Option<usize>) -> Option<usize> {
    catch_unwind(AssertUnwindSafe(body)).ok().flatten()
}

/// The library's two buffers as slices.
///
/// # Safety
/// Both have these lengths, do not overlap, and are not used by other code for `'b`. The content of
/// `to` may be uninitialised: the codecs write to it before they read.
unsafe fn buffers<'b>(
    from: *mut u8,
    from_length: usize,
    to: *mut u8,
    to_length: usize,
) -> Option<(&'b [u8], &'b mut [u8])> {
    if from.is_null() || to.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller promises the rest.
    unsafe {
        Some((
            slice::from_raw_parts(from, from_length),
            slice::from_raw_parts_mut(to, to_length),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Call the functions of `table` as the library does.
    fn through(table: &sys::WT_COMPRESSOR, text: &mut [u8]) {
        let own = ptr::from_ref(table).cast_mut();
        let none = ptr::null_mut();
        let (mut room, mut packed, mut unpacked, mut failed) = (0, 0, 0, 1);
        let (mut back, mut scrap) = (vec![0; text.len()], vec![0; text.len()]);
        let (compress, decompress) = (table.compress.unwrap(), table.decompress.unwrap());
        let pre_size = table.pre_size.unwrap();
        let (from, length) = (text.as_mut_ptr(), text.len());
        // SAFETY: all addresses are those of live buffers with the lengths beside them.
        let codes = unsafe {
            let sized = pre_size(own, none, from, length, &raw mut room);
            let mut to = vec![0; room];
            let (at, end) = (to.as_mut_ptr(), to.len());
            let done = compress(
                own,
                none,
                from,
                length,
                at,
                end,
                &raw mut packed,
                &raw mut failed,
            );
            let end = back.len();
            let undone = decompress(
                own,
                none,
                at,
                packed,
                back.as_mut_ptr(),
                end,
                &raw mut unpacked,
            );
            let cut = decompress(
                own,
                none,
                at,
                packed / 2,
                scrap.as_mut_ptr(),
                end,
                &raw mut unpacked,
            );
            [sized, done, undone, cut]
        };
        assert_eq!(codes, [0, 0, 0, sys::WT_ERROR]);
        assert_eq!((failed, unpacked), (0, text.len()));
        assert!(packed < text.len() && back == text);
    }

    #[test]
    fn the_tables_compress_and_give_back() {
        let mut text: Vec<u8> = (0..20_000_u32).map(|n| (n / 64).to_le_bytes()[0]).collect();
        for (name, table) in COMPRESSORS.iter().filter(|(name, _)| *name != LOG_PLAIN) {
            println!("{name:?}");
            through(table, &mut text);
        }
    }

    #[test]
    fn a_panic_is_what_cannot_be_done() {
        assert_eq!(run(|| panic!("in a codec")), None);
        assert_eq!(run(|| Some(3)), Some(3));
    }
}
