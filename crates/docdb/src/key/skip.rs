//! Find the length of a component without decoding its value.

use super::{kind, number};

/// Maximum nesting of objects and arrays.
const DEPTH_MAX: u32 = 256;

/// The bytes of the component at the start of `key`, which has the given direction. `None` if the
/// bytes are not a component.
#[must_use]
pub fn component_length(key: &[u8], descending: bool) -> Option<usize> {
    let mut walk = Walk {
        key,
        at: 0,
        invert: if descending { 0xFF } else { 0 },
    };
    walk.component(0)?;
    Some(walk.at)
}

struct Walk<'a> {
    key: &'a [u8],
    at: usize,
    invert: u8,
}

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.key.get(self.at)?;
        self.at += 1;
        Some(byte ^ self.invert)
    }

    fn pass(&mut self, count: usize) -> Option<()> {
        let end = self.at.checked_add(count)?;
        self.key.get(self.at..end)?;
        self.at = end;
        Some(())
    }

    fn component(&mut self, depth: u32) -> Option<()> {
        let first = self.byte()?;
        self.body(first, depth)
    }

    fn body(&mut self, first: u8, depth: u32) -> Option<()> {
        if DEPTH_MAX < depth {
            return None;
        }
        match first {
            kind::MIN_KEY
            | kind::UNDEFINED
            | kind::NULL
            | kind::FALSE
            | kind::TRUE
            | kind::MAX_KEY => Some(()),
            kind::STRING | kind::CODE => self.text(),
            kind::OBJECT => self.object(depth),
            kind::ARRAY => loop {
                match self.byte()? {
                    0 => return Some(()),
                    first => self.body(first, depth + 1)?,
                }
            },
            kind::BINARY => {
                let length = self.length()?;
                self.pass(length.checked_add(1)?)
            }
            kind::OBJECT_ID => self.pass(12),
            kind::DATE | kind::TIMESTAMP => self.pass(8),
            kind::REGEX => {
                self.name()?;
                self.name()
            }
            kind::DB_POINTER => {
                let length = self.length()?;
                self.pass(length.checked_add(12)?)
            }
            kind::CODE_WITH_SCOPE => {
                self.text()?;
                self.byte()?;
                self.object(depth)
            }
            first => number::read(first, || self.byte().ok_or(()))
                .ok()?
                .map(|_| ()),
        }
    }

    fn length(&mut self) -> Option<usize> {
        let mut length = 0;
        for _ in 0..4 {
            length = (length << 8) | usize::from(self.byte()?);
        }
        Some(length)
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        while self.byte()? != 0 {
            self.name()?;
            self.component(depth + 1)?;
        }
        Some(())
    }

    /// Escaped text: a zero that is not followed by `FF` ends it.
    fn text(&mut self) -> Option<()> {
        loop {
            if self.byte()? == 0 {
                if self.key.get(self.at)? ^ self.invert != 0xFF {
                    return Some(());
                }
                self.at += 1;
            }
        }
    }

    fn name(&mut self) -> Option<()> {
        while self.byte()? != 0 {}
        Some(())
    }
}
