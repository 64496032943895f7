//! The table of tokens: text, kind, and which ids mean beginning and end.

use std::collections::HashMap;

use super::ends;
use super::error::TokenizerError;
use crate::TokenId;
use crate::gguf::Gguf;

/// What a token is for, as the file's `tokenizer.ggml.token_type` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// Stands for text that has no token.
    Unknown,
    /// Structure, such as the end of a turn; never part of the text.
    Control,
    /// Text that is always one token, wherever it occurs.
    UserDefined,
    /// A place kept free.
    Unused,
    /// One byte, where text has no token.
    Byte,
}

#[derive(Debug)]
pub(super) struct Vocabulary {
    texts: Vec<String>,
    kinds: Vec<TokenKind>,
    ids: HashMap<String, TokenId>,
    pub(super) bos: Option<TokenId>,
    pub(super) eos: Option<TokenId>,
    pub(super) unknown: Option<TokenId>,
    pub(super) padding: Option<TokenId>,
    pub(super) ends: Vec<TokenId>,
}

impl Vocabulary {
    pub(super) fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        let tokens = gguf.strings("tokenizer.ggml.tokens")?;
        if tokens.is_empty() || TokenId::try_from(tokens.len()).is_err() {
            return Err(TokenizerError::Size {
                tokens: tokens.len(),
            });
        }
        let texts: Vec<String> = (0..)
            .zip(tokens.iter())
            .map(|(id, text)| {
                let text = std::str::from_utf8(text).map_err(|_| TokenizerError::NotUtf8 { id })?;
                Ok(text.to_owned())
            })
            .collect::<Result<_, TokenizerError>>()?;
        let mut kinds = kinds(gguf, texts.len())?;
        // Where two tokens share a text, the first is the one that encoding gives.
        let mut ids = HashMap::with_capacity(texts.len());
        for (id, text) in (0..).zip(&texts) {
            ids.entry(text.clone()).or_insert(id);
        }
        for (text, kind) in texts.iter().zip(&mut kinds) {
            if *kind != TokenKind::Unused && (is_marker(text) || ends::makes_control(text, *kind)) {
                *kind = TokenKind::Control;
            }
        }
        let id = |key: &str| special_id(gguf, key, texts.len());
        let (bos, eos, unknown, padding) = (
            id("bos_token_id")?,
            id("eos_token_id")?,
            id("unknown_token_id")?,
            id("padding_token_id")?,
        );
        let kind = |id: TokenId| kinds[id as usize];
        let mut ends = ends::find(id, |text| {
            ids.get(text).copied().filter(|&id| ends::counts(kind(id)))
        })?;
        // Some converters name all ends of a model in one list.
        let listed = gguf.optional_i32s("tokenizer.ggml.eos_token_ids")?;
        let listed = listed.unwrap_or_default().into_iter();
        ends.extend(
            listed
                .filter_map(|id| TokenId::try_from(id).ok())
                .filter(|&id| (id as usize) < texts.len()),
        );
        ends.sort_unstable();
        ends.dedup();
        Ok(Self {
            texts,
            kinds,
            ids,
            bos,
            eos,
            unknown,
            padding,
            ends,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The token's text as the file has it, not yet decoded.
    pub(super) fn text(&self, id: TokenId) -> Option<&str> {
        self.texts.get(id as usize).map(String::as_str)
    }

    pub(super) fn kind(&self, id: TokenId) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(super) fn id(&self, text: &str) -> Option<TokenId> {
        self.ids.get(text).copied()
    }

    /// All tokens as (id, text, kind).
    pub(super) fn iter(&self) -> impl Iterator<Item = (TokenId, &str, TokenKind)> {
        (0..)
            .zip(&self.texts)
            .zip(&self.kinds)
            .map(|((id, text), kind)| (id, text.as_str(), *kind))
    }
}

fn kinds(gguf: &Gguf, tokens: usize) -> Result<Vec<TokenKind>, TokenizerError> {
    let key = "tokenizer.ggml.token_type";
    let Some(numbers) = gguf.optional_i32s(key)? else {
        return Ok(vec![TokenKind::Normal; tokens]);
    };
    if numbers.len() != tokens {
        return Err(TokenizerError::Lengths {
            key,
            entries: numbers.len(),
            tokens,
        });
    }
    let kind = |(id, number)| {
        Ok(match number {
            // Files that do not define a type mean an ordinary one.
            0 | 1 => TokenKind::Normal,
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => return Err(TokenizerError::BadType { id, number }),
        })
    };
    (0..).zip(numbers).map(kind).collect()
}

/// Whether a token is one that only a chat template writes. Some files mark them as ordinary ones, and then text typed
/// by a user could end its own turn.
fn is_marker(text: &str) -> bool {
    let enclosed = |open: &str, close: &str| {
        text.len() > open.len() + close.len() && text.starts_with(open) && text.ends_with(close)
    };
    enclosed("<|", "|>")
        || enclosed("<｜", "｜>")
        || matches!(text, "<start_of_turn>" | "<end_of_turn>")
}

fn special_id(gguf: &Gguf, key: &str, tokens: usize) -> Result<Option<TokenId>, TokenizerError> {
    let key = format!("tokenizer.ggml.{key}");
    match gguf.optional_u32(&key)? {
        // Writers put all ones where there is no such token.
        None | Some(TokenId::MAX) => Ok(None),
        Some(id) if (id as usize) < tokens => Ok(Some(id)),
        Some(id) => Err(TokenizerError::IdOutOfRange { key, id, tokens }),
    }
}
