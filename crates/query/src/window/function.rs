//! Window functions: accumulators over a window, and functions of the order, such as ranks.

use bson::{Bson, Document};

use super::bounds::{Window, parse_unit};
use super::partition::Partitioning;
use crate::accumulator::Accumulator;
use crate::expr::{Expr, FieldPath, Scope, Unit};
use crate::number::Number;
use crate::{Error, Result};

/// The window function of an output.
#[derive(Debug, Clone)]
pub(super) enum Function {
    Accumulate(Accumulator, Window),
    Rank {
        dense: bool,
    },
    DocumentNumber,
    Shift {
        output: Expr,
        by: i64,
        default: Bson,
    },
    ExpMovingAvg {
        input: Expr,
        alpha: Number,
    },
    Derivative(Slope, Window),
    Integral(Slope, Window),
    Covariance {
        x: Expr,
        y: Expr,
        sample: bool,
        window: Window,
    },
    LinearFill {
        input: Expr,
        position: FieldPath,
    },
    Locf(Expr),
}

/// The operand of `$derivative` and `$integral`: the values and the field of their positions.
#[derive(Debug, Clone)]
pub(super) struct Slope {
    pub(super) input: Expr,
    pub(super) position: FieldPath,
    pub(super) unit: Option<Unit>,
}

/// The names of window functions that are not accumulators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    [
        "$covariancePop",
        "$covarianceSamp",
        "$denseRank",
        "$derivative",
        "$documentNumber",
        "$expMovingAvg",
        "$integral",
        "$linearFill",
        "$locf",
        "$rank",
        "$shift",
    ]
    .into_iter()
}

impl Function {
    /// Parses one output: an operator and the optional `window`.
    pub(super) fn parse(spec: &Document, by: &Partitioning, scope: &Scope) -> Result<Function> {
        let mut operator = None;
        let mut window = None;
        for (name, value) in spec {
            if name == "window" {
                window = Some(Window::parse(value, by)?);
            } else if name.starts_with('$') && operator.is_none() {
                operator = Some((name.as_str(), value));
            } else if name.starts_with('$') {
                return Err(Error::parse(
                    "Cannot specify multiple functions in window function spec",
                ));
            } else {
                return Err(Error::parse(format!(
                    "Window function found an unknown argument: {name}"
                )));
            }
        }
        let Some((name, operand)) = operator else {
            return Err(Error::parse(
                "Expected a $-prefixed window function, but found none",
            ));
        };
        let parser = Parser {
            name,
            operand,
            by,
            scope,
        };
        parser.parse(window)
    }
}

struct Parser<'a> {
    name: &'a str,
    operand: &'a Bson,
    by: &'a Partitioning,
    scope: &'a Scope,
}

