//! Text to token ids and back, by the tokenizer that a model file carries.
//!
//! Knows vocabularies and how text becomes tokens. Chat roles belong to the template, and text that grows token by
//! token to the detokenizer.

mod bpe;
mod byte_level;
mod compare;
mod encode;
mod ends;
mod error;
mod keys;
mod limit;
mod pre;
mod shared;
mod special;
mod split;
mod spm;
#[cfg(test)]
mod tests;
mod vocabulary;

#[cfg(any(test, feature = "testing"))]
pub(crate) use byte_level::alphabet as byte_alphabet;
pub use compare::VocabularyDifference;
pub use error::{EncodeError, TokenizerError};
pub use limit::{EncodeLimits, MAX_WORD_BYTES};
pub use vocabulary::TokenKind;

use bpe::ByteLevelBpe;
pub(crate) use special::Controls;
use special::SpecialSet;
use spm::SentencePiece;
use vocabulary::Vocabulary;

use crate::TokenId;
use crate::gguf::Gguf;

/// What text that spells a control token means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialTokens {
    /// That token: for text that we or the caller's template wrote.
    Parse,
    /// Nothing but its letters: for text that someone typed.
    AsText,
}

/// A model's tokenizer. Immutable; share it through `Arc`.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    model: Model,
    /// Control and user-defined tokens.
    all_special: SpecialSet,
    /// User-defined tokens only: they are text, but always whole.
    whole_text: SpecialSet,
    controls: Controls,
    /// The bytes of each token, packed, and where each ends.
    pieces: Vec<u8>,
    piece_ends: Vec<usize>,
    adds_bos: bool,
    /// Most bytes that one token stands for.
    longest_piece: usize,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum Model {
    Bpe(Box<ByteLevelBpe>),
    SentencePiece(SentencePiece),
}

