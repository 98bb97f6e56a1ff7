//! Finds the place in a pattern for a callout that every long attempt reaches.
//!
//! An attempt is a match that PCRE2 tries from one start position. The callout is placed after the
//! first item that repeats, if everything before it takes bounded time: single characters and
//! classes, at most [`ITEMS_MAX`] of them. So an attempt that ends before the callout is short. A
//! callout before the repeated item would disable an optimization: PCRE2 could not see which start
//! positions it can skip. For `a*b`, every start within a run of `a` fails as the first one does.
//!
//! A pattern that begins with `.*` is an exception: PCRE2 tries it only at the starts of lines, and
//! would call a callout after it at every backtracking step.
//!
//! Before an item that this module does not understand for certain, the callout is placed directly
//! before it: a callout is valid between any two items. A pattern with alternatives would need one
//! callout for each, so it gets one at its beginning.

/// The callout, written as an item of a pattern.
pub(crate) const ITEM: &str = "(?C)";

/// Maximum number of items that an attempt may match before the callout.
const ITEMS_MAX: usize = 32;

/// The place of the callout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before this byte of the pattern.
    At(usize),
    /// No callout: the pattern is short and repeats nothing, so no attempt is long.
    Nowhere,
}

/// The place of the callout in `pattern`. With `extended`, spaces and comments in the pattern are
/// ignored.
pub(crate) fn place(pattern: &str, extended: bool) -> Place {
    let start = beginning(pattern);
    if extended || pattern.contains('|') {
        return Place::At(start);
    }
    let walk = Walk(pattern.as_bytes());
    let mut at = start;
    let mut first = true;
    for _ in 0..ITEMS_MAX {
        if first && walk.is_dot_star(at) {
            return Place::At(at);
        }
        match walk.step(at) {
            Step::Onward(next) => {
                first &= walk.is_empty(at);
                at = next;
            }
            Step::Here(at) => return Place::At(at),
            Step::End => return Place::Nowhere,
        }
    }
    Place::At(at)
}

/// The position after the settings at the start of a pattern, such as `(*CRLF)`.
pub(crate) fn beginning(pattern: &str) -> usize {
    let mut rest = pattern;
    while let Some(inner) = rest.strip_prefix("(*") {
        let Some((name, after)) = inner.split_once(')') else {
            break;
        };
        let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b"_=".contains(&b);
        if !name.bytes().all(plain) {
            break;
        }
        rest = after;
    }
    pattern.len() - rest.len()
}

enum Step {
    /// The callout comes later; the next item begins at this position.
    Onward(usize),
    /// The callout is placed at this position.
    Here(usize),
    /// The pattern ends here.
    End,
}

/// The bytes of a pattern, which are read item by item.
struct Walk<'p>(&'p [u8]);

impl Walk<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn step(&self, at: usize) -> Step {
        let Some(byte) = self.byte(at) else {
            return Step::End;
        };
        let behind = match byte {
            b'^' | b'$' => return Step::Onward(at + 1),
            b'(' => return self.entered(at).map_or(Step::Here(at), Step::Onward),
            b')' | b'*' | b'+' | b'?' | b'{' => None,
            b'\\' => match self.byte(at + 1) {
                Some(b'b' | b'B' | b'A' | b'z' | b'Z' | b'G' | b'K') => {
                    return Step::Onward(at + 2);
                }
                Some(byte) if one_character(byte) => Some(at + 2),
                _ => None,
            },
            b'[' => self.class(at),
            _ => Some(at + width(byte)),
        };
        match behind {
            Some(behind) => self.repeated(at, behind),
            None => Step::Here(at),
        }
    }

    fn is_dot_star(&self, at: usize) -> bool {
        self.byte(at) == Some(b'.') && self.byte(at + 1) == Some(b'*')
    }

    /// Whether the item matches the empty string: a group's bracket, an assertion or a setting.
    fn is_empty(&self, at: usize) -> bool {
        match self.byte(at) {
            Some(b'^' | b'$' | b'(') => true,
            Some(b'\\') => self
                .byte(at + 1)
                .is_some_and(|byte| b"bBAzZGK".contains(&byte)),
            _ => false,
        }
    }

    /// The step over a single item, which ends at `behind`, and over its quantifier, if it has one.
    fn repeated(&self, at: usize, behind: usize) -> Step {
        let end = match self.byte(behind) {
            Some(b'*' | b'+' | b'?') => behind + 1,
            Some(b'{') => match self.braces(behind) {
                Some(end) => end,
                None => return Step::Here(at),
            },
            _ => return Step::Onward(behind),
        };
        // The mark of a lazy or possessive quantifier.
        let more = matches!(self.byte(end), Some(b'+' | b'?'));
        Step::Here(end + usize::from(more))
    }

    /// The position after a quantifier such as `{2,5}`, which begins at `at`.
    fn braces(&self, at: usize) -> Option<usize> {
        let mut end = at + 1;
        while matches!(self.byte(end), Some(b'0'..=b'9' | b',' | b' ')) {
            end += 1;
        }
        (self.byte(end) == Some(b'}')).then_some(end + 1)
    }

    /// The position after the `]` of the class that begins at `at`.
    fn class(&self, at: usize) -> Option<usize> {
        let mut at = at + 1;
        if self.byte(at) == Some(b'^') {
            at += 1;
        }
        // A `]` that is the first member of a class does not end it.
        if self.byte(at) == Some(b']') {
            at += 1;
        }
        loop {
            at = match self.byte(at)? {
                b']' => return Some(at + 1),
                b'\\' if matches!(self.byte(at + 1), Some(b'Q' | b'E')) => return None,
                b'\\' => at + 2,
                b'[' => match self.byte(at + 1) {
                    Some(kind @ (b':' | b'.' | b'=')) => {
                        let rest = self.0.get(at + 2..)?;
                        let end = rest.windows(2).position(|pair| pair == [kind, b']'])?;
                        at + 2 + end + 2
                    }
                    _ => at + 1,
                },
                _ => at + 1,
            };
        }
    }

    /// The position of the first item in a group that every attempt enters, or the position after a
    /// setting of flags; `None` for other groups.
    fn entered(&self, at: usize) -> Option<usize> {
        let inner = self.0.get(at + 1..)?;
        let first = match inner {
            [b'?', b':', ..] => at + 3,
            [b'?', flags @ ..] => {
                let count = flags.iter().take_while(|b| b"ims".contains(b)).count();
                let set = count > 0 && flags.get(count) == Some(&b')');
                return set.then_some(at + 3 + count);
            }
            [b'*', ..] => return None,
            _ => at + 1,
        };
        let end = self.closing(at)?;
        let optional = matches!(self.byte(end + 1), Some(b'?' | b'*' | b'{'));
        (!optional).then_some(first)
    }

    /// The position of the bracket that closes the one at `at`.
    fn closing(&self, at: usize) -> Option<usize> {
        let (mut depth, mut at) = (0_usize, at);
        loop {
            at = match self.byte(at)? {
                b'\\' if matches!(self.byte(at + 1), Some(b'Q' | b'E')) => return None,
                b'\\' => at + 2,
                b'[' => self.class(at)?,
                b'(' if self.0.get(at + 1..at + 3) == Some(b"?#".as_slice()) => return None,
                b'(' => {
                    depth += 1;
                    at + 1
                }
                b')' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                    at + 1
                }
                _ => at + 1,
            };
        }
    }
}

