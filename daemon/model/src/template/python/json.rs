//! `tojson` as `transformers` gives it to templates: Python's `json.dumps`, which escapes nothing for HTML.

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::args::Args;

/// Deeper values than any schema has, and shallow enough for a thread's stack.
const DEPTH_LIMIT: usize = 128;

/// How to write.
struct Writer<'a> {
    out: String,
    state: &'a State<'a, 'a>,
    /// Bytes of `out` that the template's fuel has paid for.
    paid: usize,
    indent: Option<String>,
    between: String,
    after_key: String,
    ascii: bool,
    sorted: bool,
}

/// The filter. Positional arguments have the order that `transformers` gives them: `ensure_ascii`, `indent`, `separators`,
/// `sort_keys`.
pub(super) fn tojson(
    state: &State,
    value: &Value,
    places: Rest<Value>,
    names: Kwargs,
) -> Result<Value, Error> {
    let mut args = Args::of(places, names);
    let ascii = args.flag("ensure_ascii")?.unwrap_or(false);
    let indent: Option<Value> = args.next("indent")?;
    let separators: Option<Value> = args.next("separators")?;
    let sorted = args.flag("sort_keys")?.unwrap_or(false);
    args.end()?;
    let indent = indent.map(|value| unit(&value)).transpose()?;
    let (between, after_key) = match separators {
        Some(pair) => (text(&pair, 0)?, text(&pair, 1)?),
        None => {
            let between = if indent.is_some() { "," } else { ", " };
            (between.to_owned(), ": ".to_owned())
        }
    };
    let mut writer = Writer {
        out: String::new(),
        state,
        paid: 0,
        indent,
        between,
        after_key,
        ascii,
        sorted,
    };
    writer.value(value, 0)?;
    Ok(Value::from(writer.out))
}

/// One level of indentation: so many spaces, or what is given.
fn unit(indent: &Value) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return Ok(text.to_owned());
    }
    let spaces = match bool::try_from(indent.clone()) {
        Ok(one) if indent.kind() == ValueKind::Bool => i64::from(one),
        _ => i64::try_from(indent.clone())?,
    };
    let spaces = usize::try_from(spaces).unwrap_or(0);
    if spaces > 64 {
        return Err(invalid(format!("an indent of {spaces} is over 64 spaces")));
    }
    Ok(" ".repeat(spaces))
}

fn text(pair: &Value, index: usize) -> Result<String, Error> {
    let item = pair.get_item_by_index(index)?;
    let text = item.as_str().map(str::to_owned);
    text.ok_or_else(|| invalid("separators are two strings"))
}

fn invalid(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.into())
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > DEPTH_LIMIT {
            return Err(invalid(format!(
                "a value is nested more than {DEPTH_LIMIT} deep"
            )));
        }
        // A byte in 64 costs one unit of fuel, as in the engine; writing is slower than copying.
        let written = self.out.len() - self.paid;
        if written >= 64 {
            self.paid = self.out.len();
            self.state.consume_fuel(written as u64 / 16)?;
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self
                .out
                .push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?.checked();
                self.container('[', ']', items, depth, |writer, item| {
                    writer.value(&item, depth + 1)
                })?;
            }
            ValueKind::Map => {
                let mut keys = value.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?;
                if self.sorted {
                    keys.sort();
                }
                let keys = keys.into_iter().map(Ok);
                self.container('{', '}', keys, depth, |writer, key| {
                    writer.key(&key)?;
                    let after_key = writer.after_key.clone();
                    writer.out.push_str(&after_key);
                    writer.value(&value.get_item(&key)?, depth + 1)
                })?;
            }
            kind => return Err(invalid(format!("{kind} is not JSON serializable"))),
        }
        Ok(())
    }

    fn container(
        &mut self,
        open: char,
        close: char,
        items: impl Iterator<Item = Result<Value, Error>>,
        depth: usize,
        mut write: impl FnMut(&mut Self, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(open);
        let mut empty = true;
        for item in items {
            if !empty {
                self.out.push_str(&self.between);
            }
            empty = false;
            self.line(depth + 1);
            write(self, item?)?;
        }
        if !empty {
            self.line(depth);
        }
        self.out.push(close);
        Ok(())
    }

    /// Begins a line, where there is an indentation.
    fn line(&mut self, depth: usize) {
        if let Some(unit) = &self.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(unit);
            }
        }
    }

    fn key(&mut self, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.string(key.as_str().unwrap_or_default()),
            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                self.out.push('"');
                self.value(key, 0)?;
                self.out.push('"');
            }
            kind => return Err(invalid(format!("a key is a string, not {kind}"))),
        }
        Ok(())
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                letter if letter < ' ' || (self.ascii && !(' '..='~').contains(&letter)) => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                letter => self.out.push(letter),
            }
        }
        self.out.push('"');
    }
}

/// A number as Python's `json` writes it.
fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()) {
        Ok(float) if float.is_nan() => "NaN".to_owned(),
        Ok(float) if float.is_infinite() => {
            let sign = if float < 0.0 { "-" } else { "" };
            format!("{sign}Infinity")
        }
        Ok(float) => super::float::repr(float),
        Err(_) => value.to_string(),
    }
}
