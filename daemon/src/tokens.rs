//! Texts and conversations to tokens, and tokens to text, within what fits: a context, or an answer.
//!
//! What cannot fit is refused by its length alone where that tells, and else as soon as it does.

use prost::Message as _;
use tandem_model::TokenId;
use tandem_model::template::{ChatMessage, TemplateError};
use tandem_model::tokenizer::{EncodeError, EncodeLimits, MAX_WORD_BYTES, SpecialTokens};
use tandem_proto::v1;
use tonic::Status;

use crate::convert::Input;
use crate::errors;
use crate::residency::Resident;

/// Least bytes of a token in an answer: its id, and the tag and length of its piece.
const TOKEN_BYTES: usize = 3;
/// Up to how many contexts a prompt that is too long is counted, so that whoever has to shorten it knows by how much.
const COUNTED_CONTEXTS: usize = 4;

/// How to compute an answer.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Its largest size.
    pub(crate) answer_bytes: usize,
    /// Whether nobody waits for it any more.
    pub(crate) stopped: &'a dyn Fn() -> bool,
}

/// What to tokenize.
#[derive(Debug)]
pub(crate) enum Source {
    Text {
        text: String,
        special: SpecialTokens,
        add_bos: bool,
    },
    Chat(Vec<ChatMessage>),
}

impl Source {
    /// Checks a request.
    pub(crate) fn new(request: v1::TokenizeRequest) -> Result<Self, Status> {
        let Some(chat) = request.chat else {
            return Ok(Self::Text {
                text: request.text,
                special: match request.parse_special {
                    true => SpecialTokens::Parse,
                    false => SpecialTokens::AsText,
                },
                add_bos: request.add_bos,
            });
        };
        for (given, field) in [
            (!request.text.is_empty(), "text"),
            (request.parse_special, "parse_special"),
            (request.add_bos, "add_bos"),
        ] {
            if given {
                return Err(errors::invalid_field(field, "has no meaning beside chat"));
            }
        }
        Ok(Self::Chat(messages(chat.messages)))
    }
}

pub(crate) fn messages(messages: Vec<v1::ChatMessage>) -> Vec<ChatMessage> {
    let message = |message: v1::ChatMessage| ChatMessage {
        role: message.role,
        content: message.content,
    };
    messages.into_iter().map(message).collect()
}

/// Makes the tokens of a text or conversation, whose answer holds the text once more.
pub(crate) fn tokenize(
    resident: &Resident,
    source: &Source,
    terms: Terms<'_>,
) -> Result<v1::TokenizeResponse, Status> {
    let tokenizer = &resident.tokenizer;
    let bytes = match source {
        Source::Text { text, .. } => text.len(),
        // Rendered, and in pieces.
        Source::Chat(messages) => messages.iter().map(|m| m.content.len()).sum::<usize>() * 2,
    };
    let limits = EncodeLimits {
        tokens: terms.answer_bytes.saturating_sub(bytes) / TOKEN_BYTES,
        word_bytes: MAX_WORD_BYTES,
        stopped: terms.stopped,
    };
    let too_large = |tokens: usize| {
        let size = bytes + tokens * TOKEN_BYTES;
        errors::message_too_large("answer", size as u64, terms.answer_bytes)
    };
    let (token_ids, rendered) = match source {
        Source::Text {
            text,
            special,
            add_bos,
        } => {
            let encoded = tokenizer.encode_within(text, *special, limits);
            let ids = encoded.map_err(|error| match error {
                EncodeError::TooMany { limit } => too_large(limit + 1),
                error => refused(error, "text"),
            })?;
            let bos = tokenizer.bos().filter(|_| *add_bos);
            (bos.into_iter().chain(ids).collect(), String::new())
        }
        Source::Chat(messages) => {
            let prompt = template(resident)?.prompt(tokenizer, messages, limits);
            let prompt = prompt.map_err(|error| match error {
                TemplateError::Encode(EncodeError::TooMany { limit }) => too_large(limit + 1),
                error => misfit(error, messages),
            })?;
            (prompt.ids, prompt.text)
        }
    };
    let mut answer = v1::TokenizeResponse {
        token_ids,
        pieces: Vec::new(),
        rendered,
    };
    let piece = |id: &TokenId| tokenizer.piece(*id).unwrap_or_default();
    let pieces = answer.token_ids.iter().map(piece);
    let size = answer.encoded_len() + pieces.map(field_bytes).sum::<usize>();
    if size > terms.answer_bytes {
        return Err(errors::message_too_large(
            "answer",
            size as u64,
            terms.answer_bytes,
        ));
    }
    answer.pieces = answer
        .token_ids
        .iter()
        .map(|id| piece(id).to_vec())
        .collect();
    Ok(answer)
}

/// What a field of bytes takes in a message: its tag, its length, and itself.
fn field_bytes(bytes: &[u8]) -> usize {
    1 + prost::length_delimiter_len(bytes.len()) + bytes.len()
}

