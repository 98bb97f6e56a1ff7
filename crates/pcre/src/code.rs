//! Compiled patterns, and the memory that matches need. This module has all calls of the library.

use std::ffi::{c_int, c_void};
use std::ptr;

use pcre2_sys::{
    PCRE2_AUTO_CALLOUT, PCRE2_CASELESS, PCRE2_DOTALL, PCRE2_ERROR_CALLOUT, PCRE2_ERROR_NOMATCH,
    PCRE2_EXTENDED, PCRE2_INFO_FRAMESIZE, PCRE2_INFO_JITSIZE, PCRE2_INFO_SIZE, PCRE2_JIT_COMPLETE,
    PCRE2_MULTILINE, PCRE2_NO_AUTO_CAPTURE, PCRE2_NO_UTF_CHECK, PCRE2_UTF, pcre2_code_8,
    pcre2_code_free_8, pcre2_compile_8, pcre2_get_ovector_count_8, pcre2_get_ovector_pointer_8,
    pcre2_jit_compile_8, pcre2_jit_stack_8, pcre2_jit_stack_assign_8, pcre2_jit_stack_create_8,
    pcre2_jit_stack_free_8, pcre2_match_8, pcre2_match_context_8, pcre2_match_context_create_8,
    pcre2_match_context_free_8, pcre2_match_data_8, pcre2_match_data_create_from_pattern_8,
    pcre2_match_data_free_8, pcre2_pattern_info_8, pcre2_set_match_limit_8,
};
use stdx::sync::Mutex;

use crate::{Error, Group, Options, Pace};

/// Initial and maximum size in bytes of the stack for compiled code with a callout before every
/// item. Other code uses 32 KB of the machine's stack.
const STACK_FIRST: usize = 32 << 10;
const STACK_MAX: usize = 1 << 20;

/// Bytes of the blocks around compiled code: those of the library, of this crate, and of a match.
const BLOCKS: usize = 2 << 10;

/// PCRE2's type of callout functions. They get a description of the callout and the caller's data.
type Callout = extern "C" fn(block: *mut c_void, data: *mut c_void) -> c_int;

unsafe extern "C" {
    /// Missing in the bindings of `pcre2-sys`. PCRE2 calls the function with a pointer to its
    /// `pcre2_callout_block`, from which this crate reads nothing.
    fn pcre2_set_callout_8(
        context: *mut pcre2_match_context_8,
        callout: Option<Callout>,
        data: *mut c_void,
    ) -> c_int;
}

/// How to compile a pattern.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) options: Options,
    /// Whether to add a callout before every item, in addition to those in the pattern.
    pub(crate) careful: bool,
    /// Whether groups without a name do not capture. A pattern that refers to such a group fails to
    /// compile.
    pub(crate) groupless: bool,
}

/// A compiled pattern.
pub(crate) struct Code {
    code: *mut pcre2_code_8,
    careful: bool,
    /// The memory of ended matches, for reuse: one entry for each match that ran at the same time.
    pool: Mutex<Vec<Scratch>>,
}

// SAFETY: compiled code does not change after it was made, and PCRE2 allows any number of threads
// to match with it; a lock guards the pool.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: `pcre2_compile_8` made the code, and it is freed once; no match is running, since
        // it would borrow `self`.
        unsafe { pcre2_code_free_8(self.code) }
    }
}

impl Code {
    pub(crate) fn new(pattern: &str, how: How) -> Result<Code, Error> {
        let How { options, .. } = how;
        let set = [
            (options.caseless, PCRE2_CASELESS),
            (options.multi_line, PCRE2_MULTILINE),
            (options.dot_all, PCRE2_DOTALL),
            (options.extended, PCRE2_EXTENDED),
            (how.careful, PCRE2_AUTO_CALLOUT),
            (how.groupless, PCRE2_NO_AUTO_CAPTURE),
        ];
        let bits = set.iter().filter(|(on, _)| *on);
        let bits = bits.fold(PCRE2_UTF, |all, (_, bit)| all | bit);
        let (mut code, mut at) = (0, 0);
        // SAFETY: pointer and length are those of the pattern, the two numbers live during the
        // call, and a null compile context is allowed.
        let compiled = unsafe {
            pcre2_compile_8(
                pattern.as_ptr(),
                pattern.len(),
                bits,
                &raw mut code,
                &raw mut at,
                ptr::null_mut(),
            )
        };
        if compiled.is_null() {
            return Err(Error::Pattern { code, at });
        }
        // If this fails, for example for lack of executable memory, the interpreter is used for
        // matches.
        // SAFETY: the code was compiled above, and no other thread has access to it yet.
        unsafe { pcre2_jit_compile_8(compiled, PCRE2_JIT_COMPLETE) };
        Ok(Code {
            code: compiled,
            careful: how.careful,
            pool: Mutex::new(Vec::new()),
        })
    }

    /// Bytes of the compiled code, and about those of the memory for a match.
    pub(crate) fn size(&self) -> usize {
        let info = |what: u32| {
            let mut bytes = 0_usize;
            // SAFETY: the code was compiled, and these properties of it are of this type.
            let done = unsafe { pcre2_pattern_info_8(self.code, what, (&raw mut bytes).cast()) };
            if done == 0 { bytes } else { 0 }
        };
        let sizes = [PCRE2_INFO_SIZE, PCRE2_INFO_JITSIZE, PCRE2_INFO_FRAMESIZE];
        let sizes = sizes.into_iter().map(info);
        sizes.fold(BLOCKS, usize::saturating_add)
    }

