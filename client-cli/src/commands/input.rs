//! Text from arguments, files and standard input.

use std::io::{self, IsTerminal, Read};
use std::path::Path;

use crate::failure::Failure;

/// Reads standard input to its end; `None` where it is a terminal.
pub(super) fn piped() -> Result<Option<String>, Failure> {
    if io::stdin().is_terminal() {
        Ok(None)
    } else {
        standard_input().map(Some)
    }
}

/// Reads a file, or standard input for `-`.
pub(super) fn file(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        return standard_input();
    }
    std::fs::read_to_string(path)
        .map_err(|source| Failure::io(format!("read `{}`", path.display()), source))
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|source| Failure::io("read standard input", source))?;
    Ok(text)
}

/// Joins words and a text with a blank line; either may be missing.
pub(super) fn join(words: &[String], text: Option<String>) -> String {
    let words = words.join(" ");
    match text.filter(|text| !text.trim().is_empty()) {
        None => words,
        Some(text) if words.is_empty() => text,
        Some(text) => format!("{words}\n\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_text_are_joined_with_a_blank_line() {
        let words = ["sum".to_owned(), "up:".to_owned()];
        assert_eq!(join(&words, Some("a\nb\n".to_owned())), "sum up:\n\na\nb\n");
        assert_eq!(join(&words, Some("\n".to_owned())), "sum up:");
        assert_eq!(join(&words, None), "sum up:");
        assert_eq!(join(&[], Some(" code\n".to_owned())), " code\n");
        assert_eq!(join(&[], None), "");
    }
}
