//! Arguments that can be given by place or by name, as Python's can.

use minijinja::value::{ArgType, Kwargs, Rest, from_args};
use minijinja::{Error, ErrorKind, Value};

pub(super) struct Args {
    places: std::vec::IntoIter<Value>,
    names: Kwargs,
}

impl Args {
    pub(super) fn new(args: &[Value]) -> Result<Self, Error> {
        let (places, names): (Rest<Value>, Kwargs) = from_args(args)?;
        Ok(Self::of(places, names))
    }

    pub(super) fn of(places: Rest<Value>, names: Kwargs) -> Self {
        let places = places.0.into_iter();
        Self { places, names }
    }

    /// The next argument by place, else the one of that name; `None` is none.
    pub(super) fn next<T>(&mut self, name: &str) -> Result<Option<T>, Error>
    where
        T: for<'a> ArgType<'a, Output = T>,
    {
        let value = match self.places.next() {
            Some(value) => Some(value),
            None => self.names.get::<Option<Value>>(name)?,
        };
        let value = value.filter(|value| !value.is_none());
        value.map(|value| T::from_value(Some(&value))).transpose()
    }

    /// Whether the next argument is there and true.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, Error> {
        Ok(self.next::<Value>(name)?.map(|value| value.is_true()))
    }

    /// Refuses arguments that nobody asked for.
    pub(super) fn end(mut self) -> Result<(), Error> {
        match self.places.next() {
            Some(_) => Err(Error::from(ErrorKind::TooManyArguments)),
            None => self.names.assert_all_used(),
        }
    }
}
