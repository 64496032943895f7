//! Which tokens end generation, by what the file says and by their names.
//!
//! Files rarely state all of them, and a model that goes on behind one writes the user's next turn, or nothing that can be
//! seen. The set is that of llama.cpp, which most files were tried with, and a few names more of the same meaning.

use super::error::TokenizerError;
use super::vocabulary::TokenKind;
use crate::TokenId;

/// Of a sequence, a turn or a message; and of a file where the model was trained to fill in what is missing.
const KEYS: [&str; 6] = [
    "eos_token_id",
    "eot_token_id",
    "eom_token_id",
    "fim_pad_token_id",
    "fim_rep_token_id",
    "fim_sep_token_id",
];

/// Ends of a text, a turn or a message.
const TURNS: [&str; 28] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<|endofturn|>",
    "<|end_of_turn|>",
    "<|end▁of▁sentence|>",
    "<｜end▁of▁sentence｜>",
    "<|EOT|>",
    "<EOT>",
    "_<EOT>",
    "▁<EOT>",
    "< EOT >",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<end_of_utterance>",
    "<|eos|>",
    "</s>",
];

/// Where a file ends and another begins, in models that were trained on code.
const FILES: [&str; 13] = [
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<|reponame|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<repo_name>",
    "<|file_sep|>",
    "<file_sep>",
];

/// Whether a token of that name is one that only a chat template writes, whatever the file says of it. Names that are
/// ordinary text elsewhere, such as tags of HTML, count where the file at least keeps them whole.
pub(super) fn makes_control(text: &str, kind: TokenKind) -> bool {
    match kind {
        TokenKind::UserDefined => TURNS.contains(&text) || FILES.contains(&text),
        TokenKind::Normal => {
            let plain = ["</s>", "[EOT]", "[EOS]", "<PAD>", "<REPO>"];
            !plain.contains(&text) && (TURNS.contains(&text) || FILES.contains(&text))
        }
        _ => false,
    }
}

/// Whether a token of that kind ends generation where its name says so.
pub(super) fn counts(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Control | TokenKind::Unused)
}

/// Finds the tokens that end generation, in ascending order. `stated` reads a key, `named` finds a token that counts.
pub(super) fn find(
    stated: impl Fn(&str) -> Result<Option<TokenId>, TokenizerError>,
    named: impl Fn(&str) -> Option<TokenId>,
) -> Result<Vec<TokenId>, TokenizerError> {
    let mut ends = Vec::new();
    for key in KEYS {
        ends.extend(stated(key)?);
    }
    // In formats with channels, one message ends and the answer goes on.
    let goes_on = |text: &str| match text {
        "<|end|>" => {
            let has = |text| named(text).is_some();
            (has("<|return|>") && has("<|call|>")) || (has("<|calls|>") && has("<|flush|>"))
        }
        "</s>" => named("<|tool_response>").is_some(),
        _ => false,
    };
    let names = TURNS.iter().chain(&FILES).filter(|text| !goes_on(text));
    ends.extend(names.filter_map(|text| named(text)));
    ends.sort_unstable();
    ends.dedup();
    Ok(ends)
}
