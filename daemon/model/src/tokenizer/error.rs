//! Why a file's tokenizer cannot be used, and why a text did not become tokens.

use crate::TokenId;
use crate::gguf::GgufError;

/// Why a tokenizer could not be built from a model file.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A key is absent or has the wrong type.
    #[error("the file's tokenizer is incomplete")]
    Gguf(#[from] GgufError),
    /// A kind of tokenizer that we do not have.
    #[error(
        "tokenizer model `{model}` is not supported: `gpt2` (byte-level BPE) and `llama` (SentencePiece) are; \
         choose another model"
    )]
    UnknownModel {
        /// `tokenizer.ggml.model` of the file.
        model: String,
    },
    /// A way of splitting text before BPE that we do not have; guessing would give wrong tokens silently.
    #[error("pre-tokenizer `{name}` is not supported; known are {known}")]
    UnknownPreTokenizer {
        /// `tokenizer.ggml.pre` of the file.
        name: String,
        /// All names we know.
        known: String,
    },
    /// No tokens, or more than ids can number.
    #[error("the file lists {tokens} tokens, and a vocabulary has 1 to 4294967295: pull it again")]
    Size {
        /// Number of tokens.
        tokens: usize,
    },
    /// Two arrays that go together differ in length.
    #[error(
        "`{key}` has {entries} entries for {tokens} tokens: the file is damaged, pull it again"
    )]
    Lengths {
        /// The array.
        key: &'static str,
        /// Its length.
        entries: usize,
        /// Number of tokens.
        tokens: usize,
    },
    /// A special token's id is not in the vocabulary.
    #[error(
        "`{key}` is {id}, but the vocabulary has {tokens} tokens: the file is damaged, pull it again"
    )]
    IdOutOfRange {
        /// The key.
        key: String,
        /// Its value.
        id: TokenId,
        /// Number of tokens.
        tokens: usize,
    },
    /// A token's text is not UTF-8.
    #[error("token {id} is not UTF-8: the file is damaged, pull it again")]
    NotUtf8 {
        /// The token.
        id: TokenId,
    },
    /// A BPE merge that is not two tokens, or whose result is no token.
    #[error(
        "merge {rank} (`{text}`) does not join two tokens into a third: the file is damaged, pull it again"
    )]
    BadMerge {
        /// Its place in the list.
        rank: usize,
        /// The entry.
        text: String,
    },
    /// A SentencePiece score that is not a number.
    #[error("the score of token {id} is not a number: the file is damaged, pull it again")]
    BadScore {
        /// The token.
        id: TokenId,
    },
    /// A type of token that the format does not define.
    #[error(
        "token {id} has the type {number}, and types are 0 to 6: the file is damaged, pull it again"
    )]
    BadType {
        /// The token.
        id: TokenId,
        /// `tokenizer.ggml.token_type` of it.
        number: i32,
    },
    /// An automaton or expression could not be built.
    #[error("the tokenizer could not be built: {detail}")]
    Build {
        /// What the library said.
        detail: String,
    },
}

/// Why a text did not become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// It makes more tokens than are allowed; the rest was not looked at.
    #[error("the text makes more than {limit} tokens")]
    TooMany {
        /// Most tokens.
        limit: usize,
    },
    /// It has a stretch that cannot be taken apart piece by piece.
    #[error("the text has a word or run of {bytes} bytes, and {limit} are the most: break it up")]
    LongWord {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// Nobody waits for the tokens any more.
    #[error("nobody waits for the tokens any more")]
    Stopped,
}
