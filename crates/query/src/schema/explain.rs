//! Why a value is not valid: the tree of failed rules that errors of validation carry.
//!
//! The shape is that of MongoDB's manual, "Schema Validation", "Handle Invalid Documents". The tree
//! is built only for values that failed, so this code evaluates every rule again.

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument, doc};

use super::rule::{Additional, Check, Dependency, Rule, Schema};
use super::validate::{bad_item, duplicate, missing, passed};
use crate::Result;
use crate::meter::{self, VALIDATION};
use crate::path::find;
use crate::value::type_name;

/// Estimated bytes of the details of a rule without those that it repeats.
const DETAILS: usize = 1024;

impl Schema {
    /// The rules that `document` breaks, as the field `details` of an error shows `$jsonSchema`.
    ///
    /// # Errors
    /// As [`Schema::validates`].
    pub fn explain(&self, document: &RawDocument) -> Result<Document> {
        let mut details = doc! {"operatorName": "$jsonSchema"};
        details.extend(self.notes.clone());
        details.insert(
            "schemaRulesNotSatisfied",
            self.broken(RawBsonRef::Document(document))?,
        );
        Ok(details)
    }

    fn broken(&self, value: RawBsonRef<'_>) -> Result<Vec<Bson>> {
        let mut broken = Vec::new();
        for rule in &self.rules {
            if !rule.allows(value)? {
                broken.push(Bson::Document(rule.explain(value)?));
            }
        }
        Ok(broken)
    }

    /// `head` with the schema's title and description and the failed rules of `value`.
    fn under(&self, mut head: Document, value: RawBsonRef<'_>) -> Result<Bson> {
        head.extend(self.notes.clone());
        head.insert("details", self.broken(value)?);
        Ok(Bson::Document(head))
    }
}

impl Rule {
    fn explain(&self, value: RawBsonRef<'_>) -> Result<Document> {
        let mut details = doc! {"operatorName": self.name};
        match (&self.check, value) {
            (Check::AllOf(schemas), value) => self.failed_schemas(schemas, value, &mut details)?,
            (Check::AnyOf(schemas), value) => self.failed_schemas(schemas, value, &mut details)?,
            (Check::OneOf(schemas), value) => {
                let passed = passed(schemas, value)?;
                if passed.is_empty() {
                    self.failed_schemas(schemas, value, &mut details)?;
                } else {
                    details.insert("reason", "more than one subschema matched");
                    details.insert("matchingSchemaIndexes", indexes(&passed));
                }
            }
            (Check::Not(_), value) => {
                details.insert("reason", "child expression matched");
                consider(&mut details, value)?;
            }
            (_, RawBsonRef::Document(document)) => self.of_document(document, &mut details)?,
            (_, RawBsonRef::Array(array)) => self.of_array(array, &mut details)?,
            (_, value) => self.of_value(value, &mut details)?,
        }
        meter::charge(VALIDATION, meter::document_size(&self.spec) + DETAILS)?;
        Ok(details)
    }

    /// Adds to `details` the rule as written, the reason for the failure, and the value.
    fn of_value(&self, value: RawBsonRef<'_>, details: &mut Document) -> Result<()> {
        let reason = match &self.check {
            Check::Types(_) => "type did not match",
            Check::Enum(_) => "value was not found in enum",
            Check::Minimum { .. } | Check::Maximum { .. } => "comparison failed",
            Check::MultipleOf(_) => "considered value is not a multiple of the specified value",
            Check::Length(_) => "specified string length was not satisfied",
            Check::Pattern(_) => "regular expression did not match",
            Check::ItemCount(_) => "array did not match specified length",
            Check::UniqueItems => "found a duplicate item",
            Check::PropertyCount(_) => "specified number of properties was not satisfied",
            _ => "rule was not satisfied",
        };
        details.insert("specifiedAs", self.spec.clone());
        details.insert("reason", reason);
        consider(details, value)?;
        if let (Check::Types(_), Some(value)) = (&self.check, details.get("consideredValue")) {
            let name = type_name(value);
            details.insert("consideredType", name);
        }
        Ok(())
    }

    fn of_array(&self, array: &RawArray, details: &mut Document) -> Result<()> {
        match &self.check {
            Check::Items(schema) => {
                let reason = "At least one item did not match the sub-schema";
                item(array, 0, schema, reason, details)?;
            }
            Check::AdditionalItems {
                from,
                additional: Additional::Like(schema),
            } => {
                let reason = "At least one additional item did not match the sub-schema";
                item(array, *from, schema, reason, details)?;
            }
            Check::AdditionalItems { from, .. } => {
                let mut others = Vec::new();
                for item in array.into_iter().skip(*from) {
                    let item = Bson::try_from(item?)?;
                    meter::charge(VALIDATION, meter::size(&item))?;
                    others.push(item);
                }
                details.insert("specifiedAs", self.spec.clone());
                details.insert("reason", "found additional items");
                details.insert("additionalItems", others);
            }
            Check::ItemList(schemas) => {
                let mut list = Vec::new();
                for ((position, item), schema) in array.into_iter().enumerate().zip(schemas) {
                    let item = item?;
                    if !schema.allows(item)? {
                        let head = doc! {"itemIndex": int(position)};
                        list.push(schema.under(head, item)?);
                    }
                }
                details.insert("details", list);
            }
            _ => {
                self.of_value(RawBsonRef::Array(array), details)?;
                if let (Check::UniqueItems, Some(item)) = (&self.check, duplicate(array)?) {
                    details.insert("duplicatedValue", Bson::try_from(item)?);
                }
            }
        }
        Ok(())
    }

