//! One operator at one path: its parsed operand, and how it changes a value.

use bson::{Bson, Document, RawBson};

use super::array::{AddToSet, Pop, PullAll};
use super::number::{Arithmetic, Bits};
use super::pull::Pull;
use super::push::Push;
use super::{Position, identical_values, number};
use crate::collation::Collator;
use crate::settings::Settings;
use crate::value::{compare_with, type_name};
use crate::{Code, Error, Result, show};

/// An operator with its operand.
#[derive(Debug, Clone)]
pub(super) enum Modifier {
    Set(Bson),
    SetOnInsert(Bson),
    Unset,
    Arithmetic(Arithmetic),
    Min(Bson),
    Max(Bson),
    /// Whether `$currentDate` sets a timestamp instead of a date.
    CurrentDate(bool),
    /// `$rename` at its destination path; the operand is the source path.
    Rename(String),
    Push(Push),
    AddToSet(AddToSet),
    Pop(Pop),
    Pull(Pull),
    PullAll(PullAll),
    Bit(Bits),
}

/// What an operator does to a value.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The value is unchanged.
    Keep,
    /// The value is replaced by this one.
    Set(Bson),
    /// The value is removed; an array element becomes null instead.
    Remove,
}

/// The inputs of an operator other than the value.
pub(super) struct Context<'a> {
    /// The document before the update.
    pub(super) root: &'a Document,
    pub(super) at: &'a Position,
    pub(super) collator: Option<&'a Collator>,
}

impl Context<'_> {
    /// The document as messages name it: `{_id: 1}`.
    pub(super) fn document(&self) -> String {
        match self.root.get("_id") {
            Some(id) => format!("{{{}}}", show::field("_id", id)),
            None => String::from("{no id}"),
        }
    }
}

impl Modifier {
    /// Parses the operand of `operator` at `path`.
    ///
    /// # Errors
    /// MongoDB's code and message for an invalid operand of this operator.
    pub(super) fn parse(
        operator: &str,
        path: &str,
        operand: &Bson,
        settings: &Settings,
    ) -> Result<Modifier> {
        Ok(match operator {
            "$set" => Modifier::Set(operand.clone()),
            "$setOnInsert" => Modifier::SetOnInsert(operand.clone()),
            "$unset" => Modifier::Unset,
            "$inc" => Modifier::Arithmetic(Arithmetic::add(path, operand)?),
            "$mul" => Modifier::Arithmetic(Arithmetic::multiply(path, operand)?),
            "$min" => Modifier::Min(operand.clone()),
            "$max" => Modifier::Max(operand.clone()),
            "$currentDate" => Modifier::CurrentDate(current_date(operand)?),
            "$push" => Modifier::Push(Push::parse(operand)?),
            "$addToSet" => Modifier::AddToSet(AddToSet::parse(operand)?),
            "$pop" => Modifier::Pop(Pop::parse(path, operand)?),
            "$pull" => {
                let operand = RawBson::try_from(operand.clone())?;
                Modifier::Pull(Pull::parse(operand.as_raw_bson_ref(), settings)?)
            }
            "$pullAll" => Modifier::PullAll(PullAll::parse(operand)?),
            "$bit" => Modifier::Bit(Bits::parse(operand)?),
            unknown => return Err(unknown_operator(unknown)),
        })
    }

    /// Whether the operator creates a value where none exists.
    pub(super) fn creates(&self, cx: &Context<'_>) -> bool {
        match self {
            Modifier::SetOnInsert(_) => cx.at.inserting,
            Modifier::Rename(source) => super::rename::moves(source, cx),
            Modifier::Unset | Modifier::Pop(_) | Modifier::Pull(_) | Modifier::PullAll(_) => false,
            _ => true,
        }
    }

    /// Whether it is an error if the path cannot be created. Operators that create nothing ignore
    /// such a path, except `$pop`, `$pull` and `$pullAll`.
    pub(super) fn needs_path(&self, cx: &Context<'_>) -> bool {
        matches!(
            self,
            Modifier::Pop(_) | Modifier::Pull(_) | Modifier::PullAll(_)
        ) || self.creates(cx)
    }

    /// Applies the operator to `current`, the value at `path`.
    ///
    /// # Errors
    /// When the operator does not apply to a value of this type.
    pub(super) fn apply(
        &self,
        path: &str,
        current: Option<&mut Bson>,
        cx: &Context<'_>,
    ) -> Result<Outcome> {
        match self {
            Modifier::Set(value) => Ok(set(current, value)),
            Modifier::SetOnInsert(value) if cx.at.inserting => Ok(set(current, value)),
            Modifier::SetOnInsert(_) => Ok(Outcome::Keep),
            Modifier::Unset if current.is_some() => Ok(Outcome::Remove),
            Modifier::Unset => Ok(Outcome::Keep),
            Modifier::Arithmetic(arithmetic) => arithmetic.apply(path, current.as_deref(), cx),
            Modifier::Min(value) => Ok(bound(current, value, std::cmp::Ordering::Less, cx)),
            Modifier::Max(value) => Ok(bound(current, value, std::cmp::Ordering::Greater, cx)),
            Modifier::CurrentDate(true) => Ok(Outcome::Set(Bson::Timestamp(cx.at.timestamp))),
            Modifier::CurrentDate(false) => Ok(set(current, &Bson::DateTime(cx.at.now))),
            Modifier::Rename(source) => super::rename::apply(source, path, current, cx),
            Modifier::Push(push) => push.apply(path, current, cx),
            Modifier::AddToSet(add) => add.apply(path, current, cx),
            Modifier::Pop(pop) => pop.apply(path, current),
            Modifier::Pull(pull) => pull.apply(current, cx),
            Modifier::PullAll(pull) => pull.apply(current, cx),
            Modifier::Bit(bits) => number::bits(bits, path, current.as_deref(), cx),
        }
    }
}

pub(super) fn set(current: Option<&mut Bson>, value: &Bson) -> Outcome {
    match current {
        Some(current) if identical_values(current, value) => Outcome::Keep,
        _ => Outcome::Set(value.clone()),
    }
}

/// `$min` and `$max`: sets `value` if it compares to the current value as `side`.
fn bound(
    current: Option<&mut Bson>,
    value: &Bson,
    side: std::cmp::Ordering,
    cx: &Context<'_>,
) -> Outcome {
    match current {
        Some(current) if compare_with(value, current, cx.collator) != side => Outcome::Keep,
        _ => Outcome::Set(value.clone()),
    }
}

fn current_date(operand: &Bson) -> Result<bool> {
    match operand {
        Bson::Boolean(_) => Ok(false),
        Bson::Document(spec) => {
            if let Some(name) = spec.keys().find(|name| *name != "$type") {
                return Err(Error::bad_value(format!(
                    "Unrecognized $currentDate option: {name}"
                )));
            }
            match spec.get("$type") {
                Some(Bson::String(kind)) if kind == "date" => Ok(false),
                Some(Bson::String(kind)) if kind == "timestamp" => Ok(true),
                _ => Err(Error::bad_value(
                    "The '$type' string field is required to be 'date' or 'timestamp': \
                     {$currentDate: {field : {$type: 'date'}}}",
                )),
            }
        }
        other => Err(Error::bad_value(format!(
            "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type \
             expression ({{$type: 'timestamp/date'}}).",
            type_name(other)
        ))),
    }
}

/// The error for an unknown operator.
pub(super) fn unknown_operator(name: &str) -> Error {
    Error::new(
        Code::FAILED_TO_PARSE,
        format!(
            "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update \
             specified as an array"
        ),
    )
}
