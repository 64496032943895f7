//! What the file asks for that is not done, and does no harm.
//!
//! The list of keys that a file may have is `model/keys/rules.rs`, the tokenizer's among them; what it refuses never comes here.

use super::error::TokenizerError;
use crate::gguf::Gguf;

const ADD_END: &str = "tokenizer.ggml.add_eos_token";

/// Returns what there is to say.
pub(super) fn warnings(gguf: &Gguf) -> Result<Vec<String>, TokenizerError> {
    let asked = gguf.optional_bool(ADD_END)? == Some(true);
    let warning = asked.then(|| {
        format!(
            "the file asks for an end token behind every text (`{ADD_END}`); none is put there, since prompts are to be continued"
        )
    });
    Ok(warning.into_iter().collect())
}
