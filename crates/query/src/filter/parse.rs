//! Parses documents into trees: fields, and operators in the place of fields.

use bson::{Bson, Document, RawBsonRef, RawDocument, doc};

use super::{Node, Test};
use crate::collation::Collator;
use crate::expr::{Expr, check_repeated};
use crate::number::Number;
use crate::path::Path;
use crate::repeated::check_schema;
use crate::schema::Schema;
use crate::settings::Settings;
use crate::{Code, Error, Result};

/// Maximum nesting of a filter, as in MongoDB.
const MAX_DEPTH: usize = 100;

/// The parser's state and its position in the filter.
#[derive(Clone, Copy)]
pub(super) struct Parser<'s> {
    settings: &'s Settings,
    depth: usize,
    /// Whether the position is outside every `$elemMatch`.
    top: bool,
    /// Whether `$expr`, `$where` and `$text` are allowed.
    special: bool,
    /// The field whose operators are being parsed, for messages.
    field: &'s str,
}

impl<'s> Parser<'s> {
    pub(super) fn new(settings: &'s Settings) -> Parser<'s> {
        Parser {
            settings,
            depth: 0,
            top: true,
            special: true,
            field: "",
        }
    }

    /// Returns this parser without `$expr`, `$where` and `$text`.
    pub(super) fn without_special(self) -> Parser<'s> {
        Parser {
            special: false,
            ..self
        }
    }

