//! Chat messages to tokens, by the template that a model file carries.
//!
//! A template is a Jinja program from the file: it runs without access to anything, with bounded work. What users
//! typed stays text whatever it spells; only the template's own text can give control tokens.

mod error;
mod protect;
mod python;
mod render;
mod roles;
mod source;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;

pub use error::TemplateError;

use crate::TokenId;
use crate::gguf::Gguf;
use crate::tokenizer::{EncodeError, EncodeLimits, Tokenizer};
use protect::Marker;

const NAME: &str = "chat";
const RECURSION_LIMIT: usize = 64;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who speaks, in the template's words: mostly `system`, `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: String,
}

/// A conversation as a model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatPrompt {
    /// What the template made of it.
    pub text: String,
    /// Its tokens. Where the model's prompts begin with a beginning-of-sequence token, so do these.
    pub ids: Vec<TokenId>,
}

/// Formats the current local time by a strftime pattern, for templates that mention the date.
pub type Clock = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A model's chat template. Immutable; share it through `Arc`.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

impl ChatTemplate {
    /// Compiles the template of a model file. Without a clock, templates see no `strftime_now`: some leave the date out
    /// then, and others fail.
    ///
    /// # Errors
    /// When the file has no template, or one that does not compile.
    pub fn from_gguf(gguf: &Gguf, clock: Option<Clock>) -> Result<Self, TemplateError> {
        Self::new(source::of_file(gguf)?, clock)
    }

    /// Compiles a template from its source.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn new(source: &str, clock: Option<Clock>) -> Result<Self, TemplateError> {
        let source = source::readable(source)?;
        let mut environment = Environment::new();
        // As the library does that the templates were written for.
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(|e| TemplateError::from_jinja(&e))?);
        environment.set_recursion_limit(RECURSION_LIMIT);
        python::add(&mut environment, clock);
        environment
            .add_template_owned(NAME, source.clone())
            .map_err(|e| TemplateError::from_jinja(&e))?;
        Ok(Self {
            environment,
            source,
        })
    }

    /// Returns the same template with a clock, so that it sees `strftime_now`.
    #[must_use]
    pub fn with_clock(&self, clock: Clock) -> Self {
        let mut environment = self.environment.clone();
        python::add_clock(&mut environment, clock);
        Self {
            environment,
            source: self.source.clone(),
        }
    }

    /// Renders a conversation into tokens and opens the assistant's turn. Contents give no control tokens. Where the
    /// model's prompts begin with a beginning-of-sequence token, so does this one, once.
    ///
    /// # Errors
    /// When there is no message, a role is not a plain word or not known, or the template refuses the conversation or
    /// fails.
    pub fn encode_chat(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
    ) -> Result<Vec<TokenId>, TemplateError> {
        let prompt = self.prompt(tokenizer, messages, EncodeLimits::NONE)?;
        Ok(prompt.ids)
    }

    /// As [`Self::encode_chat`], within limits, with the text that the tokens are of.
    ///
    /// # Errors
    /// As [`Self::encode_chat`], and as soon as it is known that the tokens would be too many or that nobody wants them.
    pub fn prompt(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
        limits: EncodeLimits<'_>,
    ) -> Result<ChatPrompt, TemplateError> {
        if messages.is_empty() {
            return Err(TemplateError::NoMessages);
        }
        tokenizer.check_length(messages.iter().map(|m| m.content.as_str()), limits)?;
        // A message takes a token at least, whatever the layout.
        if messages.len() > limits.tokens {
            let limit = limits.tokens;
            return Err(EncodeError::TooMany { limit }.into());
        }
        roles::check(&self.source, messages)?;
        let marker =
            Marker::absent_from(messages, &self.source).ok_or(TemplateError::NoMarker {
                count: Marker::CANDIDATES,
            })?;
        let guarded: Vec<ChatMessage> = messages
            .iter()
            .map(|m| ChatMessage {
                role: m.role.clone(),
                content: marker.guard(&m.content, tokenizer.controls()),
            })
            .collect();
        let rendered = self.render_within(tokenizer, &guarded, limits)?;
        let text = marker.remove(&rendered);
        roles::heard(&text, messages, |other| {
            self.render_within(tokenizer, other, limits).ok()
        })?;
        let mut ids = Vec::new();
        if let Some(bos) = tokenizer.bos().filter(|_| tokenizer.adds_bos()) {
            ids.push(bos);
        }
        let body = tokenizer.encode_guarded(&rendered, |text| marker.remove(text), limits)?;
        let repeated = !ids.is_empty() && body.first() == ids.first();
        ids.extend(&body[usize::from(repeated)..]);
        let text = match text {
            Cow::Owned(text) => text,
            Cow::Borrowed(_) => rendered,
        };
        Ok(ChatPrompt { text, ids })
    }
}
