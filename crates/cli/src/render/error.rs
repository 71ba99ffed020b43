//! One error: the reason, the place with a caret, the remedy.

use super::Screen;
use crate::words;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use stepcast_core::fault::{Excerpt, Fault};

/// Longest text; longer ones, such as a name of a megabyte, are cut.
const LONGEST: usize = 600;

/// Columns before a line of text: those of a margin as wide as line numbers get, and of "= help: ".
const LABEL: u16 = 14;

/// The fault of a scenario, or of a flag if `flag` knows the one that made its place.
pub(crate) fn in_scenario<'a>(mut fault: Fault, flag: impl Fn(&str) -> Option<&'a str>) -> Fault {
    let (key, shown) = (fault.key.to_string(), fault.excerpt().is_some());
    if !shown && !key.is_empty() {
        fault.reason = format!("{key}: {}", fault.reason);
    }
    if let Some(place) = fault.place.as_mut().filter(|_| !shown)
        && let Some(flag) = flag(&place.origin)
    {
        place.origin = flag.to_owned();
    }
    fault
}

/// The error as text for standard error, its last line ended.
pub(crate) fn render(fault: &Fault, screen: &Screen) -> String {
    let renderer = if screen.colours { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(usize::from(screen.width));
    renderer.render(&[group(fault, screen)]) + "\n"
}

fn group<'a>(fault: &'a Fault, screen: &Screen) -> Group<'a> {
    let mut group = Group::with_title(Level::ERROR.primary_title(fitting(&fault.reason, screen)));
    if let Some(place) = &fault.place {
        let origin = short(&place.origin);
        group = match &place.excerpt {
            Some(Excerpt { text, span }) => group.element(
                Snippet::source(&**text).path(origin).annotation(AnnotationKind::Primary.span(span.clone())),
            ),
            None => group.element(Origin::path(origin)),
        };
    }
    if fault.remedy.is_empty() {
        return group;
    }
    group.element(Level::HELP.message(fitting(&fault.remedy.worded(words::remedy), screen)))
}

/// Short enough, and in lines that fit a terminal; programs that read it get one line.
fn fitting(text: &str, screen: &Screen) -> String {
    let text = short(text);
    if !screen.terminal {
        return text;
    }
    let room = Screen { width: screen.width - LABEL, ..*screen };
    room.paragraph(0, &text).trim_end().to_owned()
}

/// At most [`LONGEST`] characters, none of them a control character.
fn short(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    if text.chars().count() <= LONGEST {
        return text.chars().map(plain).collect();
    }
    text.chars().take(LONGEST).map(plain).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_fit_a_terminal_and_are_one_line_for_programs() {
        let words = "a reason of many words ".repeat(12);
        let error = Fault::new(words.clone(), words);
        let on = |terminal| render(&error, &Screen { width: 60, colours: false, terminal });
        assert!(
            on(true).lines().count() > 8 && on(true).lines().all(|line| line.chars().count() <= 60),
            "{}",
            on(true)
        );
        assert_eq!(on(false).lines().filter(|line| line.contains("words")).count(), 2);
    }
}