    /// Whether there is a match at `start` or after it; fills `groups` with the groups of the
    /// match.
    pub(crate) fn search(
        &self,
        text: &str,
        start: usize,
        limit: u32,
        pace: Pace<'_>,
        groups: Option<&mut Vec<Group>>,
    ) -> Result<bool, Error> {
        // PCRE2 is instructed not to check that the text is valid from `start` on.
        assert!(text.is_char_boundary(start), "the start is in a character");
        let idle = self.pool.lock().pop();
        let scratch = idle.unwrap_or_else(|| Scratch::new(self));
        let result = scratch.run(self.code, text, start, limit, pace);
        let found = match result {
            PCRE2_ERROR_NOMATCH => Ok(false),
            code if code < 0 => Err(Error::of_match(code)),
            _ => Ok(true),
        };
        if found == Ok(true)
            && let Some(groups) = groups
        {
            scratch.groups(groups);
        }
        // The stack of careful code may be large; few matches need such code.
        if !self.careful {
            self.pool.lock().push(scratch);
        }
        found
    }
}

/// The memory of one match.
struct Scratch {
    data: *mut pcre2_match_data_8,
    context: *mut pcre2_match_context_8,
    /// The stack for compiled code; null to use the machine's stack.
    stack: *mut pcre2_jit_stack_8,
}

// SAFETY: no part of it is bound to a thread, and only one match at a time uses it.
unsafe impl Send for Scratch {}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: `new` made each of these, each is freed once, and a null stack is allowed.
        unsafe {
            pcre2_match_data_free_8(self.data);
            pcre2_match_context_free_8(self.context);
            pcre2_jit_stack_free_8(self.stack);
        }
    }
}

impl Scratch {
    fn new(code: &Code) -> Scratch {
        // SAFETY: the code is alive; a null general context is allowed and means `malloc`.
        let data = unsafe { pcre2_match_data_create_from_pattern_8(code.code, ptr::null_mut()) };
        assert!(!data.is_null(), "no memory for a regular expression");
        // SAFETY: a null general context is allowed.
        let context = unsafe { pcre2_match_context_create_8(ptr::null_mut()) };
        assert!(!context.is_null(), "no memory for a regular expression");
        let mut stack = ptr::null_mut();
        if code.careful {
            // SAFETY: a null general context is allowed.
            stack = unsafe { pcre2_jit_stack_create_8(STACK_FIRST, STACK_MAX, ptr::null_mut()) };
        }
        if !stack.is_null() {
            // SAFETY: the stack lives as long as the context: both are freed when `Scratch` is
            // dropped.
            unsafe { pcre2_jit_stack_assign_8(context, None, stack.cast()) };
        }
        Scratch {
            data,
            context,
            stack,
        }
    }

    /// Runs `pcre2_match` and returns its result: positive for a match, otherwise an error code.
    fn run(
        &self,
        code: *const pcre2_code_8,
        text: &str,
        start: usize,
        limit: u32,
        pace: Pace<'_>,
    ) -> c_int {
        let mut beat = Beat {
            left: pace.every,
            pace,
        };
        // SAFETY: only this call uses the context, and `beat` outlives the call. The text is valid
        // UTF-8 and the start is at a character, so no check is needed; the pointer is not null
        // even for an empty text. The match data was made for a pattern with the same groups.
        let result = unsafe {
            pcre2_set_match_limit_8(self.context, limit);
            pcre2_set_callout_8(self.context, Some(beat_once), (&raw mut beat).cast());
            let result = pcre2_match_8(
                code,
                text.as_ptr(),
                text.len(),
                start,
                PCRE2_NO_UTF_CHECK,
                self.data,
                self.context,
            );
            pcre2_set_callout_8(self.context, None, ptr::null_mut());
            result
        };
        beat.end();
        result
    }

    /// Copies the groups of the last match found.
    fn groups(&self, groups: &mut Vec<Group>) {
        // SAFETY: the vector has two numbers for each group, and PCRE2 sets all of them on a match.
        let places = unsafe {
            let count = pcre2_get_ovector_count_8(self.data);
            let count = usize::try_from(count).expect("a group is a few bytes of the pattern");
            std::slice::from_raw_parts(pcre2_get_ovector_pointer_8(self.data), 2 * count)
        };
        groups.extend(places.chunks_exact(2).map(|pair| match pair {
            [start, end] if *start != usize::MAX => Some(*start..*end),
            _ => None,
        }));
    }
}

/// Counts callouts, and asks the caller at the required intervals whether to continue.
struct Beat<'a> {
    left: u32,
    pace: Pace<'a>,
}

impl Beat<'_> {
    /// Counts a callout; returns false if the match must end.
    fn once(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        if 0 < self.left {
            return true;
        }
        self.left = self.pace.every;
        (self.pace.ask)(self.pace.every)
    }

    /// Reports the callouts since the last question, after the match has ended; the reply is
    /// ignored.
    fn end(&mut self) {
        let count = self.pace.every.saturating_sub(self.left);
        if 0 < count {
            let _ignored = (self.pace.ask)(count);
        }
    }
}

/// The callout function: returns 0 to continue, or an error code with which PCRE2 ends the match. A
/// panic aborts the process.
extern "C" fn beat_once(_block: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: `run` passes the pointer to its own `Beat`, which nothing else uses during the match.
    let beat = unsafe { &mut *data.cast::<Beat<'_>>() };
    match beat.once() {
        true => 0,
        false => PCRE2_ERROR_CALLOUT,
    }
}
