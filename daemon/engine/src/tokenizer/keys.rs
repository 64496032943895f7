//! What the `tokenizer.*` keys of a file mean to us: read, known to be unused, or refused by name.

use super::error::TokenizerError;
use crate::gguf::Gguf;

/// Read here or in the modules beside.
const READ: [&str; 14] = [
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_sep_token",
    "tokenizer.ggml.add_space_prefix",
    "tokenizer.ggml.remove_extra_whitespaces",
    "tokenizer.ggml.precompiled_charsmap",
    "tokenizer.chat_template",
    "tokenizer.chat_templates",
];

/// Copies of what other keys say, and what concerns models that read whole texts.
const UNUSED: [&str; 5] = [
    "tokenizer.huggingface.json",
    "tokenizer.rwkv.world",
    "tokenizer.ggml.added_tokens",
    "tokenizer.ggml.token_type_count",
    "tokenizer.ggml.normalizer.lowercase",
];

/// Refuses a file with a key that changes tokens in a way that we do not know, and returns what else there is to say.
pub(super) fn check(gguf: &Gguf) -> Result<Vec<String>, TokenizerError> {
    let mut keys: Vec<&str> = gguf
        .keys()
        .filter(|key| key.starts_with("tokenizer."))
        .collect();
    keys.sort_unstable();
    let known = |key: &str| {
        READ.contains(&key)
            || UNUSED.contains(&key)
            || key.starts_with("tokenizer.chat_template.")
            // Which token is for what; those that do something are read.
            || key.ends_with("_token_id")
            || key.ends_with("_token_ids")
    };
    if let Some(key) = keys.iter().find(|key| !known(key)) {
        return Err(unsupported(key, "is a key that is not known here"));
    }
    if gguf.optional_bool("tokenizer.ggml.normalizer.lowercase")? == Some(true) {
        let key = "tokenizer.ggml.normalizer.lowercase";
        return Err(unsupported(
            key,
            "asks for lower case, which is not supported",
        ));
    }
    let map = "tokenizer.ggml.precompiled_charsmap";
    if gguf.optional_i32s(map)?.is_some_and(|map| !map.is_empty()) {
        return Err(unsupported(
            map,
            "asks for characters to be replaced, which is not supported",
        ));
    }
    let mut warnings = Vec::new();
    for (key, what) in [
        ("tokenizer.ggml.add_eos_token", "an end token"),
        ("tokenizer.ggml.add_sep_token", "a separator"),
    ] {
        if gguf.optional_bool(key)? == Some(true) {
            warnings.push(format!(
                "the file asks for {what} behind every text (`{key}`); none is put there, since prompts are to be continued"
            ));
        }
    }
    Ok(warnings)
}

fn unsupported(key: &str, problem: &'static str) -> TokenizerError {
    TokenizerError::Unsupported {
        key: key.to_owned(),
        problem,
    }
}
