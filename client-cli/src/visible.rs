//! Text that a terminal cannot be steered by. What comes from files, models or the network may hold anything: sequences
//! that rename the window, move the cursor, write to the clipboard, or show words in another order than they have.
//!
//! Everything is decided character by character, so that a sequence that comes in pieces is no way around it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Shows what a terminal would obey: `\x1b` for ASCII control characters, `\u{202e}` for others. Ends of lines and tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// Shows what would leave the line as well: for a cell of a table, a name in a sentence, or a message beside a bar.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// As [`visible`] of bytes that may be anything; those that are not UTF-8 become `\xff`.
pub(crate) fn visible_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        shown.push_str(&visible(part.valid()));
        for byte in part.invalid() {
            write!(shown, "\\x{byte:02x}").expect("writing to a String does not fail");
        }
    }
    shown
}

/// Writes what a terminal would obey as JSON can: the value stays the same. Such characters occur in strings only.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hostile(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(shown, "\\u{unit:04x}").expect("writing to a String does not fail");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hostile(c) && !stays(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_hostile(c) || stays(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            c if c.is_ascii() => {
                write!(shown, "\\x{:02x}", u32::from(c)).expect("writing to a String does not fail")
            }
            c => write!(shown, "\\u{{{:x}}}", u32::from(c))
                .expect("writing to a String does not fail"),
        }
    }
    Cow::Owned(shown)
}

/// Says whether a terminal may do something else with a character than show it.
fn is_hostile(c: char) -> bool {
    // C0, DEL and C1, which terminals take for the same sequences in one character.
    c.is_control()
        // Words in another order than they have: embeddings, overrides, isolates.
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        // Lines and paragraphs that end where no line does.
        || matches!(c, '\u{2028}' | '\u{2029}')
        // Text that nobody sees.
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        for (text, shown) in [
            (
                "plain, ä, 漢, 👩‍🔬\tand\nlines",
                "plain, ä, 漢, 👩‍🔬\tand\nlines",
            ),
            ("\x1b]0;pwn\x07", "\\x1b]0;pwn\\x07"),
            ("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"),
            ("\u{9b}31m\u{9d}0;x\u{9c}", "\\u{9b}31m\\u{9d}0;x\\u{9c}"),
            ("abc\rdef\x08\x00\x7f", "abc\\rdef\\x08\\x00\\x7f"),
            ("user\u{202e}nimda", "user\\u{202e}nimda"),
            ("a\u{2066}b\u{2028}c", "a\\u{2066}b\\u{2028}c"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(one_line("a\nb\tc"), "a\\nb\\tc");
        assert_eq!(visible_bytes(b"ok\xff\x1b[m\xc3\xa4"), "ok\\xff\\x1b[mä");
    }

    #[test]
    fn a_sequence_in_pieces_is_shown_like_a_whole_one() {
        let text = "a\x1b]8;;http://x\x1b\\b\u{9b}1m";
        let pieces: String = text
            .chars()
            .map(|c| visible(&c.to_string()).into_owned())
            .collect();
        assert_eq!(pieces, visible(text));
    }

    #[test]
    fn no_character_gets_through_that_could_begin_a_sequence() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = c.to_string();
            for shown in [visible(&text), json(&text)] {
                let left = shown.chars().filter(|c| c.is_control());
                assert!(left.into_iter().all(|c| "\n\t".contains(c)), "{c:?}");
            }
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({ "name": "\u{9b}1m\x1b]0;\u{202e}\u{e0041}\x7f ä\n" });
        let text = value.to_string();
        let shown = json(&text);
        assert!(!shown.chars().any(is_hostile), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, value);
    }
}
