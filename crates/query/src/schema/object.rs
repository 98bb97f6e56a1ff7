//! Parses the keywords for documents.

use bson::Bson;

use super::argument::{count, document, names, wrong_type};
use super::parse::{additional, schema, unknown};
use super::rule::{Bound, Check, Dependency, Schema};
use crate::Result;
use crate::regex::Regex;

impl Schema {
    pub(super) fn object_check(
        &self,
        name: &str,
        value: &Bson,
        depth: usize,
    ) -> Result<(&'static str, Check)> {
        Ok(match name {
            "required" => ("required", Check::Required(names(name, value)?)),
            "properties" => ("properties", properties(name, value, depth)?),
            "patternProperties" => ("patternProperties", patterns(name, value, depth)?),
            "additionalProperties" => ("additionalProperties", self.others(name, value, depth)?),
            "minProperties" => {
                let bound = Bound::Least(count(name, value)?);
                ("minProperties", Check::PropertyCount(bound))
            }
            "maxProperties" => {
                let bound = Bound::Most(count(name, value)?);
                ("maxProperties", Check::PropertyCount(bound))
            }
            "dependencies" => ("dependencies", dependencies(name, value, depth)?),
            other => return Err(unknown(other)),
        })
    }

    /// Parses `additionalProperties`, which applies to the properties that neither `properties` nor
    /// `patternProperties` of the same schema covers.
    fn others(&self, name: &str, value: &Bson, depth: usize) -> Result<Check> {
        let keys = |keyword: &str| match self.spec.get(keyword) {
            Some(Bson::Document(spec)) => spec.keys().cloned().collect(),
            _ => Vec::new(),
        };
        let patterns = keys("patternProperties")
            .iter()
            .map(|pattern| Regex::new(pattern, ""))
            .collect::<Result<Vec<Regex>>>()?;
        Ok(Check::AdditionalProperties {
            names: keys("properties"),
            patterns,
            additional: additional(name, value, depth)?,
        })
    }
}

fn properties(name: &str, value: &Bson, depth: usize) -> Result<Check> {
    let mut list = Vec::new();
    for (property, value) in document(name, value)? {
        list.push((property.clone(), schema(property, value, depth)?));
    }
    Ok(Check::Properties(list))
}

fn patterns(name: &str, value: &Bson, depth: usize) -> Result<Check> {
    let mut list = Vec::new();
    for (pattern, value) in document(name, value)? {
        list.push((Regex::new(pattern, "")?, schema(pattern, value, depth)?));
    }
    Ok(Check::PatternProperties(list))
}

fn dependencies(name: &str, value: &Bson, depth: usize) -> Result<Check> {
    let mut list = Vec::new();
    for (property, value) in document(name, value)? {
        let dependency = match value {
            Bson::Array(_) => Dependency::Properties(names(name, value)?),
            Bson::Document(_) => Dependency::Schema(schema(property, value, depth)?),
            _ => return Err(wrong_type(name, "an object of objects and arrays")),
        };
        list.push((property.clone(), dependency));
    }
    Ok(Check::Dependencies(list))
}