/// Whether a backslash with this byte matches exactly one character, whatever follows.
fn one_character(byte: u8) -> bool {
    b"dDsSwWhHvVtnrfea".contains(&byte) || (byte.is_ascii() && !byte.is_ascii_alphanumeric())
}

/// Length in bytes of the UTF-8 character that begins with this byte.
fn width(first: u8) -> usize {
    match first {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, place};

    #[track_caller]
    fn placed(pattern: &str, expected: &str) {
        let Place::At(at) = place(pattern, false) else {
            panic!("no callout in {pattern}");
        };
        let (before, after) = pattern.split_at(at);
        assert_eq!(format!("{before}!{after}"), expected);
    }

    #[test]
    fn the_callout_stands_behind_the_first_item_that_repeats() {
        for (pattern, expected) in [
            ("a*b", "a*!b"),
            (".*b", "!.*b"),
            ("(?i)(.*)b", "(?i)(!.*)b"),
            ("a.*b", "a.*!b"),
            (".+b", ".+!b"),
            ("\\w+?@\\w+", "\\w+?!@\\w+"),
            (
                "xyz[^]a[:alpha:]b\\]]{2,5}+c",
                "xyz[^]a[:alpha:]b\\]]{2,5}+!c",
            ),
            ("(?i)\\bfoo.*bar", "(?i)\\bfoo.*!bar"),
            ("(\\w+)@", "(\\w+!)@"),
            (
                "(?:(a)b*)+c",
                "(?:(a)b*!)+c".replace("(a)b*!", "(a!)b*").as_str(),
            ),
            ("\u{e4}\u{20ac}*b", "\u{e4}\u{20ac}*!b"),
        ] {
            placed(pattern, expected);
        }
    }

    #[test]
    fn what_is_not_understood_has_it_before_it() {
        for (pattern, expected) in [
            ("(ab)?c*d", "!(ab)?c*d"),
            ("(ab)*c*d", "!(ab)*c*d"),
            ("a(?=b*)c", "a!(?=b*)c"),
            ("ab|c*", "!ab|c*"),
            ("(*CRLF)(*UCP)ab|c*", "(*CRLF)(*UCP)!ab|c*"),
            ("a\\Qb*\\Ec", "a!\\Qb*\\Ec"),
            ("a\\X", "a!\\X"),
            ("(a)\\1*", "(a!)\\1*"),
            ("a(*SKIP)b*", "a!(*SKIP)b*"),
            ("a(?x) b *", "a!(?x) b *"),
        ] {
            placed(pattern, expected);
        }
        assert_eq!(place("a b* # c", true), Place::At(0));
    }

    #[test]
    fn a_short_pattern_that_repeats_nothing_has_none() {
        for pattern in ["", "abc", "^\\d\\d.[a-z]$", "(?i)abc"] {
            assert_eq!(place(pattern, false), Place::Nowhere, "{pattern}");
        }
        assert_eq!(place(&"a".repeat(100), false), Place::At(32));
    }
}