    fn of_document(&self, document: &RawDocument, details: &mut Document) -> Result<()> {
        match &self.check {
            Check::Required(names) => {
                details.insert("specifiedAs", self.spec.clone());
                details.insert("missingProperties", missing(document, names)?);
            }
            Check::PropertyCount(_) => {
                details.insert("specifiedAs", self.spec.clone());
                details.insert("reason", "specified number of properties was not satisfied");
                details.insert("numberOfProperties", int(document.iter_elements().count()));
            }
            Check::Properties(list) => {
                let mut failed = Vec::new();
                for (name, schema) in list {
                    if let Some(value) = find(document, name)?
                        && !schema.allows(value)?
                    {
                        failed.push(schema.under(doc! {"propertyName": name}, value)?);
                    }
                }
                details.insert("propertiesNotSatisfied", failed);
            }
            Check::PatternProperties(list) => {
                let mut failed = Vec::new();
                for field in document {
                    let (name, value) = field?;
                    for (pattern, schema) in list {
                        if pattern.is_match(name.as_str())? && !schema.allows(value)? {
                            let head = doc! {
                                "propertyName": name.as_str(),
                                "regexMatched": pattern.pattern(),
                            };
                            failed.push(schema.under(head, value)?);
                        }
                    }
                }
                details.insert("details", failed);
            }
            Check::AdditionalProperties { additional, .. } => {
                self.of_additional(document, additional, details)?;
            }
            Check::Dependencies(list) => {
                let failing = failing_dependencies(document, list)?;
                details.insert("failingDependencies", failing);
            }
            _ => self.of_value(RawBsonRef::Document(document), details)?,
        }
        Ok(())
    }

    fn of_additional(
        &self,
        document: &RawDocument,
        additional: &Additional,
        details: &mut Document,
    ) -> Result<()> {
        let others = self.additional(document)?;
        let Additional::Like(schema) = additional else {
            let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
            details.insert("specifiedAs", self.spec.clone());
            details.insert("additionalProperties", names);
            return Ok(());
        };
        details.insert(
            "reason",
            "at least one additional property did not match the subschema",
        );
        for (name, value) in others {
            if !schema.allows(value)? {
                details.insert("nonConformingProperty", name);
                details.insert("details", schema.broken(value)?);
                break;
            }
        }
        Ok(())
    }

    fn failed_schemas(
        &self,
        schemas: &[Schema],
        value: RawBsonRef<'_>,
        details: &mut Document,
    ) -> Result<()> {
        let mut failed = Vec::new();
        for (position, schema) in schemas.iter().enumerate() {
            if !schema.allows(value)? {
                failed.push(schema.under(doc! {"index": int(position)}, value)?);
            }
        }
        details.insert("schemasNotSatisfied", failed);
        Ok(())
    }
}

fn failing_dependencies(
    document: &RawDocument,
    list: &[(String, Dependency)],
) -> Result<Vec<Bson>> {
    let mut failing = Vec::new();
    for (name, dependency) in list {
        if find(document, name)?.is_none() || dependency.holds(document)? {
            continue;
        }
        let head = doc! {"conditionalProperty": name};
        failing.push(match dependency {
            Dependency::Properties(names) => {
                let mut head = head;
                head.insert("missingProperties", missing(document, names)?);
                Bson::Document(head)
            }
            Dependency::Schema(schema) => schema.under(head, RawBsonRef::Document(document))?,
        });
    }
    Ok(failing)
}

/// The first item of an array that the schema does not allow, and its failures.
fn item(
    array: &RawArray,
    from: usize,
    schema: &Schema,
    reason: &str,
    details: &mut Document,
) -> Result<()> {
    details.insert("reason", reason);
    if let Some((position, item)) = bad_item(array, from, schema)? {
        details.insert("itemIndex", int(position));
        details.insert("details", schema.broken(item)?);
    }
    Ok(())
}

fn consider(details: &mut Document, value: RawBsonRef<'_>) -> Result<()> {
    let value = Bson::try_from(value)?;
    meter::charge(VALIDATION, meter::size(&value))?;
    details.insert("consideredValue", value);
    Ok(())
}

fn indexes(positions: &[usize]) -> Vec<Bson> {
    positions.iter().map(|position| int(*position)).collect()
}

/// A count as error details show it.
fn int(number: usize) -> Bson {
    Bson::Int32(i32::try_from(number).unwrap_or(i32::MAX))
}
