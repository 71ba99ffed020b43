//! JSON Schema as far as the description of the API uses it. A keyword that is not checked here is an error, so that nothing
//! passes unseen.

use serde_json::Value;
use stepcast_core::strategy::Synchronisation;

/// What is wrong with `value` by a schema; `root` is where references lead.
pub(crate) fn violations(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(root, schema, value, "", &mut found);
    found
}

fn holds(root: &Value, schema: &Value, value: &Value) -> bool {
    violations(root, schema, value).is_empty()
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            found.push(format!("{at}: nothing is allowed here"));
        }
        return;
    };
    let list = |keyword: &Value| keyword.as_array().cloned().unwrap_or_default();
    for (keyword, argument) in keywords {
        let right = match keyword.as_str() {
            "$ref" => {
                let target = argument.as_str().and_then(|text| root.pointer(text.strip_prefix('#')?));
                check(root, target.unwrap_or(&Value::Bool(false)), value, at, found);
                true
            }
            "type" => match argument {
                Value::Array(types) => types.iter().any(|one| is_type(one, value)),
                one => is_type(one, value),
            },
            "const" => value == argument,
            "enum" => list(argument).contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= argument.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= argument.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| matches_pattern(argument.as_str().unwrap(), text)),
            "minItems" => {
                value.as_array().is_none_or(|items| items.len() as u64 >= argument.as_u64().unwrap())
            }
            "maxItems" => {
                value.as_array().is_none_or(|items| items.len() as u64 <= argument.as_u64().unwrap())
            }
            "required" => {
                let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
                !value.is_object() || list(argument).iter().all(has)
            }
            "allOf" => {
                list(argument).iter().for_each(|one| check(root, one, value, at, found));
                true
            }
            "anyOf" => list(argument).iter().any(|one| holds(root, one, value)),
            "oneOf" => list(argument).iter().filter(|one| holds(root, one, value)).count() == 1,
            "not" => !holds(root, argument, value),
            "properties" => {
                for (key, own) in argument.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        check(root, own, value, &format!("{at}/{key}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let named = keywords.get("properties").and_then(Value::as_object);
                let patterns = keywords.get("patternProperties").and_then(Value::as_object);
                let is_named = |key: &String| {
                    named.is_some_and(|named| named.contains_key(key))
                        || patterns.is_some_and(|all| all.keys().any(|pattern| matches_pattern(pattern, key)))
                };
                for (key, value) in value.as_object().into_iter().flatten() {
                    if !is_named(key) {
                        check(root, argument, value, &format!("{at}/{key}"), found);
                    }
                }
                true
            }
            "patternProperties" => {
                for (pattern, own) in argument.as_object().unwrap() {
                    for (key, value) in value.as_object().into_iter().flatten() {
                        if matches_pattern(pattern, key) {
                            check(root, own, value, &format!("{at}/{key}"), found);
                        }
                    }
                }
                true
            }
            "prefixItems" | "items" => {
                let first = keywords.get("prefixItems").map_or(0, |prefix| list(prefix).len());
                let skipped = if keyword == "items" { first } else { 0 };
                for (index, value) in value.as_array().into_iter().flatten().enumerate().skip(skipped) {
                    let own = argument.as_array().map_or(Some(argument), |prefix| prefix.get(index));
                    if let Some(own) = own {
                        check(root, own, value, &format!("{at}/{index}"), found);
                    }
                }
                true
            }
            // Descriptions, extensions, and formats of numbers that their types and bounds imply.
            "title" | "description" | "default" | "examples" | "format" | "$schema" | "components"
            | "deprecated" => true,
            extension if extension.starts_with("x-") => true,
            _ => unreachable!("{at}: {keyword} is not checked"),
        };
        if !right {
            found.push(format!("{at}: {value:.200} is against {keyword} {argument:.200}"));
        }
    }
}

/// The patterns of the description, each by what it stands for.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern {
        r"\.\." => text.contains(".."),
        r"^\d+$" => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
        _ if pattern.starts_with("^(bsp|async|") => text.parse::<Synchronisation>().is_ok(),
        _ => unreachable!("{pattern} is not checked"),
    }
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => unreachable!("there is no type {other}"),
    }
}

#[test]
fn what_is_wrong_is_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {
            "a": { "$ref": "#/components/whole" },
            "b": { "type": "array", "prefixItems": [{ "const": 1 }], "items": { "enum": ["x", "y"] }, "maxItems": 3 },
            "c": { "oneOf": [{ "type": "null" }, { "type": "number", "maximum": 2 }] },
        },
        "components": { "whole": { "type": ["integer", "null"], "minimum": 0 } },
    });
    let wrong = |text: &str| violations(&schema, &schema, &serde_json::from_str(text).unwrap());
    for right in [r#"{"a":1}"#, r#"{"a":null,"b":[1,"x"]}"#, r#"{"a":2.0,"c":null}"#, r#"{"a":0,"c":1.5}"#] {
        assert_eq!(wrong(right), Vec::<String>::new(), "{right}");
    }
    for (text, place) in [
        ("[]", ""),
        ("{}", ""),
        (r#"{"a":-1}"#, "/a"),
        (r#"{"a":0.5}"#, "/a"),
        (r#"{"a":1,"d":2}"#, "/d"),
        (r#"{"a":1,"b":[2]}"#, "/b/0"),
        (r#"{"a":1,"b":[1,"z"]}"#, "/b/1"),
        (r#"{"a":1,"b":[1,"x","x","x"]}"#, "/b"),
        (r#"{"a":1,"c":3}"#, "/c"),
    ] {
        assert!(
            wrong(text).iter().any(|reason| reason.starts_with(&format!("{place}: "))),
            "{text}: {:?}",
            wrong(text)
        );
    }
}
