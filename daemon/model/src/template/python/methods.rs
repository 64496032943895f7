//! Methods of Python's texts, lists and dictionaries that `minijinja-contrib` does not have, or has without the arguments
//! that templates name.

use minijinja::value::{Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::args::Args;
use super::filters::{self, is_space};

pub(super) fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let ours = match value.kind() {
        ValueKind::String => text(state, value.as_str().unwrap_or_default(), method, args)?,
        ValueKind::Seq => list(value, method, args)?,
        ValueKind::Map => match method {
            "copy" => Some(value.clone()),
            _ => None,
        },
        _ => None,
    };
    match ours {
        Some(result) => Ok(result),
        None => pycompat::unknown_method_callback(state, value, method, args).map_err(|error| {
            if error.kind() == ErrorKind::UnknownMethod && error.detail().is_none() {
                let kind = value.kind();
                return Error::new(
                    ErrorKind::UnknownMethod,
                    format!("{kind} has no method named {method}"),
                );
            }
            error
        }),
    }
}

fn text(state: &State, text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let value = match method {
        "split" | "rsplit" => {
            let mut args = Args::new(args)?;
            let separator: Option<String> = args.next("sep")?;
            let most: Option<i64> = args.next("maxsplit")?;
            args.end()?;
            let most = most.and_then(|most| usize::try_from(most).ok());
            let most = most.unwrap_or(usize::MAX);
            state.consume_fuel(text.len() as u64 / 8)?;
            split(text, separator.as_deref(), most, method == "rsplit")?
        }
        "splitlines" => {
            let mut args = Args::new(args)?;
            let keep = args.flag("keepends")?.unwrap_or(false);
            args.end()?;
            state.consume_fuel(text.len() as u64 / 8)?;
            lines(text, keep)
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let found = match method {
                "partition" => text.split_once(separator),
                _ => text.rsplit_once(separator),
            };
            let parts = match (found, method) {
                (Some((before, after)), _) => [before, separator, after],
                (None, "partition") => [text, "", ""],
                (None, _) => ["", "", text],
            };
            Value::from(Tuple::from(parts.map(Value::from)))
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "index" | "rindex" => {
            let (part,): (&str,) = from_args(args)?;
            let found = match method {
                "index" => text.find(part),
                _ => text.rfind(part),
            };
            let at = found.ok_or_else(|| invalid("substring not found"))?;
            Value::from(text[..at].chars().count())
        }
        "strip" | "lstrip" | "rstrip" => {
            let (letters,): (Option<&str>,) = from_args(args)?;
            let gone = |c: char| letters.map_or_else(|| is_space(c), |letters| letters.contains(c));
            Value::from(match method {
                "strip" => text.trim_matches(gone),
                "lstrip" => text.trim_start_matches(gone),
                _ => text.trim_end_matches(gone),
            })
        }
        "title" => Value::from(filters::title(text)),
        "casefold" => Value::from(text.to_lowercase().replace('ß', "ss").replace('ς', "σ")),
        "swapcase" => {
            let swap = |c: char| -> String {
                match c.is_uppercase() {
                    true => c.to_lowercase().collect(),
                    false => c.to_uppercase().collect(),
                }
            };
            Value::from(text.chars().map(swap).collect::<String>())
        }
        "isdecimal" => Value::from(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())),
        "istitle" => {
            let cased = text.chars().any(|c| c.is_uppercase() || c.is_lowercase());
            Value::from(cased && filters::title(text) == text)
        }
        "isidentifier" => Value::from(is_identifier(text)),
        "isprintable" => Value::from(!text.chars().any(char::is_control)),
        // Python's texts are immutable, so that these are no copies.
        "zfill" | "ljust" | "rjust" | "center" => {
            let (width, fill): (i64, Option<&str>) = from_args(args)?;
            filters::pad(state, text, method, width, fill)?
        }
        "expandtabs" => {
            let mut args = Args::new(args)?;
            let size: i64 = args.next("tabsize")?.unwrap_or(8);
            args.end()?;
            filters::expand_tabs(state, text, size)?
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn list(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "index" => {
            let (item,): (&Value,) = from_args(args)?;
            let mut items = value.try_iter()?;
            let at = items
                .position(|one| one == *item)
                .ok_or_else(|| invalid("the list has no such item"))?;
            Ok(Some(Value::from(at)))
        }
        "copy" => Ok(Some(value.clone())),
        "append" | "extend" | "insert" | "pop" | "remove" | "clear" | "sort" | "reverse" => {
            Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("{method} would change a list, which templates may not"),
            ))
        }
        _ => Ok(None),
    }
}

fn split(
    text: &str,
    separator: Option<&str>,
    most: usize,
    from_right: bool,
) -> Result<Value, Error> {
    let parts: Vec<&str> = match (separator, from_right) {
        (Some(""), _) => return Err(invalid("empty separator")),
        (Some(separator), false) => text.splitn(most.saturating_add(1), separator).collect(),
        (Some(separator), true) => {
            let mut parts: Vec<&str> = text.rsplitn(most.saturating_add(1), separator).collect();
            parts.reverse();
            parts
        }
        (None, _) if most == usize::MAX => text.split(is_space).filter(|p| !p.is_empty()).collect(),
        (None, false) => {
            let mut parts = Vec::new();
            let mut rest = text.trim_start_matches(is_space);
            while !rest.is_empty() {
                match rest.find(is_space).filter(|_| parts.len() < most) {
                    Some(at) => {
                        parts.push(&rest[..at]);
                        rest = rest[at..].trim_start_matches(is_space);
                    }
                    None => {
                        parts.push(rest);
                        rest = "";
                    }
                }
            }
            parts
        }
        (None, true) => {
            let mut parts = Vec::new();
            let mut rest = text.trim_end_matches(is_space);
            while !rest.is_empty() {
                let cut = rest.char_indices().rev().find(|(_, c)| is_space(*c));
                match cut.filter(|_| parts.len() < most) {
                    Some((at, space)) => {
                        parts.push(&rest[at + space.len_utf8()..]);
                        rest = rest[..at].trim_end_matches(is_space);
                    }
                    None => {
                        parts.push(rest);
                        rest = "";
                    }
                }
            }
            parts.reverse();
            parts
        }
    };
    Ok(parts.into_iter().map(Value::from).collect())
}

fn lines(text: &str, keep: bool) -> Value {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| {
            matches!(
                c,
                '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                    ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
            )
        });
        let Some(end) = end else {
            lines.push(Value::from(rest));
            break;
        };
        let after = match rest[end..].strip_prefix("\r\n") {
            Some(after) => after,
            None => {
                let mut letters = rest[end..].chars();
                letters.next();
                letters.as_str()
            }
        };
        let whole = &rest[..rest.len() - after.len()];
        lines.push(Value::from(if keep { whole } else { &rest[..end] }));
        rest = after;
    }
    Value::from(lines)
}

fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_')
        && letters.all(|c| c.is_alphanumeric() || c == '_')
}

fn invalid(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.into())
}
