//! A parsed dotted path.

use std::fmt;
use std::sync::Arc;

use crate::{Error, Result};

/// Maximum number of components: documents are not nested deeper.
const MAX_COMPONENTS: usize = 200;

/// One part of a path: a field name, with its value as an array index if it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    name: Box<str>,
    index: Option<usize>,
}

impl Component {
    fn new(name: &str) -> Component {
        Component {
            name: name.into(),
            index: array_index(name),
        }
    }

    /// The name of the field.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as an array index: digits without a leading zero.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

/// `name` as an array index: digits without a leading zero.
pub(crate) fn array_index(name: &str) -> Option<usize> {
    let canonical = name == "0" || !name.starts_with('0');
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    (canonical && digits).then(|| name.parse().ok()).flatten()
}

#[derive(PartialEq, Eq)]
struct Inner {
    text: Box<str>,
    components: Box<[Component]>,
}

/// A dotted path; cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Path(Arc<Inner>);

impl Path {
    /// Splits `text` at its dots. Any text is a path: an empty component is the empty field name.
    /// Callers that refuse empty names check for them.
    ///
    /// # Errors
    /// `BadValue` for a zero byte, `Overflow` for more than 200 components.
    pub fn parse(text: &str) -> Result<Path> {
        if text.contains('\0') {
            return Err(Error::bad_value("a field path contains a zero byte"));
        }
        let components: Box<[Component]> = text.split('.').map(Component::new).collect();
        if components.len() > MAX_COMPONENTS {
            return Err(Error::new(crate::Code::OVERFLOW, "FieldPath is too long"));
        }
        Ok(Path(Arc::new(Inner {
            text: text.into(),
            components,
        })))
    }

    /// The text of the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The components; at least one.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.0.components
    }

    /// The first name.
    #[must_use]
    pub fn head(&self) -> &str {
        self.0.components.first().map_or("", Component::name)
    }

    /// Whether the path has only one component.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.0.components.len() == 1
    }

    /// Whether `self` is equal to `other` or a prefix of it: `a.b` covers `a.b` and `a.b.c`.
    #[must_use]
    pub fn covers(&self, other: &Path) -> bool {
        let (short, long) = (self.components(), other.components());
        long.len() >= short.len() && short.iter().zip(long).all(|(a, b)| a.name == b.name)
    }

    /// Whether the two paths are equal or one is a prefix of the other.
    #[must_use]
    pub fn overlaps(&self, other: &Path) -> bool {
        self.covers(other) || other.covers(self)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Path) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Path {
    fn cmp(&self, other: &Path) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl std::hash::Hash for Path {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
