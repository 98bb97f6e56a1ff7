//! Parses the specifications of accumulators.

use std::fmt;
use std::sync::Arc;

use bson::{Bson, Document};

use super::quantile::{Method, parse_method, percentiles};
use super::ranked::Order;
use crate::collation::Collator;
use crate::expr::{Dependencies, Env, Expr, Scope};
use crate::number::Number;
use crate::value;
use crate::{Code, Error, Result};

/// A parsed accumulator.
#[derive(Clone)]
pub struct Accumulator {
    pub(super) kind: Kind,
    pub(super) collator: Option<Arc<Collator>>,
    name: &'static str,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Sum(Expr),
    Count,
    Average(Expr),
    Least(Expr),
    Greatest(Expr),
    First(Expr),
    Last(Expr),
    Push(Expr),
    AddToSet(Expr),
    MergeObjects(Expr),
    ConcatArrays(Expr),
    SetUnion(Expr),
    DeviationOfPopulation(Expr),
    DeviationOfSample(Expr),
    Edge {
        n: Expr,
        input: Expr,
        last: bool,
    },
    Extremes {
        n: Expr,
        input: Expr,
        greatest: bool,
    },
    Ranked(Box<RankedSpec>),
    Quantile(Box<QuantileSpec>),
}

#[derive(Debug, Clone)]
pub(super) struct RankedSpec {
    /// `None` for `$top` and `$bottom`, which give one value instead of an array.
    pub(super) n: Option<Expr>,
    pub(super) order: Order,
    pub(super) output: Expr,
    pub(super) bottom: bool,
}

#[derive(Debug, Clone)]
pub(super) struct QuantileSpec {
    pub(super) input: Expr,
    /// `None` for `$median`, which gives one value instead of an array.
    pub(super) p: Option<Vec<f64>>,
    pub(super) method: Method,
}

/// Makes an accumulator kind from an operand.
type MakeKind = fn(Expr) -> Kind;

/// Accumulators with one operand: the name, and the kind to make from the operand.
const UNARY: &[(&str, MakeKind)] = &[
    ("$sum", Kind::Sum),
    ("$avg", Kind::Average),
    ("$min", Kind::Least),
    ("$max", Kind::Greatest),
    ("$first", Kind::First),
    ("$last", Kind::Last),
    ("$push", Kind::Push),
    ("$addToSet", Kind::AddToSet),
    ("$mergeObjects", Kind::MergeObjects),
    ("$concatArrays", Kind::ConcatArrays),
    ("$setUnion", Kind::SetUnion),
    ("$stdDevPop", Kind::DeviationOfPopulation),
    ("$stdDevSamp", Kind::DeviationOfSample),
];

/// Accumulators with other forms of operands.
const OTHER: &[&str] = &[
    "$count",
    "$firstN",
    "$lastN",
    "$minN",
    "$maxN",
    "$top",
    "$topN",
    "$bottom",
    "$bottomN",
    "$median",
    "$percentile",
];

/// The names of all accumulators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let unary = UNARY.iter().map(|(name, _)| *name);
    unary.chain(OTHER.iter().copied())
}

impl Accumulator {
    /// Parses the operand of the accumulator `name`, which is given with its dollar.
    ///
    /// # Errors
    /// 15952 for an unknown name, and the errors of the accumulator's operand.
    pub fn parse(name: &str, spec: &Bson, scope: &Scope) -> Result<Accumulator> {
        if matches!(spec, Bson::Array(_)) && UNARY.iter().any(|(known, _)| *known == name) {
            return Err(Error::location(
                40_237,
                format!("The {name} accumulator is a unary operator"),
            ));
        }
        Accumulator::parse_of_window(name, spec, scope)
    }

    /// As [`Accumulator::parse`], for a window function: its operand may be an array literal.
    ///
    /// # Errors
    /// 15952 for an unknown name, and the errors of the accumulator's operand.
    pub(crate) fn parse_of_window(name: &str, spec: &Bson, scope: &Scope) -> Result<Accumulator> {
        let make = |name, kind| Accumulator {
            kind,
            collator: scope.collator().cloned(),
            name,
        };
        if let Some((name, kind)) = UNARY.iter().find(|(known, _)| *known == name) {
            return Ok(make(name, kind(Expr::parse(spec, scope)?)));
        }
        let Some(name) = OTHER.iter().find(|known| **known == name) else {
            return Err(unknown(name));
        };
        Ok(make(name, parse_other(name, spec, scope)?))
    }

