//! Both directions: text to tokens, and tokens to text at once.

use std::borrow::Cow;

use super::error::EncodeError;
use super::limit::{EncodeLimits, Sink};
use super::special::{Fragment, SpecialSet};
use super::{Model, SpecialTokens, Tokenizer};
use crate::TokenId;

impl Tokenizer {
    /// The tokens of text; no beginning-of-sequence token is added, whatever [`Self::adds_bos`] says.
    #[must_use]
    pub fn encode(&self, text: &str, special: SpecialTokens) -> Vec<TokenId> {
        unlimited(self.encode_within(text, special, EncodeLimits::NONE))
    }

    /// As [`Self::encode`], for texts of others.
    ///
    /// # Errors
    /// As soon as it is known that the tokens would be too many, or that nobody wants them.
    pub fn encode_within(
        &self,
        text: &str,
        special: SpecialTokens,
        limits: EncodeLimits<'_>,
    ) -> Result<Vec<TokenId>, EncodeError> {
        self.check_length([text], limits)?;
        let mut ids = Sink::new(limits, self.longest_piece());
        self.encode_fragments(self.special(special).split(text), true, &mut ids)?;
        Ok(ids.into_ids())
    }

    /// Fewest tokens that texts make, as far as their length tells.
    #[must_use]
    pub fn least_tokens<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> usize {
        let weight = |text: &str| match &self.model {
            Model::Bpe(bpe) => bpe.weight(text),
            Model::SentencePiece(_) => text.len(),
        };
        texts.into_iter().map(weight).sum::<usize>() / self.longest_piece()
    }

    /// Refuses texts whose length alone says that they make too many tokens.
    pub(crate) fn check_length<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
        limits: EncodeLimits<'_>,
    ) -> Result<(), EncodeError> {
        let limit = limits.tokens;
        match self.least_tokens(texts) > limit {
            true => Err(EncodeError::TooMany { limit }),
            false => Ok(()),
        }
    }

    /// The tokens of text whose control tokens count, where `clean` is applied to what lies between them.
    pub(crate) fn encode_guarded(
        &self,
        text: &str,
        clean: impl Fn(&str) -> Cow<'_, str>,
        limits: EncodeLimits<'_>,
    ) -> Result<Vec<TokenId>, EncodeError> {
        let mut ids = Sink::new(limits, self.longest_piece());
        let mut at_start = true;
        for fragment in self.all_special.split(text) {
            match fragment {
                Fragment::Special(id) => ids.push(id)?,
                Fragment::Text(text) => {
                    let text = clean(text);
                    self.encode_fragments(self.whole_text.split(&text), at_start, &mut ids)?;
                }
            }
            at_start = matches!(fragment, Fragment::Special(_));
        }
        Ok(ids.into_ids())
    }

    fn encode_fragments<'a>(
        &self,
        fragments: impl Iterator<Item = Fragment<'a>>,
        mut at_start: bool,
        ids: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        for fragment in fragments {
            match (fragment, &self.model) {
                (Fragment::Special(id), _) => ids.push(id)?,
                (Fragment::Text(text), Model::Bpe(bpe)) => bpe.encode(text, at_start, ids)?,
                (Fragment::Text(text), Model::SentencePiece(spm)) => {
                    spm.encode(&self.vocabulary, text, at_start, ids)?;
                }
            }
            at_start = matches!(fragment, Fragment::Special(_));
        }
        Ok(())
    }

    /// The text of tokens, special ones left out; bytes that are no character become U+FFFD.
    #[must_use]
    pub fn decode(&self, ids: &[TokenId]) -> String {
        let text = ids.iter().filter(|&&id| !self.is_special(id));
        let mut pieces = text.map(|&id| self.piece(id).unwrap_or_default());
        let mut bytes = Vec::new();
        if let Some(first) = pieces.next() {
            let prefix: &[u8] = if self.has_space_prefix() { b" " } else { b"" };
            bytes.extend(first.strip_prefix(prefix).unwrap_or(first));
        }
        bytes.extend(pieces.flatten());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The tokens of bytes that need not be UTF-8. Bytes that are part of no character stand for themselves in
    /// SentencePiece vocabularies, and byte-level BPE takes U+FFFD for each.
    #[must_use]
    pub fn encode_bytes(&self, bytes: &[u8], special: SpecialTokens) -> Vec<TokenId> {
        let Model::SentencePiece(spm) = &self.model else {
            let mut text = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
            }
            return self.encode(&text, special);
        };
        let mut ids = Sink::new(EncodeLimits::NONE, self.longest_piece());
        let encoded = (bytes.utf8_chunks().enumerate()).try_for_each(|(at, chunk)| {
            if at == 0 && chunk.valid().is_empty() {
                spm.encode(&self.vocabulary, "", true, &mut ids)?;
            }
            let fragments = self.special(special).split(chunk.valid());
            self.encode_fragments(fragments, at == 0, &mut ids)?;
            spm.encode_raw(&self.vocabulary, chunk.invalid(), &mut ids)
        });
        unlimited(encoded.map(|()| ids.into_ids()))
    }

    fn special(&self, special: SpecialTokens) -> &SpecialSet {
        match special {
            SpecialTokens::Parse => &self.all_special,
            SpecialTokens::AsText => &self.whole_text,
        }
    }
}

fn unlimited(encoded: Result<Vec<TokenId>, EncodeError>) -> Vec<TokenId> {
    encoded.expect("nothing is refused where there are no limits")
}
