//! The flags of a shell script or of a list of arguments.
//!
//! Variables, arrays and sums of numbers are followed in the order in which they are written. Nothing is executed:
//! both branches of an `if` count, and the output of commands is unknown.

use super::keys::Keys;
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Stands for a value that only running the script would give.
const UNKNOWN: char = '\u{fffd}';

/// Deepest nesting of expansions.
const DEEPEST: usize = 16;

/// Characters of all expanded variables together: those of a script are far fewer.
const MOST_EXPANDED: usize = 1 << 24;

/// All flags with their first values, `true` for those without; `-N 4` is `-N`. Lines of `#SBATCH` count.
pub(super) fn flags(text: &str) -> Keys {
    let mut lexer = Lexer { variables: BTreeMap::new(), words: Vec::new(), left: Cell::new(MOST_EXPANDED) };
    lexer.read(text);
    let mut keys = Keys::default();
    let mut words = lexer.words.iter().peekable();
    while let Some(word) = words.next() {
        let named = |word: &&str| is_flag(word) && (word.starts_with("--") || *word == "-N");
        let Some(flag) = word.as_deref().filter(named) else { continue };
        if let Some((name, value)) = flag.split_once('=') {
            keys.set(name.replace('_', "-"), Value::String(value.to_owned()));
            continue;
        }
        let name = flag.replace('_', "-");
        let mut value = Value::Bool(true);
        while let Some(Some(next)) =
            words.peek().filter(|next| next.as_deref().is_some_and(|own| !is_flag(own)))
        {
            value = match value {
                Value::String(before) => Value::String(format!("{before} {next}")),
                _ => Value::String(next.clone()),
            };
            words.next();
            if name != LIST {
                break;
            }
        }
        keys.set(name, value);
    }
    keys
}

/// The flag whose value is all words behind it.
const LIST: &str = "--recompute-modules";

/// Whether the text of a value was not known.
pub(super) fn is_unknown(value: &str) -> bool {
    value.contains(UNKNOWN)
}