/// Makes the text of tokens.
pub(crate) fn detokenize(
    resident: &Resident,
    token_ids: &[u32],
    terms: Terms<'_>,
) -> Result<v1::DetokenizeResponse, Status> {
    let mut bytes = Vec::new();
    for (index, id) in token_ids.iter().enumerate() {
        let piece = resident.tokenizer.piece(*id).ok_or_else(|| {
            let size = resident.report.target.vocabulary_size;
            let problem = format!("token {id} is beyond the target's vocabulary of {size} tokens");
            errors::invalid_field(format!("token_ids[{index}]"), problem)
        })?;
        bytes.extend_from_slice(piece);
        // As text and as bytes.
        if bytes.len() * 2 > terms.answer_bytes {
            let size = bytes.len() * 2;
            return Err(errors::message_too_large(
                "answer",
                size as u64,
                terms.answer_bytes,
            ));
        }
        if index % 65_536 == 0 && (terms.stopped)() {
            return Err(errors::abandoned());
        }
    }
    let answer = v1::DetokenizeResponse {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        bytes,
    };
    let size = answer.encoded_len();
    if size > terms.answer_bytes {
        return Err(errors::message_too_large(
            "answer",
            size as u64,
            terms.answer_bytes,
        ));
    }
    Ok(answer)
}

/// Makes the tokens of a prompt. One that is a little longer than the context is left to the engine to refuse.
pub(crate) fn prompt(
    resident: &Resident,
    input: Input,
    max_tokens: Option<u32>,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<TokenId>, Status> {
    let tokenizer = &resident.tokenizer;
    let context_length = resident.report.context_length;
    let limits = EncodeLimits {
        tokens: context_length.saturating_mul(COUNTED_CONTEXTS),
        word_bytes: MAX_WORD_BYTES,
        stopped,
    };
    let too_long = |limit: usize| {
        errors::prompt_too_long(&resident.name, limit + 1, max_tokens, context_length)
    };
    match input {
        Input::TokenIds(ids) => Ok(ids),
        Input::Text(text) => {
            let encoded = tokenizer.encode_within(&text, SpecialTokens::AsText, limits);
            let ids = encoded.map_err(|error| match error {
                EncodeError::TooMany { limit } => too_long(limit),
                error => refused(error, "text"),
            })?;
            // Raw text begins as the model was trained to see it begin.
            let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
            Ok(bos.into_iter().chain(ids).collect())
        }
        Input::Chat(chat) => {
            let messages = messages(chat);
            let prompt = template(resident)?.prompt(tokenizer, &messages, limits);
            let prompt = prompt.map_err(|error| match error {
                TemplateError::Encode(EncodeError::TooMany { limit }) => too_long(limit),
                error => misfit(error, &messages),
            })?;
            Ok(prompt.ids)
        }
    }
}

/// Refuses an input whose length alone says that it does not fit the context.
pub(crate) fn check_length(
    resident: &Resident,
    input: &Input,
    max_tokens: Option<u32>,
) -> Result<(), Status> {
    let tokenizer = &resident.tokenizer;
    let tokens = match input {
        Input::TokenIds(ids) => ids.len(),
        Input::Text(text) => tokenizer.least_tokens([text.as_str()]),
        Input::Chat(messages) => {
            let contents = messages.iter().map(|m| m.content.as_str());
            tokenizer.least_tokens(contents).max(messages.len())
        }
    };
    let context_length = resident.report.context_length;
    if tokens > context_length {
        return Err(errors::prompt_too_long(
            &resident.name,
            tokens,
            max_tokens,
            context_length,
        ));
    }
    Ok(())
}

/// Bytes of an input, as it takes work.
pub(crate) fn bytes(input: &Input) -> usize {
    match input {
        // Nothing is to be done about them.
        Input::TokenIds(_) => 0,
        Input::Text(text) => text.len(),
        Input::Chat(messages) => messages
            .iter()
            .map(|m| m.content.len() + m.role.len())
            .sum(),
    }
}

fn template(resident: &Resident) -> Result<&tandem_model::template::ChatTemplate, Status> {
    let template = resident.template.as_deref();
    template.map_err(|error| errors::no_template(&resident.name, error))
}

/// A text that did not become tokens for another reason than their number.
fn refused(error: EncodeError, field: &str) -> Status {
    match error {
        EncodeError::Stopped => errors::abandoned(),
        error => errors::invalid_field(field, error.to_string()),
    }
}

/// A conversation that the template does not take.
fn misfit(error: TemplateError, messages: &[ChatMessage]) -> Status {
    let role = match &error {
        TemplateError::Encode(error) => return refused(*error, "chat.messages"),
        TemplateError::Role { role }
        | TemplateError::UnknownRole { role, .. }
        | TemplateError::Unheard { role } => Some(role),
        _ => None,
    };
    let index = role.and_then(|role| messages.iter().position(|m| m.role == *role));
    let field = index.map_or_else(
        || "chat.messages".to_owned(),
        |index| format!("chat.messages[{index}].role"),
    );
    errors::invalid_field(field, error.to_string())
}
