//! Typed access to metadata. Integers are read through any integer type that holds the value.

use super::Gguf;
use super::error::GgufError;
use super::value::{Strings, Value};

impl Gguf {
    /// The model's architecture, such as `llama`; it prefixes the keys of its configuration.
    ///
    /// # Errors
    /// When the file does not state one.
    pub fn architecture(&self) -> Result<&str, GgufError> {
        self.str("general.architecture")
    }

    /// All metadata keys, in no order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    /// A value for messages: on one line, escaped, and cut where it is long.
    pub(crate) fn show(&self, key: &str) -> String {
        self.metadata
            .get(key)
            .map_or_else(|| "absent".to_owned(), Value::show)
    }

    /// Whether a key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.metadata.contains_key(key)
    }

    /// The numbers of a key that holds one or an array of them, truth values as 0 and 1.
    pub(crate) fn numbers(&self, key: &str) -> Option<Vec<f64>> {
        self.metadata.get(key)?.numbers()
    }

    /// Whether a key is there and holds an empty string or array.
    pub(crate) fn is_empty(&self, key: &str) -> bool {
        self.metadata.get(key).is_some_and(Value::is_empty)
    }

    /// A non-negative integer.
    ///
    /// # Errors
    /// When the key is absent or holds something else.
    pub fn u32(&self, key: &str) -> Result<u32, GgufError> {
        self.required(key, self.optional_u32(key)?)
    }

    /// A non-negative integer, where the key is present.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn optional_u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        self.read(key, "a number from 0 to 4294967295", |value| match value {
            Value::Unsigned(n) => u32::try_from(*n).ok(),
            Value::Signed(n) => u32::try_from(*n).ok(),
            _ => None,
        })
    }

    /// A number.
    ///
    /// # Errors
    /// When the key is absent or holds something else.
    pub fn f32(&self, key: &str) -> Result<f32, GgufError> {
        self.required(key, self.optional_f32(key)?)
    }

    /// A number, where the key is present.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn optional_f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        self.read(key, "a floating-point number", as_f32)
    }

    /// A truth value.
    ///
    /// # Errors
    /// When the key is absent or holds something else.
    pub fn bool(&self, key: &str) -> Result<bool, GgufError> {
        self.required(key, self.optional_bool(key)?)
    }

    /// A truth value, where the key is present.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn optional_bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.read(key, "true or false", |value| match value {
            Value::Bool(b) => Some(*b),
            _ => None,
        })
    }

    /// A string, without the NUL bytes that some writers put at its end.
    ///
    /// # Errors
    /// When the key is absent or holds something else.
    pub fn str(&self, key: &str) -> Result<&str, GgufError> {
        self.required(key, self.optional_str(key)?)
    }

    /// A string, where the key is present.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn optional_str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.read(key, "a UTF-8 string", |value| match value {
            Value::Text(bytes) => std::str::from_utf8(bytes)
                .ok()
                .map(|text| text.trim_end_matches('\0')),
            _ => None,
        })
    }

    /// An array of strings, as bytes.
    ///
    /// # Errors
    /// When the key is absent or holds something else.
    pub fn strings(&self, key: &str) -> Result<&Strings, GgufError> {
        self.required(key, self.optional_strings(key)?)
    }

    /// An array of strings, where the key is present.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn optional_strings(&self, key: &str) -> Result<Option<&Strings>, GgufError> {
        self.read(key, "an array of strings", |value| match value {
            Value::Texts(texts) => Some(texts),
            _ => None,
        })
    }

    /// An array of numbers.
    ///
    /// # Errors
    /// When the key is absent or holds something else.
    pub fn f32s(&self, key: &str) -> Result<Vec<f32>, GgufError> {
        self.required(key, self.optional_f32s(key)?)
    }

    /// An array of numbers, where the key is present.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn optional_f32s(&self, key: &str) -> Result<Option<Vec<f32>>, GgufError> {
        self.read(key, "an array of floating-point numbers", |value| {
            elements(value, as_f32)
        })
    }

    /// An array of integers.
    ///
    /// # Errors
    /// When the key is absent or holds something else.
    pub fn i32s(&self, key: &str) -> Result<Vec<i32>, GgufError> {
        self.required(key, self.optional_i32s(key)?)
    }

    /// An array of integers, where the key is present.
    ///
    /// # Errors
    /// When the key holds something else.
    pub fn optional_i32s(&self, key: &str) -> Result<Option<Vec<i32>>, GgufError> {
        self.read(key, "an array of 32-bit integers", |value| {
            elements(value, as_i32)
        })
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.metadata.get(key) else {
            return Ok(None);
        };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(GgufError::WrongType {
                path: self.path.clone(),
                key: key.into(),
                expected,
                found: value.describe().into(),
            }),
        }
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, GgufError> {
        value.ok_or_else(|| GgufError::MissingKey {
            path: self.path.clone(),
            key: key.to_owned(),
        })
    }
}

fn as_f32(value: &Value) -> Option<f32> {
    match value {
        Value::Float(x) => Some(*x as f32),
        _ => None,
    }
}

fn as_i32(value: &Value) -> Option<i32> {
    match value {
        Value::Signed(n) => i32::try_from(*n).ok(),
        Value::Unsigned(n) => i32::try_from(*n).ok(),
        _ => None,
    }
}

fn elements<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    match value {
        Value::Numbers { kind, bytes } => bytes
            .chunks_exact(kind.size())
            .map(|bytes| read(&kind.decode(bytes)))
            .collect(),
        _ => None,
    }
}
