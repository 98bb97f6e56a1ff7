//! A filter decomposed for the planner: a conjunction of tests of paths, of disjunctions, and of
//! the rest.

use query::filter::{Node, Test};

/// The `$elemMatch` that a test is in: all tests of one scope apply to the same element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Which `$elemMatch`.
    pub(crate) id: usize,
    /// The components of the path of its array.
    pub(crate) depth: usize,
}

/// One test of one path.
#[derive(Clone, Copy)]
pub(crate) struct Predicate<'f> {
    /// The path from the document's root.
    pub(crate) path: PathRef<'f>,
    /// The test.
    pub(crate) test: &'f Test,
    /// The innermost `$elemMatch` around it.
    pub(crate) scope: Option<Scope>,
}

/// A path: what stands before it in `$elemMatch`es and its own part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathRef<'f> {
    /// The arrays' paths, outermost first (two levels of `$elemMatch` are taken apart, no more).
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

    /// The path in full.
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
    /// Whether there is anything else.
    pub(crate) others: bool,
    /// Whether it can never hold.
    pub(crate) never: bool,
    scopes: usize,
}

impl<'f> Conjunction<'f> {
    /// Take `node` apart.
    pub(crate) fn of(node: &'f Node) -> Conjunction<'f> {
        let mut all = Conjunction::default();
        all.add(node);
        all
    }

    /// This conjunction without its disjunction at `without`, and with `node`.
    pub(crate) fn with_branch(&self, without: usize, node: &'f Node) -> Conjunction<'f> {
        let mut all = self.clone();
        all.ors.remove(without);
        all.add(node);
        all
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
                // Deeper ones are left to the filter.
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
