//! The key at a place of a text, for errors that know only the place.

use stepcast_core::text;
use toml_edit::{Document, Item, TableLike, Value};

/// The key or value at a line and column, both from 1: "cluster.workers.0.count".
pub(crate) fn key_at(text: &str, line: usize, column: usize) -> Option<String> {
    // The editor bounds the levels of a text less than the parser of scenarios does.
    text::parse::<toml::Table>(text).ok()?;
    let document = Document::parse(text).ok()?;
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let before = text.get(start..)?.chars().take(column.checked_sub(1)?).map(char::len_utf8);
    find(document.as_table(), start + before.sum::<usize>())
}

fn find(table: &dyn TableLike, offset: usize) -> Option<String> {
    table.iter().find_map(|(name, item)| {
        let nested =
            |(place, table): (usize, &dyn TableLike)| find(table, offset).map(|key| format!("{place}.{key}"));
        let inner = match item {
            Item::ArrayOfTables(tables) => {
                tables.iter().map(|table| table as &dyn TableLike).enumerate().find_map(nested)
            }
            Item::Value(Value::Array(items)) => {
                let tables = items.iter().enumerate().filter_map(|(place, item)| {
                    item.as_inline_table().map(|table| (place, table as &dyn TableLike))
                });
                tables.into_iter().find_map(nested)
            }
            item => item.as_table_like().and_then(|table| find(table, offset)),
        };
        if let Some(inner) = inner {
            return Some(format!("{name}.{inner}"));
        }
        let key = table.get_key_value(name).and_then(|(key, _)| key.span());
        let value = item.as_value().and_then(Value::span);
        let here = [key, value].into_iter().flatten().any(|span| (span.start..=span.end).contains(&offset));
        here.then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_keys() {
        let text = "# é\n[model]\nzoo = \"vgg16\"\n[[cluster.workers]]\ncount = 2\n[[cluster.workers]]\n\
                    device = { base = \"é\", efficiency = 2 }\n[cluster]\nnetwork = { bandwidth = \"fast\" }\n";
        let at = |line, column| key_at(text, line, column).unwrap_or_default();
        assert_eq!(at(3, 7), "model.zoo");
        assert_eq!(at(5, 1), "cluster.workers.0.count");
        assert_eq!(at(7, 37), "cluster.workers.1.device.efficiency");
        assert_eq!(at(9, 25), "cluster.network.bandwidth");
        assert_eq!(key_at(text, 1, 1), None);
        assert_eq!(key_at(text, 100, 100), None);
        assert_eq!(key_at("[", 1, 1), None);
    }
}
