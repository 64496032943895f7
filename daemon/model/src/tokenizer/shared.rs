//! One tokenizer for all files that describe the same.
//!
//! A target and its draft have the same tokenizer as a rule, and so have two loads of one model in a reload. Building it is
//! most of what loading mapped weights costs, and it is most of the memory.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Tokenizer, TokenizerError};
use crate::gguf::{Digest, Gguf};

/// Those that somebody uses, and a few that somebody did.
static KNOWN: Mutex<Vec<(Digest, Weak<Tokenizer>)>> = Mutex::new(Vec::new());

impl Tokenizer {
    /// Returns the tokenizer that a model file describes: one that is in use already, where its description was the same.
    ///
    /// # Errors
    /// When the file has none, one that we do not know, or a damaged one.
    pub fn shared(gguf: &Gguf) -> Result<Arc<Self>, TokenizerError> {
        // The layout of roles does not belong to it, and often differs.
        let described = |key: &str| {
            key.starts_with("tokenizer.") && !key.starts_with("tokenizer.chat_template")
        };
        let digest = gguf.digest(described);
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known()
            .iter()
            .find_map(|(key, tokenizer)| (*key == digest).then(|| tokenizer.upgrade())?);
        if let Some(tokenizer) = found {
            return Ok(tokenizer);
        }
        // Without the lock: two that build the same at once cost time and no more.
        let tokenizer = Arc::new(Self::from_gguf(gguf)?);
        let mut known = known();
        known.retain(|(_, tokenizer)| tokenizer.strong_count() > 0);
        known.push((digest, Arc::downgrade(&tokenizer)));
        Ok(tokenizer)
    }
}
