//! Which template a model file means, and its text as our engine reads it.

use super::TemplateError;
use crate::gguf::Gguf;

/// Longer templates than any model has.
const LONGEST: usize = 1 << 20;
const KEY: &str = "tokenizer.chat_template";

/// Returns the template that a file has for conversations: the plain one, else the one that is called `default`.
pub(super) fn of_file(gguf: &Gguf) -> Result<&str, TemplateError> {
    if let Some(source) = gguf.optional_str(KEY)? {
        return Ok(source);
    }
    if let Some(source) = gguf.optional_str("tokenizer.chat_template.default")? {
        return Ok(source);
    }
    // A file may list the names of its templates, and hold each under a key of its own.
    match gguf.optional_strings("tokenizer.chat_templates")? {
        Some(names) if !names.is_empty() => Err(TemplateError::NoDefault {
            names: names
                .iter()
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect::<Vec<_>>()
                .join(", "),
        }),
        _ => Err(TemplateError::Missing),
    }
}

/// Refuses a template that is too long to be one, and makes blocks of a scope of their own of what `transformers` calls
/// `generation`: it marks what the assistant said, for training, and prints what is in it.
pub(super) fn readable(source: &str) -> Result<String, TemplateError> {
    if source.len() > LONGEST {
        return Err(TemplateError::TooLong {
            bytes: source.len(),
            limit: LONGEST,
        });
    }
    // Jinja reads every kind of line end as this one.
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match rest.as_bytes().get(1) {
            Some(b'#') => end(rest, "#}"),
            Some(b'{') => expression(rest, "}}"),
            Some(b'%') => {
                let length = expression(rest, "%}");
                let (tag, word) = (&rest[..length], name(&rest[..length]));
                if word == "raw" {
                    length + raw(&rest[length..])
                } else {
                    let other = match word {
                        "generation" => "with",
                        "endgeneration" => "endwith",
                        other => other,
                    };
                    out.push_str(&tag.replacen(word, other, 1));
                    rest = &rest[length..];
                    continue;
                }
            }
            _ => 1,
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Length up to and including `close`; of everything where there is none.
fn end(text: &str, close: &str) -> usize {
    text.find(close).map_or(text.len(), |at| at + close.len())
}

/// As [`end`], where strings may spell `close`.
fn expression(text: &str, close: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if text[at..].starts_with(close) => return at + close.len(),
            None => {}
        }
    }
    text.len()
}

/// Length of what a `raw` block holds, its end included.
fn raw(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%") {
        let length = end(&text[from + at..], "%}");
        let tag = &text[from + at..from + at + length];
        from += at + length;
        if name(tag) == "endraw" {
            return from;
        }
    }
    text.len()
}

/// The first word of a tag.
fn name(tag: &str) -> &str {
    let inner = tag[2..].trim_start_matches(['-', '+']).trim_start();
    let end = inner
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(inner.len());
    &inner[..end]
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn only_tags_change() {
        let same = |text: &str| assert_eq!(readable(text).expect("short"), text);
        same("{{ '{% generation %}' }} generation {# {% generation %} #}");
        same("{% raw %}{% generation %}{%- endraw %}{{ x");
        same("{% set generation = 1 %}{{ generation }}{% if 'endgeneration' %}");
        same("{% set a = \"\\\"{% generation %}\" %}{");
        assert_eq!(
            readable("a\n{%- generation -%}{{ x }}{%+endgeneration%}").expect("short"),
            "a\n{%- with -%}{{ x }}{%+endwith%}"
        );
        assert!(readable(&" ".repeat(2 << 20)).is_err());
    }
}
