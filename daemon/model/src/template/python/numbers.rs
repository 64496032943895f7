//! `int` and `float`, which in Python's Jinja give a default for what is no number.

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, Value};

use super::args::Args;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("int", int);
    environment.add_filter("float", float);
}

fn int(value: &Value, places: Rest<Value>, names: Kwargs) -> Result<Value, Error> {
    let mut args = Args::of(places, names);
    let default = args.next::<Value>("default")?;
    let base: u32 = args.next("base")?.unwrap_or(10);
    args.end()?;
    let whole = match value.kind() {
        ValueKind::Bool => Some(Value::from(i64::from(value.is_true()))),
        ValueKind::Number if value.is_integer() => Some(value.clone()),
        ValueKind::Number => f64::try_from(value.clone()).ok().and_then(truncated),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            let whole = whole(text, base).map(Value::from);
            whole.or_else(|| number(text).and_then(truncated))
        }
        _ => None,
    };
    Ok(whole.or(default).unwrap_or_else(|| Value::from(0)))
}

fn float(value: &Value, places: Rest<Value>, names: Kwargs) -> Result<Value, Error> {
    let mut args = Args::of(places, names);
    let default = args.next::<Value>("default")?;
    args.end()?;
    let float = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::String => number(value.as_str().unwrap_or_default()),
        _ => None,
    };
    let float = float.map(Value::from);
    Ok(float.or(default).unwrap_or_else(|| Value::from(0.0)))
}

/// The integer that a text spells in a base, with a prefix such as `0x` where that is the base's.
fn whole(text: &str, base: u32) -> Option<i64> {
    let text = text.trim().replace('_', "");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        3..=7 | 9..=15 | 17..=36 => "",
        _ => return None,
    };
    let lower = digits.to_ascii_lowercase();
    let digits = lower.strip_prefix(prefix).unwrap_or(&lower);
    let digits = (!digits.starts_with(['+', '-'])).then_some(digits)?;
    i64::from_str_radix(digits, base).ok().map(|n| sign * n)
}

fn number(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok()
}

fn truncated(float: f64) -> Option<Value> {
    let whole = float.trunc();
    // Beyond these, a cast would saturate.
    (whole.abs() < 9e18).then(|| Value::from(whole as i64))
}
