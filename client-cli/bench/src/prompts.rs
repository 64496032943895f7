//! What is asked: eight kinds of text that come with Tandem, or somebody's own.

use serde::Deserialize;

use crate::BenchError;

/// Category of prompts from a file that names none.
pub const UNNAMED: &str = "prompts";

const SHIPPED: [(&str, &str); 8] = [
    ("code", include_str!("../prompts/code.txt")),
    ("json", include_str!("../prompts/json.txt")),
    ("extraction", include_str!("../prompts/extraction.txt")),
    ("edit", include_str!("../prompts/edit.txt")),
    ("summary", include_str!("../prompts/summary.txt")),
    ("maths", include_str!("../prompts/maths.txt")),
    ("story", include_str!("../prompts/story.txt")),
    ("language", include_str!("../prompts/language.txt")),
];

/// A prompt of about 500 tokens, which asks for a long answer.
pub const LONG: &str = include_str!("../prompts/long.txt");

/// One thing to ask.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// What kind of text it asks for.
    #[serde(default = "unnamed")]
    pub category: String,
    /// The text.
    pub prompt: String,
}

fn unnamed() -> String {
    UNNAMED.to_owned()
}

/// Returns the names of the categories that come with Tandem.
pub fn categories() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(category, _)| *category)
}

/// Returns the prompts that come with Tandem, four or more of each category.
#[must_use]
pub fn shipped() -> Vec<Prompt> {
    let all = SHIPPED.iter();
    all.flat_map(|(category, text)| plain(text, category))
        .collect()
}

/// Reads prompts: JSON objects, one a line, with `prompt` and perhaps `category`, where the first line begins with `{`;
/// else plain text, with a line `---` between prompts, or `--- CATEGORY` before those of a category.
///
/// # Errors
/// Names the line that cannot be used; also where there is no prompt at all.
pub fn parse(text: &str) -> Result<Vec<Prompt>, BenchError> {
    let prompts = if text.trim_start().starts_with('{') {
        json_lines(text)?
    } else {
        plain(text, UNNAMED)
    };
    if prompts.is_empty() {
        return Err(BenchError::Nothing("the file has no prompts".to_owned()));
    }
    Ok(prompts)
}

fn json_lines(text: &str) -> Result<Vec<Prompt>, BenchError> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            let failed = |problem: String| BenchError::Prompts {
                line: index + 1,
                problem,
            };
            let prompt: Prompt =
                serde_json::from_str(line).map_err(|error| failed(error.to_string()))?;
            if prompt.prompt.trim().is_empty() || prompt.category.trim().is_empty() {
                return Err(failed("prompt and category must not be empty".to_owned()));
            }
            Ok(prompt)
        })
        .collect()
}

fn plain(text: &str, category: &str) -> Vec<Prompt> {
    let mut prompts = Vec::new();
    let (mut category, mut lines) = (category.to_owned(), Vec::new());
    let mut finish = |category: &str, lines: &mut Vec<&str>| {
        let prompt = lines.join("\n").trim().to_owned();
        lines.clear();
        if !prompt.is_empty() {
            prompts.push(Prompt {
                category: category.to_owned(),
                prompt,
            });
        }
    };
    for line in text.lines() {
        let name = line
            .strip_prefix("---")
            .filter(|rest| rest.is_empty() || rest.starts_with(' '));
        let Some(name) = name else {
            lines.push(line);
            continue;
        };
        finish(&category, &mut lines);
        if !name.trim().is_empty() {
            category = name.trim().to_owned();
        }
    }
    finish(&category, &mut lines);
    prompts
}

/// Takes the first `count` prompts of each category; order and categories stay.
#[must_use]
pub(crate) fn first_of_each(prompts: &[Prompt], count: usize) -> Vec<Prompt> {
    let mut taken: Vec<Prompt> = Vec::new();
    for prompt in prompts {
        let before = taken
            .iter()
            .filter(|other| other.category == prompt.category);
        if before.count() < count {
            taken.push(prompt.clone());
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(prompts: &[Prompt]) -> Vec<(&str, &str)> {
        prompts
            .iter()
            .map(|prompt| (prompt.category.as_str(), prompt.prompt.as_str()))
            .collect()
    }

    #[test]
    fn at_least_four_of_each_category_are_shipped() {
        let shipped = shipped();
        for category in categories() {
            let of_it = shipped.iter().filter(|prompt| prompt.category == category);
            assert!(of_it.count() >= 4, "{category}");
        }
        assert_eq!(first_of_each(&shipped, 1).len(), categories().count());
        let words = LONG.split_whitespace().count();
        assert!(
            (350..450).contains(&words),
            "{words} words are about 500 tokens"
        );
    }

    #[test]
    fn plain_text_is_split_at_its_marks() {
        let prompts =
            parse("one\nline two\n---\n\nsecond\n--- poems\n---- not a mark\n--- \nlast\n---\n")
                .unwrap();
        assert_eq!(
            texts(&prompts),
            [
                (UNNAMED, "one\nline two"),
                (UNNAMED, "second"),
                ("poems", "---- not a mark"),
                ("poems", "last"),
            ]
        );
    }

    #[test]
    fn json_lines_may_leave_out_the_category() {
        let prompts =
            parse("{\"prompt\": \"a\\nb\"}\n\n{\"category\": \"x\", \"prompt\": \"c\"}\n").unwrap();
        assert_eq!(texts(&prompts), [(UNNAMED, "a\nb"), ("x", "c")]);
    }

    #[test]
    fn what_cannot_be_used_is_named_by_its_line() {
        for (text, line) in [
            ("{\"prompt\": \"a\"}\n{\"prompt\": 3}", 2),
            ("{\"prompt\": \"\"}", 1),
            ("{\"prompt\": \"a\", \"kind\": \"b\"}", 1),
        ] {
            match parse(text) {
                Err(BenchError::Prompts { line: found, .. }) => assert_eq!(found, line, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(matches!(parse("---\n \n"), Err(BenchError::Nothing(_))));
    }
}
