//! `$sortArray`: sorts an array by whole elements or by fields of its elements.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Bson, Document};

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::call::{Call, Prepared};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::node::Node;
use super::{Expr, Scope};
use crate::accumulator;
use crate::collation::Collator;
use crate::number::Number;
use crate::value::compare_with;
use crate::{Code, Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[Function::own("$sortArray", parse, sort)];

const SORT_ARRAY: Signature = Signature {
    name: "$sortArray",
    not_object: (
        2_942_500,
        "{op} requires an object as an argument, found: {type}",
    ),
    unknown: (2_942_501, "{op} found an unknown argument: {field}"),
    fields: &[
        Field::required("input", 2_942_502, "{op} requires 'input' to be specified"),
        Field::required(
            "sortBy",
            2_942_503,
            "{op} requires 'sortBy' to be specified",
        ),
    ],
};

/// The sort order of the elements.
pub(super) enum Order {
    /// By the whole elements.
    Whole { descending: bool },
    /// By fields of the elements; an element that is not a document has no fields.
    Fields(accumulator::Order),
}

fn parse(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    let fields = SORT_ARRAY.read(operand)?;
    let field = |at: usize| fields.get(at).copied().flatten();
    let order = match field(1) {
        Some(Bson::Document(spec)) => Order::Fields(fields_order(spec)?),
        other => whole_order(other.and_then(Number::from_bson))?,
    };
    let input = field(0).map(|spec| Expr::parse(spec, scope)).transpose()?;
    let call = Call {
        function,
        arguments: vec![input],
        level: scope.next_level(),
        collator: scope.collator().cloned(),
        prepared: Prepared::Order(Arc::new(order)),
    };
    Ok(Expr {
        node: Node::Call(Box::new(call)),
    })
}

fn fields_order(spec: &Document) -> Result<accumulator::Order> {
    if spec.is_empty() {
        let message = "The sort pattern is empty when it should be a set of fields.";
        return Err(Error::location(2_942_505, message));
    }
    accumulator::Order::parse(spec, "$sortArray").map_err(|error| Error {
        code: Code(2_942_505),
        ..error
    })
}

fn whole_order(direction: Option<Number>) -> Result<Order> {
    let Some(direction) = direction else {
        let message = "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} \
                       to sort embedded fields";
        return Err(Error::location(2_942_507, message));
    };
    match direction.to_i64_exact() {
        Some(1) => Ok(Order::Whole { descending: false }),
        Some(-1) => Ok(Order::Whole { descending: true }),
        _ => {
            let message = "The $sort element value must be either 1 or -1";
            Err(Error::location(2_942_506, message))
        }
    }
}

fn sort<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    let value = args.value(0)?;
    if is_nullish(&value) {
        return null();
    }
    let Some(Bson::Array(items)) = value.as_deref() else {
        return fail(
            2_942_504,
            format!(
                "The input argument to $sortArray must be an array, but was of type: {}",
                type_of(&value)
            ),
        );
    };
    let Prepared::Order(order) = args.prepared() else {
        return null();
    };
    computed(sorted(items, order, args.collator())?)
}

fn sorted(items: &[Bson], order: &Order, collator: Option<&Collator>) -> Result<Vec<Bson>> {
    match order {
        Order::Whole { descending } => {
            let items = meter::copies("$sortArray", items.iter())?;
            meter::sort_by(items, |left, right| {
                directed(compare_with(left, right, collator), *descending)
            })
        }
        Order::Fields(order) => {
            let empty = Document::new();
            let mut keyed: Vec<(Vec<Bson>, &Bson)> = Vec::new();
            for item in items {
                let key = order.key(item.as_document().unwrap_or(&empty), collator);
                let bytes: usize = key.iter().map(meter::size).sum();
                meter::read(bytes)?;
                meter::charge("$sortArray", bytes + size_of::<(Vec<Bson>, &Bson)>())?;
                keyed.push((key, item));
            }
            let keyed = meter::sort_by(keyed, |(left, _), (right, _)| {
                order.compare(left, right, collator)
            })?;
            meter::copies("$sortArray", keyed.into_iter().map(|(_, item)| item))
        }
    }
}

fn directed(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}
