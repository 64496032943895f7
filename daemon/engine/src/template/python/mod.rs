//! What templates written for Python's Jinja expect besides the language.

use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Value, filters};

use super::Clock;
use super::error::Refusal;

pub(super) fn add(environment: &mut Environment<'static>, clock: Option<Clock>) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_filter("tojson", tojson);
    if let Some(clock) = clock {
        environment.add_function("strftime_now", move |pattern: &str| clock(pattern));
    }
}

fn raise_exception(message: String) -> Result<Value, Error> {
    let error = Error::new(ErrorKind::InvalidOperation, message.clone());
    Err(error.with_source(Refusal(message)))
}

/// JSON as Python's `json.dumps` writes it: the engine's own filter also escapes what HTML would misread.
fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let escaped = filters::tojson(value, indent, options)?.to_string();
    let mut json = String::with_capacity(escaped.len());
    let mut rest = escaped.as_str();
    while let Some(at) = rest.find('\\') {
        json.push_str(&rest[..at]);
        rest = &rest[at..];
        let html = [
            ("\\u003c", '<'),
            ("\\u003e", '>'),
            ("\\u0026", '&'),
            ("\\u0027", '\''),
        ];
        if let Some((code, letter)) = html.into_iter().find(|(code, _)| rest.starts_with(code)) {
            json.push(letter);
            rest = &rest[code.len()..];
        } else {
            // The backslash and what it escapes, which may be another backslash. Both are one byte.
            json.push_str(&rest[..2]);
            rest = &rest[2..];
        }
    }
    json.push_str(rest);
    Ok(Value::from_safe_string(json))
}
