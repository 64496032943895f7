//! Filters of Jinja's standard library that our engine does not have.

use minijinja::value::{Kwargs, Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::args::Args;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("dictsort", dict_sort);
    environment.add_filter("escape", escaped);
    environment.add_filter("e", escaped);
    environment.add_filter("indent", indent);
    environment.add_filter("trim", |text: &Value, letters: Option<String>| {
        let text = text.to_string();
        match letters {
            Some(letters) => text.trim_matches(|c| letters.contains(c)).to_owned(),
            None => text.trim_matches(is_space).to_owned(),
        }
    });
    environment.add_filter(
        "center",
        |state: &State, text: &Value, width: Option<i64>| {
            pad(
                state,
                &text.to_string(),
                "center",
                width.unwrap_or(80),
                None,
            )
        },
    );
    environment.add_filter("filesizeformat", |bytes: &Value, binary: Option<bool>| {
        file_size(bytes, binary.unwrap_or(false))
    });
    environment.add_filter("forceescape", |text: &Value| escape(&text.to_string()));
    environment.add_filter("random", |values: &Value| {
        // Templates that choose at random would make every text irreproducible.
        Ok::<_, Error>(values.try_iter()?.next().unwrap_or(Value::UNDEFINED))
    });
    environment.add_filter("striptags", |text: &Value| strip_tags(&text.to_string()));
    environment.add_filter("truncate", truncate);
    environment.add_filter("urlencode", url_encode);
    environment.add_filter("wordcount", |text: &Value| {
        let text = text.to_string();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.filter(|word| !word.is_empty()).count()
    });
    environment.add_filter("wordwrap", word_wrap);
    environment.add_filter("xmlattr", xml_attributes);
}

/// Python also counts the four separators of information.
pub(super) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

fn default(value: &Value, places: Rest<Value>, names: Kwargs) -> Result<Value, Error> {
    let mut args = Args::of(places, names);
    let other: Option<Value> = args.next("default_value")?;
    let boolean = args.flag("boolean")?.unwrap_or(false);
    args.end()?;
    if value.is_undefined() || (boolean && !value.is_true()) {
        return Ok(other.unwrap_or_else(|| Value::from("")));
    }
    Ok(value.clone())
}

/// The pairs of a mapping, sorted by their keys or values, texts without regard to case unless asked for.
fn dict_sort(
    state: &State,
    value: &Value,
    places: Rest<Value>,
    names: Kwargs,
) -> Result<Value, Error> {
    let mut args = Args::of(places, names);
    let cased = args.flag("case_sensitive")?.unwrap_or(false);
    let by: String = args.next("by")?.unwrap_or_else(|| "key".to_owned());
    let reverse = args.flag("reverse")?.unwrap_or(false);
    args.end()?;
    if value.kind() != ValueKind::Map {
        return Err(invalid(format!(
            "dictsort sorts mappings, not {}",
            value.kind()
        )));
    }
    let mut pairs = Vec::new();
    for key in value.try_iter()?.checked() {
        let key = key?;
        let item = value.get_item(&key)?;
        let sorted_by = match by.as_str() {
            "key" => key.clone(),
            "value" => item.clone(),
            _ => return Err(invalid("dictsort sorts by 'key' or by 'value'")),
        };
        let sorted_by = match sorted_by.as_str().filter(|_| !cased) {
            Some(text) => Value::from(text.to_lowercase()),
            None => sorted_by,
        };
        pairs.push((sorted_by, Value::from(Tuple::from([key, item]))));
    }
    state.consume_fuel(pairs.len() as u64 * 16)?;
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    if reverse {
        pairs.reverse();
    }
    Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
}

/// Indents every line but the first, by so many spaces or by a text.
fn indent(
    state: &State,
    text: &Value,
    places: Rest<Value>,
    names: Kwargs,
) -> Result<String, Error> {
    let mut args = Args::of(places, names);
    let width: Option<Value> = args.next("width")?;
    let first = args.flag("first")?.unwrap_or(false);
    let blank = args.flag("blank")?.unwrap_or(false);
    args.end()?;
    let unit = match &width {
        Some(width) => match width.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(width.clone())?.min(1 << 10)),
        },
        None => " ".repeat(4),
    };
    let text = text.to_string();
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.split('\n').enumerate() {
        state.consume_fuel(1 + unit.len() as u64 / 64)?;
        if at > 0 {
            out.push('\n');
        }
        let indented = if at == 0 {
            first
        } else {
            blank || !line.is_empty()
        };
        if indented {
            out.push_str(&unit);
        }
        out.push_str(line);
    }
    Ok(out)
}