impl Tokenizer {
    /// Builds the tokenizer that a model file describes.
    ///
    /// # Errors
    /// When the file has none, one that we do not know, or a damaged one.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        let mut warnings = keys::warnings(gguf)?;
        let vocabulary = Vocabulary::from_gguf(gguf)?;
        let model = match gguf.str("tokenizer.ggml.model")? {
            "gpt2" => Model::Bpe(Box::new(ByteLevelBpe::from_gguf(gguf, &vocabulary)?)),
            "llama" => Model::SentencePiece(SentencePiece::from_gguf(gguf, &vocabulary)?),
            model => {
                return Err(TokenizerError::UnknownModel {
                    model: model.to_owned(),
                });
            }
        };
        let family_adds_bos = match &model {
            Model::Bpe(bpe) => {
                warnings.extend(bpe.guess());
                bpe.adds_bos()
            }
            Model::SentencePiece(_) => true,
        };
        let adds_bos = gguf
            .optional_bool("tokenizer.ggml.add_bos_token")?
            .unwrap_or(family_adds_bos);
        let whole = |kind| kind == TokenKind::UserDefined;
        let all_special = SpecialSet::new(
            vocabulary
                .iter()
                .filter(|t| whole(t.2) || is_spelled_control(t.1, t.2))
                .map(|t| (t.0, t.1)),
        )?;
        let whole_text =
            SpecialSet::new(vocabulary.iter().filter(|t| whole(t.2)).map(|t| (t.0, t.1)))?;
        let controls = (vocabulary.iter())
            .filter(|t| is_spelled_control(t.1, t.2))
            .map(|t| t.1);
        let controls = Controls::new(controls)?;
        let (mut pieces, mut piece_ends) = (Vec::new(), Vec::with_capacity(vocabulary.len()));
        for (_, text, kind) in vocabulary.iter() {
            pieces.extend(piece(&model, text, kind));
            piece_ends.push(pieces.len());
        }
        let adds_bos = adds_bos && vocabulary.bos.is_some();
        let lengths = piece_ends
            .iter()
            .zip(std::iter::once(&0).chain(&piece_ends));
        let longest = lengths.map(|(end, start)| end - start).max().unwrap_or(1);
        // A character without a piece is one unknown token.
        let longest_piece = longest.max(char::MAX.len_utf8());
        Ok(Self {
            vocabulary,
            model,
            all_special,
            whole_text,
            controls,
            pieces,
            piece_ends,
            adds_bos,
            longest_piece,
            warnings,
        })
    }

    /// Findings about the file that do not prevent serving: what it leaves open, and what was guessed.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Most bytes of text that one token stands for.
    fn longest_piece(&self) -> usize {
        self.longest_piece
    }

    /// The bytes of a token, which may be part of a character; of a special token, its name. `None` beyond the
    /// vocabulary.
    #[must_use]
    pub fn piece(&self, id: TokenId) -> Option<&[u8]> {
        let at = id as usize;
        let end = *self.piece_ends.get(at)?;
        let start = if at == 0 { 0 } else { self.piece_ends[at - 1] };
        Some(&self.pieces[start..end])
    }

    /// What a token is for; `None` beyond the vocabulary.
    #[must_use]
    pub fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.vocabulary.kind(id)
    }

    /// Whether a token is structure and not part of the text. Ids beyond the vocabulary, which padded models can give,
    /// are.
    #[must_use]
    pub fn is_special(&self, id: TokenId) -> bool {
        match self.kind(id) {
            Some(TokenKind::Control | TokenKind::Unknown | TokenKind::Unused) | None => true,
            Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Byte) => false,
        }
    }

    /// The token with exactly that text in the file, if there is one.
    #[must_use]
    pub fn id(&self, text: &str) -> Option<TokenId> {
        self.vocabulary.id(text)
    }

    /// The beginning-of-sequence token.
    #[must_use]
    pub fn bos(&self) -> Option<TokenId> {
        self.vocabulary.bos
    }

    /// The end-of-sequence token.
    #[must_use]
    pub fn eos(&self) -> Option<TokenId> {
        self.vocabulary.eos
    }

    /// Every token that ends generation: of a sequence, a turn or a message. Ascending.
    #[must_use]
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.vocabulary.ends
    }

    /// Whether prompts of this model begin with [`Self::bos`].
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// Whether encoding puts a space before text, which decoding takes away again.
    #[must_use]
    pub fn has_space_prefix(&self) -> bool {
        matches!(&self.model, Model::SentencePiece(spm) if spm.space_prefix)
    }

    /// Number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Whether there are no tokens: never, since a file without tokens is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first place where a draft's vocabulary differs from this, the target's. Unused tokens and padding do not
    /// count.
    #[must_use]
    pub fn first_difference(&self, draft: &Self) -> Option<VocabularyDifference> {
        compare::first_difference(&self.vocabulary, &draft.vocabulary)
    }

    /// The texts of the tokens that [`SpecialTokens::Parse`] finds and [`SpecialTokens::AsText`] does not.
    pub(crate) fn controls(&self) -> &Controls {
        &self.controls
    }

    /// The token that stands for text without one.
    pub(crate) fn unknown(&self) -> Option<TokenId> {
        self.vocabulary.unknown
    }

    /// The token that fills up rows of different lengths.
    pub(crate) fn padding(&self) -> Option<TokenId> {
        self.vocabulary.padding
    }

    /// Most bytes of text that so many tokens stand for.
    pub(crate) fn most_bytes(&self, tokens: usize) -> usize {
        self.longest_piece.saturating_mul(tokens)
    }

    /// The text of a token as the file has it.
    pub(crate) fn token_text(&self, id: TokenId) -> Option<&str> {
        self.vocabulary.text(id)
    }
}

/// Whether text can spell this control token. A single character cannot: it could not be told from itself as text.
fn is_spelled_control(text: &str, kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Control | TokenKind::Unknown) && text.chars().nth(1).is_some()
}

fn piece(model: &Model, text: &str, kind: TokenKind) -> Vec<u8> {
    match (model, kind) {
        (_, TokenKind::Control | TokenKind::Unknown | TokenKind::Unused) => {
            text.as_bytes().to_vec()
        }
        (Model::Bpe(_), TokenKind::UserDefined) => text.as_bytes().to_vec(),
        (Model::Bpe(_), _) => byte_level::decode(text),
        (Model::SentencePiece(spm), kind) => spm.decode(text, kind),
    }
}
