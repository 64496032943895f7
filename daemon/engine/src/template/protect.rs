//! Keeps what users typed from becoming control tokens on its way through the template.
//!
//! A character that occurs nowhere else is put inside everything that reads like a control token. The template carries
//! it along; after rendering, control tokens are looked for first and the character is taken out after that.

use std::collections::HashSet;

use super::ChatMessage;

/// The Basic Multilingual Plane's private-use characters.
const CANDIDATES: std::ops::RangeInclusive<char> = '\u{e000}'..='\u{f8ff}';

/// A character that no message contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marker(char);

impl Marker {
    pub(super) const CANDIDATES: usize = 0xf8ff - 0xe000 + 1;

    /// Picks a character that occurs neither in the messages nor in the template.
    pub(super) fn absent_from(messages: &[ChatMessage], template: &str) -> Option<Self> {
        let typed = messages.iter().flat_map(|m| m.content.chars());
        let mut used: Vec<char> = typed
            .chain(template.chars())
            .filter(|c| CANDIDATES.contains(c))
            .collect();
        used.sort_unstable();
        used.dedup();
        CANDIDATES
            .clone()
            .zip(used.iter().map(Some).chain(std::iter::repeat(None)))
            .find(|(candidate, used)| *used != Some(candidate))
            .map(|(candidate, _)| Self(candidate))
    }

    /// Puts the marker behind the first character of everything that reads like a control token, overlaps included, and
    /// at either end where the template's text beside it could complete one.
    pub(super) fn guard(self, typed: &str, controls: &[&str]) -> String {
        let mut out = String::with_capacity(typed.len());
        if controls.iter().any(|control| continues(typed, control)) {
            out.push(self.0);
        }
        let starts: HashSet<char> = controls.iter().filter_map(|c| c.chars().next()).collect();
        for (at, letter) in typed.char_indices() {
            out.push(letter);
            let rest = &typed[at..];
            // Either the whole control token, or its beginning where the text ends.
            let spells = |control: &&str| rest.starts_with(*control) || control.starts_with(rest);
            if starts.contains(&letter) && controls.iter().any(spells) {
                out.push(self.0);
            }
        }
        out
    }

    /// Takes the marker out again.
    pub(super) fn remove(self, text: &str) -> String {
        text.replace(self.0, "")
    }
}

/// Whether text starts with the end of a control token whose beginning lies before it.
fn continues(text: &str, control: &str) -> bool {
    let mut ends = control.char_indices().map(|(at, _)| &control[at..]).skip(1);
    ends.any(|end| text.starts_with(end) || (!text.is_empty() && end.starts_with(text)))
}