    /// Whether `name` is an accumulator.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        OTHER.contains(&name) || UNARY.iter().any(|(known, _)| *known == name)
    }

    /// Whether the state has the same size however many documents were added.
    pub(crate) fn has_fixed_size(&self) -> bool {
        matches!(
            self.kind,
            Kind::Sum(_)
                | Kind::Count
                | Kind::Average(_)
                | Kind::Least(_)
                | Kind::Greatest(_)
                | Kind::First(_)
                | Kind::Last(_)
                | Kind::DeviationOfPopulation(_)
                | Kind::DeviationOfSample(_)
        )
    }

    /// The name, with its dollar.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The operand; `None` for accumulators with several operands.
    #[must_use]
    pub fn operand(&self) -> Option<&Expr> {
        match &self.kind {
            Kind::Sum(operand)
            | Kind::Average(operand)
            | Kind::Least(operand)
            | Kind::Greatest(operand)
            | Kind::First(operand)
            | Kind::Last(operand)
            | Kind::Push(operand)
            | Kind::AddToSet(operand)
            | Kind::MergeObjects(operand)
            | Kind::ConcatArrays(operand)
            | Kind::SetUnion(operand)
            | Kind::DeviationOfPopulation(operand)
            | Kind::DeviationOfSample(operand) => Some(operand),
            _ => None,
        }
    }

    /// Adds what the accumulator reads of a document.
    pub fn dependencies(&self, found: &mut Dependencies) {
        match &self.kind {
            Kind::Count => {}
            Kind::Edge { n, input, .. } | Kind::Extremes { n, input, .. } => {
                n.dependencies(found);
                input.dependencies(found);
            }
            Kind::Ranked(spec) => {
                if let Some(n) = &spec.n {
                    n.dependencies(found);
                }
                spec.order.dependencies(found);
                spec.output.dependencies(found);
            }
            Kind::Quantile(spec) => spec.input.dependencies(found),
            _ => {
                if let Some(operand) = self.operand() {
                    operand.dependencies(found);
                }
            }
        }
    }
}

impl fmt::Debug for Accumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.kind)
    }
}

fn unknown(name: &str) -> Error {
    match name {
        "$accumulator" => Error::new(
            Code::BAD_VALUE,
            "$accumulator not allowed: there is no engine for JavaScript in this server",
        ),
        _ => Error::location(15_952, format!("unknown group operator '{name}'")),
    }
}

fn parse_other(name: &str, spec: &Bson, scope: &Scope) -> Result<Kind> {
    match name {
        "$count" => match spec {
            Bson::Document(document) if document.is_empty() => Ok(Kind::Count),
            _ => Err(Error::type_mismatch(
                "$count takes no arguments, i.e. $count:{}",
            )),
        },
        "$top" | "$topN" | "$bottom" | "$bottomN" => parse_ranked(name, spec, scope),
        "$median" | "$percentile" => parse_quantile(name, spec, scope),
        _ => parse_n(name, spec, scope),
    }
}

fn parse_n(name: &str, spec: &Bson, scope: &Scope) -> Result<Kind> {
    let fields = NSpec {
        name,
        not_object: 5_787_900,
        unknown: 5_787_901,
    };
    let [n, input] = fields.read(spec, ["n", "input"])?;
    let n = required(n, 5_787_906, "n")?;
    let input = required(input, 5_787_907, "input")?;
    let (n, input) = (Expr::parse(n, scope)?, Expr::parse(input, scope)?);
    Ok(match name {
        "$firstN" | "$lastN" => Kind::Edge {
            n,
            input,
            last: name == "$lastN",
        },
        _ => Kind::Extremes {
            n,
            input,
            greatest: name == "$maxN",
        },
    })
}

