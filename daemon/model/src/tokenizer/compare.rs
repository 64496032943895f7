//! Whether two vocabularies are one, as drafting with a separate model needs.

use std::fmt;

use super::vocabulary::{TokenKind, Vocabulary};
use crate::TokenId;

/// The first place where two vocabularies differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VocabularyDifference {
    /// A token has another text or purpose.
    Token {
        /// Its id.
        id: TokenId,
        /// What it is in the target.
        target: String,
        /// What it is in the draft.
        draft: String,
    },
    /// The beginning- or end-of-sequence token differs.
    Special {
        /// "beginning-of-sequence" or "end-of-sequence".
        role: &'static str,
        /// Its id in the target.
        target: Option<TokenId>,
        /// Its id in the draft.
        draft: Option<TokenId>,
    },
    /// The longer table goes on with tokens that are in use.
    Length {
        /// Tokens of the target.
        target: usize,
        /// Tokens of the draft.
        draft: usize,
        /// The first token that only one has.
        id: TokenId,
        /// What it is there.
        text: String,
    },
}

impl fmt::Display for VocabularyDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token { id, target, draft } => write!(
                f,
                "token {id} is {target} in the target and {draft} in the draft: a draft needs the target's vocabulary"
            ),
            Self::Special {
                role,
                target,
                draft,
            } => {
                let name = |id: &Option<TokenId>| id.map_or("none".to_owned(), |id| id.to_string());
                let (target, draft) = (name(target), name(draft));
                write!(
                    f,
                    "the {role} token is {target} in the target and {draft} in the draft"
                )
            }
            Self::Length {
                target,
                draft,
                id,
                text,
            } => write!(
                f,
                "the target has {target} tokens and the draft {draft}, and token {id}, {text}, is in use in one only"
            ),
        }
    }
}

/// Finds the first difference. Unused tokens count as equal to anything, and so does what only one table has as long
/// as it is unused: families pad their tables to different sizes.
pub(super) fn first_difference(
    target: &Vocabulary,
    draft: &Vocabulary,
) -> Option<VocabularyDifference> {
    for ((id, text, kind), (_, other_text, other_kind)) in target.iter().zip(draft.iter()) {
        let unused = is_unused(text, kind) || is_unused(other_text, other_kind);
        if !unused && (text != other_text || is_control(kind) != is_control(other_kind)) {
            let (target, draft) = (describe(text, kind), describe(other_text, other_kind));
            return Some(VocabularyDifference::Token { id, target, draft });
        }
    }
    let common = target.len().min(draft.len());
    let mut rest = target.iter().skip(common).chain(draft.iter().skip(common));
    if let Some((id, text, kind)) =
        rest.find(|(_, text, kind)| !is_unused(text, *kind) && !is_control(*kind))
    {
        let text = describe(text, kind);
        return Some(VocabularyDifference::Length {
            target: target.len(),
            draft: draft.len(),
            id,
            text,
        });
    }
    let roles = [
        ("beginning-of-sequence", target.bos, draft.bos),
        ("end-of-sequence", target.eos, draft.eos),
    ];
    let (role, target, draft) = roles
        .into_iter()
        .find(|(_, target, draft)| target != draft)?;
    Some(VocabularyDifference::Special {
        role,
        target,
        draft,
    })
}

fn is_control(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Control | TokenKind::Unknown)
}

fn is_unused(text: &str, kind: TokenKind) -> bool {
    kind == TokenKind::Unused
        || [
            "[PAD",
            "<pad",
            "<unused",
            "<|reserved",
            "<|unused",
            "<dummy",
        ]
        .iter()
        .any(|start| text.starts_with(start))
}

fn describe(text: &str, kind: TokenKind) -> String {
    match kind {
        TokenKind::Normal | TokenKind::UserDefined | TokenKind::Byte => format!("{text:?}"),
        TokenKind::Control => format!("the control token {text:?}"),
        TokenKind::Unknown => format!("the unknown token {text:?}"),
        TokenKind::Unused => format!("the unused token {text:?}"),
    }
}
