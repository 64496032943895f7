//! The allow-list of metadata: what a file may say of itself.
//!
//! Every key of a file is read and honoured, or is known to have no bearing on what is computed, or says what the decoder does
//! anyway; a file with any other key is refused, and the key named. So a file never means something that is not done: an
//! architecture's next refinement comes as a key that is not in the list.

mod rules;

use super::ModelError;
use crate::gguf::{Gguf, shown};
use rules::{Rule, find};

/// What a file is, before its architecture is looked at: a model in one piece.
pub(super) fn check_kind(gguf: &Gguf) -> Result<(), ModelError> {
    if gguf
        .optional_str("general.type")?
        .is_some_and(|kind| kind != "model")
    {
        let expected = "a whole language model, of the type \"model\", can be served";
        return Err(ModelError::refused(gguf, "general.type", expected));
    }
    if gguf
        .optional_u32("split.count")?
        .is_some_and(|count| count > 1)
    {
        let expected = "a model has to be in one file: merge its parts, with `llama-gguf-split --merge` for one";
        return Err(ModelError::refused(gguf, "split.count", expected));
    }
    Ok(())
}

/// Checks that every key is in the list, as far as this needs no other key to be read.
///
/// # Errors
/// Names the key and its value; of several the first by name.
pub(super) fn check(gguf: &Gguf, architecture: &str) -> Result<(), ModelError> {
    let mut keys: Vec<&str> = gguf.keys().collect();
    keys.sort_unstable();
    for key in keys {
        let refused = |expected: &str| Err(ModelError::refused(gguf, key, expected));
        match find(key, architecture) {
            Some(Rule::Read | Rule::Idle(_)) => {}
            Some(Rule::Off) => {
                let zero = |numbers: Vec<f64>| numbers.iter().all(|number| *number == 0.0);
                if !gguf.is_empty(key) && !gguf.numbers(key).is_some_and(zero) {
                    return refused("it is only computed with where this is off");
                }
            }
            Some(Rule::One(of)) => {
                let one = |numbers: Vec<f64>| numbers.iter().all(|number| of.contains(number));
                if !gguf.numbers(key).is_some_and(one) {
                    return refused(&format!("it is only computed with where this is {}", of[0]));
                }
            }
            Some(Rule::Text(of)) => {
                if !gguf
                    .optional_str(key)?
                    .is_some_and(|text| of.contains(&text))
                {
                    return refused(&format!(
                        "it is only computed with where this is \"{}\"",
                        of[0]
                    ));
                }
            }
            None => {
                return refused(
                    "nothing is known of this key, and it may change what the model computes",
                );
            }
        }
    }
    Ok(())
}

/// Keys that a file brings and that belong to no part of the format: whoever wrote them meant them for another program.
pub(crate) fn foreign<'a>(gguf: &'a Gguf, architecture: &str) -> Vec<&'a str> {
    let mut keys: Vec<&str> = gguf
        .keys()
        .filter(|key| find(key, architecture).is_some_and(Rule::is_foreign))
        .collect();
    keys.sort_unstable();
    keys
}

impl ModelError {
    /// The file says something of its computation that is not done here.
    pub(super) fn refused(gguf: &Gguf, key: &str, expected: impl Into<String>) -> Self {
        Self::Refused {
            what: format!(
                "its metadata key `{}` is {}",
                shown(key, 120).escape_debug(),
                gguf.show(key)
            ),
            expected: expected.into(),
        }
    }
}