fn parse_ranked(name: &str, spec: &Bson, scope: &Scope) -> Result<Kind> {
    let fields = NSpec {
        name,
        not_object: 5_788_001,
        unknown: 5_788_002,
    };
    let many = name.ends_with('N');
    let (n, sort, output) = if many {
        let [n, sort, output] = fields.read(spec, ["n", "sortBy", "output"])?;
        (Some(required(n, 5_788_003, "n")?), sort, output)
    } else {
        let [sort, output] = fields.read(spec, ["sortBy", "output"])?;
        (None, sort, output)
    };
    let output = required(output, 5_788_004, "output")?;
    let Bson::Document(sort) = required(sort, 5_788_005, "sortBy")? else {
        return Err(Error::location(
            5_788_604,
            "invalid parameter: expected an object (sortBy)",
        ));
    };
    Ok(Kind::Ranked(Box::new(RankedSpec {
        n: n.map(|n| Expr::parse(n, scope)).transpose()?,
        order: Order::parse(sort, name)?,
        output: Expr::parse(output, scope)?,
        bottom: name.starts_with("$bottom"),
    })))
}

fn parse_quantile(name: &str, spec: &Bson, scope: &Scope) -> Result<Kind> {
    let Bson::Document(document) = spec else {
        return Err(Error::location(
            7_436_100,
            format!("specification must be an object; found {name}: {spec}"),
        ));
    };
    let missing = |field: &str| {
        Error::new(
            Code(40_414),
            format!("BSON field '{name}.{field}' is missing but a required field"),
        )
    };
    for field in document.keys() {
        let known =
            matches!(field.as_str(), "input" | "method") || (field == "p" && name == "$percentile");
        if !known {
            return Err(Error::new(
                Code::IDL_UNKNOWN_FIELD,
                format!("BSON field '{name}.{field}' is an unknown field."),
            ));
        }
    }
    let input = document.get("input").ok_or_else(|| missing("input"))?;
    let method = document.get("method").ok_or_else(|| missing("method"))?;
    let p = match name {
        "$percentile" => {
            let p = document.get("p").ok_or_else(|| missing("p"))?;
            Some(percentiles(&constant(p, scope)?)?)
        }
        _ => None,
    };
    Ok(Kind::Quantile(Box::new(QuantileSpec {
        input: Expr::parse(input, scope)?,
        p,
        method: parse_method(method)?,
    })))
}

/// The value of an expression, which must not read the document.
fn constant(spec: &Bson, scope: &Scope) -> Result<Bson> {
    let expr = Expr::parse(spec, scope)?;
    match expr.as_constant() {
        Some(value) => Ok(value.clone()),
        None => expr.evaluate_or_null(&Env::new(&Document::new(), scope.variables())),
    }
}

/// How the operand of an accumulator with `n` is parsed.
struct NSpec<'a> {
    name: &'a str,
    not_object: i32,
    unknown: i32,
}

impl NSpec<'_> {
    fn read<'b, const N: usize>(
        &self,
        spec: &'b Bson,
        names: [&str; N],
    ) -> Result<[Option<&'b Bson>; N]> {
        let Bson::Document(document) = spec else {
            return Err(Error::location(
                self.not_object,
                format!(
                    "specification must be an object; found {}: {spec}",
                    self.name
                ),
            ));
        };
        if let Some(name) = document.keys().find(|name| !names.contains(&name.as_str())) {
            return Err(Error::location(
                self.unknown,
                format!("Unknown argument for '{}' operator: {name}", self.name),
            ));
        }
        Ok(names.map(|name| document.get(name)))
    }
}

fn required<'b>(value: Option<&'b Bson>, code: i32, name: &str) -> Result<&'b Bson> {
    value.ok_or_else(|| Error::location(code, format!("Missing value for '{name}'")))
}

/// Checks the value of `n` of `$firstN` and similar operators.
pub(crate) fn check_n(value: Option<&Bson>) -> Result<usize> {
    let number = value.and_then(Number::from_bson);
    let Some(number) = number else {
        return Err(Error::location(
            5_787_902,
            format!(
                "Value for 'n' must be of integral type, but found {}",
                value.map_or("missing", value::type_name)
            ),
        ));
    };
    let Some(whole) = number.to_i64_exact() else {
        return Err(Error::location(
            5_787_903,
            format!("Value for 'n' must be of integral type, but found {number}"),
        ));
    };
    match usize::try_from(whole) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::location(
            5_787_908,
            format!("'n' must be greater than 0, found {whole}"),
        )),
    }
}