    pub(super) fn collator(&self) -> Option<&'s Collator> {
        self.settings.collator.as_deref()
    }

    /// The parser for the next nesting level; an error above the maximum.
    pub(super) fn deeper(self) -> Result<Parser<'s>> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::bad_value(format!(
                "exceeded maximum query tree depth of {MAX_DEPTH}"
            )));
        }
        Ok(Parser {
            depth: self.depth + 1,
            ..self
        })
    }

    fn at<'n>(self, field: &'n str) -> Parser<'n>
    where
        's: 'n,
    {
        Parser { field, ..self }
    }

    pub(super) fn field(&self) -> &'s str {
        self.field
    }

    pub(super) fn below_top(self) -> Parser<'s> {
        Parser { top: false, ..self }
    }

    /// Parses a document of fields and operators.
    pub(super) fn document(self, filter: &RawDocument) -> Result<Node> {
        let mut nodes = Vec::new();
        for element in filter {
            let (name, value) = element?;
            let name = name.as_str();
            if let Some(operator) = name.strip_prefix('$') {
                self.logical(name, operator, value, &mut nodes)?;
            } else {
                let path = Path::parse(name)?;
                for test in self.at(name).field_tests(value)? {
                    nodes.push(field(&path, test));
                }
            }
        }
        Ok(conjunction(nodes))
    }

    /// `$sampleRate`: an expression that matches each document with this probability.
    fn sample(&self, value: RawBsonRef<'_>) -> Result<Node> {
        let rate = Number::from_raw(value).map(|rate| rate.to_f64());
        let rate =
            rate.ok_or_else(|| Error::bad_value("argument to $sampleRate must be a number"))?;
        if !(0.0..=1.0).contains(&rate) {
            let message = "numeric argument to $sampleRate must be in [0, 1]";
            return Err(Error::bad_value(message));
        }
        // `$rand` is less than 1 and may be 0: a rate of 1 matches always, a rate of 0 never.
        let spec = Bson::Document(doc! {"$lt": [{"$rand": {}}, rate]});
        let expr = Expr::parse(&spec, &self.settings.scope())?;
        Ok(Node::Expr { expr, spec })
    }

    fn logical(
        self,
        name: &str,
        operator: &str,
        value: RawBsonRef<'_>,
        nodes: &mut Vec<Node>,
    ) -> Result<()> {
        match operator {
            "and" => nodes.extend(self.clauses(name, value)?),
            "or" => nodes.push(Node::Or(self.clauses(name, value)?)),
            "nor" => nodes.push(Node::Nor(self.clauses(name, value)?)),
            "comment" => nodes.push(Node::Comment(Bson::try_from(value)?)),
            "id" | "ref" | "db" => {
                // The parts of a reference to a document of another collection are plain fields.
                let value = Bson::try_from(value)?;
                nodes.push(field(&Path::parse(name)?, Test::Eq(value)));
            }
            "expr" | "where" | "text" if !self.special => return Err(not_allowed(name)),
            "expr" => {
                self.check_top(name)?;
                check_repeated(value)?;
                let spec = Bson::try_from(value)?;
                let expr = Expr::parse(&spec, &self.settings.scope())?;
                nodes.push(Node::Expr { expr, spec });
            }
            "sampleRate" => {
                self.check_top(name)?;
                nodes.push(self.sample(value)?);
            }
            "jsonSchema" => {
                self.check_top(name)?;
                let RawBsonRef::Document(spec) = value else {
                    return Err(Error::type_mismatch("$jsonSchema must be an object"));
                };
                check_schema(spec)?;
                let schema = Schema::parse(&Document::try_from(spec)?)?;
                nodes.push(Node::Schema(Box::new(schema)));
            }
            "alwaysTrue" => nodes.push(always(name, value, Node::AlwaysTrue)?),
            "alwaysFalse" => nodes.push(always(name, value, Node::AlwaysFalse)?),
            "where" => {
                return Err(Error::bad_value("no globalScriptEngine in $where parsing"));
            }
            "text" => {
                self.check_top(name)?;
                return Err(Error::new(
                    Code::INDEX_NOT_FOUND,
                    "text index required for $text query",
                ));
            }
            _ => {
                return Err(Error::bad_value(format!(
                    "unknown top level operator: {name}. If you have a field name that starts \
                     with a '$' symbol, consider using $getField or $setField."
                )));
            }
        }
        Ok(())
    }

    fn check_top(self, name: &str) -> Result<()> {
        if self.top {
            return Ok(());
        }
        Err(Error::bad_value(format!(
            "{name} can only be applied to the top-level document"
        )))
    }

    fn clauses(self, name: &str, value: RawBsonRef<'_>) -> Result<Vec<Node>> {
        let RawBsonRef::Array(list) = value else {
            return Err(Error::bad_value(format!("{name} must be an array")));
        };
        let inside = self.deeper()?;
        let mut nodes = Vec::new();
        for clause in list {
            let RawBsonRef::Document(clause) = clause? else {
                return Err(Error::bad_value(
                    "$or/$and/$nor entries need to be full objects",
                ));
            };
            nodes.push(inside.document(clause)?);
        }
        if nodes.is_empty() {
            return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
        }
        Ok(nodes)
    }
}

/// The error for an operator that is not allowed at this place.
fn not_allowed(name: &str) -> Error {
    let message = format!("{name} is not allowed in this context");
    match name {
        "$expr" => Error::new(Code::QUERY_FEATURE_NOT_ALLOWED, message),
        _ => Error::bad_value(message),
    }
}

fn field(path: &Path, test: Test) -> Node {
    match test {
        Test::Never => Node::AlwaysFalse,
        test => Node::Field {
            path: path.clone(),
            test,
        },
    }
}

/// The conjunction of `nodes`; conjunctions in it are merged into it.
pub(super) fn conjunction(nodes: Vec<Node>) -> Node {
    let mut flat = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::And(inner) => flat.extend(inner),
            Node::AlwaysTrue => {}
            other => flat.push(other),
        }
    }
    match flat.len() {
        0 => Node::AlwaysTrue,
        1 => flat.pop().unwrap_or(Node::AlwaysTrue),
        _ => Node::And(flat),
    }
}

fn always(name: &str, value: RawBsonRef<'_>, node: Node) -> Result<Node> {
    match crate::number::Number::from_raw(value).and_then(|number| number.to_i64_exact()) {
        Some(1) => Ok(node),
        _ => Err(Error::parse(format!(
            "{name} must be an integer value of 1"
        ))),
    }
}