impl Parser<'_> {
    fn parse(&self, window: Option<Window>) -> Result<Function> {
        let name = self.name;
        let takes_none = matches!(
            name,
            "$rank"
                | "$denseRank"
                | "$documentNumber"
                | "$shift"
                | "$expMovingAvg"
                | "$linearFill"
                | "$locf"
        );
        if takes_none && window.is_some() {
            return Err(Error::location(
                5_371_601,
                format!("'window' field is not allowed in use with {name}"),
            ));
        }
        let whole = || window.clone().unwrap_or(Window::ALL);
        match name {
            "$rank" | "$denseRank" | "$documentNumber" => self.rank(),
            "$shift" => self.shift(),
            "$expMovingAvg" => self.moving_average(),
            "$derivative" => match window {
                Some(window) => Ok(Function::Derivative(self.slope()?, window)),
                None => Err(Error::parse("$derivative requires explicit window bounds")),
            },
            "$integral" => Ok(Function::Integral(self.slope()?, whole())),
            "$covariancePop" | "$covarianceSamp" => self.covariance(whole()),
            "$linearFill" => Ok(Function::LinearFill {
                input: self.expr(self.operand)?,
                position: self.position()?,
            }),
            "$locf" => Ok(Function::Locf(self.expr(self.operand)?)),
            _ if Accumulator::is_known(name) => Ok(Function::Accumulate(
                Accumulator::parse_of_window(name, self.operand, self.scope)?,
                whole(),
            )),
            _ => Err(Error::parse(format!(
                "Unrecognized window function, {name}"
            ))),
        }
    }

    fn expr(&self, spec: &Bson) -> Result<Expr> {
        Expr::parse(spec, self.scope)
    }

    fn rank(&self) -> Result<Function> {
        if !matches!(self.operand, Bson::Document(operand) if operand.is_empty()) {
            return Err(Error::location(
                5_371_603,
                format!("{} must be specified with '{{}}' as the value", self.name),
            ));
        }
        if self.name == "$documentNumber" {
            self.sorted()?;
            return Ok(Function::DocumentNumber);
        }
        if self.by.single()?.is_none() {
            return Err(Error::location(
                5_371_602,
                format!(
                    "{} must be specified with a top level sortBy expression with exactly one \
                     element",
                    self.name
                ),
            ));
        }
        Ok(Function::Rank {
            dense: self.name == "$denseRank",
        })
    }

    fn sorted(&self) -> Result<()> {
        if self.by.sort.is_some() {
            return Ok(());
        }
        Err(Error::location(
            5_371_602,
            format!("{} requires a sortBy", self.name),
        ))
    }

    /// The fields of the operand; fields outside `known` are refused.
    fn fields(&self, known: &[&str]) -> Result<&Document> {
        let Bson::Document(fields) = self.operand else {
            return Err(Error::parse(format!(
                "Argument to {} must be an object",
                self.name
            )));
        };
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(fields),
            Some(name) => Err(Error::parse(format!(
                "{} got unexpected argument: {name}",
                self.name
            ))),
        }
    }

    fn missing(&self, field: &str) -> Error {
        Error::parse(format!("{} requires an '{field}' expression", self.name))
    }

    fn shift(&self) -> Result<Function> {
        let fields = self.fields(&["output", "by", "default"])?;
        self.sorted()?;
        let output = fields.get("output").ok_or_else(|| self.missing("output"))?;
        let by = fields.get("by").ok_or_else(|| self.missing("by"))?;
        let Some(distance) = Number::from_bson(by).and_then(Number::to_i32_exact) else {
            return Err(Error::parse(format!(
                "'$shift:by' field must be an integer, but found by: {by}"
            )));
        };
        let by = i64::from(distance);
        let default = match fields.get("default") {
            None => Bson::Null,
            Some(default) => match self.expr(default)?.as_constant() {
                Some(default) => default.clone(),
                None => {
                    return Err(Error::parse(
                        "'$shift:default' expression must yield a constant value",
                    ));
                }
            },
        };
        Ok(Function::Shift {
            output: self.expr(output)?,
            by,
            default,
        })
    }

    fn moving_average(&self) -> Result<Function> {
        let fields = self.fields(&["input", "N", "alpha"])?;
        self.sorted()?;
        let input = fields.get("input").ok_or_else(|| self.missing("input"))?;
        let number = |name: &str| fields.get(name).and_then(Number::from_bson);
        let wrong = || {
            Error::parse(
                "$expMovingAvg requires either 'N', a positive integer, or 'alpha', a number \
                 between 0 and 1 (exclusive)",
            )
        };
        let alpha = match (number("N"), number("alpha")) {
            (Some(n), None) => match n.to_i64_exact() {
                Some(n) if n > 0 => Number::Double(2.0 / (n as f64 + 1.0)),
                _ => return Err(wrong()),
            },
            (None, Some(alpha)) if alpha.to_f64() > 0.0 && alpha.to_f64() < 1.0 => alpha,
            _ => return Err(wrong()),
        };
        Ok(Function::ExpMovingAvg {
            input: self.expr(input)?,
            alpha,
        })
    }

    fn position(&self) -> Result<FieldPath> {
        match self.by.single()? {
            Some((path, _)) => Ok(path),
            None => Err(Error::location(
                605_001,
                format!("{} requires a sortBy of a single field", self.name),
            )),
        }
    }

    fn slope(&self) -> Result<Slope> {
        let fields = self.fields(&["input", "unit"])?;
        let input = fields.get("input").ok_or_else(|| self.missing("input"))?;
        let unit = fields.get("unit").map(parse_unit).transpose()?;
        if unit.is_some_and(|unit| unit.millis().is_none()) {
            return Err(Error::location(5_490_704, "unit must be 'week' or smaller"));
        }
        Ok(Slope {
            input: self.expr(input)?,
            position: self.position()?,
            unit,
        })
    }

    fn covariance(&self, window: Window) -> Result<Function> {
        match self.operand {
            Bson::Array(items) => match items.as_slice() {
                [x, y] => Ok(Function::Covariance {
                    x: self.expr(x)?,
                    y: self.expr(y)?,
                    sample: self.name == "$covarianceSamp",
                    window,
                }),
                _ => Err(Error::parse(format!(
                    "{} takes exactly two expressions",
                    self.name
                ))),
            },
            _ => Err(Error::parse(format!(
                "{} takes an array of exactly two expressions",
                self.name
            ))),
        }
    }
}
