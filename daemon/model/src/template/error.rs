//! Why a conversation could not be rendered.

use crate::gguf::GgufError;
use crate::tokenizer::EncodeError;

/// Why a chat template could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The model file carries no template.
    #[error(
        "the model has no chat template: send it plain text, or choose an instruction-tuned model"
    )]
    Missing,
    /// The key holds something else.
    #[error("the model's chat template cannot be read")]
    Gguf(#[from] GgufError),
    /// The file has templates for other purposes only.
    #[error(
        "the model has chat templates for other purposes ({names}), but none for plain conversations: send it plain text"
    )]
    NoDefault {
        /// What they are called.
        names: String,
    },
    /// More text than any template has.
    #[error("the model's chat template has {bytes} bytes, and {limit} are the most")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A conversation without messages.
    #[error("the conversation has no messages: send at least one")]
    NoMessages,
    /// A role that could spell markup.
    #[error(
        "the role {role:?} is not a plain word: use letters, digits, `_` and `-`, such as `user`"
    )]
    Role {
        /// As given.
        role: String,
    },
    /// A role that the template does not treat.
    #[error("the model's chat template does not know the role {role:?}: it knows {known}")]
    UnknownRole {
        /// As given.
        role: String,
        /// Those it knows, as far as that can be seen.
        known: String,
    },
    /// The template leaves out what a role says.
    #[error(
        "the model's chat template leaves out what the role {role:?} says: put it into another role's message"
    )]
    Unheard {
        /// As given.
        role: String,
    },
    /// The template itself rejects the conversation, such as roles that do not alternate.
    #[error("the model's chat template refuses this conversation: {message}")]
    Refused {
        /// The template's own words.
        message: String,
    },
    /// The template does not compile or fails as it runs.
    #[error("line {line} of the model's chat template failed: {detail}")]
    Failed {
        /// Counted from 1; 0 where unknown.
        line: usize,
        /// What went wrong.
        detail: String,
    },
    /// The template would work for longer than any conversation needs.
    #[error(
        "line {line} of the model's chat template was reached after as much work as {messages} messages may take: \
         send fewer, or plain text"
    )]
    Endless {
        /// Counted from 1; 0 where unknown.
        line: usize,
        /// Messages of the conversation.
        messages: usize,
    },
    /// The conversation makes too many tokens, or nobody waits for them any more.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The messages use every character that could mark text as typed.
    #[error("the conversation uses all {count} private-use characters, and one must be free")]
    NoMarker {
        /// Number of these characters.
        count: usize,
    },
}

/// Carries the words of `raise_exception` through the template engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

impl TemplateError {
    pub(super) fn from_jinja(error: &minijinja::Error) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(e) = cause {
            if let Some(Refusal(message)) = e.downcast_ref() {
                return Self::Refused {
                    message: message.clone(),
                };
            }
            cause = e.source();
        }
        let detail = match error.detail() {
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        };
        Self::Failed {
            line: error.line().unwrap_or(0),
            detail,
        }
    }
}
