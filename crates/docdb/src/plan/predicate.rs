//! A filter decomposed for the planner: a conjunction of tests of paths, of disjunctions, and of
//! the rest.

use query::filter::{Node, Test};

/// The `$elemMatch` that contains a test: all tests in one scope apply to the same element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Number of the `$elemMatch`.
    pub(crate) id: usize,
    /// Number of components in the path of its array.
    pub(crate) depth: usize,
}

/// One test of one path.
#[derive(Clone, Copy)]
pub(crate) struct Predicate<'f> {
    /// The path from the document's root.
    pub(crate) path: PathRef<'f>,
    /// The test.
    pub(crate) test: &'f Test,
    /// The innermost `$elemMatch` that contains it.
    pub(crate) scope: Option<Scope>,
}

/// A path: the paths of the enclosing `$elemMatch`es, followed by its own part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathRef<'f> {
    /// The paths of the enclosing arrays, outermost first. At most two levels of `$elemMatch` are
    /// decomposed.
    outer: [Option<&'f str>; 2],
    own: &'f str,
}

impl PathRef<'_> {
    /// Whether it is the path `dotted`.
    pub(crate) fn is(&self, dotted: &str) -> bool {
        let mut rest = dotted;
        for outer in self.outer.iter().flatten() {
            match rest
                .strip_prefix(outer)
                .and_then(|rest| rest.strip_prefix('.'))
            {
                Some(tail) => rest = tail,
                None => return false,
            }
        }
        rest == self.own
    }

    /// The full path.
    pub(crate) fn dotted(&self) -> String {
        let mut parts: Vec<&str> = self.outer.iter().flatten().copied().collect();
        parts.push(self.own);
        parts.join(".")
    }
}

/// A conjunction.
#[derive(Clone, Default)]
pub(crate) struct Conjunction<'f> {
    /// Tests of paths.
    pub(crate) predicates: Vec<Predicate<'f>>,
    /// Disjunctions.
    pub(crate) ors: Vec<&'f [Node]>,
    /// Whether the filter contains anything else.
    pub(crate) others: bool,
    /// Whether no document can match.
    pub(crate) never: bool,
    scopes: usize,
}

impl<'f> Conjunction<'f> {
    /// Decompose `node`.
    pub(crate) fn of(node: &'f Node) -> Conjunction<'f> {
        let mut all = Conjunction::default();
        all.add(node);
        all
    }

    /// This conjunction with `node`, a branch of its disjunction at `without`, in place of that
    /// disjunction.
    pub(crate) fn with_branch(&self, without: usize, node: &'f Node) -> Conjunction<'f> {
        let mut all = self.clone();
        all.ors.remove(without);
        all.add(node);
        all
    }

    /// Whether it has no condition at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.predicates.is_empty() && self.ors.is_empty() && !self.others && !self.never
    }

    /// Estimated bytes of its lists.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.predicates.as_slice()) + size_of_val(self.ors.as_slice())
    }

    fn add(&mut self, node: &'f Node) {
        self.add_within(node, [None, None], None);
    }

    fn add_within(&mut self, node: &'f Node, outer: [Option<&'f str>; 2], scope: Option<Scope>) {
        match node {
            Node::And(nodes) => {
                for node in nodes {
                    self.add_within(node, outer, scope);
                }
            }
            Node::Or(nodes) if scope.is_none() => match nodes.as_slice() {
                [one] => self.add_within(one, outer, scope),
                nodes => self.ors.push(nodes),
            },
            Node::AlwaysTrue | Node::Comment(_) => {}
            Node::AlwaysFalse if scope.is_none() => self.never = true,
            Node::Field { path, test } => {
                self.field(path.as_str(), test, outer, scope);
            }
            _ => self.others = true,
        }
    }

    fn field(
        &mut self,
        own: &'f str,
        test: &'f Test,
        outer: [Option<&'f str>; 2],
        scope: Option<Scope>,
    ) {
        let path = PathRef { outer, own };
        if let Test::ElemMatchObject(node) = test {
            self.others = true;
            let inner = match outer {
                [None, _] => [Some(own), None],
                [first, None] => [first, Some(own)],
                // Deeper levels are left to the filter.
                _ => return,
            };
            self.scopes += 1;
            let scope = Scope {
                id: self.scopes,
                depth: path.dotted().split('.').count(),
            };
            self.add_within(node, inner, Some(scope));
        } else {
            self.predicates.push(Predicate { path, test, scope });
        }
    }
}
