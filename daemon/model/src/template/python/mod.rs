//! What `transformers` offers templates besides the language: its own functions and filter, and those parts of Python and
//! of Jinja's standard library that our engine lacks or has otherwise.

mod args;
mod filters;
mod float;
mod json;
mod methods;
mod numbers;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use minijinja_contrib::globals;

use super::Clock;
use super::error::Refusal;

pub(super) fn add(environment: &mut Environment<'static>, clock: Option<Clock>) {
    environment.set_unknown_method_callback(methods::call);
    environment.add_function("raise_exception", raise_exception);
    if let Some(clock) = clock {
        add_clock(environment, clock);
    }
    environment.add_function("cycler", |items: Rest<Value>| globals::cycler(items.0));
    environment.add_function("dict", dict);
    environment.add_function("joiner", globals::joiner);
    environment.add_filter("tojson", json::tojson);
    filters::add(environment);
    numbers::add(environment);
    // Of Python's types, whatever has a length and items is a sequence: texts and mappings, too.
    environment.add_test("sequence", |value: &Value| {
        matches!(
            value.kind(),
            ValueKind::Seq | ValueKind::String | ValueKind::Map
        )
    });
    environment.add_test("iterable", |value: &Value| {
        !value.is_none() && value.try_iter().is_ok()
    });
    environment.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
    environment.set_formatter(|out, state, value| {
        // Python writes numbers with an exponent where the engine writes many digits.
        if value.kind() == ValueKind::Number
            && !value.is_integer()
            && let Ok(number) = f64::try_from(value.clone())
        {
            return Ok(out.write_str(&display(number))?);
        }
        minijinja::escape_formatter(out, state, value)
    });
}

pub(super) fn add_clock(environment: &mut Environment<'static>, clock: Clock) {
    environment.add_function("strftime_now", move |pattern: &str| clock(pattern));
}

/// A number as `str` writes it in Python.
fn display(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    float::repr(number)
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    let message = message.to_string();
    let error = Error::new(ErrorKind::InvalidOperation, message.clone());
    Err(error.with_source(Refusal(message)))
}

/// `dict(mapping or pairs, name=value, …)`.
fn dict(items: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let mut pairs = Vec::new();
    if let Some(items) = items {
        for item in items.try_iter()?.checked() {
            let item = item?;
            pairs.push(match items.kind() {
                ValueKind::Map => (item.clone(), items.get_item(&item)?),
                _ => (item.get_item_by_index(0)?, item.get_item_by_index(1)?),
            });
        }
    }
    for name in named.args().map(str::to_owned).collect::<Vec<_>>() {
        let value: Value = named.get(&name)?;
        pairs.push((Value::from(name), value));
    }
    Ok(Value::from_pairs(pairs))
}