fn is_flag(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

struct Lexer {
    variables: BTreeMap<String, String>,
    /// Words; none where a command or a list ends.
    words: Vec<Option<String>>,
    /// Remaining part of [`MOST_EXPANDED`].
    left: Cell<usize>,
}

impl Lexer {
    fn read(&mut self, text: &str) {
        let mut word: Option<String> = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some('\r') => drop(chars.next_if_eq(&'\n')),
                    Some(escaped) => word.get_or_insert_default().push(escaped),
                },
                '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
                '"' => {
                    let mut quoted = String::new();
                    while let Some(c) = chars.next().filter(|c| *c != '"') {
                        match c {
                            '\\' => quoted.extend(chars.next().filter(|c| *c != '\n')),
                            '$' => quoted += &self.expanded(&mut chars, 0),
                            c => quoted.push(c),
                        }
                    }
                    word.get_or_insert_default().push_str(&quoted);
                }
                '#' if word.is_none() => {
                    let line: String = chars.by_ref().take_while(|c| *c != '\n').collect();
                    self.end();
                    if let Some(scheduler) = line.strip_prefix("SBATCH ") {
                        self.words.extend(scheduler.split_whitespace().map(|word| Some(word.to_owned())));
                        self.end();
                    }
                }
                '$' => {
                    // Unquoted, a value of several words is several words.
                    let value = self.expanded(&mut chars, 0);
                    let mut parts = value.split_whitespace();
                    word.get_or_insert_default().push_str(parts.next().unwrap_or_default());
                    for part in parts {
                        self.push(&mut word);
                        word = Some(part.to_owned());
                    }
                }
                '`' => {
                    chars.by_ref().take_while(|c| *c != '`').for_each(drop);
                    word.get_or_insert_default().push(UNKNOWN);
                }
                // Lists of arguments may have one word on each line, so a line end does not end a command.
                c if c.is_whitespace() => self.push(&mut word),
                ';' | '&' | '|' | '(' | ')' | '<' | '>' => {
                    self.push(&mut word);
                    self.end();
                }
                c => word.get_or_insert_default().push(c),
            }
        }
        self.push(&mut word);
    }

    fn end(&mut self) {
        if self.words.last().is_some_and(Option::is_some) {
            self.words.push(None);
        }
    }

    /// Ends a word: an assignment is remembered, and its flags count.
    fn push(&mut self, word: &mut Option<String>) {
        let Some(word) = word.take() else { return };
        let assigned = word.split_once('=').filter(|(name, _)| {
            let name = name.trim_end_matches('+');
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        match assigned {
            Some((name, value)) => {
                if value.contains("--") {
                    self.words.extend(value.split_whitespace().map(|word| Some(word.to_owned())));
                    self.end();
                }
                self.variables.insert(name.trim_end_matches('+').to_owned(), value.to_owned());
            }
            // An element of a list may have a flag and its value.
            None if word.starts_with("--") => {
                self.words.extend(word.split_whitespace().map(|word| Some(word.to_owned())));
            }
            None if !word.is_empty() => self.words.push(Some(word)),
            None => {}
        }
    }

    /// The value of a variable, unless too much has been expanded.
    fn value(&self, name: &str) -> Option<String> {
        let value = self.variables.get(name)?;
        let left = self.left.get().checked_sub(value.len())?;
        self.left.set(left);
        Some(value.clone())
    }

    /// The value of the expression after a dollar sign.
    fn expanded(&self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>, depth: usize) -> String {
        let unknown = || UNKNOWN.to_string();
        match chars.peek() {
            Some('{') => {
                chars.next();
                let inner: String = bracketed(chars, '{', '}');
                let end =
                    inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
                let (name, rest) = inner.split_at(end);
                if rest.starts_with('[') {
                    // An array: its elements have been read where they are written.
                    return String::new();
                }
                let usual = rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'));
                let usual = usual.or_else(|| rest.strip_prefix(":=")).unwrap_or_default();
                match self.value(name) {
                    Some(value) => value,
                    None if usual.is_empty() || depth > DEEPEST => unknown(),
                    None => self.text(usual, depth + 1),
                }
            }
            Some('(') => {
                chars.next();
                let inner = bracketed(chars, '(', ')');
                let sum = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
                sum.and_then(|sum| self.number(sum, depth)).map_or_else(unknown, |number| number.to_string())
            }
            Some(c) if c.is_ascii_alphabetic() || *c == '_' => {
                let mut name = String::new();
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                self.value(&name).unwrap_or_else(unknown)
            }
            _ => {
                chars.next();
                unknown()
            }
        }
    }

    /// A text with its variables.
    fn text(&self, text: &str, depth: usize) -> String {
        let mut found = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '$' => found += &self.expanded(&mut chars, depth),
                '"' => {}
                c => found.push(c),
            }
        }
        found
    }

    /// Products, quotients, sums and differences of numbers, from left to right with the usual precedence.
    fn number(&self, text: &str, depth: usize) -> Option<i64> {
        if depth > DEEPEST {
            return None;
        }
        let text = self.text(text, depth + 1);
        let mut sum: i64 = 0;
        for (sign, term) in signed(&text, ['+', '-']) {
            let mut product: i64 = 1;
            for (operator, factor) in signed(term, ['*', '/']) {
                let factor = factor.trim();
                let value = match factor.parse::<i64>() {
                    Ok(value) => value,
                    Err(_) => self.variables.get(factor)?.trim().parse().ok()?,
                };
                product = match operator {
                    '/' => product.checked_div(value)?,
                    _ => product.checked_mul(value)?,
                };
            }
            sum = if sign == '-' { sum.checked_sub(product)? } else { sum.checked_add(product)? };
        }
        Some(sum)
    }
}

/// Parts between operators, each with the operator before it.
fn signed(text: &str, operators: [char; 2]) -> Vec<(char, &str)> {
    let mut parts = Vec::new();
    let (mut operator, mut start) = (' ', 0);
    for (at, c) in text.char_indices().filter(|(_, c)| operators.contains(c)) {
        parts.push((operator, &text[start..at]));
        (operator, start) = (c, at + 1);
    }
    parts.push((operator, &text[start..]));
    parts
}

/// The text up to the closing bracket of one that is open.
fn bracketed(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, open: char, close: char) -> String {
    let (mut inner, mut level) = (String::new(), 1);
    for c in chars {
        level += i32::from(c == open) - i32::from(c == close);
        if level == 0 {
            break;
        }
        inner.push(c);
    }
    inner
}
