//! How much may become of a text, and whether anybody still waits for it.
//!
//! Texts come from programs that send files by mistake and go away before the answer. So work stops as soon as it is known
//! to be too much, or for nobody.

use std::fmt;

use super::error::EncodeError;
use crate::TokenId;

/// How often somebody is asked whether to go on, in bytes of text: some milliseconds of work.
const ASK_EVERY: usize = 64 << 10;
/// Longest stretch of text that is taken apart in one go, in bytes. Memory for that is some hundred times as much, and no
/// language has such words.
pub const MAX_WORD_BYTES: usize = 1 << 20;

/// How much may become of a text.
#[derive(Clone, Copy)]
pub struct EncodeLimits<'a> {
    /// Most tokens.
    pub tokens: usize,
    /// Longest word, in bytes: what lies between two places where text can always be cut.
    pub word_bytes: usize,
    /// Whether nobody waits for the tokens any more; asked now and then.
    pub stopped: &'a (dyn Fn() -> bool + 'a),
}

impl EncodeLimits<'_> {
    /// No limits, for texts of our own.
    pub const NONE: EncodeLimits<'static> = EncodeLimits {
        tokens: usize::MAX,
        word_bytes: usize::MAX,
        stopped: &never,
    };
}

fn never() -> bool {
    false
}

impl fmt::Debug for EncodeLimits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodeLimits")
            .field("tokens", &self.tokens)
            .field("word_bytes", &self.word_bytes)
            .finish_non_exhaustive()
    }
}

/// Tokens so far, and the limits that they keep.
pub(super) struct Sink<'a> {
    ids: Vec<TokenId>,
    limits: EncodeLimits<'a>,
    /// Most bytes that one token stands for.
    longest: usize,
    since_asked: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(limits: EncodeLimits<'a>, longest: usize) -> Self {
        Self {
            ids: Vec::new(),
            limits,
            longest,
            since_asked: 0,
        }
    }

    pub(super) fn into_ids(self) -> Vec<TokenId> {
        self.ids
    }

    /// Longest word that is allowed, in bytes.
    pub(super) fn word_bytes(&self) -> usize {
        self.limits.word_bytes
    }

    /// Called for each word before any work is done for it. Of its bytes, `weight` will be in some token.
    pub(super) fn begin_word(&mut self, bytes: usize, weight: usize) -> Result<(), EncodeError> {
        self.since_asked = self.since_asked.saturating_add(bytes);
        if self.since_asked >= ASK_EVERY {
            self.since_asked = 0;
            if (self.limits.stopped)() {
                return Err(EncodeError::Stopped);
            }
        }
        if self.ids.len().saturating_add(weight / self.longest) > self.limits.tokens {
            return Err(self.too_many());
        }
        if bytes > self.limits.word_bytes {
            return Err(EncodeError::LongWord {
                bytes,
                limit: self.limits.word_bytes,
            });
        }
        Ok(())
    }

    pub(super) fn push(&mut self, id: TokenId) -> Result<(), EncodeError> {
        if self.ids.len() >= self.limits.tokens {
            return Err(self.too_many());
        }
        self.ids.push(id);
        Ok(())
    }

    pub(super) fn extend(
        &mut self,
        ids: impl IntoIterator<Item = TokenId>,
    ) -> Result<(), EncodeError> {
        ids.into_iter().try_for_each(|id| self.push(id))
    }

    fn too_many(&self) -> EncodeError {
        EncodeError::TooMany {
            limit: self.limits.tokens,
        }
    }
}
