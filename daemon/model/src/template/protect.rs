//! Keeps what users typed from becoming control tokens on its way through the template.
//!
//! A character that occurs nowhere else is put inside everything that reads like a control token. The template carries
//! it along; after rendering, control tokens are looked for first and the character is taken out after that.

use std::borrow::Cow;

use super::ChatMessage;
use crate::tokenizer::Controls;

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
    pub(super) fn guard(self, typed: &str, controls: &Controls) -> String {
        let mut out = String::with_capacity(typed.len());
        if controls.texts().any(|control| continues(typed, control)) {
            out.push(self.0);
        }
        // Whole control tokens, found in one go over the text.
        let starts = controls.starts_in(typed);
        // And the beginning of one where the text ends.
        let tail = typed.len().saturating_sub(controls.longest());
        let mut from = 0;
        for (at, letter) in typed.char_indices() {
            let whole = starts.binary_search(&at).is_ok();
            let begins = || {
                controls
                    .texts()
                    .any(|control| control.starts_with(&typed[at..]))
            };
            if whole || (at >= tail && begins()) {
                let end = at + letter.len_utf8();
                out.push_str(&typed[from..end]);
                out.push(self.0);
                from = end;
            }
        }
        out.push_str(&typed[from..]);
        out
    }

    /// Takes the marker out again.
    pub(super) fn remove(self, text: &str) -> Cow<'_, str> {
        match text.contains(self.0) {
            true => text.replace(self.0, "").into(),
            false => text.into(),
        }
    }
}

/// Whether text starts with the end of a control token whose beginning lies before it.
fn continues(text: &str, control: &str) -> bool {
    let mut ends = control.char_indices().map(|(at, _)| &control[at..]).skip(1);
    ends.any(|end| text.starts_with(end) || (!text.is_empty() && end.starts_with(text)))
}
