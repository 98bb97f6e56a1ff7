//! The configuration file: YAML as MongoDB's, read into pairs of a dotted name and a value.

use saphyr::{LoadableYamlNode as _, ScalarOwned, YamlOwned};

/// Levels of the file. MongoDB's deepest name has five parts.
const DEPTH: usize = 10;

/// The settings of a file, in order, such as `net.port` and `27017`.
///
/// # Errors
/// What is no YAML, with its place; what is no settings.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let documents = YamlOwned::load_from_str(text).map_err(|error| error.to_string())?;
    let mut settings = Vec::new();
    match documents.as_slice() {
        [] => {}
        [one] => walk(one, String::new(), 0, &mut settings)?,
        _ => return Err("more than one document".to_owned()),
    }
    Ok(settings)
}

fn walk(
    node: &YamlOwned,
    path: String,
    depth: usize,
    settings: &mut Vec<(String, String)>,
) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("{path} is nested too deep"));
    }
    match node {
        YamlOwned::Mapping(fields) => {
            for (name, value) in fields {
                let Some(name) = scalar(name) else {
                    return Err(format!("a name under {path:?} is no text"));
                };
                let below = if path.is_empty() {
                    name
                } else {
                    format!("{path}.{name}")
                };
                walk(value, below, depth + 1, settings)?;
            }
            Ok(())
        }
        YamlOwned::Sequence(values) => {
            let values: Option<Vec<String>> = values.iter().map(scalar).collect();
            let values = values.ok_or_else(|| format!("{path} is no list of values"))?;
            settings.push((path, values.join(",")));
            Ok(())
        }
        // An empty section.
        YamlOwned::Value(ScalarOwned::Null) => Ok(()),
        other => match scalar(other) {
            Some(value) if !path.is_empty() => {
                settings.push((path, value));
                Ok(())
            }
            _ => Err(format!("{path:?} is no setting")),
        },
    }
}

fn scalar(node: &YamlOwned) -> Option<String> {
    match node {
        YamlOwned::Value(ScalarOwned::Boolean(value)) => Some(value.to_string()),
        YamlOwned::Value(ScalarOwned::Integer(value)) => Some(value.to_string()),
        YamlOwned::Value(ScalarOwned::FloatingPoint(value)) => Some(value.to_string()),
        YamlOwned::Value(ScalarOwned::String(value)) => Some(value.clone()),
        _ => None,
    }
}
