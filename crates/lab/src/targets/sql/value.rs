//! Column values, and how each driver encodes and decodes them.

use std::error::Error;

use bytes::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

pub(super) use crate::workload::table::Value;

/// The value as an integer, if it is one.
pub(super) fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        _ => None,
    }
}

/// A value as a number whose order is close enough to that of the values; texts and bytes have no
/// such number.
pub(super) fn rank(value: &Value) -> f64 {
    match value {
        Value::Int(n) => *n as f64,
        Value::Float(n) => *n,
        Value::Null | Value::Text(_) | Value::Bytes(_) => f64::NAN,
    }
}

/// Approximate bytes that a driver sends for a value.
pub(super) fn length(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Int(_) | Value::Float(_) => 8,
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
    }
}

impl From<Value> for mysql::Value {
    fn from(value: Value) -> mysql::Value {
        match value {
            Value::Null => mysql::Value::NULL,
            Value::Int(n) => mysql::Value::Int(n),
            Value::Float(n) => mysql::Value::Double(n),
            Value::Text(text) => mysql::Value::Bytes(text.into_bytes()),
            Value::Bytes(bytes) => mysql::Value::Bytes(bytes),
        }
    }
}

impl From<mysql::Value> for Value {
    fn from(value: mysql::Value) -> Value {
        match value {
            mysql::Value::Int(n) => Value::Int(n),
            mysql::Value::UInt(n) => i64::try_from(n).map_or(Value::Float(n as f64), Value::Int),
            mysql::Value::Float(n) => Value::Float(n.into()),
            mysql::Value::Double(n) => Value::Float(n),
            mysql::Value::Bytes(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Value::Text(text),
                Err(e) => Value::Bytes(e.into_bytes()),
            },
            mysql::Value::NULL | mysql::Value::Date(..) | mysql::Value::Time(..) => Value::Null,
        }
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(n) if *of == Type::INT4 => i32::try_from(*n)?.to_sql(of, out),
            Value::Int(n) if *of == Type::INT2 => i16::try_from(*n)?.to_sql(of, out),
            Value::Int(n) if *of == Type::FLOAT8 => (*n as f64).to_sql(of, out),
            Value::Int(n) => n.to_sql(of, out),
            Value::Float(n) => n.to_sql(of, out),
            Value::Text(text) => text.to_sql(of, out),
            Value::Bytes(bytes) => bytes.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The column values of a PostgreSQL row.
pub(super) fn of_postgres(row: &postgres::Row) -> Result<Vec<Value>, postgres::Error> {
    let each = row.columns().iter().enumerate();
    each.map(|(at, column)| {
        Ok(match *column.type_() {
            Type::INT2 => row
                .try_get::<_, Option<i16>>(at)?
                .map(|n| Value::Int(n.into())),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(at)?
                .map(|n| Value::Int(n.into())),
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(Value::Int),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map(Value::Float),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Value::Bytes),
            _ => row.try_get::<_, Option<String>>(at)?.map(Value::Text),
        }
        .unwrap_or(Value::Null))
    })
    .collect()
}
