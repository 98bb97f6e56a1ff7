//! A pattern as PCRE2 compiles it, and the memory that matches work in: all calls of the library.

use std::ffi::{c_int, c_void};
use std::ptr;

use pcre2_sys::{
    PCRE2_AUTO_CALLOUT, PCRE2_CASELESS, PCRE2_DOTALL, PCRE2_ERROR_CALLOUT, PCRE2_ERROR_NOMATCH,
    PCRE2_EXTENDED, PCRE2_JIT_COMPLETE, PCRE2_MULTILINE, PCRE2_NO_AUTO_CAPTURE, PCRE2_NO_UTF_CHECK,
    PCRE2_UTF, pcre2_code_8, pcre2_code_free_8, pcre2_compile_8, pcre2_get_ovector_count_8,
    pcre2_get_ovector_pointer_8, pcre2_jit_compile_8, pcre2_jit_stack_8, pcre2_jit_stack_assign_8,
    pcre2_jit_stack_create_8, pcre2_jit_stack_free_8, pcre2_match_8, pcre2_match_context_8,
    pcre2_match_context_create_8, pcre2_match_context_free_8, pcre2_match_data_8,
    pcre2_match_data_create_from_pattern_8, pcre2_match_data_free_8, pcre2_set_match_limit_8,
};
use stdx::sync::Mutex;

use crate::{Error, Group, Options, Pace};

/// Bytes of stack that compiled code gets at first, and at most, where callouts stand before every
/// item and need more than the 32 KB of the machine's stack that it has otherwise.
const STACK_FIRST: usize = 32 << 10;
const STACK_MAX: usize = 1 << 20;

/// PCRE2's callout function: gets a description of the place, and the caller's data.
type Callout = extern "C" fn(block: *mut c_void, data: *mut c_void) -> c_int;

unsafe extern "C" {
    /// Not among the bindings of `pcre2-sys`. The function is called with a pointer to PCRE2's
    /// `pcre2_callout_block`, of which nothing is read here.
    fn pcre2_set_callout_8(
        context: *mut pcre2_match_context_8,
        callout: Option<Callout>,
        data: *mut c_void,
    ) -> c_int;
}

/// How a pattern is compiled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) options: Options,
    /// With a callout before every item, beside those that are in the pattern.
    pub(crate) careful: bool,
    /// Without groups that have no name. A pattern that refers to one does not compile then.
    pub(crate) groupless: bool,
}

/// A compiled pattern.
pub(crate) struct Code {
    code: *mut pcre2_code_8,
    careful: bool,
    /// Memory of matches that have ended, for the next ones: as many as there were at once.
    pool: Mutex<Vec<Scratch>>,
}

// SAFETY: compiled code is never written after it was made, and PCRE2 allows any number of threads
// to match with it; the pool is behind its lock.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: made by pcre2_compile_8, freed once; no match is running, or it would borrow us.
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
        // SAFETY: the length is that of the pattern, the numbers live through the call, and no
        // compile context is given.
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
        // Where it fails, as for lack of executable memory, the interpreter matches instead.
        // SAFETY: compiled above, and no other thread has it yet.
        unsafe { pcre2_jit_compile_8(compiled, PCRE2_JIT_COMPLETE) };
        Ok(Code {
            code: compiled,
            careful: how.careful,
            pool: Mutex::new(Vec::new()),
        })
    }

    /// Whether there is a match at `start` or behind it; `groups` gets its groups.
    pub(crate) fn search(
        &self,
        text: &str,
        start: usize,
        limit: u32,
        pace: Pace<'_>,
        groups: Option<&mut Vec<Group>>,
    ) -> Result<bool, Error> {
        // PCRE2 is promised that it need not check the text, from where it starts on.
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
        self.pool.lock().push(scratch);
        found
    }
}

/// What one match works in.
struct Scratch {
    data: *mut pcre2_match_data_8,
    context: *mut pcre2_match_context_8,
    /// Null for the machine's stack.
    stack: *mut pcre2_jit_stack_8,
}

// SAFETY: nothing in it belongs to a thread; one match at a time has it.
unsafe impl Send for Scratch {}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: each was made in `new`, is freed once, and a null stack is allowed.
        unsafe {
            pcre2_match_data_free_8(self.data);
            pcre2_match_context_free_8(self.context);
            pcre2_jit_stack_free_8(self.stack);
        }
    }
}

impl Scratch {
    fn new(code: &Code) -> Scratch {
        // SAFETY: the code lives; no general context is given, so that malloc is used.
        let data = unsafe { pcre2_match_data_create_from_pattern_8(code.code, ptr::null_mut()) };
        assert!(!data.is_null(), "no memory for a regular expression");
        // SAFETY: as above.
        let context = unsafe { pcre2_match_context_create_8(ptr::null_mut()) };
        assert!(!context.is_null(), "no memory for a regular expression");
        let mut stack = ptr::null_mut();
        if code.careful {
            // SAFETY: as above.
            stack = unsafe { pcre2_jit_stack_create_8(STACK_FIRST, STACK_MAX, ptr::null_mut()) };
        }
        if !stack.is_null() {
            // SAFETY: the stack lives as long as the context: both are freed when this is dropped.
            unsafe { pcre2_jit_stack_assign_8(context, None, stack.cast()) };
        }
        Scratch {
            data,
            context,
            stack,
        }
    }

    /// The result of `pcre2_match`: positive for a match.
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
        // SAFETY: the context is used by this call alone, and `beat` outlives it. The text is valid
        // UTF-8 and the start at a character of it, so that no check is needed; its pointer is not
        // null even if it is empty. Matched data is of a pattern with the same groups.
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

    /// The groups of the match that was found last.
    fn groups(&self, groups: &mut Vec<Group>) {
        // SAFETY: the vector holds two numbers for each group, all of which PCRE2 sets on a match.
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

/// Counts callouts and asks when it is time to.
struct Beat<'a> {
    left: u32,
    pace: Pace<'a>,
}

impl Beat<'_> {
    /// Counts one; false to end the match.
    fn once(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        if 0 < self.left {
            return true;
        }
        self.left = self.pace.every;
        (self.pace.ask)(self.pace.every)
    }

    /// Reports the callouts since the last question; too late for an answer.
    fn end(&mut self) {
        let count = self.pace.every.saturating_sub(self.left);
        if 0 < count {
            let _ignored = (self.pace.ask)(count);
        }
    }
}

/// Called by PCRE2: 0 to continue, an error code to end the match with it. A panic aborts.
extern "C" fn beat_once(_block: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: `run` gives the pointer to its own `Beat`, which nothing else uses during the match.
    let beat = unsafe { &mut *data.cast::<Beat<'_>>() };
    match beat.once() {
        true => 0,
        false => PCRE2_ERROR_CALLOUT,
    }
}
