//! Objects that are not quite JSON: profilers write `nan` for numbers, and names that are not UTF-8.

/// The object as JSON: bytes that are no UTF-8 become replacement characters, control characters in strings spaces,
/// unknown escapes plain characters, and `nan`, `inf` and their like null.
pub(crate) fn repair(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut repaired = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_string = false;
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                in_string = !in_string;
                repaired.push('"');
            }
            '\\' if in_string => match characters.peek().copied() {
                Some(next @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u')) => {
                    characters.next();
                    repaired.extend(['\\', next]);
                }
                _ => repaired.push_str("\\\\"),
            },
            _ if in_string && character.is_control() => repaired.push(' '),
            '-' if !in_string && characters.peek().is_some_and(char::is_ascii_alphabetic) => {}
            _ if !in_string && character.is_ascii_alphabetic() => {
                let mut word = String::from(character);
                while let Some(next) =
                    characters.next_if(|next| next.is_ascii_alphanumeric() || matches!(next, '.' | '+' | '-'))
                {
                    word.push(next);
                }
                let known = matches!(word.as_str(), "true" | "false" | "null");
                // The exponent of a number is no word.
                let exponent = repaired.ends_with(|before: char| before.is_ascii_digit() || before == '.');
                repaired.push_str(if known || exponent { &word } else { "null" });
            }
            _ => repaired.push(character),
        }
    }
    repaired
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_profilers_write_becomes_json() {
        let text = b"{\"a\": nan, \"b\": -inf, \"c\": 1.5e-3, \"d\": true, \"e\xff\": \"x\ty\\d\\\"\", \"f\": NaN, \"g\": -Infinity}";
        let value: Value = serde_json::from_str(&repair(text)).unwrap();
        assert_eq!(value["a"], Value::Null);
        assert_eq!(value["b"], Value::Null);
        assert_eq!(value["c"], 1.5e-3);
        assert_eq!(value["d"], true);
        assert_eq!(value["e\u{fffd}"], "x y\\d\"");
        assert_eq!(value["g"], Value::Null);
    }

    #[test]
    fn what_is_json_stays_what_it_is() {
        let text = r#"{"a":[1,-2.5e+10,{"b":"nan \\ \" inf"}],"c":null,"d":1E5}"#;
        assert_eq!(repair(text.as_bytes()), text);
    }
}