fn escaped(value: &Value) -> Value {
    match value.is_safe() {
        true => value.clone(),
        false => Value::from_safe_string(escape(&value.to_string())),
    }
}

/// Each word with a capital, where whatever is no letter ends a word, as Python has it.
pub(super) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        match inside {
            true => out.extend(letter.to_lowercase()),
            false => out.extend(letter.to_uppercase()),
        }
        inside = letter.is_alphabetic();
    }
    out
}

/// `ljust`, `rjust`, `center` and `zfill`, with widths in characters.
pub(super) fn pad(
    state: &State,
    text: &str,
    method: &str,
    width: i64,
    fill: Option<&str>,
) -> Result<Value, Error> {
    let length = text.chars().count();
    let missing = usize::try_from(width).unwrap_or(0).saturating_sub(length);
    state.consume_fuel(missing as u64 / 16)?;
    let mut letters = fill.unwrap_or(" ").chars();
    let (Some(fill), None) = (letters.next(), letters.next()) else {
        return Err(invalid(
            "the fill character must be exactly one character long",
        ));
    };
    let fill = |count: usize| String::from(fill).repeat(count);
    let padded = match method {
        "ljust" => format!("{text}{}", fill(missing)),
        "rjust" => format!("{}{text}", fill(missing)),
        "zfill" => {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
            format!("{sign}{}{digits}", "0".repeat(missing))
        }
        // Where the rest is odd, Python puts the larger half to the left of an even width's text.
        _ => {
            let wide = usize::try_from(width).unwrap_or(0);
            let left = missing / 2 + (missing & wide & 1);
            format!("{}{text}{}", fill(left), fill(missing - left))
        }
    };
    Ok(Value::from(padded))
}

pub(super) fn expand_tabs(state: &State, text: &str, size: i64) -> Result<Value, Error> {
    let size = usize::try_from(size).unwrap_or(0).min(1 << 10);
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for letter in text.chars() {
        match letter {
            '\t' if size > 0 => {
                let spaces = size - column % size;
                state.consume_fuel(1 + spaces as u64 / 64)?;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\t' => {}
            letter => {
                column = if matches!(letter, '\n' | '\r') {
                    0
                } else {
                    column + 1
                };
                out.push(letter);
            }
        }
    }
    Ok(Value::from(out))
}

fn file_size(bytes: &Value, binary: bool) -> Result<String, Error> {
    let bytes = f64::try_from(bytes.clone())?;
    let (base, units) = match binary {
        true => (
            1024.0,
            ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"],
        ),
        false => (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]),
    };
    if bytes == 1.0 {
        return Ok("1 Byte".to_owned());
    }
    if bytes < base {
        return Ok(format!("{} Bytes", bytes.trunc()));
    }
    let mut scaled = bytes;
    let mut unit = "";
    for name in units {
        scaled /= base;
        unit = name;
        if scaled < base {
            break;
        }
    }
    Ok(format!("{scaled:.1} {unit}"))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

/// Takes out comments and tags, and makes one space of each run of white space.
fn strip_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (open, close) = match rest[at..].starts_with("<!--") {
            true => ("<!--", "-->"),
            false => ("<", ">"),
        };
        let Some(end) = rest[at + open.len()..].find(close) else {
            break;
        };
        plain.push_str(&rest[..at]);
        rest = &rest[at + open.len() + end + close.len()..];
    }
    plain.push_str(rest);
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ")
}

/// Cuts a text where it is more than `leeway` characters too long.
fn truncate(text: &Value, places: Rest<Value>, names: Kwargs) -> Result<String, Error> {
    let mut args = Args::of(places, names);
    let length: usize = args.next("length")?.unwrap_or(255);
    let kill_words = args.flag("killwords")?.unwrap_or(false);
    let end: String = args.next("end")?.unwrap_or_else(|| "...".to_owned());
    let leeway: usize = args.next("leeway")?.unwrap_or(5);
    args.end()?;
    let text = text.to_string();
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let keep = length
        .checked_sub(end.chars().count())
        .ok_or_else(|| invalid("the end of a cut text is longer than the text may be"))?;
    let kept: String = text.chars().take(keep).collect();
    let kept = match kill_words {
        true => kept.as_str(),
        false => kept
            .rsplit_once(' ')
            .map_or(kept.as_str(), |(words, _)| words),
    };
    Ok(format!("{kept}{end}"))
}

