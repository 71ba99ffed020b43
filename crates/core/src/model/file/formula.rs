//! Values of a model file, and formulas over them: `64`, `[1, 7]`, `true`, `"4 * width"`.

use crate::model::shape::ShapeError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value as written: a number, a list, true or false, or a formula.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a whole number, a list, true, false, or a formula such as \"4 * width\""
)]
pub enum Value {
    Truth(bool),
    /// A whole number that is not negative.
    Number(u64),
    /// A formula, or a word such as `"same"`.
    Text(String),
    /// Several values: a size in two directions, a shape, a column of a table.
    List(Vec<Value>),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

/// Height and width.
impl From<(u64, u64)> for Value {
    fn from((height, width): (u64, u64)) -> Self {
        if height == width { height.into() } else { [height, width][..].into() }
    }
}

impl From<&[u64]> for Value {
    fn from(numbers: &[u64]) -> Self {
        Self::List(numbers.iter().copied().map(Self::Number).collect())
    }
}

/// Longest formula in bytes; this also bounds how deep its parentheses nest.
const LONGEST: usize = 200;

/// Operators with their precedence; longer ones come before their prefixes.
const OPERATORS: [(&str, u8); 12] = [
    ("||", 1),
    ("&&", 2),
    ("==", 3),
    ("!=", 3),
    ("<=", 3),
    (">=", 3),
    ("<", 3),
    (">", 3),
    ("+", 4),
    ("-", 4),
    ("*", 5),
    ("/", 5),
];

/// The meaning of names: the value of a name, or dimension `k` of a layer's output for `name[k]`.
pub(super) type Lookup<'a> = &'a dyn Fn(&str, Option<u64>) -> Option<Value>;

/// The value with its formulas evaluated. A single unknown word remains a word, and so does an empty text.
pub(super) fn evaluate(value: &Value, lookup: Lookup<'_>) -> Result<Value, ShapeError> {
    match value {
        Value::Text(text) if text.is_empty() || is_name(text) => {
            Ok(lookup(text, None).unwrap_or_else(|| value.clone()))
        }
        Value::Text(text) => formula(text, lookup),
        Value::List(values) => {
            values.iter().map(|value| evaluate(value, lookup)).collect::<Result<_, _>>().map(Value::List)
        }
        Value::Truth(_) | Value::Number(_) => Ok(value.clone()),
    }
}

/// The text with every `{formula}` replaced by its value; `{{` and `}}` are braces.
pub(super) fn interpolate(text: &str, lookup: Lookup<'_>) -> Result<String, ShapeError> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(place) = rest.find(['{', '}']) {
        filled.push_str(&rest[..place]);
        let brace = &rest[place..=place];
        rest = &rest[place + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            (filled, rest) = (filled + brace, after);
        } else if let Some((inner, after)) = rest.split_once('}').filter(|_| brace == "{") {
            match evaluate(&Value::Text(inner.to_owned()), lookup)? {
                Value::Number(number) => filled.push_str(&number.to_string()),
                Value::Text(word) if word != inner => filled.push_str(&word),
                _ => return Err(unknown(inner)),
            }
            rest = after;
        } else {
            return Err(wrong(text, "has a single brace", "write `{{` and `}}` for braces"));
        }
    }
    Ok(filled + rest)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn formula(text: &str, lookup: Lookup<'_>) -> Result<Value, ShapeError> {
    if text.len() > LONGEST {
        return Err(wrong(
            &text[..text.floor_char_boundary(40)],
            "is too long",
            "use at most 200 characters",
        ));
    }
    let mut parser = Parser { text, rest: text.trim_start(), lookup };
    let value = parser.expression(0)?;
    if parser.rest.is_empty() { Ok(value) } else { Err(parser.unreadable()) }
}

fn wrong(text: &str, reason: &str, remedy: &str) -> ShapeError {
    ShapeError::new(format!("\"{text}\" {reason}"), remedy)
}

fn unknown(name: &str) -> ShapeError {
    ShapeError::new(
        format!("there is no value \"{name}\""),
        "give it in `with`, of the model or of the block",
    )
}

/// Evaluates while it reads, by precedence.
struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    lookup: Lookup<'a>,
}

impl Parser<'_> {
    fn expression(&mut self, least: u8) -> Result<Value, ShapeError> {
        let mut left = self.operand()?;
        while let Some((operator, precedence)) =
            OPERATORS.into_iter().find(|(operator, _)| self.rest.starts_with(operator))
        {
            if precedence < least {
                break;
            }
            self.skip(operator.len());
            let right = self.expression(precedence + 1)?;
            left = self.apply(operator, left, right)?;
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Value, ShapeError> {
        if self.take("(") {
            let value = self.expression(0)?;
            return if self.take(")") { Ok(value) } else { Err(self.unreadable()) };
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &self.rest[..end.unwrap_or(self.rest.len())];
        self.skip(word.len());
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.replace('_', "").parse().map(Value::Number);
            return number.map_err(|_| self.unreadable());
        }
        let index = match self.take("[") {
            false => None,
            true => match self.expression(0)? {
                Value::Number(index) if self.take("]") => Some(index),
                _ => return Err(self.unreadable()),
            },
        };
        match word {
            "" => Err(self.unreadable()),
            "true" | "false" => Ok(Value::Truth(word == "true")),
            _ => (self.lookup)(word, index).ok_or_else(|| match index {
                None => unknown(word),
                Some(index) => wrong(
                    self.text,
                    &format!("asks for dimension {index} of \"{word}\", which does not exist"),
                    "dimensions count from 0; name a layer before this one, or \"input\"",
                ),
            }),
        }
    }

    fn apply(&self, operator: &str, left: Value, right: Value) -> Result<Value, ShapeError> {
        let number = |result: Option<u64>| result.map(Value::Number).ok_or_else(ShapeError::overflow);
        match (operator, left, right) {
            ("==", left, right) => Ok(Value::Truth(left == right)),
            ("!=", left, right) => Ok(Value::Truth(left != right)),
            ("&&", Value::Truth(left), Value::Truth(right)) => Ok(Value::Truth(left && right)),
            ("||", Value::Truth(left), Value::Truth(right)) => Ok(Value::Truth(left || right)),
            ("<", Value::Number(left), Value::Number(right)) => Ok(Value::Truth(left < right)),
            (">", Value::Number(left), Value::Number(right)) => Ok(Value::Truth(left > right)),
            ("<=", Value::Number(left), Value::Number(right)) => Ok(Value::Truth(left <= right)),
            (">=", Value::Number(left), Value::Number(right)) => Ok(Value::Truth(left >= right)),
            ("+", Value::Number(left), Value::Number(right)) => number(left.checked_add(right)),
            ("*", Value::Number(left), Value::Number(right)) => number(left.checked_mul(right)),
            ("-", Value::Number(left), Value::Number(right)) => left
                .checked_sub(right)
                .map(Value::Number)
                .ok_or_else(|| wrong(self.text, "is negative", "values are 0 or more")),
            ("/", Value::Number(left), Value::Number(right)) => left
                .checked_div(right)
                .map(Value::Number)
                .ok_or_else(|| wrong(self.text, "divides by 0", "divide by a number above 0")),
            _ => Err(wrong(self.text, &format!("has no numbers around {operator}"), "check its values")),
        }
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.rest.starts_with(symbol);
        if found {
            self.skip(symbol.len());
        }
        found
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest[length..].trim_start();
    }

    fn unreadable(&self) -> ShapeError {
        wrong(self.text, "is no formula", "write numbers and names with + - * / == != < > <= >= && || ( )")
    }
}
