//! Widths of text, and text cut to a width.
//!
//! The reader's font is not known, so widths are those of a wide one: text that fits in it fits in most fonts.

/// Sizes of text in pixels, by class.
fn size(class: &str) -> f64 {
    let has = |name: &str| class.split(' ').any(|class| class == name);
    if has("title") {
        15.0
    } else if has("small") {
        10.0
    } else {
        12.0
    }
}

/// How much wider bold letters are.
fn weight(class: &str) -> f64 {
    if class.split(' ').any(|class| class == "title" || class == "strong") { 1.12 } else { 1.0 }
}

/// Width of a character, in sizes of its font.
fn of(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.31,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 0.95,
        c if c.is_ascii_uppercase() => 0.72,
        c if c.is_ascii() => 0.6,
        'µ' | '×' | '·' | '–' | '−' => 0.62,
        _ => 1.05,
    }
}

/// Width of `words` in pixels, in the font of `class`.
pub(crate) fn width(words: &str, class: &str) -> f64 {
    words.chars().filter(|c| !c.is_control()).map(of).sum::<f64>() * size(class) * weight(class)
}

/// Heights above and below the base line.
#[cfg(test)]
pub(crate) fn heights(class: &str) -> (f64, f64) {
    (0.75 * size(class), 0.22 * size(class))
}

/// `words`, ended by "…" where there is no room for all of them; nothing where not even one letter fits.
pub(crate) fn fitted(words: &str, class: &str, room: f64) -> String {
    if width(words, class) <= room {
        return words.to_owned();
    }
    let room = room - width("…", class);
    let mut used = 0.0;
    let kept: String = words
        .chars()
        .filter(|c| !c.is_control())
        .take_while(|&c| {
            used += of(c) * size(class) * weight(class);
            used <= room
        })
        .collect();
    let kept = kept.trim_end();
    if kept.is_empty() { String::new() } else { format!("{kept}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_to_their_room() {
        assert_eq!(fitted("resnet50", "", 100.0), "resnet50");
        assert_eq!(fitted("resnet50", "", 40.0), "resn…");
        assert_eq!(fitted("resnet50", "", 10.0), "");
        assert_eq!(fitted("", "", 0.0), "");
        for room in 0..200 {
            let room = f64::from(room);
            assert!(width(&fitted("cluster.network.bandwidth", "small", room), "small") <= room);
        }
        assert!(width("words", "title") > width("words", "") && width("words", "") > width("words", "small"));
    }
}