fn url_encode(value: &Value) -> Result<String, Error> {
    let quote = |text: &str, keep: &str| {
        let mut out = String::with_capacity(text.len());
        for byte in text.bytes() {
            let letter = char::from(byte);
            if letter.is_ascii_alphanumeric() || "-._~".contains(letter) || keep.contains(letter) {
                out.push(letter);
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    };
    let pair = |key: &Value, value: &Value| {
        let part = |value: &Value| quote(&value.to_string(), "").replace("%20", "+");
        format!("{}={}", part(key), part(value))
    };
    let pairs: Result<Vec<String>, Error> = match value.kind() {
        ValueKind::Map => (value.try_iter()?.checked())
            .map(|key| key.and_then(|key| Ok(pair(&key, &value.get_item(&key)?))))
            .collect(),
        ValueKind::Seq | ValueKind::Iterable => (value.try_iter()?.checked())
            .map(|item| {
                let item = item?;
                Ok(pair(
                    &item.get_item_by_index(0)?,
                    &item.get_item_by_index(1)?,
                ))
            })
            .collect(),
        _ => return Ok(quote(&value.to_string(), "/")),
    };
    Ok(pairs?.join("&"))
}

/// Breaks lines that are longer than so many characters, as Python's `textwrap` does with the words of a text.
fn word_wrap(text: &Value, places: Rest<Value>, names: Kwargs) -> Result<String, Error> {
    let mut args = Args::of(places, names);
    let width = args.next("width")?.unwrap_or(79_usize).max(1);
    let break_words = args.flag("break_long_words")?.unwrap_or(true);
    let wrap: String = args.next("wrapstring")?.unwrap_or_else(|| "\n".to_owned());
    args.flag("break_on_hyphens")?;
    args.end()?;
    let text = text.to_string();
    let wrapped: Vec<String> = (text.lines())
        .map(|line| wrap_line(line, width, break_words).join(&wrap))
        .collect();
    Ok(wrapped.join(&wrap))
}

fn wrap_line(line: &str, width: usize, break_words: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    let mut used = 0;
    for chunk in line.split_inclusive(' ').flat_map(|word| {
        let (word, spaces) = word.split_at(word.trim_end_matches(' ').len());
        [word, spaces]
    }) {
        let mut chunk = chunk;
        let mut length = chunk.chars().count();
        if used + length > width && !current.trim().is_empty() && !chunk.trim().is_empty() {
            lines.push(current.trim_end().to_owned());
            current.clear();
            used = 0;
        }
        while break_words && length > width && !chunk.trim().is_empty() {
            let at = chunk
                .char_indices()
                .nth(width)
                .map_or(chunk.len(), |(at, _)| at);
            lines.push(chunk[..at].to_owned());
            chunk = &chunk[at..];
            length = chunk.chars().count();
        }
        // A line does not begin with the spaces at which the one before was broken.
        if current.is_empty() && chunk.trim().is_empty() && !lines.is_empty() {
            continue;
        }
        current.push_str(chunk);
        used += length;
    }
    if !current.trim().is_empty() {
        lines.push(current.trim_end().to_owned());
    }
    lines
}

fn xml_attributes(attributes: &Value, space: Option<bool>) -> Result<String, Error> {
    let mut written = Vec::new();
    for key in attributes.try_iter()?.checked() {
        let key = key?;
        let value = attributes.get_item(&key)?;
        if !value.is_none() && !value.is_undefined() {
            let (key, value) = (key.to_string(), value.to_string());
            written.push(format!("{}=\"{}\"", escape(&key), escape(&value)));
        }
    }
    let joined = written.join(" ");
    let lead = if space.unwrap_or(true) && !joined.is_empty() {
        " "
    } else {
        ""
    };
    Ok(format!("{lead}{joined}"))
}

fn invalid(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.into())
}
